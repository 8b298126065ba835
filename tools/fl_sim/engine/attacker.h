#ifndef FL_SIM_ATTACKER_H
#define FL_SIM_ATTACKER_H

/*
 * What an attacker changes in the work of a simulated client (tools/fl_sim/attack has the
 * arithmetic): a trainer around its own trainer that changes the update before client/work uses it,
 * so that divergences, client state, masks and coding follow the changed update; and the figures of
 * its report. The client's code does not know that it works for an attacker.
 *
 * Threading: as the trainer; the functions without one are pure.
 */

#include "client/train/trainer_impl.h"
#include "libfl/wire/messages.h"
#include "tools/fl_sim/attack/attack.h"

struct fl_attacker {
    struct fl_trainer trainer; /* to be lent to the member; only runs tasks */
    struct fl_trainer *inner;
    const struct fl_attack *attack;
    const struct fl_layout *layout;
    uint64_t client; /* key of its random streams */
    /* [trainable entries] FL_ATTACK_COLLUDES: the update in place of its own; NULL: its own. */
    const float *malicious;
};

/* Borrows all arguments; nothing to free. `name`: of the client. */
void fl_attacker_init(struct fl_attacker *attacker, struct fl_trainer *inner,
                      const struct fl_attack *attack, const struct fl_layout *layout,
                      const char *name);
/* The trainable entries of an honest update, for attackers that collude; a reference. FL_ENOMEM. */
FL_MUST_CHECK int fl_attacker_share(const struct fl_layout *layout, const float *delta,
                                    struct fl_blob **ret);
/* Replace figures of its report by claims; `attack` NULL: the client is honest. */
void fl_attacker_claim(const struct fl_attack *attack, struct fl_wire_report *report);

#endif
