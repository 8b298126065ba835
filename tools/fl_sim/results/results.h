#ifndef FL_RESULTS_RESULTS_H
#define FL_RESULTS_RESULTS_H

/*
 * What a run leaves in its folder:
 *
 *   run.json                    what is needed to run it again, and all that is not reproducible
 *   POINT/seed-S/rounds.jsonl   a line a round (row.h), the same as rounds.csv
 *   POINT/seed-S/clients.jsonl  a line for each client of an attempt, when asked for
 *   POINT/seed-S/summary.json   written last: with it the trial is finished
 *   POINT/seed-S/state/         the engine's own
 *   results.csv                 a line for each finished trial
 *
 * The files of a trial are bit-identical for the same experiment. A trial without summary.json is
 * written anew from its first round.
 *
 * Errors name the file and the reason. FL_ENOSPC: no space is left; what is finished stays
 * finished.
 *
 * Threading: fl_results_open(), fl_results_finish() and fl_results_free() by one thread, while no
 * trial is under way; trials of one fl_results by several threads at once, each by one at a time.
 */

#include "tools/fl_sim/results/result_columns.h"

/* A point of a sweep. */
struct fl_run_point {
    const char *slug;  /* its folder: no '/', not beginning with a dot, shorter than FL_NAME_MAX */
    const char *label; /* for people */
};

struct fl_run_partition {
    const char *data; /* which data set */
    const char *hash;
};

/* All borrowed. NULL is allowed where that is said. */
struct fl_run_info {
    const char *name;        /* of the experiment */
    const char *fingerprint; /* equal: the same experiment */
    const char *file;        /* where it was read */
    const char *text;        /* what was read */
    const char *const *sets; /* those of --set */
    size_t n_sets;
    const struct fl_run_point *points; /* in the order of results.csv, pictures and tables */
    size_t n_points;
    const uint64_t *seeds;
    size_t n_seeds;
    const struct fl_run_partition *partitions;
    size_t n_partitions;
    const char *kernels;        /* fl_kernels_name(); may be NULL */
    const char *blas_kernel;    /* fl_gemm_kernel(); may be NULL */
    const char *const *command; /* argv */
    size_t n_command;
    /*
     * The folder may have the fingerprint `extends` instead, of which this experiment is more: then
     * extend() is called under its lock, before run.json says that it is this one. May be NULL.
     */
    const char *extends;
    int (*extend)(void *ctx, struct fl_err *err);
    void *extend_ctx;
    bool clients;    /* clients.jsonl is asked for */
    bool keep_state; /* of finished trials */
};

struct fl_results;
struct fl_trial;

/* --- a folder that goes on with more than it was begun with (past.c) --- */

struct fl_results_past;
/* What `dir` says of its experiment. FL_ENOENT: nothing is there; FL_EFORMAT: no results of ours;
   FL_ENOMEM. Owned: fl_results_past_free(). */
FL_MUST_CHECK int fl_results_past_read(const char *dir, struct fl_results_past **ret,
                                       struct fl_err *err);
void fl_results_past_free(struct fl_results_past *past); /* NULL is allowed. */
const char *fl_results_past_fingerprint(const struct fl_results_past *past);
/* The text of its file, the name of that and what was set; all borrowed. */
const char *fl_results_past_text(const struct fl_results_past *past, const char **ret_file,
                                 const char *const **ret_sets, size_t *ret_n_sets);
/*
 * The folder of a point gets another name, and the summary of a trial says it, as its point is
 * called now. What is not there is fine: a run that was killed in between does it again.
 */
FL_MUST_CHECK int fl_results_rename_point(const char *dir, const char *from, const char *to,
                                          struct fl_err *err);
FL_MUST_CHECK int fl_results_rename_trial(const char *dir, const struct fl_run_point *point,
                                          uint64_t seed, struct fl_err *err);
