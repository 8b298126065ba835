#ifndef FL_SIM_RANKS_H
#define FL_SIM_RANKS_H

/*
 * A worker pool that several processes share. The leader runs the simulation and the server; the
 * work of client c is done in process c % n, so that a pending result stays in that process between
 * training and coding, and client state is in folders that all processes see. The leader checks an
 * upload as it checks one of its own.
 *
 * The transport of messages between the processes is up to the caller (struct fl_ranks).
 *
 * Threading: in each process, one thread.
 */

#include "tools/fl_sim/engine/sim_clients.h"

#include "libfl/base/buf.h"
#include "libfl/base/log.h"
#include "libfl/num/kernels.h"

struct fl_ranks {
    unsigned n, me; /* number of processes, and the rank of this one; the leader is 0 */
    /*
     * Start to send, without waiting for the receiver. Takes a reference. Messages to the same
     * process arrive in order. FL_ENOMEM; FL_ELIMIT: longer than the transport allows.
     */
    int (*send)(void *ctx, unsigned to, struct fl_blob *message, struct fl_err *err);
    /*
     * Receive the next message: another process receives from the leader, the leader from any
     * process. `ret` is set, and owned by the caller. FL_ENOENT: none has arrived, unless `wait`;
     * FL_ENOMEM.
     */
    int (*receive)(void *ctx, bool wait, struct fl_buf *ret, struct fl_err *err);
    void *ctx;
};

/* The leader: end the other processes' fl_ranks_serve(). */
FL_MUST_CHECK int fl_ranks_end(const struct fl_ranks *ranks, struct fl_err *err);

/*
 * Another process: do the work of its clients, on so many threads, until the leader ends it. An
 * error is one of this process; errors of a client's work go to the leader. `sim_clients` as the
 * leader's.
 */
FL_MUST_CHECK int fl_ranks_serve(const struct fl_ranks *ranks,
                                 const struct fl_sim_clients *sim_clients,
                                 const struct fl_kernels *kernels, unsigned threads,
                                 const struct fl_log *log, struct fl_err *err);

#endif
