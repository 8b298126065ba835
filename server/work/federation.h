#ifndef FL_SERVER_WORK_FEDERATION_H
#define FL_SERVER_WORK_FEDERATION_H

/*
 * The room: what a server does for its federation beside deciding (server/core) and beside
 * scheduling (the daemon), as plain functions that return when it is done. They know no connection,
 * loop or lane, so that a daemon, a test and a simulator run the same. aggregation.h makes the next
 * model of a round's uploads, measure.h evaluates one.
 *
 * Threading: a federation does not change; each call uses nothing else that another could.
 */

#include "libfl/base/buf.h"
#include "libfl/base/log.h"
#include "libfl/strategy/strategy.h"

/* What all of the work is for. Everything is borrowed. */
struct fl_federation {
    const struct fl_layout *layout;
    const struct fl_strategy *strategy;
    const char *state_dir;
    const struct fl_log *log; /* may be NULL */
    double momentum;          /* of the clients' steps */
    size_t n_state;           /* vectors that the strategy keeps beside the model */
    const char *state_names[FL_AGG_MAX_STATE];
};

/* The strategy's vectors, of which the other members are set already. */
void fl_federation_name_states(struct fl_federation *federation);

static inline size_t fl_federation_floats(const struct fl_federation *federation)
{
    return fl_layout_count(federation->layout);
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
