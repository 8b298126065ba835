#ifndef FL_SIM_MPI_IMPL_H
#define FL_SIM_MPI_IMPL_H

/*
 * A fleet of MPI. A process that waits sleeps between looks, so that more of them than cores do
 * not take the time of those that work. Errors of MPI itself end the run: that is its own default.
 *
 * Threading: MPI is called by the main thread only.
 */

#include <mpi.h>

#include "tools/fl_sim/engine/ranks.h"
#include "tools/fl_sim/fleet.h"

/* --- mpi_wait.c --- */

/* Longer each time that nothing came; 0 to begin with. */
void mpi__nap(unsigned *times);
void mpi__wait(MPI_Request *request);

/* --- channel.c: the messages of a team --- */

struct mpi__channel;

/* Between the processes of `comm`, of which the first is the leader. Borrows it. */
FL_MUST_CHECK int mpi__channel_open(MPI_Comm comm, struct mpi__channel **ret);
/* What was sent has arrived; answers that nobody waits for any more are taken and forgotten. */
void mpi__channel_close(struct mpi__channel *channel);
const struct fl_ranks *mpi__channel_ranks(const struct mpi__channel *channel);

/* --- mpi_trials.c: fleet.run --- */

int mpi__run(const struct run *run, const uint64_t *trials, size_t n, uint64_t *wall_ns);
extern const struct ranks *mpi__ranks;

#endif
