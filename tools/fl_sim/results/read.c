/*
 * Reads the results of a run from its folder (read.h): run.json, summaries and rounds. Main thread.
 * It writes nothing and takes no lock.
 */
#include "tools/fl_sim/results/read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/json/json.h"
#include "tools/fl_sim/results/results_impl.h"
#include "tools/fl_sim/results/trajectory.h"

#define ROUNDS_MAX  ((size_t)2 << 30)
#define SUMMARY_MAX ((size_t)1 << 20)

static int read_out_of_memory(struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "out of memory for the results");
}

/* --- rounds.jsonl --- */

/* Makes room for one more element, doubling the array. */
static int read_grow_rows(struct fl_read_trial *t, size_t *room, struct fl_err *err)
{
    struct fl_row *rows;

    if (t->n_rows < *room) {
        return FL_OK;
    }
    *room = *room > 0 ? 2 * *room : 64;
    rows = reallocarray(t->rows, *room, sizeof(*rows));
    if (rows == NULL) {
        return read_out_of_memory(err);
    }
    t->rows = rows;
    return FL_OK;
}

static int read_round_line(struct fl_read_trial *t, const char *line, size_t len, const char *path,
                           struct fl_err *err)
{
    struct fl_row *row = &t->rows[t->n_rows];
    json_error_t why = {0};
    json_t *object = json_loadb(line, len, 0, &why);
    int rv = object != NULL ? fl_row_read(object, row) : FL_EFORMAT;

    if (object == NULL) {
        (void)fl_err_set(err, rv, "%s:%zu: %s", path, t->n_rows + 1, why.text);
    } else if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "%s:%zu: expected the object of a round", path, t->n_rows + 1);
    } else if (row->record.round != t->n_rows + 1) {
        rv = fl_err_set(err, FL_EFORMAT, "%s:%zu: expected round %zu, found %" PRIu64, path,
                        t->n_rows + 1, t->n_rows + 1, row->record.round);
    }
    json_decref(object);
    return rv;
}

static int read_round_lines(struct fl_read_trial *t, const struct fl_buf *text, const char *path,
                            struct fl_err *err)
{
    const char *at = (const char *)text->data;
    const char *end = at + text->len;
    size_t room = 0;
    int rv;

    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        /* The run may still be writing its last line. */
        bool growing = !t->finished && (stop == NULL || stop + 1 == end);

        if (stop == NULL) {
            return growing ? FL_OK
                           : fl_err_set(err, FL_EFORMAT, "%s:%zu: the line is truncated", path,
                                        t->n_rows + 1);
        }
        rv = read_grow_rows(t, &room, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = read_round_line(t, at, (size_t)(stop - at), path, err);
        if (rv != FL_OK) {
            return rv == FL_EFORMAT && growing ? FL_OK : rv;
        }
        t->n_rows++;
        at = stop + 1;
    }
    return FL_OK;
}

/* --- summary.json --- */

static int read_trial_summary(struct fl_read_trial *t, const char *path, struct fl_err *err)
{
    struct fl_buf text;
    json_t *summary;
    const char *reason;
    const char *ended;
    int how;
    int rv = fl_fs_exists(path) ? fl_fs_read(path, SUMMARY_MAX, &text, err) : FL_ENOENT;

    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    summary = json_loadb((const char *)text.data, text.len, 0, NULL);
    fl_buf_done(&text);
    ended = json_string_value(json_object_get(summary, "ended"));
    for (how = FL_TRIAL_DONE; how <= FL_TRIAL_DIVERGED; how++) {
        if (ended != NULL && strcmp(ended, fl_trial_how_text((enum fl_trial_how)how)) == 0) {
            break;
        }
    }
    if (how > FL_TRIAL_DIVERGED) {
        rv = fl_err_set(err, FL_EFORMAT, "'%s' has no valid state of the trial", path);
    } else {
        t->finished = true;
        t->end.how = (enum fl_trial_how)how;
        t->end.round = (uint64_t)json_integer_value(json_object_get(summary, "diverged_round"));
        reason = json_string_value(json_object_get(summary, "reason"));
        t->reason = reason != NULL ? fl_str_dup(reason) : NULL;
        t->end.reason = t->reason;
    }
    json_decref(summary);
    return rv;
}

/* --- a point --- */

