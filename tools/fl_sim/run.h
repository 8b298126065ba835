#ifndef FL_SIM_RUN_H
#define FL_SIM_RUN_H

/*
 * What the commands that run an experiment share: run.c reads it, run_check.c looks at all of its
 * points, trials.c runs all trials, trial.c one of them, progress.c tells a person how far all of
 * them are.
 */

#include <stdatomic.h>

#define JOBS_MAX 1024

#include "tools/fl_sim/data/sim_data.h"
#include "tools/fl_sim/engine/ranks.h"
#include "tools/fl_sim/experiment/experiment.h"
#include "tools/fl_sim/results/results.h"
#include "tools/fl_sim/world/world.h"

struct progress;

/* Set by SIGINT and SIGTERM: trials end after their round, unfinished. */
extern atomic_bool run_interrupted;

struct run {
    const struct fl_experiment *experiment;
    const char *base; /* folder of the experiment's file */
    struct fl_sim_data_cache *data;
    struct fl_results *results;
    struct progress *progress;
    bool dry; /* --no-training */
    bool keep_state;
    unsigned threads; /* of one trial */
    const struct fl_kernels *kernels;
};

/* What a server at level debug would log, in server.log of the state that is kept. Not to be moved
   while it is open. */
struct trial_log {
    int fd;
    struct fl_log log;
};
FL_MUST_CHECK int trial_log_open(const char *state_dir, struct trial_log *ret, struct fl_err *err);
void trial_log_close(struct trial_log *log);

/* Everything of a point and a trial's seed that can be wrong before it runs: its data and world. */
struct setting {
    struct fl_experiment_point *point;
    struct fl_sim_data_conf *data_conf;
    const struct fl_sim_data *data;
    struct fl_world *world; /* NULL: nothing between server and clients */
};
FL_MUST_CHECK int setting_open(const struct run *run, size_t point, size_t trial,
                               struct setting *ret, struct fl_err *err);
void setting_close(struct setting *setting);
/* FL_ECONF: the model does not fit the data, or clients do not allow what the algorithm needs. */
FL_MUST_CHECK int setting_check(const struct setting *setting, struct fl_err *err);
/*
 * The first model of server.model.file; NULL: there is none, and it is drawn. The caller frees it.
 */
FL_MUST_CHECK int setting_model(const struct setting *setting, float **ret, struct fl_err *err);
/* Bytes that it takes to run it on `threads` threads, samples not included. */
FL_MUST_CHECK int setting_memory(const struct setting *setting, unsigned threads, uint64_t *ret,
                                 struct fl_err *err);

/* All trials of this run, so many at once. FL_ECANCELED: interrupted. */
FL_MUST_CHECK int trials_run(struct run *run, unsigned at_once, struct fl_err *err);
struct ranks;
/* The same by all processes of the fleet (mpi_ranks.h), each of which calls it. */
FL_MUST_CHECK int trials_spread(struct run *run, const struct ranks *ranks, struct fl_err *err);
/* Trial `i` of all: point by point of one seed, so that pairs are there early. */
FL_MUST_CHECK int trials_one(const struct run *run, size_t i, const struct fl_ranks *ranks,
                             struct fl_err *err);

/* FL_ECANCELED: interrupted, and not finished. `team`: others do clients' work too, and this is
   their leader; NULL: nobody does. */
FL_MUST_CHECK int trial_run(const struct run *run, size_t point, size_t trial,
                            const struct fl_ranks *ranks, struct fl_err *err);
/* Do clients' work of that trial until its leader has come to its end. */
FL_MUST_CHECK int trial_serve(const struct run *run, size_t point, size_t trial,
                              const struct fl_ranks *ranks, struct fl_err *err);

/* progress.c: one line on stderr while a person is looking. Any thread. */
FL_MUST_CHECK int progress_new(size_t trials, bool quiet, struct progress **ret);
void progress_free(struct progress *progress);
/* A trial is at `round` of `rounds` (0: not known). */
void progress_round(struct progress *progress, const char *label, uint64_t seed, uint64_t round,
                    uint64_t rounds, double accuracy, uint64_t bytes_up, uint64_t time_us);
void progress_trial(struct progress *progress);
/* The line is gone: something else is to be printed. */
void progress_clear(struct progress *progress);

#endif
