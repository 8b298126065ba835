/* The status line of the federation: what it waits for, until when, and for which clients. On
   the thread of the coordinator; read-only. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

struct missing {
    const char **names;
    size_t max;
    size_t n;
    struct fl__names text;
};

static void missing_add(struct missing *m, const char *name)
{
    if (m->n < m->max) {
        m->names[m->n] = name;
    }
    m->n++;
    fl__names_add(&m->text, name);
}

static const char *why_span(const struct fl_coord *c, uint64_t now_ms, uint64_t at, char *out,
                            size_t size)
{
    uint64_t now = now_ms > c->now_ms ? now_ms : c->now_ms;

    if (at == FL__NEVER) {
        (void)snprintf(out, size, "without a deadline");
    } else {
        (void)snprintf(out, size, "%.1f s more", at > now ? (double)(at - now) / 1000.0 : 0.0);
    }
    return out;
}

static void why_append(char *out, size_t size, const char *text)
{
    size_t used = strlen(out);

    (void)snprintf(out + used, size - used, "%s", text);
}

static void missing_clients(const struct fl_coord *c, struct missing *m)
{
    struct fl_order_at at = {0};
    uint32_t client;

    while ((client = fl_order_next(&c->clients.names, &at)) != FL__NONE) {
        const struct fl__client *live = &c->clients.live[client];

        if (!live->connected && c->clients.recs[client].samples > 0 && !live->ineligible) {
            missing_add(m, fl__coord_name(c, client));
        }
    }
}

static void why_idle(const struct fl_coord *c, uint64_t now_ms, char *out, size_t size,
                     struct missing *m)
{
    uint64_t round = c->committed + 1;
    char until[64];

    if (c->round.closing) {
        (void)snprintf(out, size,
                       "round %" PRIu64 " attempt %" PRIu32 " has ended (%s), writing that to disk",
                       round, c->round.attempt, c->abort_reason);
    } else if (!c->started) {
        (void)snprintf(out, size, "round %" PRIu64 " is IDLE: the federation is not started",
                       round);
    } else if (c->clients.n_alive < fl__coord_need(c)) {
        missing_clients(c, m);
        (void)snprintf(out, size,
                       "round %" PRIu64 " is IDLE: %zu of %" PRIu32
                       " clients are connected%s%s%s%s",
                       round, c->clients.n_alive, fl__coord_need(c),
                       c->clients.quarantined.n > 0 ? " and not quarantined" : "",
                       c->conf.eligible.n_labels > 0 ? ", with the labels of round.eligible" : "",
                       m->n > 0 ? ", disconnected: " : "", fl__names_text(&m->text));
    } else if (fl__eligible_idle(c, now_ms, out, size)) {
        return;
    } else if (now_ms < c->settle_ms && c->not_before_ms <= now_ms) {
        missing_clients(c, m);
        (void)snprintf(out, size, "round %" PRIu64 " is IDLE: " FL__RESTARTED ": %s (%s)", round,
                       fl__names_text(&m->text),
                       why_span(c, now_ms, c->settle_ms, until, sizeof(until)));
    } else {
        (void)snprintf(out, size,
                       "round %" PRIu64 " is IDLE: attempt %" PRIu32 " begins after %s (%s)", round,
                       c->attempt, why_span(c, now_ms, c->not_before_ms, until, sizeof(until)),
                       c->abort_reason[0] != '\0' ? c->abort_reason : "out of memory");
    }
}

/* When a disconnected participant is given up; FL__NEVER: at the deadline of the phase. */
static uint64_t given_up_at(const struct fl_coord *c, uint32_t client)
{
    const struct fl__client *live = &c->clients.live[client];
    uint64_t at = FL__NEVER;

    if (live->lost_ms != FL__NEVER && live->lost_ms <= FL__NEVER - c->conf.lost_grace_ms) {
        at = live->lost_ms + c->conf.lost_grace_ms;
    }
    return at < c->round.deadline_ms ? at : FL__NEVER;
}

/* Connected clients have the deadline, disconnected ones their grace: "waiting 12.3 s more for:
   a, b; 1 of them disconnected: b, given up after 7.0 s more". */
static void why_add_disconnected(const struct fl_coord *c, uint64_t now_ms,
                                 enum fl_participant_state wanted, char *out, size_t size)
{
    struct fl__names names = {.used = 0};
    uint64_t first = FL__NEVER;
    char until[64];
    char text[FL__CLEAN_SIZE + 128];
    size_t i;

    for (i = 0; i < c->round.n; i++) {
        uint32_t client = c->round.parts[i].client;

        if (c->round.parts[i].state == wanted && !c->clients.live[client].connected) {
            uint64_t at = given_up_at(c, client);

            first = at < first ? at : first;
            fl__names_add(&names, fl__coord_name(c, client));
        }
    }
    if (names.total == 0) {
        return;
    }
    (void)snprintf(text, sizeof(text), "; %zu of them disconnected: ", names.total);
    why_append(out, size, text);
    why_append(out, size, fl__names_text(&names));
    if (first != FL__NEVER) {
        (void)snprintf(text, sizeof(text), ", given up after %s",
                       why_span(c, now_ms, first, until, sizeof(until)));
        why_append(out, size, text);
    }
}

