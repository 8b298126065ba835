/*
 * What the clients of a round are sent: the task, ACCEPTED or DISMISSED, and after a reconnect
 * whichever of them fits. On the thread of the coordinator.
 */
#include <string.h>

#include "server/core/coord_impl.h"

void fl__coord_task(struct fl_coord *c, size_t i)
{
    const struct fl_participant_rec *part = &c->round.parts[i];
    const char *name = fl__coord_name(c, part->client);
    struct fl_effect *e = fl__coord_effect_for(c, FL_EFF_TASK, part->client);
    struct fl_rng rng;

    /* Keyed by name, not by number: the seed of a client does not depend on the order of
       connections. */
    fl_rng_key(&rng, c->conf.seed, FL_RNG_BATCH, e->round, fl_hash64(name, strlen(name)));
    e->task.seed = fl_rng_u64(&rng);
    fl_rng_key(&rng, c->conf.seed, FL_RNG_BATCH, 0, fl_hash64(name, strlen(name)));
    e->task.order_seed = fl_rng_u64(&rng);
    e->task.key = (struct fl_round_key){e->round, e->attempt};
    e->task.counted = (struct fl_round_key){c->clients.recs[part->client].counted_round,
                                            c->clients.recs[part->client].counted_attempt};
    e->task.learning_rate = fl_coord_learning_rate(&c->conf, e->round);
    e->task.n_selected = e->size.selected;
    e->task.population = e->size.population;
    e->task.epoch = e->size.epoch;
    e->task.draw = fl__coord_draw(c).number;
    e->task.deadline_ms = c->round.deadline_ms == FL__NEVER || c->round.deadline_ms < c->now_ms
                              ? c->conf.upload_ms
                              : c->round.deadline_ms - c->now_ms;
    e->units = fl__coord_has_feedback(c) ? NULL : part->units;
    e->personal_model = fl__coord_has_personal_model(c, part->client);
}

void fl__coord_accepted(struct fl_coord *c, size_t i)
{
    uint32_t client = c->round.parts[i].client;
    struct fl__client *live = &c->clients.live[client];

    live->accepted_round = c->round.round;
    live->accepted_attempt = c->round.attempt;
    if (live->connected) {
        (void)fl__coord_effect_for(c, FL_EFF_ACCEPTED, client);
    }
}

bool fl__coord_empty_confirmed(const struct fl_coord *c)
{
    if (c->sm.state == FL_PHASE_UPLOADING) {
        /* Backfill may still ask it for the units of a lost uploader. */
        return !c->conf.backfill || !fl__coord_has_feedback(c);
    }
    return c->sm.state != FL_PHASE_PLANNING;
}

/* Answer about a round that may not be the open one. */
static void send_answer(struct fl_coord *c, enum fl_effect_type type, uint32_t client,
                        uint64_t round, uint32_t attempt)
{
    if (c->clients.live[client].connected) {
        struct fl_effect *e = fl__coord_effect_for(c, type, client);

        e->round = round;
        e->attempt = attempt;
    }
}

uint32_t fl__coord_participant(struct fl_coord *c, uint32_t client, uint64_t round,
                               uint32_t attempt)
{
    const struct fl__round *r = &c->round;
    uint32_t i;

    if (fl_coord_client(c, client) == NULL) {
        return FL__NONE;
    }
    fl__clients_seen(c, client);
    i = c->clients.live[client].part;
    if (i != FL__NONE && r->round == round && r->attempt == attempt) {
        if (r->closing) {
            return FL__NONE; /* It is answered once that is durable. */
        }
        if (r->parts[i].state != FL_PARTICIPANT_LOST &&
            r->parts[i].state != FL_PARTICIPANT_REJECTED) {
            return i;
        }
    }
    send_answer(
        c, fl__coord_was_accepted(c, client, round, attempt) ? FL_EFF_ACCEPTED : FL_EFF_DISMISSED,
        client, round, attempt);
    return FL__NONE;
}

void fl__coord_rejoin(struct fl_coord *c, uint32_t client)
{
    const struct fl__client *live = &c->clients.live[client];
    uint32_t i = live->part;

    if (c->sm.state == FL_PHASE_STOPPED || c->sm.state == FL_PHASE_DRAINING) {
        (void)fl__coord_disconnect(c, client);
        return;
    }
    if (i == FL__NONE) {
        if (live->accepted_round != 0) { /* It may have missed ACCEPTED. */
            send_answer(c, FL_EFF_ACCEPTED, client, live->accepted_round, live->accepted_attempt);
        }
        return;
    }
    if (c->round.closing || c->sm.state == FL_PHASE_SELECTING || c->sm.state == FL_PHASE_IDLE) {
        return;
    }
    switch (c->round.parts[i].state) {
    case FL_PARTICIPANT_SELECTED:
    case FL_PARTICIPANT_REPORTED:
    case FL_PARTICIPANT_PLANNED:
        fl__coord_task(c, i);
        break;
    case FL_PARTICIPANT_EMPTY:
        if (!fl__coord_empty_confirmed(c)) {
            fl__coord_task(c, i);
            break;
        }
        fl__coord_accepted(c, i);
        break;
    case FL_PARTICIPANT_ACCEPTED:
        fl__coord_accepted(c, i);
        break;
    case FL_PARTICIPANT_REJECTED:
    case FL_PARTICIPANT_LOST:
        (void)fl__coord_participant(c, client, c->round.round, c->round.attempt);
        break;
    }
}
