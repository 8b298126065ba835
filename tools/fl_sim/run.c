/* fl-sim run: an experiment, all points with all seeds. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/num/dense.h"
#include "tools/fl_sim/fl_sim.h"
#include "tools/fl_sim/fleet.h"
#include "tools/fl_sim/run.h"

#define SETS_MAX 256
#define FILE_MAX ((size_t)16 << 20)

atomic_bool run_interrupted;

struct options {
    const char *file, *out;
    const char *sets[SETS_MAX];
    size_t n_sets;
    uint64_t jobs; /* 0: as many as there are cores */
    bool clients, keep_state, dry, quiet, force;
};

static void print_help(void)
{
    (void)puts(
        "Usage: fl-sim run [OPTION]... EXPERIMENT.yaml\n\n"
        "Run all points of an experiment with all its seeds, each a whole federation in this\n"
        "process: what fl-serverd and fl-clientd do, in simulated time. Interrupted, even by\n"
        "kill -9, the same command goes on where it was, with the same results.\n\n"
        "  --out DIR        where results go; default: NAME.results beside the current folder's "
        "files\n"
        "  --jobs N         threads, under mpirun of each process; default: all cores. Results do "
        "not\n"
        "                   depend on it, nor on how many processes there are\n"
        "  --set KEY=VALUE  change a key of the file, as server.training.learning_rate=0.1; "
        "repeatable\n"
        "  --clients        a row for each client and round too (clients.jsonl)\n"
        "  --no-training    times and bytes only: nothing is computed, drawn where it matters\n"
        "  --keep-state     leave models, records and what clients keep, as daemons would\n"
        "  --force          run even where memory does not seem to suffice\n"
        "  --quiet          no progress line\n"
        "  --reference      print the keys of an experiment's file\n"
        "  -h, --help       print this\n\n"
        "docs/simulation.md says what the file holds and what the results mean.\n"
        "Exit status: 0 done, 1 it could not be done, 2 wrong usage, 3 interrupted.");
}

/* --- the command line --- */

enum {
    OPT_OUT = 256,
    OPT_JOBS,
    OPT_SET,
    OPT_CLIENTS,
    OPT_DRY,
    OPT_KEEP,
    OPT_FORCE,
    OPT_QUIET,
    OPT_REFERENCE
};

