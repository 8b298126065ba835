/* fl-sim table: prints points of results as a table. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/fl_sim.h"
#include "tools/fl_sim/results/results_table.h"

#define COMMAND "table"
#define USUAL   "trials,rounds,%s,uplink@0.9,uplink@0.95,time@0.9,time@0.95,bytes,time"

static const struct fl_arg rows[] = {
    FL_ARG("columns", '\0', "NAMES", 'c',
           "with commas between them: trials; best; rounds, uplink, bytes, time and models, what "
           "a trial took, and with @0.9 what it took to that accuracy; or any key of "
           "rounds.jsonl, such as metrics.macro_f1, its last known value. Default: "
           "trials,rounds,accuracy,uplink@0.9,uplink@0.95,time@0.9,time@0.95,bytes,time"),
    FL_ARG("of", '\0', "FIGURE", 'o',
           "the accuracy that 'best' and '@' use; default: accuracy, or personal_accuracy where "
           "there is none"),
    FL_ARG("mean-of", '\0', "N", 'm',
           "'best' and '@' use the mean of N rounds in which it is known, the last of "
           "them the round that counts; default: 1"),
    FL_ARG("merge", '\0', NULL, 'g',
           "points with the same name are one, with the seeds of all folders; a seed in several "
           "of them counts once if its rounds are the same, else it is an error"),
    FL_ARG("format", '\0', "WHAT", 'f',
           "markdown (the default) or csv: in bytes, microseconds and shares"),
    FL_ARG("help", 'h', NULL, 'h', "print this and exit"),
    {.name = NULL}};

static const char help_before[] =
    "Usage: fl-sim table [OPTION]... DIR...\n\n"
    "Print a table with a line for each point of the results (DIR, or DIR/POINT): means over the\n"
    "finished trials, and standard deviations.\n";
static const char help_after[] = "\nExit status: 0 done, 1 failed, 2 wrong usage.";

struct options {
    const char *columns, *of;
    uint64_t mean_of;
    int n_dirs;
    bool csv, merge;
};

static int table_parse(int argc, char **argv, struct options *o)
{
    struct fl_args args = {.program = "fl-sim " COMMAND, .rows = rows, .argc = argc, .argv = argv};
    struct fl_row_figure figure;
    int opt;

    while ((opt = command_next(&args, help_before, help_after)) != FL_ARGS_END) {
        switch (opt) {
        case 'c':
            o->columns = args.value;
            break;
        case 'o':
            o->of = args.value;
            if (!fl_row_find(args.value, &figure)) {
                return usage_error(COMMAND, "--of: unknown figure '%s'", args.value);
            }
            break;
        case 'm':
            if (fl_str_to_u64(args.value, &o->mean_of) != FL_OK || o->mean_of < 1 ||
                o->mean_of > FL_TRAJECTORY_WINDOW)
            {
                return usage_error(COMMAND, "--mean-of: expected 1 to %d, found '%s'",
                                   FL_TRAJECTORY_WINDOW, args.value);
            }
            break;
        case 'g':
            o->merge = true;
            break;
        case 'f':
            o->csv = strcmp(args.value, "csv") == 0;
            if (!o->csv && strcmp(args.value, "markdown") != 0) {
                return usage_error(COMMAND, "--format: expected markdown or csv, found '%s'",
                                   args.value);
            }
            break;
        default:
            break;
        }
    }
    o->n_dirs = args.n_operands;
    return o->n_dirs > 0 ? 0 : usage_error(COMMAND, "expected the folder of a run");
}

int cmd_table(int argc, char **argv)
{
    struct options o = {0};
    struct fl_table table = {0};
    struct fl_read_set set = {0};
    struct fl_err err = {0};
    char usual[160];
    int rv = table_parse(argc, argv, &o);
    struct fl_buf text;

    if (rv != 0) {
        return rv;
    }
    if (o.columns != NULL && fl_table_columns(&table, o.columns, &err) != FL_OK) {
        return usage_error(COMMAND, "--columns: %s", err.msg);
    }
    rv = fl_read_all(argv + 1, (size_t)o.n_dirs, &set, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = o.merge ? fl_read_merge(&set, &err) : FL_OK;
    if (rv != FL_OK) {
        goto done;
    }
    table.csv = o.csv;
    table.mean_of = (unsigned)o.mean_of;
    table.quality = o.of != NULL ? o.of : fl_read_quality(&set);
    (void)snprintf(usual, sizeof(usual), USUAL, table.quality);
    rv = o.columns != NULL ? FL_OK : fl_table_columns(&table, usual, &err);
    if (rv != FL_OK) {
        goto done;
    }
    fl_buf_init(&text, (size_t)64 << 20);
    rv = fl_table_text(&text, &table, &set);
    rv = print_text(&text, rv, &err);
done:
    fl_read_set_done(&set);
    return command_end(COMMAND, rv, &err);
}
