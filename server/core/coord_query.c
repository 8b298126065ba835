/* Questions about the state. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/core/coord_impl.h"

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t to_come(const struct fl_coord *c, uint64_t at)
{
    return at > c->now_ms ? at : FL__NEVER;
}

uint64_t fl_coord_deadline(const struct fl_coord *c)
{
    const struct fl__round *r = &c->round;
    uint64_t at = sooner(c->work.retry_ms != 0 ? c->work.retry_ms : FL__NEVER, c->clients.retry_ms);

    switch ((enum fl_phase)c->sm.state) {
    case FL_PHASE_IDLE:
        if (c->started && !r->closing && c->clients.n_alive >= fl__coord_need(c)) {
            at = sooner(at, sooner(to_come(c, c->not_before_ms), to_come(c, c->settle_ms)));
        }
        break;
    case FL_PHASE_TRAINING:
    case FL_PHASE_UPLOADING:
        if (c->work.kind == FL__WORK_NONE) {
            at = sooner(at, sooner(sooner(r->deadline_ms, r->grace_ms), r->store_retry_ms));
        }
        break;
    case FL_PHASE_EVALUATING:
        at = sooner(at, r->deadline_ms);
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

uint64_t fl_coord_committed(const struct fl_coord *c)
{
    return c->committed;
}

size_t fl_coord_clients(const struct fl_coord *c)
{
    return c->clients.n;
}

const struct fl_client_rec *fl_coord_client(const struct fl_coord *c, uint32_t client)
{
    return client < c->clients.n ? &c->clients.recs[client] : NULL;
}

bool fl_coord_connected(const struct fl_coord *c, uint32_t client)
{
    return client < c->clients.n && c->clients.live[client].connected;
}

const struct fl_part_rec *fl_coord_part(const struct fl_coord *c, uint32_t client)
{
    uint32_t i = client < c->clients.n ? c->clients.live[client].part : FL__NONE;

    return i != FL__NONE && !c->round.closing ? &c->round.parts[i] : NULL;
}

static int check_part(const struct fl_coord *c, const struct fl_part_rec *part, struct fl_err *err)
{
    bool feedback = fl__coord_has_feedback(c);

    switch (part->state) {
    case FL_PART_ACCEPTED:
        return FL_EEXIST;
    case FL_PART_EMPTY:
        return fl_err_set(err, FL_ESTATE, "no upload is asked of this client");
    case FL_PART_REJECTED:
        return fl_err_set(err, FL_ESTATE, "the client was rejected in this round");
    case FL_PART_LOST:
        return fl_err_set(err, FL_ESTATE, "the round goes on without this client");
    case FL_PART_SELECTED:
    case FL_PART_REPORTED:
        if (feedback) {
            return fl_err_set(err, FL_ESTATE, "the plan is not made yet");
        }
        break;
    case FL_PART_PLANNED:
        break;
    }
    if ((c->sm.state != FL_PHASE_TRAINING && c->sm.state != FL_PHASE_UPLOADING) ||
        c->work.kind == FL__WORK_PLAN)
    {
        return fl_err_set(err, FL_ESTATE, "the round is %s", fl_sm_name(&c->sm));
    }
    return FL_OK;
}

int fl_coord_may_push(const struct fl_coord *c, uint32_t client, uint64_t round, uint32_t attempt,
                      const uint8_t **ret_units, struct fl_err *err)
{
    const struct fl_part_rec *part = fl_coord_part(c, client);
    int rv;

    if (client >= c->clients.n) {
        return fl_err_set(err, FL_ESTATE, "the client is not known");
    }
    if (fl__coord_was_accepted(c, client, round, attempt)) {
        return fl_err_set(err, FL_EEXIST, "round %" PRIu64 " attempt %" PRIu32 " was accepted",
                          round, attempt);
    }
    if (c->round.round != round || c->round.attempt != attempt || c->round.closing) {
        return fl_err_set(err, FL_ESTATE, "round %" PRIu64 " attempt %" PRIu32 " is not open",
                          round, attempt);
    }
    if (part == NULL) {
        return fl_err_set(err, FL_ESTATE, "the client was not selected in round %" PRIu64, round);
    }
    rv = check_part(c, part, err);
    if (rv == FL_OK) {
        *ret_units = part->units;
    }
    return rv;
}
