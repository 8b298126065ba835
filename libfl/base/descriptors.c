#include "libfl/base/descriptors.h"

#include <stddef.h>
#include <sys/resource.h>

/* What every system of ours gives, when it does not tell. */
#define UNTOLD 1024

uint64_t fl_descriptors_raise(uint64_t *ret_before)
{
    struct rlimit limit = {.rlim_cur = UNTOLD, .rlim_max = UNTOLD};
    int rv = getrlimit(RLIMIT_NOFILE, &limit);

    if (ret_before != NULL) {
        *ret_before = limit.rlim_cur;
    }
    if (rv == 0 && limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    return limit.rlim_cur;
}

uint64_t fl_descriptors_most(void)
{
    struct rlimit limit = {.rlim_max = UNTOLD};

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : UNTOLD;
}
