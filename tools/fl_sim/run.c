/*
 * fl-sim run: runs an experiment, all points with all seeds. Opens experiment, data cache and
 * results folder, checks everything before the first trial, and starts the trials (run_trials.c).
 * Main thread; SIGINT and SIGTERM set a flag that trials poll. It does not run a trial itself
 * (run_trial.c).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/num/gemm.h"
#include "tools/fl_sim/extend.h"
#include "tools/fl_sim/fl_sim.h"
#include "tools/fl_sim/mpi_ranks.h"
#include "tools/fl_sim/run.h"
#include "tools/fl_sim/run_check.h"
#include "tools/fl_sim/run_options.h"

#define FILE_MAX ((size_t)16 << 20)

atomic_bool run_interrupted;

/* --- interruptions --- */

static void run_on_signal(int number)
{
    (void)number;
    atomic_store(&run_interrupted, true);
}

/* --- the command --- */

struct job {
    struct extend *extend; /* NULL: the folder is new, or holds the same experiment */
    struct run_options o;
    const struct ranks *ranks; /* NULL: a single process */
    struct run run;
    struct fl_run_info info; /* of run.results */
    struct fl_experiment *experiment;
    struct run_check check;
    struct fl_run_point *points;
    uint64_t *seeds;
    char base[4096], out[4096], fingerprint[FL_CHECKSUM_TEXT];
    struct fl_buf text;
    unsigned at_once;
    bool repeats; /* the trial of a program that is run again at the end is not finished yet */
};

/* Other MPI ranks accept the leader's checks and write only the files of their trials. */
static bool run_is_leader(const struct job *j)
{
    return j->ranks == NULL || j->ranks->me == 0;
}

static int run_list_points(struct job *j)
{
    size_t n = fl_experiment_points(j->experiment);
    size_t i;

    j->points = calloc(n + 1, sizeof(*j->points));
    j->seeds = calloc(fl_experiment_trials(j->experiment) + 1, sizeof(*j->seeds));
    if (j->points == NULL || j->seeds == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        j->points[i] = (struct fl_run_point){fl_experiment_slug(j->experiment, i),
                                             fl_experiment_label(j->experiment, i)};
    }
    for (i = 0; i < fl_experiment_trials(j->experiment); i++) {
        j->seeds[i] = fl_experiment_seed(j->experiment, i);
    }
    return FL_OK;
}

static uint64_t run_kind(const struct job *j)
{
    return j->o.local > 0 ? EXTEND_LOCAL + j->o.local : j->o.dry ? EXTEND_DRY : EXTEND_TRAINED;
}

/* The folder is made before data is cached in it. */
static int run_check_out(struct job *j, struct fl_err *err)
{
    char fingerprint[FL_CHECKSUM_TEXT];
    struct fl_run_info info = {.name = fl_experiment_name(j->experiment),
                               .fingerprint =
                                   extend_fingerprint(j->experiment, run_kind(j), fingerprint)};
    int rv = extend_plan(j->out, j->experiment, run_kind(j), &j->extend, err);

    if (rv != FL_OK) {
        return rv;
    }
    info.extends = j->extend != NULL ? extend_from(j->extend) : NULL;
    return fl_results_check(j->out, &info, err);
}

