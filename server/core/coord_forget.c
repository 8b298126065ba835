/*
 * Forgetting of clients: by the operator, after `forget_after_ms` without a connection, or when too
 * many clients never took part. On the thread of the coordinator; the effect FORGET_CLIENTS deletes
 * the records.
 *
 * The name is free at once: a client that connects under it is new and gets another number, even
 * while its old part in the open round remains. That part is lost, unless its update was accepted:
 * then it counts, as promised. The record is deleted from disk last; the number is free when that
 * is done and the caller has released it. Participants on disk refer to a record: until the open
 * round has ended, the record of a forgotten participant is only marked.
 */
#include <inttypes.h>
#include <stdio.h>

#include "server/core/coord_impl.h"

/* Most clients that were selected but never counted and are disconnected; kept so that the
   operator can see their errors. */
#define FL__NEVER_COUNTED_MAX 1024

/* Put its record, which is on disk, into the deletion queue. */
static void queue_deletion(struct fl_coord *c, uint32_t client)
{
    struct fl__clients *t = &c->clients;

    t->recs[client].forgotten = true;
    if (fl__coord_is_summed(c, client)) {
        fl__coord_begin_epoch(c, "client '%s' was forgotten, and its control is in the sum",
                              fl__coord_name(c, client));
    }
    t->live[client].next_deletion = FL__NONE;
    if (t->first_deletion != FL__NONE) {
        t->live[t->last_deletion].next_deletion = client;
    } else {
        t->first_deletion = client;
    }
    t->last_deletion = client;
}

/* Its control is in the model that is being evaluated, which a commit then counts. */
static bool will_be_summed(const struct fl_coord *c, uint32_t client)
{
    const struct fl_participant_rec *part = fl_coord_part(c, client);

    return part != NULL && part->state == FL_PARTICIPANT_ACCEPTED &&
           c->sm.state == FL_PHASE_EVALUATING && fl_strategy_sums_kept(c->conf.strategy) &&
           c->round.round >= c->clients.epoch;
}

/* The epoch is written with the pause. The caller repeats the event at every start. */
void fl__coord_leave_sum(struct fl_coord *c, uint32_t client)
{
    if (fl__coord_is_summed(c, client) || will_be_summed(c, client)) {
        fl__coord_begin_epoch(c, "client '%s' was evicted, and its control is in the sum",
                              fl__coord_name(c, client));
        c->pause.dirty = true;
    }
}

void fl__coord_forget(struct fl_coord *c, uint32_t client, const char *why)
{
    struct fl__client *live = &c->clients.live[client];

    if (live->removed) {
        return;
    }
    fl__coord_drop(c, client, why);
    if (live->recorded) {
        queue_deletion(c, client);
    }
}

/* Emit FORGOTTEN if a command waits for it; `trouble` NULL: durable. */
static void forget_answer(struct fl_coord *c, uint32_t client, const char *trouble)
{
    struct fl_effect *e;

    if (c->clients.live[client].awaited) {
        c->clients.live[client].awaited = false;
        e = fl__coord_emit(c, FL_EFF_FORGOTTEN);
        e->client = client;
        e->text = trouble;
    }
}

void fl__coord_forget_for(struct fl_coord *c, uint32_t client, const char *why)
{
    fl__coord_forget(c, client, why);
    c->clients.live[client].awaited = true;
    if (!c->clients.live[client].recorded) {
        forget_answer(c, client, NULL); /* Nothing of it is on disk. */
    }
}

void fl__coord_resume_forgotten(struct fl_coord *c, uint32_t client)
{
    struct fl__client *live = &c->clients.live[client];

    fl__coord_leave(c, client);
    live->released = true; /* No connection predates this process. */
    live->marked = true;
    queue_deletion(c, client);
}

void fl__coord_released(struct fl_coord *c, uint32_t client)
{
    if (fl__clients_used(&c->clients, client) && c->clients.live[client].removed) {
        c->clients.live[client].released = true;
        fl__clients_recycle(&c->clients, client);
    }
}

static bool too_old(const struct fl_coord *c, const struct fl__list *list)
{
    uint64_t limit = c->conf.forget_after_ms;
    uint64_t seen = list->n > 0 ? c->clients.recs[list->first].seen_up_ms : 0;

    return limit != 0 && list->n > 0 && c->up_ms - seen >= limit;
}