static int print_reference(void)
{
    struct fl_buf text;
    int rv;

    fl_buf_init(&text, SIZE_MAX / 2);
    rv = fl_experiment_reference(&text);
    if (rv == FL_OK) {
        (void)fwrite(text.data, 1, text.len, stdout);
    }
    fl_buf_done(&text);
    return rv == FL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int take_option(struct options *o, int opt)
{
    switch (opt) {
    case OPT_OUT:
        o->out = optarg;
        return FL_OK;
    case OPT_JOBS:
        if (fl_str_to_u64(optarg, &o->jobs) != FL_OK || o->jobs < 1 || o->jobs > JOBS_MAX) {
            (void)usage_error("run", "--jobs: expected 1 to %d, found '%s'", JOBS_MAX, optarg);
            return FL_EINVAL;
        }
        return FL_OK;
    case OPT_SET:
        if (o->n_sets == SETS_MAX) {
            (void)usage_error("run", "more than %d times --set", SETS_MAX);
            return FL_EINVAL;
        }
        o->sets[o->n_sets++] = optarg;
        return FL_OK;
    case OPT_CLIENTS:
        o->clients = true;
        return FL_OK;
    case OPT_DRY:
        o->dry = true;
        return FL_OK;
    case OPT_KEEP:
        o->keep_state = true;
        return FL_OK;
    case OPT_FORCE:
        o->force = true;
        return FL_OK;
    case OPT_QUIET:
        o->quiet = true;
        return FL_OK;
    default:
        (void)fputs("Try 'fl-sim run --help'.\n", stderr);
        return FL_EINVAL;
    }
}

/* False: the command ends here with *ret_status. */
static bool parse(struct options *o, int argc, char **argv, int *ret_status)
{
    static const struct option options[] = {{"out", required_argument, NULL, OPT_OUT},
                                            {"jobs", required_argument, NULL, OPT_JOBS},
                                            {"set", required_argument, NULL, OPT_SET},
                                            {"clients", no_argument, NULL, OPT_CLIENTS},
                                            {"no-training", no_argument, NULL, OPT_DRY},
                                            {"keep-state", no_argument, NULL, OPT_KEEP},
                                            {"force", no_argument, NULL, OPT_FORCE},
                                            {"quiet", no_argument, NULL, OPT_QUIET},
                                            {"reference", no_argument, NULL, OPT_REFERENCE},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int opt;

    while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (opt == 'h') {
            print_help();
            *ret_status = EXIT_SUCCESS;
            return false;
        }
        if (opt == OPT_REFERENCE) {
            *ret_status = print_reference();
            return false;
        }
        if (take_option(o, opt) != FL_OK) {
            *ret_status = EXIT_USAGE;
            return false;
        }
    }
    if (optind + 1 != argc) {
        *ret_status = usage_error("run", optind == argc ? "expected the file of an experiment"
                                                        : "expected one file, found more");
        return false;
    }
    o->file = argv[optind];
    return true;
}

/* --- what is checked before anything runs --- */

struct check {
    struct run *run;
    struct fl_run_partition *partitions;
    size_t n_partitions, cap;
    char (*hashes)[80];
    uint64_t data_bytes, most; /* of one trial */
};

static int add_partition(struct check *c, const char *label, const char *hash)
{
    size_t i;

    for (i = 0; i < c->n_partitions; i++) {
        if (strcmp(c->hashes[i], hash) == 0) {
            return FL_OK;
        }
    }
    if (c->n_partitions == c->cap) {
        return FL_OK; /* As many as were made room for: one a point and seed. */
    }
    (void)snprintf(c->hashes[i], sizeof(c->hashes[i]), "%s", hash);
    c->partitions[i] = (struct fl_run_partition){.data = label, .hash = c->hashes[i]};
    c->n_partitions++;
    return FL_OK;
}

static int check_one(struct check *c, size_t point, size_t trial, bool *ret_by_trial,
                     struct fl_err *err)
{
    struct setting s;
    uint64_t bytes = 0;
    int rv = setting_open(c->run, point, trial, &s, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret_by_trial = fl_sim_data_conf_by_trial(s.data_conf);
    rv = setting_memory(&s, c->run->threads, &bytes, err);
    c->most = bytes > c->most ? bytes : c->most;
    bytes = fl_sim_data_bytes(s.data);
    c->data_bytes = bytes > c->data_bytes ? bytes : c->data_bytes;
    rv = rv == FL_OK ? add_partition(c, fl_experiment_label(c->run->experiment, point),
                                     fl_sim_data_hash(s.data))
                     : rv;
    rv = rv == FL_OK ? setting_check(&s, err) : rv;
    setting_close(&s);
    return rv;
}

static int check_all(struct check *c, struct fl_err *err)
{
    const struct fl_experiment *e = c->run->experiment;
    size_t point;
    size_t trial;
    int rv = FL_OK;

    c->cap = fl_experiment_points(e) * fl_experiment_trials(e);
    c->partitions = calloc(c->cap + 1, sizeof(*c->partitions));
    c->hashes = calloc(c->cap + 1, sizeof(*c->hashes));
    if (c->partitions == NULL || c->hashes == NULL) {
        return FL_ENOMEM;
    }
    for (point = 0; rv == FL_OK && point < fl_experiment_points(e); point++) {
        bool by_trial = true;

        for (trial = 0; rv == FL_OK && by_trial && trial < fl_experiment_trials(e); trial++) {
            rv = check_one(c, point, trial, &by_trial, err);
        }
    }
    return rv;
}

/* --- interruptions --- */

static void on_signal(int number)
{
    (void)number;
    atomic_store(&run_interrupted, true);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};

    (void)sigaction(SIGINT, &action, NULL); /* A second one ends it at once. */
    (void)sigaction(SIGTERM, &action, NULL);
}

/* --- the command --- */

struct job {
    struct options o;
    const struct fleet *fleet; /* NULL: this process alone */
    struct run run;
    struct fl_run_info info; /* of run.results */
    struct fl_experiment *experiment;
    struct check check;
    struct fl_run_point *points;
    uint64_t *seeds;
    char base[4096], out[4096], text_name[32], fingerprint[FL_CHECKSUM_TEXT];
    struct fl_buf text;
    unsigned at_once;
};

/* The others do as the leader found, and write nothing that is not of their trials. */
static bool leads(const struct job *j)
{
    return j->fleet == NULL || j->fleet->me == 0;
}

static void share_threads(struct job *j)
{
    size_t trials = fl_experiment_points(j->experiment) * fl_experiment_trials(j->experiment);
    long cores = j->fleet != NULL ? (long)j->fleet->threads : sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t jobs = j->o.jobs != 0 ? j->o.jobs : cores > 0 ? (uint64_t)cores : 1;

    jobs = jobs > JOBS_MAX ? JOBS_MAX : jobs;
    if (j->fleet != NULL) { /* A process has one trial at a time. */
        trials = 1;
    }
    j->at_once = (unsigned)(trials < jobs ? trials : jobs);
    j->run.threads = (unsigned)(jobs / j->at_once);
}

static int list_points(struct job *j)
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

/* What is left out of the arithmetic, or out of the rows, makes other results. */
static const char *fingerprint_of(const struct job *j, char out[FL_CHECKSUM_TEXT])
{
    return fl_checksum_text(fl_experiment_fingerprint(j->experiment) ^
                                (j->o.dry ? UINT64_C(0x9e3779b97f4a7c15) : 0),
                            out);
}

/* Before data is kept in it. */
static int check_out(const struct job *j, struct fl_err *err)
{
    char fingerprint[FL_CHECKSUM_TEXT];
    const struct fl_run_info info = {.name = fl_experiment_name(j->experiment),
                                     .fingerprint = fingerprint_of(j, fingerprint)};

    return fl_results_check(j->out, &info, err);
}

static int open_results(struct job *j, int argc, char **argv, struct fl_err *err)
{
    int rv = list_points(j);

    j->info = (struct fl_run_info){.name = fl_experiment_name(j->experiment),
                                   .fingerprint = fingerprint_of(j, j->fingerprint),
                                   .file = j->o.file,
                                   .sets = j->o.sets,
                                   .n_sets = j->o.n_sets,
                                   .points = j->points,
                                   .n_points = fl_experiment_points(j->experiment),
                                   .seeds = j->seeds,
                                   .n_seeds = fl_experiment_trials(j->experiment),
                                   .partitions = j->check.partitions,
                                   .n_partitions = j->check.n_partitions,
                                   .blas_kernel = fl_dense_kernel(),
                                   .command = (const char *const *)argv,
                                   .n_command = (size_t)argc,
                                   .clients = j->o.clients,
                                   .keep_state = j->o.keep_state};
    if (rv == FL_OK && !leads(j)) {
        return fl_results_join(j->out, &j->info, &j->run.results, err);
    }
    rv = rv == FL_OK ? fl_fs_read(j->o.file, FILE_MAX, &j->text, err) : rv;
    rv = rv == FL_OK ? fl_buf_add(&j->text, "", 1) : rv;
    j->info.text = (const char *)j->text.data;
    return rv == FL_OK ? fl_results_open(j->out, &j->info, &j->run.results, err) : rv;
}

/* Beside the trials of a point: a file that runs it alone. */
static int write_points(struct job *j, struct fl_err *err)
{
    size_t n = fl_experiment_points(j->experiment);
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < n; i++) {
        char dir[4400];
        char path[4500];
        struct fl_buf text;

        fl_buf_init(&text, SIZE_MAX / 2);
        (void)snprintf(dir, sizeof(dir), "%s/%s", j->out, fl_experiment_slug(j->experiment, i));
        (void)snprintf(path, sizeof(path), "%s/experiment.yaml", dir);
        rv = fl_experiment_text(j->experiment, i, &text);
        rv = rv == FL_OK ? fl_fs_mkdirs(dir, err) : rv;
        rv = rv == FL_OK ? fl_fs_replace(path, text.data, text.len, /* sync= */ false, err) : rv;
        fl_buf_done(&text);
    }
    return rv;
}