static int run_open_results(struct job *j, int argc, char **argv, struct fl_err *err)
{
    int rv = run_list_points(j);

    if (rv != FL_OK) {
        return rv;
    }
    j->info = (struct fl_run_info){
        .name = fl_experiment_name(j->experiment),
        .fingerprint = extend_fingerprint(j->experiment, run_kind(j), j->fingerprint),
        .extends = j->extend != NULL ? extend_from(j->extend) : NULL,
        .extend = extend_apply,
        .extend_ctx = j->extend,
        .file = j->o.file,
        .sets = j->o.sets,
        .n_sets = j->o.n_sets,
        .points = j->points,
        .n_points = fl_experiment_points(j->experiment),
        .seeds = j->seeds,
        .n_seeds = fl_experiment_trials(j->experiment),
        .partitions = j->check.partitions,
        .n_partitions = j->check.n_partitions,
        .kernels = fl_kernels_name(j->o.kernels),
        .blas_kernel = fl_gemm_kernel(),
        .command = (const char *const *)argv,
        .n_command = (size_t)argc,
        .clients = j->o.clients,
        .keep_state = j->o.keep_state};
    if (!run_is_leader(j)) {
        return fl_results_join(j->out, &j->info, &j->run.results, err);
    }
    rv = fl_fs_read(j->o.file, FILE_MAX, &j->text, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_buf_add(&j->text, "", 1);
    if (rv != FL_OK) {
        return rv;
    }
    j->info.text = (const char *)j->text.data;
    if (j->o.local == 0) {
        rv = run_replay(&j->run, &j->info, j->out, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl_results_open(j->out, &j->info, &j->run.results, err);
}

/* Writes, beside the trials of a point, a file that runs this point alone. */
static int run_write_point(const struct job *j, size_t i, struct fl_err *err)
{
    char dir[4400];
    char path[4500];
    struct fl_buf text;
    int rv;

    fl_buf_init(&text, SIZE_MAX / 2);
    (void)snprintf(dir, sizeof(dir), "%s/%s", j->out, fl_experiment_slug(j->experiment, i));
    (void)snprintf(path, sizeof(path), "%s/experiment.yaml", dir);
    rv = fl_experiment_text(j->experiment, i, &text);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_mkdirs(dir, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_replace(path, text.data, text.len, /* sync= */ false, err);
done:
    fl_buf_done(&text);
    return rv;
}

static int run_open_data(struct job *j, struct fl_err *err)
{
    char keep[4200];

    (void)snprintf(keep, sizeof(keep), "%s/data", j->out);
    return fl_sim_data_cache_new(keep, &j->run.data, err);
}

/* Warns in one line of keys of the daemons that have no effect in a simulation. */
static int run_warn_keys(const struct job *j, struct fl_err *err)
{
    struct fl_experiment_point *point = NULL;
    struct fl_buf keys;
    int rv = fl_experiment_open(j->experiment, 0, 0, &point, err);

    fl_buf_init(&keys, FILE_MAX);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_experiment_without_effect(point, j->o.keep_state, &keys);
    if (rv != FL_OK) {
        goto done;
    }
    if (keys.len > 0) {
        (void)fprintf(stderr, "fl-sim run: warning: without effect in a simulation: %.*s\n",
                      (int)keys.len, (const char *)keys.data);
    }
done:
    fl_buf_done(&keys);
    fl_experiment_close(point);
    return rv;
}

static int run_prepare(struct job *j, struct fl_err *err)
{
    const char *slash;
    int n;
    int m;
    size_t trials;
    long cores;
    uint64_t jobs;
    int rv = fl_experiment_load(j->o.file, j->o.sets, j->o.n_sets, &j->experiment, err);

    if (rv != FL_OK) {
        return rv;
    }
    j->run.experiment = j->experiment;
    j->run.base = j->base;
    j->run.dry = j->o.dry;
    j->run.keep_state = j->o.keep_state;
    j->run.local = (size_t)j->o.local;
    j->run.kernels = j->o.kernels;
    j->check.run = &j->run;
    trials = fl_experiment_points(j->experiment) * fl_experiment_trials(j->experiment);
    cores = j->ranks != NULL ? (long)j->ranks->threads : sysconf(_SC_NPROCESSORS_ONLN);
    jobs = j->o.jobs != 0 ? j->o.jobs : cores > 0 ? (uint64_t)cores : 1;
    jobs = j->o.local > 0 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
    if (j->ranks != NULL) { /* A process of an MPI run has one trial at a time. */
        trials = 1;
    }
    j->at_once = (unsigned)(trials < jobs ? trials : jobs);
    j->run.threads = (unsigned)(jobs / j->at_once);
    slash = strrchr(j->o.file, '/');
    n = slash != NULL ? snprintf(j->base, sizeof(j->base), "%.*s",
                                 (int)(slash - j->o.file > 0 ? slash - j->o.file : 1), j->o.file)
                      : snprintf(j->base, sizeof(j->base), ".");
    m = j->o.out != NULL
            ? snprintf(j->out, sizeof(j->out), "%s", j->o.out)
            : snprintf(j->out, sizeof(j->out), "%s.%s", fl_experiment_name(j->experiment),
                       j->o.local > 0 ? "local" : "results");
    rv = n < 0 || (size_t)n >= sizeof(j->base) || m < 0 || (size_t)m >= sizeof(j->out)
             ? fl_err_set(err, FL_ELIMIT, "path '%s' is too long", j->o.file)
             : FL_OK;
    if (rv != FL_OK) {
        return rv;
    }
    if (!run_is_leader(j)) {
        return run_open_data(j, err);
    }
    rv = run_check_out(j, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = run_open_data(j, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = run_check_all(&j->check, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (j->o.local > 0) {
        return FL_OK;
    }
    rv = run_warn_keys(j, err);
    if (rv != FL_OK || j->o.force) {
        return rv;
    }
    return run_check_memory(&j->check, j->ranks != NULL ? j->ranks->local : 1, j->at_once, err);
}

/* A program of the user need not be deterministic: say so where results are made. */
static void run_repeat_program(const struct job *j)
{
    struct fl_err err = {0};
    int rv;

    if (!j->repeats || atomic_load(&run_interrupted)) {
        return;
    }
    progress_note(j->run.progress, "running the first rounds again, to compare them (--repeat)");
    rv = run_repeat(&j->run, &j->info, j->out, j->check.program, j->o.repeat, &err);
    progress_clear(j->run.progress);
    if (rv == FL_EEXIST) {
        (void)fprintf(stderr, "fl-sim run: warning: %s\n", err.msg);
    } else if (rv != FL_OK && rv != FL_ECANCELED) {
        (void)fprintf(stderr,
                      "fl-sim run: warning: the first rounds could not be run again, so that "
                      "whether the program is deterministic is not known: %s\n",
                      fl_err_text(&err, rv));
    }
}

static int run_with_folder(struct job *j, struct fl_err *err)
{
    struct sigaction action = {.sa_handler = run_on_signal, .sa_flags = SA_RESETHAND};
    int late;
    int rv = progress_new(fl_experiment_points(j->experiment) * fl_experiment_trials(j->experiment),
                          j->o.quiet || !run_is_leader(j), &j->run.progress);

    if (rv != FL_OK) {
        return rv;
    }
    /* SA_RESETHAND: a second signal ends the process at once. */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    rv = j->ranks != NULL ? trials_spread(&j->run, j->ranks, err)
                          : trials_run(&j->run, j->at_once, err);
    progress_clear(j->run.progress);
    if (!run_is_leader(j)) {
        return rv;
    }
    if (rv != FL_OK) { /* The finished trials are listed also after an error, which is kept. */
        err = NULL;
    }
    late = fl_results_finish(j->run.results, err);
    if (rv == FL_OK) {
        rv = late;
    }
    late = run_report(j->experiment, j->out, rv == FL_OK ? err : NULL);
    if (rv == FL_OK) {
        rv = late;
    }
    if (rv != FL_OK) {
        return rv;
    }
    run_repeat_program(j);
    return FL_OK;
}

static bool run_will_repeat(const struct job *j)
{
    char path[sizeof(j->out) + 400];

    if (j->o.repeat == 0 || j->o.local > 0 || j->o.dry || j->ranks != NULL ||
        j->check.program == SIZE_MAX)
    {
        return false;
    }
    (void)snprintf(path, sizeof(path), "%s/%s/seed-%llu/summary.json", j->out,
                   fl_experiment_slug(j->experiment, j->check.program),
                   (unsigned long long)fl_experiment_seed(j->experiment, 0));
    return !fl_fs_exists(path);
}

static int run_open_all(struct job *j, int argc, char **argv, struct fl_err *err)
{
    size_t i;
    int rv = run_prepare(j, err);

    if (rv != FL_OK) {
        return rv;
    }
    j->repeats = run_will_repeat(j);
    rv = run_open_results(j, argc, argv, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; run_is_leader(j) && i < fl_experiment_points(j->experiment); i++) {
        rv = run_write_point(j, i, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int run_print_end(const struct job *j, int rv, const struct fl_err *err)
{
    if (rv == FL_ECANCELED) {
        if (run_is_leader(j)) {
            (void)fprintf(stderr,
                          "fl-sim run: interrupted; run the same command again to continue\n");
        }
        return EXIT_INTERRUPTED;
    }
    if (rv != FL_OK) {
        return run_is_leader(j) ? command_end("run", rv, err) : EXIT_FAILURE;
    }
    if (run_is_leader(j)) {
        (void)printf("%zu trials in %s\n", j->check.cap, j->out);
    }
    return EXIT_SUCCESS;
}

int cmd_run(int argc, char **argv)
{
    struct job *j = calloc(1, sizeof(*j));
    struct fl_err err = {0};
    int status;
    int rv;
    int leaders;

    if (j == NULL) {
        (void)fputs("fl-sim run: out of memory\n", stderr);
        return EXIT_FAILURE;
    }
    fl_buf_init(&j->text, SIZE_MAX / 2);
    status = run_options_parse(&j->o, argc, argv);
    if (status != 0) {
        free(j);
        return status;
    }
    rv = fl_gemm_init(&err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = mpi_ranks_begin(argc, argv, j->o.kernels, &j->ranks, &err);
    if (rv != FL_OK) {
        goto done;
    }
    /* Other ranks wait for the leader, so that an error is found and reported once. */
    rv = run_is_leader(j) ? run_open_all(j, argc, argv, &err) : FL_OK;
    leaders = rv;
    if (j->ranks != NULL) {
        j->ranks->share(&leaders, sizeof(leaders));
    }
    if (leaders != FL_OK) {
        rv = leaders;
        goto done;
    }
    if (!run_is_leader(j)) {
        rv = run_open_all(j, argc, argv, &err);
        if (rv != FL_OK) {
            j->ranks->fail(rv, &err);
        }
    }
    rv = run_with_folder(j, &err);
done:
    status = run_print_end(j, rv, &err);
    if (j->ranks != NULL) {
        j->ranks->end();
    }
    progress_free(j->run.progress);
    fl_results_free(j->run.results);
    extend_free(j->extend);
    fl_sim_data_cache_free(j->run.data);
    fl_experiment_free(j->experiment);
    fl_buf_done(&j->text);
    free(j->points);
    free(j->seeds);
    run_check_done(&j->check);
    free(j);
    return status;
}
