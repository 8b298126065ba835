#ifndef FL_RESULTS_READ_H
#define FL_RESULTS_READ_H

/*
 * The results of a run, read from its folder (results.h), also while the run is writing: the last
 * line of an unfinished trial may be truncated, and is then left out.
 *
 * Threading: the result belongs to its caller and does not change.
 */

#include "tools/fl_sim/results/results.h"
#include "tools/fl_sim/results/row.h"

struct fl_read_trial {
    uint64_t seed;
    bool finished;
    struct fl_trial_end end; /* of a finished trial; its reason may be NULL */
    struct fl_row *rows;     /* in the order of rounds; at least one */
    size_t n_rows;
    char *reason;
};

struct fl_read_point {
    char *slug, *label;
    struct fl_read_trial *trials; /* trials with at least one round, sorted by seed */
    size_t n_trials;
};

struct fl_read_run {
    char *path; /* the path as given */
    char *name; /* name of the experiment */
    struct fl_read_point *points;
    size_t n_points;
};

/*
 * `path`: the folder of a run, or of one of its points (DIR/POINT). FL_ENOENT: there is no run;
 * FL_EFORMAT: a file and its line; errors of reading.
 */
FL_MUST_CHECK int fl_read_run(const char *path, struct fl_read_run **ret, struct fl_err *err);
void fl_read_run_free(struct fl_read_run *run); /* NULL is allowed. */
/* Free what a point owns. */
void fl_read_point_done(struct fl_read_point *point);

/* FL_OK, or an error that ends the reading. The trials of `point` may be read during the call only.
 */
typedef int (*fl_read_point_cb)(void *ctx, const struct fl_read_run *run,
                                const struct fl_read_point *point, struct fl_err *err);
/* As fl_read_run(), but the trials of one point at a time are in memory: hands the first `most`
   points to `take`, in their order. */
FL_MUST_CHECK int fl_read_each(const char *path, size_t most, fl_read_point_cb take, void *ctx,
                               struct fl_err *err);

/* Several runs, in the order of the command line. */
struct fl_read_set {
    struct fl_read_run **runs;
    size_t n;
};

/* At least one; FL_ENOENT also when none of them has a trial with a round. */
FL_MUST_CHECK int fl_read_all(char *const *paths, size_t n, struct fl_read_set *ret,
                              struct fl_err *err);
/*
 * Move the trials of points to the first point of the set with the same label; the other ones are
 * removed. A seed that several have is kept once if all its rounds are the same, else FL_EEXIST:
 * the set can then only be freed.
 */
FL_MUST_CHECK int fl_read_merge(struct fl_read_set *set, struct fl_err *err);
void fl_read_set_done(struct fl_read_set *set);
/*
 * The label of a point of `run`, prefixed with the path when another point of the set has the same
 * label. Returns `out`.
 */
const char *fl_read_label(const struct fl_read_set *set, const struct fl_read_run *run,
                          const struct fl_read_point *point, char *out, size_t size);

/*
 * Feed all rounds of a trial to `course`, which was initialised by fl_trajectory_init(). Returns
 * the trial's totals.
 */
struct fl_trajectory;
struct fl_spent;
void fl_read_trajectory(const struct fl_read_trial *trial, struct fl_trajectory *trajectory,
                        struct fl_spent *ret_spent);
/*
 * The key of the model's quality: "accuracy" when any trial of the set has it in any round, else
 * "personal_accuracy".
 */
const char *fl_read_quality(const struct fl_read_set *set);

#endif
