/* Checkpoints of rounds abandoned by a rollback: renamed to
 * "round-000004.safetensors.generation-1", listed and removed. Any thread, blocking. The records of
 * these rounds are in store_rollback.c. */

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

#define ABANDONED FL__MODELS_SUFFIX ".generation-"

/* The generation in a file name; false: not an abandoned checkpoint. */
static bool generation_of(const char *name, uint64_t *ret)
{
    const char *at = strstr(name, ABANDONED);

    return at != NULL && fl_str_to_u64(at + strlen(ABANDONED), ret) == FL_OK;
}

/* --- renaming --- */

struct abandoning {
    uint64_t after, generation;
    const uint64_t *kept;
    size_t n_kept;
};

static int abandon_one(void *ctx, const char *folder, const char *name, uint64_t round)
{
    const struct abandoning *a = ctx;
    char from[FL__STORE_PATH_MAX];
    char to[FL__STORE_PATH_MAX];
    size_t i = 0;
    int n;

    if (round <= a->after || !fl_str_ends_with(name, FL__MODELS_SUFFIX)) {
        return FL_OK;
    }
    while (i < a->n_kept && a->kept[i] != round) {
        i++;
    }
    if (fl_fs_join(from, sizeof(from), folder, name) != FL_OK) {
        return FL_ELIMIT;
    }
    if (i == a->n_kept) {
        return fl_fs_remove(from);
    }
    n = snprintf(to, sizeof(to), "%s.generation-%" PRIu64, from, a->generation);
    if (n < 0 || (size_t)n >= sizeof(to)) {
        return FL_ELIMIT;
    }
    return rename(from, to) == 0 ? FL_OK : fl_err_from_errno(errno);
}

int fl__models_abandon(const char *dir, uint64_t after, uint64_t generation, const uint64_t *kept,
                       size_t n_kept, struct fl_err *err)
{
    struct abandoning a = {after, generation, kept, n_kept};
    int rv = fl__models_each(dir, abandon_one, &a, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl__models_sync(dir, err);
}

/* --- listing and removing --- */

struct list {
    struct fl_abandoned *list;
    size_t n, cap;
};

static int list_abandoned(void *ctx, const char *folder, const char *name, uint64_t round)
{
    struct list *l = ctx;
    uint64_t generation = 0;
    int rv;

    (void)folder;
    /* Count the model file only, not its state vectors. */
    if (!generation_of(name, &generation) || strstr(name, ABANDONED) != strchr(name, '.')) {
        return FL_OK;
    }
    rv = fl_grow(&l->list, &l->cap, l->n, sizeof(*l->list));
    if (rv != FL_OK) {
        return rv;
    }
    l->list[l->n++] = (struct fl_abandoned){round, generation};
    return FL_OK;
}

static int compare_abandoned(const void *a, const void *b)
{
    const struct fl_abandoned *x = a;
    const struct fl_abandoned *y = b;

    return x->round != y->round ? (x->round < y->round ? -1 : 1)
                                : (x->generation > y->generation) - (x->generation < y->generation);
}

int fl_models_abandoned(const char *dir, struct fl_abandoned **ret, size_t *ret_n,
                        struct fl_err *err)
{
    struct list l = {.n = 0};
    int rv = fl__models_each(dir, list_abandoned, &l, err);
    if (rv != FL_OK) {
        free(l.list);
        return rv;
    }
    if (l.n > 0) {
        qsort(l.list, l.n, sizeof(*l.list), compare_abandoned);
    }
    *ret = l.list;
    *ret_n = l.n;
    return FL_OK;
}

struct releasing {
    uint64_t round;
    size_t n;
};

static int release_one(void *ctx, const char *folder, const char *name, uint64_t round)
{
    struct releasing *r = ctx;
    char path[FL__STORE_PATH_MAX];
    uint64_t generation = 0;

    if (round != r->round || !generation_of(name, &generation)) {
        return FL_OK;
    }
    r->n++;
    return fl_fs_join(path, sizeof(path), folder, name) == FL_OK ? fl_fs_remove(path) : FL_ELIMIT;
}

int fl_models_release_abandoned(const char *dir, uint64_t round, struct fl_err *err)
{
    struct releasing r = {.round = round};
    int rv = fl__models_each(dir, release_one, &r, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (r.n == 0) {
        return fl_err_set(err, FL_ENOENT, "no abandoned checkpoint of round %" PRIu64 " exists",
                          round);
    }
    return FL_OK;
}
