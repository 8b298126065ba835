#include "tests/lib/coord_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fact {
    FACT_SELECTED, /* durable: the client is in the selection */
    FACT_PLANNED,  /* durable: the plan requests units from it */
    FACT_ACCEPTED, /* durable: its update, or an empty upload mask */
    FACT_UPDATE,   /* durable: its update */
    FACT_TOLD,     /* ACCEPTED was emitted since the last restart */
    FACT_BAD,      /* rejected by the aggregation, excluded or left out */
    FACT_UNREAD    /* the aggregation could not read it; bad after three times */
};

struct check_fact {
    enum fact what;
    uint64_t round;
    uint32_t attempt;
    uint32_t client;
    unsigned times;
};

/* The facts that become durable when the work of this number is answered. */
struct check_work {
    uint64_t seq;
    enum fl_effect_type type;
    uint64_t round;
    uint32_t attempt;
    struct check_fact *facts;
    size_t n;
    bool pauses;  /* PERSIST_PAUSE: or ends */
    bool rejects; /* PERSIST_UPDATE: the update is withdrawn */
};

FL_PRINTF(2, 3) static void fail(struct coord_check *c, const char *fmt, ...)
{
    va_list ap;

    if (c->broken[0] == '\0') {
        va_start(ap, fmt);
        (void)vsnprintf(c->broken, sizeof(c->broken), fmt, ap);
        va_end(ap);
    }
}

static void *grow(void *array, size_t *cap, size_t n, size_t size)
{
    void *grown = array;

    if (n > *cap) {
        *cap = 2 * n + 16;
        grown = realloc(array, *cap * size);
        if (grown == NULL) {
            abort();
        }
    }
    return grown;
}

static struct check_fact *find(const struct coord_check *c, enum fact what, uint64_t round,
                               uint32_t attempt, uint32_t client)
{
    size_t i;

    for (i = 0; i < c->n_facts; i++) {
        struct check_fact *f = &c->facts[i];

        if (f->what == what && f->round == round && f->attempt == attempt && f->client == client) {
            return f;
        }
    }
    return NULL;
}

static bool has(const struct coord_check *c, enum fact what, uint64_t round, uint32_t attempt,
                uint32_t client)
{
    return find(c, what, round, attempt, client) != NULL;
}

/* Returns the number of times it was added. */
static unsigned add(struct coord_check *c, const struct check_fact *fact)
{
    struct check_fact *known = find(c, fact->what, fact->round, fact->attempt, fact->client);

    if (known == NULL) {
        c->facts = grow(c->facts, &c->cap_facts, c->n_facts + 1, sizeof(*c->facts));
        known = &c->facts[c->n_facts++];
        *known = *fact;
        known->times = 0;
    }
    return ++known->times;
}

/* Drop facts of the last process, or of old rounds, so that long runs stay fast. */
static void drop(struct coord_check *c, bool life)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < c->n_facts; i++) {
        enum fact what = c->facts[i].what;
        bool old = life ? what >= FACT_TOLD : c->facts[i].round < c->committed;

        if (!old) {
            c->facts[kept++] = c->facts[i];
        }
    }
    c->n_facts = kept;
}

/* The number is free: its next client has no facts yet. */
static void drop_told(struct coord_check *c, uint32_t client)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < c->n_facts; i++) {
        if (c->facts[i].what != FACT_TOLD || c->facts[i].client != client) {
            c->facts[kept++] = c->facts[i];
        }
    }
    c->n_facts = kept;
}

/* The withdrawal of the client's update is durable. ACCEPTED stays allowed: a client that missed it
 * may still receive it. */
static void drop_update(struct coord_check *c, const struct check_fact *of)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < c->n_facts; i++) {
        const struct check_fact *f = &c->facts[i];
        bool its = f->round == of->round && f->attempt == of->attempt && f->client == of->client;

        if (!its || f->what != FACT_UPDATE) {
            c->facts[kept++] = *f;
        }
    }
    c->n_facts = kept;
}

static void drop_works(struct coord_check *c)
{
    size_t i;

    for (i = 0; i < c->n_works; i++) {
        free(c->works[i].facts);
    }
    c->n_works = 0;
}

