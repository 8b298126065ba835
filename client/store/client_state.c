/*
 * The client state: decides which values of which round are committed or pending, and commits,
 * discards or forgets them by the round that the server aggregated. Runs on the training thread;
 * bind and unbind run while it is idle. The file formats are in client_state_file.c.
 */

#include "client/store/client_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/store/client_state_impl.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"

struct fl_client_state {
    char *dir;         /* owned; NULL: no folder */
    bool sync;         /* fsync what is written */
    bool loaded;       /* `index` was read from disk */
    bool layout_saved; /* the layout of the current setup is on disk */
    const struct fl_log *log;
    const struct fl_layout *layout; /* NULL: not bound */
    struct fl_client_state_spec wanted[FL_CLIENT_STATE_MAX];
    size_t n_wanted;
    uint64_t epoch; /* of the last task; 0: not sent by the server */
    struct fl__client_state_index index;
};

static bool state_same_round(struct fl_round_key a, struct fl_round_key b)
{
    return a.round == b.round && a.attempt == b.attempt;
}

static struct fl__client_state_block state_block(const struct fl_client_state *k, const char *name,
                                                 struct fl_round_key key)
{
    size_t floats = fl_layout_count(k->layout);
    size_t i;

    for (i = 0; i < k->n_wanted; i++) {
        if (k->wanted[i].floats > 0 && strcmp(k->wanted[i].name, name) == 0) {
            floats = k->wanted[i].floats;
        }
    }
    return (struct fl__client_state_block){
        .name = name, .key = key, .layout = fl_layout_digest(k->layout), .n_floats = floats};
}

/* --- opening and binding --- */

static int state_set_dir(struct fl_client_state *k, const char *state_dir, struct fl_err *err)
{
    char path[FL__CLIENT_STATE_PATH];

    if (fl_fs_join(path, sizeof(path), state_dir, "keep") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
    }
    k->dir = fl_str_dup(path);
    return k->dir != NULL ? FL_OK : FL_ENOMEM;
}

/* Read the index from disk. */
static int state_load_index(struct fl_client_state *k, struct fl_err *err)
{
    struct fl_err inner = {0};
    int rv = fl__client_state_index_read(k->dir, &k->index, &inner);

    switch (rv) {
    case FL_OK:
        fl__client_state_sweep(k->dir, &k->index);
        break;
    case FL_ENOENT:
        break;
    case FL_EFORMAT:
        fl_log(k->log, FL_LOG_WARNING, "keep",
               "%s: all client state is lost, continuing without it", inner.msg);
        break;
    default:
        return fl_err_set(err, rv, "%s", fl_err_text(&inner, rv));
    }
    k->loaded = true;
    return FL_OK;
}

int fl_client_state_open(const char *state_dir, const struct fl_log *log,
                         struct fl_client_state **ret, struct fl_err *err)
{
    struct fl_client_state *k = NULL;
    int rv = fl_client_state_open_scratch(state_dir, log, &k, err);

    if (rv != FL_OK) {
        return rv;
    }
    k->sync = true;
    rv = state_load_index(k, err);
    if (rv != FL_OK) {
        fl_client_state_free(k);
        return rv;
    }
    *ret = k;
    return FL_OK;
}

int fl_client_state_open_scratch(const char *state_dir, const struct fl_log *log,
                                 struct fl_client_state **ret, struct fl_err *err)
{
    struct fl_client_state *k = calloc(1, sizeof(*k));
    int rv = FL_OK;

    if (k == NULL) {
        return FL_ENOMEM;
    }
    k->log = log;
    if (state_dir != NULL) {
        rv = state_set_dir(k, state_dir, err);
    }
    if (rv != FL_OK) {
        free(k);
        return rv;
    }
    *ret = k;
    return FL_OK;
}

void fl_client_state_free(struct fl_client_state *keeps)
{
    if (keeps != NULL) {
        free(keeps->dir);
        fl__client_state_index_done(&keeps->index);
        free(keeps);
    }
}

