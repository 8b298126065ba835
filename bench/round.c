/*
 * bench/round: one real fl-serverd process against simulated clients that return at once.
 * Prints what a round of pure coordination costs: fetch, push, spool, aggregate, commit.
 */

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/scratch.h"
#include "bench/sim_client.h"
#include "libfl/base/fs.h"
#include "libfl/base/rng.h"
#include "libfl/base/str.h"
#include "libfl/model/safetensors.h"

#define UNITS 16

struct arguments {
    uint64_t clients, rounds;
    double model_mb;
    const char *server; /* program */
    const char *dir;    /* scratch; NULL: made in $TMPDIR and removed */
};

static void usage(FILE *out)
{
    (void)fputs(
        "usage: round [--clients N] [--model-mb MB] [--rounds N] [--server PROGRAM] [--dir DIR]\n"
        "\n"
        "Runs a real fl-serverd with a model of MB megabytes and N simulated clients that\n"
        "fetch it and push a full float32 update at once. Prints\n"
        "  round: clients=… model_mb=… rounds=… seconds=MEDIAN min=… max=…\n"
        "         server_peak_rss_mb=… server_cpu_s=…(a round)\n"
        "default: 10 clients, 100 MB, 3 rounds; the server of the same build folder\n",
        out);
}

/* A layout of UNITS equal matrices, and a small random update for all of it. */
static int make_model(double mb, struct fl_layout **ret_layout, float **ret_values)
{
    size_t per_unit = (size_t)(mb * 1e6 / sizeof(float) / UNITS);
    struct fl_layout *layout = NULL;
    struct fl_rng rng;
    float *values = NULL;
    size_t i;
    int rv = fl_layout_create(&layout);

    for (i = 0; rv == FL_OK && i < UNITS; i++) {
        char unit[32];
        char tensor[48];

        (void)snprintf(unit, sizeof(unit), "layer%zu", i);
        (void)snprintf(tensor, sizeof(tensor), "layer%zu.weight", i);
        rv = fl_layout_add(layout, unit, tensor, &per_unit, 1, false, NULL);
    }
    if (rv == FL_OK) {
        rv = fl_layout_finish(layout, NULL);
    }
    if (rv == FL_OK) {
        values = malloc(fl_layout_count(layout) * sizeof(float));
        rv = values != NULL ? FL_OK : FL_ENOMEM;
    }
    if (rv != FL_OK) {
        fl_layout_free(layout);
        return rv;
    }
    fl_rng_seed(&rng, 1);
    for (i = 0; i < fl_layout_count(layout); i++) {
        values[i] = (float)(fl_rng_unit(&rng) - 0.5) * 1e-3f;
    }
    *ret_layout = layout;
    *ret_values = values;
    return FL_OK;
}

static int write_config(const struct arguments *a, const char *path, const char *model)
{
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, 1u << 16);
    rv = fl_buf_printf(&buf,
                       "federation: bench\nstate_dir: \"%s/state\"\nlisten: \"127.0.0.1:0\"\n"
                       "insecure: yes\nlog_level: warning\nheartbeat: 1h\nwhen_finished: "
                       "exit\nrounds: %llu\nalgorithm: fedavg\n"
                       "strategy: {fraction: {fraction: 1.0}}\nmodel: {file: \"%s\"}\n"
                       "round: {start_clients: %llu, min_responders: %llu}\n"
                       "evaluation: {every: 0}\ncheckpoints: {keep: 1}\n",
                       a->dir, (unsigned long long)a->rounds, model, (unsigned long long)a->clients,
                       (unsigned long long)a->clients);
    if (rv == FL_OK) {
        rv = fl_fs_replace(path, buf.data, buf.len, false, NULL);
    }
    fl_buf_done(&buf);
    return rv;
}

