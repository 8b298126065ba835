/*
 * Loads the file of an experiment (experiment.h): reads it, applies --set, makes the points and
 * their labels, and checks each point. One thread; a loaded experiment is read-only.
 */
#include "tools/fl_sim/experiment/experiment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/checksum.h"
#include "tools/fl_sim/experiment/experiment_impl.h"

/* Maximum size of the document: larger than any file that can be read. */
#define TEXT_MAX (16u << 20)

/* --- top level of the file --- */

static int experiment_apply_set(struct fl_experiment *e, const char *const *set, size_t n,
                                struct fl_err *err)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < n; i++) {
        rv = fl_conf_assign(e->doc, "--set", set[i], err);
    }
    return rv;
}

static int experiment_check_root(const struct fl_experiment *e, struct fl_err *err)
{
    static const char *const known[] = {"name", "server", "client", "data", "world",
                                        "stop", "trials", "sweep",  NULL};
    static const char *const required[] = {"server", "data"};
    const struct fl_conf_node *root = fl_conf_root(e->doc);
    size_t i;
    int rv = fl_conf_only(root, known, err);

    for (i = 0; rv == FL_OK && i < sizeof(required) / sizeof(required[0]); i++) {
        const struct fl_conf_node *node = fl_conf_get(root, required[i]);

        if (node == NULL || (fl_conf_text(node) != NULL && fl_conf_text(node)[0] == '\0')) {
            rv = fl_conf_error(node != NULL ? node : root, err,
                               "the required key '%s' is missing (%s)", required[i],
                               i == 0 ? "the keys of fl-serverd's file" : "the clients' data");
        }
    }
    if (rv == FL_OK && fl_conf_kind(fl_conf_get(root, "server")) != FL_CONF_MAP) {
        rv = fl_conf_error(fl_conf_get(root, "server"), err,
                           "expected a section of 'key: value' lines");
    }
    return rv;
}

/* The file's name without folder and extension, in characters that a name may have. */
static void experiment_name_of_file(const char *path, char out[FL_NAME_MAX])
{
    static const char *const ends[] = {".yaml", ".yml"};
    const char *slash = strrchr(path, '/');
    size_t i;

    (void)snprintf(out, FL_NAME_MAX, "%s", slash != NULL ? slash + 1 : path);
    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (strlen(out) > strlen(ends[i]) && fl_str_ends_with(out, ends[i])) {
            out[strlen(out) - strlen(ends[i])] = '\0';
        }
    }
    for (i = 0; out[i] != '\0'; i++) {
        char one[2] = {out[i], '\0'};

        out[i] = fl_name_valid(one) || (i > 0 && out[i] == '.') ? out[i] : '-';
    }
    if (i == 0) {
        (void)snprintf(out, FL_NAME_MAX, "experiment");
    }
}

static int experiment_take_name(struct fl_experiment *e, const char *path, struct fl_err *err)
{
    const struct fl_conf_node *node = fl_conf_get(fl_conf_root(e->doc), "name");
    const char *text = node != NULL ? fl_conf_text(node) : NULL;

    if (node == NULL) {
        experiment_name_of_file(path, e->name);
        return FL_OK;
    }
    if (text == NULL || !fl_name_valid(text)) {
        return fl_conf_error(node, err, "expected 1 to %d characters of A-Z a-z 0-9 . _ -",
                             FL_NAME_MAX - 1);
    }
    (void)snprintf(e->name, sizeof(e->name), "%s", text);
    return FL_OK;
}

/* Removes server.seed from the base: seeds belong to the trials. */
static int experiment_make_base(struct fl_experiment *e)
{
    static const char *const own[] = {"name", "trials", "sweep", "server.seed"};
    size_t i;
    int rv = fl_conf_copy(e->doc, &e->base);

    for (i = 0; rv == FL_OK && i < sizeof(own) / sizeof(own[0]); i++) {
        fl_conf_drop(e->base, own[i]);
    }
    return rv;
}

/* --- canonical texts --- */

