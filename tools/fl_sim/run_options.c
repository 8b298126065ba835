/* The command line of fl-sim run. */
#include "tools/fl_sim/run_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/str.h"
#include "tools/fl_sim/fl_sim.h"
#include "tools/fl_sim/run.h"

static void run_print_help(void)
{
    (void)puts(
        "Usage: fl-sim run [OPTION]... EXPERIMENT.yaml\n\n"
        "Run all points of an experiment with all its seeds, each a whole federation in this\n"
        "process: what fl-serverd and fl-clientd do, in simulated time. After an interruption, "
        "even\n"
        "kill -9, the same command continues the run, with the same results.\n\n"
        "  --out DIR        folder for the results; default: NAME.results in the current folder,\n"
        "                   where NAME is the name of the experiment\n"
        "  --jobs N         threads (under mpirun: of each process); default: all cores. Results "
        "do "
        "not\n"
        "                   depend on it, nor on how many processes there are\n"
        "  --instructions NAME  of the processor, that training uses: auto (default), avx512, "
        "avx2,\n"
        "                   portable, reference (docs/kernels.md); results differ in the last "
        "bits\n"
        "  --set KEY=VALUE  change a key of the file, as server.training.learning_rate=0.1; "
        "repeatable\n"
        "  --clients        also write a row for each client and round (clients.jsonl)\n"
        "  --no-training    times and bytes only: nothing is trained, sizes that depend on it are "
        "drawn\n"
        "  --keep-state     keep models, records and client states, as the daemons do\n"
        "  --force          run even when the free memory seems too small\n"
        "  --quiet          no progress line\n"
        "  -h, --help       print this\n\n"
        "'fl-sim --reference experiment' prints the keys of the file; docs/simulation.md "
        "describes\n"
        "the keys and the results.\n"
        "Exit status: 0 done, 1 failed, 2 wrong usage, 3 interrupted.");
}

enum {
    OPT_OUT = 256,
    OPT_JOBS,
    OPT_INSTRUCTIONS,
    OPT_SET,
    OPT_CLIENTS,
    OPT_DRY,
    OPT_KEEP,
    OPT_FORCE,
    OPT_QUIET
};

static int run_take_option(struct run_options *o, int opt)
{
    struct fl_err err = {0};

    switch (opt) {
    case OPT_OUT:
        o->out = optarg;
        return FL_OK;
    case OPT_JOBS:
        if (fl_str_to_u64(optarg, &o->jobs) != FL_OK || o->jobs < 1 || o->jobs > JOBS_MAX) {
            (void)usage_error("run", "--jobs: expected 1 to %d, found '%s'", JOBS_MAX, optarg);
            return FL_EINVAL;
        }
        return FL_OK;
    case OPT_INSTRUCTIONS:
        if (fl_kernels_named(optarg, &o->kernels, &err) != FL_OK) {
            (void)usage_error("run", "--instructions: %s", err.msg);
            return FL_EINVAL;
        }
        return FL_OK;
    case OPT_SET:
        if (o->n_sets == RUN_SETS_MAX) {
            (void)usage_error("run", "more than %d times --set", RUN_SETS_MAX);
            return FL_EINVAL;
        }
        o->sets[o->n_sets++] = optarg;
        return FL_OK;
    case OPT_CLIENTS:
        o->clients = true;
        return FL_OK;
    case OPT_DRY:
        o->dry = true;
        return FL_OK;
    case OPT_KEEP:
        o->keep_state = true;
        return FL_OK;
    case OPT_FORCE:
        o->force = true;
        return FL_OK;
    case OPT_QUIET:
        o->quiet = true;
        return FL_OK;
    default:
        (void)fputs("Try 'fl-sim run --help'.\n", stderr);
        return FL_EINVAL;
    }
}

bool run_options_parse(struct run_options *o, int argc, char **argv, int *ret_status)
{
    static const struct option options[] = {
        {"out", required_argument, NULL, OPT_OUT},
        {"jobs", required_argument, NULL, OPT_JOBS},
        {"instructions", required_argument, NULL, OPT_INSTRUCTIONS},
        {"set", required_argument, NULL, OPT_SET},
        {"clients", no_argument, NULL, OPT_CLIENTS},
        {"no-training", no_argument, NULL, OPT_DRY},
        {"keep-state", no_argument, NULL, OPT_KEEP},
        {"force", no_argument, NULL, OPT_FORCE},
        {"quiet", no_argument, NULL, OPT_QUIET},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    int opt;

    o->kernels = fl_kernels_best();
    while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (opt == 'h') {
            run_print_help();
            *ret_status = EXIT_SUCCESS;
            return false;
        }
        if (run_take_option(o, opt) != FL_OK) {
            *ret_status = EXIT_USAGE;
            return false;
        }
    }
    if (optind + 1 != argc) {
        *ret_status = usage_error("run", optind == argc ? "expected the file of an experiment"
                                                        : "expected one file, found more");
        return false;
    }
    o->file = argv[optind];
    return true;
}
