#ifndef FL_RESULTS_RESULTS_IMPL_H
#define FL_RESULTS_RESULTS_IMPL_H

/* What the writer of a folder and the writers of its trials share. */

#include <pthread.h>

#include "tools/fl_sim/results/results.h"
#include "tools/fl_sim/results/trajectory.h"

#define FL_RESULTS_PATH 4096
/* A folder, with room for the names of the files in it. */
#define FL_RESULTS_DIR (FL_RESULTS_PATH - 64)

struct fl_results {
    char dir[FL_RESULTS_DIR];
    const struct fl_run_info *info;
    int lock_fd;
    pthread_mutex_t mutex; /* run_json */
    json_t *run_json;      /* NULL: it joined */
};

/* The text "what: …" of a file that could not be written; says what becomes of the rest. */
int fl_results_write_error(struct fl_err *err, int code, const char *path);
/* "POINT/seed-S" in the folder of the results. FL_ELIMIT. */
FL_MUST_CHECK int fl_results_trial_dir(const struct fl_results *results, const char *point,
                                       uint64_t seed, char out[FL_RESULTS_DIR], struct fl_err *err);
/* A folder with all that is in it; none is fine. */
FL_MUST_CHECK int fl_results_remove_folder(const char *path, struct fl_err *err);

/* --- run_json.c --- */

/* The file of `info` as of now; `old` (may be NULL, borrowed) is what a run before left. */
FL_MUST_CHECK int fl_run_json_make(const struct fl_run_info *info, const json_t *old, json_t **ret,
                                   struct fl_err *err);
/* What `dir`/run.json holds. FL_ENOENT: there is none; FL_EFORMAT: it is none of ours. */
FL_MUST_CHECK int fl_run_json_read(const char *dir, json_t **ret, struct fl_err *err);
/* Replace it. */
FL_MUST_CHECK int fl_run_json_write(const char *dir, const json_t *run, struct fl_err *err);

/* --- summary.c --- */

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
/* The lines of results.csv: of a summary as it was read, and the names of its columns. */
FL_MUST_CHECK int fl_summary_csv(struct fl_buf *out, const json_t *summary, bool head);

#endif
