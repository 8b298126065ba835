#ifndef FL_SERVER_WORK_FEDERATION_H
#define FL_SERVER_WORK_FEDERATION_H

/*
 * The room: what a server does for its federation beside deciding (server/core) and beside
 * scheduling (the daemon), as plain functions that return when it is done. They know no connection,
 * loop, lane or clock, so that a daemon, a test and a simulator run the same. aggregation.h makes
 * the next model of a round's uploads, measure.h evaluates one, commit.h puts it on disk,
 * checkpoints.h says which of them stay, opening.h goes on from what is there, bundles.h says what
 * clients may fetch, summary_work.h who is waited for before the first round, persist.h writes what
 * the core wants on disk.
 *
 * Threading: a federation does not change while it runs; its store belongs to one thread, and so do
 * the calls that write or read records. Each call uses nothing else that another could.
 */

#include "libfl/base/buf.h"
#include "libfl/base/log.h"
#include "libfl/strategy/strategy.h"
#include "server/core/retain.h"
#include "server/store/generation.h"
#include "server/store/store_files.h"
#include "server/store/uploads.h"

/* What all of the work is for. Everything but the store is borrowed. */
struct fl_federation {
    const struct fl_layout *layout;
    const struct fl_strategy *strategy;
    const char *state_dir;
    const struct fl_log *log; /* may be NULL */
    double momentum;          /* of the clients' steps */
    struct fl_retention retention;
    size_t offer_max;       /* bytes of a data summary */
    double offer_range;     /* fl_offers_rule.range */
    size_t inputs, classes; /* of the network; 0: not known */
    double norm_bound;      /* of an upload; 0: none */
    size_t n_state;         /* vectors that the strategy keeps beside the model */
    const char *state_names[FL_AGG_MAX_STATE];
    /* Of the folder, since it was opened. */
    struct fl_store *store; /* owned; fl_store_close() */
    /* Borrowed; uploads that are not in it are files of the folder. NULL: all are. */
    struct fl_uploads *uploads;
    bool scratch; /* it was opened as FL_DURABLE_SCRATCH: nothing is synced */
    struct fl_generation line;
};

/* The strategy's vectors, of which the other members are set already. */
void fl_federation_name_states(struct fl_federation *federation);

static inline size_t fl_federation_floats(const struct fl_federation *federation)
{
    return fl_layout_count(federation->layout);
}

/* Clients keep what says something of rounds that are behind them. */
static inline bool fl_federation_clients_keep(const struct fl_federation *federation)
{
    const struct fl_strategy *s = federation->strategy;

    return fl_solver_keeps(s->solver->keeps) > 0 || s->personal->own ||
           fl_layout_local(federation->layout) > 0;
}

/*
 * Behind an older round, does what the solver keeps on both sides begin with nothing? Its part on
 * the server says something of all clients' parts (SCAFFOLD: s = sum c_k), and theirs are of rounds
 * that do not count any more. Whatever else a client kept of such a round it drops by itself, when
 * its next task does not name it as counted.
 */
static inline bool fl_federation_begins_anew(const struct fl_federation *federation)
{
    const struct fl_solver_ops *solver = federation->strategy->solver;

    return solver->server != NULL && fl_solver_keeps(solver->keeps) > 0;
}

/* Who writes the checkpoints. */
static inline struct fl_models_tag fl_federation_tag(const struct fl_federation *federation)
{
    return (struct fl_models_tag){.database = fl_store_id(federation->store),
                                  .made = federation->line.made};
}

/*
 * A model in memory with the vectors that the strategy keeps beside it. Blobs, because clients
 * fetch them: thousands of transfers share one copy.
 */
struct fl_model_state {
    struct fl_blob *theta; /* float32 block, exported order */
    struct fl_blob *state[FL_AGG_MAX_STATE];
};

/* Memory for a model and its vectors, not set. FL_ENOMEM with what there is, to be freed. */
FL_MUST_CHECK int fl_model_state_new(const struct fl_federation *federation,
                                     struct fl_model_state *model);
void fl_model_state_done(struct fl_model_state *model);

/* What a round comes to. Owned; no theta: nothing. */
struct fl_outcome {
    struct fl_model_state model;
    struct fl_personal_models *mixtures; /* personal models of some clients; NULL: none were made */
    struct fl_models_draft *draft; /* of its checkpoint; NULL: none was begun, or it is saved */
};
void fl_outcome_done(struct fl_outcome *outcome);

static inline const float *fl_blob_floats(const struct fl_blob *blob)
{
    return (const float *)(const void *)fl_blob_data(blob);
}

/* Only before the blob is shared. */
static inline float *fl_blob_fill_floats(struct fl_blob *blob)
{
    return (float *)(void *)fl_blob_fill(blob);
}

#endif
