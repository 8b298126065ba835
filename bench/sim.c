/*
 * What a simulated round costs beyond its trainings: whole federations on fl-sim's engine, each in
 * a process of its own.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/line.h"
#include "bench/sim.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/engine/heap.h"

#ifndef FL_SIM_TORCH
#define FL_SIM_TORCH "bench/sim_torch.py"
#endif

enum {
    CLIENTS = 256,
    SELECTED,
    MODEL,
    ALGORITHM,
    ROUNDS,
    SAMPLES,
    BATCH,
    THREADS,
    DIR_,
    TABLE,
    LARGE,
    FLUTE,
    AGAINST,
    PYTHON
};

static const struct fl_arg rows[] = {
    FL_ARG("table", '\0', NULL, TABLE,
           "the rounds whose cost is promised, and how it grows (without options)"),
    FL_ARG("large", '\0', NULL, LARGE,
           "1 000 000 registered clients; 10 000 that keep state on disk"),
    FL_ARG("flute", '\0', NULL, FLUTE,
           "the benchmark of FLUTE: logistic regression on MNIST ($FL_DATA_DIR)"),
    FL_ARG("against", '\0', "torch", AGAINST,
           "mlp200 beside a plain PyTorch loop of the same rounds, both on all cores (or "
           "--threads), the loop also on one thread: the faster counts"),
    FL_ARG("python", '\0', "PROGRAM", PYTHON, "that has PyTorch (default /usr/bin/python3)"),
    FL_ARG("clients", '\0', "N", CLIENTS, "one line: registered clients (default 100)"),
    FL_ARG("selected", '\0', "K", SELECTED, "of each round (default all)"),
    FL_ARG("model", '\0', "NAME", MODEL, "network (default dnn60, 60-20-10)"),
    FL_ARG("algorithm", '\0', "NAME", ALGORITHM, "preset (default fedavg)"),
    FL_ARG("rounds", '\0', "R", ROUNDS, "that are measured (default 11)"),
    FL_ARG("samples", '\0', "S", SAMPLES, "of a client (default 1)"),
    FL_ARG("batch", '\0', "B", BATCH, "(default 10)"),
    FL_ARG("threads", '\0', "T", THREADS, "(default 1)"),
    FL_ARG("dir", '\0', "FOLDER", DIR_,
           "where federations are made and removed (default /dev/shm)"),
    FL_ARG("help", 'h', NULL, 'h', "this text"),
    {.name = NULL}};

static const char prints[] =
    "A line of a federation:\n"
    "  sim: model=… parameters=… clients=… selected=… round_ms=… cpu_ms=… train_ms=… "
    "beyond_ms=…\n"
    "       client_us=… start_s=… peak_mb=…\n"
    "round_ms is the median of its rounds, cpu_ms that of what the process computed in one, "
    "which\n"
    "others on the machine do not change; train_ms what the trainings of a round compute by\n"
    "themselves (0: not measured, of solvers that need more than the model); beyond_ms is "
    "cpu_ms\n"
    "less that, client_us that of one client; start_s until the first round is over, with all\n"
    "clients joining; peak_mb the resident memory of the process.\n";

struct options {
    struct sim_case one;
    bool table, large, flute, single, threads_set;
    const char *against, *python;
};

static void die(int rv, const struct fl_err *err)
{
    (void)fprintf(stderr, "sim: %s\n", fl_err_text(err, rv));
    exit(EXIT_FAILURE);
}

static struct sim_figures measure(const struct sim_case *c)
{
    struct sim_figures f = {.parameters = 0};
    struct fl_err err = {0};
    int rv = sim_run(c, &f, &err);

    if (rv != FL_OK) {
        die(rv, &err);
    }
    return f;
}

/* Returns what a round takes beyond its trainings. */
static double show(const struct sim_case *c)
{
    struct sim_figures f = measure(c);
    double beyond = f.cpu_ms - f.train_ms;

    printf("sim: model=%s parameters=%zu clients=%zu selected=%zu round_ms=%.2f cpu_ms=%.2f "
           "train_ms=%.2f "
           "beyond_ms=%.2f client_us=%.1f start_s=%.2f peak_mb=%.0f\n",
           c->model, f.parameters, c->clients, c->selected, f.round_ms, f.cpu_ms, f.train_ms,
           beyond, 1e3 * beyond / (double)c->selected, f.start_s, f.peak_mb);
    (void)fflush(stdout);
    return beyond;
}

