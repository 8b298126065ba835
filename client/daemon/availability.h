#ifndef FL_CLIENTD_AVAILABILITY_H
#define FL_CLIENTD_AVAILABILITY_H

/*
 * Is this device available by its owner's rules (`when`)? Evaluates them every when.check and
 * announces a change: the
 * client then reconnects with a Hello that has the reason, as soon as it takes part in no round.
 *
 * Threading: the loop. Callbacks never run inside the function that caused them.
 */

#include "client/conf/client_conf.h"
#include "client/core/device_policy.h"
#include "libfl/base/log.h"
#include "libfl/net/loop.h"

struct fl_availability;

/*
 * `changed(ctx)`: the server was told something else than holds now, or the client is not to be
 * connected; again at each evaluation as long as that is so. Borrows `conf` and `log`. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_availability_create(const struct fl_client_conf *conf, struct fl_loop *loop,
                                         const struct fl_log *log, fl_loop_cb changed, void *ctx,
                                         struct fl_availability **ret);
void fl_availability_free(struct fl_availability *availability); /* NULL is allowed. */

/* Hours of the server, at most FL_HOURS_MAX, beside the rules of the configuration; 0: none. */
void fl_availability_set_central(struct fl_availability *availability, const struct fl_hours *hours,
                                 size_t n);
/* Evaluates now; returns "" or why the device is not available, valid until the next call. */
const char *fl_availability_evaluate(struct fl_availability *availability);
/* The same, of the last evaluation. */
const char *fl_availability_why(const struct fl_availability *availability);
/* The reason of the last evaluation goes to the server; NULL: available. */
const char *fl_availability_announce(struct fl_availability *availability);
/* Was the server told in the last Hello that the device is not available? */
bool fl_availability_announced(const struct fl_availability *availability);
/*
 * Is the client not to be connected now? With when.outside: disconnect, once the server has the
 * reason.
 */
bool fl_availability_disconnects(const struct fl_availability *availability);

/* The rules of the configuration. FL_ECONF with file, line and key: a rule that cannot be. */
FL_MUST_CHECK int fl_availability_rules(const struct fl_client_conf *conf, struct fl_when *ret,
                                        struct fl_err *err);
/* For the start: as fl_availability_rules(), and rules that this device can never meet. */
FL_MUST_CHECK int fl_availability_check(const struct fl_client_conf *conf, struct fl_err *err);

#endif
