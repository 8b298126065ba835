/* The list of effects of a step, trace lines, and the current work of a phase with its retries. On
   the thread of the coordinator. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/backoff.h"
#include "libfl/base/grow.h"
#include "server/core/coord_impl.h"

int fl__coord_reserve(struct fl_coord *c)
{
    /* Effects concern connected clients and participants. */
    size_t n_clients = c->clients.connected.n + c->round.n + 1;
    size_t n_effects = FL__EFFECTS_BASE + FL__EFFECTS_PER_CLIENT * n_clients;
    /* At most one write of each update at a time, one deletion, one of the pause, and one of
       quarantines. */
    size_t n_pending = 2 * n_clients + 4;
    int rv;

    if (n_effects > c->cap_effects) {
        n_effects += n_effects / 2;
        rv = fl_resize(&c->effects, n_effects, sizeof(*c->effects));
        if (rv != FL_OK) {
            return rv;
        }
        c->cap_effects = n_effects;
    }
    if (n_pending > c->cap_pending) {
        n_pending += n_pending / 2;
        rv = fl_resize(&c->pending, n_pending, sizeof(*c->pending));
        if (rv != FL_OK) {
            return rv;
        }
        c->cap_pending = n_pending;
    }
    return FL_OK;
}

struct fl_effect *fl__coord_emit(struct fl_coord *c, enum fl_effect_type type)
{
    struct fl_effect *e;

    FL_REQUIRE(c->n_effects < c->cap_effects);
    e = &c->effects[c->n_effects++];
    *e = (struct fl_effect){.type = type, .client = FL__NONE};
    e->round = c->round.round != 0 ? c->round.round : c->committed + 1;
    e->attempt = c->round.round != 0 ? c->round.attempt : c->attempt;
    e->size = c->round.size;
    e->epoch = c->clients.epoch;
    e->phase = (enum fl_phase)c->sm.state;
    return e;
}

struct fl_effect *fl__coord_effect_for(struct fl_coord *c, enum fl_effect_type type,
                                       uint32_t client)
{
    struct fl_effect *e = fl__coord_emit(c, type);

    e->client = client;
    return e;
}

const char *fl__coord_vtext(struct fl_coord *c, const char *fmt, va_list ap)
{
    char *text;

    if (c->n_texts == FL__TEXTS) {
        return "(no room for the text)";
    }
    text = c->texts[c->n_texts++];
    (void)vsnprintf(text, FL__TEXT_SIZE, fmt, ap);
    return text;
}

const char *fl__coord_text(struct fl_coord *c, const char *fmt, ...)
{
    const char *text;
    va_list ap;

    va_start(ap, fmt);
    text = fl__coord_vtext(c, fmt, ap);
    va_end(ap);
    return text;
}

void fl__coord_trace(struct fl_coord *c, const char *fmt, ...)
{
    struct fl_effect *e = fl__coord_emit(c, FL_EFF_TRACE);
    va_list ap;

    va_start(ap, fmt);
    e->text = fl__coord_vtext(c, fmt, ap);
    va_end(ap);
}

void fl__coord_detail(struct fl_coord *c, const char *fmt, ...)
{
    struct fl_effect *e = fl__coord_emit(c, FL_EFF_TRACE);
    va_list ap;

    va_start(ap, fmt);
    e->text = fl__coord_vtext(c, fmt, ap);
    va_end(ap);
    e->detail = true;
}

void fl__coord_event(struct fl_coord *c, enum fl_log_event event, bool warning, const char *fmt,
                     ...)
{
    struct fl_effect *e = fl__coord_emit(c, FL_EFF_TRACE);
    va_list ap;

    va_start(ap, fmt);
    e->text = fl__coord_vtext(c, fmt, ap);
    va_end(ap);
    e->warning = warning;
    e->event = event;
}

void fl__coord_warn(struct fl_coord *c, const char *fmt, ...)
{
    struct fl_effect *e = fl__coord_emit(c, FL_EFF_TRACE);
    va_list ap;

    va_start(ap, fmt);
    e->text = fl__coord_vtext(c, fmt, ap);
    va_end(ap);
    e->warning = true;
}

uint64_t fl__coord_after(const struct fl_coord *c, uint64_t span_ms)
{
    return span_ms >= FL__NEVER - c->now_ms ? FL__NEVER : c->now_ms + span_ms;
}

