/*
 * The published federations in one process: policies, solvers, trainer and aggregation as the
 * daemons use them, without daemons between. Runs rows of the table of FedMCSA's Synthetic
 * data (exact samples, MLR, 100 clients, S = 20, R = 20 steps of 20) and prints the best
 * accuracy over the rounds on the clients' own test data beside what is expected.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/anchors.h"
#include "libfl/base/clock.h"

static const char usage[] =
    "usage: bench/anchors [options]\n"
    "  --rows A,B,…   rows to run (default all); --rows help lists them\n"
    "  --rounds T     rounds of each (default 800)\n"
    "  --seed N       of initial model, batches, draws and the split (default 1)\n"
    "  --check        exit 1 when a row is more than its tolerance from what is expected\n"
    "  --help         this text\n"
    "One line per row: the best accuracy over all clients' test samples (weighted, the papers'\n"
    "figure) and the mean of the clients' accuracies (unweighted), as expected and as found.\n";

/*
 * Expected figures and their tolerance: half a point (design measurements on the same
 * samples). 0: nothing is expected, the row is only shown.
 */
#define COMPONENT(which)                      \
    {                                         \
        FL_SLOT_AGGREGATE, "component", which \
    }
#define WEIGHTED(which)                         \
    {                                           \
        FL_SLOT_AGGREGATE, "size_weight", which \
    }
#define PULL(mu)                 \
    {                            \
        FL_SLOT_SOLVER, "mu", mu \
    }
#define LAMBDA                        \
    {                                 \
        FL_SLOT_SOLVER, "lambda", "5" \
    }
#define INNER                                         \
    {                                                 \
        FL_SLOT_SOLVER, "inner_learning_rate", "0.02" \
    }
/* clang-format off */
static const struct anchor_row rows[] = {
    {"fedavg", "fedavg", {{0}}, 20, 0.0, 77.9, 53.1, 0.5},
    {"fedprox-0.1", "fedprox", {{FL_SLOT_SOLVER, "mu", "0.1"}}, 20, 0.0, 78.0, 52.8, 0.5},
    {"fedprox-1", "fedprox", {{FL_SLOT_SOLVER, "mu", "1"}}, 20, 0.0, 77.65, 51.9, 0.5},
    {"local_only", "local_only", {{0}}, 20, 0.0, 94.15, 93.65, 0.5},
    {"fedmcsa", "fedmcsa", {{0}}, 20, 0.001, 93.88, 93.45, 0.5},
    {"fedmcsa-unit", "fedmcsa", {COMPONENT("unit"), WEIGHTED("no")}, 20, 0.001, 93.89, 93.4, 0.5},
    {"fedmcsa-sigma0", "fedmcsa", {{FL_SLOT_AGGREGATE, "sigma", "0"}}, 20, 0.001, 86.06, 85.1, 0.5},
    {"fedmcsa-all", "fedmcsa", {{FL_SLOT_UPLOAD, "share", "1"}}, 20, 0.001, 90.92, 85.4, 0.5},
    {"fedmcsa_fixed", "fedmcsa_fixed", {{0}}, 20, 0.0, 83.98, 0, 0.5},
    {"fixed-0.1", "fedmcsa_fixed", {COMPONENT("tensor"), WEIGHTED("yes"), PULL("0.1")}, 20, 0.0, 93.85, 0, 0.5},
    {"fixed-1", "fedmcsa_fixed", {COMPONENT("tensor"), WEIGHTED("yes"), PULL("1")}, 20, 0.0, 92.33, 0, 0.5},
    {"fixed-15", "fedmcsa_fixed", {COMPONENT("tensor"), WEIGHTED("yes"), PULL("15")}, 20, 0.0, 82.4, 0, 0.5},
    {"fedavg+mcsa", "fedavg+mcsa", {{0}}, 20, 0.0, 94.2, 0, 0.5},
    {"fedavg+ft", "fedavg+ft", {{0}}, 20, 0.0, 84.32, 83.3, 0.5},
    {"pfedme", "pfedme", {LAMBDA, INNER}, 20, 0.001, 84.15, 83.45, 0.5},
    {"pfedme-w", "pfedme", {LAMBDA, INNER, {FL_SLOT_SOLVER, "personal", "w_local"}}, 20, 0.001, 83.65, 0, 0.5},
    /* R = 20 iterations of two batches; judged after two steps on test batches, as published. */
    {"per_fedavg", "per_fedavg", {{FL_SLOT_PERSONAL, "data", "test"}, {FL_SLOT_PERSONAL, "steps", "2"}}, 40, 0.0, 83.2, 0, 0.5},
    {"heur_fedamp", "heur_fedamp", {{0}}, 20, 0.0, 82.75, 83.2, 0.5},
    {"heur_fedamp-moving", "heur_fedamp", {{FL_SLOT_SOLVER, "anchor", "moving"}}, 20, 0.0, 85.07, 85.4, 0.5},
    {NULL, NULL, {{0}}, 0, 0, 0, 0, 0},
};
/* clang-format on */

