#ifndef FL_RESULTS_RESULTS_H
#define FL_RESULTS_RESULTS_H

/*
 * The files of a run in its results folder:
 *
 *   run.json                    input to repeat the run, and all that is not reproducible
 *   POINT/seed-S/rounds.jsonl   a line per round (row.h), the same as rounds.csv
 *   POINT/seed-S/clients.jsonl  a line per client of an attempt, with --clients
 *   POINT/seed-S/summary.json   written last: its presence marks a finished trial
 *   POINT/seed-S/state/         private to the engine
 *   results.csv                 a line per finished trial
 *   report.html                 all of it for a browser (report.h)
 *
 * The files of a trial are bit-identical for the same experiment. The files of a trial without
 * summary.json are rewritten from its first round.
 *
 * Errors name the file and the reason. FL_ENOSPC: the disk is full; finished trials stay finished.
 *
 * Threading: fl_results_open(), fl_results_finish() and fl_results_free() by one thread, while no
 * trial is running; trials of one fl_results by several threads at once, each by one at a time.
 */

#include "tools/fl_sim/results/result_columns.h"

/* A point of a sweep. */
struct fl_run_point {
    const char *slug;  /* its folder: no '/', not beginning with a dot, shorter than FL_NAME_MAX */
    const char *label; /* for display */
};

struct fl_run_partition {
    const char *data; /* label of the data set */
    const char *hash;
};

/* All borrowed. NULL is allowed only where stated. */
struct fl_run_info {
    const char *name;        /* of the experiment */
    const char *fingerprint; /* equal fingerprints: the same experiment */
    const char *file;        /* path of the file */
    const char *text;        /* contents of the file */
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
     * The folder may have the fingerprint `extends` instead, which this experiment extends: then
     * extend() is called under its lock, before run.json gets the new fingerprint. May be NULL.
     */
    const char *extends;
    int (*extend)(void *ctx, struct fl_err *err);
    void *extend_ctx;
    bool clients;    /* write clients.jsonl (--clients) */
    bool keep_state; /* of finished trials */
};

struct fl_results;
struct fl_trial;

/* --- extension of a folder (past.c) --- */

struct fl_results_past;
/* Read the description of the experiment in `dir`. FL_ENOENT: there is none; FL_EFORMAT: not
   results of fl-sim; FL_ENOMEM. Owned: fl_results_past_free(). */
FL_MUST_CHECK int fl_results_past_read(const char *dir, struct fl_results_past **ret,
                                       struct fl_err *err);
void fl_results_past_free(struct fl_results_past *past); /* NULL is allowed. */
const char *fl_results_past_fingerprint(const struct fl_results_past *past);
/* The contents of its file, the file's name, and its --set changes; all borrowed. */
const char *fl_results_past_text(const struct fl_results_past *past, const char **ret_file,
                                 const char *const **ret_sets, size_t *ret_n_sets);
/*
 * Rename the folder of a point, and update the point in its summaries. A missing folder is not an
 * error: a run that was killed in between repeats the call.
 */
FL_MUST_CHECK int fl_results_rename_point(const char *dir, const char *from, const char *to,
                                          struct fl_err *err);
FL_MUST_CHECK int fl_results_rename_trial(const char *dir, const struct fl_run_point *point,
                                          uint64_t seed, struct fl_err *err);
/*
 * Reopen a trial that one of `rules` ended (NULL at their end; "rounds", or a reason of struct
 * fl_trial_end): *ret_reopened. A trial that another rule ended, or that diverged, stays finished.
 * *ret_kept: its state exists, so it continues.
 */
FL_MUST_CHECK int fl_results_reopen_trial(const char *dir, const char *point, uint64_t seed,
                                          const char *const *rules, bool *ret_reopened,
                                          bool *ret_kept, struct fl_err *err);

/* --- what made a folder (past_build.c) --- */

struct fl_run_build {
    char before[80]; /* commit of the newest run in the folder; "": there was none, or unknown */
    const char *now; /* of this program */
    bool differs;    /* by commit, or by the kernels of `info` */
};
/* Which build made `dir`; a missing folder or run.json is none. FL_EFORMAT: not results. */
FL_MUST_CHECK int fl_results_find_build(const char *dir, const struct fl_run_info *info,
                                        struct fl_run_build *ret, struct fl_err *err);
