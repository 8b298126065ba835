/*
 * From the accepted updates to the next round: aggregation, evaluation and commit, with their
 * failures. On the thread of the coordinator; the work itself is done by the effects AGGREGATE,
 * EVALUATE and COMMIT.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/figures/share.h"
#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

/*
 * d_i of a responder. With complete uploads it is the distance to the new model (AdaFL,
 * eq. 1); where uploads are partial the server does not know a client's model, and the
 * reported divergences give its distance to the old one (docs/algorithms.md#partial-uploads).
 */
static bool responder_distance(const struct fl_coord *c, size_t i, size_t listed, double *ret)
{
    const struct fl__round *r = &c->round;

    switch (fl_strategy_distance(c->conf.strategy)) {
    case FL_DISTANCE_NONE:
        *ret = 0.0;
        return true;
    case FL_DISTANCE_NEW:
        *ret = r->has_distance && listed < r->n_listed ? r->distance[listed] : 0.0;
        return r->has_distance && r->parts[i].state == FL_PARTICIPANT_ACCEPTED;
    case FL_DISTANCE_OLD:
        if (r->parts[i].divergence == NULL) {
            return false;
        }
        *ret = fl_distance_from_divergence(r->parts[i].divergence, c->n_units);
        return true;
    }
    return false;
}

/* Only scores of responders change; their sum stays. */
static void update_scores(struct fl_coord *c)
{
    const struct fl_selection_ops *ops = c->conf.strategy->selection;
    struct fl__clients *t = &c->clients;
    const struct fl__round *r = &c->round;
    size_t n = 0;
    size_t listed = 0;
    size_t i;

    for (i = 0; ops->update != NULL && i < r->n; i++) {
        bool accepted = r->parts[i].state == FL_PARTICIPANT_ACCEPTED;
        uint32_t client = r->parts[i].client;

        if ((accepted || r->parts[i].state == FL_PARTICIPANT_EMPTY) && t->recs[client].scored) {
            if (!responder_distance(c, i, listed, &t->distance[n])) {
                fl__coord_trace(c, "round %" PRIu64 ": no distances available, scores unchanged",
                                r->round);
                return;
            }
            t->scores[n] = t->recs[client].score;
            t->chosen[n++] = client;
        }
        listed += accepted;
    }
    if (n == 0) {
        return;
    }
    ops->update(c->conf.strategy->options[FL_COMPONENT_SELECTION], &t->sums, t->scores, t->distance,
                n);
    for (i = 0; i < n; i++) {
        t->recs[t->chosen[i]].score = t->scores[i];
    }
}

static void finish_commit(struct fl_coord *c)
{
    struct fl__round *r = &c->round;

    fl__coord_count_global(c);
    fl__coord_count_round(c);
    update_scores(c);
    fl__share_count(c);
    fl__coord_round_account(c);
    fl__coord_mark_counted(c);
    fl__coord_list_records(c);
    r->deadline_ms = FL__NEVER;
    fl__coord_move(c, FL_PHASE_COMMITTING, "loss %.4f, %" PRIu64 " of %" PRIu64 " bytes uploaded",
                   r->rec.train_loss, r->rec.uplink_bytes, r->rec.uplink_bytes_full);
    fl__coord_times(c, &r->rec);
    fl__coord_work(c, FL__WORK_COMMIT);
}

/* Personal accuracies of `adapts` policies come from evaluations, so these are always requested. */
static size_t ask_clients(struct fl_coord *c)
{
    bool ask = c->conf.evaluate_clients || c->conf.strategy->personal->adapts;
    struct fl_order_at at = {0};
    uint32_t client;
    size_t n = 0;

    while (ask && (client = fl_order_next(&c->clients.connected, &at)) != FL__NONE) {
        struct fl__client *live = &c->clients.live[client];

        if (live->evaluates && !fl__clients_quarantined(&c->clients, client)) {
            live->asked = true;
            live->answer = (uint32_t)n;
            c->clients.answers[n++] = (struct fl__answer){.client = client};
            fl__coord_effect_for(c, FL_EFF_EVALUATE_CLIENT, client)->task.deadline_ms =
                c->conf.evaluate_ms;
        }
    }
    c->round.n_answers = n;
    return n;
}