static int experiment_put_seeds(const struct fl_experiment *e, struct fl_conf_doc *doc)
{
    struct fl_buf text;
    size_t i = 1;
    int rv;

    while (i < e->n_seeds && e->seeds[i] == e->seeds[i - 1] + 1) {
        i++;
    }
    fl_buf_init(&text, TEXT_MAX);
    if (i == e->n_seeds) {
        rv =
            fl_buf_printf(&text, "trials={count: %zu, seed: %" PRIu64 "}", e->n_seeds, e->seeds[0]);
    } else {
        rv = fl_buf_printf(&text, "trials={seeds: [%" PRIu64, e->seeds[0]);
        for (i = 1; rv == FL_OK && i < e->n_seeds; i++) {
            rv = fl_buf_printf(&text, ", %" PRIu64, e->seeds[i]);
        }
        rv = rv == FL_OK ? fl_buf_printf(&text, "]}") : rv;
    }
    rv = rv == FL_OK ? fl_buf_add(&text, "", 1) : rv;
    rv = rv == FL_OK ? fl_conf_assign(doc, "trials", (const char *)text.data, NULL) : rv;
    fl_buf_done(&text);
    return rv;
}

/* The entries of `from` in a canonical order, independent of the file's, with the seeds written
   out. */
static int experiment_canonical(const struct fl_experiment *e, const struct fl_conf_doc *from,
                                bool named, struct fl_buf *out)
{
    static const char *const keys[] = {"server", "client", "data", "world", "stop", "sweep"};
    struct fl_conf_doc *doc = NULL;
    char name[FL_NAME_MAX + sizeof("name=\"\"")];
    size_t i;
    int rv = fl_conf_parse("", "{}", 2, &doc, NULL);

    if (rv == FL_OK && named) {
        (void)snprintf(name, sizeof(name), "name=\"%s\"", e->name);
        rv = fl_conf_assign(doc, "", name, NULL);
    }
    for (i = 0; rv == FL_OK && i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct fl_conf_node *node = fl_conf_get(fl_conf_root(from), keys[i]);

        rv = node != NULL ? fl_conf_put(doc, keys[i], node, NULL) : FL_OK;
    }
    rv = rv == FL_OK ? experiment_put_seeds(e, doc) : rv;
    rv = rv == FL_OK ? fl_conf_write(fl_conf_root(doc), out) : rv;
    fl_conf_free(doc);
    return rv;
}

int fl_experiment_text(const struct fl_experiment *e, size_t point, struct fl_buf *out)
{
    struct fl_conf_doc *doc = NULL;
    int rv;

    FL_REQUIRE(point < e->n_points);
    rv = fl__point_doc(e, point, &doc, NULL);
    rv = rv == FL_OK ? experiment_canonical(e, doc, /* named= */ true, out) : rv;
    fl_conf_free(doc);
    return rv;
}

static int experiment_digest(const struct fl_experiment *e, const struct fl_conf_doc *doc,
                             uint64_t *ret)
{
    struct fl_buf text;
    int rv;

    fl_buf_init(&text, TEXT_MAX);
    rv = experiment_canonical(e, doc, /* named= */ false, &text);
    if (rv == FL_OK) {
        *ret = fl_checksum(text.data, text.len);
    }
    fl_buf_done(&text);
    return rv;
}

/* --- all points --- */

struct sum {
    uint64_t value;
    size_t point;
};

static int experiment_by_value(const void *a, const void *b)
{
    const struct sum *x = a;
    const struct sum *y = b;

    if (x->value != y->value) {
        return x->value < y->value ? -1 : 1;
    }
    return x->point < y->point ? -1 : x->point > y->point;
}

/* The value by which point `b` duplicates `a`, for the line of the message. */
static const struct fl_conf_node *experiment_duplicate_value(const struct fl__point *a,
                                                             const struct fl__point *b)
{
    size_t k;

    for (k = 0; a->node == b->node && k < a->n && k < b->n; k++) {
        if (a->settings[k].value != b->settings[k].value) {
            return b->settings[k].value;
        }
    }
    return b->node;
}

static int experiment_check_duplicates(const struct fl_experiment *e, struct sum *sums,
                                       struct fl_err *err)
{
    size_t i;

    qsort(sums, e->n_points, sizeof(*sums), experiment_by_value);
    for (i = 1; i < e->n_points; i++) {
        size_t a = sums[i - 1].point;
        size_t b = sums[i].point;

        if (sums[i].value == sums[i - 1].value) {
            return fl_conf_error(experiment_duplicate_value(&e->points[a], &e->points[b]), err,
                                 "points %zu and %zu are equal ('%.80s')", a + 1, b + 1,
                                 e->points[b].label);
        }
    }
    return FL_OK;
}

