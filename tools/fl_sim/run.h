#ifndef FL_SIM_RUN_H
#define FL_SIM_RUN_H

/*
 * Shared by the files of `fl-sim run`: run.c opens the experiment, run_check.c checks all of its
 * points, run_trials.c runs all trials, run_trial.c one of them, run_local.c one
 * with daemons, progress.c prints the progress.
 */

#include <stdatomic.h>

#define JOBS_MAX 1024
/* Rounds that are run again to see whether they are the same. */
#define RUN_REPLAY_ROUNDS 3

#include "client/train/trainer.h"
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
    size_t local;         /* daemons of clients in place of a simulation; 0: it is simulated */
    uint64_t most_rounds; /* a trial ends after so many rounds; 0: by its stop rules */
    unsigned threads;     /* of one trial */
    const struct fl_kernels *kernels;
};

/* What a server at log level debug would log, into server.log of the state that is kept. Must not
   move in memory while it is open. */
struct trial_log {
    int fd;
    struct fl_log log;
};
FL_MUST_CHECK int trial_log_open(const char *state_dir, struct trial_log *ret, struct fl_err *err);
void trial_log_close(struct trial_log *log);

/* All inputs of a point and a trial's seed that can be wrong before it runs: its data, and its
   network and device model. */
struct setting {
    struct fl_experiment_point *point;
    struct fl_sim_data_conf *data_conf;
    const struct fl_sim_data *data;
    struct fl_world *world;         /* NULL: no network delays */
    bool *attackers;                /* [clients]; owned; NULL: the point has no such section */
    char **environment;             /* of the program; owned */
    struct fl_command_conf program; /* argv NULL: the built-in engine trains */
    size_t n_attackers;
};
FL_MUST_CHECK int setting_open(const struct run *run, size_t point, size_t trial,
                               struct setting *ret, struct fl_err *err);
void setting_close(struct setting *setting);
/* A program of the user trains, evaluates or aggregates. */
bool setting_has_program(const struct setting *setting);
/* FL_ECONF: the model does not fit the data, or the clients' settings exclude what the algorithm
   needs. */
FL_MUST_CHECK int setting_check(const struct setting *setting, struct fl_err *err);
/*
 * The initial model from server.model.file; NULL: none was given, and it is drawn. The caller frees
 * it.
 */
FL_MUST_CHECK int setting_model(const struct setting *setting, float **ret, struct fl_err *err);
/* Bytes of memory to run it on `threads` threads, without the samples. */
FL_MUST_CHECK int setting_memory(const struct setting *setting, unsigned threads, uint64_t *ret,
                                 struct fl_err *err);

/* Runs all trials of this run, `jobs` at once. FL_ECANCELED: interrupted. */
FL_MUST_CHECK int trials_run(struct run *run, unsigned at_once, struct fl_err *err);
struct ranks;
/* The same on all MPI ranks (mpi_ranks.h); each of them calls it. */
FL_MUST_CHECK int trials_spread(struct run *run, const struct ranks *ranks, struct fl_err *err);
/* Trial `i` of all: all points of one seed first, so that pairs are finished early. */
FL_MUST_CHECK int trials_one(const struct run *run, size_t i, const struct fl_ranks *ranks,
                             struct fl_err *err);

/* FL_ECANCELED: interrupted, and not finished. `team`: this process leads ranks that share the
   clients' work; NULL: it does all of the work. */
FL_MUST_CHECK int trial_run(const struct run *run, size_t point, size_t trial,
                            const struct fl_ranks *ranks, struct fl_err *err);
/* Do clients' work of that trial until its leader ends it. */
FL_MUST_CHECK int trial_serve(const struct run *run, size_t point, size_t trial,
                              const struct fl_ranks *ranks, struct fl_err *err);

/* Who is shown the rounds of a trial with daemons; as in struct fl_fed_watch. */
struct run_watch {
    bool (*committed)(void *ctx, const struct fl_round_rec *record, const struct fl_sim_round *sim);
    void *ctx;
};
/*
 * The trial of `setting` with run->local clients, in `dir`, until all rounds are committed,
 * `watch` ends it or a signal does (FL_ECANCELED). FL_ENOENT: a program of this project is missing;
 * FL_EIO: a daemon ended, with the end of its log.
 */
FL_MUST_CHECK int run_local(const struct run *run, const struct setting *setting, const char *dir,
                            const struct run_watch *watch, struct fl_err *err);

/*
 * Check that this build goes on with the results in `dir` as it would have made them, by running
 * rounds of one of its trials again. FL_EEXIST: it computes others; nothing is changed.
 */
FL_MUST_CHECK int run_replay(const struct run *run, const struct fl_run_info *info, const char *dir,
                             struct fl_err *err);

/*
 * Run the first rounds of the first trial of a point, which is in `dir`, once more. FL_EEXIST: they
 * are not the same; `err` says which figure differs, and what follows.
 */
FL_MUST_CHECK int run_repeat(const struct run *run, const struct fl_run_info *info, const char *dir,
                             size_t point, uint64_t rounds, struct fl_err *err);

/* Write report.html of the results in `dir` (run_report.c). */
FL_MUST_CHECK int run_report(const struct fl_experiment *experiment, const char *dir,
                             struct fl_err *err);

/* progress.c: lines, or one line, while there is a terminal. Any thread. */
FL_MUST_CHECK int progress_new(size_t trials, bool quiet, struct progress **ret);
void progress_free(struct progress *progress);
struct progress_at {
    const char *label;
    uint64_t seed;
    uint64_t round, rounds; /* rounds 0: not known */
    double accuracy;        /* negative: not measured */
    uint64_t bytes_up, time_us;
    const struct fl_round_rec *record; /* of the round */
};
void progress_round(struct progress *progress, const struct progress_at *at);
/* A trial has ended, or needed no run. */
void progress_trial(struct progress *progress, const char *label, uint64_t seed);
/* Clears the lines, so that other output can be printed. */
void progress_clear(struct progress *progress);
/* Prints a line unless the run is quiet. */
void progress_note(struct progress *progress, const char *text);

#endif
