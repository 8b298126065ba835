/*
 * Quarantine (docs/security.md#quarantine): a client that was rejected several times for what it
 * uploaded, or that an operator names, is not selected until it is released. On the thread of the
 * coordinator; what an offence is, is decided where it is found (coord_claim.c, coord_norm.c, the
 * validation of uploads).
 *
 * Offences and quarantine are members of the client's record, and written by an effect of their own
 * as soon as they change: with the next commit a crash would lose them, and a whole record has
 * marks that only a commit may write. Nothing waits for that write but the answer to an operator.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/quantity.h"
#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

/* Clients whose reasons the status line shows. */
#define REASONS_SHOWN 2

static const char *const offence_names[] = {[FL_OFFENCE_CLAIM] = "false claim",
                                            [FL_OFFENCE_NORM] = "update left out",
                                            [FL_OFFENCE_UPDATE] = "invalid update"};

static struct fl_client_rec *quarantine_rec(struct fl_coord *c, uint32_t client)
{
    return &c->clients.recs[client];
}

/* " or for 24h", when it also ends by itself. */
static const char *quarantine_until(const struct fl_coord *c, char *out, size_t size)
{
    static const struct fl_quantity_range times = {.kind = FL_QUANTITY_TIME, .step = 1000};
    char span[FL_QUANTITY_TEXT];

    out[0] = '\0';
    if (c->conf.quarantine_ms != 0) {
        (void)snprintf(out, size, " or for %s",
                       fl_quantity_text(&times, c->conf.quarantine_ms, span, sizeof(span)));
    }
    return out;
}

/* --- writing --- */

static void quarantine_queue(struct fl_coord *c, uint32_t client)
{
    struct fl__quarantine_writes *w = &c->clients.unwritten;
    struct fl__client *live = &c->clients.live[client];

    if (live->unwritten || live->removed) {
        return;
    }
    live->unwritten = true;
    live->next_unwritten = FL__NONE;
    if (w->first != FL__NONE) {
        c->clients.live[w->last].next_unwritten = client;
    } else {
        w->first = client;
    }
    w->last = client;
}

void fl__quarantine_write(struct fl_coord *c)
{
    struct fl__clients *t = &c->clients;
    struct fl__quarantine_writes *w = &t->unwritten;
    struct fl_effect *e;

    if (w->running || c->now_ms < w->retry_ms || w->first == FL__NONE) {
        return;
    }
    for (w->n = 0; w->first != FL__NONE && w->n < FL__QUARANTINE_STEP;) {
        uint32_t client = w->first;
        struct fl__client *live = &t->live[client];

        w->first = live->next_unwritten;
        live->unwritten = false;
        if (live->removed) {
            fl__clients_recycle(t, client);
            continue;
        }
        w->fresh[w->n] = !live->recorded;
        live->recorded = true;
        w->batch[w->n++] = t->recs[client];
    }
    if (w->n == 0) { /* The client of a command was forgotten before its quarantine was written. */
        fl__command_awaited(c, FL__COMMAND_QUARANTINE, NULL);
        return;
    }
    w->running = true;
    e = fl__coord_emit(c, FL_EFF_PERSIST_QUARANTINE);
    e->seq = fl__coord_pend(c, FL__PENDING_QUARANTINE, FL__NONE);
    e->clients = w->batch;
    e->n_clients = w->n;
}

void fl__quarantine_persisted(struct fl_coord *c)
{
    c->clients.unwritten.running = false;
    c->clients.unwritten.retry_ms = 0;
    if (fl__quarantine_durable(c)) {
        fl__command_awaited(c, FL__COMMAND_QUARANTINE, NULL);
    }
}

void fl__quarantine_failed(struct fl_coord *c, const char *reason)
{
    struct fl__quarantine_writes *w = &c->clients.unwritten;
    uint64_t span = fl__coord_backoff(c, 1);
    char clean[FL__CLEAN_SIZE];
    size_t i;

    w->running = false;
    w->retry_ms = fl__coord_after(c, span);
    for (i = 0; i < w->n; i++) {
        struct fl__client *live = &c->clients.live[w->batch[i].id];

        live->recorded = live->recorded && !(w->fresh[i] && !live->removed);
        quarantine_queue(c, w->batch[i].id);
    }
    fl__coord_trace(c,
                    "offences and quarantines of %zu clients could not be written: %s, retrying in "
                    "%" PRIu64 " ms",
                    w->n, fl__coord_clean(clean, sizeof(clean), reason), span);
    fl__command_awaited(c, FL__COMMAND_QUARANTINE, reason);
}