void fl__coord_age(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    struct fl__names names = {.used = 0};

    while (c->started && names.total < FL__AGE_STEP) {
        bool old = too_old(c, &t->disconnected);
        uint32_t client = old ? t->disconnected.first : t->never_counted.first;

        if (!old && t->never_counted.n <= FL__NEVER_COUNTED_MAX && !too_old(c, &t->never_counted)) {
            break;
        }
        fl__names_add(&names, fl__coord_name(c, client));
        fl__coord_forget(c, client, "not seen for longer than round.forget_after");
    }
    if (names.total > 0) {
        fl__coord_trace(c, "forgotten, not seen for longer than round.forget_after: %s",
                        fl__names_text(&names));
    }
}

/* Can its record be deleted, or marked? */
static bool can_delete(const struct fl_coord *c, uint32_t client)
{
    const struct fl__client *live = &c->clients.live[client];

    return live->part == FL__NONE ||
           /* A selection that is being written may still write the record without the mark. */
           (!live->marked && c->work.kind != FL__WORK_SELECTION);
}

/* Not during a commit, which may write such a record again. */
void fl__coord_delete_queued(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    uint32_t client = t->first_deletion;
    uint32_t last_kept = FL__NONE; /* the last entry that stays */
    struct fl_effect *e;

    if (t->first_deletion == FL__NONE || t->deleting || c->now_ms < t->deletion_ms ||
        c->work.kind == FL__WORK_COMMIT)
    {
        return;
    }
    /* Take deletable records out of the deletion queue; the others keep their order. */
    t->n_deletions = 0;
    while (client != FL__NONE && t->n_deletions < FL__DELETE) {
        uint32_t next = t->live[client].next_deletion;

        if (!can_delete(c, client)) {
            last_kept = client;
        } else {
            t->deletions[t->n_deletions] = t->recs[client];
            t->deletions[t->n_deletions++].forgotten = t->live[client].part != FL__NONE;
            if (last_kept == FL__NONE) {
                t->first_deletion = next;
            } else {
                t->live[last_kept].next_deletion = next;
            }
            t->last_deletion = next == FL__NONE ? last_kept : t->last_deletion;
        }
        client = next;
    }
    if (t->n_deletions == 0) {
        return;
    }
    t->deleting = true;
    e = fl__coord_emit(c, FL_EFF_FORGET_CLIENTS);
    e->seq = fl__coord_pend(c, FL__PENDING_FORGET, FL__NONE);
    e->clients = t->deletions;
    e->n_clients = t->n_deletions;
}

/* Put it back at the head of the deletion queue. */
static void requeue_deletion(struct fl__clients *t, uint32_t client)
{
    t->live[client].next_deletion = t->first_deletion;
    t->last_deletion = t->first_deletion == FL__NONE ? client : t->last_deletion;
    t->first_deletion = client;
}

void fl__coord_deletion_done(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    size_t i;

    t->deleting = false;
    t->deletion_ms = 0;
    for (i = t->n_deletions; i > 0; i--) {
        uint32_t client = t->deletions[i - 1].id;

        if (t->deletions[i - 1].forgotten) {
            t->live[client].marked = true;
            requeue_deletion(t, client);
        } else {
            t->live[client].recorded = false;
            fl__clients_recycle(t, client);
        }
        forget_answer(c, client, NULL);
    }
}

void fl__coord_deletion_failed(struct fl_coord *c, const char *reason)
{
    struct fl__clients *t = &c->clients;
    char clean[FL__CLEAN_SIZE];
    const char *text = fl__coord_text(c, "%s", fl__coord_clean(clean, sizeof(clean), reason));
    size_t i;

    t->deleting = false;
    t->deletion_ms = fl__coord_after(c, fl__coord_backoff(c, 1));
    for (i = t->n_deletions; i > 0; i--) {
        requeue_deletion(t, t->deletions[i - 1].id);
        forget_answer(c, t->deletions[i - 1].id, text);
    }
    fl__coord_trace(c, "%zu forgotten clients could not be deleted from disk, retrying: %s",
                    t->n_deletions, text);
}