uint64_t fl__coord_backoff(const struct fl_coord *c, unsigned n_failed)
{
    uint64_t first = c->conf.retry_ms > 0 ? c->conf.retry_ms : 1;
    const struct fl_backoff rule = {
        .first_ms = first,
        .cap_ms = first > UINT64_MAX / FL__BACKOFF_MOST ? first : first * FL__BACKOFF_MOST,
        .factor = 2};

    return fl_backoff_base(&rule, n_failed);
}

void fl__coord_work(struct fl_coord *c, enum fl__work_kind kind)
{
    struct fl__round *r = &c->round;
    struct fl_effect *e;

    if (c->work.kind != kind) {
        c->work = (struct fl__work){.kind = kind};
    }
    c->work.retry_ms = 0;
    c->work.seq = ++c->seq;
    switch (kind) {
    case FL__WORK_SELECTION:
        e = fl__coord_emit(c, FL_EFF_PERSIST_SELECTION);
        e->parts = r->parts;
        e->n_parts = r->n;
        e->clients = r->records;
        e->n_clients = r->n_records;
        e->expected = c->clients.n_members;
        break;
    case FL__WORK_PLAN:
        e = fl__coord_emit(c, FL_EFF_PERSIST_PLAN);
        e->parts = r->parts;
        e->n_parts = r->n;
        break;
    case FL__WORK_AGGREGATE:
        e = fl__coord_emit(c, FL_EFF_AGGREGATE);
        e->parts = r->listed;
        e->n_parts = r->n_listed;
        e->plateau = c->plateau.round;
        e->draw = fl__coord_draw(c);
        e->want_distance = fl_strategy_distance(c->conf.strategy) == FL_DISTANCE_NEW;
        break;
    case FL__WORK_EVALUATE:
        e = fl__coord_emit(c, FL_EFF_EVALUATE);
        break;
    case FL__WORK_COMMIT:
        e = fl__coord_emit(c, FL_EFF_COMMIT);
        e->record = &r->rec;
        e->parts = r->parts;
        e->n_parts = r->n;
        e->clients = r->records;
        e->n_clients = r->n_records;
        e->evals = c->clients.evals;
        e->n_evals = fl__coord_list_evals(c);
        break;
    case FL__WORK_CLOSE:
        /* No participants: the previous attempt has ended. */
        e = fl__coord_emit(c, FL_EFF_PERSIST_SELECTION);
        e->attempt = c->attempt;
        e->expected = c->clients.n_members;
        if (fl__coord_round_drawn(c)) {
            e->ended = r->parts;
            e->n_ended = r->n;
            e->text = c->abort_reason;
        }
        break;
    case FL__WORK_NONE:
    default:
        return;
    }
    e->seq = c->work.seq;
}

void fl__coord_work_done(struct fl_coord *c)
{
    c->work = (struct fl__work){.kind = FL__WORK_NONE};
}

/* The server's own work failed (disk full, out of memory): it is retried. */
void fl__coord_work_failed(struct fl_coord *c, const char *reason)
{
    uint64_t span;

    c->work.n_failed++;
    c->work.seq = 0;
    span = fl__coord_backoff(c, c->work.n_failed);
    c->work.retry_ms = fl__coord_after(c, span);
    (void)fl__coord_clean(c->work.reason, sizeof(c->work.reason), reason);
    fl__coord_trace(c, "round %" PRIu64 ": %s failed: %s, retrying in %" PRIu64 " ms",
                    c->committed + 1, fl_sm_name(&c->sm), c->work.reason, span);
}

const char *fl__coord_clean(char *out, size_t size, const char *text)
{
    return fl_str_clean(fl_str_ends(out, size, text));
}

void fl__names_add(struct fl__names *names, const char *name)
{
    names->total++;
    if (names->shown < 4 && names->used + strlen(name) + 32 < sizeof(names->text)) {
        names->used +=
            (size_t)snprintf(names->text + names->used, sizeof(names->text) - names->used, "%s%s",
                             names->shown > 0 ? ", " : "", name);
        names->shown++;
    }
}

const char *fl__names_text(struct fl__names *names)
{
    if (names->shown < names->total) {
        (void)snprintf(names->text + names->used, sizeof(names->text) - names->used, "%s%zu more",
                       names->shown > 0 ? " and " : "", names->total - names->shown);
    }
    return names->text;
}