/* --- begin and end --- */

static void quarantine_begin(struct fl_coord *c, uint32_t client, const char *reason)
{
    struct fl_client_rec *rec = quarantine_rec(c, client);
    char until[64];

    fl__clients_uncount(&c->clients, client);
    (void)fl__coord_clean(rec->quarantine, sizeof(rec->quarantine), reason);
    fl__clients_count(&c->clients, client);
    rec->quarantined_ms = c->wall_ms;
    rec->quarantined_up_ms = c->up_ms;
    fl__list_remove(&c->clients, client);
    fl__list_add(&c->clients, &c->clients.quarantined, client);
    fl__coord_forget_evaluation(c, client);
    quarantine_queue(c, client);
    fl__coord_event(c, FL_LOG_EVENT_CLIENT_QUARANTINED, /* warning= */ true,
                    "client '%s' is quarantined until 'flctl clients release %s'%s: %s", rec->name,
                    rec->name, quarantine_until(c, until, sizeof(until)), rec->quarantine);
    if (c->clients.n_alive < fl__coord_need(c)) {
        fl__coord_warn(c,
                       "%zu connected clients are not quarantined, but %" PRIu32
                       " are needed: no round starts until one more connects or is released",
                       c->clients.n_alive, fl__coord_need(c));
    }
}

static void quarantine_end(struct fl_coord *c, uint32_t client)
{
    struct fl_client_rec *rec = quarantine_rec(c, client);

    fl__clients_uncount(&c->clients, client);
    rec->quarantine[0] = '\0';
    fl__clients_count(&c->clients, client);
    rec->quarantined_ms = rec->quarantined_up_ms = 0;
    (void)memset(rec->offences, 0, sizeof(rec->offences));
    fl__list_remove(&c->clients, client);
    if (!c->clients.live[client].connected) {
        fl__clients_disconnected(c, client);
    }
    quarantine_queue(c, client);
}

/* How long the client that was quarantined first still has to wait. */
static uint64_t first_remaining(const struct fl_coord *c)
{
    const struct fl__list *list = &c->clients.quarantined;
    uint64_t since;

    if (!c->started || c->conf.quarantine_ms == 0 || list->n == 0) {
        return FL__NEVER;
    }
    since = c->clients.recs[list->first].quarantined_up_ms;
    return c->up_ms - since < c->conf.quarantine_ms ? c->conf.quarantine_ms - (c->up_ms - since)
                                                    : 0;
}

void fl__quarantine_age(struct fl_coord *c)
{
    struct fl__names names = {.used = 0};

    while (names.total < FL__AGE_STEP && first_remaining(c) == 0) {
        uint32_t client = c->clients.quarantined.first;

        fl__names_add(&names, fl__coord_name(c, client));
        quarantine_end(c, client);
    }
    if (names.total > 0) {
        fl__coord_event(c, FL_LOG_EVENT_CLIENT_RELEASED, /* warning= */ false,
                        "released from quarantine after round.quarantine_time: %s",
                        fl__names_text(&names));
    }
}

uint64_t fl__quarantine_due(const struct fl_coord *c)
{
    const struct fl__quarantine_writes *w = &c->clients.unwritten;
    uint64_t remaining = first_remaining(c);
    uint64_t due = remaining != FL__NEVER ? fl__coord_after(c, remaining) : FL__NEVER;

    return !w->running && w->first != FL__NONE && w->retry_ms < due ? w->retry_ms : due;
}

/* --- offences --- */

/* Append it; false: the offence of this attempt is known already, and was found again. */
static bool offence_add(struct fl_client_rec *rec, const struct fl_offence *offence)
{
    struct fl_offence *list = rec->offences;
    size_t n = 0;

    while (n < FL_OFFENCES_MAX && list[n].kind != 0) {
        if (list[n].round == offence->round && list[n].attempt == offence->attempt) {
            return false;
        }
        n++;
    }
    if (n == FL_OFFENCES_MAX) {
        (void)memmove(&list[0], &list[1], (FL_OFFENCES_MAX - 1) * sizeof(*list));
        n--;
    }
    list[n] = *offence;
    return true;
}

