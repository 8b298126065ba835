/*
 * The straggler timeout (round.straggler_factor): gives up clients that take much longer than the
 * others. On the thread of the coordinator.
 *
 * Evaluations of clients are timed as reports are, by when half of them were in.
 *
 * A report is one message, so training that hangs and slow training look alike: the times of the
 * other clients are the measure. An upload shows its progress by the bytes that arrive. An upload
 * that stalls is lost after straggler_factor times as long as the finished uploads took. While
 * fewer than half are in, the server or its network may be the cause: then none is lost while any
 * other makes progress.
 *
 * A client that sends a byte now and then makes progress, and would hold the round until the
 * deadline. So once half are in an upload has to keep a minimum rate, over spans as long as that
 * timeout: the rate of the slowest of the first half divided by straggler_factor, so that the size
 * of the update does not matter; and never more than round.straggler_rate, which slow honest links
 * reach. An upload that keeps it has until the deadline.
 *
 * At the deadline of the uploads, those that wait for the server's own disk are not late: they get
 * straggler_min_ms more, again and again, at most upload_ms in total.
 */
#include <inttypes.h>

#include "server/core/coord_impl.h"

/* straggler_factor times `took_ms`, at least straggler_min_ms. */
static uint64_t straggler_span(const struct fl_coord *c, double took_ms)
{
    double span = c->conf.straggler_factor * took_ms;

    span = span < 1e15 ? span : 1e15;
    return span > (double)c->conf.straggler_min_ms ? (uint64_t)span : c->conf.straggler_min_ms;
}

/* Ratio of the samples of the largest missing client to the mean of those that are in; at least
   1. */
static double more_samples(const struct fl_coord *c)
{
    const struct fl__round *r = &c->round;
    double most = 0.0;
    double sum = 0.0;
    size_t n = 0;
    size_t i;

    for (i = 0; i < r->n; i++) {
        double samples = (double)r->parts[i].samples;

        if (r->parts[i].state == FL_PARTICIPANT_SELECTED) {
            most = samples > most ? samples : most;
        } else if (r->parts[i].state != FL_PARTICIPANT_LOST &&
                   r->parts[i].state != FL_PARTICIPANT_REJECTED) {
            sum += samples;
            n++;
        }
    }
    return n > 0 && most * (double)n > sum && sum > 0.0 ? most * (double)n / sum : 1.0;
}

/* A program that hangs never answers, and the deadline is set for the slowest training that is
   conceivable. The times of the other clients are a better measure. */
bool fl__straggler_training(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t in = r->n - r->count[FL_PARTICIPANT_LOST] - r->count[FL_PARTICIPANT_REJECTED] -
                r->count[FL_PARTICIPANT_SELECTED];
    uint64_t span;
    uint64_t until;

    if (!(c->conf.straggler_factor > 0.0) || r->straggler_timed || in == 0 || 2 * in < r->n) {
        return false;
    }
    r->straggler_timed = true;
    r->trained_ms = c->now_ms - r->opened_ms;
    span = straggler_span(c, (double)(c->now_ms - r->opened_ms) * more_samples(c));
    until = fl__coord_after(c, span);
    if (until >= r->deadline_ms) {
        return false;
    }
    r->deadline_ms = until;
    fl__coord_detail(c,
                     "round %" PRIu64 ": %zu of %zu reports are in, the others have %" PRIu64 " ms",
                     r->round, in, r->n, span);
    return c->now_ms >= until;
}

/* A client whose test set is never evaluated would hold each evaluated round until the deadline. */
void fl__straggler_evaluating(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t in = r->n_answers - r->n_asked;
    uint64_t span;
    uint64_t until;

    if (!(c->conf.straggler_factor > 0.0) || r->eval_timed || r->n_asked == 0 || in == 0 ||
        2 * in < r->n_answers)
    {
        return;
    }
    r->eval_timed = true;
    span = straggler_span(c, (double)(c->now_ms - r->asked_ms));
    until = fl__coord_after(c, span);
    if (until < r->deadline_ms) {
        r->deadline_ms = until;
        fl__coord_detail(
            c, "round %" PRIu64 ": %zu of %zu evaluations are in, the others have %" PRIu64 " ms",
            r->round, in, r->n_answers, span);
    }
}

