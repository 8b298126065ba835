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

static int experiment_check_root(const struct fl_experiment *e, struct fl_err *err)
{
    static const char *const known[] = {"name",  "server", "client", "data",  "attackers",
                                        "world", "stop",   "trials", "sweep", NULL};
    static const char *const required[] = {"server", "data"};
    const struct fl_conf_node *root = fl_conf_root(e->doc);
    size_t i;
    int rv = fl_conf_only(root, known, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        const struct fl_conf_node *node = fl_conf_get(root, required[i]);

        if (node == NULL || (fl_conf_text(node) != NULL && fl_conf_text(node)[0] == '\0')) {
            return fl_conf_error(node != NULL ? node : root, err,
                                 "the required key '%s' is missing (%s)", required[i],
                                 i == 0 ? "the keys of fl-serverd's file" : "the clients' data");
        }
    }
    if (fl_conf_kind(fl_conf_get(root, "server")) != FL_CONF_MAP) {
        return fl_conf_error(fl_conf_get(root, "server"), err,
                             "expected a section of 'key: value' lines");
    }
    return FL_OK;
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
static int experiment_make_base(struct fl_experiment *e, struct fl_err *err)
{
    static const char *const own[] = {"name", "trials", "sweep", "server.seed"};
    size_t i;
    int rv = fl_conf_copy(e->doc, &e->base);

    (void)err;
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        fl_conf_drop(e->base, own[i]);
    }
    return FL_OK;
}

/* --- canonical texts --- */

static int experiment_put_seeds(const struct fl_experiment *e, struct fl_conf_doc *doc)
{
    struct fl_buf text;
    struct fl_writer w = {.out = &text};
    size_t i = 1;
    int rv;

    while (i < e->n_seeds && e->seeds[i] == e->seeds[i - 1] + 1) {
        i++;
    }
    fl_buf_init(&text, TEXT_MAX);
    if (i == e->n_seeds) {
        fl_writer_printf(&w, "trials={count: %zu, seed: %" PRIu64 "}", e->n_seeds, e->seeds[0]);
    } else {
        fl_writer_printf(&w, "trials={seeds: [%" PRIu64, e->seeds[0]);
        for (i = 1; i < e->n_seeds; i++) {
            fl_writer_printf(&w, ", %" PRIu64, e->seeds[i]);
        }
        fl_writer_printf(&w, "]}");
    }
    fl_writer_add(&w, "", 1);
    rv = w.code;
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_conf_assign(doc, "trials", (const char *)text.data, NULL);
done:
    fl_buf_done(&text);
    return rv;
}

/* The entries of `from` in a canonical order, independent of the file's, with the seeds written
   out. */
static int experiment_canonical(const struct fl_experiment *e, const struct fl_conf_doc *from,
                                bool named, struct fl_buf *out)
{
    static const char *const keys[] = {"server", "client", "data", "attackers",
                                       "world",  "stop",   "sweep"};
    struct fl_conf_doc *doc = NULL;
    char name[FL_NAME_MAX + sizeof("name=\"\"")];
    size_t i;
    int rv = fl_conf_parse("", "{}", 2, &doc, NULL);

    if (rv != FL_OK) {
        goto done;
    }
    if (named) {
        (void)snprintf(name, sizeof(name), "name=\"%s\"", e->name);
        rv = fl_conf_assign(doc, "", name, NULL);
        if (rv != FL_OK) {
            goto done;
        }
    }
    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct fl_conf_node *node = fl_conf_get(fl_conf_root(from), keys[i]);

        rv = node != NULL ? fl_conf_put(doc, keys[i], node, NULL) : FL_OK;
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = experiment_put_seeds(e, doc);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_conf_write(fl_conf_root(doc), out);
done:
    fl_conf_free(doc);
    return rv;
}

int fl_experiment_text(const struct fl_experiment *e, size_t point, struct fl_buf *out)
{
    struct fl_conf_doc *doc = NULL;
    int rv;

    FL_REQUIRE(point < e->n_points);
    rv = fl__point_doc(e, point, &doc, NULL);
    if (rv != FL_OK) {
        goto done;
    }
    rv = experiment_canonical(e, doc, /* named= */ true, out);
done:
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
    if (rv != FL_OK) {
        goto done;
    }
    *ret = fl_checksum(text.data, text.len);
done:
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

static int experiment_check_points(struct fl_experiment *e, struct fl_err *err)
{
    struct fl_experiment_point *point;
    struct fl_conf_doc *doc;
    struct sum *sums = calloc(e->n_points, sizeof(*sums));
    size_t i;
    int rv;

    if (sums == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < e->n_points; i++) {
        point = NULL;
        doc = NULL;
        rv = fl_experiment_open(e, i, 0, &point, err);
        if (rv != FL_OK) {
            goto done;
        }
        fl_experiment_close(point);
        rv = fl__point_doc(e, i, &doc, err);
        if (rv != FL_OK) {
            goto done;
        }
        sums[i].point = i;
        rv = experiment_digest(e, doc, &sums[i].value);
        fl_conf_free(doc);
        if (rv != FL_OK) {
            goto done;
        }
    }
    qsort(sums, e->n_points, sizeof(*sums), experiment_by_value);
    for (i = 1; i < e->n_points; i++) {
        size_t a = sums[i - 1].point;
        size_t b = sums[i].point;

        if (sums[i].value == sums[i - 1].value) {
            rv = fl_conf_error(experiment_duplicate_value(&e->points[a], &e->points[b]), err,
                               "points %zu and %zu are equal ('%.80s')", a + 1, b + 1,
                               e->points[b].label);
            goto done;
        }
    }
    rv = FL_OK;
done:
    free(sums);
    return rv;
}

/* Takes `doc`, also on an error. */
static int experiment_read(struct fl_conf_doc *doc, const char *path, const char *const *set,
                           size_t n_set, struct fl_experiment **ret, struct fl_err *err)
{
    static int (*const steps[])(struct fl_experiment *, struct fl_err *) = {
        fl__trials_read,  experiment_make_base,    fl__sweep_read,
        fl__label_points, experiment_check_points, fl__label_check};
    struct fl_experiment *e = calloc(1, sizeof(*e));
    size_t i;
    int rv;

    if (e == NULL) {
        fl_conf_free(doc);
        return FL_ENOMEM;
    }
    e->doc = doc;
    for (i = 0; i < n_set; i++) {
        rv = fl_conf_assign(doc, "--set", set[i], err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = experiment_check_root(e, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = experiment_take_name(e, path, err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        rv = steps[i](e, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = experiment_digest(e, e->doc, &e->fingerprint);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = e;
    return FL_OK;
fail:
    fl_experiment_free(e);
    return rv;
}

int fl_experiment_parse(const char *path, const void *text, size_t len, const char *const *set,
                        size_t n_set, struct fl_experiment **ret, struct fl_err *err)
{
    struct fl_conf_doc *doc = NULL;
    int rv = fl_conf_parse(path, text, len, &doc, err);

    if (rv != FL_OK) {
        return rv;
    }
    return experiment_read(doc, path, set, n_set, ret, err);
}

int fl_experiment_load(const char *path, const char *const *set, size_t n_set,
                       struct fl_experiment **ret, struct fl_err *err)
{
    struct fl_conf_doc *doc = NULL;
    int rv = fl_conf_load(path, &doc, err);

    if (rv != FL_OK) {
        return rv;
    }
    return experiment_read(doc, path, set, n_set, ret, err);
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
