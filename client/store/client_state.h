#ifndef FL_CLIENT_KEEP_H
#define FL_CLIENT_KEEP_H

/*
 * What a client keeps between rounds: named float32 blocks, model-shaped but for what stays of a
 * model on the client, such as the control variate of SCAFFOLD, a codec's residual or a personal
 * model (solver.h).
 *
 * Commit on acknowledgement: training makes *pending* values for its (round, attempt); they
 * take the place of the *kept* ones only when a later Task says that the server counted
 * exactly that (round, attempt), and are dropped when a later Task says otherwise. So both
 * sides always agree about which round the kept values are of, whatever crashed in between.
 *
 * Files, all in <state_dir>/keep:
 *   NAME.SERIAL.keep  one block with a checked head, never changed once it is there;
 *   layout            the textual layout of the model, for who reads the folder
 * (client_state_read.h) index             which of them are kept and which pending, of which
 * rounds, for which federation, model and kept_line, and the units that the pending round was
 * granted. Each change writes new blocks first, then replaces the index, then removes what no index
 * names any more: the index is the one point of commit. A process that is killed anywhere
 * finds the old state or the new one, and doing the step again gives the new one.
 * A damaged block or index counts as none, with a message that says what is lost.
 *
 * While nothing is wanted nothing is written, the folder is not even made.
 *
 * Ownership: copies what it is given. Threading: one call at a time; the daemon calls it on
 * the training lane, fl_client_state_bind() while that lane is idle.
 */

#include <stdbool.h>

#include "client/core/session.h"
#include "libfl/base/log.h"
#include "libfl/model/layout.h"

#define FL_CLIENT_STATE_MAX 16

struct fl_client_state_spec {
    char name[FL_NAME_MAX]; /* fl_name_valid() */
    /* Only the granted units are taken over, the others stay (docs/formulas.md#partial-uploads). */
    bool per_unit;
    /* The server has the sum of all clients' (SCAFFOLD's control): it belongs to an epoch. */
    bool summed;
    size_t floats; /* 0: as many as the layout has; another number does not go with per_unit */
};

struct fl_client_state_value {
    const char *name;
    const float *data; /* [floats of its spec] */
};

struct fl_client_state;

/* Nothing is wanted yet. `log` is referenced, may be NULL. FL_EVERSION: what is there is of a later
   version, and stays. */
FL_MUST_CHECK int fl_client_state_open(const char *state_dir, const struct fl_log *log,
                                       struct fl_client_state **ret, struct fl_err *err);
/*
 * The same of a simulated client, which is there for a task and gone again: the disk is not touched
 * before something is wanted, and nothing is synced, so that what is kept survives the process and
 * not the machine. `state_dir` NULL: there is no place to keep anything. FL_ENOMEM, FL_ELIMIT.
 */
FL_MUST_CHECK int fl_client_state_open_scratch(const char *state_dir, const struct fl_log *log,
                                               struct fl_client_state **ret, struct fl_err *err);
void fl_client_state_free(struct fl_client_state *keeps);

/* Where what is kept belongs: Welcome's federation, model and kept_line. */
struct fl_client_state_home {
    const char *federation;
    const struct fl_layout *layout; /* keeps a reference to, until the next bind */
    const uint8_t *kept_line;       /* [FL_DIGEST_SIZE], copied */
};

/*
 * What is kept from now on. What is there of another federation or model, or of another
 * kept_line (the server's part of it began anew), is not used, and removed by the next
 * write. n 0: nothing is wanted.
 * FL_EINVAL: a bad or repeated name, more than FL_CLIENT_STATE_MAX, or there is no place to keep
 * it. After fl_client_state_open_scratch() also those of the disk.
 */
FL_MUST_CHECK int fl_client_state_bind(struct fl_client_state *keeps,
                                       const struct fl_client_state_home *home,
                                       const struct fl_client_state_spec *wanted, size_t n,
                                       struct fl_err *err);
/* Nothing is wanted, and no layout is referenced, until the next bind. */
void fl_client_state_unbind(struct fl_client_state *keeps);
bool fl_client_state_wanted(const struct fl_client_state *keeps);

/*
 * A Task for `task` is here, and the server says that it counted `counted` (round 0: none).
 * Pending values of `counted` are taken over; those of another round are dropped unless they
 * belong to `task` itself. Kept values of another round than `counted` are forgotten with a
 * message. Summed ones of a round before `epoch` are dropped: the server's sum is without them.
 * FL_EIO and others of the disk: nothing has changed, call again.
 */
FL_MUST_CHECK int fl_client_state_settle(struct fl_client_state *keeps, struct fl_round_key task,
                                         struct fl_round_key counted, uint64_t epoch,
                                         struct fl_err *err);
/*
 * The round that what is kept is of: the last `counted`, or round 0 when something of it that the
 * server counts on is lost.
 */
struct fl_round_key fl_client_state_of(const struct fl_client_state *keeps);

/* Is there a kept value of that name, as far as the index knows? */
bool fl_client_state_has(const struct fl_client_state *keeps, const char *name);
/* The kept value, owned, free(). FL_ENOENT: none, or it is damaged (logged). */
FL_MUST_CHECK int fl_client_state_load(struct fl_client_state *keeps, const char *name, float **ret,
                                       struct fl_err *err);
/*
 * The pending value or, without one, the kept one, likewise: for looking at it only, as nobody has
 * said yet that the pending one counts.
 */
FL_MUST_CHECK int fl_client_state_newest(struct fl_client_state *keeps, const char *name,
                                         float **ret, struct fl_err *err);

/*
 * The pending set of `key`, in place of any other; no unit is granted. `n` may be 0. Has to
 * be durable before anything of that round is told to the server: this writes before it
 * returns.
 */
FL_MUST_CHECK int fl_client_state_put(struct fl_client_state *keeps, struct fl_round_key key,
                                      const struct fl_client_state_value *values, size_t n,
                                      struct fl_err *err);
/* Is the pending set that of `key`? */
bool fl_client_state_pending(const struct fl_client_state *keeps, struct fl_round_key key);
/*
 * `units` [units of the layout] of the pending set are going to be pushed, in place of any
 * that were granted before; `more` (may be NULL) joins the set, or replaces its value of that name.
 * Before the first byte of the Push. FL_ESTATE: the pending set is not that of `key`.
 */
FL_MUST_CHECK int fl_client_state_grant(struct fl_client_state *keeps, struct fl_round_key key,
                                        const uint8_t *units,
                                        const struct fl_client_state_value *more,
                                        struct fl_err *err);

#endif
