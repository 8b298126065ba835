/* fl-sim table: prints points of results as a table. */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/fl_sim.h"
#include "tools/fl_sim/results/results_table.h"

#define COMMAND "table"
#define USUAL   "trials,rounds,%s,uplink@0.9,uplink@0.95,time@0.9,time@0.95,bytes,time"

static void table_print_help(void)
{
    (void)puts(
        "Usage: fl-sim table [OPTION]... DIR...\n\n"
        "Print a table with a line for each point of the results (DIR, or DIR/POINT): means over "
        "the\n"
        "finished trials, and standard deviations.\n\n"
        "  --columns NAMES   with commas between them: trials; best; rounds, uplink, bytes, time "
        "and\n"
        "                    models, what a trial took, and with @0.9 what it took to that "
        "accuracy;\n"
        "                    or any key of rounds.jsonl, its last known value. Default:\n"
        "                    "
        "trials,rounds,accuracy,uplink@0.9,uplink@0.95,time@0.9,time@0.95,bytes,time\n"
        "  --of FIGURE       the accuracy that 'best' and '@' use; default: accuracy, or\n"
        "                    personal_accuracy where there is none\n"
        "  --mean-of N       'best' and '@' use the mean of N rounds in which it is "
        "known, "
        "the\n"
        "                    last of them the round that counts; default: 1\n"
        "  --format WHAT     markdown (the default) or csv: in bytes, microseconds and shares\n"
        "  --help            print this and exit\n\n"
        "Exit status: 0 done, 1 failed, 2 wrong usage.");
}

struct options {
    const char *columns, *of;
    uint64_t mean_of;
    bool csv, help;
};

static int table_parse(int argc, char **argv, struct options *o)
{
    static const struct option options[] = {
        {"columns", required_argument, NULL, 'c'}, {"of", required_argument, NULL, 'o'},
        {"mean-of", required_argument, NULL, 'm'}, {"format", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    struct fl_row_figure figure;
    int opt;

    optind = 1;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (opt) {
        case 'c':
            o->columns = optarg;
            break;
        case 'o':
            o->of = optarg;
            if (!fl_row_find(optarg, &figure)) {
                return usage_error(COMMAND, "--of: unknown figure '%s'", optarg);
            }
            break;
        case 'm':
            if (fl_str_to_u64(optarg, &o->mean_of) != FL_OK || o->mean_of < 1 ||
                o->mean_of > FL_TRAJECTORY_WINDOW)
            {
                return usage_error(COMMAND, "--mean-of: expected 1 to %d, found '%s'",
                                   FL_TRAJECTORY_WINDOW, optarg);
            }
            break;
        case 'f':
            o->csv = strcmp(optarg, "csv") == 0;
            if (!o->csv && strcmp(optarg, "markdown") != 0) {
                return usage_error(COMMAND, "--format: expected markdown or csv, found '%s'",
                                   optarg);
            }
            break;
        case 'h':
            o->help = true;
            return 0;
        default:
            return usage_error(COMMAND, "unknown option '%s', or its value is missing",
                               argv[optind - 1]);
        }
    }
    return optind < argc ? 0 : usage_error(COMMAND, "expected the folder of a run");
}

static int table_print(const struct fl_table *table, const struct fl_read_set *set,
                       struct fl_err *err)
{
    struct fl_buf text;
    int rv;

    fl_buf_init(&text, (size_t)64 << 20);
    rv = fl_table_text(&text, table, set);
    if (rv == FL_OK) {
        (void)fwrite(text.data, text.len, 1, stdout);
    }
    fl_buf_done(&text);
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "%s", fl_strerror(rv));
}

int cmd_table(int argc, char **argv)
{
    struct options o = {0};
    struct fl_table table = {0};
    struct fl_read_set set = {0};
    struct fl_err err = {0};
    char usual[160];
    int rv = table_parse(argc, argv, &o);

    if (rv != 0) {
        return rv;
    }
    if (o.help) {
        table_print_help();
        return EXIT_SUCCESS;
    }
    if (o.columns != NULL && fl_table_columns(&table, o.columns, &err) != FL_OK) {
        return usage_error(COMMAND, "--columns: %s", err.msg);
    }
    rv = fl_read_all(argv + optind, (size_t)(argc - optind), &set, &err);
    if (rv == FL_OK) {
        table.csv = o.csv;
        table.mean_of = (unsigned)o.mean_of;
        table.quality = o.of != NULL ? o.of : fl_read_quality(&set);
        (void)snprintf(usual, sizeof(usual), USUAL, table.quality);
        rv = o.columns != NULL ? FL_OK : fl_table_columns(&table, usual, &err);
    }
    rv = rv == FL_OK ? table_print(&table, &set, &err) : rv;
    fl_read_set_done(&set);
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-sim " COMMAND ": %s\n", fl_err_text(&err, rv));
    }
    return rv == FL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
