#ifndef FL_SIM_FLEET_H
#define FL_SIM_FLEET_H

/*
 * Processes that were started together for one run, on one machine or many that see the same
 * files: under mpirun. The first of them leads: it checks, holds the folder and writes what is not
 * a trial's. fl-sim-mpi is linked with mpi/, fl-sim with one_process.c.
 *
 * Threading: one thread, but for what is said.
 */

#include "tools/fl_sim/run.h"

struct ranks {
    unsigned n, me;
    unsigned local;   /* how many of them are on this machine */
    unsigned threads; /* that this one may use, by default */
    /* The leader's `n` bytes, to all of them: who is not there yet is waited for. */
    void (*share)(void *data, size_t n);
    /*
     * These trials (of trials_one()), all that are not finished, by all of the fleet. `wall_ns` [n]
     * is set of those that others than the leader finished, for the leader. FL_ECANCELED: one was
     * interrupted. Another error of a trial does not return: fail().
     */
    int (*run)(const struct run *run, const uint64_t *trials, size_t n, uint64_t *wall_ns);
    /* Ends all of them; says which process it was, on which machine, and why. Any thread. */
    FL_NORETURN void (*fail)(int code, const struct fl_err *err);
    void (*end)(void);
};

/* *ret NULL: nobody else is there. `argv` as of a command; all of them compute with `kernels`. */
FL_MUST_CHECK int fleet_begin(int argc, char **argv, const struct fl_kernels *kernels,
                              const struct ranks **ret, struct fl_err *err);

#endif
