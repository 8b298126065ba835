/* What made a folder of results, and whether rounds that were computed again are the same. One
   thread. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "libfl/json/json.h"
#include "tools/fl_sim/results/results_impl.h"
#include "tools/fl_sim/results/version.h"

/* Of a file of rounds; only its beginning is compared. */
#define ROUNDS_MAX ((size_t)1 << 30)
/* Texts of values in a message. */
#define VALUE_MAX 60

static const char *build_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static bool build_is(const json_t *object, const char *key, const char *text)
{
    return strcmp(build_text(object, key), text != NULL ? text : "") == 0;
}

int fl_results_find_build(const char *dir, const struct fl_run_info *info, struct fl_run_build *ret,
                          struct fl_err *err)
{
    json_t *root = NULL;
    const json_t *runs;
    const json_t *last;
    const json_t *machine;
    int rv = fl_run_json_read(dir, &root, err);

    *ret = (struct fl_run_build){.now = FL_GIT_DESCRIBE};
    if (rv == FL_ENOENT) {
        return FL_OK;
    }
    if (rv != FL_OK) {
        return rv;
    }
    runs = json_object_get(root, "runs");
    last = json_array_get(runs, json_array_size(runs) - 1);
    machine = json_object_get(last, "machine");
    (void)snprintf(ret->before, sizeof(ret->before), "%s", build_text(last, "git"));
    ret->differs = strcmp(ret->before, FL_GIT_DESCRIBE) != 0 ||
                   !build_is(machine, "kernels", info->kernels) ||
                   !build_is(machine, "blas_kernel", info->blas_kernel);
    json_decref(root);
    return FL_OK;
}

int fl_results_find_rounds(const char *dir, const char *label, uint64_t seed, char *out,
                           size_t size, struct fl_err *err)
{
    json_t *root = NULL;
    const json_t *point;
    struct stat st;
    size_t i;
    int rv = fl_run_json_read(dir, &root, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = FL_ENOENT;
    json_array_foreach(json_object_get(root, "points"), i, point)
    {
        if (strcmp(build_text(point, "label"), label) == 0) {
            int n = snprintf(out, size, "%s/%s/seed-%" PRIu64 "/rounds.jsonl", dir,
                             build_text(point, "point"), seed);

            rv = n >= 0 && (size_t)n < size && stat(out, &st) == 0 && st.st_size > 0 ? FL_OK
                                                                                     : FL_ENOENT;
            break;
        }
    }
    json_decref(root);
    return rv;
}

/* --- rounds --- */

static void build_value(const json_t *value, char out[VALUE_MAX])
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));

    (void)snprintf(out, VALUE_MAX, "%s", text != NULL ? text : "?");
    free(text);
}

/* FL_EEXIST: a figure that both rounds have differs. */
static int build_same_round(const json_t *old, json_t *again, struct fl_err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(again, key, value)
    {
        const json_t *before = json_object_get(old, key);
        char a[VALUE_MAX];
        char b[VALUE_MAX];

        if (before == NULL || json_equal(before, value)) {
            continue;
        }
        build_value(before, a);
        build_value(value, b);
        return fl_err_set(err, FL_EEXIST, "%s of round %lld was %s and is %s", key,
                          json_integer_value(json_object_get(again, "round")), a, b);
    }
    return FL_OK;
}

/* The next line as an object; NULL: there is no whole line. */
static json_t *build_next_round(const struct fl_buf *text, size_t *at)
{
    const char *begin = (const char *)text->data + *at;
    const char *end = *at < text->len ? memchr(begin, '\n', text->len - *at) : NULL;

    if (end == NULL) {
        return NULL;
    }
    *at += (size_t)(end - begin) + 1;
    return json_loadb(begin, (size_t)(end - begin), 0, NULL);
}

int fl_results_same_rounds(const char *path, const char *again, struct fl_err *err)
{
    struct fl_buf texts[2];
    json_t *rows[2];
    size_t at[2] = {0, 0};
    int rv = fl_fs_read(path, ROUNDS_MAX, &texts[0], err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_read(again, ROUNDS_MAX, &texts[1], err);
    if (rv != FL_OK) {
        fl_buf_done(&texts[0]);
        return rv;
    }
    do {
        rows[0] = build_next_round(&texts[0], &at[0]);
        rows[1] = build_next_round(&texts[1], &at[1]);
        if (rows[0] != NULL && rows[1] != NULL) {
            rv = build_same_round(rows[0], rows[1], err);
        }
        json_decref(rows[0]);
        json_decref(rows[1]);
    } while (rv == FL_OK && rows[0] != NULL && rows[1] != NULL);
    fl_buf_done(&texts[0]);
    fl_buf_done(&texts[1]);
    return rv;
}
