#ifndef FL_SERVERD_FRONT_H
#define FL_SERVERD_FRONT_H

/*
 * The network front end of the daemon: sessions, transfers and admin calls, all on the network
 * loop. Its only knowledge of rounds is what the coordinator sent: upload masks and payloads.
 *
 * Threading: fl_frontend_post() from any thread, everything else on the network loop.
 */

#include "server/daemon/serverd.h"

FL_MUST_CHECK int fl_frontend_create(struct fl_serverd *srv, struct fl_frontend **ret,
                                     struct fl_err *err);
/* Bind all addresses; prints and logs them. `*ret_exit`: the exit code on error. */
FL_MUST_CHECK int fl_frontend_listen(struct fl_frontend *frontend, struct fl_err *err);
/*
 * The client is revoked: its upload for the open round is not aggregated, and `keeps` says which of
 * its other data remains. fl_frontend_review() ends its calls. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_frontend_exclude(struct fl_frontend *frontend, const char *name,
                                      enum fl_revoked_keeps keeps);
/* Check the role of each connected peer again (fl_auth_who()). */
void fl_frontend_review(struct fl_frontend *frontend);
/* Takes `down`. */
void fl_frontend_post(struct fl_net_msg *down);
/*
 * Send drain to the clients (they reconnect after `reconnect_ms`, 0: never) and stop listening;
 * `closed(ctx)` is called when every connection is closed, at most about `grace_ms` later.
 */
void fl_frontend_close(struct fl_frontend *frontend, uint32_t grace_ms, fl_loop_cb closed,
                       void *ctx);
/* Call after close and after the io thread was freed. */
void fl_frontend_free(struct fl_frontend *frontend);

#endif
