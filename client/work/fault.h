#ifndef FL_CLIENT_WORK_FAULT_H
#define FL_CLIENT_WORK_FAULT_H

/* Classifies an error of the work for a task. */

#include "libfl/base/err.h"

enum fl_fault {
    FL_FAULT_PASSING,  /* temporary: memory, disk, connection, a cancelled run; a retry may succeed
                        */
    FL_FAULT_LASTING,  /* permanent: every retry would fail the same way */
    FL_FAULT_DIVERGED, /* the result is not finite; a retry would diverge, too */
    /*
     * The server cannot decode the upload; the result stays until the server accepts, rejects or
     * dismisses it.
     */
    FL_FAULT_UNDELIVERED,
};

/* FL_ENUMERIC: diverged; FL_EPROTO and FL_ESTATE: permanent; all others: temporary. */
enum fl_fault fl_fault_of(int code);

#endif