/* Start the server; the first line it prints is "listening ADDRESS". */
static pid_t start_server(const struct arguments *a, const char *config, char *address, size_t size)
{
    char line[256] = "";
    FILE *out;
    int fds[2];
    pid_t pid;

    if (pipe(fds) != 0 || (pid = fork()) < 0) {
        return -1;
    }
    if (pid == 0) {
        (void)dup2(fds[1], STDOUT_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        (void)execl(a->server, a->server, config, (char *)NULL);
        perror(a->server);
        _exit(127);
    }
    (void)close(fds[1]);
    out = fdopen(fds[0], "r");
    while (out != NULL && fgets(line, sizeof(line), out) != NULL) {
        if (strncmp(line, "listening ", 10) == 0) {
            line[strcspn(line, "\n")] = '\0';
            if (fl_str_copy(address, size, line + 10) == FL_OK) {
                return pid; /* `out` stays open: the server may print more. */
            }
        }
    }
    return -1;
}

static long peak_kb(pid_t pid)
{
    char path[64];
    char line[256];
    long kb = -1;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kb = strtol(line + 6, NULL, 10);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kb;
}

static double cpu_seconds(pid_t pid)
{
    char path[64];
    char line[1024] = "";
    char *p;
    unsigned long ticks = 0;
    int field;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    f = fopen(path, "r");
    if (f == NULL) {
        return -1.0;
    }
    if (fgets(line, sizeof(line), f) == NULL) {
        line[0] = '\0';
    }
    (void)fclose(f);
    p = strrchr(line, ')'); /* fields from the third on */
    for (field = 3; p != NULL && field <= 15; field++) {
        p = strchr(p + 1, ' ');
        if (p != NULL && field >= 14) { /* utime, stime */
            ticks += strtoul(p + 1, NULL, 10);
        }
    }
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

struct measurement {
    struct fl_loop *loop;
    pid_t server;
    long peak_kb;
    double cpu_s;
};

static void on_finished(void *ctx)
{
    struct measurement *m = ctx;

    m->peak_kb = peak_kb(m->server);
    m->cpu_s = cpu_seconds(m->server);
    fl_loop_stop(m->loop);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static int print_result(const struct arguments *a, const struct measurement *m,
                        const uint64_t *times)
{
    double *seconds = calloc(a->rounds, sizeof(*seconds));
    uint64_t i;

    if (seconds == NULL) {
        return EXIT_FAILURE;
    }
    for (i = 0; i < a->rounds; i++) {
        if (times[i] == 0 || times[i + 1] == 0) {
            (void)fprintf(stderr, "round: round %llu did not end\n", (unsigned long long)i + 1);
            free(seconds);
            return EXIT_FAILURE;
        }
        seconds[i] = (double)(times[i + 1] - times[i]) / 1e9;
    }
    qsort(seconds, a->rounds, sizeof(*seconds), compare);
    (void)printf("round: clients=%llu model_mb=%g rounds=%llu seconds=%.3f min=%.3f max=%.3f "
                 "server_peak_rss_mb=%.0f server_cpu_s=%.3f\n",
                 (unsigned long long)a->clients, a->model_mb, (unsigned long long)a->rounds,
                 seconds[a->rounds / 2], seconds[0], seconds[a->rounds - 1],
                 (double)m->peak_kb / 1024.0, m->cpu_s / (double)a->rounds);
    free(seconds);
    return EXIT_SUCCESS;
}

static int drive(const struct arguments *a, const char *config, struct fl_blob *update)
{
    struct measurement m = {0};
    struct bench_clients *clients = NULL;
    struct bench_setup setup = {
        .n = a->clients, .update = update, .rounds = a->rounds, .finished = on_finished, .ctx = &m};
    char address[128];
    int code = EXIT_FAILURE;

    m.server = start_server(a, config, address, sizeof(address));
    if (m.server < 0 || fl_loop_create(&m.loop, NULL) != FL_OK) {
        (void)fprintf(stderr, "round: the server did not start\n");
        return EXIT_FAILURE;
    }
    setup.loop = m.loop;
    setup.address = address;
    if (bench_clients_start(&setup, &clients) == FL_OK) {
        fl_loop_run(m.loop);
        code = print_result(a, &m, bench_clients_times(clients));
    }
    fl_loop_free(m.loop);
    bench_clients_free(clients);
    (void)kill(m.server, SIGTERM);
    (void)waitpid(m.server, NULL, 0);
    return code;
}

static int run(const struct arguments *a)
{
    char config[4096];
    char model[4096];
    struct fl_layout *layout = NULL;
    struct fl_blob *update = NULL;
    float *values = NULL;
    int code = EXIT_FAILURE;

    if (fl_fs_join(config, sizeof(config), a->dir, "server.yaml") != FL_OK ||
        fl_fs_join(model, sizeof(model), a->dir, "model.safetensors") != FL_OK ||
        make_model(a->model_mb, &layout, &values) != FL_OK)
    {
        return EXIT_FAILURE;
    }
    if (fl_st_save(model, layout, values, NULL, 0, false, NULL) == FL_OK &&
        write_config(a, config, model) == FL_OK &&
        fl_blob_wrap(values, fl_layout_count(layout) * sizeof(float), free, values, &update) ==
            FL_OK)
    {
        values = NULL;
        code = drive(a, config, update);
    }
    fl_blob_unref(update);
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

static int parse(int argc, char **argv, struct arguments *a)
{
    static const struct option options[] = {{"clients", required_argument, NULL, 'c'},
                                            {"model-mb", required_argument, NULL, 'm'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {"server", required_argument, NULL, 's'},
                                            {"dir", required_argument, NULL, 'd'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int rv = FL_OK;
    int opt;

    while (rv == FL_OK && (opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (opt) {
        case 'c':
            rv = fl_str_to_u64(optarg, &a->clients);
            break;
        case 'm':
            rv = fl_str_to_double(optarg, &a->model_mb);
            break;
        case 'r':
            rv = fl_str_to_u64(optarg, &a->rounds);
            break;
        case 's':
            a->server = optarg;
            break;
        case 'd':
            a->dir = optarg;
            break;
        case 'h':
            usage(stdout);
            exit(EXIT_SUCCESS);
        default:
            rv = FL_EINVAL;
            break;
        }
    }
    return rv == FL_OK && optind == argc && a->clients > 0 && a->rounds > 0 && a->model_mb > 0.0
               ? FL_OK
               : FL_EINVAL;
}

int main(int argc, char **argv)
{
    struct arguments a = {.clients = 10, .rounds = 3, .model_mb = 100.0};
    char server[4096];
    char scratch[4096];
    const char *tmp = getenv("TMPDIR");
    struct fl_err err = {0};
    int code;

    a.server = default_server(server, sizeof(server), argv[0]);
    if (parse(argc, argv, &a) != FL_OK) {
        usage(stderr);
        return 2;
    }
    if (a.dir != NULL) {
        return run(&a);
    }
    if (scratch_make(tmp != NULL ? tmp : "/tmp", "fl-bench", scratch, sizeof(scratch), &err) !=
        FL_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return EXIT_FAILURE;
    }
    a.dir = scratch;
    code = run(&a);
    scratch_remove(scratch);
    return code;
}