static int check_wanted(const struct fl_client_state_spec *wanted, size_t n, struct fl_err *err)
{
    size_t i;
    size_t j;

    if (n > FL_CLIENT_STATE_MAX) {
        return fl_err_set(err, FL_EINVAL, "%zu names of client state, the limit is %d", n,
                          FL_CLIENT_STATE_MAX);
    }
    for (i = 0; i < n; i++) {
        FL_REQUIRE(!wanted[i].per_unit || wanted[i].floats == 0);
        if (!fl_name_valid(wanted[i].name)) {
            return fl_err_set(err, FL_EINVAL, "'%s' is no valid name of client state",
                              wanted[i].name);
        }
        for (j = 0; j < i; j++) {
            if (strcmp(wanted[i].name, wanted[j].name) == 0) {
                return fl_err_set(err, FL_EINVAL, "'%s' is a repeated name of client state",
                                  wanted[i].name);
            }
        }
    }
    return FL_OK;
}

/* Start with an empty state. The serials continue, so that no file changes that an index names. */
static int start_over(struct fl_client_state *k, const struct fl_client_state_home *home)
{
    struct fl__client_state_index fresh = {.serial = k->index.serial,
                                           .n_units = fl_layout_units(k->layout)};
    int rv = fl_str_copy(fresh.federation, sizeof(fresh.federation), home->federation);

    if (rv != FL_OK) {
        return rv;
    }
    fresh.granted = calloc(fresh.n_units + 1, 1);
    if (fresh.granted == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(fresh.layout, fl_layout_digest(k->layout), sizeof(fresh.layout));
    (void)memcpy(fresh.generation, home->state_generation, sizeof(fresh.generation));
    fl__client_state_index_done(&k->index);
    k->index = fresh;
    return FL_OK;
}

/* Why the state on disk does not belong to `home`; NULL: it does. */
static const char *state_mismatch(const struct fl__client_state_index *index,
                                  const struct fl_client_state_home *home)
{
    if (strcmp(index->federation, home->federation) != 0) {
        return "of another federation";
    }
    if (memcmp(index->layout, fl_layout_digest(home->layout), FL_DIGEST_SIZE) != 0 ||
        index->n_units != fl_layout_units(home->layout))
    {
        return "for another model";
    }
    return memcmp(index->generation, home->state_generation, FL_DIGEST_SIZE) != 0
               ? "of an older generation of client state (the server has reset its part)"
               : NULL;
}

int fl_client_state_bind(struct fl_client_state *k, const struct fl_client_state_home *home,
                         const struct fl_client_state_spec *wanted, size_t n, struct fl_err *err)
{
    const char *why;
    int rv = check_wanted(wanted, n, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (n > 0 && k->dir == NULL) {
        return fl_err_set(err, FL_EINVAL,
                          "cannot keep '%s' between rounds: no folder for client state",
                          wanted[0].name);
    }
    if (n > 0 && !k->loaded) {
        rv = state_load_index(k, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    k->layout = n > 0 ? home->layout : NULL;
    k->layout_saved = false;
    k->n_wanted = n;
    if (n == 0) {
        return FL_OK;
    }
    (void)memcpy(k->wanted, wanted, n * sizeof(*wanted));
    why = state_mismatch(&k->index, home);
    if (why == NULL) {
        return FL_OK;
    }
    if (k->index.kept.round != 0 || k->index.pending.round != 0) {
        fl_log(k->log, FL_LOG_NOTICE, "keep",
               "dropping the client state of round %llu/%u in federation '%s': it is %s",
               (unsigned long long)k->index.kept.round, k->index.kept.attempt, k->index.federation,
               why);
    }
    return start_over(k, home);
}

void fl_client_state_unbind(struct fl_client_state *k)
{
    k->layout = NULL;
    k->n_wanted = 0;
}

bool fl_client_state_wanted(const struct fl_client_state *k)
{
    return k->n_wanted > 0;
}

/* --- changing the index --- */

/* A failure only affects fl_client_state_read(), so the trained state is not dropped for it. */
static void state_write_layout(struct fl_client_state *k)
{
    struct fl_err err = {0};
    int rv;

    if (!k->sync || k->layout_saved) {
        return; /* Nothing reads the layout in a simulation. */
    }
    rv = fl__client_state_layout_write(k->dir, k->layout, k->sync, &err);
    k->layout_saved = rv == FL_OK;
    if (rv != FL_OK) {
        fl_log(k->log, FL_LOG_WARNING, "keep",
               "cannot save the layout of the model, so fl-clientd --export-model cannot read the "
               "client state, retrying in the next round: %s",
               fl_err_text(&err, rv));
    }
}

/* Write `next` as the new state; takes its contents on success. */
static int state_commit(struct fl_client_state *k, struct fl__client_state_index *next,
                        struct fl_err *err)
{
    int rv = fl_fs_mkdirs(k->dir, err);

    if (rv != FL_OK) {
        goto fail;
    }
    state_write_layout(k);
    rv = fl__client_state_index_write(k->dir, next, k->sync, err);
    if (rv != FL_OK) {
        goto fail;
    }
    fl__client_state_index_done(&k->index);
    k->index = *next;
    *next = (struct fl__client_state_index){0};
    fl__client_state_sweep(k->dir, &k->index);
    return FL_OK;
fail:
    /* After a failed sync the disk may have the new index, so its files must not change. */
    k->index.serial = next->serial;
    return rv;
}

/* Writes a block into a new file; its serial is stored in `*ret_serial`. */
static int write_block(struct fl_client_state *k, struct fl__client_state_index *next,
                       const char *name, struct fl_round_key key, const float *data,
                       uint64_t *ret_serial, struct fl_err *err)
{
    struct fl__client_state_block block = state_block(k, name, key);
    int rv = fl__client_state_block_write(k->dir, &block, next->serial + 1, data, k->sync, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret_serial = ++next->serial;
    return FL_OK;
}

static bool is_wanted(const struct fl_client_state *k, const char *name)
{
    size_t i;

    for (i = 0; i < k->n_wanted; i++) {
        if (strcmp(k->wanted[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void drop_unwanted(const struct fl_client_state *k, struct fl__client_state_index *next)
{
    size_t i = 0;

    while (i < next->n) {
        if (is_wanted(k, next->entries[i].name)) {
            i++;
        } else {
            next->entries[i] = next->entries[--next->n];
        }
    }
}

/* --- commit or discard --- */

static bool is_damage(int rv)
{
    return rv == FL_EFORMAT || rv == FL_ENOENT;
}

static void log_lost(const struct fl_client_state *k, const char *name, const struct fl_err *err,
                     int rv)
{
    fl_log(k->log, FL_LOG_WARNING, "keep", "client state '%s' is lost, continuing without it: %s",
           name, fl_err_text(err, rv));
}

/* Merges the pending values of the uploaded layers over the committed ones, as a new block. */
static int state_merge_units(struct fl_client_state *k, struct fl__client_state_index *next,
                             struct fl__client_state_entry *e, bool *lost, struct fl_err *err)
{
    struct fl__client_state_block block = state_block(k, e->name, next->pending);
    struct fl_err inner = {0};
    float *old = NULL;
    float *new = NULL;
    size_t l;
    int rv = fl__client_state_block_read(k->dir, &block, e->pending, &new, &inner);

    if (is_damage(rv)) {
        log_lost(k, e->name, &inner, rv);
        e->kept = 0;
        *lost = true;
        return FL_OK;
    }
    if (rv != FL_OK) {
        goto done;
    }
    if (e->kept != 0) {
        rv = fl__client_state_block_read(k->dir, &block, e->kept, &old, &inner);
        if (is_damage(rv)) {
            log_lost(k, e->name, &inner, rv);
            *lost = true;
        } else if (rv != FL_OK) {
            goto done;
        }
    }
    for (l = 0; l < next->n_units; l++) {
        const struct fl_unit *unit = fl_layout_unit(k->layout, l);

        if (next->granted[l] != 0) {
            continue;
        }
        if (old != NULL) {
            (void)memcpy(new + unit->offset, old + unit->offset, unit->count * sizeof(*new));
        } else {
            (void)memset(new + unit->offset, 0, unit->count * sizeof(*new));
        }
    }
    free(old);
    old = NULL;
    rv = write_block(k, next, e->name, next->pending, new, &e->kept, &inner);
done:
    free(old);
    free(new);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_err_text(&inner, rv));
    }
    return FL_OK;
}

static int state_commit_pending(struct fl_client_state *k, struct fl__client_state_index *next,
                                struct fl_err *err)
{
    bool lost = false;
    size_t i;
    int rv = FL_OK;

    for (i = 0; i < k->n_wanted; i++) {
        struct fl__client_state_entry *e = fl__client_state_find(next, k->wanted[i].name);
        bool damaged = false;

        if (e == NULL || e->pending == 0) {
            continue;
        }
        if (!k->wanted[i].per_unit || next->n_units == 0 ||
            memchr(next->granted, 0, next->n_units) == NULL) {
            e->kept = e->pending;
        } else if (fl__client_state_any_granted(next)) {
            rv = state_merge_units(k, next, e, &damaged, err);
            if (rv != FL_OK) {
                goto done;
            }
        }
        lost = lost || (damaged && k->wanted[i].summed);
    }
done:
    next->kept = lost && k->epoch != 0 ? (struct fl_round_key){0} : next->pending;
    fl__client_state_clear_pending(next);
    return rv;
}

/*
 * The committed state is not of the round that the server aggregated last. Where the server's sum
 * includes a part of it, the loss is remembered (kept of round 0), and so reported, until another
 * round is aggregated.
 */
static void forget_kept(const struct fl_client_state *k, struct fl__client_state_index *next,
                        struct fl_round_key counted, uint64_t epoch)
{
    bool newer = next->kept.round > counted.round; /* The server rolled back behind it. */
    bool remembered = false;
    size_t i;

    if (counted.round == 0) {
        fl_log(k->log, FL_LOG_NOTICE, "keep",
               "dropping the client state of round %llu/%u: the server has never aggregated this "
               "client",
               (unsigned long long)next->kept.round, next->kept.attempt);
    } else if (newer) {
        fl_log(k->log, FL_LOG_NOTICE, "keep",
               "dropping the client state of round %llu/%u: the server rolled back, the last round "
               "of this client that it aggregated is %llu/%u",
               (unsigned long long)next->kept.round, next->kept.attempt,
               (unsigned long long)counted.round, counted.attempt);
    }
    for (i = 0; counted.round != 0 && i < k->n_wanted; i++) {
        remembered = remembered || (k->wanted[i].summed && epoch != 0 && counted.round >= epoch);
    }
    for (i = 0; counted.round != 0 && counted.round >= epoch && !newer && i < k->n_wanted; i++) {
        const struct fl__client_state_entry *e = fl__client_state_find(next, k->wanted[i].name);
        char have[64] = "none is";

        if (e != NULL && e->kept != 0) {
            (void)snprintf(have, sizeof(have), "only that of round %llu/%u is",
                           (unsigned long long)next->kept.round, next->kept.attempt);
        }
        fl_log(k->log, FL_LOG_WARNING, "keep",
               "the server aggregated round %llu/%u of this client, but its client state '%s' of "
               "that round is lost (%s on disk): training continues without it",
               (unsigned long long)counted.round, counted.attempt, k->wanted[i].name, have);
    }
    for (i = 0; i < next->n; i++) {
        next->entries[i].kept = 0;
    }
    next->kept = remembered ? (struct fl_round_key){0} : counted;
}

static bool is_outdated(const struct fl_client_state *k, const struct fl__client_state_index *index,
                        size_t i, uint64_t epoch)
{
    size_t j = 0;

    while (j < index->n && strcmp(index->entries[j].name, k->wanted[i].name) != 0) {
        j++;
    }
    return k->wanted[i].summed && index->kept.round < epoch && j < index->n &&
           index->entries[j].kept != 0;
}

static bool has_outdated(const struct fl_client_state *k, uint64_t epoch)
{
    size_t i = 0;

    while (i < k->n_wanted && !is_outdated(k, &k->index, i, epoch)) {
        i++;
    }
    return i < k->n_wanted;
}

struct fl_round_key fl_client_state_of(const struct fl_client_state *k)
{
    return k->index.kept;
}

int fl_client_state_settle(struct fl_client_state *k, struct fl_round_key task,
                           struct fl_round_key counted, uint64_t epoch, struct fl_err *err)
{
    const struct fl__client_state_index *now = &k->index;
    struct fl__client_state_index next;
    size_t i;
    int rv;

    k->epoch = epoch;
    if (k->n_wanted == 0 || (state_same_round(now->kept, counted) && !has_outdated(k, epoch) &&
                             (now->pending.round == 0 || state_same_round(now->pending, task))))
    {
        return FL_OK;
    }
    rv = fl__client_state_index_copy(now, &next);
    if (rv != FL_OK) {
        return rv;
    }
    drop_unwanted(k, &next);
    if (counted.round != 0 && state_same_round(next.pending, counted)) {
        rv = state_commit_pending(k, &next, err);
        if (rv != FL_OK) {
            goto done;
        }
    } else if (next.pending.round != 0 && !state_same_round(next.pending, task)) {
        if (fl__client_state_any_granted(&next)) {
            fl_log(k->log, FL_LOG_NOTICE, "keep",
                   "discarding the pending client state of round %llu/%u: its update was sent, but "
                   "the last round that the server aggregated is %llu/%u",
                   (unsigned long long)next.pending.round, next.pending.attempt,
                   (unsigned long long)counted.round, counted.attempt);
        } else {
            fl_log(k->log, FL_LOG_DEBUG, "keep",
                   "discarding the pending client state of round %llu/%u",
                   (unsigned long long)next.pending.round, next.pending.attempt);
        }
        fl__client_state_clear_pending(&next);
    }
    if (!state_same_round(next.kept, counted)) {
        forget_kept(k, &next, counted, epoch);
    }
    /*
     * Drop summed values from before the epoch: the server's sum restarted at zero without them.
     */
    for (i = 0; i < k->n_wanted; i++) {
        if (is_outdated(k, &next, i, epoch)) {
            fl_log(k->log, FL_LOG_NOTICE, "keep",
                   "dropping client state '%s' of round %llu: the server starts a new sum with "
                   "round %llu",
                   k->wanted[i].name, (unsigned long long)next.kept.round,
                   (unsigned long long)epoch);
            fl__client_state_find(&next, k->wanted[i].name)->kept = 0;
        }
    }
    rv = state_commit(k, &next, err);
done:
    fl__client_state_index_done(&next);
    return rv;
}

/* --- reading --- */

static bool state_is_summed(const struct fl_client_state *k, const char *name)
{
    size_t i;

    for (i = 0; i < k->n_wanted; i++) {
        if (strcmp(k->wanted[i].name, name) == 0) {
            return k->wanted[i].summed;
        }
    }
    return false;
}

int fl_client_state_load(struct fl_client_state *k, const char *name, float **ret,
                         struct fl_err *err)
{
    struct fl__client_state_entry *e =
        k->n_wanted > 0 ? fl__client_state_find(&k->index, name) : NULL;
    struct fl__client_state_block block;
    struct fl_err inner = {0};
    int rv;

    if (e == NULL || e->kept == 0) {
        return fl_err_set(err, FL_ENOENT, "no client state '%s'", name);
    }
    block = state_block(k, name, k->index.kept);
    rv = fl__client_state_block_read(k->dir, &block, e->kept, ret, &inner);
    if (is_damage(rv)) {
        log_lost(k, name, &inner, rv);
        e->kept = 0;
        if (state_is_summed(k, name) && k->epoch != 0) {
            k->index.kept = (struct fl_round_key){0};
        }
        rv = FL_ENOENT;
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_err_text(&inner, rv));
    }
    return FL_OK;
}

int fl_client_state_newest(struct fl_client_state *k, const char *name, float **ret,
                           struct fl_err *err)
{
    const struct fl__client_state_entry *e =
        k->n_wanted > 0 ? fl__client_state_find(&k->index, name) : NULL;
    struct fl__client_state_block block;
    struct fl_err inner = {0};
    int rv;

    if (e == NULL || e->pending == 0) {
        return fl_client_state_load(k, name, ret, err);
    }
    block = state_block(k, name, k->index.pending);
    rv = fl__client_state_block_read(k->dir, &block, e->pending, ret, &inner);
    if (is_damage(rv)) {
        return fl_client_state_load(k, name, ret, err);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_err_text(&inner, rv));
    }
    return FL_OK;
}

/* --- the pending set --- */

static int add_pending(struct fl_client_state *k, struct fl__client_state_index *next,
                       struct fl_round_key key, const struct fl_client_state_value *value,
                       struct fl_err *err)
{
    struct fl__client_state_entry *e = fl__client_state_find(next, value->name);
    uint64_t serial = 0;
    int rv;

    FL_REQUIRE(is_wanted(k, value->name));
    rv = write_block(k, next, value->name, key, value->data, &serial, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (e == NULL) { /* There is room: at most FL_CLIENT_STATE_MAX, others were dropped. */
        e = &next->entries[next->n++];
        *e = (struct fl__client_state_entry){0};
        rv = fl_str_copy(e->name, sizeof(e->name), value->name);
    }
    e->pending = serial;
    return rv;
}

int fl_client_state_put(struct fl_client_state *k, struct fl_round_key key,
                        const struct fl_client_state_value *values, size_t n, struct fl_err *err)
{
    struct fl__client_state_index next;
    size_t i;
    int rv;

    FL_REQUIRE(k->n_wanted > 0 && key.round != 0);
    rv = fl_fs_mkdirs(k->dir, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__client_state_index_copy(&k->index, &next);
    if (rv != FL_OK) {
        return rv;
    }
    drop_unwanted(k, &next);
    fl__client_state_clear_pending(&next);
    next.pending = key;
    for (i = 0; i < n; i++) {
        rv = add_pending(k, &next, key, &values[i], err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = state_commit(k, &next, err);
done:
    fl__client_state_index_done(&next);
    return rv;
}

bool fl_client_state_pending(const struct fl_client_state *k, struct fl_round_key key)
{
    return k->n_wanted > 0 && key.round != 0 && state_same_round(k->index.pending, key);
}

int fl_client_state_grant(struct fl_client_state *k, struct fl_round_key key, const uint8_t *units,
                          const struct fl_client_state_value *more, struct fl_err *err)
{
    struct fl__client_state_index next;
    size_t l;
    int rv;

    if (!fl_client_state_pending(k, key)) {
        return fl_err_set(err, FL_ESTATE, "no pending client state of round %llu/%u",
                          (unsigned long long)key.round, key.attempt);
    }
    rv = fl__client_state_index_copy(&k->index, &next);
    if (rv != FL_OK) {
        return rv;
    }
    for (l = 0; l < next.n_units; l++) {
        next.granted[l] = units[l] != 0;
    }
    if (more != NULL) {
        rv = add_pending(k, &next, key, more, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = state_commit(k, &next, err);
done:
    fl__client_state_index_done(&next);
    return rv;
}
