#ifndef FL_SERVER_AUTH_H
#define FL_SERVER_AUTH_H

/*
 * Authentication: the credentials of the server, the roots it trusts, and the role of each peer
 * (docs/security.md). The federation's authority (server/identity) runs on a thread of its own, the
 * identity thread, because joining signs and waits for the disk. The network loop has the results:
 * a TLS context, and the newest revocations.
 *
 * Changed files are loaded within FL_AUTH_LOOK_MS, and by a reload. Open connections keep the
 * certificate that they were opened with; its validity is checked again.
 *
 * Threading: the network loop; `work` of fl_auth_submit() runs on the identity thread.
 */

#include "libfl/base/log.h"
#include "libfl/net/loop.h"
#include "libfl/net/stream.h"
#include "server/conf/server_conf.h"
#include "server/identity/authority.h"
#include "server/identity/revocations.h"

#define FL_AUTH_LOOK_MS 2000

struct fl_auth;

/* What authentication needs of the server; all of it is borrowed and outlives its users. */
struct fl_auth_setup {
    const struct fl_server_conf *conf;
    const char *state_dir;
    const struct fl_log *log;
    /* Once a day when the server's certificate expires soon or has expired; on the loop; NULL. */
    void (*expiring)(void *ctx, uint64_t ends_ms);
    void *ctx; /* of expiring */
};

/* The data of a client with a revoked certificate that remains, beside its contributions. */
enum fl_revoked_keeps {
    FL_REVOKED_KEEPS_ALL,    /* disabled: it continues when it is enabled */
    FL_REVOKED_KEEPS_RECORD, /* evicted: its data summary and its control are removed */
    FL_REVOKED_KEEPS_NOTHING /* revoked */
};

/*
 * FL_OK with NULL where no address uses TLS. `changed(ctx)` is called on the loop after a change
 * that may affect the roles of connected peers. Copies `setup`.
 */
FL_MUST_CHECK int fl_auth_create(const struct fl_auth_setup *setup, struct fl_loop *loop,
                                 fl_loop_cb changed, void *ctx, struct fl_auth **ret,
                                 struct fl_err *err);
/* Call before the loop is freed and after the front end was closed: finishes the submitted jobs. */
void fl_auth_close(struct fl_auth *auth);
void fl_auth_free(struct fl_auth *auth); /* after the loop has run out; NULL is allowed */

/* The TLS filter of each connection; lives as long as `g`. */
const struct fl_stream_filter *fl_auth_filter(const struct fl_auth *auth);
/* True when the operator configured certificates of its own PKI. */
bool fl_auth_own_pki(const struct fl_server_conf *conf);
/* The identity thread, to ask about its jobs. Any thread; NULL: none (no address uses TLS). */
struct fl_worker_thread *fl_auth_worker(const struct fl_auth *auth);
/* When the certificate that the server shows, and the first of its issuers, expire: ms since 1970,
   0: not known. Any thread; NULL: no address uses TLS. */
void fl_auth_ends(struct fl_auth *auth, uint64_t ret[2]);
/* As in struct fl_grpc_listen; the context is a struct fl_auth. */
uint32_t fl_auth_who(void *auth, const struct fl_identity *identity, const char **why);

/* For peers without a certificate: is this name revoked? `*why` is valid until the next call. */
bool fl_auth_is_revoked(struct fl_auth *auth, const char *name, const char **why);

/*
 * Run work(authority, arg) on the identity thread, in order, then done(arg) on the loop, where its
 * changes are then in effect. FL_ENOMEM; FL_ECLOSED: shutting down, nothing runs.
 */
typedef void (*fl_auth_work_cb)(struct fl_authority *authority, void *arg);
FL_MUST_CHECK int fl_auth_submit(struct fl_auth *auth, fl_auth_work_cb work, fl_loop_cb done,
                                 void *arg);
/*
 * Called for each client whose newest certificate is revoked; `keeps`: the data that remains. An
 * error of `cb` ends the iteration.
 */
typedef int fl_auth_revoked_cb(void *ctx, const char *name, enum fl_revoked_keeps keeps);
/* Identity thread; only clients with a certificate that `target` matches (NULL: all). */
FL_MUST_CHECK int fl_auth_each_revoked(struct fl_authority *authority,
                                       const struct fl_revoked *target, fl_auth_revoked_cb *cb,
                                       void *ctx, struct fl_err *err);
/*
 * All revoked clients, at the start, for revocations right before a crash. Call it before the first
 * fl_auth_submit().
 */
FL_MUST_CHECK int fl_auth_revoked(struct fl_auth *auth, fl_auth_revoked_cb *cb, void *ctx,
                                  struct fl_err *err);
/* Check for changed files and due renewals; `all`: read the files in any case. */
void fl_auth_look(struct fl_auth *auth, bool all);
/* Call about once a second: checks when FL_AUTH_LOOK_MS have passed. */
void fl_auth_sweep(struct fl_auth *auth, uint64_t now_ms);

/*
 * `fl-serverd --init`, with `renew_root` for a new root: creates the identity of the federation and
 * prints the addresses of its server. Not for an operator's own PKI.
 */
FL_MUST_CHECK int fl_auth_init(const struct fl_auth_setup *setup, bool renew_root,
                               struct fl_err *err);
/*
 * Checks what a start needs of all this: for --check-config. Changes nothing. `notes` gets what is
 * no error: a certificate that has expired or soon will, a key that only the unit can load; "":
 * none.
 */
FL_MUST_CHECK int fl_auth_check(const struct fl_auth_setup *setup, char *notes, size_t size,
                                struct fl_err *err);

#endif