/* --- the tables --- */

/* Least squares of log y over log x. */
static double exponent(const double *x, const double *y, size_t n)
{
    double sx = 0;
    double sy = 0;
    double sxx = 0;
    double sxy = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sx += log(x[i]);
        sy += log(y[i]);
        sxx += log(x[i]) * log(x[i]);
        sxy += log(x[i]) * log(y[i]);
    }
    return ((double)n * sxy - sx * sy) / ((double)n * sxx - sx * sx);
}

static void show_table(const struct sim_case *one)
{
    static const size_t sizes[] = {100, 1000, 10000};
    static const size_t rounds[] = {51, 21, 7};
    struct sim_case c = *one;
    double x[3];
    double y[3];
    size_t i;

    for (i = 0; i < 3; i++) {
        c.clients = c.selected = sizes[i];
        c.rounds = rounds[i];
        x[i] = (double)sizes[i];
        y[i] = show(&c);
    }
    printf("sim: exponent=%.3f of beyond_ms over 100 to 10000 clients\n", exponent(x, y, 3));
    c = *one;
    c.model = "mlp200";
    c.clients = c.selected = 100;
    c.rounds = 21;
    (void)show(&c);
}

static void show_large(const struct sim_case *one)
{
    struct sim_case c = *one;

    c.clients = 1000000;
    c.selected = 1000;
    c.rounds = 5;
    (void)show(&c);
    c.model = "mlp200";
    c.algorithm = "scaffold";
    c.clients = 10000;
    c.selected = 100;
    c.rounds = 20;
    (void)show(&c);
}

static void show_flute(const struct sim_case *one)
{
    const char *root = getenv("FL_DATA_DIR");
    char folder[512];
    struct sim_case c = *one;
    struct sim_figures f;

    (void)snprintf(folder, sizeof(folder), "%s/mnist", root != NULL ? root : "../shared/data");
    c.model = "mlr";
    c.data = folder;
    c.clients = 1000;
    c.selected = 10;
    c.samples = 60;
    c.batch = 10;
    c.learning_rate = 0.03;
    c.rounds = 99;
    c.evaluate_every = 20;
    f = measure(&c);
    printf("flute: clients=1000 selected=10 rounds=100 threads=%u s=%.2f accuracy=%.4f\n",
           c.threads, f.start_s + f.total_s, f.accuracy);
}

/* --- against others --- */

static double run_torch(const struct options *o, const struct sim_case *c, char *line, size_t size)
{
    char command[1024];
    const char *at;
    double seconds = 0;
    FILE *out;
    bool there;

    (void)snprintf(command, sizeof(command),
                   "'%s' '%s' --clients %zu --samples %zu --batch %u --rounds %zu --threads %u",
                   o->python, FL_SIM_TORCH, c->selected, c->samples, c->batch, c->rounds,
                   c->threads);
    out = popen(command, "r");
    there = out != NULL && fgets(line, (int)size, out) != NULL;
    if (out != NULL) {
        (void)pclose(out);
    }
    line[there ? strcspn(line, "\n") : 0] = '\0';
    at = strstr(line, " s=");
    if (at == NULL || fl_str_to_double(at + 3, &seconds) != FL_OK) {
        (void)fprintf(stderr, "sim: %s has no PyTorch (python3-torch)\n", o->python);
        exit(EXIT_FAILURE);
    }
    return seconds;
}