void coord_check_init(struct coord_check *c)
{
    *c = (struct coord_check){.committed = 0};
}

void coord_check_done(struct coord_check *c)
{
    drop_works(c);
    free(c->works);
    free(c->facts);
    *c = (struct coord_check){.committed = 0};
}

/* The facts in a stored participant record. */
static size_t facts_of(const struct fl_participant_rec *part, bool plan, struct check_fact out[3])
{
    size_t n = 0;

    out[n++].what = FACT_SELECTED;
    if (plan && part->state == FL_PARTICIPANT_PLANNED) {
        out[n++].what = FACT_PLANNED;
    }
    if (part->state == FL_PARTICIPANT_EMPTY) {
        out[n++].what = FACT_ACCEPTED;
    }
    if (part->state == FL_PARTICIPANT_ACCEPTED) {
        out[n++].what = FACT_ACCEPTED;
        out[n++].what = FACT_UPDATE;
    }
    return n;
}

static void take_part(struct coord_check *c, const struct fl_participant_rec *part, uint64_t round,
                      uint32_t attempt)
{
    struct check_fact f[3];
    size_t n = facts_of(part, true, f);
    size_t i;

    for (i = 0; i < n; i++) {
        f[i].round = round;
        f[i].attempt = attempt;
        f[i].client = part->client;
        (void)add(c, &f[i]);
    }
}

/* The record that withdraws its update may have failed, when that of its quarantine did not. */
static void take_quarantined(struct coord_check *c, const struct fl_coord_resume *resume,
                             const struct fl_participant_rec *part)
{
    const struct check_fact bad = {FACT_BAD, resume->open_round, resume->open_attempt, part->client,
                                   0};
    size_t i;

    for (i = 0; i < resume->n_clients; i++) {
        if (resume->clients[i].id == part->client && resume->clients[i].quarantine[0] != '\0') {
            (void)add(c, &bad);
        }
    }
}

void coord_check_resume(struct coord_check *c, const struct fl_coord_resume *resume)
{
    size_t i;

    drop_works(c);
    drop(c, true);
    (void)memset(c->gone, 0, sizeof(c->gone));
    c->last_seq = 0;
    /* A commit may have become durable without an answer. */
    if (resume->committed < c->committed || resume->committed > c->committed + 1) {
        fail(c, "the persisted round went from %" PRIu64 " to %" PRIu64, c->committed,
             resume->committed);
    }
    c->n_committed += resume->committed > c->committed;
    c->committed = resume->committed;
    for (i = 0; i < resume->n_clients; i++) {
        const struct fl_client_rec *rec = &resume->clients[i];
        struct check_fact counted = {FACT_ACCEPTED, rec->counted_round, rec->counted_attempt,
                                     rec->id, 0};

        if (rec->counted_round != 0 && rec->counted_round <= resume->committed) {
            (void)add(c, &counted);
        }
    }
    for (i = 0; i < resume->n_parts; i++) {
        take_part(c, &resume->parts[i], resume->open_round, resume->open_attempt);
        take_quarantined(c, resume, &resume->parts[i]);
    }
    /* Requested records may have become durable without an answer. */
    if (c->lives++ > 0 && c->wish == 0 && !c->pause_failed &&
        c->pause_durable != (resume->pause[0] != '\0') && c->pause_durable == c->pause_wanted)
    {
        fail(c, "the pause on disk went from %d to %d", c->pause_durable, !c->pause_durable);
    }
    c->pause_durable = c->pause_wanted = resume->pause[0] != '\0';
    c->pause_failed = false;
    c->begun_round = 0;
    c->stopped = false;
    c->wish = 0;
}

