/*
 * Bytes to events: a federation that anything may happen to. The rules of
 * tests/lib/coord_check hold after every step, and once the bytes are used up and
 * everybody behaves, every round comes to its end.
 *
 * Byte 0 is the configuration, each event takes two bytes: what, and to whom or how.
 */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/coord_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N_CLIENTS 6
#define N_UNITS   3
#define N_WORKS   512
#define ROUNDS    3

/* A record on its way to the disk, or other work of the server. */
struct work {
    enum fl_effect_type type;
    uint64_t seq, round;
    uint32_t attempt;
    size_t n_parts, n_clients;
    uint64_t expected, epoch;
    bool pauses; /* PERSIST_PAUSE: or ends */
    struct fl_participant_rec parts[N_CLIENTS];
    float divergence[N_CLIENTS][N_UNITS];
    uint8_t units[N_CLIENTS][N_UNITS];
    struct fl_client_rec clients[N_CLIENTS];
};

struct disk {
    struct fl_coord_resume resume;
    struct fl_client_rec clients[N_CLIENTS];
    struct fl_participant_rec parts[N_CLIENTS];
    float divergence[N_CLIENTS][N_UNITS];
    uint8_t units[N_CLIENTS][N_UNITS];
};

struct world {
    struct fl_coord_conf conf;
    struct fl_strategy *strategy;
    struct fl_layout *layout;
    struct fl_coord *coord;
    struct coord_check check;
    struct disk disk;
    struct work works[N_WORKS];
    size_t n_works;
    uint64_t now;
};

static void require(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "fuzz_coord: %s\n", what);
        abort();
    }
}

/* --- the disk --- */

static void copy_part(struct fl_participant_rec *to, float *divergence, uint8_t *units,
                      const struct fl_participant_rec *from)
{
    *to = *from;
    to->divergence = NULL;
    to->units = NULL;
    if (from->divergence != NULL) {
        (void)memcpy(divergence, from->divergence, N_UNITS * sizeof(float));
        to->divergence = divergence;
    }
    if (from->units != NULL) {
        (void)memcpy(units, from->units, N_UNITS);
        to->units = units;
    }
}

static void put_parts(struct disk *d, const struct work *w)
{
    size_t i;
    size_t k;

    for (i = 0; i < w->n_parts; i++) {
        for (k = 0; k < d->resume.n_parts && d->parts[k].client != w->parts[i].client; k++) {
        }
        copy_part(&d->parts[k], d->divergence[k], d->units[k], &w->parts[i]);
        d->resume.n_parts += k == d->resume.n_parts;
    }
}

static void put_clients(struct disk *d, const struct work *w)
{
    size_t i;

    for (i = 0; i < w->n_clients; i++) {
        const struct fl_client_rec *c = &w->clients[i];
        size_t k;

        for (k = 0; k < d->resume.n_clients && d->clients[k].id != c->id; k++) {
            require(strcmp(d->clients[k].name, c->name) != 0, "a name has two numbers on disk");
        }
        require(k < N_CLIENTS, "more clients on disk than names");
        d->clients[k] = *c;
        d->resume.n_clients += k == d->resume.n_clients;
    }
}

/* Members of PERSIST_QUARANTINE; a client without a record gets one. */
static void put_quarantines(struct disk *d, struct work *w)
{
    size_t i;
    size_t k;

    for (i = 0; i < w->n_clients; i++) {
        struct fl_client_rec *c = &w->clients[i];

        for (k = 0; k < d->resume.n_clients && d->clients[k].id != c->id; k++) {
        }
        if (k < d->resume.n_clients) {
            struct fl_client_rec on_disk = d->clients[k];

            (void)memcpy(on_disk.offences, c->offences, sizeof(c->offences));
            (void)memcpy(on_disk.quarantine, c->quarantine, sizeof(c->quarantine));
            on_disk.quarantined_up_ms = c->quarantined_up_ms;
            *c = on_disk;
        }
    }
    put_clients(d, w);
}