/* On all cores: ours train clients beside each other, a loop can only spread a step over them. */
static void show_against(const struct options *o)
{
    struct sim_case c = o->one;
    struct sim_figures f;
    char line[512];
    double torch_s;
    double alone_s;

    c.model = "mlp200";
    c.clients = c.selected = 100;
    c.samples = 600;
    c.rounds = 3;
    f = measure(&c);
    torch_s = run_torch(o, &c, line, sizeof(line));
    (void)puts(line);
    if (c.threads > 1) { /* Whichever suits it better. */
        struct sim_case one = c;

        one.threads = 1;
        alone_s = run_torch(o, &one, line, sizeof(line));
        (void)puts(line);
        torch_s = alone_s < torch_s ? alone_s : torch_s;
    }
    printf(
        "against: clients=100 samples=600 rounds=%zu threads=%u s=%.2f torch_s=%.2f ratio=%.1f\n",
        c.rounds, c.threads, f.total_s, torch_s, torch_s / f.total_s);
}

/* --- main --- */

static size_t number(const char *text)
{
    uint64_t value = 0;

    if (fl_str_to_u64(text, &value) != FL_OK || value == 0 || value > 100000000) {
        (void)fprintf(stderr, "sim: '%s' is no number of 1 to 100 000 000\n", text);
        exit(EXIT_FAILURE);
    }
    return (size_t)value;
}

static void take_option(struct options *o, int option, const char *value)
{
    switch (option) {
    case CLIENTS:
        o->one.clients = number(value);
        break;
    case SELECTED:
        o->one.selected = number(value);
        break;
    case MODEL:
        o->one.model = value;
        break;
    case ALGORITHM:
        o->one.algorithm = value;
        break;
    case ROUNDS:
        o->one.rounds = number(value);
        break;
    case SAMPLES:
        o->one.samples = number(value);
        break;
    case BATCH:
        o->one.batch = (unsigned)number(value);
        break;
    case THREADS:
        o->one.threads = (unsigned)number(value);
        o->threads_set = true;
        break;
    case DIR_:
        o->one.dir = value;
        break;
    case TABLE:
        o->table = true;
        break;
    case LARGE:
        o->large = true;
        break;
    case FLUTE:
        o->flute = true;
        break;
    case AGAINST:
        o->against = value;
        break;
    case PYTHON:
        o->python = value;
        break;
    default:
        break;
    }
    o->single = o->single || (option >= CLIENTS && option <= BATCH);
}

int main(int argc, char **argv)
{
    struct fl_args line = {.program = "bench/sim", .rows = rows, .argc = argc, .argv = argv};
    struct options o = {.python = "/usr/bin/python3",
                        .one = {.model = "dnn60",
                                .algorithm = "fedavg",
                                .clients = 100,
                                .rounds = 11,
                                .samples = 1,
                                .batch = 10,
                                .epochs = 1,
                                .threads = 1,
                                .learning_rate = 0.05,
                                .dir = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"}};
    int option;

    fl_sim_keep_heap();
    while ((option = bench_next(&line, prints)) != FL_ARGS_END) {
        take_option(&o, option, line.value);
    }
    if (o.against != NULL && strcmp(o.against, "torch") != 0) {
        bench_usage(&line, prints, /* asked= */ false);
    }
    if (o.one.selected == 0 || o.one.selected > o.one.clients) {
        o.one.selected = o.one.clients;
    }
    if (o.single && o.against == NULL && !o.flute && !o.large && !o.table) {
        (void)show(&o.one);
    } else if (o.table || (!o.large && !o.flute && o.against == NULL)) {
        show_table(&o.one);
    }
    if (o.large) {
        show_large(&o.one);
    }
    if (o.flute) {
        show_flute(&o.one);
    }
    if (o.against != NULL) {
        o.one.threads = o.threads_set ? o.one.threads : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
        show_against(&o);
    }
    return EXIT_SUCCESS;
}
