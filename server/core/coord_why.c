/* One line for people: what the federation waits for, until when, and for whom. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/core/coord_impl.h"

struct missing {
    const char **names;
    size_t max;
    size_t n;
    struct fl__names text;
};

static void add(struct missing *m, const char *name)
{
    if (m->n < m->max) {
        m->names[m->n] = name;
    }
    m->n++;
    fl__names_add(&m->text, name);
}

static const char *span(const struct fl_coord *c, uint64_t now_ms, uint64_t at, char *out,
                        size_t size)
{
    uint64_t now = now_ms > c->now_ms ? now_ms : c->now_ms;

    if (at == FL__NEVER) {
        (void)snprintf(out, size, "without end");
    } else {
        (void)snprintf(out, size, "%.1f s more", at > now ? (double)(at - now) / 1000.0 : 0.0);
    }
    return out;
}

static void missing_clients(const struct fl_coord *c, struct missing *m)
{
    size_t i;

    for (i = 0; i < c->clients.n; i++) {
        uint32_t client = c->clients.order[i];

        if (!c->clients.live[client].connected && c->clients.recs[client].samples > 0) {
            add(m, fl__coord_name(c, client));
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
                       "round %" PRIu64 " attempt %" PRIu32 " is over (%s), that is "
                       "being written down",
                       round, c->round.attempt, c->abort_reason);
    } else if (!c->started) {
        (void)snprintf(out, size, "round %" PRIu64 " is IDLE: the federation is not started",
                       round);
    } else if (c->clients.n_alive < fl__coord_need(c)) {
        missing_clients(c, m);
        (void)snprintf(out, size,
                       "round %" PRIu64 " is IDLE: %zu of %" PRIu32 " clients are here%s%s", round,
                       c->clients.n_alive, fl__coord_need(c), m->n > 0 ? ", known and away: " : "",
                       fl__names_text(&m->text));
    } else if (now_ms < c->settle_ms && c->not_before_ms <= now_ms) {
        missing_clients(c, m);
        (void)snprintf(
            out, size, "round %" PRIu64 " is IDLE: restarted, waiting %s for known clients: %s",
            round, span(c, now_ms, c->settle_ms, until, sizeof(until)), fl__names_text(&m->text));
    } else {
        (void)snprintf(out, size,
                       "round %" PRIu64 " is IDLE: attempt %" PRIu32 " begins after %s (%s)", round,
                       c->attempt, span(c, now_ms, c->not_before_ms, until, sizeof(until)),
                       c->abort_reason[0] != '\0' ? c->abort_reason : "put off");
    }
}

/* TRAINING and UPLOADING: who of the selected is still missing. */
static void why_clients(const struct fl_coord *c, uint64_t now_ms, char *out, size_t size,
                        struct missing *m)
{
    const struct fl__round *r = &c->round;
    enum fl_part_state wanted = fl__coord_round_wanted(c);
    bool training = c->sm.state == FL_PHASE_TRAINING;
    size_t out_of = r->n;
    char until[64];
    char diverged[64];
    size_t in;
    size_t i;

    for (i = 0; i < r->n; i++) {
        if (r->parts[i].state == wanted) {
            add(m, fl__coord_name(c, r->parts[i].client));
        }
    }
    if (training) {
        in =
            r->n - r->count[FL_PART_SELECTED] - r->count[FL_PART_LOST] - r->count[FL_PART_REJECTED];
    } else {
        in = r->count[FL_PART_ACCEPTED];
        out_of = r->n - r->count[FL_PART_EMPTY];
    }
    (void)snprintf(out, size, "round %" PRIu64 " is %s: %zu of %zu %s are in%s, waiting %s for: %s",
                   r->round, fl_sm_name(&c->sm), in, out_of, training ? "reports" : "uploads",
                   fl__diverged_text(c, diverged, sizeof(diverged)),
                   span(c, now_ms, r->deadline_ms, until, sizeof(until)), fl__names_text(&m->text));
}

static void why_evaluating(const struct fl_coord *c, uint64_t now_ms, char *out, size_t size,
                           struct missing *m)
{
    char until[64];
    size_t i;

    for (i = 0; i < c->clients.n; i++) {
        if (c->clients.live[c->clients.order[i]].asked) {
            add(m, fl__coord_name(c, c->clients.order[i]));
        }
    }
    if (m->n == 0) {
        (void)snprintf(out, size, "round %" PRIu64 " is EVALUATING: the server tests the new model",
                       c->round.round);
        return;
    }
    (void)snprintf(out, size, "round %" PRIu64 " is EVALUATING: waiting %s for: %s", c->round.round,
                   span(c, now_ms, c->round.deadline_ms, until, sizeof(until)),
                   fl__names_text(&m->text));
}

static void why_work(const struct fl_coord *c, char *out, size_t size)
{
    const char *what = "";

    switch ((enum fl_phase)c->sm.state) {
    case FL_PHASE_SELECTING:
        what = "the choice of clients is being written down";
        break;
    case FL_PHASE_PLANNING:
        what = "the plan of uploads is being written down";
        break;
    case FL_PHASE_AGGREGATING:
        what = "the updates are being put together";
        break;
    case FL_PHASE_COMMITTING:
        what = "the new model is being written down";
        break;
    case FL_PHASE_DRAINING:
        what = "the last records are being written down";
        break;
    case FL_PHASE_STOPPED:
        what = c->finished ? "all rounds are done" : "the server was drained";
        break;
    case FL_PHASE_PAUSED:
        what = c->pause_reason;
        break;
    case FL_PHASE_IDLE:
    case FL_PHASE_TRAINING:
    case FL_PHASE_UPLOADING:
    case FL_PHASE_EVALUATING:
    case FL_PHASE_COUNT:
        break;
    }
    (void)snprintf(out, size, "round %" PRIu64 " is %s: %s", c->committed + 1, fl_sm_name(&c->sm),
                   what);
}

static void append(char *out, size_t size, const char *text)
{
    size_t used = strlen(out);

    (void)snprintf(out + used, size - used, "%s", text);
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
    } else {
        why_work(c, out, size);
    }
    if (c->work.retry_ms != 0) {
        (void)snprintf(failed, sizeof(failed), "; that failed (%s), next try after %s",
                       c->work.reason, span(c, now_ms, c->work.retry_ms, until, sizeof(until)));
        append(out, size, failed);
    }
    if (c->draining && c->sm.state < FL_PHASE_PAUSED) {
        append(out, size, "; no round begins after it (draining)");
    } else if (c->pausing && c->sm.state < FL_PHASE_PAUSED) {
        append(out, size, "; then the federation pauses");
    }
    *ret_missing = m.n;
}