static void drop_clients(struct disk *d, const struct work *w)
{
    size_t i;

    for (i = 0; i < w->n_clients; i++) {
        size_t k = 0;
        size_t p;

        for (p = 0; p < d->resume.n_parts && !w->clients[i].forgotten; p++) {
            require(d->parts[p].client != w->clients[i].id, "removed while in the open round");
        }
        while (k < d->resume.n_clients && d->clients[k].id != w->clients[i].id) {
            k++;
        }
        require(k < d->resume.n_clients && strcmp(d->clients[k].name, w->clients[i].name) == 0,
                "a client is removed that is not there");
        if (w->clients[i].forgotten) {
            d->clients[k].forgotten = true;
        } else {
            d->clients[k] = d->clients[--d->resume.n_clients];
        }
    }
}

/* As a name that has another number: the real one refuses. */
static bool refused(const struct disk *d, const struct work *w)
{
    bool inserts = w->type == FL_EFF_PERSIST_SELECTION || w->type == FL_EFF_PERSIST_QUARANTINE;
    size_t i;
    size_t k;

    for (i = 0; inserts && i < w->n_clients; i++) {
        for (k = 0; k < d->resume.n_clients; k++) {
            if (d->clients[k].id != w->clients[i].id &&
                strcmp(d->clients[k].name, w->clients[i].name) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void write_disk(struct disk *d, struct work *w)
{
    struct fl_coord_resume *r = &d->resume;

    if (w->type == FL_EFF_PERSIST_PAUSE) {
        (void)snprintf(r->pause, sizeof(r->pause), "%s", w->pauses ? "for some reason" : "");
    }
    if (w->type == FL_EFF_FORGET_CLIENTS) {
        r->epoch = w->epoch;
        drop_clients(d, w);
    } else if (w->type == FL_EFF_PERSIST_QUARANTINE) {
        put_quarantines(d, w);
    } else {
        put_clients(d, w);
    }
    if (w->type == FL_EFF_COMMIT) {
        r->committed = w->round;
        r->open_round = 0;
        r->n_parts = 0;
    } else if (w->type == FL_EFF_PERSIST_SELECTION) {
        r->open_round = w->round;
        r->open_attempt = w->attempt;
        r->planned = false;
        r->expected = w->expected;
        r->n_parts = 0;
        put_parts(d, w);
    } else if (w->type == FL_EFF_PERSIST_PLAN || w->type == FL_EFF_PERSIST_UPDATE) {
        require(r->open_round == w->round && r->open_attempt == w->attempt,
                "a record of a round that is not open");
        r->planned = r->planned || w->type == FL_EFF_PERSIST_PLAN;
        put_parts(d, w);
    }
    r->clients = d->clients;
    r->parts = d->parts;
}

/* --- steps --- */

static void keep(struct world *w, const struct fl_effect *e)
{
    struct work *k;
    size_t i;

    if (e->seq == 0) {
        return;
    }
    require(w->n_works < N_WORKS, "work without end");
    k = &w->works[w->n_works++];
    *k = (struct work){.type = e->type, .seq = e->seq, .round = e->round, .attempt = e->attempt};
    k->expected = e->expected;
    k->pauses = e->type == FL_EFF_PERSIST_PAUSE && e->text != NULL;
    k->epoch = e->epoch;
    for (i = 0; i < e->n_parts; i++) {
        copy_part(&k->parts[i], k->divergence[i], k->units[i], &e->parts[i]);
    }
    k->n_parts = e->n_parts;
    if (e->n_clients > 0) {
        (void)memcpy(k->clients, e->clients, e->n_clients * sizeof(*e->clients));
    }
    k->n_clients = e->n_clients;
}

/* Shares are shares, or -1: nothing a peer says makes another number of them. */
static void check_record(const struct fl_round_rec *r)
{
    size_t i;

    for (i = 0; r != NULL && i < 8; i++) {
        const double all[] = {r->personal_accuracy,           r->personal_mean,
                              r->received_accuracy,           r->received_mean,
                              r->client_accuracy_mean,        r->client_accuracy_std,
                              r->client_accuracy_worst_tenth, r->client_accuracy_median};
        bool share = all[i] >= 0 && all[i] <= 1;

        require(share || (all[i] < 0 && all[i] > -1.5), "an accuracy is out of range");
        require(isfinite(r->effective) && r->feedback_bytes <= r->uplink_bytes &&
                    isfinite(r->client_loss_mean),
                "bad figures");
    }
}

static void step(struct world *w, struct fl_event *ev)
{
    struct fl_event released = {.type = FL_EV_RELEASED};
    uint32_t numbers[256];
    struct fl_effects effects;
    size_t n = 0;
    size_t i;

    ev->now_ms = w->now;
    ev->wall_ms = w->now;
    coord_check_event(&w->check, ev);
    require(fl_coord_step(w->coord, ev, &effects) == FL_OK, "a step failed");
    coord_check_effects(&w->check, w->coord, ev, &effects);
    require(w->check.broken[0] == '\0', w->check.broken);
    for (i = 0; i < effects.n; i++) {
        check_record(effects.list[i].record);
        keep(w, &effects.list[i]);
        if (effects.list[i].type == FL_EFF_RELEASE) {
            require(n < sizeof(numbers) / sizeof(numbers[0]), "releases without end");
            numbers[n++] = effects.list[i].client;
        }
    }
    for (i = 0; i < n; i++) {
        released.u.client = numbers[i];
        step(w, &released);
    }
}

static void simple(struct world *w, enum fl_event_type type)
{
    struct fl_event ev = {.type = type};

    step(w, &ev);
}

static void start(struct world *w)
{
    struct fl_err err = {0};

    fl_coord_free(w->coord);
    w->coord = NULL;
    w->n_works = 0;
    coord_check_resume(&w->check, &w->disk.resume);
    require(fl_coord_create(&w->conf, &w->disk.resume, &w->coord, &err) == FL_OK, err.msg);
    simple(w, FL_EV_START);
}

static bool is_record(enum fl_effect_type type)
{
    return type != FL_EFF_AGGREGATE && type != FL_EFF_EVALUATE;
}

/* Records become durable in order; other work may be answered at any time. */
static struct work *pick_work(struct world *w, uint8_t arg)
{
    size_t i = w->n_works > 0 ? arg % w->n_works : 0;
    size_t k;

    for (k = 0; k < i && is_record(w->works[i].type); k++) {
        if (is_record(w->works[k].type)) {
            i = k;
        }
    }
    return w->n_works > 0 ? &w->works[i] : NULL;
}

static void drop_work(struct world *w, struct work *k)
{
    size_t i = (size_t)(k - w->works);

    w->n_works--;
    (void)memmove(k, k + 1, (w->n_works - i) * sizeof(*k));
}

static void fail_work(struct world *w, struct work *k, int code, uint32_t client)
{
    struct fl_event ev = {.type = FL_EV_WORK_FAILED};

    ev.u.failed_work.seq = k->seq;
    ev.u.failed_work.code = code;
    ev.u.failed_work.reason = "fuzz";
    ev.u.failed_work.client = client;
    drop_work(w, k);
    step(w, &ev);
}

static void answer(struct world *w, uint8_t arg)
{
    static const double distance[N_CLIENTS] = {1, 0, 3, 1e300, 1e300, 2};
    struct work *k = pick_work(w, arg);
    struct fl_event ev = {.type = FL_EV_PERSISTED};

    if (k == NULL) {
        return;
    }
    if (refused(&w->disk, k)) {
        fail_work(w, k, FL_ESTATE, UINT32_MAX);
        return;
    }
    ev.u.seq = k->seq;
    if (k->type == FL_EFF_AGGREGATE) {
        ev.type = FL_EV_AGGREGATED;
        ev.u.aggregated.seq = k->seq;
        ev.u.aggregated.distance = distance;
        ev.u.aggregated.effective = (arg & 32) != 0 ? (double)NAN : 2;
        ev.u.aggregated.collection_bytes = arg;
    } else if (k->type == FL_EFF_EVALUATE) {
        ev.type = FL_EV_EVALUATED;
        ev.u.evaluated.seq = k->seq;
        ev.u.evaluated.accuracy = (arg & 64) != 0 ? (double)NAN : 0.5;
        ev.u.evaluated.loss = 1;
    } else {
        ev.type = k->type == FL_EFF_COMMIT ? FL_EV_COMMITTED : FL_EV_PERSISTED;
        write_disk(&w->disk, k);
    }
    drop_work(w, k);
    step(w, &ev);
}

static void fail(struct world *w, uint8_t arg)
{
    struct work *k = pick_work(w, arg);

    if (k != NULL) {
        fail_work(w, k, (arg & 32) != 0 ? FL_ENUMERIC : FL_EIO,
                  (arg & 64) != 0 ? arg % 8u : UINT32_MAX);
    }
}

/* --- clients --- */

static void join(struct world *w, uint8_t arg)
{
    static const char *const names[8] = {"d", "b", "a", "c", "f", "e", "", "../x"};
    struct fl_event ev = {.type = FL_EV_CLIENT_JOINED};

    ev.u.joined.name = names[arg % 8];
    ev.u.joined.agent = "fuzz";
    ev.u.joined.samples = (uint64_t)arg >> 4;
    ev.u.joined.evaluation_samples = arg & 8;
    step(w, &ev);
}

/* arg: 3 bits client, wrong round, wrong attempt, 3 bits of how bad. */
/* What clients say about their evaluations, right and wrong. */
static const char *const metrics[8] = {NULL,      "f1=0.5",       "f1+=2 a/b=1e300:1", "f1=nan",
                                       "a=1 a=2", "received/a=1", "x=1e308 f1=-1e308", "no number"};

static void report(struct world *w, uint8_t arg)
{
    static const float values[8] = {1, 2, 0, 3.5f, 1e30f, (float)NAN, -1, (float)INFINITY};
    float d[N_UNITS] = {values[(arg >> 5) & 7], (float)(arg & 7), 1};
    struct fl_event ev = {.type = FL_EV_REPORT};

    ev.u.report.client = arg & 7;
    ev.u.report.round = fl_coord_round(w->coord) - ((arg >> 3) & 1);
    ev.u.report.attempt = fl_coord_attempt(w->coord) + ((arg >> 4) & 1);
    ev.u.report.samples = 3;
    ev.u.report.train_loss = 1;
    ev.u.report.divergence = d;
    ev.u.report.n_divergence = arg == 0xff ? 2 : N_UNITS;
    ev.u.report.previous_dot = (double)d[0];
    ev.u.report.received = (struct fl_eval_rec){arg & 15, arg & 7, (double)d[0], metrics[arg % 8]};
    ev.u.report.trained = (struct fl_eval_rec){arg >> 4, arg & 7, 1, metrics[arg / 32]};
    step(w, &ev);
}

static void upload(struct world *w, enum fl_event_type type, uint8_t arg)
{
    struct fl_event ev = {.type = type};
    const uint8_t *units = NULL;
    struct fl_err err = {0};

    ev.u.upload.client = arg & 7;
    ev.u.upload.round = fl_coord_round(w->coord) - ((arg >> 3) & 1);
    ev.u.upload.attempt = fl_coord_attempt(w->coord) + ((arg >> 4) & 1);
    ev.u.upload.bytes = 12;
    ev.u.upload.reason = "fuzz";
    /* The glue steps only what it let in. */
    if (fl_coord_may_push(w->coord, ev.u.upload.client, ev.u.upload.round, ev.u.upload.attempt,
                          &units, &err) == FL_OK)
    {
        require(units != NULL, "no grant");
        step(w, &ev);
    } else if ((arg & 32) != 0) {
        step(w, &ev);
    }
}

static void failed(struct world *w, uint8_t arg)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_FAILED};

    ev.u.failed.client = arg & 7;
    ev.u.failed.round = fl_coord_round(w->coord);
    ev.u.failed.attempt = fl_coord_attempt(w->coord);
    ev.u.failed.reason = "fuzz\n";
    ev.u.failed.diverged = (arg & 8) != 0;
    step(w, &ev);
}

static void evaluated(struct world *w, uint8_t arg)
{
    struct fl_event ev = {.type = FL_EV_EVAL_REPORT};

    ev.u.eval.client = arg & 7;
    ev.u.eval.round = fl_coord_round(w->coord);
    ev.u.eval.result.samples = (arg >> 3) & 15;
    ev.u.eval.result.correct = arg >> 5;
    ev.u.eval.result.loss_sum = (arg & 128) != 0 ? (double)NAN : 1;
    ev.u.eval.adapted = (struct fl_eval_rec){(arg >> 1) & 15, (arg >> 4) & 7, 1, metrics[arg % 8]};
    step(w, &ev);
}

static void tick(struct world *w)
{
    uint64_t due = fl_coord_deadline(w->coord);

    if (due != UINT64_MAX) {
        w->now = due > w->now ? due : w->now;
        simple(w, FL_EV_TICK);
    }
}

static void ask(struct world *w)
{
    const char *missing[2];
    char out[300];
    size_t n = 0;

    fl_coord_why(w->coord, w->now, out, sizeof(out), missing, 2, &n);
    require(strlen(out) > 10 && n <= N_CLIENTS, "why has no answer");
}

static void answer_all(struct world *w)
{
    while (w->n_works > 0) {
        answer(w, 0);
    }
}

static void event(struct world *w, uint8_t what, uint8_t arg)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_LOST};

    switch (what % 16) {
    case 0:
    case 1:
        join(w, arg);
        break;
    case 2:
        ev.u.client = arg & 7;
        step(w, &ev);
        break;
    case 3:
    case 4:
        report(w, arg);
        break;
    case 5:
        failed(w, arg);
        break;
    case 6:
        upload(w, (arg & 0x40) != 0 ? FL_EV_UPLOAD_PROGRESS : FL_EV_UPLOAD_STORED, arg);
        break;
    case 7:
        upload(w, (arg & 0x80) != 0 ? FL_EV_UPLOAD_UNSTORED : FL_EV_UPLOAD_INVALID, arg);
        break;
    case 8:
        evaluated(w, arg);
        break;
    case 9:
    case 10:
        answer(w, arg);
        break;
    case 11:
        fail(w, arg);
        break;
    case 12:
        tick(w);
        break;
    case 13:
        w->now += arg;
        ask(w);
        break;
    case 14:
        if (w->check.wish == 0) { /* One at a time. */
            simple(w, arg < 100   ? FL_EV_PAUSE
                      : arg < 200 ? FL_EV_RESUME
                      : arg < 254 ? FL_EV_ABORT_ROUND
                                  : FL_EV_DRAIN);
        }
        break;
    default:
        if (arg > 224) { /* SIGTERM, while all that is being written gets there */
            simple(w, FL_EV_STOP);
            answer_all(w);
            require(fl_coord_phase(w->coord) == FL_PHASE_STOPPED, "it does not stop");
            start(w);
        } else if (arg > 128) { /* kill -9 */
            start(w);
        } else if (arg > 96) {
            ev.type = FL_EV_EXCLUDE;
            ev.u.excluded.client = arg & 7;
            ev.u.excluded.reason = "fuzz";
            ev.u.excluded.leaves = (arg & 8) != 0;
            step(w, &ev);
        } else if (arg > 64) {
            const struct fl_client_rec *rec = fl_coord_client(w->coord, arg & 7);

            ev.type = (arg & 8) != 0 ? FL_EV_QUARANTINE : FL_EV_END_QUARANTINE;
            ev.u.of_client.name = rec != NULL ? rec->name : "fuzz";
            if (w->check.wish == 0) {
                step(w, &ev);
            }
        } else {
            ev.type = FL_EV_FORGET;
            ev.u.client = arg & 7;
            step(w, &ev);
        }
        break;
    }
}

