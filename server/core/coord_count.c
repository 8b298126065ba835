/* The figures of a committed round: bytes, accuracies, and which clients were counted. On the
   thread of the coordinator; writing the record is work of the COMMIT effect. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/base/sorted.h"
#include "libfl/figures/share.h"
#include "server/core/client_accuracy.h"
#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

bool fl__coord_responder(const struct fl_participant_rec *part)
{
    return part->state == FL_PARTICIPANT_ACCEPTED || part->state == FL_PARTICIPANT_EMPTY;
}

const char *fl__eval_bad(const struct fl_coord *c, uint32_t client, const struct fl_eval_rec *eval)
{
    if (eval->samples == 0) {
        return NULL;
    }
    if (eval->correct > eval->samples) {
        return "more correct samples than samples";
    }
    if (!isfinite(eval->loss_sum)) {
        return "the loss is not a finite number";
    }
    /* More samples than announced would give it more weight than it has. */
    return eval->samples > c->clients.live[client].evaluation_samples
               ? "more samples than were announced"
               : NULL;
}

struct fl_eval_rec fl__eval_take(struct fl_coord *c, uint32_t client, const char *what,
                                 const struct fl_eval_rec *eval)
{
    struct fl_eval_rec taken = *eval;
    char text[FL_EVAL_METRICS_ERROR];
    const char *bad = fl_eval_metrics_bad(eval->metrics, eval->samples, text);

    taken.metrics = NULL;
    if (bad == NULL && eval->metrics != NULL && eval->metrics[0] != '\0') {
        taken.metrics = fl_str_dup(eval->metrics);
        bad = taken.metrics == NULL ? "out of memory" : NULL;
    }
    if (bad != NULL) {
        bad = fl__coord_text(c, "metrics of the %s model left out: %s", what, bad);
        fl__coord_trace(c, "client '%s': %s", fl__coord_name(c, client), bad);
        fl__coord_client_error(c, client, bad);
    }
    return taken;
}

void fl__eval_done(struct fl_eval_rec *eval)
{
    free((char *)(uintptr_t)eval->metrics);
    *eval = (struct fl_eval_rec){0};
}

void fl__coord_forget_answers(struct fl_coord *c)
{
    size_t i;

    for (i = 0; i < c->round.n_answers; i++) {
        free(c->clients.answers[i].name);
        fl__eval_done(&c->clients.answers[i].result);
        fl__eval_done(&c->clients.answers[i].adapted);
    }
    c->round.n_answers = 0;
}

/* The evaluation of client or participant i; NULL: it does not count. */
typedef const struct fl_eval_rec *(*count_eval_at)(const struct fl_coord *c, size_t i);

static const struct fl_eval_rec *count_result(const struct fl_coord *c, size_t i)
{
    return &c->clients.answers[i].result;
}

static const struct fl_eval_rec *count_adapted(const struct fl_coord *c, size_t i)
{
    return &c->clients.answers[i].adapted;
}

static const struct fl_eval_rec *count_received(const struct fl_coord *c, size_t i)
{
    return fl__coord_responder(&c->round.parts[i]) ? &c->round.parts[i].received : NULL;
}

static const struct fl_eval_rec *count_trained(const struct fl_coord *c, size_t i)
{
    return fl__coord_responder(&c->round.parts[i]) ? &c->round.parts[i].trained : NULL;
}

/* The number of test samples is a claim, as that of training samples is: the same bound holds. */
static double count_most(const struct fl_coord *c, size_t n, count_eval_at at)
{
    double *samples = c->clients.samples;
    size_t k = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        const struct fl_eval_rec *eval = at(c, i);

        if (eval != NULL && eval->samples > 0) {
            samples[k++] = (double)eval->samples;
        }
    }
    return k > 0 && c->conf.weight_cap > 0.0
               ? fmax(1.0, floor(c->conf.weight_cap * fl_lower_median(samples, k)))
               : (double)INFINITY;
}

static struct fl__figures count_figures(struct fl_coord *c, size_t n, count_eval_at at)
{
    double most = count_most(c, n, at);
    struct fl__figures f = {.n = 0};
    size_t i;

    for (i = 0; i < n; i++) {
        const struct fl_eval_rec *eval = at(c, i);
        double samples;
        double share;

        if (eval == NULL || eval->samples == 0) {
            continue;
        }
        samples = (double)eval->samples;
        share = samples > most ? most / samples : 1.0;
        f.n++;
        f.samples += samples * share;
        f.correct += (double)eval->correct * share;
        f.loss = fl_bounded_add(f.loss, eval->loss_sum * share);
        f.accuracies += (double)eval->correct / samples;
        if (fl_eval_metrics_tally_add(&f.metrics, eval->metrics, eval->samples, share) != FL_OK) {
            fl__coord_warn(c,
                           "round %" PRIu64 ": out of memory, the metrics of one client are left "
                           "out",
                           c->round.round);
        }
    }
    return f;
}

