#ifndef FL_SERVERD_GUARD_H
#define FL_SERVERD_GUARD_H

/*
 * Who may come: what the server shows, whom it believes, and what a peer is to its methods
 * (docs/access.md). The federation's authority (server/identity) works on a lane of its own, since
 * joining signs and waits for the disk; the network loop has what came of it: a TLS context, and
 * the denials as they were last.
 *
 * Files that changed are taken up within FL_AUTH_LOOK_MS, and by a reload; connections that stand
 * go on with what they have shown, and are asked again whether that is still worth anything.
 *
 * Threading: the network loop; `work` of fl_auth_submit() runs on the guard's lane.
 */

#include "server/daemon/serverd.h"
#include "server/identity/authority.h"
#include "server/identity/revocations.h"

#define FL_AUTH_LOOK_MS 2000

struct fl_auth;

/*
 * FL_OK with NULL where no address uses TLS. `changed(ctx)` comes on the loop after what peers are
 * may be different. `*ret_exit` says how to exit on error.
 */
FL_MUST_CHECK int fl_auth_create(const struct fl_serverd *srv, fl_loop_cb changed, void *ctx,
                                 struct fl_auth **ret, int *ret_exit, struct fl_err *err);
/* Before the loop is freed and after the front was closed: the lane finishes what it has. */
void fl_auth_close(struct fl_auth *auth);
void fl_auth_free(struct fl_auth *auth); /* after the loop has run out; NULL is allowed */

/* Over each connection that uses TLS; lives as long as the guard. */
const struct fl_stream_filter *fl_auth_filter(const struct fl_auth *auth);
/* Are certificates of the operator's own PKI? */
bool fl_auth_own_pki(const struct fl_serverd_conf *own);
/* Age of the job that runs on the guard's lane; see fl_worker_thread_busy_ms(). Any thread. */
uint64_t fl_auth_busy_ms(struct fl_auth *auth);
/* As in struct fl_grpc_listen, with the guard as its context. */
uint32_t fl_auth_who(void *auth, const struct fl_identity *identity, const char **why);

/* Is this name denied? `*why` is valid until the next call; for peers that show no certificate. */
bool fl_auth_is_revoked(struct fl_auth *auth, const char *name, const char **why);

/*
 * Run work(authority, arg) on the guard's lane, in order, then done(arg) on the loop, by when what
 * it changed is in force. FL_ENOMEM; FL_ECLOSED: all ends, nothing runs.
 */
typedef void (*fl_auth_work_cb)(struct fl_authority *authority, void *arg);
FL_MUST_CHECK int fl_auth_submit(struct fl_auth *auth, fl_auth_work_cb work, fl_loop_cb done,
                                 void *arg);
/*
 * Each client whose newest certificate is denied, and what stays of it. An error of `cb` ends it.
 */
typedef int fl_auth_revoked_cb(void *ctx, const char *name, enum fl_denied_keeps keeps);
/* On the guard's lane; of those only who has a certificate that `target` means (NULL: all). */
FL_MUST_CHECK int fl_auth_each_revoked(struct fl_authority *authority,
                                       const struct fl_revoked *target, fl_auth_revoked_cb *cb,
                                       void *ctx, struct fl_err *err);
/* All of them, at the start, for what was denied right before a kill: before the first
   fl_auth_submit(). */
FL_MUST_CHECK int fl_auth_revoked(struct fl_auth *auth, fl_auth_revoked_cb *cb, void *ctx,
                                  struct fl_err *err);
/* Look whether files have changed or something is due; `all`: read them in any case. */
void fl_auth_look(struct fl_auth *auth, bool all);
/* Once a second or so: looks when it is time. */
void fl_auth_sweep(struct fl_auth *auth, uint64_t now_ms);

/* `fl-serverd --init`, with `renew_root` a new root. Returns the exit code. */
int fl_auth_init(const struct fl_serverd_conf *own, const struct fl_log *log, bool renew_root);
/*
 * Checks what a start needs of all this: for --check-config. Changes nothing. `notes` gets what is
 * no error: a certificate that has expired or soon will, a key that only the unit can load; "":
 * none.
 */
FL_MUST_CHECK int fl_auth_check(const struct fl_serverd_conf *own, char *notes, size_t size,
                                struct fl_err *err);

#endif
