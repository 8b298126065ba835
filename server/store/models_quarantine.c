/* Listing checkpoints, the layout of the newest one, and quarantining unusable ones as "….bad-N".
 * Any thread, blocking. Whether a checkpoint is usable is decided by fl_models_load(). */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "server/store/models_impl.h"
#include "server/store/store_impl.h"

#define QUARANTINE_MARK ".bad-"

/* --- listing --- */

struct list {
    uint64_t *rounds;
    size_t n, cap;
};

static int list_model(void *ctx, const char *folder, const char *name, uint64_t round)
{
    struct list *l = ctx;
    const char *dot = strchr(name, '.');
    int rv;

    (void)folder;
    /* Only "round-000012.safetensors": no state vector's name, and no further suffix. */
    if (dot == NULL || strcmp(dot, FL__MODELS_SUFFIX) != 0) {
        return FL_OK;
    }
    rv = fl_grow(&l->rounds, &l->cap, l->n, sizeof(*l->rounds));
    if (rv != FL_OK) {
        return rv;
    }
    l->rounds[l->n++] = round;
    return FL_OK;
}

static int list_newest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

int fl_models_list(const char *dir, uint64_t **ret, size_t *ret_n, struct fl_err *err)
{
    struct list l = {0};
    int rv = fl__models_each(dir, list_model, &l, err);
    if (rv != FL_OK) {
        free(l.rounds);
        return rv;
    }
    if (l.n > 0) {
        qsort(l.rounds, l.n, sizeof(*l.rounds), list_newest_first);
    }
    *ret = l.rounds;
    *ret_n = l.n;
    return FL_OK;
}

int fl_models_layout(const char *dir, struct fl_layout **ret, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    uint64_t *rounds = NULL;
    size_t n = 0;
    size_t i;
    int rv = fl_models_list(dir, &rounds, &n, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        rv = fl_models_path(dir, rounds[i], NULL, path, sizeof(path));
        if (rv != FL_OK) {
            goto done;
        }
        rv = fl_fs_exists(path) ? fl_st_layout(path, ret, err) : FL_EFORMAT;
        if (rv != FL_EFORMAT) { /* Missing or damaged: try an older file. */
            goto done;
        }
    }
    rv = fl_err_set(err, FL_ENOENT, "'%s/models' has no model", dir);
done:
    free(rounds);
    return rv;
}

/* --- quarantine --- */

struct quarantine {
    uint64_t round;
    uint64_t last; /* highest number in use */
};

/* The number after ".bad-"; false: not a quarantined file. */
static bool number_of(const char *name, uint64_t *ret)
{
    const char *at = strstr(name, QUARANTINE_MARK);

    return at != NULL && fl_str_to_u64(at + strlen(QUARANTINE_MARK), ret) == FL_OK;
}

static int find_last(void *ctx, const char *folder, const char *name, uint64_t round)
{
    struct quarantine *a = ctx;
    uint64_t number = 0;

    (void)folder;
    (void)round;
    if (number_of(name, &number) && number > a->last) {
        a->last = number;
    }
    return FL_OK;
}

static int rename_one(void *ctx, const char *folder, const char *name, uint64_t round)
{
    struct quarantine *a = ctx;
    char from[FL__STORE_PATH_MAX];
    char to[FL__STORE_PATH_MAX];
    size_t len = strlen(name);
    size_t tail = strlen(FL__MODELS_SUFFIX);
    int n;

    if (round != a->round || len < tail || strcmp(name + len - tail, FL__MODELS_SUFFIX) != 0) {
        return FL_OK;
    }
    n = snprintf(to, sizeof(to), "%s/%s" QUARANTINE_MARK "%" PRIu64, folder, name, a->last + 1);
    if (n < 0 || (size_t)n >= sizeof(to) || fl_fs_join(from, sizeof(from), folder, name) != FL_OK) {
        return FL_ELIMIT;
    }
    if (rename(from, to) != 0) {
        return fl_err_from_errno(errno);
    }
    a->last++;
    return FL_OK;
}

static int drop_oldest(void *ctx, const char *folder, const char *name, uint64_t round)
{
    const struct quarantine *a = ctx;
    char path[FL__STORE_PATH_MAX];
    uint64_t number = 0;

    (void)round;
    if (!number_of(name, &number) || number + FL_MODELS_QUARANTINED > a->last) {
        return FL_OK;
    }
    return fl_fs_join(path, sizeof(path), folder, name) == FL_OK ? fl_fs_remove(path) : FL_ELIMIT;
}

int fl_models_quarantine(const char *dir, uint64_t round, struct fl_err *err)
{
    static const fl__models_cb steps[] = {find_last, rename_one, drop_oldest};
    struct quarantine a = {.round = round};
    size_t i;
    int rv;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        rv = fl__models_each(dir, steps[i], &a, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl__models_sync(dir, err);
}