static int read_add_seed(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct fl_read_point *p = ctx;
    struct fl_read_trial *trials;
    uint64_t seed;

    (void)folder;
    if (strncmp(name, "seed-", 5) != 0 || fl_str_to_u64(name + 5, &seed) != FL_OK) {
        return FL_OK;
    }
    trials = reallocarray(p->trials, p->n_trials + 1, sizeof(*trials));
    if (trials == NULL) {
        return read_out_of_memory(err);
    }
    p->trials = trials;
    trials[p->n_trials++] = (struct fl_read_trial){.seed = seed};
    return FL_OK;
}

static int read_compare_seeds(const void *a, const void *b)
{
    uint64_t x = ((const struct fl_read_trial *)a)->seed;
    uint64_t y = ((const struct fl_read_trial *)b)->seed;

    return (x > y) - (x < y);
}

static void read_trial_done(struct fl_read_trial *t)
{
    free(t->rows);
    free(t->reason);
}

static int read_trial(struct fl_read_trial *t, const char *folder, struct fl_err *err)
{
    char path[FL_RESULTS_PATH];
    struct fl_buf text;
    int n = snprintf(path, sizeof(path), "%s/seed-%" PRIu64 "/summary.json", folder, t->seed);
    int rv;

    if (n < 0 || (size_t)n >= sizeof(path)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", folder);
    }
    rv = read_trial_summary(t, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(path, sizeof(path), "%s/seed-%" PRIu64 "/rounds.jsonl", folder, t->seed);
    if (!t->finished && !fl_fs_exists(path)) {
        return FL_OK;
    }
    rv = fl_fs_read(path, ROUNDS_MAX, &text, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = read_round_lines(t, &text, path, err);
    fl_buf_done(&text);
    return rv;
}

static int read_point(struct fl_read_point *p, const char *dir, struct fl_err *err)
{
    char folder[FL_RESULTS_DIR];
    size_t kept = 0;
    size_t i;
    int rv = fl_fs_join(folder, sizeof(folder), dir, p->slug);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "path '%s' is too long", dir);
    }
    rv = fl_fs_each(folder, read_add_seed, p, err);
    if (rv != FL_OK || p->n_trials == 0) {
        return rv;
    }
    qsort(p->trials, p->n_trials, sizeof(*p->trials), read_compare_seeds);
    for (i = 0; i < p->n_trials; i++) {
        rv = read_trial(&p->trials[i], folder, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    for (i = 0; i < p->n_trials; i++) {
        if (p->trials[i].n_rows > 0) {
            p->trials[kept++] = p->trials[i];
        } else {
            read_trial_done(&p->trials[i]);
        }
    }
    p->n_trials = kept;
    return rv;
}

/* --- a run --- */

static void read_trials_done(struct fl_read_point *p)
{
    size_t i;

    for (i = 0; i < p->n_trials; i++) {
        read_trial_done(&p->trials[i]);
    }
    free(p->trials);
    p->trials = NULL;
    p->n_trials = 0;
}

void fl_read_point_done(struct fl_read_point *point)
{
    read_trials_done(point);
    free(point->slug);
    free(point->label);
}

void fl_read_run_free(struct fl_read_run *run)
{
    size_t i;

    if (run == NULL) {
        return;
    }
    for (i = 0; i < run->n_points; i++) {
        fl_read_point_done(&run->points[i]);
    }
    free(run->points);
    free(run->path);
    free(run->name);
    free(run);
}

/* `only`: the point to read, "" for all. */
static int read_take_points(struct fl_read_run *run, const json_t *points, const char *only,
                            struct fl_err *err)
{
    size_t n = json_array_size(points);
    size_t i;

    run->points = calloc(n > 0 ? n : 1, sizeof(*run->points));
    if (run->points == NULL) {
        return read_out_of_memory(err);
    }
    for (i = 0; i < n; i++) {
        const json_t *o = json_array_get(points, i);
        const char *slug = json_string_value(json_object_get(o, "point"));
        const char *label = json_string_value(json_object_get(o, "label"));
        struct fl_read_point *p = &run->points[run->n_points];

        if (slug == NULL || strchr(slug, '/') != NULL) {
            return fl_err_set(err, FL_EFORMAT, "'%s/run.json': a point without a name", run->path);
        }
        if (only[0] != '\0' && strcmp(only, slug) != 0) {
            continue;
        }
        run->n_points++;
        p->slug = fl_str_dup(slug);
        p->label = fl_str_dup(label != NULL ? label : slug);
        if (p->slug == NULL || p->label == NULL) {
            return read_out_of_memory(err);
        }
    }
    return run->n_points > 0
               ? FL_OK
               : fl_err_set(err, FL_ENOENT, "'%s' is not a point of the run in its folder",
                            run->path);
}

/*
 * If `path` is not a run itself: its folder, and the point behind its last '/'; both of size
 * FL_RESULTS_PATH.
 */
static int read_find_run(const char *path, char *dir, char *point, json_t **ret, struct fl_err *err)
{
    size_t len = strlen(path);
    const char *slash;
    int rv;

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    if (len >= FL_RESULTS_PATH) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
    }
    (void)memcpy(dir, path, len);
    dir[len] = '\0';
    point[0] = '\0';
    rv = fl_run_json_read(dir, ret, err);
    slash = strrchr(dir, '/');
    if (rv != FL_ENOENT) {
        return rv;
    }
    if (slash == NULL && !fl_fs_exists("run.json")) {
        return fl_err_set(err, rv, "'%s' has no results of fl-sim: there is no run.json", path);
    }
    (void)snprintf(point, FL_RESULTS_PATH, "%s", slash != NULL ? slash + 1 : dir);
    (void)snprintf(dir, FL_RESULTS_PATH, "%.*s", slash != NULL ? (int)(len - strlen(point) - 1) : 1,
                   slash != NULL ? path : ".");
    rv = fl_run_json_read(dir, ret, err);
    if (rv == FL_ENOENT) {
        return fl_err_set(
            err, rv, "'%s' has no results of fl-sim: there is no run.json in it or above it", path);
    }
    return rv;
}

/* The run with its points, without their trials; `dir`, of size FL_RESULTS_PATH: its folder. */
static int read_open_run(const char *path, char *dir, struct fl_read_run **ret, struct fl_err *err)
{
    char point[FL_RESULTS_PATH];
    struct fl_read_run *run = calloc(1, sizeof(*run));
    json_t *json = NULL;
    const char *name;
    int rv = run != NULL ? read_find_run(path, dir, point, &json, err) : read_out_of_memory(err);

    if (rv != FL_OK) {
        free(run);
        return rv;
    }
    name = json_string_value(json_object_get(json_object_get(json, "experiment"), "name"));
    run->path = fl_str_dup(path);
    run->name = fl_str_dup(name != NULL ? name : "?");
    rv = run->path != NULL && run->name != NULL
             ? read_take_points(run, json_object_get(json, "points"), point, err)
             : read_out_of_memory(err);
    json_decref(json);
    if (rv != FL_OK) {
        fl_read_run_free(run);
        return rv;
    }
    *ret = run;
    return FL_OK;
}

int fl_read_run(const char *path, struct fl_read_run **ret, struct fl_err *err)
{
    char dir[FL_RESULTS_PATH];
    struct fl_read_run *run;
    size_t i;
    int rv = read_open_run(path, dir, &run, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < run->n_points; i++) {
        rv = read_point(&run->points[i], dir, err);
        if (rv != FL_OK) {
            fl_read_run_free(run);
            return rv;
        }
    }
    *ret = run;
    return FL_OK;
}

int fl_read_each(const char *path, size_t most, fl_read_point_cb take, void *ctx,
                 struct fl_err *err)
{
    char dir[FL_RESULTS_PATH];
    struct fl_read_run *run;
    size_t i;
    int rv = read_open_run(path, dir, &run, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < run->n_points && i < most; i++) {
        rv = read_point(&run->points[i], dir, err);
        if (rv != FL_OK) {
            goto done;
        }
        rv = take(ctx, run, &run->points[i], err);
        if (rv != FL_OK) {
            goto done;
        }
        read_trials_done(&run->points[i]);
    }
done:
    fl_read_run_free(run);
    return rv;
}

void fl_read_trajectory(const struct fl_read_trial *trial, struct fl_trajectory *trajectory,
                        struct fl_spent *ret_spent)
{
    struct fl_spent spent = {0};
    size_t i;

    for (i = 0; i < trial->n_rows; i++) {
        fl_spent_add(&spent, &trial->rows[i]);
        fl_trajectory_add(trajectory, &trial->rows[i], &spent);
    }
    *ret_spent = spent;
}