/*
 * The clients' own models are evaluated in the reports of training, with personal `trained`, or as
 * adapted copies after the aggregation; without them only the new global model is. As the other
 * figures of reports those of lost clients do not count.
 */
static void count_client_accuracy(struct fl_coord *c)
{
    const struct fl_personal_ops *personal = c->conf.strategy->personal;
    count_eval_at at = personal->trained  ? count_trained
                       : personal->adapts ? count_adapted
                                          : count_result;
    size_t n = personal->trained ? c->round.n : c->round.n_answers;
    double *accuracies = c->clients.samples;
    double *losses = c->clients.distance;
    size_t k = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        const struct fl_eval_rec *eval = at(c, i);

        if (eval != NULL && eval->samples > 0) {
            accuracies[k] = (double)eval->correct / (double)eval->samples;
            losses[k++] = eval->loss_sum / (double)eval->samples;
        }
    }
    fl_client_accuracy_put(accuracies, losses, k, &c->round.rec);
    if (k > 0 && c->conf.no_accuracy) {
        c->round.rec.client_accuracy_mean = c->round.rec.client_accuracy_std = FL_SHARE_NONE;
        c->round.rec.client_accuracy_worst_tenth = FL_SHARE_NONE;
        c->round.rec.client_accuracy_median = FL_SHARE_NONE;
    }
}

static void count_answers(struct fl_coord *c)
{
    struct fl__round *r = &c->round;

    r->result = count_figures(c, r->n_answers, count_result);
    r->adapted = count_figures(c, r->n_answers, count_adapted);
}

static void put_figures(const struct fl_coord *c, const struct fl__figures *f, double *accuracy,
                        double *mean)
{
    *accuracy = f->samples > 0.0 ? f->correct / f->samples : FL_SHARE_UNKNOWN;
    *mean = f->n > 0 ? f->accuracies / f->n : FL_SHARE_UNKNOWN;
    if (f->n > 0 && c->conf.no_accuracy) {
        *accuracy = *mean = FL_SHARE_NONE;
    }
}

/* Append the metrics beside an accuracy of the record. */
static void put_metrics(struct fl_coord *c, struct fl__figures *f, const char *prefix)
{
    size_t missing = fl_eval_metrics_tally_put(&f->metrics, prefix, c->round.rec.metrics);

    if (missing > 0) {
        fl__coord_warn(c,
                       "round %" PRIu64 ": %zu metrics %s are left out of its record: it has %d "
                       "bytes for all of them; send fewer metrics or shorter names",
                       c->round.round, missing, prefix, FL_EVAL_METRICS_TEXT - 1);
    }
}

/*
 * Accuracies of the personal models and, at the same moment, of the global one. Reports hold
 * evaluations of the received model and of the client's own after training; evaluations after the
 * aggregation, of the new model and of an adapted copy. Reports of personal models take precedence.
 */
static void count_personal(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    struct fl__figures received = count_figures(c, r->n, count_received);
    struct fl__figures trained = count_figures(c, r->n, count_trained);
    struct fl__figures *of_received;
    struct fl__figures *of_personal;

    r->evaluated = trained.n == 0 && (r->adapted.n > 0 || received.n == 0);
    of_received = r->evaluated ? &r->result : &received;
    of_personal = r->evaluated ? &r->adapted : &trained;
    put_figures(c, of_personal, &r->rec.personal_accuracy, &r->rec.personal_mean);
    put_figures(c, of_received, &r->rec.received_accuracy, &r->rec.received_mean);
    r->rec.n_personal = of_personal->n;
    put_metrics(c, of_received, FL_EVAL_METRICS_RECEIVED);
    put_metrics(c, of_personal, FL_EVAL_METRICS_PERSONAL);
    fl_eval_metrics_tally_done(&received.metrics);
    fl_eval_metrics_tally_done(&trained.metrics);
    fl__coord_forget_figures(r);
}

void fl__coord_forget_figures(struct fl__round *r)
{
    fl_eval_metrics_tally_done(&r->result.metrics);
    fl_eval_metrics_tally_done(&r->adapted.metrics);
}

void fl__coord_count_global(struct fl_coord *c)
{
    struct fl__round *r = &c->round;

    count_client_accuracy(c);
    count_answers(c);
    if (!fl_share_measured(r->rec.accuracy) && r->result.samples > 0.0) {
        r->rec.accuracy =
            c->conf.no_accuracy ? FL_SHARE_NONE : r->result.correct / r->result.samples;
        r->rec.loss = r->result.loss / r->result.samples;
        put_metrics(c, &r->result, "");
    }
}