static void note_work(struct coord_check *c, const struct fl_effect *e)
{
    struct check_work *w;
    size_t i;

    if (e->seq <= c->last_seq) {
        fail(c, "work number %" PRIu64 " after %" PRIu64, e->seq, c->last_seq);
    }
    c->last_seq = e->seq;
    c->works = grow(c->works, &c->cap_works, c->n_works + 1, sizeof(*c->works));
    w = &c->works[c->n_works++];
    *w = (struct check_work){.seq = e->seq,
                             .type = e->type,
                             .round = e->round,
                             .attempt = e->attempt,
                             .pauses = e->type == FL_EFF_PERSIST_PAUSE && e->text != NULL};
    if (e->type != FL_EFF_PERSIST_SELECTION && e->type != FL_EFF_PERSIST_PLAN &&
        e->type != FL_EFF_PERSIST_UPDATE)
    {
        return;
    }
    w->rejects = e->type == FL_EFF_PERSIST_UPDATE && e->parts[0].state == FL_PARTICIPANT_REJECTED;
    w->facts = calloc(3 * e->n_parts + 1, sizeof(*w->facts));
    if (w->facts == NULL) {
        abort();
    }
    for (i = 0; i < e->n_parts; i++) {
        size_t first = w->n;

        w->n += facts_of(&e->parts[i], e->type == FL_EFF_PERSIST_PLAN, &w->facts[first]);
        for (; first < w->n; first++) {
            w->facts[first].round = e->round;
            w->facts[first].attempt = e->attempt;
            w->facts[first].client = e->parts[i].client;
        }
    }
}

static bool take_work(struct coord_check *c, uint64_t seq, struct check_work *ret)
{
    size_t i;

    for (i = 0; i < c->n_works; i++) {
        if (c->works[i].seq == seq) {
            *ret = c->works[i];
            c->n_works--;
            (void)memmove(&c->works[i], &c->works[i + 1], (c->n_works - i) * sizeof(*c->works));
            return true;
        }
    }
    return false;
}

static void commit(struct coord_check *c, uint64_t round)
{
    if (round != c->committed + 1) {
        fail(c, "round %" PRIu64 " is committed after %" PRIu64, round, c->committed);
    }
    c->committed = round;
    c->n_committed++;
    drop(c, false);
}

void coord_check_event(struct coord_check *c, const struct fl_event *ev)
{
    struct check_work w;
    struct check_fact bad = {.what = FACT_BAD};
    size_t i;

    if (ev->type == FL_EV_PAUSE || ev->type == FL_EV_RESUME) {
        c->pause_wanted = ev->type == FL_EV_PAUSE;
    }
    if (ev->type >= FL_EV_PAUSE && ev->type <= FL_EV_END_QUARANTINE) {
        c->wish = ev->type;
    }
    if (ev->type == FL_EV_RELEASED && ev->u.client < COORD_CHECK_NUMBERS) {
        c->gone[ev->u.client] = false;
        drop_told(c, ev->u.client);
    }
    if (ev->type == FL_EV_WORK_FAILED) {
        if (take_work(c, ev->u.failed_work.seq, &w)) {
            int code = ev->u.failed_work.code;

            if (w.type == FL_EFF_AGGREGATE &&
                (code == FL_EFORMAT || code == FL_EINVAL || code == FL_ENUMERIC ||
                 code == FL_ENOENT || code == FL_EIO))
            {
                bad.what = code == FL_EIO ? FACT_UNREAD : FACT_BAD;
                bad.round = w.round;
                bad.attempt = w.attempt;
                bad.client = ev->u.failed_work.client;
                if (add(c, &bad) == 3 && bad.what == FACT_UNREAD) {
                    bad.what = FACT_BAD;
                    (void)add(c, &bad);
                }
            }
            free(w.facts);
        }
        return;
    }
    if ((ev->type == FL_EV_PERSISTED || ev->type == FL_EV_COMMITTED) && take_work(c, ev->u.seq, &w))
    {
        for (i = 0; i < w.n; i++) {
            (void)add(c, &w.facts[i]);
        }
        if (w.rejects) {
            drop_update(c, &w.facts[0]);
        }
        if (ev->type == FL_EV_COMMITTED && w.type == FL_EFF_COMMIT) {
            commit(c, w.round);
        }
        if (w.type == FL_EFF_PERSIST_PAUSE) {
            c->pause_durable = w.pauses;
            c->pause_failed = c->pause_failed && w.pauses != c->pause_wanted;
        }
        free(w.facts);
    }
}

