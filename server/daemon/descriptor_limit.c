#include "server/daemon/descriptor_limit.h"

#define RESERVE (FL_SERVERD_ADMIN_CONNECTIONS + FL_SERVERD_OWN_DESCRIPTORS)

int fl_serverd_connections(uint64_t descriptors, uint64_t wanted, uint64_t least, uint64_t *ret,
                           struct fl_err *err)
{
    uint64_t left = descriptors > RESERVE ? descriptors - RESERVE : 0;
    uint64_t fit = left / FL_SERVERD_CLIENT_DESCRIPTORS;

    fit = fit < wanted ? fit : wanted;
    if (fit < least || fit == 0) {
        least = least > 0 ? least : 1;
        return fl_err_set(
            err, FL_ELIMIT,
            "%llu descriptors allow %llu connections, but a round begins with %llu clients: raise "
            "the hard limit of open files (ulimit -Hn, LimitNOFILE= of the unit) to %llu or more",
            (unsigned long long)descriptors, (unsigned long long)fit, (unsigned long long)least,
            (unsigned long long)(RESERVE + FL_SERVERD_CLIENT_DESCRIPTORS * least));
    }
    *ret = fit;
    return FL_OK;
}
