/* The command line of fl-sim run. */
#include "tools/fl_sim/run_options.h"

#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/args.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/fl_sim.h"
#include "tools/fl_sim/run.h"

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

static const struct fl_arg rows[] = {
    FL_ARG("out", '\0', "DIR", OPT_OUT,
           "folder for the results; default: NAME.results in the current folder, where NAME is the "
           "name of the experiment"),
    FL_ARG("jobs", '\0', "N", OPT_JOBS,
           "threads (under mpirun: of each process); default: all cores. Results do not depend on "
           "it, nor on how many processes there are"),
    FL_ARG("instructions", '\0', "NAME", OPT_INSTRUCTIONS,
           "of the processor, that training uses: auto (default), avx512, avx2, portable, "
           "reference (docs/kernels.md); results differ in the last bits"),
    FL_ARG("set", '\0', "KEY=VALUE", OPT_SET,
           "change a key of the file, as server.training.learning_rate=0.1; repeatable"),
    FL_ARG("clients", '\0', NULL, OPT_CLIENTS,
           "also write a row for each client and round (clients.jsonl)"),
    FL_ARG("no-training", '\0', NULL, OPT_DRY,
           "times and bytes only: nothing is trained, sizes that depend on it are drawn"),
    FL_ARG("keep-state", '\0', NULL, OPT_KEEP,
           "keep models, records and client states, as the daemons do"),
    FL_ARG("force", '\0', NULL, OPT_FORCE, "run even when the free memory seems too small"),
    FL_ARG("quiet", '\0', NULL, OPT_QUIET, "no progress line"),
    FL_ARG("help", 'h', NULL, 'h', "print this and exit"),
    {.name = NULL}};

static void run_print_help(void)
{
    (void)puts(
        "Usage: fl-sim run [OPTION]... EXPERIMENT.yaml\n\n"
        "Run all points of an experiment with all its seeds, each a whole federation in this\n"
        "process: what fl-serverd and fl-clientd do, in simulated time. After an interruption, "
        "even\n"
        "kill -9, the same command continues the run, with the same results.\n");
    fl_args_help(rows, stdout);
    (void)puts("\n'fl-sim --reference experiment' prints the keys of the file; docs/simulation.md "
               "describes\n"
               "the keys and the results.\n"
               "Exit status: 0 done, 1 failed, 2 wrong usage, 3 interrupted.");
}

static int run_take_option(struct run_options *o, int opt, const char *value)
{
    struct fl_err err = {0};

    switch (opt) {
    case OPT_OUT:
        o->out = value;
        return FL_OK;
    case OPT_JOBS:
        if (fl_str_to_u64(value, &o->jobs) != FL_OK || o->jobs < 1 || o->jobs > JOBS_MAX) {
            (void)usage_error("run", "--jobs: expected 1 to %d, found '%s'", JOBS_MAX, value);
            return FL_EINVAL;
        }
        return FL_OK;
    case OPT_INSTRUCTIONS:
        if (fl_kernels_named(value, &o->kernels, &err) != FL_OK) {
            (void)usage_error("run", "--instructions: %s", err.msg);
            return FL_EINVAL;
        }
        return FL_OK;
    case OPT_SET:
        if (o->n_sets == RUN_SETS_MAX) {
            (void)usage_error("run", "more than %d times --set", RUN_SETS_MAX);
            return FL_EINVAL;
        }
        o->sets[o->n_sets++] = value;
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
        return FL_EINVAL;
    }
}

bool run_options_parse(struct run_options *o, int argc, char **argv, int *ret_status)
{
    struct fl_args args = {.program = "fl-sim run", .rows = rows, .argc = argc, .argv = argv};
    int opt;

    o->kernels = fl_kernels_best();
    while ((opt = fl_args_next(&args)) != FL_ARGS_END) {
        if (opt == 'h') {
            run_print_help();
            *ret_status = EXIT_SUCCESS;
            return false;
        }
        if (run_take_option(o, opt, args.value) != FL_OK) {
            *ret_status = EXIT_USAGE;
            return false;
        }
    }
    if (args.n_operands != 1) {
        *ret_status = usage_error("run", args.n_operands == 0 ? "expected the file of an experiment"
                                                              : "expected one file, found more");
        return false;
    }
    o->file = argv[1];
    return true;
}
