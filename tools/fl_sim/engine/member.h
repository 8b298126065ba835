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

#include "client/store/held.h"
#include "client/work/code.h"
#include "client/work/settle.h"
#include "client/work/training.h"
#include "server/work/welcome.h"

struct fl_member {
    char dir[512];
    struct fl_worker worker;
    struct fl_task task;
    struct fl_inputs inputs; /* of the task, whole */
    struct fl_held held;
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

/* Of a member that is prepared (fl_worker_prepare): why what it holds cannot be reported; NULL: it
   can, or it holds nothing. */
const char *fl_member_unfit(const struct fl_member *member);

/*
 * What comes before a training: settle by task->counted, choose of what is listed, and copy of it
 * what is not here. Errors of settle.h and inputs.h; called again it goes on.
 */
FL_MUST_CHECK int fl_member_fetch(struct fl_member *member, const struct fl_task *task,
                                  const struct fl_member_bundle *bundles, size_t n,
                                  struct fl_err *err);
/* Train for the task that was fetched: what comes of it is held. Errors of training.h. */
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
 * any good. Errors of sent.h and of the spool, fl_spool_is_bad().
 */
FL_MUST_CHECK int fl_member_upload(const struct fl_federation *federation, const char *name,
                                   const struct fl_code *code, struct fl_err *err);

#endif