void fl__coord_count_download(struct fl_coord *c, const struct fl_event *ev)
{
    uint32_t i;

    if (fl_coord_client(c, ev->u.upload.client) == NULL || ev->u.upload.round != c->round.round) {
        return;
    }
    i = c->clients.live[ev->u.upload.client].part;
    if (i != FL__NONE) {
        c->round.live[i].fetched = ev->u.upload.bytes;
    }
}

/* Bytes that this client had to fetch; its record is still that of the round before. */
static uint64_t count_downlink(const struct fl_coord *c, uint32_t client, uint64_t fetched)
{
    uint64_t model_bytes =
        fl_broadcast_sends_moves(c->conf.strategy->broadcast) ? fetched : c->model_bytes;
    bool first = c->clients.recs[client].counted_round == 0;
    bool model =
        first || !c->conf.strategy->personal->own || fl__coord_has_personal_model(c, client);

    return c->full_bytes * c->n_model_inputs + (model ? model_bytes : 0) +
           (first ? c->round.collection_bytes : 0);
}

/* Why it was left out: an error that did not lose or reject it is no reason. */
static const char *count_remark(const struct fl_participant_rec *part)
{
    switch (part->state) {
    case FL_PARTICIPANT_EMPTY:
        return "no layer was asked of it";
    case FL_PARTICIPANT_LOST:
    case FL_PARTICIPANT_REJECTED:
        return part->remark;
    case FL_PARTICIPANT_SELECTED:
    case FL_PARTICIPANT_REPORTED:
    case FL_PARTICIPANT_PLANNED:
    case FL_PARTICIPANT_ACCEPTED:
        break;
    }
    return NULL;
}

void fl__coord_count_ended(struct fl_coord *c)
{
    size_t i;

    for (i = 0; i < c->round.n; i++) {
        c->round.parts[i].remark = count_remark(&c->round.parts[i]);
    }
}

void fl__coord_count_round(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    struct fl_round_rec *rec = &r->rec;
    double samples = 0.0;
    double loss = 0.0;
    size_t i;

    for (i = 0; i < r->n; i++) {
        struct fl_participant_rec *part = &r->parts[i];

        if (part->divergence != NULL && c->needs_divergence) {
            rec->feedback_bytes += 4 * (uint64_t)c->n_units;
        }
        if (r->live[i].reported && c->needs_previous_dot) {
            rec->feedback_bytes += 8;
        }
        if (part->state == FL_PARTICIPANT_ACCEPTED) {
            rec->uplink_bytes += part->upload_bytes;
        }
        if (fl__coord_responder(part)) {
            rec->n_responders++;
            rec->n_capped += part->samples < c->clients.recs[part->client].samples;
            samples += (double)part->samples;
            loss = fl_bounded_add(loss, (double)part->samples * part->train_loss);
        }
        part->download_bytes = count_downlink(c, part->client, r->live[i].fetched);
        part->remark = count_remark(part);
        rec->downlink_bytes += part->download_bytes;
    }
    rec->round = r->round;
    rec->attempt = r->attempt;
    rec->n_selected = (uint32_t)r->n;
    rec->population = r->size.population;
    rec->uplink_bytes += rec->feedback_bytes;
    if (r->round == 1) {
        rec->uplink_bytes += r->collection_bytes; /* Uploaded once, before the first round. */
    }
    rec->uplink_bytes_full = c->full_bytes * rec->n_responders;
    rec->train_loss = samples > 0.0 ? loss / samples : 0.0;
    rec->n_quarantined = (uint32_t)c->clients.quarantined.n;
    rec->ended_ms = c->wall_ms;
    r->traffic = c->traffic;
    rec->wire_up_bytes = r->traffic.up - c->traffic_counted.up;
    rec->wire_down_bytes = r->traffic.down - c->traffic_counted.down;
    fl__coord_count_norms(c, rec);
    count_personal(c);
}

void fl__coord_mark_counted(struct fl_coord *c)
{
    bool any_removed = false;
    size_t i;

    for (i = 0; i < c->round.n; i++) {
        const struct fl_participant_rec *part = &c->round.parts[i];
        struct fl_client_rec *rec = &c->clients.recs[part->client];

        rec->uplink_bytes += part->state == FL_PARTICIPANT_ACCEPTED ? part->upload_bytes : 0;
        rec->downlink_bytes += part->download_bytes;
        if (fl__coord_responder(part)) {
            fl__clients_uncount(&c->clients, part->client);
            rec->counted_round = c->round.round;
            rec->counted_attempt = c->round.attempt;
            rec->counted_update = part->state == FL_PARTICIPANT_ACCEPTED;
            fl__clients_count(&c->clients, part->client);
            fl__clients_relist(c, part->client);
            any_removed = any_removed || c->clients.live[part->client].removed;
        }
    }
    if (any_removed && fl_strategy_sums_kept(c->conf.strategy)) {
        fl__coord_begin_epoch(c,
                              "a removed client was counted in round %" PRIu64 " with its control",
                              c->round.round);
    }
}
