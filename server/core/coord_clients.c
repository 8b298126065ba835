/*
 * The table of clients: numbers, names, lists of disconnected clients, and counts. A client's
 * number is its index; it keeps it as long as it is known, then the number may be reassigned. Order
 * is by name. The cost of an operation on one client is about the same with ten clients and with a
 * hundred thousand. On the thread of the coordinator; deciding when a client is forgotten is in
 * coord_forget.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"
#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

#define FL__CLIENTS_FIRST 16
/* last_seen_ms on disk is refreshed when it is older than this. */
#define FL__SEEN_STALE_MS UINT64_C(3600000)

int fl__clients_reserve_numbers(struct fl__clients *t, size_t n)
{
    size_t cap = n + n / 2 + FL__CLIENTS_FIRST;
    int rv;

    if (n <= t->cap) {
        return FL_OK;
    }
    rv = fl_resize(&t->recs, cap, sizeof(*t->recs));
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_resize(&t->live, cap, sizeof(*t->live));
    if (rv != FL_OK) {
        return rv;
    }
    t->cap = cap;
    return FL_OK;
}

int fl__clients_reserve(struct fl__clients *t, size_t n_parts)
{
    const struct {
        void *list;
        size_t size;
    } scratch[] = {{&t->scores, sizeof(*t->scores)},     {&t->samples, sizeof(*t->samples)},
                   {&t->distance, sizeof(*t->distance)}, {&t->index, sizeof(*t->index)},
                   {&t->chosen, sizeof(*t->chosen)},     {&t->answers, sizeof(*t->answers)},
                   {&t->capped, sizeof(*t->capped)},     {&t->evals, 2 * sizeof(*t->evals)}};
    size_t most = t->connected.n + 1 > n_parts ? t->connected.n + 1 : n_parts;
    size_t cap = most + most / 2 + FL__CLIENTS_FIRST;
    size_t i;
    int rv = fl__clients_reserve_numbers(t, t->free.n > 0 ? t->n : t->n + 1);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; most > t->cap_scratch && i < sizeof(scratch) / sizeof(scratch[0]); i++) {
        rv = fl_resize(scratch[i].list, cap, scratch[i].size);
        if (rv != FL_OK) {
            return rv;
        }
    }
    t->cap_scratch = most > t->cap_scratch ? cap : t->cap_scratch;
    rv = fl_order_reserve(&t->names);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_order_reserve(&t->connected);
}

void fl__clients_done(struct fl__clients *t)
{
    fl_order_done(&t->names);
    fl_order_done(&t->connected);
    free(t->recs);
    free(t->live);
    free(t->scores);
    free(t->samples);
    free(t->distance);
    free(t->index);
    free(t->chosen);
    free(t->capped);
    free(t->answers);
    free(t->evals);
}

uint32_t fl__clients_find(const struct fl__clients *t, const char *name)
{
    return fl_order_find(&t->names, t->recs, name);
}

bool fl__clients_used(const struct fl__clients *t, uint32_t client)
{
    return client < t->n && t->live[client].used;
}

void fl__list_add(struct fl__clients *t, struct fl__list *list, uint32_t client)
{
    struct fl__client *live = &t->live[client];

    FL_REQUIRE(live->list == NULL);
    live->list = list;
    live->next = FL__NONE;
    live->previous = list->n > 0 ? list->last : FL__NONE;
    if (list->n > 0) {
        t->live[list->last].next = client;
    } else {
        list->first = client;
    }
    list->last = client;
    list->n++;
}

void fl__list_remove(struct fl__clients *t, uint32_t client)
{
    struct fl__client *live = &t->live[client];
    struct fl__list *list = live->list;

    if (list == NULL) {
        return;
    }
    if (live->previous != FL__NONE) {
        t->live[live->previous].next = live->next;
    } else {
        list->first = live->next;
    }
    if (live->next != FL__NONE) {
        t->live[live->next].previous = live->previous;
    } else {
        list->last = live->previous;
    }
    list->n--;
    live->list = NULL;
}

