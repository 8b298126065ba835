/* Writes the files of a running trial (results.h): rounds, clients, summary. One thread at a time
   per trial. It checks that rows are consistent before it writes them. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "tools/fl_sim/results/results_impl.h"

/* Rows of clients are buffered up to this size, and written with each round. */
#define BATCH     65536
#define BATCH_MAX ((size_t)16 << 20)

/* A file that is appended to. */
struct sink {
    int fd; /* -1: not open */
    uint64_t size;
    struct fl_buf pending;
    const char *name;
};

struct fl_trial {
    struct fl_results *results;
    char dir[FL_RESULTS_DIR], state_dir[FL_RESULTS_PATH];
    struct sink jsonl, csv, clients;
    struct fl_summary summary;
    struct fl_spent spent;
    uint64_t began_ns;
};

static void trial_path(const struct fl_trial *trial, const char *name, char out[FL_RESULTS_PATH])
{
    (void)snprintf(out, FL_RESULTS_PATH, "%s/%s", trial->dir, name);
}

/* --- files --- */

static void sink_init(struct sink *sink, const char *name)
{
    sink->fd = -1;
    sink->name = name;
    fl_buf_init(&sink->pending, BATCH_MAX);
}

static int sink_error(const struct fl_trial *trial, const struct sink *sink, int code,
                      struct fl_err *err)
{
    char path[FL_RESULTS_PATH];

    trial_path(trial, sink->name, path);
    return fl_results_write_error(err, code, path);
}

static int sink_open(const struct fl_trial *trial, struct sink *sink, struct fl_err *err)
{
    char path[FL_RESULTS_PATH];

    trial_path(trial, sink->name, path);
    sink->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    return sink->fd >= 0 ? FL_OK : fl_results_write_error(err, fl_err_from_errno(errno), path);
}

/* `rv`: the result of putting the lines into `pending`. */
static int sink_flush(const struct fl_trial *trial, struct sink *sink, int rv, struct fl_err *err)
{
    if (rv != FL_OK) {
        goto done;
    }
    if (sink->fd >= 0) {
        rv = fl_fs_pwrite(sink->fd, sink->pending.data, sink->pending.len, sink->size);
        sink->size += sink->pending.len;
    }
done:
    fl_buf_clear(&sink->pending);
    if (rv != FL_OK) {
        return sink_error(trial, sink, rv, err);
    }
    return FL_OK;
}

static void sink_done(struct sink *sink)
{
    if (sink->fd >= 0) {
        (void)close(sink->fd);
    }
    sink->fd = -1;
    fl_buf_done(&sink->pending);
}

/* --- open --- */

static const struct fl_run_point *trial_find_point(const struct fl_run_info *info, const char *slug)
{
    size_t i;

    for (i = 0; i < info->n_points; i++) {
        if (strcmp(info->points[i].slug, slug) == 0) {
            return &info->points[i];
        }
    }
    return NULL;
}

static bool trial_has_seed(const struct fl_run_info *info, uint64_t seed)
{
    size_t i;

    for (i = 0; i < info->n_seeds; i++) {
        if (info->seeds[i] == seed) {
            return true;
        }
    }
    return false;
}

static struct fl_trial *trial_new(struct fl_results *results, const struct fl_run_point *point,
                                  uint64_t seed)
{
    struct fl_trial *t = calloc(1, sizeof(*t));

    if (t == NULL) {
        return NULL;
    }
    t->results = results;
    t->began_ns = fl_clock_ns();
    sink_init(&t->jsonl, "rounds.jsonl");
    sink_init(&t->csv, "rounds.csv");
    sink_init(&t->clients, "clients.jsonl");
    t->summary.point = point->slug;
    t->summary.label = point->label != NULL ? point->label : point->slug;
    t->summary.seed = seed;
    fl_figures_init(&fl_round_rows, &t->summary.totals.record);
    fl_sim_round_init(&t->summary.totals.sim);
    fl_trajectory_init(&t->summary.accuracy, "accuracy", fl_targets, FL_N_TARGETS);
    fl_trajectory_init(&t->summary.personal, "personal_accuracy", fl_targets, FL_N_TARGETS);
    return t;
}

/* Completes a trial that was killed between its summary and the removal of its state. */
static int trial_drop_state(const struct fl_trial *t, struct fl_err *err)
{
    return t->results->info->keep_state ? FL_OK : fl_fs_remove_tree(t->state_dir, err);
}

int fl_trial_begin(struct fl_results *results, const char *point, uint64_t seed,
                   struct fl_trial **ret, struct fl_err *err)
{
    const struct fl_run_point *p = trial_find_point(results->info, point);
    char path[FL_RESULTS_PATH];
    struct fl_trial *t;
    int rv;

