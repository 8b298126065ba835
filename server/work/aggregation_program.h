#ifndef FL_SERVER_WORK_AGGREGATION_PROGRAM_H
#define FL_SERVER_WORK_AGGREGATION_PROGRAM_H

/*
 * The program of `aggregate: {policy: command}`: started once, it gets the updates of one round
 * after the other and returns the server's step, and the state that it keeps
 * (docs/trainers.md#a-strategy-in-python). Nothing that it does changes the federation before its
 * whole answer has been checked; an error ends the aggregation, which the coordinator repeats.
 *
 * Threading: one call at a time. The calls that create and begin start the program; the threads of
 * both must live as long as it does (libfl/program/program.h).
 */

#include <stdatomic.h>

#include "libfl/base/log.h"
#include "libfl/nn/net.h"
#include "libfl/strategy/strategy.h"
#include "server/core/records.h"

struct fl_aggregation_program;

struct fl_aggregation_program_conf { /* borrowed for the call, but for layout, network and log */
    const struct fl_strategy *strategy;
    const struct fl_layout *layout; /* of updates */
    const struct fl_net_spec *net;  /* n_layers 0: only tensors are known */
    const char *federation;         /* sent to the program as its client name */
    uint64_t descriptors;           /* soft limit of descriptors; 0: as this process */
    const struct fl_log *log;
};

/*
 * Starts the program of the strategy's aggregate. Errors name it, with the end of its stderr:
 * as libfl/program/persistent.h; FL_EUNIMPL: it cannot aggregate. Returns owned.
 */
FL_MUST_CHECK int fl_aggregation_program_create(const struct fl_aggregation_program_conf *conf,
                                                struct fl_aggregation_program **ret,
                                                struct fl_err *err);
void fl_aggregation_program_free(struct fl_aggregation_program *program); /* NULL is allowed. */

struct fl_program_round { /* borrowed until the pass has ended */
    uint64_t round;
    uint32_t attempt;
    uint64_t seed;                          /* of the federation */
    const struct fl_participant_rec *parts; /* [n_parts], above 0 */
    const struct fl_client_rec *clients;    /* [n_parts], their client records */
    size_t n_parts;
    const float *theta;         /* of the layout, that the round started with */
    const struct fl_blob *kept; /* what it kept of the round before; NULL: nothing */
    const atomic_bool *cancel;  /* NULL: never */
};

/*
 * Memory for the updates of a round; `ret->make` hands them to the program and waits for its step.
 * The errors of fl_persistent_prepare() and fl_persistent_run(); FL_ELIMIT also: what is kept is
 * larger than the policy allows.
 */
FL_MUST_CHECK int fl_aggregation_program_begin(struct fl_aggregation_program *program,
                                               const struct fl_program_round *round,
                                               struct fl_agg_whole *ret, struct fl_err *err);
/* After a round: what it keeps now; NULL: nothing. Returns owned. */
FL_MUST_CHECK int fl_aggregation_program_kept(struct fl_aggregation_program *program,
                                              struct fl_blob **ret, struct fl_err *err);
/* After a round: [n_parts] its scores, not negative, valid until the next one; NULL: none. */
const double *fl_aggregation_program_scores(const struct fl_aggregation_program *program);

#endif
