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
    OPT_LOCAL,
    OPT_REPEAT,
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
    FL_ARG("local", '\0', "N", OPT_LOCAL,
           "no simulation: start fl-serverd and fl-clientd for the first N clients of the data on "
           "this machine, in real time; results in NAME.local"),
    FL_ARG("keep-state", '\0', NULL, OPT_KEEP,
           "keep models, records and client states, as the daemons do"),
    FL_ARG(
        "repeat", '\0', "ROUNDS", OPT_REPEAT,
        "of an experiment with a program of yours: at the end, run the first rounds of its first "
        "trial again, and warn if they are not the same; default: 3, 0: do not"),
    FL_ARG("force", '\0', NULL, OPT_FORCE, "run even when the free memory seems too small"),
    FL_ARG("quiet", '\0', NULL, OPT_QUIET, "no progress"),
    FL_ARG("help", 'h', NULL, 'h', "print this and exit"),
    {.name = NULL}};

static const char help_before[] =
    "Usage: fl-sim run [OPTION]... EXPERIMENT.yaml\n\n"
    "Run all points of an experiment with all its seeds, each a whole federation in this\n"
    "process: what fl-serverd and fl-clientd do, in simulated time. After an interruption, even\n"
    "kill -9, the same command continues the run, with the same results.\n";
static const char help_after[] =
    "\n'fl-sim --reference experiment' prints the keys of the file; docs/simulation.md describes\n"
    "the keys and the results.\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage, 3 interrupted.";

/* 0, or an exit code after a usage error was printed. */
static int run_take_option(struct run_options *o, int opt, const char *value)
{
    struct fl_err err = {0};

    switch (opt) {
    case OPT_OUT:
        o->out = value;
        return 0;
    case OPT_JOBS:
        if (fl_str_to_u64(value, &o->jobs) != FL_OK || o->jobs < 1 || o->jobs > JOBS_MAX) {
            return usage_error("run", "--jobs: expected 1 to %d, found '%s'", JOBS_MAX, value);
        }
        return 0;
    case OPT_INSTRUCTIONS:
        if (fl_kernels_named(value, &o->kernels, &err) != FL_OK) {
            return usage_error("run", "--instructions: %s", err.msg);
        }
        return 0;
    case OPT_SET:
        if (o->n_sets == RUN_SETS_MAX) {
            return usage_error("run", "more than %d times --set", RUN_SETS_MAX);
        }
        o->sets[o->n_sets++] = value;
        return 0;
    case OPT_CLIENTS:
        o->clients = true;
        return 0;
    case OPT_DRY:
        o->dry = true;
        return 0;
    case OPT_LOCAL:
        if (fl_str_to_u64(value, &o->local) != FL_OK || o->local < 1 || o->local > LOCAL_MAX) {
            return usage_error("run", "--local: expected 1 to %d clients, found '%s'", LOCAL_MAX,
                               value);
        }
        return 0;
    case OPT_REPEAT:
        if (fl_str_to_u64(value, &o->repeat) != FL_OK) {
            return usage_error("run", "--repeat: expected a number of rounds, found '%s'", value);
        }
        return 0;
    case OPT_KEEP:
        o->keep_state = true;
        return 0;
    case OPT_FORCE:
        o->force = true;
        return 0;
    default:
        o->quiet = true;
        return 0;
    }
}

int run_options_parse(struct run_options *o, int argc, char **argv)
{
    struct fl_args args = {.program = "fl-sim run", .rows = rows, .argc = argc, .argv = argv};
    int opt;
    int rv;

    o->kernels = fl_kernels_best();
    o->repeat = RUN_REPLAY_ROUNDS;
    while ((opt = command_next(&args, help_before, help_after)) != FL_ARGS_END) {
        rv = run_take_option(o, opt, args.value);
        if (rv != 0) {
            return rv;
        }
    }
    if (args.n_operands != 1) {
        return usage_error("run", args.n_operands == 0 ? "expected the file of an experiment"
                                                       : "expected one file, found more");
    }
    if (o->local > 0 && (o->dry || o->clients)) {
        return usage_error("run",
                           "--local goes without --no-training and --clients: daemons train, "
                           "and 'flctl participations' shows their clients");
    }
    o->file = argv[1];
    return 0;
}
