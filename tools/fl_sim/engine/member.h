#ifndef FL_SIM_MEMBER_H
#define FL_SIM_MEMBER_H

/*
 * A client of a federation that runs in this process: what lies below a client's daemon (its
 * folder, a trainer, client/store and client/work) without the daemon's connection, loop and lane.
 * Whoever drives it says when a session would: fetch, train, code, drop (client/core/session.h).
 *
 * What it keeps is on disk as a daemon's is: fl_member_close() and fl_member_open() are a process
 * that ends and the next one.
 *
 * A member is not to be moved in memory while it is open.
 *
 * Threading: one call at a time; members of one federation share only their setup, which is
 * counted.
 */

#include "client/store/pending_result.h"
#include "client/work/code.h"
#include "client/work/settle_state.h"
#include "client/work/training.h"
#include "server/work/welcome.h"

struct fl_member {
    char dir[512]; /* of one that was opened */
    bool begun;    /* its trainer is lent */
    struct fl_worker worker;
    struct fl_task task;
    struct fl_inputs inputs; /* of the task, whole */
    struct fl_pending_result held;
};

/* A bundle as a server lists and serves it; borrowed. */
struct fl_member_bundle {
    const char *name;
    const void *data;
    size_t len;
    bool has_digest; /* listed with its SHA-256, so that it may be cached */
};

/*
 * A process begins in `dir`, which is there, and finds what one before it left. Takes `trainer`, on
 * error too; `log` may be NULL, and is borrowed. `seed`: the same in every run of this client.
 */
FL_MUST_CHECK int fl_member_open(struct fl_member *member, const char *dir,
                                 struct fl_trainer *trainer, const struct fl_log *log,
                                 uint64_t seed, struct fl_err *err);
/* It ends; the folder stays as it is. All zero is allowed. */
void fl_member_close(struct fl_member *member);

/*
 * The other way to be one, for a client of a simulation that has something to do: it is there for
 * its part in a round, and gone again. Only its folder is there in between, if anything is kept.
 */
struct fl_member_place {
    const char
        *dir; /* made by the first write; NULL: nothing may be kept (fl_worker_client_state()) */
    const struct fl_log *log; /* may be NULL, is borrowed */
    uint64_t seed;            /* as above */
    uint64_t least_group;     /* as fl_worker_terms */
};
/*
 * Prepared for `setup`, to which it takes a reference, without a trainer; what it held when it was
 * last closed is gone. The disk is touched only where something is kept between rounds, and nothing
 * is synced. What it fetches is lent to it: not copied, checked or cached on its disk, a bundle
 * stays where it is, as it is, until the training is over or the member is closed. FL_EINVAL:
 * something is kept, and there is no folder.
 */
FL_MUST_CHECK int fl_member_begin(struct fl_member *member, const struct fl_member_place *place,
                                  struct fl_setup *setup, struct fl_err *err);
/*
 * For what follows, until another is lent (NULL: none) or the member is closed, which does not free
 * it: a trainer over this client's data (fl_trainer_set_data()), prepared for the same setup
 * (fl_worker_prepare_trainer()). Of a member that was begun.
 */
void fl_member_lend(struct fl_member *member, struct fl_trainer *trainer);

/* Of a member that is prepared (fl_worker_prepare): why what it holds cannot be reported; NULL: it
   can, or it holds nothing. */
const char *fl_member_unfit(const struct fl_member *member);

/*
 * What comes before a training: settle by task->counted, choose of what is listed, and copy of it
 * what is not here. Errors of settle_state.h and inputs.h; called again it goes on.
 */
FL_MUST_CHECK int fl_member_fetch(struct fl_member *member, const struct fl_task *task,
                                  const struct fl_member_bundle *bundles, size_t n,
                                  struct fl_err *err);
/* Train for the task that was fetched: what comes of it is held. Errors of sim_training.h. */
FL_MUST_CHECK int fl_member_train(struct fl_member *member, struct fl_err *err);
/*
 * The granted `units` (NULL: all) of what is held as the bytes of a Push, and its part of what is
 * kept made pending. `ret` is the caller's, fl_code_done(), of an error too. FL_ESTATE and others
 * of code.h.
 */
FL_MUST_CHECK int fl_member_code(struct fl_member *member, const uint8_t *units,
                                 struct fl_code *ret, struct fl_err *err);
/* --- what lies between it and a server --- */

/* What a client makes of a Welcome off the wire, so that nothing of it is the server's. */
FL_MUST_CHECK int fl_member_setup(const struct fl_described *of, struct fl_setup **ret,
                                  struct fl_err *err);
/*
 * What a member coded, as the server takes it: what is announced, the bytes, and whether they are
 * any good. Into the federation's uploads where it has a place for them in memory, else into a
 * spool file. `ret->unit` is the caller's. Errors of payload_sizes.h and of the spool,
 * fl_spool_is_bad().
 */
FL_MUST_CHECK int fl_member_upload(const struct fl_federation *federation, const char *name,
                                   const struct fl_code *code, struct fl_norms *ret,
                                   struct fl_err *err);

#endif
