/*
 * bench/round: one real fl-serverd process against simulated clients that return at once.
 * Prints what a round of pure coordination costs: fetch, push, spool, aggregate, commit; and beside
 * it what a plain TCP stream takes for the same bytes.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/hostile.h"
#include "bench/line.h"
#include "bench/peers.h"
#include "bench/raw.h"
#include "bench/round_model.h"
#include "bench/round_server.h"
#include "bench/scratch.h"
#include "bench/sim_client.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/safetensors.h"

const char bench_name[] = "bench/round";

/* What clients upload. */
struct way {
    const char *name;
    const char *algorithm, *strategy; /* of the server */
    const struct fl_codec_ops *codec;
};

static const struct way ways[] = {
    {"full", "fedavg", "", &fl_codec_float32},
    {"fedldf", "fedldf", "", &fl_codec_float32},
    {"ternary", "fedavg", ", codec: {policy: ternary}", &fl_codec_ternary},
};

struct arguments {
    uint64_t clients, rounds, parameters;
    uint64_t hostile; /* clients beside them, from the middle of the rounds on */
    const struct way *way;
    const char *durability;
    const char *server; /* program */
    const char *dir;    /* scratch; NULL: made in $TMPDIR and removed */
};

static const struct fl_arg rows[] = {
    FL_ARG("clients", '\0', "N", 'c', "default 10"),
    FL_ARG("model-mb", '\0', "MB", 'm', "size of the model, default 100"),
    FL_ARG("parameters", '\0', "N", 'p', "the same in numbers of 4 bytes"),
    FL_ARG("upload", '\0', "WAY", 'u',
           "full (default), fedldf (each unit from some), ternary (coded)"),
    FL_ARG("durability", '\0', "D", 'y', "process (default) or power"),
    FL_ARG("rounds", '\0', "N", 'r', "default 5"),
    FL_ARG("hostile", '\0', "N", 'H',
           "beside them N hostile clients, from the middle of the rounds on"),
    FL_ARG("server", '\0', "PROGRAM", 's', "default: fl-serverd of the same build folder"),
    FL_ARG("dir", '\0', "DIR", 'd',
           "where its state lies; default: a new folder in $TMPDIR, removed"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "\n"
    "Runs a real fl-serverd with N simulated clients that fetch its model and push an\n"
    "update at once. Prints\n"
    "  round: clients=… model_mb=… upload=… durability=… rounds=… seconds=MEDIAN min=… max=…\n"
    "         wire_s=… ratio=… server_peak_rss_mb=… models=…\n"
    "         server_cpu_s=… clients_cpu_s=… wire_cpu_s=… cpu_ratio=…\n"
    "wire_s is a plain TCP stream (as in bench/wire) of the bytes that one round moved both\n"
    "ways, half of its runs before the rounds and half after; ratio = seconds / wire_s;\n"
    "models = peak memory / size of the model. Processor seconds are of one round, of both "
    "sides\n"
    "of the stream; cpu_ratio = (server_cpu_s + clients_cpu_s) / wire_cpu_s depends less than\n"
    "ratio on what else the machine does.\n"
    "With --hostile N, N more clients take part; from the middle of the rounds on half of them\n"
    "read nothing of the model, half stop in the middle of their upload, and two more peers\n"
    "begin 2000 calls and 200 connections a second. Rounds select 1.3 times the updates that\n"
    "they need (over_selection). Prints one line more, medians without the first round:\n"
    "  hostile: clients=… hostile=… rounds=… quiet_s=… hostile_s=… ratio=…\n"
    "           quiet_cpu_s=… hostile_cpu_s=…\n"
    "with the processor seconds of the server for one round.\n";

/* With hostile clients a round needs three quarters of all, and selects nearly all. */
#define HOSTILE_FRACTION 0.75
#define HOSTILE_ROUND    ", over_selection: 1.3"

static int write_config(const struct arguments *a, const char *path, const char *model)
{
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, 1u << 16);
    rv = fl_buf_printf(
        &buf,
        "federation: bench\nstate_dir: \"%s/state\"\nlisten: \"127.0.0.1:0\"\n"
        "insecure: yes\nlog_level: %s\nheartbeat: 1h\nwhen_finished: exit\n"
        "durability: %s\nrounds: %llu\nalgorithm: %s\n"
        "strategy: {fraction: {fraction: %g}%s}\nmodel: {file: \"%s\"}\n"
        "round: {start_clients: %llu, min_responders: %llu%s}\n"
        "evaluation: {every: 0}\ncheckpoints: {keep: 1}\n",
        a->dir, a->hostile > 0 ? "error" : "warning", a->durability, (unsigned long long)a->rounds,
        a->way->algorithm, a->hostile > 0 ? HOSTILE_FRACTION : 1.0, a->way->strategy, model,
        (unsigned long long)(a->clients + a->hostile),
        (unsigned long long)(a->hostile > 0 ? 1 : a->clients), a->hostile > 0 ? HOSTILE_ROUND : "");
    if (rv == FL_OK) {
        rv = fl_fs_replace(path, buf.data, buf.len, false, NULL);
    }
    fl_buf_done(&buf);
    return rv;
}

struct measurement {
    struct fl_loop *loop;
    pid_t server;
    double peak_mb;
    double server_cpu_s, clients_cpu_s; /* of all rounds */
    double quiet_cpu_s;                 /* of the server, until hostile clients begin */
    double *seconds;                    /* [rounds] */
    double *wire_s, *wire_cpu_s;        /* [rounds + 1] */
    size_t n_wire;
};

static double own_cpu_s(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Nothing says any more what a process had in memory that has ended, as this one does soon after
 * its last words: on a busy machine what the last round began with stands instead.
 */
static void on_ending(void *ctx)
{
    struct measurement *m = ctx;
    double peak_mb = round_server_peak_mb(m->server);

    m->peak_mb = peak_mb > m->peak_mb ? peak_mb : m->peak_mb;
}

static void on_halfway(void *ctx)
{
    struct measurement *m = ctx;

    m->quiet_cpu_s = round_server_cpu_s(m->server);
}

static void on_finished(void *ctx)
{
    struct measurement *m = ctx;

    m->server_cpu_s = round_server_cpu_s(m->server);
    fl_loop_stop(m->loop);
}

static void print_result(const struct arguments *a, const struct measurement *m)
{
    double rounds = (double)a->rounds;
    double model_mb = (double)a->parameters * sizeof(float) / 1e6;
    double seconds = bench_median(m->seconds, a->rounds);
    double wire_s = bench_median(m->wire_s, m->n_wire);
    double wire_cpu_s = bench_median(m->wire_cpu_s, m->n_wire);

    (void)printf("round: clients=%llu model_mb=%g upload=%s durability=%s rounds=%llu "
                 "seconds=%.4f min=%.4f max=%.4f wire_s=%.4f ratio=%.2f "
                 "server_peak_rss_mb=%.1f models=%.2f server_cpu_s=%.4f clients_cpu_s=%.4f "
                 "wire_cpu_s=%.4f cpu_ratio=%.2f\n",
                 (unsigned long long)a->clients, model_mb, a->way->name, a->durability,
                 (unsigned long long)a->rounds, seconds, m->seconds[0], m->seconds[a->rounds - 1],
                 wire_s, seconds / wire_s, m->peak_mb, m->peak_mb / model_mb,
                 m->server_cpu_s / rounds, m->clients_cpu_s / rounds, wire_cpu_s,
                 (m->server_cpu_s + m->clients_cpu_s) / rounds / wire_cpu_s);
}

/* Before the times are sorted for print_result(). */
static void print_hostile(const struct arguments *a, const struct measurement *m)
{
    size_t quiet = (size_t)a->rounds / 2;
    size_t hostile = (size_t)a->rounds - quiet;
    double quiet_s = bench_median(m->seconds + 1, quiet - 1);
    double hostile_s = bench_median(m->seconds + quiet, hostile);

    (void)printf("hostile: clients=%llu hostile=%llu rounds=%llu quiet_s=%.4f hostile_s=%.4f "
                 "ratio=%.2f quiet_cpu_s=%.4f hostile_cpu_s=%.4f\n",
                 (unsigned long long)a->clients, (unsigned long long)a->hostile,
                 (unsigned long long)a->rounds, quiet_s, hostile_s, hostile_s / quiet_s,
                 m->quiet_cpu_s / (double)quiet,
                 (m->server_cpu_s - m->quiet_cpu_s) / (double)hostile);
}

/* Seconds of each round, in `seconds`. False: one did not end. */
static bool take_times(const struct arguments *a, const uint64_t *times, double *seconds)
{
    uint64_t i;

    for (i = 0; i < a->rounds; i++) {
        if (times[i] == 0 || times[i + 1] == 0) {
            (void)fprintf(stderr, "round: round %llu did not end\n", (unsigned long long)i + 1);
            return false;
        }
        seconds[i] = (double)(times[i + 1] - times[i]) / 1e9;
    }
    return true;
}

/* Half of the streams of the bytes of a round. */
static void stream_raw(const struct arguments *a, const struct round_update *update, uint64_t bytes,
                       struct measurement *m)
{
    size_t last = m->n_wire + (a->rounds + 1) / 2;

    for (; m->n_wire < last; m->n_wire++) {
        struct raw_cost cost =
            raw_tcp(fl_blob_data(update->bytes), fl_blob_len(update->bytes), bytes);

        m->wire_s[m->n_wire] = cost.seconds;
        m->wire_cpu_s[m->n_wire] = cost.cpu_s;
    }
}

/* What goes both ways in a round. */
static uint64_t bytes_of(const struct arguments *a, const struct round_update *update)
{
    uint64_t up = a->clients * fl_blob_len(update->bytes);
    uint64_t n = (a->clients * 2 + 5) / 10; /* FedLDF's default: each unit from a share of 0.2. */

    if (strcmp(a->way->name, "fedldf") == 0) {
        up = (n > 0 ? n : 1) * fl_blob_len(update->bytes);
    }
    return a->clients * a->parameters * sizeof(float) + up;
}

static bool run_clients(const struct arguments *a, const struct round_update *update,
                        const char *address, uint64_t bytes, struct measurement *m)
{
    const struct hostile_setup hostile = {.address = address,
                                          .update = update,
                                          .clients = a->hostile,
                                          .honest_rounds = a->rounds / 2,
                                          .rounds = a->rounds};
    int fd = -1;
    pid_t beside = a->hostile > 0 ? hostile_start(&hostile, &fd) : -1;
    struct bench_clients *clients = NULL;
    struct bench_setup setup = {.loop = m->loop,
                                .address = address,
                                .n = a->clients,
                                .update = update,
                                .rounds = a->rounds,
                                .honest_rounds = a->rounds / 2,
                                .halfway = on_halfway,
                                .spare = a->hostile > 0,
                                .ending = on_ending,
                                .finished = on_finished,
                                .ctx = m};
    double before = own_cpu_s();
    bool good = false;

    if (bench_clients_start(&setup, &clients) == FL_OK) {
        fl_loop_run(m->loop);
        m->clients_cpu_s = own_cpu_s() - before;
        good = take_times(a, bench_clients_times(clients), m->seconds);
        if (good && a->hostile == 0 && bench_clients_moved(clients) != bytes * a->rounds) {
            (void)fprintf(stderr, "round: %llu bytes were moved, expected %llu\n",
                          (unsigned long long)bench_clients_moved(clients),
                          (unsigned long long)(bytes * a->rounds));
            good = false;
        }
    }
    bench_clients_free(clients);
    if (beside > 0) {
        peer_kill(beside);
    }
    return good;
}

static int measure(const struct arguments *a, const char *config, const struct round_update *update,
                   struct measurement *m)
{
    uint64_t bytes = bytes_of(a, update);
    char address[128];
    bool good;

    stream_raw(a, update, bytes, m);
    m->server = round_server_start(a->server, config, address, sizeof(address));
    if (m->server < 0 || fl_loop_create(&m->loop, NULL) != FL_OK) {
        (void)fprintf(stderr, "round: the server did not start\n");
        return EXIT_FAILURE;
    }
    good = run_clients(a, update, address, bytes, m);
    fl_loop_free(m->loop);
    round_server_stop(m->server);
    if (!good) {
        return EXIT_FAILURE;
    }
    stream_raw(a, update, bytes, m);
    if (a->hostile > 0) {
        print_hostile(a, m);
    }
    print_result(a, m);
    return EXIT_SUCCESS;
}

static int drive(const struct arguments *a, const char *config, const struct round_update *update)
{
    struct measurement m = {.seconds = calloc(a->rounds, sizeof(double)),
                            .wire_s = calloc(a->rounds + 1, sizeof(double)),
                            .wire_cpu_s = calloc(a->rounds + 1, sizeof(double))};
    int code = EXIT_FAILURE;

    if (m.seconds != NULL && m.wire_s != NULL && m.wire_cpu_s != NULL) {
        code = measure(a, config, update, &m);
    }
    free(m.seconds);
    free(m.wire_s);
    free(m.wire_cpu_s);
    return code;
}

static int run(struct arguments *a)
{
    char config[4096];
    char model[4096];
    struct fl_layout *layout = NULL;
    struct round_update update = {0};
    float *values = NULL;
    int code = EXIT_FAILURE;

    if (fl_fs_join(config, sizeof(config), a->dir, "server.yaml") != FL_OK ||
        fl_fs_join(model, sizeof(model), a->dir, "model.safetensors") != FL_OK ||
        round_model_make(a->parameters, &layout, &values) != FL_OK)
    {
        return EXIT_FAILURE;
    }
    a->parameters = fl_layout_count(layout);
    if (fl_st_save(model, layout, values, NULL, 0, false, NULL) == FL_OK &&
        write_config(a, config, model) == FL_OK &&
        round_update_make(layout, values, a->way->codec, &update) == FL_OK)
    {
        free(values);
        values = NULL;
        code = drive(a, config, &update);
    }
    round_update_done(&update);
    free(values);
    fl_layout_free(layout);
    return code;
}

/* <folder of this program>/../fl-serverd */
static const char *default_server(char *out, size_t size, const char *argv0)
{
    const char *slash = strrchr(argv0, '/');
    int n = slash != NULL ? snprintf(out, size, "%.*s/../fl-serverd", (int)(slash - argv0), argv0)
                          : snprintf(out, size, "./fl-serverd");

    return n > 0 && (size_t)n < size ? out : "fl-serverd";
}

static int parse_mb(const char *text, uint64_t *ret_parameters)
{
    double mb = 0;
    int rv = fl_str_to_double(text, &mb);

    if (rv == FL_OK) {
        *ret_parameters = mb > 0 && mb < 1e6 ? (uint64_t)(mb * 1e6 / sizeof(float)) : 0;
    }
    return rv;
}

static int parse_way(const char *text, const struct way **ret)
{
    size_t i;

    for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(ways[i].name, text) == 0) {
            *ret = &ways[i];
            return FL_OK;
        }
    }
    return FL_EINVAL;
}