/* --- uploads --- */

void fl__straggler_asked(struct fl_coord *c, size_t i)
{
    c->round.live[i].asked_ms = c->now_ms;
}

void fl__straggler_begin_uploads(struct fl_coord *c)
{
    c->round.moved_ms = c->now_ms;
    c->round.quiet_ms = c->now_ms; /* Check at once. */
    c->round.held_until_ms = 0;
}

bool fl__straggler_is_held(const struct fl_coord *c, size_t i)
{
    uint64_t held_ms = c->round.live[i].held_ms;

    return held_ms != 0 && c->now_ms - held_ms < c->conf.straggler_min_ms;
}

bool fl__straggler_extend(struct fl_coord *c)
{
    struct fl__round *r = &c->round;

    if (r->held_until_ms == 0) {
        r->held_until_ms = fl__coord_after(c, c->conf.upload_ms);
    }
    if (c->now_ms >= r->held_until_ms || r->grace_only) {
        return false;
    }
    r->deadline_ms = fl__coord_after(c, c->conf.straggler_min_ms);
    return true;
}

void fl__straggler_stored(struct fl_coord *c, size_t i, uint64_t bytes)
{
    struct fl__round *r = &c->round;
    uint64_t asked_ms = r->live[i].asked_ms;
    double rate;

    r->moved_ms = c->now_ms;
    /* Uploads of the second half may be stragglers: not used as a measure. */
    if (r->half_uploaded || asked_ms == 0) {
        return;
    }
    if (c->now_ms - asked_ms > r->upload_span_ms) {
        r->upload_span_ms = c->now_ms - asked_ms;
    }
    rate = (double)bytes / (double)(c->now_ms > asked_ms ? c->now_ms - asked_ms : 1);
    if (bytes > 0 && (r->upload_rate <= 0.0 || rate < r->upload_rate)) {
        r->upload_rate = rate;
    }
}

/* Minimum rate in bytes per ms; 0: any byte is enough. */
static double least_rate(const struct fl_coord *c)
{
    double of_others =
        c->conf.straggler_factor > 0.0 ? c->round.upload_rate / c->conf.straggler_factor : 0.0;
    double configured = (double)c->conf.straggler_rate / 1000.0;

    return of_others < configured ? of_others : configured;
}

/* Start of the current minimum-rate span of participant i. */
static uint64_t paced_since(const struct fl_coord *c, size_t i)
{
    const struct fl__participant *live = &c->round.live[i];
    uint64_t since = live->paced_ms > live->asked_ms ? live->paced_ms : live->asked_ms;

    return since > c->round.excused_ms ? since : c->round.excused_ms;
}

/* Ends a span that kept the rate and starts the next one. Repeated bytes count once. */
static void keep_pace(struct fl_coord *c, size_t i, uint64_t bytes, bool excused)
{
    struct fl__participant *live = &c->round.live[i];
    double gained = bytes > live->paced_bytes ? (double)(bytes - live->paced_bytes) : 0.0;
    double span_ms = (double)(c->now_ms - paced_since(c, i));

    live->arrived_bytes = bytes > live->arrived_bytes ? bytes : live->arrived_bytes;
    if (excused || !c->round.half_uploaded || gained >= least_rate(c) * span_ms) {
        live->paced_ms = c->now_ms;
        live->paced_bytes = live->arrived_bytes;
    }
}

