/*
 * What a round costs beside its bytes, with few and with many known clients: the real coordinator
 * and the real database, the same number of responders in each.
 *
 *   start   reading the records and making the coordinator of them
 *   join    one client comes, of those that are known
 *   select  the draw over all that are connected, and its transaction
 *   commit  from the last evaluation to COMMITTED: scores, records, the transaction
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/line.h"
#include "bench/scratch.h"
#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "server/store/store.h"

#define MAX_ROUNDS     1001
#define MAX_RESPONDERS 10000

static const struct fl_arg rows[] = {
    FL_ARG("known", '\0', "N,N,…", 'k',
           "known clients, all of them connected (default 100,1000,10000,100000)"),
    FL_ARG("responders", '\0', "N", 'r',
           "clients of a round (default 100; at most the fewest known)"),
    FL_ARG("rounds", '\0', "N", 'n', "rounds that are measured (default 101)"),
    FL_ARG("algorithm", '\0', "NAME", 'a',
           "preset (default adafl, whose attention every commit moves)"),
    FL_ARG("dir", '\0', "FOLDER", 'd',
           "where the databases are made and removed (default $TMPDIR, /tmp)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "Prints a line for each number of known clients:\n"
    "  commit: known=… responders=… commit_ms=… ratio=… records_ms=… select_ms=… "
    "join_us=… start_ms=…\n"
    "commit_ms is the median from the last upload of a round to the record of it on "
    "disk, with a model\n"
    "of 0.8 MB that is synced before, as the server does it; ratio is that to the one "
    "of the first\n"
    "line. records_ms is the part of it without the model.\n"
    "select_ms is the median of the draw over all connected clients and its "
    "transaction, join_us the\n"
    "mean of one client's joining, start_ms reading the records and making the "
    "coordinator of them.\n";

struct bench {
    const char *algorithm;
    uint64_t responders, rounds;
    char dir[64];
    struct fl_layout *layout;
    struct fl_strategy *strategy;
    struct fl_store *store;
    struct fl_coord *coord;
    struct fl_coord_conf conf;
    uint64_t now;
    uint32_t tasks[MAX_RESPONDERS];
    size_t n_tasks;
    float *theta;
    double model_us; /* of the round */
    double select_us[MAX_ROUNDS], commit_us[MAX_ROUNDS], records_us[MAX_ROUNDS];
    double start_ms, join_us;
};

static void check(int rv, const struct fl_err *err, const char *what)
{
    if (rv != FL_OK) {
        (void)fprintf(stderr, "commit: %s: %s\n", what, fl_err_text(err, rv));
        exit(EXIT_FAILURE);
    }
}

static double now_us(void)
{
    return (double)fl_clock_ns() / 1e3;
}

static void step(struct bench *b, struct fl_event *ev);

static void persisted(struct bench *b, enum fl_event_type type, uint64_t seq)
{
    struct fl_event ev = {.type = type};

    ev.u.seq = seq;
    step(b, &ev);
}

static void put_selection(struct bench *b, const struct fl_effect *e)
{
    const struct fl_selection selection = {.round = e->round,
                                           .attempt = e->attempt,
                                           .parts = e->parts,
                                           .n_parts = e->n_parts,
                                           .clients = e->clients,
                                           .n_clients = e->n_clients,
                                           .size = e->size,
                                           .expected = e->expected};
    struct fl_err err = {0};

    check(fl_store_put_selection(b->store, &selection, &err), &err, "selection");
}

static void save_model(struct bench *b, uint64_t round)
{
    const struct fl_models_tag tag = {.database = fl_store_id(b->store)};
    double before = now_us();
    struct fl_err err = {0};

    check(fl_models_save(&(struct fl_models_checkpoint){b->dir, round, &tag, b->layout, NULL, 0},
                         b->theta, NULL, true, &err),
          &err, "model");
    b->model_us = now_us() - before;
}

/* What has a number is done at once; TASK and the rest wait for run_round(). */
static void carry_out(struct bench *b, const struct fl_effect *e)
{
    struct fl_event ev = {.type = FL_EV_AGGREGATED};
    struct fl_err err = {0};
    struct fl_participations taken;
    double *distance;
    size_t i;

    switch (e->type) {
    case FL_EFF_PERSIST_SELECTION:
        put_selection(b, e);
        persisted(b, FL_EV_PERSISTED, e->seq);
        break;
    case FL_EFF_PERSIST_UPDATE:
        check(fl_store_put_update(b->store, e->round, e->attempt, &e->parts[0], &err), &err,
              "update");
        persisted(b, FL_EV_PERSISTED, e->seq);
        break;
    case FL_EFF_AGGREGATE:
        distance = calloc(e->n_parts + 1, sizeof(*distance));
        if (distance == NULL) {
            abort();
        }
        for (i = 0; i < e->n_parts; i++) {
            distance[i] = 1.0 + (double)(i % 7);
        }
        ev.u.aggregated.seq = e->seq;
        ev.u.aggregated.distance = distance;
        step(b, &ev);
        free(distance);
        break;
    case FL_EFF_COMMIT:
        save_model(b, e->round);
        taken = (struct fl_participations){.parts = e->parts, .n = e->n_parts};
        check(fl_store_commit(b->store, e->record, e->clients, e->n_clients, &taken, &err), &err,
              "commit");
        persisted(b, FL_EV_COMMITTED, e->seq);
        break;
    default:
        break;
    }
}

