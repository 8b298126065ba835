#include "libfl/base/undumpable.h"

#include <sys/prctl.h>

void fl_undumpable(void)
{
#ifndef __SANITIZE_ADDRESS__
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}