    FL_REQUIRE(p != NULL && trial_has_seed(results->info, seed));
    t = trial_new(results, p, seed);
    if (t == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for trial %s/seed-%" PRIu64, point, seed);
    }
    rv = fl_results_trial_dir(results, point, seed, t->dir, err);
    if (rv != FL_OK) {
        goto fail;
    }
    trial_path(t, "state", t->state_dir);
    trial_path(t, "summary.json", path);
    if (fl_fs_exists(path)) {
        rv = trial_drop_state(t, err);
        if (rv != FL_OK) {
            goto fail;
        }
        fl_trial_free(t);
        *ret = NULL;
        return FL_OK;
    }
    rv = fl_fs_mkdirs(t->state_dir, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = sink_open(t, &t->jsonl, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = sink_open(t, &t->csv, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (t->results->info->clients) {
        rv = sink_open(t, &t->clients, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = sink_flush(t, &t->csv, fl_row_csv_head(&t->csv.pending), err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = t;
    return FL_OK;
fail:
    fl_trial_free(t);
    return rv;
}

const char *fl_trial_state_dir(const struct fl_trial *trial)
{
    return trial->state_dir;
}

/* --- rows --- */

static int trial_check_row(const struct fl_trial *t, const struct fl_round_rec *record,
                           const struct fl_sim_round *sim, struct fl_err *err)
{
    const char *point = t->summary.point;
    uint64_t parts = fl_sim_round_parts(sim);

    if (record->round != t->spent.round + 1) {
        return fl_err_set(err, FL_ESTATE,
                          "trial %s/seed-%" PRIu64 ": round %" PRIu64 " follows round %" PRIu64,
                          point, t->summary.seed, record->round, t->spent.round);
    }
    if (parts != sim->wall_us) {
        return fl_err_set(err, FL_ESTATE,
                          "trial %s/seed-%" PRIu64 ", round %" PRIu64 ": wall_us is %" PRIu64
                          ", but its phases sum up to %" PRIu64,
                          point, t->summary.seed, record->round, sim->wall_us, parts);
    }
    if (sim->time_us != t->spent.time_us + sim->wall_us) {
        return fl_err_set(err, FL_ESTATE,
                          "trial %s/seed-%" PRIu64 ", round %" PRIu64 ": it ended at %" PRIu64
                          " us, %" PRIu64 " after the previous round, and wall_us is %" PRIu64,
                          point, t->summary.seed, record->round, sim->time_us,
                          sim->time_us - t->spent.time_us, sim->wall_us);
    }
    return FL_OK;
}

int fl_trial_round(struct fl_trial *trial, const struct fl_round_rec *record,
                   const struct fl_sim_round *sim, struct fl_err *err)
{
    struct fl_summary *s;
    const struct fl_row row = {.record = *record, .sim = *sim};
    int rv = trial_check_row(trial, record, sim, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = sink_flush(trial, &trial->clients, FL_OK, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = sink_flush(trial, &trial->csv, fl_row_csv(&trial->csv.pending, &row), err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = sink_flush(trial, &trial->jsonl, fl_row_json(&trial->jsonl.pending, &row), err);
    if (rv != FL_OK) {
        return rv;
    }
    s = &trial->summary;
    fl_round_add(&s->totals.record, &row.record);
    fl_figures_add(&fl_sim_round_rows, s->rounds, &s->totals.sim, &row.sim);
    s->rounds++;
    fl_spent_add(&trial->spent, &row);
    fl_trajectory_add(&s->accuracy, &row, &trial->spent);
    fl_trajectory_add(&s->personal, &row, &trial->spent);
    return FL_OK;
}

int fl_trial_client(struct fl_trial *trial, const struct fl_sim_client_round *client,
                    struct fl_err *err)
{
    int rv;

    if (trial->clients.fd < 0) {
        return FL_OK;
    }
    rv = fl_row_client_json(&trial->clients.pending, client);
    if (rv != FL_OK || trial->clients.pending.len >= BATCH) {
        return sink_flush(trial, &trial->clients, rv, err);
    }
    return FL_OK;
}

/* --- finish --- */

int fl_trial_finish(struct fl_trial *trial, const struct fl_trial_end *end, struct fl_err *err)
{
    const struct fl_summary *s = &trial->summary;
    char path[FL_RESULTS_PATH];
    struct sink *const sinks[] = {&trial->clients, &trial->csv, &trial->jsonl};
    size_t i;
    int rv;

    for (i = 0; i < sizeof(sinks) / sizeof(sinks[0]); i++) {
        rv = sink_flush(trial, sinks[i], FL_OK, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (sinks[i]->fd >= 0 && fsync(sinks[i]->fd) != 0) {
            return sink_error(trial, sinks[i], fl_err_from_errno(errno), err);
        }
    }
    trial_path(trial, "summary.json", path);
    rv = fl_summary_write(path, s, end, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = trial_drop_state(trial, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_results_note_trial(trial->results, s->point, s->seed, fl_clock_ns() - trial->began_ns,
                                 err);
}

void fl_trial_free(struct fl_trial *trial)
{
    if (trial == NULL) {
        return;
    }
    sink_done(&trial->jsonl);
    sink_done(&trial->csv);
    sink_done(&trial->clients);
    free(trial);
}