/* Effects are the coordinator's until the next step, which carrying one out may make: the one with
   a number is the last of those that matter. */
static void step(struct bench *b, struct fl_event *ev)
{
    struct fl_effects effects = {0};
    struct fl_effect work = {0};
    size_t i;

    ev->now_ms = ++b->now;
    ev->wall_ms = 1700000000000 + b->now;
    if (fl_coord_step(b->coord, ev, &effects) != FL_OK) {
        abort();
    }
    for (i = 0; i < effects.n; i++) {
        if (effects.list[i].type == FL_EFF_TASK && b->n_tasks < MAX_RESPONDERS) {
            b->tasks[b->n_tasks++] = effects.list[i].client;
        }
        work = effects.list[i].seq != 0 ? effects.list[i] : work;
    }
    if (work.seq != 0) {
        carry_out(b, &work);
    }
}

static void simple(struct bench *b, enum fl_event_type type)
{
    struct fl_event ev = {.type = type};

    step(b, &ev);
}

static void respond(struct bench *b, uint32_t client)
{
    struct fl_event ev = {.type = FL_EV_REPORT};
    uint64_t round = fl_coord_round(b->coord);
    uint32_t attempt = fl_coord_attempt(b->coord);

    ev.u.report.client = client;
    ev.u.report.round = round;
    ev.u.report.attempt = attempt;
    ev.u.report.samples = 100;
    ev.u.report.steps = 10;
    ev.u.report.train_loss = 1.0;
    step(b, &ev);
    ev = (struct fl_event){.type = FL_EV_UPLOAD_STORED};
    ev.u.upload.client = client;
    ev.u.upload.round = round;
    ev.u.upload.attempt = attempt;
    ev.u.upload.bytes = 16;
    step(b, &ev);
}

/* A pause before the last upload keeps the commit apart from the next selection. */
static void run_round(struct bench *b, size_t r)
{
    double before = now_us();
    size_t i;

    b->n_tasks = 0;
    simple(b, FL_EV_RESUME);
    b->select_us[r] = now_us() - before;
    if (b->n_tasks != b->responders) {
        (void)fprintf(stderr, "commit: %zu clients were asked, not %" PRIu64 "\n", b->n_tasks,
                      b->responders);
        exit(EXIT_FAILURE);
    }
    for (i = 0; i + 1 < b->n_tasks; i++) {
        respond(b, b->tasks[i]);
    }
    simple(b, FL_EV_PAUSE);
    before = now_us();
    respond(b, b->tasks[i]);
    b->commit_us[r] = now_us() - before;
    b->records_us[r] = b->commit_us[r] - b->model_us;
    if (fl_coord_committed(b->coord) != r + 1) {
        (void)fprintf(stderr, "commit: round %zu was not committed\n", r + 1);
        exit(EXIT_FAILURE);
    }
}

static void name_of(uint64_t i, char name[FL_NAME_MAX])
{
    /* Not in the order of the numbers. */
    (void)snprintf(name, FL_NAME_MAX, "edge-%08" PRIx64, (i * 2654435761u) & 0xffffffff);
}

static void fill_store(struct bench *b, uint64_t known)
{
    struct fl_client_rec *recs = calloc(known, sizeof(*recs));
    struct fl_err err = {0};
    uint64_t i;

    if (recs == NULL) {
        abort();
    }
    for (i = 0; i < known; i++) {
        recs[i] = (struct fl_client_rec){.id = (uint32_t)i,
                                         .agent = "bench",
                                         .samples = 100,
                                         .score = 100,
                                         .scored = true,
                                         .n_accepted = 1,
                                         .last_seen_ms = 1700000000000};
        name_of(i, recs[i].name);
    }
    check(fl_store_put_clients(b->store, recs, known, &err), &err, "clients");
    free(recs);
}

static void open_store(struct bench *b)
{
    struct fl_err err = {0};

    check(fl_store_open(b->dir, "bench", b->layout, FL_DURABLE_PROCESS, &b->store, &err), &err,
          "store");
}

static void join_all(struct bench *b, uint64_t known)
{
    double before = now_us();
    uint64_t i;

    for (i = 0; i < known; i++) {
        struct fl_event ev = {.type = FL_EV_CLIENT_JOINED};
        char name[FL_NAME_MAX];

        name_of(i, name);
        ev.u.joined.name = name;
        ev.u.joined.agent = "bench";
        ev.u.joined.samples = 100;
        step(b, &ev);
    }
    b->join_us = (now_us() - before) / (double)known;
}

static void set_fraction(struct bench *b, const char *name, uint64_t known)
{
    char value[64];

    (void)snprintf(value, sizeof(value), "%.17g", (double)b->responders / (double)known);
    /* Presets have one of two policies in this slot, each without the other's options. */
    if (fl_options_set(b->strategy->options[FL_COMPONENT_FRACTION], name, value, NULL) != FL_OK) {
        return;
    }
}

