#ifndef FL_SERVER_WORK_AGGREGATION_H
#define FL_SERVER_WORK_AGGREGATION_H

/*
 * The spool files of a round's responders in; the next model, the vectors beside it and the
 * personal mixtures out.
 */

#include "server/work/commit.h"

/* An aggregation that no client is to blame for. */
#define FL_NO_CLIENT UINT32_MAX

struct fl_aggregation {
    /* In; borrowed for the call. */
    uint64_t round;
    uint32_t attempt;
    uint64_t members;                       /* of the federation, as fl_round_size */
    double learning_rate;                   /* of the round */
    const struct fl_participant_rec *parts; /* [n_parts], of the responders */
    const struct fl_client_rec *clients;    /* [n_parts], whose they are */
    size_t n_parts;
    const struct fl_model_state *model; /* what the round began with */
    bool want_distance;
    /* Out; owned, fl_aggregation_done(). */
    struct fl_outcome next;
    double *distance; /* [n_parts] from each update to the next model */
    struct fl_agg_info info;
    double norms_apart;  /* norms.h; 0: not measured in this round */
    uint32_t bad_client; /* of an error; FL_NO_CLIENT: nobody's */
};

/* What an AGGREGATE effect asks for, of the round that `progress` is in. `clients` are those of its
   parts; borrows all of them. */
struct fl_aggregation fl_aggregation_of(const struct fl_effect *effect,
                                        const struct fl_client_rec *clients, double learning_rate,
                                        const struct fl_progress *progress);
/*
 * On error `next` and the like may hold parts, to be freed. FL_EFORMAT and others of
 * fl_spool_is_bad() with `bad_client`: whose upload is not usable; what else failed is ours and may
 * be tried again.
 */
FL_MUST_CHECK int fl_aggregation_run(const struct fl_federation *federation,
                                     struct fl_aggregation *aggregation, struct fl_err *err);
void fl_aggregation_done(struct fl_aggregation *aggregation);
/* It is what the open round ends with: `progress` takes that. The event that the core hears of it
   has all but its `seq`, with distances that are borrowed. */
struct fl_event fl_aggregation_take(struct fl_aggregation *aggregation,
                                    struct fl_progress *progress);

#endif
