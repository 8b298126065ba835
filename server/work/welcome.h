#ifndef FL_SERVER_WORK_WELCOME_H
#define FL_SERVER_WORK_WELCOME_H

/* The description of the federation for a connecting client: its model, the components, and its
   generations. */

#include "libfl/nn/net.h"
#include "libfl/wire/messages.h"
#include "server/work/server_work.h"

struct fl_described {
    const char *federation; /* its name */
    const struct fl_strategy *strategy;
    const struct fl_layout *layout;
    const struct fl_net_spec *net;
    const struct fl_generation *generation;
    uint64_t model_seed; /* fl_opening_seed(); 0: the first model was not drawn */
    unsigned metrics;    /* of evaluations by clients: a set of 1u << enum fl_net_metric */
    struct fl_wire_training training;
};

/*
 * Overwrites `ret`; what concerns one session (session, limits, heartbeat, wants_summary) is left
 * to the caller. Texts, layout and layers are lent by `of`: free with fl_welcome_done(), not with
 * fl_wire_command_done(). On FL_ENOMEM nothing has to be freed.
 */
FL_MUST_CHECK int fl_welcome_describe(const struct fl_described *of, struct fl_wire_welcome *ret);
void fl_welcome_done(struct fl_wire_welcome *welcome);

#endif
