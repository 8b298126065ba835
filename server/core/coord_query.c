/* Read-only queries about the state: phase, deadline, clients, and whether a client may upload.
   On the thread of the coordinator; nothing here changes it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

static uint64_t query_earlier_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t future_ms(const struct fl_coord *c, uint64_t at)
{
    return at > c->now_ms ? at : FL__NEVER;
}

uint64_t fl_coord_deadline(const struct fl_coord *c)
{
    const struct fl__round *r = &c->round;
    uint64_t at = c->work.retry_ms != 0 ? c->work.retry_ms : FL__NEVER;

    if (c->stopping) { /* Only running writes are awaited. */
        return FL__NEVER;
    }

    if (c->clients.first_deletion != FL__NONE && c->work.kind != FL__WORK_COMMIT) {
        at = query_earlier_ms(at, future_ms(c, c->clients.deletion_ms));
    }
    if (c->pause.dirty && c->pause.seq == 0) {
        at = query_earlier_ms(at, future_ms(c, c->pause.retry_ms));
    }
    at = query_earlier_ms(at, future_ms(c, fl__quarantine_due(c)));
    switch ((enum fl_phase)c->sm.state) {
    case FL_PHASE_IDLE:
        if (c->started && !r->closing && c->clients.n_alive >= fl__coord_need(c)) {
            at = query_earlier_ms(
                at, query_earlier_ms(future_ms(c, c->not_before_ms), future_ms(c, c->settle_ms)));
            at = query_earlier_ms(at, fl__eligible_due(c));
        }
        break;
    case FL_PHASE_TRAINING:
    case FL_PHASE_UPLOADING:
        if (c->work.kind == FL__WORK_NONE) {
            at = query_earlier_ms(
                at, query_earlier_ms(query_earlier_ms(r->deadline_ms, r->grace_ms),
                                     query_earlier_ms(r->store_retry_ms, r->quiet_ms)));
        }
        break;
    case FL_PHASE_EVALUATING:
        at = query_earlier_ms(at, r->deadline_ms);
        break;
    case FL_PHASE_SELECTING:
    case FL_PHASE_PLANNING:
    case FL_PHASE_AGGREGATING:
    case FL_PHASE_COMMITTING:
    case FL_PHASE_PAUSED:
    case FL_PHASE_DRAINING:
    case FL_PHASE_STOPPED:
    case FL_PHASE_COUNT:
        break;
    }
    return at;
}

enum fl_phase fl_coord_phase(const struct fl_coord *c)
{
    return (enum fl_phase)c->sm.state;
}

uint64_t fl_coord_round(const struct fl_coord *c)
{
    return c->committed + 1;
}

uint32_t fl_coord_attempt(const struct fl_coord *c)
{
    return c->round.round != 0 && !c->round.closing ? c->round.attempt : c->attempt;
}

uint32_t fl_coord_aborts(const struct fl_coord *c)
{
    return c->n_aborts;
}

uint64_t fl_coord_committed(const struct fl_coord *c)
{
    return c->committed;
}

void fl_coord_count(const struct fl_coord *c, struct fl_client_counts *ret)
{
    const struct fl__clients *t = &c->clients;
    size_t connected = t->connected.n;
    size_t others = t->names.n;
    size_t unavailable = t->n_unavailable;
    uint32_t client;
    size_t i;

    *ret = (struct fl_client_counts){.quarantined = t->quarantined.n};
    others -= t->quarantined.n;
    for (i = 0, client = t->quarantined.first; i < t->quarantined.n; i++) {
        connected -= t->live[client].connected;
        client = t->live[client].next;
    }
    for (i = 0; !c->round.closing && i < c->round.n; i++) {
        const struct fl_participant_rec *part = &c->round.parts[i];

        client = part->client;
        if (fl_coord_client(c, client) == NULL || fl__clients_quarantined(t, client)) {
            continue;
        }
        ret->parts[part->state]++;
        connected -= t->live[client].connected;
        unavailable -= fl__clients_unavailable(t, client);
        others--;
    }
    connected = connected < others ? connected : others;
    ret->unavailable = unavailable;
    ret->idle = connected - unavailable;
    ret->disconnected = others - connected;
}

size_t fl_coord_numbers(const struct fl_coord *c)
{
    return c->clients.n;
}

uint32_t fl_coord_find(const struct fl_coord *c, const char *name)
{
    return fl__clients_find(&c->clients, name);
}

