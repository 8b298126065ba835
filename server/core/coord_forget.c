/*
 * Who is not known any more: forgotten by the operator, away for longer than
 * `forget_after_ms`, or one too many of those that never took part.
 *
 * The name means nobody at once: who comes under it again is new and gets another number,
 * also while its old part in the open round is still there. That part is lost, unless its
 * update was accepted: then it counts, as was promised. Last the record goes off the disk, and
 * the number is free when that is done and the caller has released it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "server/core/coord_impl.h"

/* Clients that were selected and never counted: so many of those that are away are kept, for the
   operator to see what becomes of them. */
#define FL__STRANGERS 1024

void fl__coord_forget(struct fl_coord *c, uint32_t client, const char *why)
{
    struct fl__clients *t = &c->clients;
    struct fl__client *live = &t->live[client];

    if (live->gone) {
        return;
    }
    fl__coord_drop(c, client, why);
    if (!live->recorded) {
        return;
    }
    if (t->recs[client].counted_round != 0) {
        c->departed++;
    }
    live->next_grave = FL__NONE;
    if (t->first_grave != FL__NONE) {
        t->live[t->last_grave].next_grave = client;
    } else {
        t->first_grave = client;
    }
    t->last_grave = client;
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
    uint64_t from = list->n > 0 ? c->clients.live[list->first].age_from_ms : 0;

    return limit != 0 && list->n > 0 && from <= c->wall_ms && c->wall_ms - from >= limit;
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

/* Those that are being buried now and were counted. */
static uint64_t counted(const struct fl__clients *t)
{
    uint64_t n = 0;
    size_t i;

    for (i = 0; i < t->n_buried; i++) {
        n += t->buried[i].counted_round != 0;
    }
    return n;
}

/*
 * Not while a commit is on its way: it may write such a record again. The record of a client
 * that is in the open round stays until that is over: parts on disk belong to one.
 */
void fl__coord_bury(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    uint32_t client = t->first_grave;
    uint32_t kept_first = FL__NONE;
    uint32_t kept_last = FL__NONE;
    struct fl_effect *e;

    if (client == FL__NONE || t->burying || c->now_ms < t->bury_ms ||
        c->work.kind == FL__WORK_COMMIT) {
        return;
    }
    t->n_buried = 0;
    while (client != FL__NONE && t->n_buried < FL__BURY) {
        uint32_t next = t->live[client].next_grave;

        if (t->live[client].part == FL__NONE) {
            t->buried[t->n_buried++] = t->recs[client];
        } else {
            t->live[client].next_grave = kept_first;
            kept_last = kept_first == FL__NONE ? client : kept_last;
            kept_first = client;
        }
        client = next;
    }
    t->first_grave = client;
    if (kept_first != FL__NONE) {
        t->live[kept_last].next_grave = client;
        t->first_grave = kept_first;
        t->last_grave = client == FL__NONE ? kept_last : t->last_grave;
    }
    if (t->n_buried == 0) {
        return;
    }
    t->burying = true;
    e = fl__coord_emit(c, FL_EFF_FORGET_CLIENTS);
    e->seq = fl__coord_pend(c, FL__PENDING_FORGET, FL__NONE);
    e->clients = t->buried;
    e->n_clients = t->n_buried;
    e->departed = c->departed_on_disk + counted(t);
}

void fl__coord_buried(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    size_t i;

    c->departed_on_disk += counted(t);
    t->burying = false;
    t->bury_ms = 0;
    for (i = 0; i < t->n_buried; i++) {
        t->live[t->buried[i].id].recorded = false;
        fl__clients_recycle(t, t->buried[i].id);
    }
}

void fl__coord_failed_to_bury(struct fl_coord *c, const char *reason)
{
    struct fl__clients *t = &c->clients;
    char clean[FL__CLEAN_SIZE];
    size_t i;

    t->burying = false;
    t->bury_ms = fl__coord_after(c, fl__coord_backoff(c, 1));
    for (i = t->n_buried; i > 0; i--) {
        uint32_t client = t->buried[i - 1].id;

        t->live[client].next_grave = t->first_grave;
        t->last_grave = t->first_grave == FL__NONE ? client : t->last_grave;
        t->first_grave = client;
    }
    fl__coord_trace(c, "%zu forgotten clients are still on disk: %s", t->n_buried,
                    fl__coord_clean(clean, sizeof(clean), reason));
}
