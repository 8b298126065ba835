#include "server/store/model_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/grow.h"
#include "libfl/container/container.h"
#include "server/store/store_impl.h"

#define SUFFIX ".step"

/* The fields of a file; its one section has the moves. */
struct step_fields {
    uint8_t from[FL_DIGEST_SIZE], to[FL_DIGEST_SIZE];
    uint64_t round;
};

static const struct fl_container_kind step_kind = {
    .name = "step", .version = 1, .max_sections = 1, .max_fields = sizeof(struct step_fields)};

#define NAME "%06" PRIu64 SUFFIX

/* The round of a file's name; 0: another name. */
static uint64_t step_round_of(const char *name)
{
    char digits[24];
    char same[sizeof(digits) + sizeof(SUFFIX)];
    size_t n = strspn(name, "0123456789");
    uint64_t round = 0;

    if (n == 0 || n >= sizeof(digits)) {
        return 0;
    }
    (void)memcpy(digits, name, n);
    digits[n] = '\0';
    if (fl_str_to_u64(digits, &round) != FL_OK) {
        return 0;
    }
    (void)snprintf(same, sizeof(same), NAME, round); /* No second file of a round. */
    return strcmp(name, same) == 0 ? round : 0;
}

static int step_path(const char *dir, uint64_t round, char path[FL__STORE_PATH_MAX],
                     struct fl_err *err)
{
    int n = snprintf(path, FL__STORE_PATH_MAX, "%s/steps/" NAME, dir, round);

