/*
 * Who is not known any more: forgotten by the operator, away for longer than
 * `forget_after_ms`, or one too many of those that never took part.
 *
 * The name means nobody at once: who comes under it again is new and gets another number,
 * also while its old part in the open round is still there. That part is lost, unless its
 * update was accepted: then it counts, as was promised. Last the record goes off the disk, and
 * the number is free when that is done and the caller has released it. Parts on disk belong to a
 * record: until the open round is over, that of a client in it is only marked.
 */
#include <inttypes.h>
#include <stdio.h>

#include "server/core/coord_impl.h"

/* Clients that were selected and never counted: so many of those that are away are kept, for the
   operator to see what becomes of them. */
#define FL__STRANGERS 1024

/* Its record, which is on disk, is to go. */
static void queue_deletion(struct fl_coord *c, uint32_t client)
{
    struct fl__clients *t = &c->clients;

    t->recs[client].forgotten = true;
    if (fl__coord_is_summed(c, client)) {
        fl__coord_begin_epoch(c, "client '%s' is gone, and its control is in the sum",
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

void fl__coord_forget(struct fl_coord *c, uint32_t client, const char *why)
{
    struct fl__client *live = &c->clients.live[client];

    if (live->gone) {
        return;
    }
    fl__coord_drop(c, client, why);
    if (live->recorded) {
        queue_deletion(c, client);
    }
}

/* Who waits for it hears of it; `trouble` NULL: it is on disk. */
static void forgotten(struct fl_coord *c, uint32_t client, const char *trouble)
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
        forgotten(c, client, NULL); /* There is nothing of it on disk. */
    }
}

void fl__coord_resume_forgotten(struct fl_coord *c, uint32_t client)
{
    struct fl__client *live = &c->clients.live[client];

    fl__coord_leave(c, client);
    live->released = true; /* No connection is older than this process. */
    live->marked = true;
    queue_deletion(c, client);
}

void fl__coord_released(struct fl_coord *c, uint32_t client)
{
    if (fl__clients_used(&c->clients, client) && c->clients.live[client].gone) {
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
        bool old = too_old(c, &t->away);
        uint32_t client = old ? t->away.first : t->strangers.first;

        if (!old && t->strangers.n <= FL__STRANGERS && !too_old(c, &t->strangers)) {
            break;
        }
        fl__names_add(&names, fl__coord_name(c, client));
        fl__coord_forget(c, client, "it was not seen for too long");
    }
    if (names.total > 0) {
        fl__coord_trace(c, "not seen for too long, forgotten: %s", fl__names_text(&names));
    }
}

/* Can its record go, or the mark be put on it? */
static bool can_delete(const struct fl_coord *c, uint32_t client)
{
    const struct fl__client *live = &c->clients.live[client];

    return live->part == FL__NONE ||
           /* A selection that is on its way may yet write the record without the mark. */
           (!live->marked && c->work.kind != FL__WORK_SELECTION);
}

/* Take those who can be buried out of the graves, others stay in their order. */
static void collect_deletions(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    uint32_t client = t->first_deletion;
    uint32_t kept = FL__NONE; /* the last one that stays */

    t->n_buried = 0;
    while (client != FL__NONE && t->n_buried < FL__DELETE) {
        uint32_t next = t->live[client].next_deletion;

        if (!can_delete(c, client)) {
            kept = client;
        } else {
            t->buried[t->n_buried] = t->recs[client];
            t->buried[t->n_buried++].forgotten = t->live[client].part != FL__NONE;
            if (kept == FL__NONE) {
                t->first_deletion = next;
            } else {
                t->live[kept].next_deletion = next;
            }
            t->last_deletion = next == FL__NONE ? kept : t->last_deletion;
        }
        client = next;
    }
}

/* Not while a commit is on its way: it may write such a record again. */
void fl__coord_delete_queued(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    struct fl_effect *e;

    if (t->first_deletion == FL__NONE || t->deleting || c->now_ms < t->deletion_ms ||
        c->work.kind == FL__WORK_COMMIT)
    {
        return;
    }
    collect_deletions(c);
    if (t->n_buried == 0) {
        return;
    }
    t->deleting = true;
    e = fl__coord_emit(c, FL_EFF_FORGET_CLIENTS);
    e->seq = fl__coord_pend(c, FL__PENDING_FORGET, FL__NONE);
    e->clients = t->buried;
    e->n_clients = t->n_buried;
}

/* Back into the graves, before the others. */
static void requeue_deletion(struct fl__clients *t, uint32_t client)
{
    t->live[client].next_deletion = t->first_deletion;
    t->last_deletion = t->first_deletion == FL__NONE ? client : t->last_deletion;
    t->first_deletion = client;
}

void fl__coord_buried(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    size_t i;

    t->deleting = false;
    t->deletion_ms = 0;
    for (i = t->n_buried; i > 0; i--) {
        uint32_t client = t->buried[i - 1].id;

        if (t->buried[i - 1].forgotten) {
            t->live[client].marked = true;
            requeue_deletion(t, client);
        } else {
            t->live[client].recorded = false;
            fl__clients_recycle(t, client);
        }
        forgotten(c, client, NULL);
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
    for (i = t->n_buried; i > 0; i--) {
        requeue_deletion(t, t->buried[i - 1].id);
        forgotten(c, t->buried[i - 1].id, text);
    }
    fl__coord_trace(c, "%zu forgotten clients are still on disk: %s", t->n_buried, text);
}
