/* The results folder of a run: check, lock, run.json and results.csv. One thread, except the notes
   of finished trials, which a lock protects. The files of a trial are in trial_results.c. */

#include "tools/fl_sim/results/results.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/json/json.h"
#include "tools/fl_sim/results/results_impl.h"

#define CSV_MAX     ((size_t)1 << 30)
#define SUMMARY_MAX ((size_t)1 << 20)

int fl_results_trial_dir(const struct fl_results *results, const char *point, uint64_t seed,
                         char out[FL_RESULTS_DIR], struct fl_err *err)
{
    int n = snprintf(out, FL_RESULTS_DIR, "%s/%s/seed-%" PRIu64, results->dir, point, seed);

    return n >= 0 && n < FL_RESULTS_DIR
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", results->dir);
}

/* --- whose folder it is --- */

static int results_refuse_file(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    static const char *const ours[] = {".", "..", ".lock", "data", "run.json.tmp"};
    size_t i;

    (void)ctx;
    for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (strcmp(name, ours[i]) == 0) {
            return FL_OK;
        }
    }
    return fl_err_set(err, FL_EEXIST,
                      "'%s' has no results of fl-sim (it contains '%s', and no run.json): expected "
                      "a new or empty folder, or one of this experiment",
                      folder, name);
}

static const char *results_old_value(const json_t *old, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(old, "experiment"), key));

    return text != NULL ? text : "?";
}

/* *ret_old: run.json of the previous run, NULL when there was none. */
static int results_check_folder(const char *dir, const struct fl_run_info *info, json_t **ret_old,
                                struct fl_err *err)
{
    struct fl_err why = {0};
    json_t *old = NULL;
    int rv = fl_run_json_read(dir, &old, &why);

    *ret_old = NULL;
    if (rv == FL_ENOENT) {
        return fl_fs_each(dir, results_refuse_file, NULL, err);
    }
    if (rv == FL_EFORMAT) {
        return fl_err_set(err, FL_EEXIST, "'%s' has no results of fl-sim: %s", dir, why.msg);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", why.msg);
    }
    if (strcmp(results_old_value(old, "fingerprint"), info->fingerprint) != 0 &&
        (info->extends == NULL ||
         strcmp(results_old_value(old, "fingerprint"), info->extends) != 0))
    {
        rv = fl_err_set(err, FL_EEXIST,
                        "'%s' has the results of experiment '%s' (%s), and this is '%s' (%s): "
                        "choose another folder with --out, or remove it",
                        dir, results_old_value(old, "name"), results_old_value(old, "fingerprint"),
                        info->name, info->fingerprint);
        json_decref(old);
        return rv;
    }
    *ret_old = old;
    return FL_OK;
}

int fl_results_check(const char *dir, const struct fl_run_info *info, struct fl_err *err)
{
    json_t *old = NULL;
    int rv = results_check_folder(dir, info, &old, err);

    json_decref(old);
    return rv;
}

static int results_check_slugs(const struct fl_run_info *info, struct fl_err *err)
{
    size_t i;
    size_t k;

    for (i = 0; i < info->n_points; i++) {
        const char *slug = info->points[i].slug;

        if (slug[0] == '\0' || slug[0] == '.' || strchr(slug, '/') != NULL ||
            strlen(slug) >= FL_NAME_MAX) {
            return fl_err_set(err, FL_EINVAL, "'%s' is not a valid name for the folder of a point",
                              slug);
        }
        for (k = 0; k < i; k++) {
            if (strcmp(slug, info->points[k].slug) == 0) {
                return fl_err_set(err, FL_EINVAL, "duplicate point '%s'", slug);
            }
        }
    }
    return FL_OK;
}

/* Creates the object without lock and run.json. */
static int results_new(const char *dir, const struct fl_run_info *info, struct fl_results **ret,
                       struct fl_err *err)
{
    struct fl_results *r;

    r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for the results");
    }
    if (fl_str_copy(r->dir, sizeof(r->dir), dir) != FL_OK) {
        free(r);
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    r->info = info;
    r->lock_fd = -1;
    (void)pthread_mutex_init(&r->mutex, NULL);
    *ret = r;
    return FL_OK;
}

