/*
 * The first rounds of a trial once more, in a folder of their own, compared figure by figure:
 * before a run goes on in a folder that another build or other kernels made, and after a run with a
 * program of the user, which need not be deterministic. Main thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "tools/fl_sim/run.h"

#define PATH_SIZE 4096

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

/* Which rounds are run again: the first ones of a trial of the results in `dir`. */
struct replay {
    const struct run *run;
    const struct fl_run_info *info;
    const char *dir;
    size_t point, trial;
    uint64_t rounds;
};

/* Run them into `dir`. */
static int replay_trial(const struct replay *r, const char *dir, struct fl_err *err)
{
    struct run again = *r->run;
    struct fl_run_info plain = *r->info;
    int rv;

    again.results = NULL;
    again.progress = NULL;
    again.keep_state = plain.keep_state = plain.clients = false;
    again.most_rounds = r->rounds;
    plain.extends = NULL;
    rv = fl_results_open(dir, &plain, &again.results, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = progress_new(1, /* quiet= */ true, &again.progress);
    if (rv != FL_OK) {
        goto done;
    }
    rv = trial_run(&again, r->point, r->trial, NULL, err);
done:
    progress_free(again.progress);
    fl_results_free(again.results);
    return rv;
}

/*
 * Run them again, and compare them with the file of the trial, `old`. FL_EEXIST: they differ; `err`
 * names round, figure and both values.
 */
static int replay_compare(const struct replay *r, const char *old, struct fl_err *err)
{
    const struct fl_experiment *e = r->run->experiment;
    char again[PATH_SIZE + 200];
    char folder[PATH_SIZE];
    int rv = fl_fs_join(folder, sizeof(folder), r->dir, ".replay");

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "path '%s' is too long", r->dir);
    }
    rv = fl_fs_remove_tree(folder, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(again, sizeof(again), "%s/%s/seed-%" PRIu64 "/rounds.jsonl", folder,
                   fl_experiment_slug(e, r->point), fl_experiment_seed(e, r->trial));
    rv = replay_trial(r, folder, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_results_same_rounds(old, again, err);
done:
    if (fl_fs_remove_tree(folder, NULL) != FL_OK && rv == FL_OK) {
        rv = fl_err_set(err, FL_EIO, "cannot remove '%s'", folder);
    }
    return rv;
}

int run_replay(const struct run *run, const struct fl_run_info *info, const char *dir,
               struct fl_err *err)
{
    struct replay r = {.run = run, .info = info, .dir = dir, .rounds = RUN_REPLAY_ROUNDS};
    struct fl_run_build build;
    struct fl_err why = {0};
    char old[PATH_SIZE];
    int rv = fl_results_find_build(dir, info, &build, err);

    if (rv != FL_OK || !build.differs || !replay_find_trial(run, dir, &r.point, &r.trial, old)) {
        return rv;
    }
    rv = replay_compare(&r, old, &why);
    if (rv == FL_EEXIST) {
        return fl_err_set(err, rv,
                          "'%s' was made by another build, %s, and this one, %s, computes other "
                          "results: %s ('%s', seed %" PRIu64 "); results of both are not mixed: "
                          "choose another folder with --out, or go on with that build",
                          dir, build.before, build.now, why.msg,
                          fl_experiment_label(run->experiment, r.point),
                          fl_experiment_seed(run->experiment, r.trial));
    }
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
}

int run_repeat(const struct run *run, const struct fl_run_info *info, const char *dir, size_t point,
               uint64_t rounds, struct fl_err *err)
{
    const struct replay r = {run, info, dir, point, .trial = 0, rounds};
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
    rv = replay_compare(&r, old, &why);
    if (rv == FL_EEXIST) {
        return fl_err_set(err, rv,
                          "'%s', seed %" PRIu64 ": run again, %s: a program of this experiment is "
                          "not deterministic, so that these results cannot be repeated, and a "
                          "killed run does not go on as it would have "
                          "(docs/simulation.md#your-own-training-program)",
                          fl_experiment_label(run->experiment, point),
                          fl_experiment_seed(run->experiment, 0), why.msg);
    }
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "%s", fl_err_text(&why, rv));
}