static void make_layout(struct bench *b)
{
    size_t many = 200000;
    struct fl_err err = {0};

    check(fl_layout_create(&b->layout), NULL, "layout");
    check(fl_layout_add(b->layout, "a", "a.weight", &many, 1, false, &err), &err, "layout");
    check(fl_layout_finish(b->layout, &err), &err, "layout");
    b->theta = calloc(fl_layout_count(b->layout), sizeof(*b->theta));
    if (b->theta == NULL) {
        abort();
    }
}

/* The median of a commit, in ms. */
static double run(struct bench *b, uint64_t known, double first)
{
    struct fl_coord_resume resume = {0};
    struct fl_err err = {0};
    double before;
    double commit;
    size_t r;

    b->now = 0;
    check(fl_strategy_create(b->algorithm, &b->strategy, &err), &err, "algorithm");
    set_fraction(b, "start", known);
    set_fraction(b, "end", known);
    set_fraction(b, "fraction", known);
    b->conf = (struct fl_coord_conf){.seed = 1,
                                     .start_clients = (uint32_t)known,
                                     .min_clients = (uint32_t)known,
                                     .min_responders = 1,
                                     .over_selection = 1.0,
                                     .train_ms = 1000000,
                                     .upload_ms = 1000000,
                                     .retry_ms = 50,
                                     .learning_rate = 0.1,
                                     .learning_rate_decay = 1.0,
                                     .max_clients = UINT32_MAX,
                                     .strategy = b->strategy,
                                     .layout = b->layout};
    open_store(b);
    fill_store(b, known);
    fl_store_close(b->store);
    before = now_us();
    open_store(b);
    check(fl_store_load(b->store, &resume, &err), &err, "load");
    check(fl_coord_create(&b->conf, &resume, &b->coord, &err), &err, "coordinator");
    b->start_ms = (now_us() - before) / 1e3;
    fl_store_resume_done(&resume);
    join_all(b, known);
    simple(b, FL_EV_PAUSE);
    simple(b, FL_EV_START);
    for (r = 0; r < b->rounds; r++) {
        run_round(b, r);
    }
    commit = bench_median(b->commit_us, b->rounds) / 1e3;
    (void)printf(
        "commit: known=%" PRIu64 " responders=%" PRIu64
        " commit_ms=%.3f ratio=%.2f records_ms=%.3f select_ms=%.3f join_us=%.2f start_ms=%.1f\n",
        known, b->responders, commit, first > 0 ? commit / first : 1.0,
        bench_median(b->records_us, b->rounds) / 1e3, bench_median(b->select_us, b->rounds) / 1e3,
        b->join_us, b->start_ms);
    (void)fflush(stdout);
    fl_coord_free(b->coord);
    fl_store_close(b->store);
    fl_strategy_free(b->strategy);
    return commit;
}

static void run_in_folder(struct bench *b, const char *parent, uint64_t known, double *first)
{
    struct fl_err err = {0};
    double commit;

    if (scratch_make(parent, "fl-bench", b->dir, sizeof(b->dir), &err) != FL_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        exit(EXIT_FAILURE);
    }
    commit = run(b, known, *first);
    *first = *first > 0 ? *first : commit;
    scratch_remove(b->dir);
}

int main(int argc, char **argv)
{
    struct fl_args line = {.program = "bench/commit", .rows = rows, .argc = argc, .argv = argv};
    static struct bench b = {.algorithm = "adafl", .responders = 100, .rounds = 101};
    char text[256] = "100,1000,10000,100000";
    const char *parent = scratch_parent();
    double first = 0;
    char *save = NULL;
    char *word;
    int opt;
    bool ok = true;

    while ((opt = bench_next(&line, prints)) != FL_ARGS_END) {
        if (opt == 'k') {
            ok = ok && fl_str_copy(text, sizeof(text), line.value) == FL_OK;
        } else if (opt == 'r') {
            ok = ok && fl_str_to_u64(line.value, &b.responders) == FL_OK;
        } else if (opt == 'n') {
            ok = ok && fl_str_to_u64(line.value, &b.rounds) == FL_OK;
        } else if (opt == 'd') {
            parent = line.value;
        } else {
            b.algorithm = line.value;
        }
    }
    ok = ok && b.rounds >= 1 && b.rounds <= MAX_ROUNDS && b.responders >= 1 &&
         b.responders <= MAX_RESPONDERS && strlen(parent) < sizeof(b.dir) - 20;
    make_layout(&b);
    for (word = strtok_r(text, ",", &save); ok && word != NULL; word = strtok_r(NULL, ",", &save)) {
        uint64_t known = 0;

        ok = fl_str_to_u64(word, &known) == FL_OK && known >= b.responders &&
             known < FL_CLIENT_NUMBERS;
        if (ok) {
            run_in_folder(&b, parent, known, &first);
        }
    }
    fl_layout_free(b.layout);
    free(b.theta);
    if (!ok) {
        bench_usage(&line, prints, /* asked= */ false);
    }
    return EXIT_SUCCESS;
}