static double finite_or_zero(double x)
{
    return isfinite(x) ? x : 0.0;
}

/* A client was excluded during the aggregation: repeat it without that client. */
static bool finish_aggregate_again(struct fl_coord *c)
{
    if (!c->round.stale) {
        return false;
    }
    c->round.stale = false;
    if (fl__coord_too_few(c) || fl__coord_no_update(c)) {
        fl__coord_abort_few(c, "too few usable updates");
    } else {
        fl__coord_list_accepted(c);
        fl__coord_work(c, FL__WORK_AGGREGATE);
    }
    return true;
}

void fl__coord_aggregated(struct fl_coord *c, const struct fl_event *ev)
{
    struct fl__round *r = &c->round;
    /* The last round is always evaluated, so that a federation ends with an accuracy. */
    bool due = c->conf.evaluate_every != 0 &&
               (r->round % c->conf.evaluate_every == 0 || r->round == c->conf.rounds);
    bool server = due && c->conf.evaluate_server;

    fl__coord_work_done(c);
    if (fl__coord_aborting(c) || finish_aggregate_again(c)) {
        return;
    }
    if (ev->u.aggregated.distance != NULL && r->n_listed > 0) {
        (void)memcpy(r->distance, ev->u.aggregated.distance, r->n_listed * sizeof(double));
        r->has_distance = true;
    }
    r->rec.effective = finite_or_zero(ev->u.aggregated.effective);
    r->rec.self_weight = finite_or_zero(ev->u.aggregated.self_weight);
    r->rec.robust_used = finite_or_zero(ev->u.aggregated.robust_used);
    r->rec.n_clipped = ev->u.aggregated.clipped;
    r->rec.influence = finite_or_zero(ev->u.aggregated.influence);
    fl__share_note_weights(c, ev->u.aggregated.left);
    r->rec.n_robust_out = ev->u.aggregated.robust_out;
    (void)snprintf(r->rec.robust_clients, sizeof(r->rec.robust_clients), "%s",
                   ev->u.aggregated.robust_clients != NULL ? ev->u.aggregated.robust_clients : "");
    r->collection_bytes = ev->u.aggregated.collection_bytes;
    r->n_asked = due ? ask_clients(c) : 0;
    if (due && c->conf.evaluate_clients && r->n_asked == 0) {
        fl__coord_warn(c,
                       "round %" PRIu64
                       ": no client evaluated: evaluation.clients is on, but no connected client "
                       "can evaluate the new model (no test samples, or trainer: command)",
                       r->round);
    }
    if (!server && r->n_asked == 0) {
        finish_commit(c);
        return;
    }
    r->deadline_ms = r->n_asked > 0 ? fl__coord_after(c, c->conf.evaluate_ms) : FL__NEVER;
    r->asked_ms = c->now_ms;
    r->eval_timed = false;
    fl__coord_move(c, FL_PHASE_EVALUATING, "%s, %zu clients", server ? "server" : "no server",
                   r->n_asked);
    if (server) {
        fl__coord_work(c, FL__WORK_EVALUATE);
    }
}

enum verdict { UPDATE_GOOD, UPDATE_BAD, UPDATE_LOST };

/* Attempts to read the file of an accepted update before the round goes on without it. */
#define READ_TRIES 3

/*
 * What an error of using an accepted update says about it. The client is at fault for what it sent
 * and reported; a file that is missing, does not hold what was accepted or could not be read
 * several times is the fault of this server's disk. Other errors (out of memory or descriptors) say
 * nothing: the same may work later.
 */
static enum verdict finish_judge_update(struct fl__participant *part, int code)
{
    switch (code) {
    case FL_ENUMERIC:
    case FL_EINVAL:
    case FL_ERANGE:
        return UPDATE_BAD;
    case FL_EFORMAT:
    case FL_ESHAPE:
    case FL_ENOENT:
        return UPDATE_LOST;
    case FL_EIO:
        return ++part->n_unread < READ_TRIES ? UPDATE_GOOD : UPDATE_LOST;
    default:
        return UPDATE_GOOD;
    }
}

/*
 * The round goes on without that client: it has discarded its result, so it cannot send it again,
 * and is asked in the next round. It was sent ACCEPTED, which is not taken back: what it made
 * durable stays its own. Only a bad update counts against it.
 */
