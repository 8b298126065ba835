#ifndef FL_CLIENT_KEEP_H
#define FL_CLIENT_KEEP_H

/*
 * The client state, kept between rounds: named float32 blocks, model-shaped except for local
 * tensors, such as the control variate of SCAFFOLD, a codec's residual or a personal model
 * (solver.h).
 *
 * Commit on acknowledgement: training writes *pending* values for its (round, attempt). They
 * replace the *kept* (committed) ones only when a later Task says that the server aggregated
 * exactly that (round, attempt), and are discarded when a later Task says otherwise. So both sides
 * always agree about the round of the kept values, whatever crashed in between.
 *
 * Files, all in <state_dir>/keep:
 *
 *   NAME.SERIAL.keep  one block with a checked head, immutable
 *   layout            the textual layout of the model, for readers without a server
 *                     (client_state_read.h)
 *   index             which blocks are kept and which pending, of which rounds, for which
 *                     federation, model and state_generation (generation of client state), and the
 *                     upload mask of the pending round
 *
 * Each change writes new blocks first, then replaces the index, then removes files that the index
 * does not name: replacing the index is the commit. A process killed anywhere finds the old state
 * or the new one, and repeating the step gives the new one. A damaged block or index counts as
 * missing, with a message that names what is lost.
 *
 * While nothing is wanted nothing is written, the folder is not even created.
 *
 * Ownership: copies what it is given. Threading: one call at a time; the daemon calls it on the
 * training thread, fl_client_state_bind() while that thread is idle.
 */

#include <stdbool.h>

#include "client/core/session.h"
#include "libfl/base/log.h"
#include "libfl/model/layout.h"

#define FL_CLIENT_STATE_MAX 16

struct fl_client_state_spec {
    char name[FL_NAME_MAX]; /* fl_name_valid() */
    /*
     * Only uploaded layers are committed, the others keep their values
     * (docs/algorithms.md#partial-uploads).
     */
    bool per_unit;
    /* The server holds the sum over all clients (SCAFFOLD's control): it belongs to an epoch. */
    bool summed;
    size_t floats; /* number of floats; 0: that of the layout; any other number excludes per_unit */
};

struct fl_client_state_value {
    const char *name;
    const float *data; /* [floats of its spec] */
};

struct fl_client_state;

/*
 * Open the folder; nothing is wanted yet. Borrows `log`, which may be NULL. FL_EVERSION: the files
 * are of a later version, and stay.
 */
FL_MUST_CHECK int fl_client_state_open(const char *state_dir, const struct fl_log *log,
                                       struct fl_client_state **ret, struct fl_err *err);
/*
 * The same for a simulated client, which exists for one task: the disk is not accessed before
 * something is wanted, and nothing is synced, so that the state survives the process but not a
 * crash of the machine. `state_dir` NULL: nothing can be kept. FL_ENOMEM, FL_ELIMIT.
 */
FL_MUST_CHECK int fl_client_state_open_scratch(const char *state_dir, const struct fl_log *log,
                                               struct fl_client_state **ret, struct fl_err *err);
void fl_client_state_free(struct fl_client_state *keeps);

/* What the client state belongs to: Welcome's federation, model and state_generation. */
struct fl_client_state_home {
    const char *federation;
    const struct fl_layout *layout;  /* borrowed until the next bind or unbind */
    const uint8_t *state_generation; /* [FL_DIGEST_SIZE], copied */
};

/*
 * Set what is kept from now on. State on disk of another federation or model, or of another
 * state_generation (the server reset its part), is not used, and removed by the next write. n 0:
 * nothing is wanted. FL_EINVAL: an invalid or repeated name, more than FL_CLIENT_STATE_MAX, or no
 * folder. After fl_client_state_open_scratch() also errors of the disk.
 */
FL_MUST_CHECK int fl_client_state_bind(struct fl_client_state *keeps,
                                       const struct fl_client_state_home *home,
                                       const struct fl_client_state_spec *wanted, size_t n,
                                       struct fl_err *err);
/* Nothing is wanted, and no layout is borrowed, until the next bind. */
void fl_client_state_unbind(struct fl_client_state *keeps);
bool fl_client_state_wanted(const struct fl_client_state *keeps);

/*
 * A Task for `task` arrived, and the server reports that it last aggregated `counted` of this
 * client (round 0: none). Pending values of `counted` are committed; those of another round are
 * discarded unless they belong to `task` itself. Kept values of another round than `counted` are
 * dropped with a message. Summed ones of a round before `epoch` are dropped: the server's sum does
 * not include them. FL_EIO and other errors of the disk: nothing has changed, call it again.
 */
FL_MUST_CHECK int fl_client_state_settle(struct fl_client_state *keeps, struct fl_round_key task,
                                         struct fl_round_key counted, uint64_t epoch,
                                         struct fl_err *err);
/*
 * The round of the kept values: the last `counted`, or round 0 when a value that the server relies
 * on is lost.
 */
struct fl_round_key fl_client_state_of(const struct fl_client_state *keeps);
/* The kept value; owned, free(). FL_ENOENT: none, or it is damaged (logged). */
FL_MUST_CHECK int fl_client_state_load(struct fl_client_state *keeps, const char *name, float **ret,
                                       struct fl_err *err);
/*
 * The pending value or, without one, the kept one, likewise: only for reading, as the server has
 * not yet reported that it aggregated the pending one.
 */
FL_MUST_CHECK int fl_client_state_newest(struct fl_client_state *keeps, const char *name,
                                         float **ret, struct fl_err *err);

/*
 * Replace the pending set by one for `key`, with an empty upload mask. `n` may be 0. It is durable
 * when this returns; call it before anything of that round is sent to the server.
 */
FL_MUST_CHECK int fl_client_state_put(struct fl_client_state *keeps, struct fl_round_key key,
                                      const struct fl_client_state_value *values, size_t n,
                                      struct fl_err *err);
/* Does the pending set belong to `key`? */
bool fl_client_state_pending(const struct fl_client_state *keeps, struct fl_round_key key);
/*
 * Set the upload mask `units` [units of the layout] of the pending set; `more` (may be NULL) joins
 * the set, or replaces its value of that name. Call it before the first byte of the Push.
 * FL_ESTATE: the pending set is not that of `key`.
 */
FL_MUST_CHECK int fl_client_state_grant(struct fl_client_state *keeps, struct fl_round_key key,
                                        const uint8_t *units,
                                        const struct fl_client_state_value *more,
                                        struct fl_err *err);

#endif
