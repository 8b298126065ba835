#include "server/srv/descriptors.h"

#include <sys/resource.h>

#define RESERVE (FL_SRV_ADMIN_CONNECTIONS + FL_SRV_OWN_DESCRIPTORS)

uint64_t fl_srv_raise_descriptors(void)
{
    struct rlimit limit = {0};

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1024; /* What every system of ours gives. */
    }
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    return limit.rlim_cur;
}

int fl_srv_connections(uint64_t descriptors, uint64_t wanted, uint64_t least, uint64_t *ret,
                       struct fl_err *err)
{
    uint64_t left = descriptors > RESERVE ? descriptors - RESERVE : 0;
    uint64_t fit = left / FL_SRV_CLIENT_DESCRIPTORS;

    fit = fit < wanted ? fit : wanted;
    if (fit < least || fit == 0) {
        least = least > 0 ? least : 1;
        return fl_err_set(
            err, FL_ELIMIT,
            "%llu descriptors are room for %llu connections, but a round begins with "
            "%llu clients: raise the hard limit of open files (ulimit -Hn, LimitNOFILE= "
            "of the unit) to %llu or more",
            (unsigned long long)descriptors, (unsigned long long)fit, (unsigned long long)least,
            (unsigned long long)(RESERVE + FL_SRV_CLIENT_DESCRIPTORS * least));
    }
    *ret = fit;
    return FL_OK;
}