/* --- the end: everybody behaves --- */

static void behave(struct world *w)
{
    uint8_t i;

    answer_all(w);
    for (i = 0; i < fl_coord_numbers(w->coord); i++) {
        const struct fl_participant_rec *part = fl_coord_part(w->coord, i);

        if (part != NULL && part->state == FL_PARTICIPANT_SELECTED) {
            report(w, i);
        }
    }
    answer_all(w);
    for (i = 0; i < fl_coord_numbers(w->coord); i++) {
        upload(w, FL_EV_UPLOAD_STORED, i);
    }
    answer_all(w);
    tick(w);
}

static void finish(struct world *w)
{
    unsigned i;

    for (i = 0; i < N_CLIENTS; i++) {
        join(w, (uint8_t)(0x18 + i));
    }
    answer_all(w);
    /* The answer to a command may wait for the retry of a write that failed. */
    for (i = 0; i < 3 && w->check.wish != 0; i++) {
        tick(w);
        answer_all(w);
    }
    require(w->check.wish == 0, "a wish has no answer");
    simple(w, FL_EV_RESUME);
    for (i = 0; i < 200 && fl_coord_phase(w->coord) != FL_PHASE_STOPPED; i++) {
        behave(w);
        ask(w);
    }
    require(fl_coord_phase(w->coord) == FL_PHASE_STOPPED, "it does not end");
}