/* Latest end of TRAINING or UPLOADING: only the grace when all missing clients are disconnected. */
static uint64_t waits_until(const struct fl_coord *c, enum fl_participant_state wanted)
{
    uint64_t last = 0;
    size_t i;

    for (i = 0; i < c->round.n; i++) {
        uint32_t client = c->round.parts[i].client;

        if (c->round.parts[i].state == wanted) {
            /* A connected client is awaited until then if nothing more of it arrives. */
            uint64_t at = !c->clients.live[client].connected  ? given_up_at(c, client)
                          : c->sm.state == FL_PHASE_UPLOADING ? fl__straggler_due(c, i)
                                                              : FL__NEVER;

            last = at > last ? at : last;
        }
    }
    return last != 0 && last < c->round.deadline_ms ? last : c->round.deadline_ms;
}

/* TRAINING and UPLOADING: the participants that are missing. */
static void why_clients(const struct fl_coord *c, uint64_t now_ms, char *out, size_t size,
                        struct missing *m)
{
    const struct fl__round *r = &c->round;
    enum fl_participant_state wanted = fl__coord_round_wanted(c);
    bool training = c->sm.state == FL_PHASE_TRAINING;
    size_t out_of = r->n;
    char until[64];
    char diverged[64];
    size_t in;
    size_t i;

    for (i = 0; i < r->n; i++) {
        if (r->parts[i].state == wanted) {
            missing_add(m, fl__coord_name(c, r->parts[i].client));
        }
    }
    if (training) {
        in = r->n - r->count[FL_PARTICIPANT_SELECTED] - r->count[FL_PARTICIPANT_LOST] -
             r->count[FL_PARTICIPANT_REJECTED];
    } else {
        in = r->count[FL_PARTICIPANT_ACCEPTED];
        out_of = r->n - r->count[FL_PARTICIPANT_EMPTY];
    }
    (void)snprintf(out, size, "round %" PRIu64 " is %s: %zu of %zu %s are in%s, waiting %s for: %s",
                   r->round, fl_sm_name(&c->sm), in, out_of, training ? "reports" : "uploads",
                   fl__diverged_text(c, diverged, sizeof(diverged)),
                   why_span(c, now_ms, waits_until(c, wanted), until, sizeof(until)),
                   fl__names_text(&m->text));
    why_add_disconnected(c, now_ms, wanted, out, size);
    if (r->store_error[0] != '\0') {
        why_append(out, size, "; storing an upload failed, retrying: ");
        why_append(out, size, r->store_error);
    }
}

static void why_evaluating(const struct fl_coord *c, uint64_t now_ms, char *out, size_t size,
                           struct missing *m)
{
    struct fl_order_at at = {0};
    char until[64];
    uint32_t client;

    while ((client = fl_order_next(&c->clients.connected, &at)) != FL__NONE) {
        if (c->clients.live[client].asked) {
            missing_add(m, fl__coord_name(c, client));
        }
    }
    if (m->n == 0) {
        (void)snprintf(out, size,
                       "round %" PRIu64 " is EVALUATING: the server evaluates the new model",
                       c->round.round);
        return;
    }
    (void)snprintf(out, size, "round %" PRIu64 " is EVALUATING: waiting %s for: %s", c->round.round,
                   why_span(c, now_ms, c->round.deadline_ms, until, sizeof(until)),
                   fl__names_text(&m->text));
}

static void why_work(const struct fl_coord *c, char *out, size_t size)
{
    const char *what = "";
    const char *then = "";

    switch ((enum fl_phase)c->sm.state) {
    case FL_PHASE_SELECTING:
        what = "writing the selection to disk";
        break;
    case FL_PHASE_PLANNING:
        what = "writing the upload plan to disk";
        break;
    case FL_PHASE_AGGREGATING:
        what = "aggregating the updates";
        break;
    case FL_PHASE_COMMITTING:
        what = "writing the new model to disk";
        break;
    case FL_PHASE_DRAINING:
        what = "writing the last records to disk";
        break;
    case FL_PHASE_PAUSED:
        what = c->pause.reason;
        then = "; 'flctl resume' continues";
        break;
    case FL_PHASE_STOPPED:
    case FL_PHASE_IDLE:
    case FL_PHASE_TRAINING:
    case FL_PHASE_UPLOADING:
    case FL_PHASE_EVALUATING:
    case FL_PHASE_COUNT:
        break;
    }
    (void)snprintf(out, size, "round %" PRIu64 " is %s: %s%s", c->committed + 1, fl_sm_name(&c->sm),
                   what, then);
}

struct fl_round_bounds fl_round_bounds_of(const struct fl_round_rec *record)
{
    return (struct fl_round_bounds){.round = record->round,
                                    .n_capped = record->n_capped,
                                    .n_clipped = record->n_clipped,
                                    .n_left_out = record->n_left_out,
                                    .n_robust_out = record->n_robust_out};
}

