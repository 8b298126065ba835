/*
 * Checkpoints: one safetensors file per round for the model and one for each state vector of the
 * aggregator: saving, loading, pruning. Any thread, blocking. Which checkpoints are committed is
 * decided by the database (store.c), not here.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "libfl/model/safetensors.h"
#include "libfl/num/vec.h"
#include "server/store/models_impl.h"
#include "server/store/store_impl.h"

#define PREFIX FL__MODELS_PREFIX
#define SUFFIX FL__MODELS_SUFFIX
#define MADE   "fl.made"

int fl_models_path(const char *dir, uint64_t round, const char *state_name, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/models/" PREFIX "%06" PRIu64 "%s%s" SUFFIX, dir, round,
                     state_name != NULL ? "." : "", state_name != NULL ? state_name : "");

    return n >= 0 && (size_t)n < size ? FL_OK : FL_ELIMIT;
}

int fl__models_describe(const struct fl_models_checkpoint *c, const char *state_name,
                        const char *states, const char *kept, struct fl__models_one *ret,
                        struct fl_err *err)
{
    const struct fl_models_tag *tag = c->tag;

    if (fl_models_path(c->dir, c->round, state_name, ret->path, sizeof(ret->path)) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", c->dir);
    }
    (void)snprintf(ret->round, sizeof(ret->round), "%" PRIu64, c->round);
    ret->n = 0;
    ret->meta[ret->n++] = (struct fl_st_meta){"fl.round", ret->round};
    ret->meta[ret->n++] = (struct fl_st_meta){FL__MODELS_DATABASE_KEY, tag->database};
    ret->meta[ret->n++] = state_name != NULL ? (struct fl_st_meta){"fl.state", state_name}
                                             : (struct fl_st_meta){FL__MODELS_STATES_KEY, states};
    if (tag->made != NULL) {
        ret->meta[ret->n++] = (struct fl_st_meta){MADE, tag->made};
    }
    if (state_name == NULL && tag->personal_models != NULL) {
        ret->meta[ret->n++] = (struct fl_st_meta){FL__MODELS_MIXED_KEY, tag->personal_models};
    }
    if (state_name == NULL && tag->keeps) {
        (void)snprintf(ret->kept, sizeof(ret->kept), "%s", kept);
        ret->meta[ret->n++] = (struct fl_st_meta){FL__MODELS_KEPT_KEY, ret->kept};
    }
    return FL_OK;
}

int fl__models_put_state(const char *name, const char *checksum, char *states, size_t size,
                         struct fl_err *err)
{
    size_t used = strlen(states);
    int n = snprintf(states + used, size - used, "%s%s:%s", used > 0 ? " " : "", name, checksum);

    return n >= 0 && (size_t)n < size - used
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "too many state vectors for one checkpoint");
}

int fl__models_add_state(const char *dir, uint64_t round, const char *name, char *states,
                         size_t size, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char checksum[FL_CHECKSUM_TEXT];
    int rv = fl_models_path(dir, round, name, path, sizeof(path));

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_st_meta(path, "fl.checksum", checksum, sizeof(checksum), err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__models_put_state(name, checksum, states, size, err);
}

int fl__models_folder(const char *dir, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    int rv = fl__store_join(folder, dir, "models", err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_mkdirs(folder, err);
}

static int save_one(const struct fl_models_checkpoint *c, const char *state_name,
                    const char *states, const char *kept, const float *values, bool sync,
                    struct fl_err *err)
{
    struct fl__models_one one;
    int rv = fl__models_describe(c, state_name, states, kept, &one, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_st_save_sealed(one.path, c->layout, values, one.meta, one.n, sync, err);
}

int fl_models_save(const struct fl_models_checkpoint *c, const float *theta,
                   const float *const *state, bool sync, struct fl_err *err)
{
    char states[FL__MODELS_STATES_MAX] = "";
    char kept[FL_CHECKSUM_TEXT] = FL__MODELS_NO_KEPT;
    size_t i;
    int rv = fl__models_folder(c->dir, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < c->n_state; i++) {
        rv = save_one(c, c->state_names[i], NULL, NULL, state[i], sync, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl__models_add_state(c->dir, c->round, c->state_names[i], states, sizeof(states), err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl__models_save_kept(c, sync, kept, err);
    if (rv != FL_OK) {
        return rv;
    }
    return save_one(c, NULL, states, kept, theta, sync, err);
}

/* The metadata of a checkpoint file; a missing entry is empty. */
struct checkpoint_meta {
    char round[24], database[FL_STORE_ID_TEXT], checksum[FL_CHECKSUM_TEXT],
        states[FL__MODELS_STATES_MAX];
    bool checked, has_states;
    struct fl_models_found found;
};