static void check_aggregate(struct coord_check *c, const struct fl_coord *coord,
                            const struct fl_effect *e)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < e->n_parts; i++) {
        const char *name = fl_coord_part_client(coord, e->parts[i].client)->name;

        if (!has(c, FACT_UPDATE, e->round, e->attempt, e->parts[i].client)) {
            fail(c, "'%s' is aggregated but not durable", name);
        }
        if (i > 0 && strcmp(fl_coord_part_client(coord, e->parts[i - 1].client)->name, name) >= 0) {
            fail(c, "'%s' is not in client order", name);
        }
    }
    for (i = 0; i < c->n_facts; i++) {
        const struct check_fact *f = &c->facts[i];

        n += f->what == FACT_UPDATE && f->round == e->round && f->attempt == e->attempt &&
             !has(c, FACT_BAD, e->round, e->attempt, f->client);
    }
    if (n != e->n_parts) {
        fail(c, "%zu updates are durable, %zu are aggregated", n, e->n_parts);
    }
}

/* The accepted update is withdrawn from now on. */
static void check_left_out(struct coord_check *c, const struct fl_effect *e)
{
    const struct check_fact bad = {FACT_BAD, e->round, e->attempt, e->parts[0].client, 0};

    if (e->parts[0].state == FL_PARTICIPANT_REJECTED) {
        (void)add(c, &bad);
    }
}

static void check_counted(struct coord_check *c, const struct fl_effect *e)
{
    uint32_t n = 0;
    size_t i;

    for (i = 0; i < e->n_clients; i++) {
        const struct fl_client_rec *rec = &e->clients[i];
        bool now = e->type == FL_EFF_COMMIT && rec->counted_round == e->round;
        bool update;

        if (rec->counted_round > (now ? e->round : c->committed)) {
            fail(c, "the record of '%s' counts round %" PRIu64 ", committed is %" PRIu64, rec->name,
                 rec->counted_round, c->committed);
        }
        if (!now) {
            continue;
        }
        n++;
        update = has(c, FACT_UPDATE, e->round, e->attempt, rec->id);
        if (rec->counted_attempt != e->attempt ||
            !has(c, FACT_ACCEPTED, e->round, e->attempt, rec->id) ||
            has(c, FACT_BAD, e->round, e->attempt, rec->id))
        {
            fail(c, "'%s' is counted in round %" PRIu64, rec->name, e->round);
        }
        if (rec->counted_update != update) {
            fail(c, "'%s' is counted with another update", rec->name);
        }
    }
    if (e->type == FL_EFF_COMMIT && n != e->record->n_responders) {
        fail(c, "%" PRIu32 " responders, %" PRIu32 " are counted", e->record->n_responders, n);
    }
}

static void check_release(struct coord_check *c, uint32_t client)
{
    if (client < COORD_CHECK_NUMBERS) {
        if (c->gone[client]) {
            fail(c, "number %" PRIu32 " is released twice", client);
        }
        c->gone[client] = true;
    }
}

/* No command is sent to a number that has no client. */
static void check_spoken(struct coord_check *c, const struct fl_effect *e)
{
    switch (e->type) {
    case FL_EFF_TASK:
    case FL_EFF_PLAN:
    case FL_EFF_ACCEPTED:
    case FL_EFF_REJECTED:
    case FL_EFF_DISMISSED:
    case FL_EFF_EVALUATE_CLIENT:
        if (e->client < COORD_CHECK_NUMBERS && c->gone[e->client]) {
            fail(c, "number %" PRIu32 " is spoken to after its release", e->client);
        }
        break;
    default:
        break;
    }
}

/* No other command is sent afterwards. */
static void check_stopped(struct coord_check *c, const struct fl_effect *e)
{
    switch (e->type) {
    case FL_EFF_STOPPED:
        c->stopped = true;
        break;
    case FL_EFF_TASK:
    case FL_EFF_PLAN:
    case FL_EFF_REJECTED:
    case FL_EFF_EVALUATE_CLIENT:
    case FL_EFF_PERSIST_SELECTION:
    case FL_EFF_PERSIST_PLAN:
    case FL_EFF_PERSIST_UPDATE:
    case FL_EFF_AGGREGATE:
    case FL_EFF_COMMIT:
        if (c->stopped) {
            fail(c, "effect %d of a server that is STOPPED", (int)e->type);
        }
        break;
    default:
        break;
    }
}

