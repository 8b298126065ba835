#ifndef FL_SIM_MPI_IMPL_H
#define FL_SIM_MPI_IMPL_H

/*
 * MPI ranks (mpi_ranks.h). A waiting process sleeps between polls, so that with more processes than
 * cores it takes no time from those that work. Errors of MPI end the run: that is the default of
 * MPI.
 *
 * Threading: MPI is called by the main thread only.
 */

#include <mpi.h>

#include "tools/fl_sim/engine/ranks.h"
#include "tools/fl_sim/mpi_ranks.h"

/* --- mpi_wait.c --- */

/* Sleep, longer after each poll without a message; `*wait` starts as 0. */
void mpi__nap(unsigned *times);
void mpi__wait(MPI_Request *request);

/* --- mpi_channel.c: messages of a shared worker pool --- */

struct mpi__channel;

/* Between the processes of `comm`, of which rank 0 is the leader. Borrows it. */
FL_MUST_CHECK int mpi__channel_open(MPI_Comm comm, struct mpi__channel **ret);
/* Wait until all sent messages have arrived; late answers are received and dropped. */
void mpi__channel_close(struct mpi__channel *channel);
const struct fl_ranks *mpi__channel_ranks(const struct mpi__channel *channel);

/* --- mpi_trials.c: ranks.run --- */

int mpi__run(const struct run *run, const uint64_t *trials, size_t n, uint64_t *wall_ns);
extern const struct ranks *mpi__ranks;

#endif