static int check_meta(const char *path, const struct fl_models_checkpoint *c,
                      const struct checkpoint_meta *meta, bool is_model, struct fl_err *err)
{
    uint64_t found = 0;

    if (!meta->checked || meta->round[0] == '\0' || meta->database[0] == '\0' ||
        meta->has_states != is_model)
    {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is damaged: its %s is missing, which this server writes into every "
                          "checkpoint",
                          path,
                          !meta->checked              ? "checksum"
                          : meta->round[0] == '\0'    ? "round"
                          : meta->database[0] == '\0' ? "database"
                                                      : "list of state vectors");
    }
    /* A file copied over the file of another round would pass every other check. */
    if (fl_str_to_u64(meta->round, &found) != FL_OK || found != c->round) {
        return fl_err_set(err, FL_EFORMAT, "'%s' is of round '%s'", path, meta->round);
    }
    if (strcmp(meta->database, c->tag->database) != 0) {
        return fl_err_set(err, FL_ESTATE,
                          "'%s' was written by another state database (%s, this one is %s)", path,
                          meta->database, c->tag->database);
    }
    return FL_OK;
}

static int load_one(const struct fl_models_checkpoint *c, const char *state_name, float *values,
                    struct checkpoint_meta *meta, struct fl_err *err)
{
    struct fl_st_field fields[] = {
        {.key = "fl.round", .out = meta->round, .size = sizeof(meta->round)},
        {.key = FL__MODELS_DATABASE_KEY, .out = meta->database, .size = sizeof(meta->database)},
        {.key = "fl.checksum", .out = meta->checksum, .size = sizeof(meta->checksum)},
        {.key = FL__MODELS_STATES_KEY, .out = meta->states, .size = sizeof(meta->states)},
        {.key = MADE, .out = meta->found.made, .size = sizeof(meta->found.made)},
        {.key = FL__MODELS_MIXED_KEY,
         .out = meta->found.personal_models,
         .size = sizeof(meta->found.personal_models)},
    };
    char path[FL__STORE_PATH_MAX];
    int rv;

    if (fl_models_path(c->dir, c->round, state_name, path, sizeof(path)) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", c->dir);
    }
    rv = fl_st_load_fields(path, c->layout, values, fields, sizeof(fields) / sizeof(fields[0]),
                           &meta->checked, err);
    if (rv == FL_ENOENT) {
        return fl_err_set(err, rv, "checkpoint '%s' is missing", path);
    }
    if (rv != FL_OK) {
        return rv;
    }
    meta->has_states = fields[3].found;
    rv = check_meta(path, c, meta, state_name == NULL, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!fl_vec_finite(values, fl_layout_count(c->layout))) {
        return fl_err_set(err, FL_EFORMAT, "'%s' holds a value that is not finite", path);
    }
    return FL_OK;
}

/* The checksum of a state vector in the model's metadata; false: not in the checkpoint. */
static bool find_state(const char *states, const char *name, char out[FL_CHECKSUM_TEXT])
{
    size_t len = strlen(name);
    const char *at = states;

    while (*at != '\0') {
        size_t n = strcspn(at, " ");

        if (n == len + FL_CHECKSUM_TEXT && strncmp(at, name, len) == 0 && at[len] == ':') {
            (void)memcpy(out, at + len + 1, FL_CHECKSUM_TEXT - 1);
            out[FL_CHECKSUM_TEXT - 1] = '\0';
            return true;
        }
        at += n + strspn(at + n, " ");
    }
    return false;
}

/* `*ret_lacks`: the vector is not in the checkpoint and was set to zero. */
static int load_state(const struct fl_models_checkpoint *c, const char *name, float *values,
                      const struct checkpoint_meta *model, bool *ret_lacks, struct fl_err *err)
{
    char want[FL_CHECKSUM_TEXT] = "";
    bool part = find_state(model->states, name, want);
    struct checkpoint_meta meta = {.has_states = false};
    int rv;

    *ret_lacks = !part;
    if (!part) {
        (void)memset(values, 0, fl_layout_count(c->layout) * sizeof(*values));
        return FL_OK;
    }
    rv = load_one(c, name, values, &meta, err);
    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_EFORMAT : rv; /* The message names the missing file. */
    }
    if (strcmp(want, meta.checksum) != 0) {
        return fl_err_set(err, FL_EFORMAT,
                          "the '%s' of round %" PRIu64
                          " does not belong to the model of that round: its checksum differs",
                          name, c->round);
    }
    return FL_OK;
}