    return n > 0 && n < FL__STORE_PATH_MAX
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

int fl_model_steps_save(const char *dir, const struct fl_step *step, bool sync, struct fl_err *err)
{
    struct step_fields fields = {.round = step->round};
    const struct fl_container_part part = {"moves", fl_blob_data(step->moves),
                                           fl_blob_len(step->moves)};
    const struct fl_container_content content = {&fields, sizeof(fields), &part, 1};
    char path[FL__STORE_PATH_MAX];
    int rv = fl__store_join(path, dir, "steps", err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_mkdirs(path, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(fields.from, step->from, sizeof(fields.from));
    (void)memcpy(fields.to, step->to, sizeof(fields.to));
    rv = step_path(dir, step->round, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_container_replace(path, &step_kind, &content, sync, err);
}

/* FL_EFORMAT: damaged, or not of this model; errors of the disk. */
static int step_read(const char *path, const struct fl_layout *layout, struct fl_step *ret,
                     struct fl_err *err)
{
    struct fl_container file;
    struct step_fields fields;
    struct fl_blob *moves = NULL;
    int rv = fl_container_open(path, &step_kind, &file, err);

    *ret = (struct fl_step){.round = 0};
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_container_fields(&file.head, &fields, sizeof(fields));
    if (rv != FL_OK) {
        goto done;
    }
    if (file.head.n != 1) {
        rv = fl_err_set(err, FL_EFORMAT, "'%s' has no moves", path);
        goto done;
    }
    rv = fl_blob_create((size_t)file.head.sections[0].bytes, &moves);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_container_read(&file, 0, fl_blob_fill(moves), err);
    if (rv != FL_OK) {
        fl_blob_unref(moves);
        goto done;
    }
    *ret = (struct fl_step){.round = fields.round, .moves = moves};
    (void)memcpy(ret->from, fields.from, sizeof(ret->from));
    (void)memcpy(ret->to, fields.to, sizeof(ret->to));
    rv = fl_step_check(layout, ret, err);
    if (rv != FL_OK) {
        fl_step_done(ret);
    }
done:
    fl_container_close(&file);
    return rv;
}

/* --- loading --- */

struct step_rounds {
    uint64_t *list;
    size_t n, cap;
    uint64_t newest;
};

static int steps_note(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct step_rounds *s = ctx;
    uint64_t round = step_round_of(name);

    (void)folder;
    (void)err;
    if (round == 0 || round > s->newest) {
        return FL_OK;
    }
    if (fl_grow(&s->list, &s->cap, s->n, sizeof(*s->list)) != FL_OK) {
        return FL_ENOMEM;
    }
    s->list[s->n++] = round;
    return FL_OK;
}

static int steps_newest_first(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x < *y) - (*x > *y);
}

/*
 * Read the step that ends with the model `to`. FL_ENOENT: the file is of rounds that were abandoned
 * or rebuilt; errors of step_read().
 */
static int steps_read_one(const char *dir, const struct fl_layout *layout, uint64_t round,
                          const uint8_t *to, struct fl_step *ret, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    int rv = step_path(dir, round, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = step_read(path, layout, ret, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (memcmp(ret->to, to, FL_DIGEST_SIZE) != 0) {
        fl_step_done(ret);
        return FL_ENOENT;
    }
    return FL_OK;
}

/* Read the steps back from `newest` into steps[], newest first; returns their number. */
static size_t steps_read(const char *dir, const struct fl_layout *layout,
                         const struct step_rounds *rounds, const uint8_t *newest,
                         const struct fl_log *log, struct fl_step *steps)
{
    size_t n;

    for (n = 0; n < rounds->n; n++) {
        const uint8_t *to = n > 0 ? steps[n - 1].from : newest;
        struct fl_err err = {0};
        int rv = steps_read_one(dir, layout, rounds->list[n], to, &steps[n], &err);

        if (rv != FL_OK && rv != FL_ENOENT) {
            fl_log(log, FL_LOG_WARNING, "server",
                   "what changed up to round %" PRIu64
                   " cannot be read: clients that hold an older "
                   "model download a whole one: %s",
                   rounds->list[n], fl_err_text(&err, rv));
        }
        if (rv != FL_OK) {
            break;
        }
    }
    return n;
}

/* Takes the contents of steps[n], newest first; `*ret` is owned on an error, too. */
static int steps_link(struct fl_step *steps, size_t n, const uint8_t *newest,
                      struct fl_versions **ret)
{
    int rv = fl_versions_create(n > 0 ? steps[n - 1].from : newest, ret);

    if (rv != FL_OK) {
        return rv;
    }
    while (n > 0) {
        struct fl_versions *longer = NULL;

        rv = fl_versions_add(*ret, &steps[--n], &longer);
        if (rv != FL_OK) {
            return rv;
        }
        fl_versions_unref(*ret);
        *ret = longer;
    }
    return FL_OK;
}

static int steps_list(const char *dir, struct step_rounds *rounds, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    int rv = fl__store_join(folder, dir, "steps", err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_each(folder, steps_note, rounds, err);
    if (rounds->n > 0) {
        qsort(rounds->list, rounds->n, sizeof(*rounds->list), steps_newest_first);
    }
    return rv;
}

int fl_model_steps_load(const char *dir, const struct fl_layout *layout, uint64_t round,
                        const uint8_t newest[FL_DIGEST_SIZE], const struct fl_log *log,
                        struct fl_versions **ret)
{
    struct step_rounds rounds = {.newest = round};
    struct fl_step *steps = NULL;
    struct fl_err err = {0};
    size_t n = 0;
    size_t i;
    int rv = steps_list(dir, &rounds, &err);

    *ret = NULL;
    if (rv != FL_OK) {
        fl_log(log, FL_LOG_WARNING, "server", "folder '%s/steps' cannot be read: %s", dir,
               fl_err_text(&err, rv));
    }
    steps = calloc(rounds.n + 1, sizeof(*steps));
    if (steps == NULL) {
        rv = FL_ENOMEM;
        goto done;
    }
    n = steps_read(dir, layout, &rounds, newest, log, steps);
    rv = steps_link(steps, n, newest, ret);
    if (rv != FL_OK) {
        fl_versions_unref(*ret);
        *ret = NULL;
    }
done:
    for (i = 0; i < n; i++) {
        fl_step_done(&steps[i]);
    }
    free(steps);
    free(rounds.list);
    return rv;
}

/* --- removing --- */

static bool steps_is_outside(const void *ctx, const char *name)
{
    const uint64_t *span = ctx;
    uint64_t round = step_round_of(name);

    return round == 0 || round < span[0] || round > span[1];
}

int fl_model_steps_clean(const char *dir, uint64_t oldest, uint64_t newest, struct fl_err *err)
{
    const uint64_t span[] = {oldest, newest};
    char folder[FL__STORE_PATH_MAX];
    int rv = fl__store_join(folder, dir, "steps", err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_remove_each(folder, steps_is_outside, span, err);
}
