/*
 * A paper's table in one process: the coordinator and the work of server and clients as the
 * daemons do it, without daemons between. Rows and settings come from an experiment file.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/anchors.h"
#include "libfl/base/clock.h"

#ifndef FL_EXPERIMENTS
#define FL_EXPERIMENTS "bench/experiments"
#endif

/* Points within which a figure is called the paper's, and --check takes one for ours. */
#define TOLERANCE 0.5

static const char usage[] =
    "usage: bench/anchors [options] [FILE]\n"
    "  FILE           experiment file (default bench/experiments/fedmcsa-synthetic.yaml)\n"
    "  --rows A,B,…   rows to run (default all); --rows help lists them\n"
    "  --rounds T     rounds of each (default: the file's)\n"
    "  --seed N       of initial model, batches, draws and the split (default 1)\n"
    "  --check        exit 1 when a row is more than half a point from `ours` of the file\n"
    "  --table        run nothing: the file as the Markdown table of docs/algorithms.md\n"
    "  --help         this text\n"
    "One line per row, in percent: what the paper prints (0: nothing) and what the file says we\n"
    "found; what this run found: the best accuracy over all clients' test samples (weighted, the\n"
    "papers' figure), and the mean of the clients' accuracies (unweighted).\n"
    "All rows take about ten minutes of one core.\n";

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

/* True: within the tolerance of what the file says. */
static bool show(const struct anchor_row *row, const struct anchor_result *r, double seconds)
{
    double ours = row->figures->ours;
    double off = 100 * r->weighted - ours;
    bool good = fabs(off) <= TOLERANCE;

    printf("%-18s %8.2f %8.2f %8.2f %+7.2f %10.2f %8.1f s%s\n", row->name, row->figures->paper,
           ours, 100 * r->weighted, off, 100 * r->unweighted, seconds, good ? "" : "  OUTSIDE");
    (void)fflush(stdout);
    return good;
}

struct args {
    const char *path, *rows;
    uint64_t rounds, seed; /* rounds 0: the file's */
    bool check, table;
};

static int run_rows(const struct anchor_file *file, const struct args *args)
{
    bool good = true;
    size_t i;

    printf("%-18s %8s %8s %8s %7s %10s\n", "row", "paper", "ours", "found", "diff", "unweighted");
    for (i = 0; i < file->n_rows; i++) {
        const struct anchor_row *row = &file->rows[i];
        struct anchor_result result;
        struct fl_err err = {0};
        uint64_t from = fl_clock_ms();
        int rv;

        if (args->rows != NULL && !chosen(args->rows, row->name)) {
            continue;
        }
        rv = anchor_run(file, row, args->rounds > 0 ? args->rounds : file->rounds, args->seed,
                        &result, &err);
        if (rv != FL_OK) {
            (void)fprintf(stderr, "bench/anchors: %s: %s\n", row->name, fl_err_text(&err, rv));
            return 1;
        }
        good = show(row, &result, (double)(fl_clock_ms() - from) / 1e3) && good;
    }
    return args->check && !good ? 1 : 0;
}

static void print_table(const struct anchor_file *file)
{
    size_t i;

    printf("| row | settings of ours | paper | ours | |\n| --- | --- | --- | --- | --- |\n");
    for (i = 0; i < file->n_rows; i++) {
        const struct anchor_row *row = &file->rows[i];
        double paper = row->figures->paper;
        double ours = row->figures->ours;
        char settings[512];

        anchor_settings(row, settings, sizeof(settings));
        printf("| %s | `%s` | ", row->name, settings);
        if (paper > 0) {
            printf("%.2f (%s) | %.2f | %s: %+.2f |\n", paper, row->figures->where, ours,
                   fabs(ours - paper) <= TOLERANCE ? "reproduced" : "not reproduced", ours - paper);
        } else {
            printf("not in it | %.2f | |\n", ours);
        }
    }
}

static int run(const struct args *args)
{
    struct anchor_file file;
    struct fl_err err = {0};
    int rv = anchor_file_load(args->path, &file, &err);
    size_t i;

    if (rv != FL_OK) {
        (void)fprintf(stderr, "bench/anchors: %s\n", fl_err_text(&err, rv));
        return 1;
    }
    rv = 0;
    if (args->rows != NULL && strcmp(args->rows, "help") == 0) {
        for (i = 0; i < file.n_rows; i++) {
            (void)puts(file.rows[i].name);
        }
    } else if (args->table) {
        print_table(&file);
    } else {
        rv = run_rows(&file, args);
    }
    anchor_file_done(&file);
    return rv;
}

static int bad(const char *option, const char *value)
{
    (void)fprintf(stderr, "bench/anchors: --%s '%s': expected a whole number\n", option, value);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"rows", required_argument, NULL, 'r'},
                                          {"rounds", required_argument, NULL, 't'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"check", no_argument, NULL, 'c'},
                                          {"table", no_argument, NULL, 'm'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct args args = {.path = FL_EXPERIMENTS "/fedmcsa-synthetic.yaml", .seed = 1};
    int c;

    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        switch (c) {
        case 'r':
            args.rows = optarg;
            break;
        case 't':
            if (fl_str_to_u64(optarg, &args.rounds) != FL_OK) {
                return bad("rounds", optarg);
            }
            break;
        case 's':
            if (fl_str_to_u64(optarg, &args.seed) != FL_OK) {
                return bad("seed", optarg);
            }
            break;
        case 'c':
            args.check = true;
            break;
        case 'm':
            args.table = true;
            break;
        case 'h':
            (void)fputs(usage, stdout);
            return 0;
        default:
            (void)fputs(usage, stderr);
            return 2;
        }
    }
    if (optind + 1 < argc) {
        (void)fputs(usage, stderr);
        return 2;
    }
    args.path = optind < argc ? argv[optind] : args.path;
    return run(&args);
}
