#ifndef FL_SERVER_WORK_AGGREGATION_H
#define FL_SERVER_WORK_AGGREGATION_H

/* The aggregation of a round: reads the uploads of its responders, and computes the next model,
   the state vectors beside it and the personal models. */

#include "server/work/commit.h"

/* No client is at fault. */
#define FL_NO_CLIENT UINT32_MAX

struct fl_aggregation {
    /* In; borrowed for the call. */
    uint64_t round;
    uint32_t attempt;
    uint64_t members;                       /* N of the server's means, as fl_round_size.members */
    double learning_rate;                   /* of the round */
    uint64_t plateau;                       /* of the effect */
    struct fl_draw draw;                    /* likewise */
    const struct fl_participant_rec *parts; /* [n_parts], the responders */
    const struct fl_client_rec *clients;    /* [n_parts], their client records */
    size_t n_parts;
    const struct fl_model_state *model; /* the model that the round started with */
    bool want_distance;
    /* Out; owned, fl_aggregation_done(). */
    struct fl_outcome next;
    double *distance;     /* [n_parts] from each update to the next model */
    double *clip;         /* [n_parts] factor of each update, fl_clip_factors() */
    size_t n_clipped;     /* of them below 1 */
    double *used;         /* [n_parts] of each update by a robust rule (fl_agg_job.used) */
    double *score;        /* [n_parts] likewise (fl_agg_job.score) */
    double *influence;    /* [n_parts] left to each by share_cap (fl_agg_job.influence) */
    char *robust_clients; /* as fl_round_rec.robust_clients */
    struct fl_agg_info info;
    double norms_apart;  /* norms.h; 0: not measured in this round */
    uint32_t bad_client; /* on error: the client at fault, or FL_NO_CLIENT */
};

/* The job of an AGGREGATE effect, for the round that `progress` is in. `clients` are the records
   of its participants; borrows all arguments. */
struct fl_aggregation fl_aggregation_of(const struct fl_effect *effect,
                                        const struct fl_client_rec *clients, double learning_rate,
                                        const struct fl_progress *progress);
/*
 * On error `next` and the others may be partly filled; free them. FL_EFORMAT and others of
 * fl_spool_is_bad() with `bad_client`: the upload of that client is unusable; other errors are the
 * server's and may be retried.
 */
FL_MUST_CHECK int fl_aggregation_run(const struct fl_federation *federation,
                                     struct fl_aggregation *aggregation, struct fl_err *err);
void fl_aggregation_done(struct fl_aggregation *aggregation);
/* Moves the result to `progress`. Returns the event for the coordinator, complete but for `seq`;
   its distances and the text `robust_clients` are borrowed. */
struct fl_event fl_aggregation_take(struct fl_aggregation *aggregation,
                                    struct fl_progress *progress);

#endif
