/* fl-sim world: lists the named network and device models, or shows the clients of one. Main
   thread. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/sorted.h"
#include "libfl/base/str.h"
#include "libfl/sim/flow.h"
#include "tools/fl_sim/experiment/experiment.h"
#include "tools/fl_sim/fl_sim.h"
#include "tools/fl_sim/world/world.h"

#define COMMAND       "world"
#define CLIENTS       100
#define CLIENTS_MAX   10000000
#define SHOWN_BYTES   800000
#define WEEK_US       (UINT64_C(7) * 86400 * 1000000)
#define WEEK_STEPS    10000 /* maximum values of one client */
#define COLUMN_TEXT   32
#define DIR_SIZE      4096
#define NO_SEED_GIVEN UINT64_MAX

struct options {
    const char *what; /* a name, or a file */
    uint64_t clients; /* 0: not given */
    uint64_t seed;    /* NO_SEED_GIVEN */
};

static const struct fl_arg rows[] = {
    FL_ARG("clients", '\0', "N", 'c',
           "number of clients; default: data.clients of the experiment, or 100"),
    FL_ARG("seed", '\0', "N", 's', "default: the first of the experiment, or 1"),
    FL_ARG("help", 'h', NULL, 'h', "print this and exit"),
    {.name = NULL}};

static const char help_before[] =
    "Usage: fl-sim world\n"
    "       fl-sim world show [OPTION]... NAME|EXPERIMENT.yaml\n\n"
    "List the named network and device models with the sources of their figures, or show the\n"
    "clients of one of them or of an experiment (of its first point and seed).\n";
static const char help_after[] = "\ndocs/simulation.md describes the keys of `world:`.\n"
                                 "Exit status: 0 done, 1 failed, 2 wrong usage.";

static int world_parse(int argc, char **argv, struct options *o)
{
    struct fl_args args = {.program = "fl-sim " COMMAND, .rows = rows, .argc = argc, .argv = argv};
    int opt;

    while ((opt = command_next(&args, help_before, help_after)) != FL_ARGS_END) {
        switch (opt) {
        case 'c':
            if (fl_str_to_u64(args.value, &o->clients) != FL_OK || o->clients > CLIENTS_MAX) {
                return usage_error(COMMAND, "--clients: expected 1 to %d, found '%s'", CLIENTS_MAX,
                                   args.value);
            }
            if (o->clients == 0) {
                return usage_error(COMMAND,
                                   "--clients: a model without clients: at least 1 is needed");
            }
            break;
        case 's':
            if (fl_str_to_u64(args.value, &o->seed) != FL_OK || o->seed == NO_SEED_GIVEN) {
                return usage_error(COMMAND, "--seed: expected a whole number, found '%s'",
                                   args.value);
            }
            break;
        default:
            break;
        }
    }
    if (args.n_operands == 0) {
        return 0; /* the list */
    }
    if (strcmp(argv[1], "show") != 0) {
        return usage_error(COMMAND, "expected show, or nothing, found '%s'", argv[1]);
    }
    if (args.n_operands != 2) {
        return usage_error(COMMAND, "show: expected one name or experiment");
    }
    o->what = argv[2];
    return 0;
}

/* --- loading --- */

static bool world_is_name(const char *text)
{
    size_t i;

    for (i = 0; fl_world_named(i) != NULL; i++) {
        if (strcmp(fl_world_named(i)->name, text) == 0) {
            return true;
        }
    }
    /* A misspelt name gets a suggestion; the name of a file contains a dot or a slash. */
    return strpbrk(text, "./") == NULL;
}

static int world_load_named(const struct options *o, struct fl_world **ret, struct fl_err *err)
{
    struct fl_world_ask ask = {.seed = o->seed != NO_SEED_GIVEN ? o->seed : 1,
                               .n = o->clients > 0 ? o->clients : CLIENTS};
    struct fl_conf_doc *doc = NULL;
    struct fl_buf text;
    int rv;

    fl_buf_init(&text, 4096);
    rv = fl_buf_printf(&text, "world: '%s'\n", o->what);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "'%s': not the name of a network and device model", o->what);
        goto done;
    }
    rv = fl_conf_parse("fl-sim world show", text.data, text.len, &doc, err);
    if (rv != FL_OK) {
        goto done;
    }
    ask.node = fl_conf_get(fl_conf_root(doc), "world");
    rv = fl_world_load(&ask, ret, err);
done:
    fl_conf_free(doc);
    fl_buf_done(&text);
    return rv;
}

static uint64_t world_clients_of_data(const struct fl_experiment_point *point)
{
    const struct fl_conf_node *node =
        fl_conf_kind(point->data) == FL_CONF_MAP ? fl_conf_get(point->data, "clients") : NULL;
    const char *text = node != NULL ? fl_conf_text(node) : NULL;
    uint64_t n;

    return text != NULL && fl_str_to_u64(text, &n) == FL_OK && n > 0 && n <= CLIENTS_MAX ? n
                                                                                         : CLIENTS;
}

