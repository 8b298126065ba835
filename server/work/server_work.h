#ifndef FL_SERVER_WORK_SERVER_WORK_H
#define FL_SERVER_WORK_SERVER_WORK_H

/*
 * The work of a server for its federation, besides deciding (server/core) and scheduling (the
 * daemon): plain functions that return when the work is done. They know no connection, event loop,
 * worker thread or clock, so that a daemon, a test and a simulator run the same code. aggregation.h
 * computes the next model from the uploads of a round, measure.h evaluates one, commit.h writes it
 * to disk, checkpoints.h prunes and pins checkpoints, opening.h resumes from a state folder,
 * payloads.h lists what clients may fetch, summary_work.h handles data summaries before the first
 * round, persist.h writes the records of the coordinator.
 *
 * Threading: a federation does not change while it runs; its store belongs to one thread, and so do
 * the calls that write or read records. The calls share no other mutable state.
 */

#include "libfl/base/buf.h"
#include "libfl/base/log.h"
#include "libfl/strategy/strategy.h"
#include "server/core/retain.h"
#include "server/store/generation.h"
#include "server/store/store_files.h"
#include "server/store/uploads.h"
#include "server/work/differences.h"
#include "server/work/root_training.h"

struct fl_aggregation_program;

/* The federation that all calls work for. Everything but the store is borrowed. */
struct fl_federation {
    const struct fl_layout *layout;
    const struct fl_space *space; /* of updates; NULL: they have the layout of the model */
    const struct fl_strategy *strategy;
    const char *state_dir;
    const struct fl_log *log; /* may be NULL */
    double momentum;          /* momentum of the clients' optimizer */
    uint64_t seed;            /* master seed, which clients do not know */
    struct fl_retention retention;
    size_t summary_max;     /* bytes of a data summary */
    double summary_range;   /* fl_summaries_rule.range */
    size_t inputs, classes; /* of the network; 0: not known */
    double norm_bound;      /* of an upload; 0: none */
    double norm_clip;       /* fl_clip_factors() */
    double share_cap;       /* fl_agg_job.share_cap */
    size_t n_state;         /* vectors that the strategy keeps beside the model */
    const char *state_names[FL_AGG_MAX_STATE];
    /* Set when the folder is opened. */
    struct fl_store *store; /* owned; fl_store_close() */
    /* Borrowed; uploads that are not in it are files of the folder. NULL: all are files. */
    struct fl_uploads *uploads;
    /* Borrowed; with an aggregate that has a program, else NULL. */
    struct fl_aggregation_program *program;
    struct fl_root *root;      /* borrowed; with a robust rule that `trusts`, else NULL */
    const atomic_bool *cancel; /* ends a training of the server; may be NULL */
    bool scratch;              /* opened as FL_DURABLE_SCRATCH: nothing is synced */
    struct fl_generation generation;
};

/* Fill in the names of the strategy's state vectors; the other members are already set. */
void fl_federation_name_states(struct fl_federation *federation);

/* Layout of updates and of what the aggregator computes. */
static inline const struct fl_layout *fl_federation_updates(const struct fl_federation *federation)
{
    return fl_space_updates(federation->space, federation->layout);
}

static inline size_t fl_federation_floats(const struct fl_federation *federation)
{
    return fl_layout_count(federation->layout);
}

/* Do clients keep state of earlier rounds? */
static inline bool fl_federation_clients_keep(const struct fl_federation *federation)
{
    const struct fl_strategy *s = federation->strategy;

    return fl_solver_keeps(s->solver->keeps) > 0 || fl_personal_keeps_model(s->personal) ||
           fl_layout_local(federation->layout) > 0;
}

/*
 * After going back to an older round, is the solver's state reset on both sides? Its part on the
 * server depends on all clients' parts (SCAFFOLD: s = sum c_k), and theirs belong to rounds that no
 * longer count. Other client state of such a round is discarded by the client itself, when its next
 * task does not name it as counted.
 */
static inline bool fl_federation_restarts_state(const struct fl_federation *federation)
{
    const struct fl_solver_ops *solver = federation->strategy->solver;

    return solver->server != NULL && fl_solver_keeps(solver->keeps) > 0;
}

/* The tag that this federation writes into checkpoints. */
static inline struct fl_models_tag fl_federation_tag(const struct fl_federation *federation)
{
    return (struct fl_models_tag){.database = fl_store_id(federation->store),
                                  .keeps = federation->strategy->aggregate->program != NULL,
                                  .made = federation->generation.made};
}

/* A model in memory with the state vectors beside it. Blobs, because clients fetch them:
   thousands of transfers share one copy. */
struct fl_model_state {
    struct fl_blob *theta; /* float32 block, exported order */
    struct fl_blob *coded; /* theta as clients receive it; NULL: theta itself */
    /* For clients that hold an earlier model; NULL: they receive whole ones. */
    struct fl_differences *differences;
    struct fl_blob *state[FL_AGG_MAX_STATE];
    struct fl_blob *kept; /* what the program of the aggregation keeps; NULL: nothing */
};

/* Allocate a model and its vectors, uninitialized. On FL_ENOMEM it is partly allocated; free it. */
FL_MUST_CHECK int fl_model_state_new(const struct fl_federation *federation,
                                     struct fl_model_state *model);
void fl_model_state_done(struct fl_model_state *model);
/* Code theta for clients, when it has its final values. FL_ENOMEM; FL_ENUMERIC: not finite. */
FL_MUST_CHECK int fl_model_state_code(const struct fl_federation *federation,
                                      struct fl_model_state *model);
/*
 * For a broadcast that sends moves: what leads to `model` from the model `old` that `round` started
 * with, and from those before. FL_ENOMEM; FL_ENUMERIC with the reason: the model left the lattice.
 * In a hashed space the aggregation made the step: its contents are taken, on error too.
 */
FL_MUST_CHECK int fl_model_state_step(const struct fl_federation *federation,
                                      const struct fl_model_state *old, uint64_t round,
                                      struct fl_step *made, struct fl_model_state *model,
                                      struct fl_err *err);
/* What clients receive as the model. */
static inline struct fl_blob *fl_model_state_sent(const struct fl_model_state *model)
{
    return model->coded != NULL ? model->coded : model->theta;
}

/* The outcome of a round. Owned; without theta: none. */
/* What the attention of the aggregation made of the accepted participants, in client order. */
struct fl_mixing {
    size_t n;        /* fl_aggregate_has_mixing(): of the first FL_PART_MIXED; else 0 */
    double *weights; /* [n * n]: fl_agg_job.mixing */
    size_t n_parts;
    double *attention; /* [n_parts] weight of each update; 0: none */
    double memory[];   /* of both */
};

struct fl_outcome {
    struct fl_model_state model;
    struct fl_mixing *mixing;                   /* NULL: the algorithm has none */
    struct fl_personal_models *personal_models; /* personal models of some clients; NULL: none */
    /* draft of its checkpoint; NULL: none was started, or it is saved */
    struct fl_models_draft *draft;
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
