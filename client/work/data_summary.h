#ifndef FL_CLIENT_WORK_OFFER_H
#define FL_CLIENT_WORK_OFFER_H

/*
 * The data summary that a client sends before it can be selected (Welcome.wants_offer; the means of
 * FedMix), in pieces, in each session from the first byte. It is made once in the life of a state
 * folder (client/store/own_summary.h): later sessions, descriptions and servers get the same bytes,
 * also when the data has changed since.
 */

#include "client/work/worker.h"

struct fl_offer {
    struct fl_buf data;
    size_t told;   /* bytes of it */
    bool told_all; /* an empty offer is one piece too */
};

/*
 * Into `ret` (initialised here): the summary that was sent before, or a new one, which is on disk
 * when this returns. What this data or trainer cannot offer, or fewer samples than the least group,
 * is an empty offer, with a line in the log: the wire has it that a client takes part without one
 * too. Errors pass: FL_ENOMEM, those of the disk.
 */
FL_MUST_CHECK int fl_offer_make(const struct fl_worker *worker, struct fl_offer *ret,
                                struct fl_err *err);
/* From the first byte again. */
void fl_offer_rewind(struct fl_offer *offer);
/* The next piece, which points into `offer`; false: all of it was told. */
bool fl_offer_next(struct fl_offer *offer, struct fl_wire_offer *ret);
void fl_offer_done(struct fl_offer *offer);

/*
 * A data summary goes on to all other clients: the operator of this client decides whether, and of
 * how many samples each mean is. FL_EPERM: the setup of `worker`, or a server that `wants` a
 * summary, asks for one that worker->terms do not allow, or for another than the one that was sent
 * before. Those of fl_summary_group().
 */
FL_MUST_CHECK int fl_offer_check(const struct fl_worker *worker, bool wants, struct fl_err *err);
/* The same of the terms alone. */
FL_MUST_CHECK int fl_offer_allowed(const struct fl_worker_terms *terms,
                                   const struct fl_solver_ops *solver,
                                   const struct fl_options *options, struct fl_err *err);

#endif
