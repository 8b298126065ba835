#include "client/work/fault.h"

enum fl_fault fl_fault_of(int code)
{
    switch (code) {
    case FL_ENUMERIC:
        return FL_FAULT_DIVERGED;
    case FL_EPROTO: /* The task lists invalid payloads. */
    case FL_ESTATE: /* The client state of the result is lost, or the result is for another model.
                     */
        return FL_FAULT_LASTING;
    default:
        return FL_FAULT_PASSING;
    }
}