static int name_folders(struct job *j, struct fl_err *err)
{
    const char *slash = strrchr(j->o.file, '/');
    int n = slash != NULL
                ? snprintf(j->base, sizeof(j->base), "%.*s",
                           (int)(slash - j->o.file > 0 ? slash - j->o.file : 1), j->o.file)
                : snprintf(j->base, sizeof(j->base), ".");
    int m = j->o.out != NULL
                ? snprintf(j->out, sizeof(j->out), "%s", j->o.out)
                : snprintf(j->out, sizeof(j->out), "%s.results", fl_experiment_name(j->experiment));

    return n < 0 || (size_t)n >= sizeof(j->base) || m < 0 || (size_t)m >= sizeof(j->out)
               ? fl_err_set(err, FL_ELIMIT, "path '%s' is too long", j->o.file)
               : FL_OK;
}

static int open_data(struct job *j, struct fl_err *err)
{
    char keep[4200];

    (void)snprintf(keep, sizeof(keep), "%s/data", j->out);
    return fl_sim_data_cache_new(keep, &j->run.data, err);
}

/* What can be had without swapping; caches of files make room. */
static uint64_t memory_free(void)
{
    struct fl_buf text = {0};
    uint64_t kib = UINT64_MAX / 1024;
    const char *line = NULL;
    char *end;

    if (fl_fs_read("/proc/meminfo", 65536, &text, NULL) == FL_OK &&
        fl_buf_add(&text, "", 1) == FL_OK) {
        line = strstr((const char *)text.data, "MemAvailable:");
    }
    if (line != NULL) {
        kib = strtoull(line + strlen("MemAvailable:"), &end, 10);
    }
    fl_buf_done(&text);
    return kib * 1024;
}

