#ifndef FL_RESULTS_RESULTS_IMPL_H
#define FL_RESULTS_RESULTS_IMPL_H

/* Shared by results.c and trial_results.c. */

#include <pthread.h>

#include "tools/fl_sim/results/results.h"
#include "tools/fl_sim/results/trajectory.h"

#define FL_RESULTS_PATH 4096
/* Path of a folder, with room for the names of its files. */
#define FL_RESULTS_DIR (FL_RESULTS_PATH - 64)

struct fl_results {
    char dir[FL_RESULTS_DIR];
    const struct fl_run_info *info;
    int lock_fd;
    pthread_mutex_t mutex; /* contents of run.json */
    json_t *run_json;      /* lock file; NULL: this process joined */
};

/* Set the error of a file that could not be written, and its consequence. */
int fl_results_write_error(struct fl_err *err, int code, const char *path);
/* Replace a file by at most `max` bytes of JSON, synced. Borrows `json`. */
FL_MUST_CHECK int fl_results_write_json(const char *path, const json_t *json, size_t max,
                                        struct fl_err *err);
/* "POINT/seed-S" in the folder of the results. FL_ELIMIT. */
FL_MUST_CHECK int fl_results_trial_dir(const struct fl_results *results, const char *point,
                                       uint64_t seed, char out[FL_RESULTS_DIR], struct fl_err *err);

/* --- run_json.c --- */

/* The new contents for `info`; `old` (may be NULL, borrowed) are those of the previous run. */
FL_MUST_CHECK int fl_run_json_make(const struct fl_run_info *info, const json_t *old, json_t **ret,
                                   struct fl_err *err);
/* Read `dir`/run.json. FL_ENOENT: there is none; FL_EFORMAT: not a run.json of fl-sim. */
FL_MUST_CHECK int fl_run_json_read(const char *dir, json_t **ret, struct fl_err *err);
/* Replace it. */
FL_MUST_CHECK int fl_run_json_write(const char *dir, const json_t *run, struct fl_err *err);

/* --- results_summary.c --- */

struct fl_summary {
    const char *point, *label;
    uint64_t seed;
    uint64_t rounds;
    struct fl_row totals; /* of fl_figures_add() */
    struct fl_trajectory accuracy, personal;
};

/* Replace `path`, synced. */
FL_MUST_CHECK int fl_summary_write(const char *path, const struct fl_summary *summary,
                                   const struct fl_trial_end *end, struct fl_err *err);
/* Append the line of results.csv of a summary that was read; before the first one, the header. */
FL_MUST_CHECK int fl_summary_csv(struct fl_buf *out, const json_t *summary);

#endif