/* The offences that count now, as "round 4 (false claim), round 7 attempt 2 (invalid update)". */
static uint32_t offences_text(const struct fl_coord *c, const struct fl_client_rec *rec, char *out,
                              size_t size)
{
    uint32_t n = 0;
    size_t used = 0;
    size_t i;

    out[0] = '\0';
    for (i = 0; i < FL_OFFENCES_MAX && rec->offences[i].kind != 0; i++) {
        const struct fl_offence *o = &rec->offences[i];
        char attempt[24] = "";

        if (c->round.round - o->round >= c->conf.quarantine_window) {
            continue;
        }
        if (o->attempt > 1) {
            (void)snprintf(attempt, sizeof(attempt), " attempt %" PRIu32, o->attempt);
        }
        used += (size_t)snprintf(out + used, size - used, "%sround %" PRIu64 "%s (%s)",
                                 n > 0 ? ", " : "", o->round, attempt, offence_names[o->kind]);
        n++;
    }
    return n;
}

void fl__coord_offence(struct fl_coord *c, size_t i, enum fl_offence_kind kind, const char *found)
{
    const struct fl_offence offence = {
        .round = c->round.round, .attempt = c->round.attempt, .kind = kind};
    uint32_t client = c->round.parts[i].client;
    struct fl_client_rec *rec = quarantine_rec(c, client);
    char list[FL_OFFENCES_MAX * 80];
    char reason[sizeof(list) + FL__CLEAN_SIZE + 128];
    char clean[FL__CLEAN_SIZE];
    uint32_t n;

    if (c->conf.quarantine_after == 0 || c->clients.live[client].removed ||
        fl__clients_quarantined(&c->clients, client) || !offence_add(rec, &offence))
    {
        return;
    }
    quarantine_queue(c, client);
    n = offences_text(c, rec, list, sizeof(list));
    if (n < c->conf.quarantine_after) {
        return;
    }
    (void)snprintf(reason, sizeof(reason),
                   "%" PRIu32 " offence%s in the last %" PRIu64 " rounds: %s; last: %s", n,
                   n == 1 ? "" : "s", c->conf.quarantine_window, list,
                   fl__coord_clean(clean, sizeof(clean), found));
    quarantine_begin(c, client, reason);
}

/* --- commands of the operator --- */

static uint32_t command_client(struct fl_coord *c, const char *name)
{
    uint32_t client = fl__clients_find(&c->clients, name);
    char clean[FL_NAME_MAX];

    if (client == FL__NONE) {
        fl__command_answer(c, FL_ENOENT, "no client '%s' is known",
                           fl__coord_clean(clean, sizeof(clean), name));
    }
    return client;
}

/* Answer at once when there is nothing to write; else write at once, also after a failed write. */
static void command_durable(struct fl_coord *c)
{
    c->clients.unwritten.retry_ms = 0;
    if (fl__quarantine_durable(c)) {
        fl__command_awaited(c, FL__COMMAND_QUARANTINE, NULL);
    }
}

void fl__coord_quarantine_client(struct fl_coord *c, const char *name, const char *reason)
{
    uint32_t client = command_client(c, name);
    bool given = reason != NULL && reason[0] != '\0';
    bool already;
    char clean[FL__CLEAN_SIZE];
    char until[64];

    if (client == FL__NONE) {
        return;
    }
    already = fl__clients_quarantined(&c->clients, client);
    if (!already) { /* The first reason stays: it lists the offences. */
        quarantine_begin(
            c, client,
            fl__coord_text(c, "quarantined by the operator%s%s", given ? ": " : "",
                           given ? fl__coord_clean(clean, sizeof(clean), reason) : ""));
        fl__coord_exclude(c, client, "quarantined by the operator");
    }
    fl__command_await(c, FL__COMMAND_QUARANTINE,
                      "%sclient '%s' is not selected until 'flctl clients release %s'%s: %s",
                      already ? "already so: " : "", name, name,
                      quarantine_until(c, until, sizeof(until)),
                      quarantine_rec(c, client)->quarantine);
    command_durable(c);
}

void fl__coord_end_quarantine(struct fl_coord *c, const char *name, const char *reason)
{
    uint32_t client = command_client(c, name);

    (void)reason;
    if (client == FL__NONE) {
        return;
    }
    if (!fl__clients_quarantined(&c->clients, client)) {
        fl__command_await(c, FL__COMMAND_QUARANTINE,
                          "nothing to release: client '%s' is not quarantined", name);
    } else {
        quarantine_end(c, client);
        fl__coord_event(c, FL_LOG_EVENT_CLIENT_RELEASED, /* warning= */ false,
                        "client '%s' is released from quarantine by the operator", name);
        fl__command_await(c, FL__COMMAND_QUARANTINE,
                          "client '%s' is released: it can be selected from the next round on",
                          name);
    }
    command_durable(c);
}

/* --- a restart --- */

/* Round numbers are used again after a rollback: what a client did in an abandoned round counts as
   of the round that is next. */