int fl_models_load(const struct fl_models_checkpoint *c, float *theta, float *const *state,
                   struct fl_models_found *ret, struct fl_err *err)
{
    struct checkpoint_meta meta = {.has_states = false};
    size_t i;
    int rv = load_one(c, NULL, theta, &meta, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < c->n_state; i++) {
        bool lacks = false;

        rv = load_state(c, c->state_names[i], state[i], &meta, &lacks, err);
        if (rv != FL_OK) {
            return rv;
        }
        meta.found.lacks |= (uint32_t)lacks << i;
    }
    *ret = meta.found;
    return FL_OK;
}

/* --- retention --- */

struct rounds {
    uint64_t *list;
    size_t n;
    size_t cap;
};

bool fl__models_round_of(const char *name, uint64_t *ret)
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
    int rv;

    for (i = 0; i < r->n; i++) {
        if (r->list[i] == round) {
            return FL_OK;
        }
    }
    rv = fl_grow(&r->list, &r->cap, r->n, sizeof(*r->list));
    if (rv != FL_OK) {
        return rv;
    }
    r->list[r->n++] = round;
    return FL_OK;
}

static int compare_rounds_down(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

struct each {
    fl__models_cb cb;
    void *ctx;
};

static int each_round(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    const struct each *each = ctx;
    uint64_t round = 0;
    int rv = fl__models_round_of(name, &round) ? each->cb(each->ctx, folder, name, round) : FL_OK;

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot change '%s' in '%s': %s", name, folder, fl_strerror(rv));
    }
    return FL_OK;
}

int fl__models_each(const char *dir, fl__models_cb cb, void *ctx, struct fl_err *err)
{
    struct each each = {cb, ctx};
    char folder[FL__STORE_PATH_MAX];
    int rv = fl__store_join(folder, dir, "models", err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_each(folder, each_round, &each, err);
}

int fl__models_sync(const char *dir, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    int rv = fl__store_join(folder, dir, "models", err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_exists(folder) ? fl_fs_sync_dir(folder, err) : FL_OK;
}

struct pruning {
    const struct fl_models_tag *tag;
    struct rounds rounds; /* not newer than committed */
    uint64_t committed;
    uint64_t oldest; /* this round and newer ones are kept regardless of `every` */
    uint32_t every;
};

static int collect_committed(void *ctx, const char *folder, const char *name, uint64_t round)
{
    struct pruning *p = ctx;

    (void)folder;
    return round <= p->committed && fl_str_ends_with(name, SUFFIX) ? add_round(&p->rounds, round)
                                                                   : FL_OK;
}

/* Was the file written by this database? An unreadable file or one without an id is kept. */
static bool is_own_checkpoint(const char *path, const struct fl_models_tag *tag)
{
    char database[FL_STORE_ID_TEXT] = "";

    return fl_st_meta(path, FL__MODELS_DATABASE_KEY, database, sizeof(database), NULL) == FL_OK &&
           strcmp(database, tag->database) == 0;
}

static bool is_pinned(const struct fl_models_tag *tag, uint64_t round)
{
    size_t i = 0;

    while (i < tag->n_held && tag->held[i] != round) {
        i++;
    }
    return i < tag->n_held;
}

static int prune_checkpoint(void *ctx, const char *folder, const char *name, uint64_t round)
{
    const struct pruning *p = ctx;
    bool torn = fl_str_ends_with(name, SUFFIX ".tmp");
    bool keep =
        !torn && (!fl_str_ends_with(name, SUFFIX) || round > p->committed || round >= p->oldest ||
                  (p->every != 0 && round % p->every == 0) || is_pinned(p->tag, round));
    char path[FL__STORE_PATH_MAX];

    if (keep) {
        return FL_OK;
    }
    if (fl_fs_join(path, sizeof(path), folder, name) != FL_OK) {
        return FL_ELIMIT;
    }
    return torn || is_own_checkpoint(path, p->tag) ? fl_fs_remove(path) : FL_OK;
}

int fl_models_prune(const char *dir, const struct fl_models_tag *tag, uint64_t committed,
                    uint32_t keep, uint32_t every, struct fl_err *err)
{
    struct pruning p = {.tag = tag, .committed = committed, .every = every};
    int rv = fl__models_each(dir, collect_committed, &p, err);

    if (rv != FL_OK) {
        goto done;
    }
    if (p.rounds.n > 0) {
        /* The newest checkpoint is always kept: the federation resumes from it. */
        size_t last = keep < 1 ? 0 : keep - 1;

        qsort(p.rounds.list, p.rounds.n, sizeof(*p.rounds.list), compare_rounds_down);
        p.oldest = p.rounds.list[last < p.rounds.n ? last : p.rounds.n - 1];
    }
    rv = fl__models_each(dir, prune_checkpoint, &p, err);
done:
    free(p.rounds.list);
    return rv;
}
