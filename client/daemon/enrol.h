#ifndef FL_CLIENTD_ENROL_H
#define FL_CLIENTD_ENROL_H

/*
 * Joining a federation with an invitation: a connection on which the server proves that it owns the
 * root named in the invitation, one call that returns the first certificate, and files in place.
 * An attempt tries the addresses of the invitation in their order, until one of them is the server.
 * Retried until it succeeds or the caller's attempts are used up; after a refusal rarely or not at
 * all. After a crash at any point the same invitation continues.
 *
 * Threading: the loop, which fl_enrol_run() runs.
 */

#include "client/conf/client_conf.h"
#include "libfl/base/identity.h"
#include "libfl/base/log.h"
#include "libfl/net/loop.h"
#include "libfl/net/proxy_rule.h"
#include "libfl/pki/invitation.h"
#include "libfl/wire/wire_identity.h"

/* All borrowed. */
struct fl_enrol_setup {
    struct fl_loop *loop;
    const struct fl_log *log;
    const char *dir; /* STATE_DIR/identity */
    const struct fl_invite *invite;
    const char *name;                  /* requested name; "": that of the invitation */
    const struct fl_proxy_rule *proxy; /* NULL: none */
    uint64_t first_ms, longest_ms, connect_timeout_ms;
    uint64_t ping_after_ms, ping_limit_ms; /* as of a channel */
    /*
     * Pause after a refusal that needs a new invitation; after one that an operator or a correct
     * clock can resolve it is longest_ms at most. 0: any refusal is final.
     */
    uint64_t refused_ms;
    unsigned tries; /* attempts; 0: no limit */
};

struct fl_enrolled {
    struct fl_identity who;
    struct fl_wire_labels labels; /* owned, from the invitation */
};

/*
 * FL_EPERM: refused by the server or by a check of this client, with `refused_ms` 0. FL_ECANCELED:
 * the loop was stopped meanwhile. Errors of the local disk set `*ret_local`. Any other error is
 * that of the last attempt.
 */
FL_MUST_CHECK int fl_enrol_run(const struct fl_enrol_setup *setup, struct fl_enrolled *ret,
                               bool *ret_local, struct fl_err *err);
void fl_enrolled_done(struct fl_enrolled *enrolled);

/* "host:port" in the form of fl_grpc_connect(); returns `out`. */
#define FL_ENROL_ADDRESS_MAX (FL_INVITE_HOST_MAX + 10)
const char *fl_enrol_address(const struct fl_invite_address *address,
                             char out[FL_ENROL_ADDRESS_MAX]);

/*
 * A daemon with the credential `invitation` and without a certificate joins unattended, retrying
 * without limit. FL_OK also when there is nothing to do. `*ret_exit` is the exit code on an error.
 */
FL_MUST_CHECK int fl_enrol_by_credential(const struct fl_client_conf *conf, struct fl_loop *loop,
                                         const struct fl_log *log, int *ret_exit,
                                         struct fl_err *err);

#endif