void fl__quarantine_resume_client(struct fl_client_rec *rec, uint64_t committed)
{
    size_t i;

    for (i = 0; i < FL_OFFENCES_MAX; i++) {
        struct fl_offence *o = &rec->offences[i];

        o->round = o->round > committed + 1 ? committed + 1 : o->round;
    }
}

struct since {
    uint64_t up_ms;
    uint32_t client;
};

static int compare_since(const void *a, const void *b)
{
    const struct since *x = a;
    const struct since *y = b;

    if (x->up_ms != y->up_ms) {
        return x->up_ms < y->up_ms ? -1 : 1;
    }
    return (x->client > y->client) - (x->client < y->client);
}

int fl__quarantine_resume(struct fl_coord *c, const struct fl_coord_resume *resume)
{
    struct since *list = malloc((resume->n_clients + 1) * sizeof(*list));
    size_t n = 0;
    size_t i;

    if (list == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < resume->n_clients; i++) {
        const struct fl_client_rec *rec = &resume->clients[i];

        if (rec->quarantine[0] != '\0') {
            list[n++] = (struct since){rec->quarantined_up_ms, rec->id};
            c->up_ms = rec->quarantined_up_ms > c->up_ms ? rec->quarantined_up_ms : c->up_ms;
        }
    }
    qsort(list, n, sizeof(*list), compare_since);
    for (i = 0; i < n; i++) {
        fl__list_add(&c->clients, &c->clients.quarantined, list[i].client);
    }
    free(list);
    return FL_OK;
}

void fl__quarantine_resume_part(struct fl_coord *c, struct fl_participant_rec *part)
{
    if (fl__clients_quarantined(&c->clients, part->client) &&
        part->state <= FL_PARTICIPANT_ACCEPTED) {
        part->state = FL_PARTICIPANT_REJECTED;
        fl__coord_forget_norms(part);
    }
}

/* --- the status line --- */

void fl__quarantine_why(const struct fl_coord *c, char *out, size_t size)
{
    const struct fl__list *list = &c->clients.quarantined;
    uint32_t client = list->n > 0 ? list->first : FL__NONE;
    size_t used = strlen(out);
    char until[64];
    size_t n;

    for (n = 0; n < list->n && n < REASONS_SHOWN && used < size; n++) {
        const struct fl_client_rec *rec = &c->clients.recs[client];

        used += (size_t)snprintf(
            out + used, size - used,
            "; client '%s' is quarantined until 'flctl clients release %s'%s: %s", rec->name,
            rec->name, quarantine_until(c, until, sizeof(until)), rec->quarantine);
        client = c->clients.live[client].next;
    }
    if (n < list->n && used < size) {
        (void)snprintf(out + used, size - used,
                       "; %zu more clients are quarantined, see 'flctl clients'", list->n - n);
    }
}

/* A stolen client key allows arbitrary uploads in its name. The participant is rejected, on disk
   too where it was accepted or is about to be, so that a restart does not count it. */
void fl__coord_exclude(struct fl_coord *c, uint32_t client, const char *reason)
{
    struct fl__round *r = &c->round;
    uint32_t i = c->clients.live[client].part;
    enum fl_participant_state state;

    if (i == FL__NONE || r->closing) {
        return;
    }
    state = r->parts[i].state;
    if (state == FL_PARTICIPANT_REJECTED || state == FL_PARTICIPANT_LOST ||
        state == FL_PARTICIPANT_EMPTY)
    {
        return;
    }
    if (c->sm.state == FL_PHASE_EVALUATING || c->sm.state == FL_PHASE_COMMITTING) {
        fl__coord_warn(
            c,
            "client '%s' is excluded, but its update is already in the model of round %" PRIu64
            "; 'flctl rollback' can undo the round",
            fl__coord_name(c, client), r->round);
        return;
    }
    if (state == FL_PARTICIPANT_ACCEPTED) { /* It was sent ACCEPTED, which is not taken back. */
        fl__participant_set(c, i, FL_PARTICIPANT_REJECTED);
        fl__coord_warn(c, "client '%s' is excluded, its update does not count: %s",
                       fl__coord_name(c, client), reason);
        fl__coord_client_error(c, client, reason);
    } else {
        fl__participant_reject(c, i, reason);
    }
    fl__coord_forget_norms(&r->parts[i]);
    r->stale =
        r->stale || (c->sm.state == FL_PHASE_AGGREGATING && state == FL_PARTICIPANT_ACCEPTED);
    if (state == FL_PARTICIPANT_ACCEPTED || r->live[i].store_seq != 0) {
        fl__coord_persist_update(c, i);
    }
}
