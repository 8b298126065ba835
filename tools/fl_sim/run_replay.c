/*
 * The first rounds of a trial once more, in a folder of their own, compared figure by figure: before
 * a run goes on in a folder that another build or other kernels made, and after a run with a program
 * of the user, which need not be deterministic. Main thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "tools/fl_sim/run.h"

#define PATH_SIZE     4096

/* A trial of the folder that has rounds, and their file; false: none has. */
static bool replay_find_trial(const struct run *run, const char *dir, size_t *ret_point,
                              size_t *ret_trial, char path[PATH_SIZE])
{
    size_t points = fl_experiment_points(run->experiment);
    size_t n = points * fl_experiment_trials(run->experiment);
    struct fl_err err;
    size_t i;

    for (i = 0; i < n; i++) {
        *ret_point = i % points;
        *ret_trial = i / points;
        if (fl_results_find_rounds(dir, fl_experiment_label(run->experiment, *ret_point),
                                   fl_experiment_seed(run->experiment, *ret_trial), path, PATH_SIZE,
                                   &err) == FL_OK)
        {
            return true;
        }
    }
    return false;
}

/* Run the first rounds of a trial into `dir`. */
static int replay_trial(const struct run *run, const struct fl_run_info *info, size_t point,
                        size_t trial, uint64_t rounds, const char *dir, struct fl_err *err)
{
    struct run again = *run;
    struct fl_run_info plain = *info;
    int rv;

    again.results = NULL;
    again.progress = NULL;
    again.keep_state = plain.keep_state = plain.clients = false;
    again.most_rounds = rounds;
    plain.extends = NULL;
    rv = fl_results_open(dir, &plain, &again.results, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = progress_new(1, /* quiet= */ true, &again.progress);
    if (rv != FL_OK) {
        goto done;
    }
    rv = trial_run(&again, point, trial, NULL, err);
done:
    progress_free(again.progress);
    fl_results_free(again.results);
    return rv;
}

/*
 * Run the first rounds of a trial again, and compare them with its file `old`. FL_EEXIST: they
 * differ; `err` names round, figure and both values.
 */
static int replay_compare(const struct run *run, const struct fl_run_info *info, const char *dir,
                          size_t point, size_t trial, uint64_t rounds, const char *old,
                          struct fl_err *err)
{
    char again[PATH_SIZE + 200];
    char folder[PATH_SIZE];
    int rv = fl_fs_join(folder, sizeof(folder), dir, ".replay");

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "path '%s' is too long", dir);
    }
    rv = fl_fs_remove_tree(folder, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(again, sizeof(again), "%s/%s/seed-%" PRIu64 "/rounds.jsonl", folder,
                   fl_experiment_slug(run->experiment, point),
                   fl_experiment_seed(run->experiment, trial));
    rv = replay_trial(run, info, point, trial, rounds, folder, err);
    if (rv == FL_OK) {
        rv = fl_results_same_rounds(old, again, err);
    }
    if (fl_fs_remove_tree(folder, NULL) != FL_OK && rv == FL_OK) {
        rv = fl_err_set(err, FL_EIO, "cannot remove '%s'", folder);
    }
    return rv;
}

int run_replay(const struct run *run, const struct fl_run_info *info, const char *dir,
               struct fl_err *err)
{
    struct fl_run_build build;
    struct fl_err why = {0};
    char old[PATH_SIZE];
    size_t point = 0;
    size_t trial = 0;
    int rv = fl_results_find_build(dir, info, &build, err);

    if (rv != FL_OK || !build.differs || !replay_find_trial(run, dir, &point, &trial, old)) {
        return rv;
    }
    rv = replay_compare(run, info, dir, point, trial, RUN_REPLAY_ROUNDS, old, &why);
    if (rv == FL_EEXIST) {
        return fl_err_set(err, rv,
                          "'%s' was made by another build, %s, and this one, %s, computes other "
                          "results: %s ('%s', seed %" PRIu64 "); results of both are not mixed: "
                          "choose another folder with --out, or go on with that build",
                          dir, build.before, build.now, why.msg,
                          fl_experiment_label(run->experiment, point),
                          fl_experiment_seed(run->experiment, trial));
    }
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
}

int run_repeat(const struct run *run, const struct fl_run_info *info, const char *dir, size_t point,
               uint64_t rounds, struct fl_err *err)
{
    struct fl_err why = {0};
    char old[PATH_SIZE];
    int rv = fl_results_find_rounds(dir, fl_experiment_label(run->experiment, point),
                                    fl_experiment_seed(run->experiment, 0), old, sizeof(old), err);

    if (rv == FL_ENOENT) {
        return FL_OK; /* It ended before its first round. */
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = replay_compare(run, info, dir, point, 0, rounds, old, &why);
    if (rv == FL_EEXIST) {
        return fl_err_set(err, rv,
                          "'%s', seed %" PRIu64 ": run again, %s: a program of this experiment is "
                          "not deterministic, so that nobody can repeat these results, and a "
                          "killed run does not go on as it would have "
                          "(docs/simulation.md#your-own-training-program)",
                          fl_experiment_label(run->experiment, point),
                          fl_experiment_seed(run->experiment, 0), why.msg);
    }
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
}
