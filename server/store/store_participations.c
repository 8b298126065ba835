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
    struct fl_part_figures f;

    fl_figures_init(&fl_part_rows, &f);
    f.round = round;
    f.attempt = attempt;
    f.samples = part->samples;
    f.steps = part->steps;
    f.train_loss = part->steps > 0 ? part->train_loss : (double)NAN;
    f.uplink_bytes = accepted ? part->upload_bytes : 0;
    f.downlink_bytes = part->download_bytes;
    return f;
}

/* `text` is that of the row from then on. */
static void participation_take_eval(struct fl_participation *row, const struct fl_client_eval *eval,
                                    char text[FL_EVAL_METRICS_TEXT])
{
    struct fl_part_figures *f = &row->figures;

    f->evaluation_samples = eval->samples;
    f->received_accuracy = eval->received_accuracy;
    f->received_loss = eval->received_loss;
    f->personal_accuracy = eval->personal_accuracy;
    f->personal_loss = eval->personal_loss;
    fl_client_eval_metrics(eval, text);
    row->metrics = text;
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

    if (taken->n == 0 && taken->n_evals == 0) {
        return FL_OK;
    }
    if (taken->n_evals > 0) {
        q = fl_db_query(&store->db, FL__DB_TRIM_EVALUATED);
        fl_query_u64(&q, FL_PARTICIPATION_EVALUATED);
        fl_query_u64(&q, FL_PARTICIPATION_EVALUATED);
        fl_query_u64(&q, FL_PARTICIPATIONS_EVALUATED);
        rv = fl_query_run(&q, err);
        if (rv != FL_OK) {
            return rv;
        }
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

/* Those of clients that only evaluated, the last one first. */
static int participations_put_evaluated(struct fl_store *store, uint64_t round,
                                        const struct fl_participations *taken, size_t first,
                                        struct fl_err *err)
{
    static const struct fl_participant_rec none = {.steps = 0};
    char metrics[FL_EVAL_METRICS_TEXT];
    size_t i;

    for (i = taken->n_evals; i-- > first;) {
        struct fl_participation row = {.figures =
                                           participation_figures(round, taken->attempt, &none),
                                       .client = taken->evals[i].name,
                                       .state = FL_PARTICIPATION_EVALUATED,
                                       .asked = "",
                                       .remark = "",
                                       .aborted = ""};
        int rv;

        participation_take_eval(&row, &taken->evals[i], metrics);
        rv = fl__participation_put(&store->db, FL__DB_PUT_PARTICIPATION, &row, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl__store_put_participations(struct fl_store *store, uint64_t round,
                                 const struct fl_participations *taken, struct fl_err *err)
{
    char asked[FL_PART_LAYERS + 1];
    char metrics[FL_EVAL_METRICS_TEXT];
    size_t accepted = 0;
    size_t evaluated = 0; /* participants with evaluations: the first ones of `evals` */
    size_t i;
    int rv;

    for (i = 0; i < taken->n; i++) {
        accepted += taken->parts[i].state == FL_PARTICIPANT_ACCEPTED;
        evaluated +=
            evaluated < taken->n_evals && taken->evals[evaluated].client == taken->parts[i].client;
    }
    /* The last one first: readers get the newest round first, and its clients in their order. */
    rv = participations_put_evaluated(store, round, taken, evaluated, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = taken->n; i-- > 0;) {
        const struct fl_participant_rec *part = &taken->parts[i];
        struct fl_participation row = {.figures =
                                           participation_figures(round, taken->attempt, part),
                                       .client = taken->clients[i].name,
                                       .state = part->state,
                                       .asked = participation_asked(store, part->units, asked),
                                       .remark = part->remark != NULL ? part->remark : "",
                                       .aborted = taken->aborted != NULL ? taken->aborted : "",
                                       .metrics = ""};

        accepted -= part->state == FL_PARTICIPANT_ACCEPTED;
        if (evaluated > 0 && taken->evals[evaluated - 1].client == part->client) {
            participation_take_eval(&row, &taken->evals[--evaluated], metrics);
        }
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
    fl_query_u64(&q, query->selected ? FL_PARTICIPANT_LOST : FL_PARTICIPATION_EVALUATED);
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
