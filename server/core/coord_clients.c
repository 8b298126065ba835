/* The table of clients: numbers by first contact, order by name. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/core/coord_impl.h"

#define FL__CLIENTS_FIRST 16
/* Names that nobody asked for cost memory: a limit where the operator set none. */
#define FL__CLIENTS_LIMIT 100000

static int grow(void **array, size_t n, size_t size)
{
    void *grown = realloc(*array, n * size);

    if (grown == NULL) {
        return FL_ENOMEM;
    }
    *array = grown;
    return FL_OK;
}

#define GROW(field)                                \
    do {                                           \
        void *p = t->field;                        \
        int rv = grow(&p, cap, sizeof(*t->field)); \
        t->field = p;                              \
        if (rv != FL_OK) {                         \
            return rv;                             \
        }                                          \
    } while (0)

int fl__clients_reserve(struct fl__clients *t, size_t n)
{
    size_t cap = t->cap;

    if (n <= cap) {
        return FL_OK;
    }
    cap = n + n / 2 + FL__CLIENTS_FIRST;
    GROW(recs);
    GROW(live);
    GROW(written);
    GROW(order);
    GROW(scores);
    GROW(samples);
    GROW(distance);
    GROW(index);
    GROW(who);
    t->cap = cap;
    return FL_OK;
}

void fl__clients_done(struct fl__clients *t)
{
    free(t->recs);
    free(t->live);
    free(t->written);
    free(t->order);
    free(t->scores);
    free(t->samples);
    free(t->distance);
    free(t->index);
    free(t->who);
}