int fl_results_open(const char *dir, const struct fl_run_info *info, struct fl_results **ret,
                    struct fl_err *err)
{
    struct fl_results *r = NULL;
    json_t *old = NULL;
    int rv = results_new(dir, info, &r, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = results_check_slugs(info, err);
    if (rv != FL_OK) {
        goto done;
    }
    /* Called before anything is created, and again under the lock. */
    rv = fl_results_check(dir, info, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_mkdirs(dir, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_fs_lock_dir(dir, &r->lock_fd, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = results_check_folder(dir, info, &old, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (old != NULL && strcmp(results_old_value(old, "fingerprint"), info->fingerprint) != 0) {
        rv = info->extend(info->extend_ctx, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl_run_json_make(info, old, &r->run_json, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_run_json_write(dir, r->run_json, err);
done:
    json_decref(old);
    if (rv != FL_OK) {
        fl_results_free(r);
        return rv;
    }
    *ret = r;
    return FL_OK;
}

int fl_results_join(const char *dir, const struct fl_run_info *info, struct fl_results **ret,
                    struct fl_err *err)
{
    struct fl_results *r = NULL;
    json_t *old = NULL;
    int rv = results_new(dir, info, &r, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = results_check_folder(dir, info, &old, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (old == NULL) {
        rv = fl_err_set(err, FL_ENOENT,
                        "'%s' is not the folder that the first process created: do "
                        "all machines share the file system?",
                        dir);
    }
done:
    json_decref(old);
    if (rv != FL_OK) {
        fl_results_free(r);
        return rv;
    }
    *ret = r;
    return FL_OK;
}

bool fl_results_finished(const struct fl_results *results, const char *point, uint64_t seed)
{
    char dir[FL_RESULTS_DIR];
    char path[FL_RESULTS_PATH];

    if (fl_results_trial_dir(results, point, seed, dir, NULL) != FL_OK) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "%s/summary.json", dir);
    return fl_fs_exists(path);
}

void fl_results_free(struct fl_results *results)
{
    if (results == NULL) {
        return;
    }
    json_decref(results->run_json);
    if (results->lock_fd >= 0) {
        (void)close(results->lock_fd);
    }
    (void)pthread_mutex_destroy(&results->mutex);
    free(results);
}

int fl_results_note_trial(struct fl_results *results, const char *point, uint64_t seed,
                          uint64_t wall_ns, struct fl_err *err)
{
    json_t *note;
    char name[FL_NAME_MAX + 32];
    int rv;

    if (results->run_json == NULL) {
        return FL_OK;
    }
    note = json_object();
    (void)snprintf(name, sizeof(name), "%s/seed-%" PRIu64, point, seed);
    (void)json_object_set_new(note, "wall_s", json_real((double)wall_ns / 1e9));
    (void)pthread_mutex_lock(&results->mutex);
    (void)json_object_set_new(json_object_get(results->run_json, "trials"), name, note);
    rv = fl_run_json_write(results->dir, results->run_json, err);
    (void)pthread_mutex_unlock(&results->mutex);
    return rv;
}

/* --- results.csv --- */

/* The line of a trial, with the header before the first one; nothing for an unfinished trial. */
static int results_add_trial(const struct fl_results *results, const char *point, uint64_t seed,
                             struct fl_buf *out, struct fl_err *err)
{
    char dir[FL_RESULTS_DIR];
    char path[FL_RESULTS_PATH];
    struct fl_buf text;
    json_t *summary;
    int rv = fl_results_trial_dir(results, point, seed, dir, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(path, sizeof(path), "%s/summary.json", dir);
    if (!fl_fs_exists(path)) {
        return FL_OK;
    }
    rv = fl_fs_read(path, SUMMARY_MAX, &text, err);
    if (rv != FL_OK) {
        return rv;
    }
    summary = json_loadb((const char *)text.data, text.len, 0, NULL);
    fl_buf_done(&text);
    if (summary == NULL) {
        return fl_err_set(err, FL_EFORMAT, "'%s' is not JSON; remove it to run its trial again",
                          path);
    }
    rv = fl_summary_csv(out, summary);
    json_decref(summary);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "results.csv: %s", fl_strerror(rv));
    }
    return FL_OK;
}

int fl_results_finish(struct fl_results *results, struct fl_err *err)
{
    const struct fl_run_info *info = results->info;
    char path[FL_RESULTS_PATH];
    struct fl_buf out;
    size_t i;
    size_t k;
    int rv = fl_fs_join(path, sizeof(path), results->dir, "results.csv");

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "path '%s' is too long", results->dir);
    }
    fl_buf_init(&out, CSV_MAX);
    for (i = 0; i < info->n_points; i++) {
        for (k = 0; k < info->n_seeds; k++) {
            rv = results_add_trial(results, info->points[i].slug, info->seeds[k], &out, err);
            if (rv != FL_OK) {
                goto done;
            }
        }
    }
    rv = fl_fs_replace(path, out.data, out.len, /* sync= */ true, NULL);
    if (rv != FL_OK) {
        rv = fl_results_write_error(err, rv, path);
    }
done:
    fl_buf_done(&out);
    return rv;
}
