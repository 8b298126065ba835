#ifndef FL_SERVERD_FRONT_H
#define FL_SERVERD_FRONT_H

/*
 * The network side of the daemon: sessions, transfers and admin calls, all on the network
 * loop. It knows what the coordinator told it (grants, bundles) and nothing else.
 *
 * Threading: fl_front_post() from any thread, everything else on the network loop.
 */

#include "server/daemon/server.h"

FL_MUST_CHECK int fl_front_create(struct fl_serverd *srv, struct fl_front **ret,
                                  struct fl_err *err);
/* Bind all addresses; prints and logs them. `*ret_exit` says how to exit on error. */
FL_MUST_CHECK int fl_front_listen(struct fl_front *front, struct fl_err *err);
/*
 * This client is denied: what it sent for the open round is not aggregated, and of the rest stays
 * what `keeps` says. Its calls end by fl_front_review(). FL_ENOMEM.
 */
FL_MUST_CHECK int fl_front_exclude(struct fl_front *front, const char *name,
                                   enum fl_denied_keeps keeps);
/* Look again at what each peer is (fl_guard_who()). */
void fl_front_review(struct fl_front *front);
/* Takes `down`. */
void fl_front_post(struct fl_down *down);
/*
 * Say goodbye to the clients (they come back after `reconnect_ms`, 0: never), stop
 * listening; `closed(ctx)` when every connection is gone, at most about `grace_ms` later.
 */
void fl_front_close(struct fl_front *front, uint32_t grace_ms, fl_loop_cb closed, void *ctx);
/* After close and after the io lane was freed. */
void fl_front_free(struct fl_front *front);

#endif