static int check_memory(const struct job *j, struct fl_err *err)
{
    uint64_t here = j->fleet != NULL ? j->fleet->local : 1;
    uint64_t needs = here * (j->check.data_bytes + j->check.most * j->at_once);
    uint64_t has = memory_free();
    char needs_text[32];
    char has_text[32];

    if (needs <= has) {
        return FL_OK;
    }
    return fl_err_set(err, FL_ENOMEM,
                      "this experiment needs about %s of memory, %s are free: fewer --jobs, fewer "
                      "clients a round, or --force to try",
                      fl_str_bytes(needs_text, sizeof(needs_text), needs),
                      fl_str_bytes(has_text, sizeof(has_text), has));
}

static int prepare(struct job *j, struct fl_err *err)
{
    int rv = fl_experiment_load(j->o.file, j->o.sets, j->o.n_sets, &j->experiment, err);

    if (rv != FL_OK) {
        return rv;
    }
    j->run.experiment = j->experiment;
    j->run.base = j->base;
    j->run.dry = j->o.dry;
    j->run.keep_state = j->o.keep_state;
    j->check.run = &j->run;
    share_threads(j);
    rv = name_folders(j, err);
    if (!leads(j)) {
        return rv == FL_OK ? open_data(j, err) : rv;
    }
    rv = rv == FL_OK ? check_out(j, err) : rv;
    rv = rv == FL_OK ? open_data(j, err) : rv;
    rv = rv == FL_OK ? check_all(&j->check, err) : rv;
    return rv == FL_OK && !j->o.force ? check_memory(j, err) : rv;
}

static int run_opened(struct job *j, struct fl_err *err)
{
    int end;
    int rv = progress_new(fl_experiment_points(j->experiment) * fl_experiment_trials(j->experiment),
                          j->o.quiet || !leads(j), &j->run.progress);

    if (rv != FL_OK) {
        return rv;
    }
    catch_signals();
    rv = j->fleet != NULL ? trials_spread(&j->run, j->fleet, err)
                          : trials_run(&j->run, j->at_once, err);
    progress_clear(j->run.progress);
    if (!leads(j)) {
        return rv;
    }
    end = fl_results_finish(j->run.results, rv == FL_OK ? err : NULL);
    return rv != FL_OK ? rv : end;
}

static int open_all(struct job *j, int argc, char **argv, struct fl_err *err)
{
    int rv = prepare(j, err);

    rv = rv == FL_OK ? open_results(j, argc, argv, err) : rv;
    return rv == FL_OK && leads(j) ? write_points(j, err) : rv;
}

/* The others wait for the leader: what is wrong is found and said once. */
static int run_job(struct job *j, int argc, char **argv, struct fl_err *err)
{
    int rv = leads(j) ? open_all(j, argc, argv, err) : FL_OK;
    int leaders = rv;

    if (j->fleet != NULL) {
        j->fleet->share(&leaders, sizeof(leaders));
        if (leaders == FL_OK && !leads(j)) {
            rv = open_all(j, argc, argv, err);
            if (rv != FL_OK) {
                j->fleet->fail(rv, err);
            }
        }
    }
    return leaders == FL_OK ? run_opened(j, err) : leaders;
}

static void close_job(struct job *j)
{
    progress_free(j->run.progress);
    fl_results_free(j->run.results);
    fl_sim_data_cache_free(j->run.data);
    fl_experiment_free(j->experiment);
    fl_buf_done(&j->text);
    free(j->points);
    free(j->seeds);
    free(j->check.partitions);
    free(j->check.hashes);
}

static int say_end(const struct job *j, int rv, const struct fl_err *err)
{
    int status = rv == FL_OK ? EXIT_SUCCESS : rv == FL_ECANCELED ? EXIT_INTERRUPTED : EXIT_FAILURE;

    if (!leads(j)) {
        return status;
    }
    if (rv == FL_ECANCELED) {
        (void)fprintf(stderr, "fl-sim run: interrupted; the same command goes on from here\n");
    } else if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-sim run: %s\n", fl_err_text(err, rv));
    } else {
        (void)printf("%zu trials in %s\n", j->check.cap, j->out);
    }
    return status;
}

int cmd_run(int argc, char **argv)
{
    struct job *j = calloc(1, sizeof(*j));
    struct fl_err err = {0};
    int status;
    int rv;

    if (j == NULL) {
        (void)fputs("fl-sim run: out of memory\n", stderr);
        return EXIT_FAILURE;
    }
    fl_buf_init(&j->text, SIZE_MAX / 2);
    if (!parse(&j->o, argc, argv, &status)) {
        free(j);
        return status;
    }
    rv = fleet_begin(argc, argv, &j->fleet, &err);
    rv = rv == FL_OK ? run_job(j, argc, argv, &err) : rv;
    status = say_end(j, rv, &err);
    if (j->fleet != NULL) {
        j->fleet->end();
    }
    close_job(j);
    free(j);
    return status;
}
