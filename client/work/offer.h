#ifndef FL_CLIENT_WORK_OFFER_H
#define FL_CLIENT_WORK_OFFER_H

/*
 * What a client tells of its data before it can be selected (Welcome.wants_offer; the means of
 * FedMix): made once for a description, told in pieces, in each session from the first byte.
 */

#include "client/work/worker.h"

struct fl_offer {
    struct fl_buf data;
    size_t told;   /* bytes of it */
    bool told_all; /* an empty offer is one piece too */
};

/*
 * Into `ret` (initialised here). What this data or trainer cannot offer is an empty offer, with a
 * line in the log: the wire has it that a client takes part without one too. FL_ENOMEM only.
 */
FL_MUST_CHECK int fl_offer_make(const struct fl_worker *worker, struct fl_offer *ret);
/* From the first byte again. */
void fl_offer_rewind(struct fl_offer *offer);
/* The next piece, which points into `offer`; false: all of it was told. */
bool fl_offer_next(struct fl_offer *offer, struct fl_wire_offer *ret);
void fl_offer_done(struct fl_offer *offer);

/*
 * Samples never leave this machine, but what some solvers tell of them does, and goes on to all
 * other clients: nothing that a server decides alone. FL_EPERM: `setup`, or a server that
 * `wants` an offer, asks for one, and the operator has not `allowed` it.
 */
FL_MUST_CHECK int fl_offer_check(const struct fl_setup *setup, bool wants, bool allowed,
                                 struct fl_err *err);

#endif
