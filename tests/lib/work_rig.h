#ifndef FL_LIB_WORK_RIG_H
#define FL_LIB_WORK_RIG_H

/*
 * A server's federation over a real store in a folder of rig_dir(), without a daemon. Every failure
 * ends the test.
 */

#include "server/work/opening.h"
#include "tests/lib/store_rig.h"

struct work_rig {
    struct fl_layout *layout;
    struct fl_strategy *strategy;
    struct fl_federation fed;
    struct fl_progress progress;
    struct fl_coord_resume resume;
    struct fl_retention retention; /* of the next opening; two checkpoints stay */
    uint64_t wall_ms;              /* of the next opening */
    enum fl_durability durability; /* of the next opening */
    const char *broadcast;         /* of the next opening; NULL: float32 */
    const char *step, *history;    /* with "lattice"; NULL: 0.5 and the default */
    unsigned n_first;              /* number of initial models created, with FIRST in every entry */
    char logged[8192];             /* "LEVEL text\n" each */
    struct fl_log log;
};

#define WORK_RIG_FIRST 0.5f

/* A new folder, no federation in it yet. */
void work_rig_init(struct work_rig *rig);
/* Open the folder for `algorithm`, as a daemon does when it starts; the log begins empty. */
int work_rig_try(struct work_rig *rig, const char *algorithm, struct fl_err *err);
/* The same; a failure ends the test. */
void work_rig_open(struct work_rig *rig, const char *algorithm);
/* Close as a daemon that stops or crashes; may be closed already. */
void work_rig_close(struct work_rig *rig);
/* Close, and remove the folder. */
void work_rig_done(struct work_rig *rig);
/* A model of `value` in every entry, its vectors twice that, is aggregated. */
void work_rig_aggregate(struct work_rig *rig, float value);
/* It has personalized models of `value` for these clients. */
void work_rig_mix(struct work_rig *rig, uint64_t round, const char *const *names, size_t n,
                  float value);
/* Commit `round` with accuracy `round` / 100 at a wall clock of `round` seconds. */
int work_rig_commit(struct work_rig *rig, uint64_t round, struct fl_err *err);
/* Aggregate and commit the rounds `from` to `to`, each with its number as the model. */
void work_rig_rounds(struct work_rig *rig, uint64_t from, uint64_t to);
/* An entry of the model of the last committed round, and of the first vector beside it. */
double work_rig_theta(const struct work_rig *rig);
double work_rig_state(const struct work_rig *rig);
/*
 * Does a client that holds `value` in every entry get the committed model as what changed, bit for
 * bit? False: it downloads the whole one.
 */
bool work_rig_reaches(const struct work_rig *rig, double value);
/* Is there a file of that name in the folder? */
bool work_rig_there(const char *name);

#endif