void fl__straggler_progress(struct fl_coord *c, const struct fl_event *ev)
{
    struct fl__round *r = &c->round;
    uint32_t client = ev->u.upload.client;
    uint32_t i;

    if (fl_coord_client(c, client) == NULL) {
        return;
    }
    fl__clients_seen(c, client);
    i = c->clients.live[client].part;
    if (i != FL__NONE && r->round == ev->u.upload.round && r->attempt == ev->u.upload.attempt &&
        fl__participant_waiting(c, i))
    {
        /* The time before its first bytes is not part of its rate. */
        keep_pace(c, i, ev->u.upload.bytes, ev->u.upload.held || r->live[i].moved_ms == 0);
        r->live[i].moved_ms = c->now_ms;
        r->live[i].held_ms = ev->u.upload.held ? c->now_ms : 0;
        r->moved_ms = c->now_ms;
    }
}

void fl__straggler_excuse(struct fl_coord *c)
{
    c->round.excused_ms = c->now_ms;
}

uint64_t fl__straggler_due(const struct fl_coord *c, size_t i)
{
    const struct fl__round *r = &c->round;
    const struct fl__participant *live = &r->live[i];
    uint64_t since = live->moved_ms > live->asked_ms ? live->moved_ms : live->asked_ms;
    uint64_t span = straggler_span(c, (double)r->upload_span_ms);

    if (!(c->conf.straggler_factor > 0.0) || fl__participant_stored(c, i)) {
        return FL__NEVER;
    }
    since = since > r->excused_ms ? since : r->excused_ms;
    if (!r->half_uploaded && r->moved_ms > since) {
        since = r->moved_ms;
    }
    if (r->half_uploaded && live->moved_ms > 0 && least_rate(c) > 0.0 && paced_since(c, i) < since)
    {
        since = paced_since(c, i);
    }
    return since > FL__NEVER - span ? FL__NEVER : since + span;
}

/* At half: from now on each client is measured by itself. */
static void note_half(struct fl_coord *c)
{
    struct fl__round *r = &c->round;

    size_t i;

    if (r->half_uploaded || r->count[FL_PARTICIPANT_ACCEPTED] == 0 ||
        r->count[FL_PARTICIPANT_ACCEPTED] < fl__coord_round_waiting(c))
    {
        return;
    }
    r->half_uploaded = true;
    r->quiet_ms = c->now_ms;
    /* Before half, the uploads of others may have used its bandwidth. */
    for (i = 0; i < r->n; i++) {
        r->live[i].paced_ms = c->now_ms;
        r->live[i].paced_bytes = r->live[i].arrived_bytes;
    }
}

/* Only a TICK gives a client up: the progress of all clients up to that moment has been stepped
   before it, in any order. */
void fl__straggler_uploading(struct fl_coord *c)
{
    enum fl_participant_state wanted = fl__coord_round_wanted(c);
    struct fl__round *r = &c->round;
    struct fl__names names = {.used = 0};
    uint64_t next = FL__NEVER;
    size_t i;

    note_half(c);
    if (c->now_ms < r->quiet_ms) {
        return;
    }
    for (i = 0; i < r->n; i++) {
        uint64_t due = r->parts[i].state == wanted ? fl__straggler_due(c, i) : FL__NEVER;

        if (c->now_ms >= due && c->ticking) {
            uint32_t client = r->parts[i].client;

            fl__names_add(&names, fl__coord_name(c, client));
            fl__coord_client_error(c, client,
                                   "timed out: its upload stalled or was too slow "
                                   "(round.straggler_factor, round.straggler_rate)");
            fl__participant_lose(c, i);
        } else {
            next = due < next ? due : next;
        }
    }
    r->quiet_ms = next;
    if (names.total > 0) {
        fl__coord_warn(c,
                       "round %" PRIu64
                       ": timed out, upload stalled or slower than %.0f bytes/s for %" PRIu64
                       " ms: %s",
                       r->round, least_rate(c) * 1000.0,
                       straggler_span(c, (double)r->upload_span_ms), fl__names_text(&names));
    }
}
