#ifndef FL_CLIENT_WORK_FAULT_H
#define FL_CLIENT_WORK_FAULT_H

/* What an error of the work for a task means for that task. */

#include "libfl/base/err.h"

enum fl_fault {
    FL_FAULT_PASSING,  /* memory, disk, connection, a cancelled run: another try may go well */
    FL_FAULT_LASTING,  /* the same would come of every other try */
    FL_FAULT_DIVERGED, /* what came out is not finite, and would not be again */
    /* The server cannot take the upload; the result stays until the server says what became of it
     */
    FL_FAULT_UNDELIVERED,
};

/* Of FL_ENUMERIC (diverged), of FL_EPROTO and FL_ESTATE (lasting), and of all others (passing). */
enum fl_fault fl_fault_of(int code);

#endif