static void drop_update(struct fl_coord *c, uint32_t client, bool server_fault, const char *reason)
{
    uint32_t i = c->clients.live[client].part;
    char clean[FL__CLEAN_SIZE];

    fl__participant_set(c, i, server_fault ? FL_PARTICIPANT_LOST : FL_PARTICIPANT_REJECTED);
    c->round.live[i].blameless = server_fault;
    fl__coord_forget_norms(&c->round.parts[i]);
    fl__coord_trace(
        c, "client '%s': update %s: %s", fl__coord_name(c, client),
        server_fault ? "lost by this server and left out, which does not count against the client"
                     : "left out",
        fl__coord_clean(clean, sizeof(clean), reason));
    fl__coord_client_error(c, client, fl__coord_text(c, "update left out: %s", clean));
    if (!server_fault) {
        fl__coord_offence(c, i, FL_OFFENCE_UPDATE, clean);
    }
    if (fl__coord_too_few(c) || fl__coord_no_update(c)) {
        fl__coord_abort_few(c, "too few usable updates");
        return;
    }
    fl__coord_list_accepted(c);
    fl__coord_work(c, FL__WORK_AGGREGATE);
}

void fl__coord_aggregate_failed(struct fl_coord *c, const struct fl_event *ev)
{
    const char *reason = ev->u.failed_work.reason;
    uint32_t client = ev->u.failed_work.client;
    enum verdict verdict = UPDATE_GOOD;
    char clean[FL__CLEAN_SIZE];
    uint32_t i = fl__clients_used(&c->clients, client) ? c->clients.live[client].part : FL__NONE;

    if (i != FL__NONE && c->round.parts[i].state == FL_PARTICIPANT_ACCEPTED) {
        verdict = finish_judge_update(&c->round.live[i], ev->u.failed_work.code);
    }
    if (verdict != UPDATE_GOOD) {
        c->round.stale = false; /* The next aggregation lists the updates again. */
        drop_update(c, client, verdict == UPDATE_LOST, reason);
        return;
    }
    if (finish_aggregate_again(c)) {
        return;
    }
    if (ev->u.failed_work.code != FL_ENUMERIC) {
        fl__coord_work_failed(c, reason);
        return;
    }
    /* A retry would fail the same way: the operator has to check rates and data first. */
    fl__coord_pause_diverged(c, "%s%s", fl__coord_clean(clean, sizeof(clean), reason),
                             fl__coord_deviant_text(c));
}

/* The metrics of the server's own evaluation: numbers, as there is nothing to add up. */
static void finish_take_metrics(struct fl_coord *c, const char *text)
{
    char why[FL_EVAL_METRICS_ERROR];
    const char *bad = fl_eval_metrics_bad(text, UINT64_MAX, why);
    struct fl_eval_metric m;

    if (bad != NULL) {
        fl__coord_trace(c, "round %" PRIu64 ": metrics of the evaluation left out: %s",
                        c->round.round, bad);
        return;
    }
    while (text != NULL && fl_eval_metrics_next(&text, &m)) {
        m.sum = false;
        m.samples = 0;
        FL_REQUIRE(fl_eval_metrics_add(c->round.rec.metrics, &m)); /* Not longer than `text`. */
    }
}

void fl__coord_evaluated(struct fl_coord *c, const struct fl_event *ev)
{
    fl__coord_work_done(c);
    if (!isfinite(ev->u.evaluated.accuracy) || !isfinite(ev->u.evaluated.loss) ||
        ev->u.evaluated.accuracy < 0.0)
    {
        fl__coord_trace(
            c, "round %" PRIu64 ": the evaluation of the new model is not finite, ignoring it",
            c->round.round);
        return;
    }
    c->round.rec.accuracy = c->conf.no_accuracy ? FL_SHARE_NONE : ev->u.evaluated.accuracy;
    c->round.rec.loss = ev->u.evaluated.loss;
    finish_take_metrics(c, ev->u.evaluated.metrics);
    if (c->conf.no_accuracy) {
        fl__coord_detail(c, "round %" PRIu64 ": loss %.4f", c->round.round, c->round.rec.loss);
        return;
    }
    fl__coord_detail(c, "round %" PRIu64 ": accuracy %.4f, loss %.4f", c->round.round,
                     c->round.rec.accuracy, c->round.rec.loss);
}

