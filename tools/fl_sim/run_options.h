#ifndef FL_SIM_RUN_OPTIONS_H
#define FL_SIM_RUN_OPTIONS_H

/* The command line of fl-sim run. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/num/kernels.h"

#define RUN_SETS_MAX 256
#define LOCAL_MAX    1000

/* Strings are those of argv. */
struct run_options {
    const char *file, *out; /* `out`: NULL: named after the experiment */
    const char *sets[RUN_SETS_MAX];
    size_t n_sets;
    uint64_t jobs;   /* 0: the number of cores */
    uint64_t local;  /* clients with --local; 0: without it */
    uint64_t repeat; /* rounds that are run again at the end; 0: none */
    const struct fl_kernels *kernels;
    bool clients, keep_state, dry, quiet, force;
};

/* 0, or an exit code after a usage error was printed; --help ends the program. */
int run_options_parse(struct run_options *o, int argc, char **argv);

#endif