size_t fl_coord_after_name(const struct fl_coord *c, const char *after, uint32_t *out, size_t max)
{
    struct fl_order_at at = fl_order_seek(&c->clients.names, c->clients.recs, after);
    size_t n = 0;
    uint32_t client;

    while (n < max && (client = fl_order_next(&c->clients.names, &at)) != FL_ORDER_NONE) {
        out[n++] = client;
    }
    return n;
}

size_t fl_coord_n_known(const struct fl_coord *c)
{
    return c->clients.names.n;
}

size_t fl_coord_n_connected(const struct fl_coord *c)
{
    return c->clients.connected.n;
}

uint64_t fl_coord_up_ms(const struct fl_coord *c)
{
    return c->up_ms;
}

const struct fl_client_rec *fl_coord_part_client(const struct fl_coord *c, uint32_t client)
{
    return fl__clients_used(&c->clients, client) ? &c->clients.recs[client] : NULL;
}

bool fl_coord_available(const struct fl_coord *c, uint32_t client)
{
    return !fl__clients_used(&c->clients, client) || !c->clients.live[client].connected ||
           !c->clients.live[client].unavailable;
}

bool fl_coord_unfit(const struct fl_coord *c, uint32_t client)
{
    return fl__clients_used(&c->clients, client) && c->clients.live[client].unfit;
}

const struct fl_client_rec *fl_coord_client(const struct fl_coord *c, uint32_t client)
{
    return fl__clients_used(&c->clients, client) && !c->clients.live[client].removed
               ? &c->clients.recs[client]
               : NULL;
}

double fl_coord_score(const struct fl_coord *c, uint32_t client)
{
    const struct fl_client_rec *rec = fl_coord_client(c, client);

    return rec != NULL && rec->scored && c->clients.sums.scores > 0.0
               ? rec->score / c->clients.sums.scores
               : 0.0;
}

const struct fl_participant_rec *fl_coord_part(const struct fl_coord *c, uint32_t client)
{
    uint32_t i = fl__clients_used(&c->clients, client) ? c->clients.live[client].part : FL__NONE;

    return i != FL__NONE && !c->round.closing ? &c->round.parts[i] : NULL;
}

bool fl_coord_blameless(const struct fl_coord *c, uint32_t client)
{
    const struct fl_participant_rec *part = fl_coord_part(c, client);

    return part != NULL && part->state == FL_PARTICIPANT_LOST &&
           c->round.live[part - c->round.parts].blameless;
}

int fl_coord_may_push(const struct fl_coord *c, uint32_t client, uint64_t round, uint32_t attempt,
                      const uint8_t **ret_units, struct fl_err *err)
{
    const struct fl_participant_rec *part = fl_coord_part(c, client);

    if (fl_coord_client(c, client) == NULL) {
        return fl_err_set(err, FL_ESTATE, "upload refused: unknown client");
    }
    if (fl__coord_was_accepted(c, client, round, attempt)) {
        return fl_err_set(err, FL_EEXIST,
                          "round %" PRIu64 " attempt %" PRIu32 " was already accepted", round,
                          attempt);
    }
    if (c->round.round != round || c->round.attempt != attempt || c->round.closing) {
        return fl_err_set(err, FL_ESTATE,
                          "upload refused: round %" PRIu64 " attempt %" PRIu32 " is not open",
                          round, attempt);
    }
    if (part == NULL) {
        return fl_err_set(err, FL_ESTATE,
                          "upload refused: the client was not selected in round %" PRIu64, round);
    }
    switch (part->state) {
    case FL_PARTICIPANT_ACCEPTED:
        return FL_EEXIST;
    case FL_PARTICIPANT_EMPTY:
        return fl_err_set(err, FL_ESTATE, "upload refused: none is asked of this client");
    case FL_PARTICIPANT_REJECTED:
        return fl_err_set(err, FL_ESTATE, "upload refused: the client was rejected in this round");
    case FL_PARTICIPANT_LOST:
        return fl_err_set(err, FL_ESTATE,
                          "upload refused: the client timed out or failed in this round, which "
                          "continues without it");
    case FL_PARTICIPANT_SELECTED:
    case FL_PARTICIPANT_REPORTED:
        if (fl__coord_has_feedback(c)) {
            return fl_err_set(err, FL_ESTATE, "upload refused: the upload plan does not exist yet");
        }
        break;
    case FL_PARTICIPANT_PLANNED:
        break;
    }
    if ((c->sm.state != FL_PHASE_TRAINING && c->sm.state != FL_PHASE_UPLOADING) ||
        c->work.kind == FL__WORK_PLAN)
    {
        return fl_err_set(err, FL_ESTATE, "upload refused: the round is %s", fl_sm_name(&c->sm));
    }
    *ret_units = part->units;
    return FL_OK;
}