static void check_answer(struct coord_check *c, const struct fl_effect *e)
{
    bool pause = c->wish == FL_EV_PAUSE || c->wish == FL_EV_RESUME;

    if (c->wish == 0) {
        fail(c, "'%s' is an answer to nothing", e->text);
    }
    if (pause && e->code == FL_OK && c->pause_durable != (c->wish == FL_EV_PAUSE)) {
        fail(c, "'%s' is answered before it is durable", e->text);
    }
    c->pause_failed = c->pause_failed || (pause && e->code != FL_OK);
    c->wish = 0;
}

/* Work that started before may be persisted again. */
static void check_begin(struct coord_check *c, const struct fl_effect *e)
{
    bool again = e->round == c->begun_round && e->attempt == c->begun_attempt;

    if (c->pause_wanted && e->n_parts > 0 && !again) {
        fail(c, "round %" PRIu64 " attempt %" PRIu32 " begins in a pause", e->round, e->attempt);
    }
    c->begun_round = e->round;
    c->begun_attempt = e->attempt;
}

static void check_quarantined(struct coord_check *c, const struct fl_coord *coord,
                              const struct fl_effect *e)
{
    const struct fl_client_rec *rec = fl_coord_part_client(coord, e->client);

    if (rec == NULL || rec->quarantine[0] != '\0') {
        fail(c, "%" PRIu32 " is quarantined and gets work", e->client);
    }
}

static void check_effect(struct coord_check *c, const struct fl_coord *coord,
                         const struct fl_effect *e)
{
    struct check_fact told = {FACT_TOLD, e->round, e->attempt, e->client, 0};

    switch (e->type) {
    case FL_EFF_TASK:
        check_quarantined(c, coord, e);
        if (!has(c, FACT_SELECTED, e->round, e->attempt, e->client)) {
            fail(c, "TASK to %" PRIu32 " before its selection is durable", e->client);
        }
        if (e->task.counted.round > c->committed) {
            fail(c, "TASK to %" PRIu32 " counts round %" PRIu64, e->client, e->task.counted.round);
        }
        break;
    case FL_EFF_PLAN:
        check_quarantined(c, coord, e);
        if (!has(c, FACT_PLANNED, e->round, e->attempt, e->client)) {
            fail(c, "PLAN to %" PRIu32 " before it is durable", e->client);
        }
        break;
    case FL_EFF_ACCEPTED:
        /* Facts and obligations of rounds before the newest are dropped. */
        if (e->round >= c->committed && !has(c, FACT_ACCEPTED, e->round, e->attempt, e->client)) {
            fail(c, "ACCEPTED to %" PRIu32 " before it is durable", e->client);
        }
        (void)add(c, &told);
        break;
    case FL_EFF_REJECTED:
    case FL_EFF_DISMISSED:
        if (has(c, FACT_TOLD, e->round, e->attempt, e->client)) {
            fail(c, "%s to %" PRIu32 " after ACCEPTED",
                 e->type == FL_EFF_REJECTED ? "REJECTED" : "DISMISSED", e->client);
        }
        break;
    case FL_EFF_AGGREGATE:
        check_aggregate(c, coord, e);
        note_work(c, e);
        break;
    case FL_EFF_RELEASE:
        check_release(c, e->client);
        break;
    case FL_EFF_PERSIST_UPDATE:
        check_left_out(c, e);
        note_work(c, e);
        break;
    case FL_EFF_PERSIST_SELECTION:
        check_begin(c, e);
        check_counted(c, e);
        note_work(c, e);
        break;
    case FL_EFF_PERSIST_PAUSE:
        c->pause_wanted = e->text != NULL;
        note_work(c, e);
        break;
    case FL_EFF_FORGET_CLIENTS:
    case FL_EFF_PERSIST_PLAN:
    case FL_EFF_PERSIST_QUARANTINE:
    case FL_EFF_EVALUATE:
        note_work(c, e);
        break;
    case FL_EFF_COMMIT:
        if (e->record->round != c->committed + 1) {
            fail(c, "COMMIT of %" PRIu64 " after %" PRIu64, e->record->round, c->committed);
        }
        check_counted(c, e);
        note_work(c, e);
        break;
    case FL_EFF_CLIENT_ID:
        if (e->client < COORD_CHECK_NUMBERS && c->gone[e->client]) {
            fail(c, "number %" PRIu32 " is given out before it is released", e->client);
        }
        break;
    case FL_EFF_EVALUATE_CLIENT:
        check_quarantined(c, coord, e);
        break;
    case FL_EFF_FORGOTTEN: /* Its number is free from now on, if it was released. */
    case FL_EFF_DRAIN_CLIENTS:
    case FL_EFF_ROUND_OPEN:
    case FL_EFF_ROUND_CLOSED:
    case FL_EFF_FINISHED:
    case FL_EFF_STOPPED:
        break;
    case FL_EFF_ANSWER:
        check_answer(c, e);
        break;
    case FL_EFF_CLIENT_ERROR:
    case FL_EFF_TRACE:
        if (e->text == NULL || strstr(e->text, "no room") != NULL) {
            fail(c, "a trace line has no text");
        }
        break;
    }
}

