#include "libfl/base/descriptors.h"

#include <stddef.h>
#include <sys/resource.h>

/* Assumed when the limit cannot be read; available on all supported systems. */
#define ASSUMED_LIMIT 1024

uint64_t fl_descriptors_raise(uint64_t *ret_before)
{
    struct rlimit limit = {.rlim_cur = ASSUMED_LIMIT, .rlim_max = ASSUMED_LIMIT};
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
    struct rlimit limit = {.rlim_max = ASSUMED_LIMIT};

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : ASSUMED_LIMIT;
}
