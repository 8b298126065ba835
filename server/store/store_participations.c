/*
 * The participations of the newest rounds: written by a commit and by the end of an aborted
 * attempt, read for the status pages, the API and flctl. On the thread that owns the store. Which
 * are kept is a number of rows, so that neither many rounds nor many clients in a round make the
 * database grow.
 */

#include <string.h>

#include "server/store/store_impl.h"

/* The upload mask as digits; "" without one. */
static const char *participation_asked(const struct fl_store *store, const uint8_t *units,
                                       char out[FL_PART_LAYERS + 1])
{
    size_t n = store->n_units < FL_PART_LAYERS ? store->n_units : FL_PART_LAYERS;
    size_t i;

    for (i = 0; units != NULL && i < n; i++) {
        out[i] = units[i] != 0 ? '1' : '0';
    }
    out[i] = '\0';
    return out;
}

static struct fl_part_figures participation_figures(uint64_t round, uint32_t attempt,
                                                    const struct fl_participant_rec *part)
{
    bool accepted = part->state == FL_PARTICIPANT_ACCEPTED;

    return (struct fl_part_figures){.round = round,
                                    .attempt = attempt,
                                    .samples = part->samples,
                                    .steps = part->steps,
                                    .train_loss = part->steps > 0 ? part->train_loss : (double)NAN,
                                    .uplink_bytes = accepted ? part->upload_bytes : 0,
                                    .downlink_bytes = part->download_bytes};
}

/* `accepted`: its place among the accepted participants. */
static int participation_put(struct fl_store *store, const struct fl_participations *taken,
                             size_t accepted, struct fl_participation *row, struct fl_err *err)
{
    float mixing[FL_PART_MIXED];
    size_t i;

    if (row->state == FL_PARTICIPANT_ACCEPTED && accepted < taken->n_attention) {
        row->figures.attention = taken->attention[accepted];
    }
    if (row->state == FL_PARTICIPANT_ACCEPTED && accepted < taken->n_mixing) {
        for (i = 0; i < taken->n_mixing; i++) {
            mixing[i] = (float)taken->mixing[accepted * taken->n_mixing + i];
        }
        row->mixing = mixing;
        row->mixing_len = taken->n_mixing * sizeof(mixing[0]);
    }
    return fl__participation_put(&store->db, FL__DB_PUT_PARTICIPATION, row, err);
}

/* A round that is aborted again and again leaves those of other rounds. */
static int participations_trim(struct fl_store *store, uint64_t round,
                               const struct fl_participations *taken, struct fl_err *err)
{
    struct fl_query q;
    int rv;

    if (taken->n == 0) {
        return FL_OK;
    }
    if (taken->aborted != NULL && taken->attempt > FL_PARTICIPATIONS_ABORTED) {
        q = fl_db_query(&store->db, FL__DB_DROP_ABORTED);
        fl_query_u64(&q, round);
        fl_query_u64(&q, taken->attempt - FL_PARTICIPATIONS_ABORTED);
        rv = fl_query_run(&q, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl__store_run_with(store, FL__DB_TRIM_PARTICIPATIONS, FL_PARTICIPATIONS_MAX, err);
}

int fl__store_put_participations(struct fl_store *store, uint64_t round,
                                 const struct fl_participations *taken, struct fl_err *err)
{
    char asked[FL_PART_LAYERS + 1];
    size_t accepted = 0;
    size_t i;

    for (i = 0; i < taken->n; i++) {
        accepted += taken->parts[i].state == FL_PARTICIPANT_ACCEPTED;
    }
    /* The last one first: readers get the newest round first, and its clients in their order. */
    for (i = taken->n; i-- > 0;) {
        const struct fl_participant_rec *part = &taken->parts[i];
        struct fl_participation row = {.figures =
                                           participation_figures(round, taken->attempt, part),
                                       .client = taken->clients[i].name,
                                       .state = part->state,
                                       .asked = participation_asked(store, part->units, asked),
                                       .remark = part->remark != NULL ? part->remark : "",
                                       .aborted = taken->aborted != NULL ? taken->aborted : ""};
        int rv;

        accepted -= part->state == FL_PARTICIPANT_ACCEPTED;
        rv = participation_put(store, taken, accepted, &row, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return participations_trim(store, round, taken, err);
}

int fl_store_participations(struct fl_store *store, const struct fl_participation_query *query,
                            fl_store_participation_cb cb, void *ctx, struct fl_err *err)
{
    struct fl_query q =
        fl_db_query(&store->db, query->client[0] != '\0' ? FL__DB_GET_PARTICIPATIONS_CLIENT
                                : query->round != 0      ? FL__DB_GET_PARTICIPATIONS_ROUND
                                                         : FL__DB_GET_PARTICIPATIONS);
    struct fl_participation row;
    int rv;

    fl_query_u64(&q, query->before != 0 ? query->before : INT64_MAX);
    if (query->client[0] != '\0') {
        fl_query_text(&q, query->client);
    } else if (query->round != 0) {
        fl_query_u64(&q, query->round);
    }
    fl_query_u64(&q, query->most);
    while ((rv = fl__participation_next(&q, &row, err)) == FL_OK) {
        rv = cb(ctx, &row);
        if (rv != FL_OK) {
            break;
        }
    }
    fl_query_reset(&q);
    return rv == FL_ENOENT ? FL_OK : rv;
}