/* Whose updates it were stands in the log and in the errors of the clients. */
static void why_add_bounds(const struct fl_coord *c, char *out, size_t size)
{
    const struct fl_round_bounds *b = &c->bounds;
    const struct {
        uint32_t n;
        const char *what;
    } acted[] = {
        {b->n_capped, "weights lowered (round.weight_cap, or samples that were not announced)"},
        {b->n_clipped, "updates shortened (round.norm_clip)"},
        {b->n_left_out, "updates left out (round.norm_cap)"},
        {b->n_robust_out, "updates left out by the robust rule (strategy.robust)"}};
    char note[FL__CLEAN_SIZE];
    size_t i;

    if (b->round == 0 || b->round != c->committed) {
        return;
    }
    for (i = 0; i < sizeof(acted) / sizeof(acted[0]); i++) {
        if (acted[i].n > 0) {
            (void)snprintf(note, sizeof(note), "; in round %" PRIu64 ": %" PRIu32 " %s", b->round,
                           acted[i].n, acted[i].what);
            why_append(out, size, note);
        }
    }
}

/* Notes on problems that do not hold up the rounds. */
static void why_add_notes(const struct fl_coord *c, char *out, size_t size)
{
    struct fl_order_at at = {0};
    size_t connected = c->clients.connected.n;
    size_t evaluate = 0;
    size_t waiting = 0;
    struct fl__names away = {.used = 0};
    char note[FL__CLEAN_SIZE];
    uint32_t client;

    while ((client = fl_order_next(&c->clients.connected, &at)) != FL__NONE) {
        evaluate += c->clients.live[client].evaluates;
        waiting += c->clients.live[client].withheld > 0;
        if (c->clients.live[client].unavailable) {
            fl__names_add(&away, fl__coord_name(c, client));
        }
    }
    fl__quarantine_why(c, out, size);
    fl__eligible_why(c, out, size);
    fl__share_why(c, out, size);
    why_add_bounds(c, out, size);
    if (away.total > 0) {
        (void)snprintf(note, sizeof(note),
                       "; %zu connected clients are not available ('flctl clients' has the "
                       "reasons): %s",
                       away.total, fl__names_text(&away));
        why_append(out, size, note);
    }
    if (waiting > 0) {
        (void)snprintf(note, sizeof(note),
                       "; %zu connected clients have not sent their data summary yet (solver '%s' "
                       "needs it before they can be selected)",
                       waiting, c->conf.strategy->solver->policy.name);
        why_append(out, size, note);
    }
    if (c->conf.evaluate_clients && c->conf.evaluate_every != 0 && connected > 0 && evaluate == 0) {
        (void)snprintf(note, sizeof(note),
                       "; evaluation.clients is on, but none of the %zu connected clients can "
                       "evaluate (no test samples, or trainer: command)",
                       connected);
        why_append(out, size, note);
    }
}

void fl_coord_why(const struct fl_coord *c, uint64_t now_ms, char *out, size_t size,
                  const char **missing, size_t max, size_t *ret_missing)
{
    struct missing m = {.names = missing, .max = max};
    char failed[FL__CLEAN_SIZE + 64];
    char until[64];

    if (size == 0) {
        return;
    }
    if (c->sm.state == FL_PHASE_IDLE) {
        why_idle(c, now_ms, out, size, &m);
    } else if (c->sm.state == FL_PHASE_TRAINING || c->sm.state == FL_PHASE_UPLOADING) {
        why_clients(c, now_ms, out, size, &m);
    } else if (c->sm.state == FL_PHASE_EVALUATING) {
        why_evaluating(c, now_ms, out, size, &m);
    } else if (c->sm.state == FL_PHASE_STOPPED && c->finished) {
        (void)snprintf(out, size, "the federation is %s: all %" PRIu64 " rounds are done",
                       fl_sm_name(&c->sm), c->committed);
    } else if (c->sm.state == FL_PHASE_STOPPED) {
        (void)snprintf(out, size, "the federation is %s after round %" PRIu64 ": the server %s",
                       fl_sm_name(&c->sm), c->committed, c->stopping ? "stops" : "was drained");
    } else {
        why_work(c, out, size);
    }
    if (c->work.retry_ms != 0) {
        (void)snprintf(failed, sizeof(failed), "; failed, retrying: %s (%s)", c->work.reason,
                       why_span(c, now_ms, c->work.retry_ms, until, sizeof(until)));
        why_append(out, size, failed);
    }
    if (c->stopping && c->sm.state < FL_PHASE_PAUSED) {
        why_append(out, size, "; the server stops");
    } else if (c->draining && c->sm.state < FL_PHASE_PAUSED) {
        why_append(out, size, "; no new round after this one (draining)");
    } else if (c->pause.on && c->sm.state < FL_PHASE_PAUSED) {
        why_append(out, size, "; then the federation pauses");
    }
    /* While the attempt ends, and in a pause, the sentence has why. */
    if (c->ended_round == c->committed + 1 && !c->round.closing && c->sm.state < FL_PHASE_PAUSED) {
        why_append(out, size, "; ");
        why_append(out, size, c->ended);
    }
    why_add_notes(c, out, size);
    *ret_missing = m.n;
}