uint32_t fl__clients_add(struct fl__clients *t, const char *name, uint32_t id)
{
    if (id == FL__NONE) {
        id = t->free.n > 0 ? t->free.first : (uint32_t)t->n;
    }
    FL_REQUIRE(id < t->cap);
    for (; t->n <= id; t->n++) { /* Numbers in a gap are free. */
        t->live[t->n] = (struct fl__client){.part = FL__NONE};
        fl__list_add(t, &t->free, (uint32_t)t->n);
    }
    fl__list_remove(t, id);
    t->recs[id] = (struct fl_client_rec){.id = id};
    (void)snprintf(t->recs[id].name, sizeof(t->recs[id].name), "%s", name);
    t->live[id] = (struct fl__client){.used = true, .part = FL__NONE, .lost_ms = FL__NEVER};
    fl_order_insert(&t->names, t->recs, id);
    return id;
}

void fl__clients_recycle(struct fl__clients *t, uint32_t client)
{
    struct fl__client *live = &t->live[client];

    if (live->used && live->removed && live->released && !live->recorded &&
        live->part == FL__NONE && !live->dirty && !live->unwritten)
    {
        live->used = false;
        fl__list_add(t, &t->free, client);
    }
}

bool fl__clients_quarantined(const struct fl__clients *t, uint32_t client)
{
    return t->recs[client].quarantine[0] != '\0';
}

bool fl__clients_alive(const struct fl__clients *t, uint32_t client)
{
    return t->live[client].connected && !t->live[client].unavailable &&
           t->recs[client].samples > 0 && !fl__clients_quarantined(t, client) &&
           !t->live[client].ineligible;
}

bool fl__clients_unavailable(const struct fl__clients *t, uint32_t client)
{
    return t->live[client].connected && t->live[client].unavailable &&
           !fl__clients_quarantined(t, client);
}

static bool took_part(const struct fl_client_rec *rec)
{
    return rec->counted_round != 0 || rec->n_accepted > 0;
}

static bool is_member(const struct fl__clients *t, uint32_t client)
{
    return !t->live[client].removed && t->recs[client].samples > 0 &&
           !fl__clients_quarantined(t, client) && !t->live[client].ineligible &&
           (t->live[client].connected || took_part(&t->recs[client]));
}

/* Its client state is in the server's sum. */
static bool client_is_summed(const struct fl__clients *t, uint32_t client)
{
    uint64_t counted = t->recs[client].counted_round;

    return counted != 0 && counted >= t->epoch;
}

/* A client counted in this epoch is in the server's sum, with or without data. */
static bool is_counted(const struct fl__clients *t, uint32_t client)
{
    return !t->live[client].removed &&
           (fl__clients_alive(t, client) || client_is_summed(t, client));
}

void fl__clients_uncount(struct fl__clients *t, uint32_t client)
{
    t->n_alive -= fl__clients_alive(t, client);
    t->n_unavailable -= fl__clients_unavailable(t, client);
    t->n_members -= is_member(t, client);
    t->n_counted -= is_counted(t, client);
}

void fl__clients_count(struct fl__clients *t, uint32_t client)
{
    t->n_alive += fl__clients_alive(t, client);
    t->n_unavailable += fl__clients_unavailable(t, client);
    t->n_members += is_member(t, client);
    t->n_counted += is_counted(t, client);
}

bool fl__coord_is_summed(const struct fl_coord *c, uint32_t client)
{
    return fl_strategy_sums_kept(c->conf.strategy) && client_is_summed(&c->clients, client);
}

void fl__coord_begin_epoch(struct fl_coord *c, const char *fmt, ...)
{
    struct fl__clients *t = &c->clients;
    bool open = c->round.round != 0 && !c->round.closing;
    struct fl_order_at at = {0};
    uint32_t client;
    va_list ap;

    va_start(ap, fmt);
    fl__coord_warn(c, "%s: the server's sum of client state restarts at zero with round %" PRIu64,
                   fl__coord_vtext(c, fmt, ap), (open ? c->round.round : c->committed) + 1);
    va_end(ap);
    t->epoch = (open ? c->round.round : c->committed) + 1;
    t->n_counted = 0;
    while ((client = fl_order_next(&t->names, &at)) != FL__NONE) {
        t->n_counted += is_counted(t, client);
    }
}

