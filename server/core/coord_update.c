/*
 * The record of a participant's update: its write, the retry after a failed one, and ACCEPTED once
 * it is durable. On the thread of the coordinator.
 */
#include "server/core/coord_impl.h"

void fl__coord_persist_update(struct fl_coord *c, size_t i)
{
    struct fl__round *r = &c->round;
    struct fl__participant *live = &r->live[i];
    struct fl_participant_rec *saved = &r->saved[i];
    struct fl_effect *e;

    *saved = r->parts[i];
    saved->upload_bytes = live->stored_bytes;
    if (saved->state != FL_PARTICIPANT_REJECTED) {
        saved->state = fl__units_empty(saved->units, c->n_units) ? FL_PARTICIPANT_EMPTY
                                                                 : FL_PARTICIPANT_ACCEPTED;
    }
    live->store_retry_ms = 0;
    live->store_seq = fl__coord_pend(c, FL__PENDING_UPDATE, saved->client);
    e = fl__coord_effect_for(c, FL_EFF_PERSIST_UPDATE, saved->client);
    e->seq = live->store_seq;
    e->parts = saved;
    e->n_parts = 1;
}

/* The record of an update is durable: only now may the client discard it. */
void fl__coord_update_persisted(struct fl_coord *c, uint32_t client, uint64_t seq)
{
    uint32_t i = c->clients.live[client].part;

    if (i == FL__NONE || c->round.live[i].store_seq != seq) {
        return;
    }
    c->round.live[i].store_seq = 0;
    c->round.parts[i].upload_bytes = c->round.saved[i].upload_bytes;
    if (c->round.parts[i].state == FL_PARTICIPANT_REJECTED) {
        return; /* It was excluded, and that is durable now. */
    }
    fl__participant_set(c, i, c->round.saved[i].state);
    fl__coord_accepted(c, i);
}

void fl__coord_update_failed(struct fl_coord *c, uint32_t client, uint64_t seq, const char *reason)
{
    uint32_t i = c->clients.live[client].part;
    char clean[FL__CLEAN_SIZE];
    uint64_t again = fl__coord_after(c, fl__coord_backoff(c, 1));

    if (i == FL__NONE || c->round.live[i].store_seq != seq) {
        return;
    }
    c->round.live[i].store_seq = 0;
    fl__coord_trace(c, "update of client '%s' could not be recorded, retrying: %s",
                    fl__coord_name(c, client), fl__coord_clean(clean, sizeof(clean), reason));
    if (c->round.expired && fl__participant_waiting(c, i))
    { /* The others are in; only this record was missing. */
        fl__participant_lose(c, i);
        return;
    }
    c->round.live[i].store_retry_ms = again;
    c->round.store_retry_ms = again < c->round.store_retry_ms ? again : c->round.store_retry_ms;
}

void fl__coord_store_retry(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t i;

    if (c->now_ms < r->store_retry_ms) {
        return;
    }
    r->store_retry_ms = FL__NEVER;
    for (i = 0; i < r->n; i++) {
        uint64_t at = r->live[i].store_retry_ms;

        if (at != 0 && c->now_ms >= at) {
            fl__coord_persist_update(c, i);
        } else if (at != 0 && at < r->store_retry_ms) {
            r->store_retry_ms = at;
        }
    }
}
