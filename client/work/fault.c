#include "client/work/fault.h"

enum fl_fault fl_fault_of(int code)
{
    switch (code) {
    case FL_ENUMERIC:
        return FL_FAULT_DIVERGED;
    case FL_EPROTO: /* The task lists what cannot be. */
    case FL_ESTATE: /* What belongs to the result is gone, or it is for another model. */
        return FL_FAULT_LASTING;
    default:
        return FL_FAULT_PASSING;
    }
}