void fl__clients_disconnected(struct fl_coord *c, uint32_t client)
{
    struct fl__clients *t = &c->clients;

    if (fl__clients_quarantined(t, client)) {
        return; /* Staying away would end the quarantine otherwise. */
    }
    fl__list_remove(t, client);
    fl__list_add(t, took_part(&t->recs[client]) ? &t->disconnected : &t->never_counted, client);
}

void fl__clients_relist(struct fl_coord *c, uint32_t client)
{
    struct fl__clients *t = &c->clients;

    if (t->live[client].list == &t->never_counted && took_part(&t->recs[client])) {
        fl__clients_disconnected(c, client);
    }
}

void fl__clients_dirty(struct fl__clients *t, uint32_t client)
{
    struct fl__client *live = &t->live[client];

    if (live->dirty || live->removed || !live->recorded) {
        return;
    }
    live->dirty = true;
    live->next_dirty = FL__NONE;
    if (t->first_dirty != FL__NONE) {
        t->live[t->last_dirty].next_dirty = client;
    } else {
        t->first_dirty = client;
    }
    t->last_dirty = client;
}

void fl__clients_seen(struct fl_coord *c, uint32_t client)
{
    struct fl_client_rec *rec = &c->clients.recs[client];

    if (c->wall_ms >= rec->last_seen_ms + FL__SEEN_STALE_MS ||
        c->up_ms >= rec->seen_up_ms + FL__SEEN_STALE_MS)
    {
        fl__clients_dirty(&c->clients, client);
    }
    rec->last_seen_ms = c->wall_ms;
    rec->seen_up_ms = c->up_ms;
}

static void list_record(struct fl_coord *c, uint32_t client)
{
    c->round.records[c->round.n_records++] = c->clients.recs[client];
}

void fl__coord_list_records(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    size_t n = 0;
    size_t i;

    c->round.n_records = 0;
    for (i = 0; i < c->round.n; i++) {
        list_record(c, c->round.parts[i].client);
    }
    for (; n < FL__DIRTY_STEP && t->first_dirty != FL__NONE; n++) {
        uint32_t client = t->first_dirty;
        struct fl__client *live = &t->live[client];

        t->first_dirty = live->next_dirty;
        live->dirty = false;
        if (!live->removed && live->part == FL__NONE) {
            list_record(c, client);
        }
        fl__clients_recycle(t, client);
    }
}

bool fl__coord_was_accepted(const struct fl_coord *c, uint32_t client, uint64_t round,
                            uint32_t attempt)
{
    const struct fl__client *live = &c->clients.live[client];

    return round != 0 && live->accepted_round == round && live->accepted_attempt == attempt;
}

bool fl__coord_has_personal_model(const struct fl_coord *c, uint32_t client)
{
    const struct fl_client_rec *rec = &c->clients.recs[client];

    return c->conf.strategy->personal->own && rec->counted_update && rec->counted_round != 0 &&
           rec->counted_round == c->committed;
}

const char *fl__coord_name(const struct fl_coord *c, uint32_t client)
{
    return c->clients.recs[client].name;
}

bool fl_coord_connected(const struct fl_coord *c, uint32_t client)
{
    return fl__clients_used(&c->clients, client) && c->clients.live[client].connected;
}

void fl__coord_client_error(struct fl_coord *c, uint32_t client, const char *text)
{
    struct fl__round *r = &c->round;
    uint32_t i = fl__clients_used(&c->clients, client) ? c->clients.live[client].part : FL__NONE;

    if (i != FL__NONE && !r->closing) {
        r->parts[i].remark = fl_str_ends(r->remarks[i], sizeof(r->remarks[i]), text);
    }
    fl__coord_effect_for(c, FL_EFF_CLIENT_ERROR, client)->text = text;
}

bool fl__quarantine_durable(const struct fl_coord *c)
{
    return !c->clients.unwritten.running && c->clients.unwritten.first == FL__NONE;
}