static struct fl_layout *make_layout(void)
{
    struct fl_layout *layout = NULL;
    size_t one = 1;

    require(fl_layout_create(&layout) == FL_OK &&
                fl_layout_add(layout, "a", "a.w", &one, 1, false, NULL) == FL_OK &&
                fl_layout_add(layout, "b", "b.w", &one, 1, false, NULL) == FL_OK &&
                fl_layout_add(layout, "c", "c.w", &one, 1, false, NULL) == FL_OK &&
                fl_layout_finish(layout, NULL) == FL_OK,
            "no layout");
    return layout;
}

static void configure(struct world *w, uint8_t bits)
{
    static const char *const presets[4] = {"fedavg", "fedldf", "adafl", "adafl+fedldf"};

    static const char *const uploads[4] = {"full", "hdfl", "none", "hdfl"};
    bool own = (bits & 128) != 0;

    require(fl_strategy_create(own ? "fedavg" : presets[bits & 3], &w->strategy, NULL) == FL_OK,
            "no strategy");
    if (own) {
        require(fl_strategy_set(w->strategy, FL_COMPONENT_PERSONAL, "own", NULL) == FL_OK &&
                    fl_strategy_set(w->strategy, FL_COMPONENT_UPLOAD, uploads[bits & 3], NULL) ==
                        FL_OK,
                "no personal models");
    }
    w->layout = make_layout();
    w->conf = (struct fl_coord_conf){
        .seed = bits,
        .rounds = ROUNDS,
        .max_clients = N_CLIENTS,
        .start_clients = 1,
        .min_clients = 1,
        .min_responders = (bits >> 2) & 1,
        .over_selection = (bits & 8) != 0 ? 1.5 : 1.0,
        .over_grace = (bits & 128) != 0,
        .train_ms = 100,
        .upload_ms = 100,
        .evaluate_ms = (bits & 16) != 0 ? 0 : 100,
        .lost_grace_ms = (bits & 16) != 0 ? 0 : 30,
        .retry_ms = (bits & 16) != 0 ? 0 : 10,
        .evaluate_every = (bits & 32) != 0,
        .evaluate_server = (bits & 32) != 0,
        .evaluate_clients = (bits & 32) != 0,
        .learning_rate = 0.1,
        .learning_rate_decay = 1.0,
        .backfill = (bits & 64) != 0,
        .quarantine_after = (bits & 3) != 3 ? 2 : 0,
        .share_cap = (bits & 8) != 0 ? 1.5 : 0,
        .quarantine_window = 20,
        .quarantine_ms = 300,
        .strategy = w->strategy,
        .layout = w->layout,
    };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world w;
    size_t i;

    if (size == 0 || size > 4096) {
        return 0;
    }
    (void)memset(&w, 0, sizeof(w));
    coord_check_init(&w.check);
    configure(&w, data[0]);
    start(&w);
    for (i = 1; i + 1 < size; i += 2) {
        event(&w, data[i], data[i + 1]);
    }
    finish(&w);
    fl_coord_free(w.coord);
    fl_strategy_free(w.strategy);
    fl_layout_free(w.layout);
    coord_check_done(&w.check);
    return 0;
}
