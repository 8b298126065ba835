#ifndef FL_SERVER_WORK_OPENING_H
#define FL_SERVER_WORK_OPENING_H

/* Opening of a state folder: the records of a federation, and the newest checkpoint that goes
   with one of them. The caller holds the lock of the folder (fl_fs_lock_dir()). */

#include "libfl/nn/net.h"
#include "server/work/commit.h"

struct fl_opening {
    const char *name; /* of the federation */
    enum fl_durability durability;
    const struct fl_settings *settings; /* the settings of this start */
    uint64_t wall_ms;
    /* Creates the first model, where the folder has none. */
    int (*first_model)(void *ctx, float *theta, struct fl_err *err);
    void *ctx;
};

/*
 * Open the folder of a federation whose layout, strategy, folder and log are set; sets the rest but
 * retention. Carries out a requested rollback. Skips checkpoints that are missing or provably bad:
 * the rounds after the newest good one are run again. A read error says nothing about a file and
 * fails the opening with nothing changed; so does FL_EVERSION, a checkpoint that lacks what the
 * algorithm resumes from. FL_ESTATE: none is usable. Error messages say what to do. The caller owns
 * `ret`, `ret_resume` and the federation's store, also on an error: fl_progress_done(),
 * fl_store_resume_done(), fl_store_close().
 */
FL_MUST_CHECK int fl_opening_run(struct fl_federation *federation, const struct fl_opening *opening,
                                 struct fl_progress *ret, struct fl_coord_resume *ret_resume,
                                 struct fl_err *err);
/*
 * The seed of the first model for fl_net_draw(): the master seed, or where clients are told the
 * seed (fl_broadcast_sends_moves()) one that does not give that one away.
 */
uint64_t fl_opening_seed(const struct fl_strategy *strategy, uint64_t master);
/* When the database is lost or does not match its checkpoints: fl_store_rebuild() with what this
   federation's algorithm needs. */
FL_MUST_CHECK int fl_opening_rebuild(struct fl_federation *federation, const char *name,
                                     struct fl_store_rebuild *ret, struct fl_err *err);

#endif
