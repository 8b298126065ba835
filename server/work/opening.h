#ifndef FL_SERVER_WORK_OPENING_H
#define FL_SERVER_WORK_OPENING_H

/*
 * What a federation goes on from: its records, and the newest checkpoint that goes with one of
 * them. The caller holds the lock of the folder (fl_fs_lock_dir()).
 */

#include "libfl/nn/net.h"
#include "server/work/commit.h"

struct fl_opening {
    const char *name; /* of the federation */
    enum fl_durability durability;
    const struct fl_settings *settings; /* what it is run under */
    uint64_t wall_ms;
    /* Makes the very first model, where the folder has none. */
    int (*first_model)(void *ctx, float *theta, struct fl_err *err);
    void *ctx;
};

/*
 * Open the folder of a federation whose layout, strategy, folder and log are set; sets the rest but
 * retention. A rollback that was asked for is carried out. Checkpoints that are gone or provably
 * bad are passed over: the rounds behind the newest good one are run again. An error of reading
 * says nothing about a file, and ends it, with nothing changed; so does FL_EVERSION, a checkpoint
 * that lacks what the algorithm goes on from. FL_ESTATE: none can be used. Of an error the message
 * says what to do. Whatever is in `ret`, `ret_resume` and the federation's store is the caller's,
 * also on an error: fl_progress_done(), fl_store_resume_done(), fl_store_close().
 */
FL_MUST_CHECK int fl_opening_run(struct fl_federation *federation, const struct fl_opening *opening,
                                 struct fl_progress *ret, struct fl_coord_resume *ret_resume,
                                 struct fl_err *err);
/* A first model drawn from the seed. */
FL_MUST_CHECK int fl_opening_draw(const struct fl_net_spec *spec, uint64_t seed, float *theta,
                                  struct fl_err *err);
/*
 * Where the database is lost or does not go with its checkpoints: fl_store_rebuild() with what this
 * federation's algorithm needs.
 */
FL_MUST_CHECK int fl_opening_rebuild(struct fl_federation *federation, const char *name,
                                     struct fl_store_rebuild *ret, struct fl_err *err);

#endif
