/* The results of a previous run in a folder, and how they are prepared for a later end, more
   trials or points. One thread, under the lock of the folder (results.c). */

#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/json/json.h"
#include "tools/fl_sim/results/results_impl.h"

#define SUMMARY_MAX ((size_t)1 << 20)

struct fl_results_past {
    json_t *root;
    const char *file, *text, *fingerprint;
    const char **sets; /* [n_sets], borrowed from the tree */
    size_t n_sets;
};

int fl_results_past_read(const char *dir, struct fl_results_past **ret, struct fl_err *err)
{
    struct fl_results_past *p = calloc(1, sizeof(*p));
    const json_t *experiment;
    const json_t *sets;
    size_t i;
    int rv = p != NULL ? fl_run_json_read(dir, &p->root, err) : FL_ENOMEM;

    if (rv != FL_OK) {
        free(p);
        return rv;
    }
    experiment = json_object_get(p->root, "experiment");
    sets = json_object_get(experiment, "set");
    p->file = json_string_value(json_object_get(experiment, "file"));
    p->text = json_string_value(json_object_get(experiment, "text"));
    p->fingerprint = json_string_value(json_object_get(experiment, "fingerprint"));
    p->sets = calloc(json_array_size(sets) + 1, sizeof(*p->sets));
    for (i = 0; p->sets != NULL && i < json_array_size(sets); i++) {
        const char *set = json_string_value(json_array_get(sets, i));

        if (set != NULL) {
            p->sets[p->n_sets++] = set;
        }
    }
    if (p->sets == NULL || p->text == NULL || p->fingerprint == NULL) {
        rv = p->sets == NULL ? FL_ENOMEM : FL_EFORMAT;
        fl_results_past_free(p);
        return rv;
    }
    *ret = p;
    return FL_OK;
}

void fl_results_past_free(struct fl_results_past *past)
{
    if (past != NULL) {
        json_decref(past->root);
        free(past->sets);
        free(past);
    }
}

const char *fl_results_past_fingerprint(const struct fl_results_past *past)
{
    return past->fingerprint;
}

const char *fl_results_past_text(const struct fl_results_past *past, const char **ret_file,
                                 const char *const **ret_sets, size_t *ret_n_sets)
{
    *ret_file = past->file != NULL ? past->file : "experiment.yaml";
    *ret_sets = past->sets;
    *ret_n_sets = past->n_sets;
    return past->text;
}

/* --- summaries --- */

static int past_summary_path(const char *dir, const char *point, uint64_t seed, const char *name,
                             char out[FL_RESULTS_PATH], struct fl_err *err)
{
    int n = snprintf(out, FL_RESULTS_PATH, "%s/%s/seed-%llu/%s", dir, point,
                     (unsigned long long)seed, name);

    return n >= 0 && n < FL_RESULTS_PATH ? FL_OK
                                         : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

/* FL_ENOENT: the trial is not finished. A file that is not a summary counts as none. */
static int past_read_summary(const char *path, json_t **ret, struct fl_err *err)
{
    struct fl_buf text;
    int rv = fl_fs_read(path, SUMMARY_MAX, &text, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret = json_loadb((const char *)text.data, text.len, 0, NULL);
    fl_buf_done(&text);
    return *ret != NULL ? FL_OK : FL_ENOENT;
}

static bool past_summary_has(const json_t *summary, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(summary, key));

    return value != NULL && strcmp(value, text) == 0;
}

int fl_results_rename_trial(const char *dir, const struct fl_run_point *point, uint64_t seed,
                            struct fl_err *err)
{
    char path[FL_RESULTS_PATH];
    json_t *summary = NULL;
    int rv = past_summary_path(dir, point->slug, seed, "summary.json", path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = past_read_summary(path, &summary, err);
    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    if (!past_summary_has(summary, "point", point->slug) ||
        !past_summary_has(summary, "label", point->label))
    {
        (void)json_object_set_new(summary, "point", json_string(point->slug));
        (void)json_object_set_new(summary, "label", json_string(point->label));
        rv = fl_results_write_json(path, summary, SUMMARY_MAX, err);
    }
    json_decref(summary);
    return rv;
}

int fl_results_rename_point(const char *dir, const char *from, const char *to, struct fl_err *err)
{
    char old[FL_RESULTS_PATH];
    char new[FL_RESULTS_PATH];

    if (fl_fs_join(old, sizeof(old), dir, from) != FL_OK ||
        fl_fs_join(new, sizeof(new), dir, to) != FL_OK)
    {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    if (!fl_fs_exists(old)) {
        return FL_OK; /* Already done before a kill, or never started. */
    }
    if (fl_fs_exists(new)) {
        return fl_err_set(err, FL_EEXIST,
                          "'%s' cannot be renamed to '%s', which exists: remove one of them", new,
                          old);
    }
    return fl_fs_publish(old, new, /* sync= */ false, err);
}

/* The rule that ended a trial; NULL: none, it diverged. */
static const char *past_ended_by(const json_t *summary)
{
    if (past_summary_has(summary, "ended", fl_trial_how_text(FL_TRIAL_DONE))) {
        return "rounds";
    }
    return past_summary_has(summary, "ended", fl_trial_how_text(FL_TRIAL_STOPPED))
               ? json_string_value(json_object_get(summary, "reason"))
               : NULL;
}

int fl_results_reopen_trial(const char *dir, const char *point, uint64_t seed,
                            const char *const *rules, bool *ret_reopened, bool *ret_kept,
                            struct fl_err *err)
{
    char path[FL_RESULTS_PATH];
    char state[FL_RESULTS_PATH];
    json_t *summary = NULL;
    const char *ended_by;
    int rv = past_summary_path(dir, point, seed, "summary.json", path, err);

    *ret_reopened = *ret_kept = false;
    if (rv != FL_OK) {
        return rv;
    }
    rv = past_summary_path(dir, point, seed, "state/journal", state, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = past_read_summary(path, &summary, err);
    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv;
    }
    ended_by = past_ended_by(summary);
    for (; ended_by != NULL && *rules != NULL && !*ret_reopened; rules++) {
        *ret_reopened = strcmp(ended_by, *rules) == 0;
    }
    *ret_kept = fl_fs_exists(state);
    json_decref(summary);
    if (*ret_reopened && fl_fs_remove(path) != FL_OK) {
        return fl_err_set(err, FL_EIO, "cannot remove '%s'", path);
    }
    return FL_OK;
}
