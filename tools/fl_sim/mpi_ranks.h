#ifndef FL_SIM_MPI_RANKS_H
#define FL_SIM_MPI_RANKS_H

/*
 * MPI ranks: the processes that mpirun started together for one run, on one machine or on several
 * that share a file system. Rank 0 is the leader: it checks the experiment, locks the folder and
 * writes everything outside the trials' folders. fl-sim-mpi is linked with mpi/, fl-sim with
 * one_process.c.
 *
 * Threading: one thread, except fail().
 */

#include "tools/fl_sim/run.h"

struct ranks {
    unsigned n, me;
    unsigned local;   /* number of these processes on this machine */
    unsigned threads; /* number of cores that this process uses by default */
    /* Broadcasts `n` bytes from the leader to all processes; waits for processes that are still
       starting. */
    void (*share)(void *data, size_t n);
    /*
     * Runs these trials (numbers of trials_one()), none of which is finished, on all processes. On
     * the leader, `wall_ns` [n] is set for the trials that other processes finished. FL_ECANCELED:
     * a trial was interrupted. Any other error of a trial does not return: it calls fail().
     */
    int (*run)(const struct run *run, const uint64_t *trials, size_t n, uint64_t *wall_ns);
    /* Aborts all processes; prints rank, machine and reason. Any thread. */
    FL_NORETURN void (*fail)(int code, const struct fl_err *err);
    void (*end)(void);
};

/* *ret NULL: this is the only process. `argv` is that of the command; all processes compute with
   `kernels`. */
FL_MUST_CHECK int mpi_ranks_begin(int argc, char **argv, const struct fl_kernels *kernels,
                                  const struct ranks **ret, struct fl_err *err);

#endif