static bool chosen(const char *list, const char *name)
{
    size_t len = strlen(name);

    while (list != NULL && *list != '\0') {
        size_t part = strcspn(list, ",");

        if (part == len && strncmp(list, name, len) == 0) {
            return true;
        }
        list += part + (list[part] == ',');
    }
    return false;
}

/* True: within the tolerance, or nothing was expected. */
static bool show(const struct anchor_row *row, const struct anchor_result *r, double seconds)
{
    double off = 100 * r->weighted - row->weighted;
    bool good = !(row->weighted > 0) || fabs(off) <= row->tolerance;

    printf("%-18s %8.2f %8.2f %+7.2f %10.2f %8.2f %8.1f s%s\n", row->name, row->weighted,
           100 * r->weighted, off, row->unweighted, 100 * r->unweighted, seconds,
           good ? "" : "  OUTSIDE");
    (void)fflush(stdout);
    return good;
}

static int run_rows(const char *list, uint64_t rounds, uint64_t seed, bool check)
{
    const struct anchor_row *row;
    bool good = true;

    printf("%-18s %8s %8s %7s %10s %8s\n", "row", "expected", "found", "diff", "unweighted",
           "found");
    for (row = rows; row->name != NULL; row++) {
        struct anchor_result result;
        struct fl_err err = {0};
        uint64_t from = fl_clock_ms();
        int rv;

        if (list != NULL && !chosen(list, row->name)) {
            continue;
        }
        rv = anchor_run(row, rounds, seed, &result, &err);
        if (rv != FL_OK) {
            (void)fprintf(stderr, "bench/anchors: %s: %s\n", row->name, fl_err_text(&err, rv));
            return 1;
        }
        good = show(row, &result, (double)(fl_clock_ms() - from) / 1e3) && good;
    }
    return check && !good ? 1 : 0;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"rows", required_argument, NULL, 'r'}, {"rounds", required_argument, NULL, 't'},
        {"seed", required_argument, NULL, 's'}, {"check", no_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0}};
    const char *list = NULL;
    uint64_t rounds = 800;
    uint64_t seed = 1;
    bool check = false;
    size_t i;
    int c;

    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        switch (c) {
        case 'r':
            list = optarg;
            break;
        case 't':
            rounds = strtoull(optarg, NULL, 10);
            break;
        case 's':
            seed = strtoull(optarg, NULL, 10);
            break;
        case 'c':
            check = true;
            break;
        case 'h':
            (void)fputs(usage, stdout);
            return 0;
        default:
            (void)fputs(usage, stderr);
            return 2;
        }
    }
    if (list != NULL && strcmp(list, "help") == 0) {
        for (i = 0; rows[i].name != NULL; i++) {
            (void)puts(rows[i].name);
        }
        return 0;
    }
    return run_rows(list, rounds, seed, check);
}