/*
 * A trial that ended with its last round is finished no more (*ret_reopened); one that another rule
 * ended, or that diverged, stays. *ret_kept: its state is there, so it goes on.
 */
FL_MUST_CHECK int fl_results_reopen_trial(const char *dir, const char *point, uint64_t seed,
                                          bool *ret_reopened, bool *ret_kept, struct fl_err *err);

/* --- a run --- */

/*
 * Make `dir` or go on in it, and lock it. `info` is borrowed until fl_results_free().
 * FL_EEXIST: it holds another experiment (both are named), or something else; nothing is changed.
 * FL_EINUSE: a process uses it, which is named. FL_EINVAL: a slug that is none, or twice.
 */
FL_MUST_CHECK int fl_results_open(const char *dir, const struct fl_run_info *info,
                                  struct fl_results **ret, struct fl_err *err);
/*
 * Whether fl_results_open() would refuse `dir`, before anything is made in it: only the name and
 * the fingerprint of `info` are looked at. FL_EEXIST as there.
 */
FL_MUST_CHECK int fl_results_check(const char *dir, const struct fl_run_info *info,
                                   struct fl_err *err);
/*
 * For trials in the folder that another process has open, on this machine or another that sees the
 * same files: nothing but the files of its trials is written.
 */
FL_MUST_CHECK int fl_results_join(const char *dir, const struct fl_run_info *info,
                                  struct fl_results **ret, struct fl_err *err);
/* Whether the trial of a point (by its slug) and a seed is finished. */
bool fl_results_finished(const struct fl_results *results, const char *point, uint64_t seed);
/* A trial was finished, after `wall_ns`: of those who joined. Others note it themselves. */
FL_MUST_CHECK int fl_results_note_trial(struct fl_results *results, const char *point,
                                        uint64_t seed, uint64_t wall_ns, struct fl_err *err);
/* Write results.csv of all trials that are finished, in the order of points and seeds. */
FL_MUST_CHECK int fl_results_finish(struct fl_results *results, struct fl_err *err);
void fl_results_free(struct fl_results *results); /* NULL is allowed. */

/* How a trial ended. */
enum fl_trial_how { FL_TRIAL_DONE, FL_TRIAL_STOPPED, FL_TRIAL_DIVERGED };

/* "done", "stopped", "diverged" */
const char *fl_trial_how_text(enum fl_trial_how how);

struct fl_trial_end {
    enum fl_trial_how how;
    uint64_t round;     /* FL_TRIAL_DIVERGED: in which; else not looked at */
    const char *reason; /* why it diverged, or by which rule it stopped; may be NULL */
};

/*
 * Begin the trial of a point (by its slug) and a seed, both of the info, with empty files. *ret is
 * NULL when it is finished.
 */
FL_MUST_CHECK int fl_trial_begin(struct fl_results *results, const char *point, uint64_t seed,
                                 struct fl_trial **ret, struct fl_err *err);
/* The folder state/, which is there. Belongs to the trial. */
const char *fl_trial_state_dir(const struct fl_trial *trial);
/*
 * The next round. FL_ESTATE, and nothing is written: its number is not the next, its parts do not
 * sum up to wall_us, or time_us is not that of the round before plus wall_us.
 */
FL_MUST_CHECK int fl_trial_round(struct fl_trial *trial, const struct fl_round_rec *record,
                                 const struct fl_sim_round *sim, struct fl_err *err);
/* Nothing when they are not asked for. */
FL_MUST_CHECK int fl_trial_client(struct fl_trial *trial, const struct fl_sim_client_round *client,
                                  struct fl_err *err);
/* Write summary.json when all else is on the disk; the state goes unless it is to be kept. */
FL_MUST_CHECK int fl_trial_finish(struct fl_trial *trial, const struct fl_trial_end *end,
                                  struct fl_err *err);
void fl_trial_free(struct fl_trial *trial); /* NULL is allowed. */

#endif