static int world_load_file(const struct options *o, struct fl_world **ret, struct fl_err *err)
{
    struct fl_experiment *experiment = NULL;
    struct fl_experiment_point *point = NULL;
    struct fl_world_ask ask;
    const char *slash = strrchr(o->what, '/');
    char dir[DIR_SIZE];
    int rv = fl_experiment_load(o->what, NULL, 0, &experiment, err);

    (void)snprintf(dir, sizeof(dir), "%.*s",
                   slash != NULL ? (int)(slash - o->what) + (slash == o->what) : 1,
                   slash != NULL ? o->what : ".");
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_experiment_open(experiment, 0, 0, &point, err);
    if (rv != FL_OK) {
        goto done;
    }
    ask = (struct fl_world_ask){
        .node = point->world,
        .dir = dir,
        .seed = o->seed != NO_SEED_GIVEN ? o->seed : fl_experiment_seed(experiment, 0),
        .n = o->clients > 0 ? o->clients : world_clients_of_data(point),
        .horizon_us = point->stop.time_ms * 1000};
    rv = fl_world_load(&ask, ret, err);
done:
    fl_experiment_close(point);
    fl_experiment_free(experiment);
    return rv;
}

/* --- numbers with units --- */

struct scale {
    const char *unit;
    double factor;
};

/* Largest first; the last one takes the remaining values. */
static const struct scale rates[] = {
    {"Gbit/s", 125e6}, {"Mbit/s", 125e3}, {"kbit/s", 125}, {"bit/s", 0.125}, {NULL, 0}};
static const struct scale times[] = {{"h", 3600e6}, {"min", 60e6}, {"s", 1e6},
                                     {"ms", 1e3},   {"us", 1},     {NULL, 0}};
static const struct scale sizes[] = {{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}, {NULL, 0}};
static const struct scale shares[] = {{"%", 0.01}, {NULL, 0}};
static const struct scale numbers[] = {{"", 1}, {NULL, 0}};
static const struct scale speeds[] = {{"1/s", 1}, {NULL, 0}};

static const struct scale *world_scale(const struct scale *scales, double value)
{
    while (scales[1].unit != NULL && value < scales->factor) {
        scales++;
    }
    return scales;
}

/* Three significant digits, more where the integer part has more. */
static const char *world_number_text(char out[COLUMN_TEXT], double value)
{
    double size = fabs(value);

    (void)snprintf(out, COLUMN_TEXT, "%.*f",
                   size >= 99.95 || size <= 0 ? 0 : (size >= 9.995 ? 1 : (size >= 0.1 ? 2 : 4)),
                   value);
    return out;
}

static const char *world_with_unit(char out[COLUMN_TEXT], const struct scale *scales, double value)
{
    const struct scale *s = world_scale(scales, value);
    size_t used = strlen(world_number_text(out, value / s->factor));

    (void)snprintf(out + used, COLUMN_TEXT - used, " %s", s->unit);
    return out;
}

/* --- quantiles --- */

/* The values shown of each client. */
static const struct shown {
    const char *name;
    const struct scale *scales;
    bool unlimited; /* meaning of 0 */
} shown[] = {
    {"uplink", rates, true},
    {"downlink", rates, true},
    {"latency, one way", times, false},
    {"memory", sizes, true},
    {"training, fixed", times, false},
    {"training speed", speeds, true},
    {"training jitter", numbers, false},
    {"drops per upload", shares, false},
    {"up, of a week", shares, false},
};

#define N_SHOWN (sizeof(shown) / sizeof(shown[0]))

/* The share of the first week that a client is up. */
static double world_up_share(const struct fl_world *world, uint64_t client)
{
    uint64_t up = 0;
    uint64_t t = 0;
    uint64_t steps;

    for (steps = 0; t < WEEK_US && steps < WEEK_STEPS; steps++) {
        uint64_t until = 0;
        bool is_up = fl_world_up(world, client, t, &until);

        until = until < WEEK_US ? until : WEEK_US;
        up += is_up ? until - t : 0;
        t = until;
    }
    return (double)up / (double)t;
}

/* `columns`: N_SHOWN times as many values as there are clients. */
static void world_measure_clients(const struct fl_world *world, double *columns)
{
    uint64_t n = fl_world_clients(world);
    uint64_t i;

    for (i = 0; i < n; i++) {
        struct fl_world_client c;
        uint64_t until;
        size_t k;

        fl_world_client(world, i, &c);
        fl_world_link(world, i, 0, &c.up, &c.down, &until);
        {
            const double values[N_SHOWN] = {c.up,
                                            c.down,
                                            (double)c.latency_us,
                                            (double)c.memory,
                                            (double)c.train_us,
                                            c.samples_per_s,
                                            c.jitter,
                                            c.drop_chance,
                                            world_up_share(world, i)};

            for (k = 0; k < N_SHOWN; k++) {
                columns[k * n + i] = values[k];
            }
        }
    }
}