/* Before the effects: an aggregation that follows at once must not include it. */
static void check_excluded(struct coord_check *c, const struct fl_coord *coord, uint32_t client)
{
    struct check_fact bad = {.what = FACT_BAD, .client = client};
    const struct fl_participant_rec *part = fl_coord_part(coord, bad.client);

    if (part != NULL && part->state == FL_PARTICIPANT_REJECTED) {
        bad.round = fl_coord_round(coord);
        bad.attempt = fl_coord_attempt(coord);
        (void)add(c, &bad);
    }
}

/* The counts for monitoring are those of all clients, one after the other. */
static void check_counts(struct coord_check *c, const struct fl_coord *coord)
{
    struct fl_client_counts counts;
    struct fl_client_counts each = {0};
    uint32_t i;

    for (i = 0; i < fl_coord_numbers(coord); i++) {
        const struct fl_client_rec *rec = fl_coord_client(coord, i);
        const struct fl_participant_rec *part = fl_coord_part(coord, i);

        if (rec == NULL) {
            continue;
        }
        if (rec->quarantine[0] != '\0') {
            each.quarantined++;
        } else if (part != NULL) {
            each.parts[part->state]++;
        } else if (fl_coord_connected(coord, i) && !fl_coord_available(coord, i)) {
            each.unavailable++;
        } else if (fl_coord_connected(coord, i)) {
            each.idle++;
        } else {
            each.disconnected++;
        }
    }
    fl_coord_count(coord, &counts);
    if (memcmp(&counts, &each, sizeof(counts)) != 0) {
        fail(c,
             "clients are counted as %zu idle, %zu unavailable, %zu disconnected, %zu quarantined, "
             "which are %zu, %zu, %zu, %zu",
             counts.idle, counts.unavailable, counts.disconnected, counts.quarantined, each.idle,
             each.unavailable, each.disconnected, each.quarantined);
    }
}

void coord_check_effects(struct coord_check *c, const struct fl_coord *coord,
                         const struct fl_event *ev, const struct fl_effects *effects)
{
    uint64_t due = fl_coord_deadline(coord);
    size_t i;

    if (ev->type == FL_EV_EXCLUDE) {
        check_excluded(c, coord, ev->u.excluded.client);
    } else if (ev->type == FL_EV_QUARANTINE) {
        check_excluded(c, coord, fl_coord_find(coord, ev->u.of_client.name));
    }
    for (i = 0; i < effects->n; i++) {
        check_spoken(c, &effects->list[i]);
        check_effect(c, coord, &effects->list[i]);
        check_stopped(c, &effects->list[i]);
    }
    check_counts(c, coord);
    if (fl_coord_phase(coord) == FL_PHASE_PAUSED && !c->pause_durable && c->wish == 0 &&
        !c->pause_failed)
    {
        fail(c, "PAUSED, and that is not durable");
    }
    if (due <= ev->now_ms) {
        fail(c, "the deadline %" PRIu64 " is not after now, %" PRIu64, due, ev->now_ms);
    }
    if (fl_coord_committed(coord) != c->committed) {
        fail(c, "committed is %" PRIu64 ", durable is %" PRIu64, fl_coord_committed(coord),
             c->committed);
    }
}
