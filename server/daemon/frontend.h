#ifndef FL_SERVERD_FRONT_H
#define FL_SERVERD_FRONT_H

/*
 * The network side of the daemon: sessions, transfers and admin calls, all on the network
 * loop. It knows what the coordinator told it (grants, bundles) and nothing else.
 *
 * Threading: fl_frontend_post() from any thread, everything else on the network loop.
 */

#include "server/daemon/serverd.h"

FL_MUST_CHECK int fl_frontend_create(struct fl_serverd *srv, struct fl_frontend **ret,
                                     struct fl_err *err);
/* Bind all addresses; prints and logs them. `*ret_exit` says how to exit on error. */
FL_MUST_CHECK int fl_frontend_listen(struct fl_frontend *frontend, struct fl_err *err);
/*
 * This client is denied: what it sent for the open round is not aggregated, and of the rest stays
 * what `keeps` says. Its calls end by fl_frontend_review(). FL_ENOMEM.
 */
FL_MUST_CHECK int fl_frontend_exclude(struct fl_frontend *frontend, const char *name,
                                      enum fl_denied_keeps keeps);
/* Look again at what each peer is (fl_auth_who()). */
void fl_frontend_review(struct fl_frontend *frontend);
/* Takes `down`. */
void fl_frontend_post(struct fl_net_msg *down);
/*
 * Say goodbye to the clients (they come back after `reconnect_ms`, 0: never), stop
 * listening; `closed(ctx)` when every connection is gone, at most about `grace_ms` later.
 */
void fl_frontend_close(struct fl_frontend *frontend, uint32_t grace_ms, fl_loop_cb closed,
                       void *ctx);
/* After close and after the io lane was freed. */
void fl_frontend_free(struct fl_frontend *frontend);

#endif
