/*
 * The straggler timeout (round.patience): clients that take much longer than the others.
 *
 * A report is one message, so a training that hangs and a slow one look alike: the others' times
 * say how long is long. An upload shows that it lives by the bytes that arrive. One that moves has
 * until the deadline, however slow its link is; one that does not move is lost after as many times
 * what the uploads took that are in. While fewer than half are in, the server or its network may be
 * why an upload stands: then none is lost while any other moves.
 */
#include <inttypes.h>

#include "server/core/coord_impl.h"

/* As many times `took_ms` as is configured, patience_least_ms at least. */
static uint64_t straggler_span(const struct fl_coord *c, double took_ms)
{
    double span = c->conf.patience * took_ms;

    span = span < 1e15 ? span : 1e15;
    return span > (double)c->conf.patience_least_ms ? (uint64_t)span : c->conf.patience_least_ms;
}

/* How many times the samples of those that are in the largest of the others has; 1 at least. */
static double more_samples(const struct fl_coord *c)
{
    const struct fl__round *r = &c->round;
    double most = 0.0;
    double sum = 0.0;
    size_t n = 0;
    size_t i;

    for (i = 0; i < r->n; i++) {
        double samples = (double)r->parts[i].samples;

        if (r->parts[i].state == FL_PART_SELECTED) {
            most = samples > most ? samples : most;
        } else if (r->parts[i].state != FL_PART_LOST && r->parts[i].state != FL_PART_REJECTED) {
            sum += samples;
            n++;
        }
    }
    return n > 0 && most * (double)n > sum && sum > 0.0 ? most * (double)n / sum : 1.0;
}

/*
 * A program that hangs answers never, and a deadline is set for the slowest training that anybody
 * can think of. What the others took says more.
 */
bool fl__straggler_training(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t in =
        r->n - r->count[FL_PART_LOST] - r->count[FL_PART_REJECTED] - r->count[FL_PART_SELECTED];
    uint64_t span;
    uint64_t until;

    if (!(c->conf.patience > 0.0) || r->hurried || in == 0 || 2 * in < r->n) {
        return false;
    }
    r->hurried = true;
    span = straggler_span(c, (double)(c->now_ms - r->opened_ms) * more_samples(c));
    until = fl__coord_after(c, span);
    if (until >= r->deadline_ms) {
        return false;
    }
    r->deadline_ms = until;
    fl__coord_trace(c,
                    "round %" PRIu64 ": %zu of %zu reports are in, the others have %" PRIu64 " ms",
                    r->round, in, r->n, span);
    return c->now_ms >= until;
}

/* --- uploads --- */

void fl__straggler_asked(struct fl_coord *c, size_t i)
{
    c->round.live[i].asked_ms = c->now_ms;
}

void fl__straggler_begin_uploads(struct fl_coord *c)
{
    c->round.moved_ms = c->now_ms;
    c->round.quiet_ms = c->now_ms; /* Look at once. */
}

void fl__straggler_stored(struct fl_coord *c, size_t i)
{
    struct fl__round *r = &c->round;
    uint64_t asked_ms = r->live[i].asked_ms;

    r->moved_ms = c->now_ms;
    /* Those of the second half may be stragglers: no measure for others. */
    if (!r->half_uploaded && asked_ms != 0 && c->now_ms - asked_ms > r->upload_span_ms) {
        r->upload_span_ms = c->now_ms - asked_ms;
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
    fl__clients_heard(c, client);
    i = c->clients.live[client].part;
    if (i != FL__NONE && r->round == ev->u.upload.round && r->attempt == ev->u.upload.attempt &&
        fl__part_waiting(c, i))
    {
        r->live[i].moved_ms = c->now_ms;
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
    const struct fl__part *live = &r->live[i];
    uint64_t since = live->moved_ms > live->asked_ms ? live->moved_ms : live->asked_ms;
    uint64_t span = straggler_span(c, (double)r->upload_span_ms);

    if (!(c->conf.patience > 0.0) || fl__part_stored(c, i)) {
        return FL__NEVER;
    }
    since = since > r->excused_ms ? since : r->excused_ms;
    if (!r->half_uploaded && r->moved_ms > since) {
        since = r->moved_ms;
    }
    return since > FL__NEVER - span ? FL__NEVER : since + span;
}

/* From there on a client is measured by itself. */
static void note_half(struct fl_coord *c)
{
    struct fl__round *r = &c->round;

    if (!r->half_uploaded && r->count[FL_PART_ACCEPTED] > 0 &&
        r->count[FL_PART_ACCEPTED] >= fl__coord_round_waiting(c))
    {
        r->half_uploaded = true;
        r->quiet_ms = c->now_ms;
    }
}

/*
 * Only a TICK gives a client up: the progress of all clients up to that moment has been stepped
 * before it, in whichever order.
 */
void fl__straggler_uploading(struct fl_coord *c)
{
    enum fl_part_state wanted = fl__coord_round_wanted(c);
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
                                   "timed out: nothing of its update arrived for too long, see "
                                   "round.patience");
            fl__part_lose(c, i);
        } else {
            next = due < next ? due : next;
        }
    }
    r->quiet_ms = next;
    if (names.total > 0) {
        fl__coord_warn(
            c, "round %" PRIu64 ": timed out, nothing of the update arrived for %" PRIu64 " ms: %s",
            r->round, straggler_span(c, (double)r->upload_span_ms), fl__names_text(&names));
    }
}