void fl__coord_eval_failed(struct fl_coord *c, const char *reason)
{
    char clean[FL__CLEAN_SIZE];

    fl__coord_work_done(c);
    fl__coord_trace(c, "round %" PRIu64 ": evaluation failed: %s", c->round.round,
                    fl__coord_clean(clean, sizeof(clean), reason));
}

void fl__coord_eval_report(struct fl_coord *c, const struct fl_event *ev)
{
    uint32_t client = ev->u.eval.client;
    const char *bad;

    if (fl_coord_client(c, client) == NULL) {
        return;
    }
    fl__clients_seen(c, client);
    if (!c->clients.live[client].asked || c->sm.state != FL_PHASE_EVALUATING ||
        ev->u.eval.round != c->round.round)
    {
        return;
    }
    c->clients.live[client].asked = false;
    c->round.n_asked--;
    if (ev->u.eval.result.samples == 0) {
        fl__coord_warn(c,
                       "round %" PRIu64
                       ": client '%s' could not evaluate the new model, see the log of the client",
                       c->round.round, fl__coord_name(c, client));
        fl__coord_client_error(c, client,
                               "could not evaluate the new model, see the log of the client");
        return;
    }
    bad = fl__eval_bad(c, client, &ev->u.eval.result);
    bad = bad == NULL ? fl__eval_bad(c, client, &ev->u.eval.adapted) : bad;
    if (bad != NULL) {
        fl__coord_trace(c, "client '%s': evaluation ignored: %s", fl__coord_name(c, client), bad);
        return;
    }
    c->clients.answers[c->clients.live[client].answer] =
        (struct fl__answer){client, fl_str_dup(fl__coord_name(c, client)),
                            fl__eval_take(c, client, "new", &ev->u.eval.result),
                            fl__eval_take(c, client, "adapted", &ev->u.eval.adapted)};
}

bool fl__coord_evaluating(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    struct fl__names names = {.used = 0};
    struct fl_order_at at = {0};
    uint32_t client;

    fl__straggler_evaluating(c);
    if (c->now_ms >= r->deadline_ms) {
        r->deadline_ms = FL__NEVER;
        while ((client = fl_order_next(&c->clients.connected, &at)) != FL__NONE) {
            if (c->clients.live[client].asked) {
                c->clients.live[client].asked = false;
                fl__names_add(&names, fl__coord_name(c, client));
                fl__coord_client_error(c, client,
                                       "timed out: no evaluation of the new model "
                                       "(evaluation.deadline, round.straggler_factor)");
            }
        }
        fl__coord_trace(c, "round %" PRIu64 ": %zu evaluations timed out: %s", r->round, r->n_asked,
                        fl__names_text(&names));
        r->n_asked = 0;
    }
    if (r->n_asked > 0 || c->work.kind == FL__WORK_EVALUATE) {
        return false;
    }
    finish_commit(c);
    return false;
}

uint32_t fl__coord_first_attempt(const struct fl_coord *c, uint64_t round)
{
    return round <= c->used_round ? c->used_attempt + 1 : 1;
}

void fl__coord_committed(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    char text[64];

    fl__coord_work_done(c);
    (void)fl__coord_emit(c, FL_EFF_ROUND_CLOSED);
    r->closing = true;
    fl__coord_move(c, FL_PHASE_IDLE, "committed with %" PRIu32 " of %" PRIu32 " clients%s",
                   r->rec.n_responders, r->rec.n_selected,
                   fl__diverged_text(c, text, sizeof(text)));
    c->committed = r->round;
    c->bounds = fl_round_bounds_of(&r->rec);
    c->traffic_counted = r->traffic;
    fl_plateau_add(&c->plateau, r->round, r->rec.train_loss);
    fl_loss_trend_add(&c->trend, r->round, r->rec.train_loss);
    c->attempt = fl__coord_first_attempt(c, c->committed + 1);
    c->n_aborts = 0;
    c->not_before_ms = 0;
    fl__coord_round_done(c);
}