static int parse_one(struct arguments *a, int opt, const char *text)
{
    switch (opt) {
    case 'c':
        return fl_str_to_u64(text, &a->clients);
    case 'm':
        return parse_mb(text, &a->parameters);
    case 'p':
        return fl_str_to_u64(text, &a->parameters);
    case 'H':
        return fl_str_to_u64(text, &a->hostile);
    case 'u':
        return parse_way(text, &a->way);
    case 'y':
        a->durability = text;
        return FL_OK;
    case 'r':
        return fl_str_to_u64(text, &a->rounds);
    case 's':
        a->server = text;
        return FL_OK;
    case 'd':
        a->dir = text;
        return FL_OK;
    default:
        return FL_EINVAL;
    }
}

int main(int argc, char **argv)
{
    struct fl_args line = {.program = "bench/round", .rows = rows, .argc = argc, .argv = argv};
    struct arguments a = {.clients = 10,
                          .rounds = 5,
                          .parameters = 25000000,
                          .way = &ways[0],
                          .durability = "process"};
    char server[4096];
    char scratch[4096];
    struct fl_err err = {0};
    int code;
    int opt;

    a.server = default_server(server, sizeof(server), argv[0]);
    while ((opt = bench_next(&line, prints)) != FL_ARGS_END) {
        if (parse_one(&a, opt, line.value) != FL_OK) {
            (void)fprintf(stderr, "round: '%s' is no value of --%s\n", line.value, line.row->name);
            bench_usage(&line, prints, /* asked= */ false);
        }
    }
    if (a.clients == 0 || a.rounds == 0 || a.parameters < ROUND_UNITS ||
        (a.hostile > 0 && a.rounds < 4))
    {
        bench_usage(&line, prints, /* asked= */ false);
    }
    peers_open_files();
    if (a.dir != NULL) {
        return run(&a);
    }
    if (scratch_make(scratch_parent(), "fl-bench", scratch, sizeof(scratch), &err) != FL_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return EXIT_FAILURE;
    }
    a.dir = scratch;
    code = run(&a);
    scratch_remove(scratch);
    return code;
}
