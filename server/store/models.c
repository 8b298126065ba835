/*
 * Checkpoints: one safetensors file per round for the model and one for each state
 * vector of the aggregation. Which of them count is said by the database alone.
 */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/safetensors.h"
#include "server/store/store_p.h"

#define PREFIX "round-"
#define SUFFIX ".safetensors"

int fl_models_path(const char *dir, uint64_t round, const char *state_name, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/models/" PREFIX "%06" PRIu64 "%s%s" SUFFIX, dir, round,
                     state_name != NULL ? "." : "", state_name != NULL ? state_name : "");

    return n >= 0 && (size_t)n < size ? FL_OK : FL_ELIMIT;
}

static int save_one(const char *dir, uint64_t round, const char *state_name,
                    const struct fl_layout *layout, const float *values, bool sync,
                    struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char number[24];
    const struct fl_st_meta meta[] = {
        {"fl.round", number},
        {"fl.state", state_name},
    };

    if (fl_models_path(dir, round, state_name, path, sizeof(path)) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    (void)snprintf(number, sizeof(number), "%" PRIu64, round);
    return fl_st_save(path, layout, values, meta, state_name != NULL ? 2 : 1, sync, err);
}

int fl_models_save(const char *dir, uint64_t round, const struct fl_layout *layout,
                   const float *theta, const float *const *state, const char *const *state_names,
                   size_t n_state, bool sync, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    size_t i;
    int rv;

    if (fl_fs_join(folder, sizeof(folder), dir, "models") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    rv = fl_fs_mkdirs(folder, err);
    for (i = 0; rv == FL_OK && i < n_state; i++) {
        rv = save_one(dir, round, state_names[i], layout, state[i], sync, err);
    }
    return rv == FL_OK ? save_one(dir, round, NULL, layout, theta, sync, err) : rv;
}

/* A file that was copied over another round's would pass every other check. */
static int check_round(const char *path, uint64_t round, struct fl_err *err)
{
    char text[24] = "";
    uint64_t found = 0;
    int rv = fl_st_meta(path, "fl.round", text, sizeof(text), err);

    if (rv == FL_ENOENT && fl_fs_exists(path)) {
        return FL_OK; /* Made by another program: an initial model, say. */
    }
    if (rv == FL_OK && (fl_str_to_u64(text, &found) != FL_OK || found != round)) {
        rv = fl_err_set(err, FL_EFORMAT, "'%s' is of round '%s'", path, text);
    }
    return rv;
}

static int load_one(const char *dir, uint64_t round, const char *state_name,
                    const struct fl_layout *layout, float *values, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    int rv;

    if (fl_models_path(dir, round, state_name, path, sizeof(path)) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    if (!fl_fs_exists(path)) {
        return fl_err_set(err, FL_ENOENT, "checkpoint '%s' is missing", path);
    }
    rv = check_round(path, round, err);
    return rv == FL_OK ? fl_st_load(path, layout, values, err) : rv;
}

int fl_models_load(const char *dir, uint64_t round, const struct fl_layout *layout, float *theta,
                   float *const *state, const char *const *state_names, size_t n_state,
                   struct fl_err *err)
{
    size_t i;
    int rv = load_one(dir, round, NULL, layout, theta, err);

    for (i = 0; rv == FL_OK && i < n_state; i++) {
        rv = load_one(dir, round, state_names[i], layout, state[i], err);
        if (rv == FL_ENOENT) {
            /* The policy was changed, or this is the initial model. */
            (void)memset(state[i], 0, fl_layout_count(layout) * sizeof(*state[i]));
            rv = FL_OK;
        }
    }
    return rv;
}

/* --- retention --- */

struct rounds {
    uint64_t *list;
    size_t n;
    size_t cap;
};

/* "round-000012.momentum.safetensors", or with ".tmp" behind it, is of round 12. */
static bool round_of(const char *name, uint64_t *ret)
{
    char digits[24];
    size_t n;

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0) {
        return false;
    }
    name += strlen(PREFIX);
    n = strspn(name, "0123456789");
    if (n == 0 || n >= sizeof(digits) || name[n] != '.' || strstr(name + n, SUFFIX) == NULL) {
        return false;
    }
    (void)memcpy(digits, name, n);
    digits[n] = '\0';
    return fl_str_to_u64(digits, ret) == FL_OK;
}

static int add_round(struct rounds *r, uint64_t round)
{
    size_t i;

    for (i = 0; i < r->n; i++) {
        if (r->list[i] == round) {
            return FL_OK;
        }
    }
    if (r->n == r->cap) {
        size_t cap = r->cap == 0 ? 64 : r->cap * 2;
        uint64_t *list = realloc(r->list, cap * sizeof(*list));

        if (list == NULL) {
            return FL_ENOMEM;
        }
        r->list = list;
        r->cap = cap;
    }
    r->list[r->n++] = round;
    return FL_OK;
}

static int newest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

typedef int (*file_cb)(void *ctx, const char *folder, const char *name, uint64_t round);

static int each_file(const char *folder, file_cb cb, void *ctx, struct fl_err *err)
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    uint64_t round = 0;
    int rv = FL_OK;

    if (d == NULL) {
        rv = fl_err_from_errno(errno);
        return rv == FL_ENOENT
                   ? FL_OK
                   : fl_err_set(err, rv, "cannot open folder '%s': %s", folder, strerror(errno));
    }
    while (rv == FL_OK && (entry = readdir(d)) != NULL) {
        if (round_of(entry->d_name, &round)) {
            rv = cb(ctx, folder, entry->d_name, round);
            if (rv != FL_OK) {
                (void)fl_err_set(err, rv, "cannot remove '%s' in '%s': %s", entry->d_name, folder,
                                 fl_strerror(rv));
            }
        }
    }
    (void)closedir(d);
    return rv;
}

struct pruning {
    struct rounds rounds; /* not newer than committed */
    uint64_t committed;
    uint64_t oldest; /* the first that is kept whatever `every` says */
    uint32_t every;
};

static int collect(void *ctx, const char *folder, const char *name, uint64_t round)
{
    struct pruning *p = ctx;

    (void)folder;
    (void)name;
    return round <= p->committed ? add_round(&p->rounds, round) : FL_OK;
}

static int drop(void *ctx, const char *folder, const char *name, uint64_t round)
{
    const struct pruning *p = ctx;
    bool keep =
        round <= p->committed && (round >= p->oldest || (p->every != 0 && round % p->every == 0));
    char path[FL__STORE_PATH_MAX];

    if (keep) {
        return FL_OK;
    }
    return fl_fs_join(path, sizeof(path), folder, name) == FL_OK ? fl_fs_remove(path) : FL_ELIMIT;
}

int fl_models_prune(const char *dir, uint64_t committed, uint32_t keep, uint32_t every,
                    struct fl_err *err)
{
    struct pruning p = {.committed = committed, .every = every};
    char folder[FL__STORE_PATH_MAX];
    int rv;

    if (fl_fs_join(folder, sizeof(folder), dir, "models") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    rv = each_file(folder, collect, &p, err);
    if (rv == FL_OK && p.rounds.n > 0) {
        /* The newest one stays whatever the rule: without it there is no federation. */
        size_t last = keep < 1 ? 0 : keep - 1;

        qsort(p.rounds.list, p.rounds.n, sizeof(*p.rounds.list), newest_first);
        p.oldest = p.rounds.list[last < p.rounds.n ? last : p.rounds.n - 1];
    }
    rv = rv == FL_OK ? each_file(folder, drop, &p, err) : rv;
    free(p.rounds.list);
    return rv;
}