static int experiment_check_points(const struct fl_experiment *e, struct fl_err *err)
{
    struct sum *sums = calloc(e->n_points, sizeof(*sums));
    size_t i;
    int rv = sums != NULL ? FL_OK : FL_ENOMEM;

    for (i = 0; rv == FL_OK && i < e->n_points; i++) {
        struct fl_experiment_point *point = NULL;
        struct fl_conf_doc *doc = NULL;

        rv = fl_experiment_open(e, i, 0, &point, err);
        fl_experiment_close(point);
        rv = rv == FL_OK ? fl__point_doc(e, i, &doc, err) : rv;
        sums[i].point = i;
        rv = rv == FL_OK ? experiment_digest(e, doc, &sums[i].value) : rv;
        fl_conf_free(doc);
    }
    rv = rv == FL_OK ? experiment_check_duplicates(e, sums, err) : rv;
    free(sums);
    return rv;
}

static int experiment_read_all(struct fl_experiment *e, const char *path, const char *const *set,
                               size_t n_set, struct fl_err *err)
{
    int rv = experiment_apply_set(e, set, n_set, err);

    rv = rv == FL_OK ? experiment_check_root(e, err) : rv;
    rv = rv == FL_OK ? experiment_take_name(e, path, err) : rv;
    rv = rv == FL_OK ? fl__trials_read(e, err) : rv;
    rv = rv == FL_OK ? experiment_make_base(e) : rv;
    rv = rv == FL_OK ? fl__sweep_read(e, err) : rv;
    rv = rv == FL_OK ? fl__label_points(e, err) : rv;
    rv = rv == FL_OK ? experiment_check_points(e, err) : rv;
    rv = rv == FL_OK ? fl__label_check(e, err) : rv;
    return rv == FL_OK ? experiment_digest(e, e->doc, &e->fingerprint) : rv;
}

int fl_experiment_parse(const char *path, const void *text, size_t len, const char *const *set,
                        size_t n_set, struct fl_experiment **ret, struct fl_err *err)
{
    struct fl_experiment *e = calloc(1, sizeof(*e));
    int rv = e != NULL ? fl_conf_parse(path, text, len, &e->doc, err) : FL_ENOMEM;

    rv = rv == FL_OK ? experiment_read_all(e, path, set, n_set, err) : rv;
    if (rv != FL_OK) {
        fl_experiment_free(e);
        return rv;
    }
    *ret = e;
    return FL_OK;
}

int fl_experiment_load(const char *path, const char *const *set, size_t n_set,
                       struct fl_experiment **ret, struct fl_err *err)
{
    struct fl_experiment *e = calloc(1, sizeof(*e));
    int rv = e != NULL ? fl_conf_load(path, &e->doc, err) : FL_ENOMEM;

    rv = rv == FL_OK ? experiment_read_all(e, path, set, n_set, err) : rv;
    if (rv != FL_OK) {
        fl_experiment_free(e);
        return rv;
    }
    *ret = e;
    return FL_OK;
}

void fl_experiment_free(struct fl_experiment *e)
{
    if (e == NULL) {
        return;
    }
    fl__sweep_free(e);
    free(e->seeds);
    fl_conf_free(e->base);
    fl_conf_free(e->doc);
    free(e);
}

/* --- queries --- */

const char *fl_experiment_name(const struct fl_experiment *e)
{
    return e->name;
}

size_t fl_experiment_points(const struct fl_experiment *e)
{
    return e->n_points;
}

size_t fl_experiment_trials(const struct fl_experiment *e)
{
    return e->n_seeds;
}

uint64_t fl_experiment_seed(const struct fl_experiment *e, size_t trial)
{
    FL_REQUIRE(trial < e->n_seeds);
    return e->seeds[trial];
}

const char *fl_experiment_label(const struct fl_experiment *e, size_t point)
{
    FL_REQUIRE(point < e->n_points);
    return e->points[point].label;
}

const char *fl_experiment_slug(const struct fl_experiment *e, size_t point)
{
    FL_REQUIRE(point < e->n_points);
    return e->points[point].slug;
}

uint64_t fl_experiment_fingerprint(const struct fl_experiment *e)
{
    return e->fingerprint;
}