/* Where `name` is or belongs in the order. */
static size_t position(const struct fl__clients *t, const char *name)
{
    size_t low = 0;
    size_t high = t->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (strcmp(t->recs[t->order[mid]].name, name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

uint32_t fl__clients_find(const struct fl__clients *t, const char *name)
{
    size_t at = position(t, name);

    return at < t->n && strcmp(t->recs[t->order[at]].name, name) == 0 ? t->order[at] : FL__NONE;
}

uint32_t fl__clients_add(struct fl__clients *t, const char *name)
{
    size_t at = position(t, name);
    uint32_t id = (uint32_t)t->n;

    FL_REQUIRE(t->n < t->cap);
    (void)memmove(&t->order[at + 1], &t->order[at], (t->n - at) * sizeof(*t->order));
    t->order[at] = id;
    t->recs[id] = (struct fl_client_rec){.id = id};
    (void)snprintf(t->recs[id].name, sizeof(t->recs[id].name), "%s", name);
    t->live[id] = (struct fl__client){.part = FL__NONE, .lost_ms = FL__NEVER};
    t->n++;
    return id;
}

bool fl__coord_was_accepted(const struct fl_coord *c, uint32_t client, uint64_t round,
                            uint32_t attempt)
{
    const struct fl__client *live = &c->clients.live[client];

    return round != 0 && live->accepted_round == round && live->accepted_attempt == attempt;
}

const char *fl__coord_name(const struct fl_coord *c, uint32_t client)
{
    return c->clients.recs[client].name;
}

void fl__coord_persist_client(struct fl_coord *c, uint32_t client)
{
    struct fl__client *live = &c->clients.live[client];
    struct fl_effect *e;

    /* One write of a record at a time also bounds what a flapping client costs. While a commit
       is on its way records say already what only holds with it. */
    live->dirty =
        live->persist_seq != 0 || client > c->clients.n_recorded || c->work.kind == FL__WORK_COMMIT;
    if (live->dirty) {
        return;
    }
    live->persist_seq = fl__coord_pend(c, FL__PENDING_CLIENT, client);
    e = fl__coord_tell(c, FL_EFF_PERSIST_CLIENT, client);
    e->seq = live->persist_seq;
    c->clients.written[client] = c->clients.recs[client];
    e->clients = &c->clients.written[client];
    e->n_clients = 1;
}

void fl__coord_persist_dirty(struct fl_coord *c)
{
    uint32_t i;

    c->clients.retry_ms = FL__NEVER;
    for (i = 0; i < c->clients.n; i++) {
        if (c->clients.live[i].dirty) {
            fl__coord_persist_client(c, i);
        }
    }
}

static bool is_alive(const struct fl_coord *c, uint32_t client)
{
    return c->clients.live[client].connected && client < c->clients.n_recorded &&
           c->clients.recs[client].samples > 0;
}

void fl__coord_client_persisted(struct fl_coord *c, uint32_t client)
{
    struct fl__clients *t = &c->clients;

    t->live[client].persist_seq = 0;
    if (client == t->n_recorded) {
        t->n_recorded++;
        t->n_alive += is_alive(c, client);
        if (client + 1 < t->n && t->live[client + 1].dirty) {
            fl__coord_persist_client(c, client + 1);
        }
    }
    if (t->live[client].dirty) {
        fl__coord_persist_client(c, client);
    }
}

void fl__coord_client_failed_to_persist(struct fl_coord *c, uint32_t client, const char *reason)
{
    uint64_t again = fl__coord_after(c, fl__coord_backoff(c, 1));
    char clean[FL__CLEAN_SIZE];

    c->clients.live[client].persist_seq = 0;
    c->clients.live[client].dirty = true;
    c->clients.retry_ms = again < c->clients.retry_ms ? again : c->clients.retry_ms;
    fl__coord_trace(c, "client '%s' could not be recorded: %s", fl__coord_name(c, client),
                    fl__coord_clean(clean, sizeof(clean), reason));
}

/* A client that goes is not waited for with its evaluation. */
static void forget_evaluation(struct fl_coord *c, uint32_t client)
{
    if (c->clients.live[client].asked) {
        c->clients.live[client].asked = false;
        c->round.n_asked--;
    }
}

static void refuse(struct fl_coord *c, const char *name, const char *reason)
{
    char clean[FL_NAME_MAX];
    struct fl_effect *e;

    fl__coord_trace(c, "client '%s' is not admitted: %s",
                    fl__coord_clean(clean, sizeof(clean), name), reason);
    e = fl__coord_emit(c, FL_EFF_CLIENT_ID);
    e->text = reason;
}

void fl__coord_joined(struct fl_coord *c, const struct fl_event *ev)
{
    const char *name = ev->u.joined.name;
    size_t limit = c->conf.max_clients != 0 ? c->conf.max_clients : FL__CLIENTS_LIMIT;
    uint32_t id = fl__clients_find(&c->clients, name);
    bool known = id != FL__NONE;
    struct fl_client_rec *rec;

    if (!known && (!fl_name_valid(name) || c->clients.n >= limit)) {
        refuse(c, name, c->clients.n >= limit ? "too many clients" : "bad name");
        return;
    }
    if (!known) {
        id = fl__clients_add(&c->clients, name);
    }
    rec = &c->clients.recs[id];
    forget_evaluation(c, id);
    c->clients.n_alive -= is_alive(c, id);
    c->clients.live[id].connected = true;
    rec->samples = ev->u.joined.samples;
    c->clients.n_alive += is_alive(c, id);
    c->clients.live[id].evaluation_samples = ev->u.joined.evaluation_samples;
    c->clients.live[id].evaluates = ev->u.joined.evaluation_samples > 0;
    if (ev->u.joined.agent != NULL) {
        (void)fl__coord_clean(rec->agent, sizeof(rec->agent), ev->u.joined.agent);
    }
    rec->last_seen_ms = ev->wall_ms;
    fl__coord_trace(c, "client '%s' %s, %" PRIu64 " samples", name, known ? "is back" : "is new",
                    rec->samples);
    if (c->conf.evaluate_clients && c->conf.evaluate_every != 0 && rec->samples > 0 &&
        !c->clients.live[id].evaluates)
    {
        fl__coord_trace(c,
                        "client '%s' has told of no test samples: it is not asked to evaluate, "
                        "what its reports tell is shown as 'received'",
                        name);
    }
    fl__coord_persist_client(c, id);
    (void)fl__coord_tell(c, FL_EFF_CLIENT_ID, id);
    fl__coord_welcome(c, id);
}

void fl__coord_lost(struct fl_coord *c, uint32_t client)
{
    struct fl__client *live;
    uint64_t give_up;

    if (client >= c->clients.n || !c->clients.live[client].connected) {
        return;
    }
    live = &c->clients.live[client];
    forget_evaluation(c, client);
    c->clients.n_alive -= is_alive(c, client);
    live->connected = false;
    live->lost_ms = c->now_ms;
    c->clients.recs[client].last_seen_ms = c->wall_ms;
    fl__coord_trace(c, "client '%s' disconnected", fl__coord_name(c, client));
    give_up = fl__coord_after(c, c->conf.lost_grace_ms);
    if (live->part != FL__NONE && give_up < c->round.grace_ms) {
        c->round.grace_ms = give_up;
    }
}
