#ifndef FL_CLIENTD_ENROL_H
#define FL_CLIENTD_ENROL_H

/*
 * Joining a federation with an invitation: a connection on which the server proves that it is the
 * one of the line, one call that brings the first certificate, and files in place. Tried again
 * until it succeeds or the caller's tries are used up; after a refusal rarely or not at all. A kill
 * at any point is followed by the same, with the same line.
 *
 * Threading: the loop, which fl_enrol_run() runs.
 */

#include "client/conf/client_conf.h"
#include "libfl/base/identity.h"
#include "libfl/base/log.h"
#include "libfl/net/loop.h"
#include "libfl/pki/invitation.h"
#include "libfl/wire/wire_identity.h"

/* All borrowed. */
struct fl_enrol_setup {
    struct fl_loop *loop;
    const struct fl_log *log;
    const char *dir; /* STATE_DIR/identity */
    const struct fl_invite *invite;
    const char *name; /* wanted; "": that of the invitation */
    uint64_t first_ms, longest_ms, connect_timeout_ms;
    /*
     * Wait after a refusal that takes another line; longest_ms at most after one that an operator
     * of the server or a clock can cure. 0: any refusal is final.
     */
    uint64_t refused_ms;
    unsigned tries; /* 0: no end */
};

struct fl_enrolled {
    struct fl_identity who;
    struct fl_wire_labels labels; /* owned, of the invitation */
};

/*
 * FL_EPERM: refused, by the server or by a check of ours, and `refused_ms` is 0. FL_ECANCELED:
 * the loop was stopped meanwhile. Errors of the own disk, with `*ret_local` set. Else why the last
 * try failed.
 */
FL_MUST_CHECK int fl_enrol_run(const struct fl_enrol_setup *setup, struct fl_enrolled *ret,
                               bool *ret_local, struct fl_err *err);
void fl_enrolled_done(struct fl_enrolled *enrolled);

/* "host:port" of the line, as fl_grpc_connect() takes it; returns `out`. */
#define FL_ENROL_ADDRESS_MAX (FL_INVITE_HOST_MAX + 10)
const char *fl_enrol_address(const struct fl_invite *invite, char out[FL_ENROL_ADDRESS_MAX]);

/*
 * A daemon that was given a credential `invitation` and has no certificate joins by itself, for as
 * long as it takes. FL_OK also when there is nothing to do. `*ret_exit` is the exit code on an
 * error.
 */
FL_MUST_CHECK int fl_enrol_by_credential(const struct fl_client_conf *conf, struct fl_loop *loop,
                                         const struct fl_log *log, int *ret_exit,
                                         struct fl_err *err);

#endif
