#ifndef FL_SIM_MEMBER_H
#define FL_SIM_MEMBER_H

/*
 * A client of a federation that runs in this process: the lower layers of a client daemon (its
 * folder, a trainer, client/store and client/work) without its connection, event loop and worker
 * threads. The caller takes the role of the session: fetch, train, code, drop
 * (client/core/session.h).
 *
 * Its state is on disk in the format of the daemon: fl_member_close() and member_open() of the
 * tests model the end of a process and the start of the next one.
 *
 * A member must not move in memory while it is open.
 *
 * Threading: one call at a time; members of one federation share only their setup, which is
 * reference-counted.
 */

#include "client/store/pending_result.h"
#include "client/work/code.h"
#include "client/work/settle_state.h"
#include "client/work/training.h"
#include "server/work/welcome.h"

struct fl_member {
    char dir[512]; /* set by member_open() */
    bool begun;    /* its trainer is lent */
    struct fl_worker worker;
    struct fl_task task;
    struct fl_inputs inputs; /* complete payloads of the task */
    struct fl_pending_result held;
};

/* A payload as a server lists and serves it; borrowed. */
struct fl_member_payload {
    const char *name;
    const void *data;
    size_t len;
};

/* End the process; the folder is unchanged. A zeroed member is allowed. */
void fl_member_close(struct fl_member *member);

/*
 * Alternative for a simulated client with something to do: it is opened for its participation in a
 * round and closed after it. Between rounds only its folder exists, and only if it has client
 * state.
 */
struct fl_member_place {
    const char
        /* created by the first write; NULL: nothing may be stored (fl_client_state_wanted()) */
        *dir;
    const struct fl_log *log; /* may be NULL, is borrowed */
    uint64_t seed;            /* as above */
    uint64_t least_group;     /* as fl_worker_terms */
};
/*
 * Prepare for `setup`, to which it takes a reference, without a trainer; the pending result of its
 * last close is discarded. It accesses the disk only where client state is kept between rounds, and
 * syncs nothing. Payloads are lent, not copied, checked or cached on disk: a payload stays
 * unchanged at its address until the training has ended or the member is closed. FL_EINVAL: there
 * is client state, and no folder.
 */
FL_MUST_CHECK int fl_member_begin(struct fl_member *member, const struct fl_member_place *place,
                                  struct fl_setup *setup, struct fl_err *err);
/*
 * Lend a trainer over this client's data (fl_trainer_set_data()), prepared for the same setup
 * (fl_worker_prepare_trainer()), until another one is lent (NULL: none) or the member is closed,
 * which does not free it. Only after fl_member_begin().
 */
void fl_member_lend(struct fl_member *member, struct fl_trainer *trainer);

/*
 * The steps before a training: commit or discard the pending result by task->counted, choose from
 * the listed payloads, and lend them. Only after fl_member_begin(). Errors of settle_state.h and
 * inputs.h; it may be called again to continue.
 */
FL_MUST_CHECK int fl_member_fetch(struct fl_member *member, const struct fl_task *task,
                                  const struct fl_member_payload *payloads, size_t n,
                                  struct fl_err *err);
/* Train for the fetched task; keeps the pending result. Errors of sim_training.h. */
FL_MUST_CHECK int fl_member_train(struct fl_member *member, struct fl_err *err);
/*
 * Code the `units` of the upload mask (NULL: all) of the pending result as the bytes of a Push, and
 * make its client state pending. The caller frees `ret` with fl_code_done(), after an error too.
 * FL_ESTATE and others of code.h.
 */
FL_MUST_CHECK int fl_member_code(struct fl_member *member, const uint8_t *units,
                                 struct fl_code *ret, struct fl_err *err);
/* --- messages between member and server --- */

/* Makes a setup from a Welcome through its wire format, so that it shares nothing with the
   server. */
FL_MUST_CHECK int fl_member_setup(const struct fl_described *of, struct fl_setup **ret,
                                  struct fl_err *err);
/*
 * Receive a member's coded upload as the server does: announcement, bytes and validity checks. Into
 * the federation's uploads where they are in memory, else into a spool file. The caller owns
 * `ret->unit`. Errors of payload_sizes.h and of the spool, fl_spool_is_bad().
 */
FL_MUST_CHECK int fl_member_upload(const struct fl_federation *federation, const char *name,
                                   const struct fl_code *code, struct fl_norms *ret,
                                   struct fl_err *err);

#endif
