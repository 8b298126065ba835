#ifndef FL_CLIENT_WORK_SETUP_H
#define FL_CLIENT_WORK_SETUP_H

/*
 * The setup of a federation from Welcome: the layout, and the components that this client runs,
 * with their options. It is immutable. Each download, training, evaluation and upload holds a
 * reference to the setup that it began with, so its data is never interpreted by the layout of
 * another setup.
 *
 * Threading: immutable; references may be taken and released on any thread.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include "client/store/result.h"
#include "libfl/strategy/strategy.h"
#include "libfl/wire/messages.h"

struct fl_setup {
    atomic_uint refs;
    /*
     * The received Welcome. Fields of one session (session, limits, heartbeat, wants_summary) are
     * those of the first session with this setup.
     */
    struct fl_wire_welcome welcome;
    const struct fl_layout *layout; /* welcome's; not NULL */
    const struct fl_solver_ops *solver;
    struct fl_options *solver_options;
    const struct fl_codec_ops *codec;
    struct fl_options *codec_options;
    const struct fl_upload_ops *upload;
    struct fl_options *upload_options;
    const struct fl_personal_ops *personal;
    struct fl_options *personal_options;
    const struct fl_broadcast_ops *broadcast;
    struct fl_options *broadcast_options;
    struct fl_space *space; /* of updates; NULL: they have the layout of the model */
    unsigned metrics;       /* of evaluations: a set of 1u << enum fl_net_metric */
};

/*
 * Takes the contents of `welcome`, on error too. Errors: an unsupported component, or a network
 * above our limits, with a text for the operator; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_setup_create(struct fl_wire_welcome *welcome, struct fl_setup **ret,
                                  struct fl_err *err);
struct fl_setup *fl_setup_ref(struct fl_setup *setup);
void fl_setup_unref(struct fl_setup *setup); /* NULL is allowed. */

/* The network that the server described; n_layers 0: only units and tensors. Borrows from `setup`.
 */
struct fl_net_spec fl_setup_net(const struct fl_setup *setup);

/* Does `welcome` describe the same setup? After a reconnect it nearly always does. */
bool fl_setup_is(const struct fl_setup *setup, const struct fl_wire_welcome *welcome);
/* Why `result` cannot be reported and sent with this setup; NULL: it can. */
const char *fl_setup_unfit(const struct fl_setup *setup, const struct fl_result *result);

#endif
