#ifndef FL_SIM_TEAM_H
#define FL_SIM_TEAM_H

/*
 * A crew that several processes share. The leader runs the virtual world and the server; the work
 * of client c is done in process c % n, so that what a client holds between training and coding
 * stays where it is, and what it keeps between rounds lies in folders that all of them see. The
 * leader checks an upload as it would one of its own.
 *
 * How messages get from one to another is the business of whoever makes the team.
 *
 * Threading: of each process, one thread.
 */

#include "tools/fl_sim/engine/sim_clients.h"

#include "libfl/base/buf.h"
#include "libfl/base/log.h"
#include "libfl/num/kernels.h"

struct fl_ranks {
    unsigned n, me; /* processes, and which of them this is; the leader is 0 */
    /*
     * Begin to send, without waiting for the other. Takes a reference. Two that are sent to the
     * same process come in this order. FL_ENOMEM; FL_ELIMIT: longer than a message can be.
     */
    int (*send)(void *ctx, unsigned to, struct fl_blob *message, struct fl_err *err);
    /*
     * The next message: the leader's of any process, another's of the leader. `ret` is set, and
     * the caller's. FL_ENOENT: none is there, if not to `wait`; FL_ENOMEM.
     */
    int (*receive)(void *ctx, bool wait, struct fl_buf *ret, struct fl_err *err);
    void *ctx;
};

/* The leader: that was all, whether there was work or none. */
FL_MUST_CHECK int fl_ranks_end(const struct fl_ranks *ranks, struct fl_err *err);

/*
 * Another process: do the work of its clients, on so many threads, until the leader ends it. An
 * error is one of this process; of a client's work the leader hears. `people` as the leader's.
 */
FL_MUST_CHECK int fl_ranks_serve(const struct fl_ranks *ranks,
                                 const struct fl_sim_clients *sim_clients,
                                 const struct fl_kernels *kernels, unsigned threads,
                                 const struct fl_log *log, struct fl_err *err);

#endif