/* The path of the rounds of a point (by its label) and a seed in `dir`. FL_ENOENT: no round. */
FL_MUST_CHECK int fl_results_find_rounds(const char *dir, const char *label, uint64_t seed,
                                         char *out, size_t size, struct fl_err *err);
/*
 * Compare the rounds that both files of rounds have, and of each the figures that both have.
 * FL_EEXIST: one differs; `err` names round, figure and both values.
 */
FL_MUST_CHECK int fl_results_same_rounds(const char *path, const char *again, struct fl_err *err);

/* --- a run --- */

/*
 * Create `dir` or continue in it, and lock it. `info` is borrowed until fl_results_free().
 * FL_EEXIST: it has another experiment (both are named), or other files; nothing is changed.
 * FL_EINUSE: another process, which is named, uses it. FL_EINVAL: an invalid or duplicate slug.
 */
FL_MUST_CHECK int fl_results_open(const char *dir, const struct fl_run_info *info,
                                  struct fl_results **ret, struct fl_err *err);
/*
 * Would fl_results_open() refuse `dir`? Creates nothing; only the name and the fingerprint of
 * `info` are used. FL_EEXIST as there.
 */
FL_MUST_CHECK int fl_results_check(const char *dir, const struct fl_run_info *info,
                                   struct fl_err *err);
/*
 * Join a folder that another process has open, on this machine or on another that shares the file
 * system: writes only the files of trials.
 */
FL_MUST_CHECK int fl_results_join(const char *dir, const struct fl_run_info *info,
                                  struct fl_results **ret, struct fl_err *err);
/* Whether the trial of a point (by its slug) and a seed is finished. */
bool fl_results_finished(const struct fl_results *results, const char *point, uint64_t seed);
/* Note that a process that joined has finished a trial, after `wall_ns`. Trials of this process are
   noted by themselves. */
FL_MUST_CHECK int fl_results_note_trial(struct fl_results *results, const char *point,
                                        uint64_t seed, uint64_t wall_ns, struct fl_err *err);
/* Write results.csv of all finished trials, in the order of points and seeds. */
FL_MUST_CHECK int fl_results_finish(struct fl_results *results, struct fl_err *err);
void fl_results_free(struct fl_results *results); /* NULL is allowed. */

/* Outcome of a trial. */
enum fl_trial_how { FL_TRIAL_DONE, FL_TRIAL_STOPPED, FL_TRIAL_DIVERGED };

/* "done", "stopped", "diverged" */
const char *fl_trial_how_text(enum fl_trial_how how);

struct fl_trial_end {
    enum fl_trial_how how;
    uint64_t round;     /* FL_TRIAL_DIVERGED: the round; else ignored */
    const char *reason; /* reason of the divergence, or the stop rule; may be NULL */
};

/*
 * Begin the trial of a point (by its slug) and a seed, both of the info, with empty files. *ret is
 * NULL when the trial is finished.
 */
FL_MUST_CHECK int fl_trial_begin(struct fl_results *results, const char *point, uint64_t seed,
                                 struct fl_trial **ret, struct fl_err *err);
/* The existing folder state/. Belongs to the trial. */
const char *fl_trial_state_dir(const struct fl_trial *trial);
/*
 * Write the next round. FL_ESTATE, and nothing is written: its number is not the next, its phases
 * do not sum up to wall_us, or time_us is not that of the previous round plus wall_us.
 */
FL_MUST_CHECK int fl_trial_round(struct fl_trial *trial, const struct fl_round_rec *record,
                                 const struct fl_sim_round *sim, struct fl_err *err);
/* No-op unless clients.jsonl is written. */
FL_MUST_CHECK int fl_trial_client(struct fl_trial *trial, const struct fl_sim_client_round *client,
                                  struct fl_err *err);
/* Write summary.json after all other files are synced; removes the state unless it is to be
   kept. */
FL_MUST_CHECK int fl_trial_finish(struct fl_trial *trial, const struct fl_trial_end *end,
                                  struct fl_err *err);
void fl_trial_free(struct fl_trial *trial); /* NULL is allowed. */

#endif