/* `values` are sorted. */
static void world_print_row(const struct shown *s, const double *values, uint64_t n)
{
    static const double quantiles[] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
    const struct scale *scale = world_scale(s->scales, values[n / 2]);
    char text[COLUMN_TEXT];
    size_t i;

    (void)printf("  %-18s", s->name);
    if (s->unlimited && values[n - 1] <= 0) {
        (void)puts(" unlimited");
        return;
    }
    for (i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        double value = values[(uint64_t)(quantiles[i] * (double)(n - 1))];

        (void)printf(" %9s", s->unlimited && value <= 0
                                 ? "unlimited"
                                 : world_number_text(text, value / scale->factor));
    }
    (void)printf("%s%s\n", scale->unit[0] != '\0' ? "  " : "", scale->unit);
}

/* --- transfers --- */

/* Transfers of all clients at once through the server's link. `ends`: completion times with
   latency, sorted. */
static int world_transfer_all(const struct fl_world *world, bool upload, uint64_t n, double *ends)
{
    struct fl_world_server server = fl_world_server(world);
    struct fl_flows *flows = NULL;
    uint64_t at;
    uint64_t i;
    int rv = fl_flows_create(upload ? server.down : server.up, &flows);

    if (rv != FL_OK) {
        goto done;
    }
    for (i = 0; i < n; i++) {
        struct fl_world_client c;
        uint64_t until;
        uint64_t id;

        fl_world_client(world, i, &c);
        fl_world_link(world, i, 0, &c.up, &c.down, &until);
        ends[i] = (double)c.latency_us;
        rv = fl_flows_add(flows, 0, SHOWN_BYTES, upload ? c.up : c.down, i, &id);
        if (rv != FL_OK) {
            goto done;
        }
    }
    while (fl_flows_next(flows, &at) && fl_flows_pop(flows, at, &i)) {
        ends[i] += (double)at;
    }
done:
    fl_flows_free(flows);
    fl_sort(ends, (size_t)n);
    return rv;
}

static int world_print_transfers(const struct fl_world *world)
{
    uint64_t n = fl_world_clients(world) < CLIENTS ? fl_world_clients(world) : CLIENTS;
    double ends[CLIENTS] = {0};
    char a[COLUMN_TEXT];
    char b[COLUMN_TEXT];
    char c[COLUMN_TEXT];
    int rv;
    int upload;

    for (upload = 0; upload < 2; upload++) {
        rv = world_transfer_all(world, upload == 1, n, ends);
        if (rv != FL_OK) {
            return rv;
        }
        (void)printf("%" PRIu64 " %s of %.1f MB at once: first after %s, half after %s, last after "
                     "%s\n",
                     n, upload == 1 ? "uploads" : "downloads", SHOWN_BYTES / 1e6,
                     world_with_unit(a, times, ends[0]),
                     world_with_unit(b, times, ends[(n - 1) / 2]),
                     world_with_unit(c, times, ends[n - 1]));
    }
    return FL_OK;
}

static int world_show(const struct options *o, struct fl_err *err)
{
    double *columns;
    struct fl_world *world = NULL;
    struct fl_world_server server;
    char up[COLUMN_TEXT];
    char down[COLUMN_TEXT];
    uint64_t n;
    size_t k;
    int rv =
        world_is_name(o->what) ? world_load_named(o, &world, err) : world_load_file(o, &world, err);

    if (rv != FL_OK) {
        return rv;
    }
    n = fl_world_clients(world);
    columns = calloc((size_t)n * N_SHOWN, sizeof(*columns));
    if (columns == NULL) {
        rv = FL_ENOMEM;
        goto done;
    }
    world_measure_clients(world, columns);
    (void)printf("%" PRIu64 " clients %*s min        p5       p25       p50       p75       p95"
                 "       max\n",
                 n, (int)(17 - snprintf(NULL, 0, "%" PRIu64, n)), "");
    for (k = 0; k < N_SHOWN; k++) {
        fl_sort(columns + k * n, (size_t)n);
        world_print_row(&shown[k], columns + k * n, n);
    }
    free(columns);
    server = fl_world_server(world);
    (void)printf("server: uplink %s (to clients), downlink %s (from clients)\n",
                 server.up > 0 ? world_with_unit(up, rates, server.up) : "unlimited",
                 server.down > 0 ? world_with_unit(down, rates, server.down) : "unlimited");
    rv = world_print_transfers(world);
done:
    fl_world_free(world);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_strerror(rv));
    }
    return FL_OK;
}

int cmd_world(int argc, char **argv)
{
    const struct fl_world_name *w;
    struct options o = {.seed = NO_SEED_GIVEN};
    struct fl_err err = {0};
    size_t i;
    int rv = world_parse(argc, argv, &o);

    if (rv != 0) {
        return rv;
    }
    if (o.what == NULL) {
        for (i = 0; (w = fl_world_named(i)) != NULL; i++) {
            (void)printf("%-12s %s\n             source: %s\n", w->name, w->help, w->source);
        }
        return EXIT_SUCCESS;
    }
    rv = world_show(&o, &err);
    return command_end(COMMAND, rv, &err);
}
