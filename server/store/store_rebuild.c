/* Recovery of a state folder whose database is lost or does not match its checkpoints (fl-serverd
 * --recover). Before the server runs, one thread, blocking. Never deletes a database or a
 * checkpoint: unusable ones are quarantined. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/clock.h"
#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "libfl/model/safetensors.h"
#include "server/store/models_impl.h"
#include "server/store/store_files.h"
#include "server/store/store_impl.h"

/* Most quarantined databases: the last number is reused. */
#define QUARANTINE_MAX 9

/* Make `round` the last one, with an empty record when it has none. */
static int restore_round(struct fl_store *store, uint64_t round, struct fl_err *err)
{
    struct fl_round_rec rec;
    /* The component settings behind the clients' states are unknown here, so the clients restart
     * their states. */
    const struct fl_rewind why = {
        .reason = "recovered", .restart_state = true, .wall_ms = fl_clock_wall_ms()};
    bool known = false;
    int rv = fl_db_begin_durable(&store->db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_rewind(store, round, &why, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_store_has_round(store, round, &known, err);
    if (rv != FL_OK || known) {
        goto done;
    }
    fl_figures_init(&fl_round_rows, &rec);
    rec.round = round;
    rec.attempt = 1;
    rec.started_ms = rec.ended_ms = why.wall_ms;
    rv = fl__store_put_round(store, &rec, err);
done:
    return fl_db_end(&store->db, rv, err);
}

/* --- finding a usable checkpoint --- */

struct search {
    struct fl_store_rebuild *r;
    float *theta;
    float **state;
    uint64_t *rounds; /* newest first */
    size_t n;
    char id[FL_STORE_ID_TEXT]; /* id of the checkpoint, or of the database */
    bool any_id;               /* the database is lost: use the id in each checkpoint */
    struct fl_models_found found;
};

static int search_take_memory(struct search *s, struct fl_err *err)
{
    size_t count = fl_layout_count(s->r->layout);
    size_t i;
    bool good;

    s->theta = calloc(count + 1, sizeof(*s->theta));
    s->state = calloc(s->r->n_state + 1, sizeof(*s->state));
    good = s->theta != NULL && s->state != NULL;
    for (i = 0; good && i < s->r->n_state; i++) {
        s->state[i] = calloc(count + 1, sizeof(**s->state));
        good = s->state[i] != NULL;
    }
    return good ? FL_OK : fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
}

/* Read the database id from the file; loading the checkpoint verifies it. */
static int read_id(struct search *s, uint64_t round, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    int rv = fl_models_path(s->r->dir, round, NULL, path, sizeof(path));

    s->id[0] = '\0';
    if (rv != FL_OK) {
        return FL_EFORMAT;
    }
    rv = fl_st_meta(path, FL__MODELS_DATABASE_KEY, s->id, sizeof(s->id), err);
    return rv == FL_ELIMIT || (rv == FL_ENOENT && fl_fs_exists(path)) ? FL_EFORMAT : rv;
}

static int try_round(struct search *s, uint64_t round, struct fl_err *err)
{
    const struct fl_models_tag tag = {.database = s->id};
    const struct fl_models_checkpoint c = {.dir = s->r->dir,
                                           .round = round,
                                           .tag = &tag,
                                           .layout = s->r->layout,
                                           .state_names = s->r->state_names,
                                           .n_state = s->r->n_state};
    struct fl_blob *kept = NULL;
    int rv = s->any_id ? read_id(s, round, err) : FL_OK;

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_models_load(&c, s->theta, s->state, &s->found, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_models_load_kept(&c, SIZE_MAX, &kept, err);
    fl_blob_unref(kept);
    return rv;
}

/*
 * Is the checkpoint permanently unusable? An unreadable file (EIO) counts too: it would make every
 * start fail, and it is only renamed, so it can still be copied to another disk.
 */
static bool is_unusable(int rv)
{
    return fl_models_is_bad(rv) || rv == FL_ENOENT || rv == FL_EIO;
}

/* Find the newest usable checkpoint; the earlier entries of the list are unusable. */
static int find_good(struct search *s, size_t *ret_i, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < s->n; i++) {
        int rv = try_round(s, s->rounds[i], err);

        if (rv != FL_OK && !is_unusable(rv)) {
            return rv;
        }
        if (rv != FL_OK) {
            fl_log(s->r->log, FL_LOG_WARNING, "server",
                   "checkpoint of round %" PRIu64 " cannot be used: %s", s->rounds[i],
                   fl_err_text(err, rv));
            continue;
        }
        *ret_i = i;
        return FL_OK;
    }
    return fl_err_set(err, FL_ENOENT, "no checkpoint in '%s/models' can be used (%zu were tried)",
                      s->r->dir, s->n);
}

/* --- the database --- */

static int rename_db_file(const char *from, const char *to, struct fl_err *err)
{
    if (rename(from, to) == 0 || errno == ENOENT) {
        return FL_OK;
    }
    return fl_err_set(err, fl_err_from_errno(errno), "cannot rename '%s' to '%s': %s", from, to,
                      strerror(errno));
}

/* SQLite finds the log and the index of a database by its name. */
static const char *const parts[] = {"", "-wal", "-shm"};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

static int quarantine_name(const char *path, unsigned number, const char *part,
                           char out[FL__STORE_PATH_MAX], struct fl_err *err)
{
    int n = snprintf(out, FL__STORE_PATH_MAX, "%s.bad-%u%s", path, number, part);

    return n > 0 && (size_t)n < FL__STORE_PATH_MAX
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
}

static int quarantine_db(const char *path, struct fl_err *err)
{
    char from[FL__STORE_PATH_MAX];
    char to[FL__STORE_PATH_MAX];
    unsigned number = 1;
    size_t i;
    int rv = quarantine_name(path, number, "", to, err);

    if (rv != FL_OK) {
        return rv;
    }
    while (number < QUARANTINE_MAX && fl_fs_exists(to)) {
        rv = quarantine_name(path, ++number, "", to, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    for (i = 0; i < N_PARTS; i++) {
        /* The name that it gets is longer, so this one fits. */
        rv = quarantine_name(path, number, parts[i], to, err);
        if (rv != FL_OK) {
            return rv;
        }
        (void)snprintf(from, sizeof(from), "%s%s", path, parts[i]);
        rv = rename_db_file(from, to, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int remove_db(const char *path, struct fl_err *err)
{
    char name[FL__STORE_PATH_MAX];
    size_t i;

    for (i = 0; i < N_PARTS; i++) {
        int n = snprintf(name, sizeof(name), "%s%s", path, parts[i]);
        int rv = n > 0 && (size_t)n < sizeof(name) ? fl_fs_remove(name) : FL_ELIMIT;

        if (rv != FL_OK) {
            return fl_err_set(err, rv, "cannot remove '%s': %s", name, fl_strerror(rv));
        }
    }
    return FL_OK;
}

/* Parse an id; "" gives a random one. */
static int id_of(const char *text, uint8_t id[FL__STORE_ID_SIZE])
{
    size_t i;

    if (strlen(text) != 2 * (size_t)FL__STORE_ID_SIZE) {
        return fl_random_bytes(id, FL__STORE_ID_SIZE);
    }
    for (i = 0; i < FL__STORE_ID_SIZE; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
        char *end = NULL;

        id[i] = (uint8_t)strtoul(digits, &end, 16);
    }
    return FL_OK;
}

/* The database is built under a temporary name, so that after a crash the folder is either
 * unchanged or complete. */
static int make_db(const struct fl_store_rebuild *r, const char *path, const char *id_text,
                   struct fl_err *err)
{
    char fresh[FL__STORE_PATH_MAX];
    uint8_t id[FL__STORE_ID_SIZE];
    const struct fl__store_opening o = {.dir = r->dir,
                                        .path = fresh,
                                        .federation = r->federation,
                                        .layout = r->layout,
                                        .durability = FL_DURABLE_POWER,
                                        .rebuild = id};
    struct fl_store *store = NULL;
    int n = snprintf(fresh, sizeof(fresh), "%s.new", path);
    int rv = n > 0 && (size_t)n < sizeof(fresh) ? id_of(id_text, id) : FL_ELIMIT;

    if (rv != FL_OK) {
        return rv;
    }
    rv = remove_db(fresh, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_open_path(&o, &store, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = restore_round(store, r->round, err);
    fl_store_close(store); /* What is in its log goes into the file. */
    if (rv != FL_OK) {
        return rv;
    }
    rv = quarantine_db(path, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = rename_db_file(fresh, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_sync_dir(r->dir, err);
}

/* FL_EAGAIN: the database is lost, `*ret` is not set. */
static int open_db(struct fl_store_rebuild *r, const char *path, struct fl_store **ret,
                   struct fl_err *err)
{
    uint8_t id[FL__STORE_ID_SIZE];
    const struct fl__store_opening o = {.dir = r->dir,
                                        .path = path,
                                        .federation = r->federation,
                                        .layout = r->layout,
                                        .durability = FL_DURABLE_POWER,
                                        .rebuild = id};
    struct stat st;
    int rv;

    if (stat(path, &st) != 0) {
        rv = fl_err_from_errno(errno);
        return rv == FL_ENOENT ? FL_EAGAIN : fl_err_set(err, rv, "'%s': %s", path, strerror(errno));
    }
    if (st.st_size == 0) {
        return FL_EAGAIN;
    }
    rv = id_of("", id);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_open_path(&o, ret, err);
    if (rv == FL_EFORMAT) {
        fl_log(r->log, FL_LOG_WARNING, "server", "%s", fl_err_text(err, rv));
        return FL_EAGAIN;
    }
    return rv;
}

static int quarantine_bad_checkpoints(const struct search *s, size_t n, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < n; i++) {
        int rv = fl_models_quarantine(s->r->dir, s->rounds[i], err);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/*
 * Does the checkpoint of `round`, which was just loaded, contain all server state that belongs to
 * the client states? Nothing is required when the client states were reset at or after `round`.
 * FL_ENOENT: no; the log names what is missing.
 */
static int check_whole(const struct search *s, struct fl_store *store, uint64_t round,
                       struct fl_err *err)
{
    const struct fl_store_rebuild *r = s->r;
    struct fl_personal_models *m = NULL;
    struct fl_generation generation;
    size_t i = r->n_own;
    int rv = fl_store_generation(store, &generation, err);

    if (rv != FL_OK || generation.kept_since >= round) {
        return rv;
    }
    while (i < r->n_state && (s->found.lacks >> i & 1u) == 0) {
        i++;
    }
    if (i < r->n_state) {
        rv = fl_err_set(err, FL_ENOENT, "the checkpoint of round %" PRIu64 " holds no '%s'", round,
                        r->state_names[i]);
    } else if (r->mixes && s->found.personal_models[0] != '\0') {
        rv = fl_personal_models_open_sealed(r->dir, round,
                                            fl_layout_count(r->layout) * sizeof(float),
                                            s->found.personal_models, &m, err);
        fl_personal_models_close(m);
    }
    if (rv != FL_ENOENT && rv != FL_EFORMAT && rv != FL_EIO) {
        return rv;
    }
    fl_log(r->log, FL_LOG_WARNING, "server", "%s: restarting the state that belongs to it",
           fl_err_text(err, rv));
    rv = rv == FL_EIO ? fl_personal_models_quarantine(r->dir, round, err) : FL_OK;
    if (rv != FL_OK) {
        return rv;
    }
    return FL_ENOENT;
}

/* The database is intact: check that its last record has a usable checkpoint. */
static int rebuild_kept(struct search *s, struct fl_store *store, struct fl_err *err)
{
    struct fl_store_rebuild *r = s->r;
    size_t i = 0;
    int rv = fl__store_last_round(store, &r->had, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(s->id, fl_store_id(store), sizeof(s->id));
    /* One newer checkpoint is from a round that was not committed; more are from a newer database.
     */
    rv = s->n > 0 && s->rounds[0] > r->had + 1 ? FL_ENOENT : try_round(s, r->had, err);
    if (rv != FL_OK && !is_unusable(rv)) {
        return rv;
    }
    if (rv != FL_OK) {
        rv = find_good(s, &i, err);
        if (rv != FL_OK) {
            return rv;
        }
        r->round = s->rounds[i];
        rv = restore_round(store, r->round, err);
        if (rv != FL_OK) {
            return rv;
        }
        return quarantine_bad_checkpoints(s, i, err);
    }
    r->round = r->had;
    rv = check_whole(s, store, r->had, err);
    r->unchanged = rv == FL_OK;
    return rv == FL_ENOENT ? restore_round(store, r->round, err) : rv;
}

static int rebuild_fresh(struct search *s, const char *path, struct fl_err *err)
{
    size_t i = 0;
    int rv;

    s->any_id = true;
    s->r->fresh = true;
    rv = find_good(s, &i, err);
    if (rv != FL_OK) {
        return rv;
    }
    s->r->round = s->rounds[i];
    rv = make_db(s->r, path, s->id, err);
    if (rv != FL_OK) {
        return rv;
    }
    return quarantine_bad_checkpoints(s, i, err);
}

int fl_store_rebuild(struct fl_store_rebuild *r, struct fl_err *err)
{
    struct search s = {.r = r};
    struct fl_store *store = NULL;
    char path[FL__STORE_PATH_MAX];
    size_t i;
    int rv = fl__store_join(path, r->dir, "federation.db", err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = search_take_memory(&s, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_models_list(r->dir, &s.rounds, &s.n, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = open_db(r, path, &store, err);
    if (rv == FL_EAGAIN) {
        rv = rebuild_fresh(&s, path, err);
        goto done;
    }
    if (rv != FL_OK) {
        goto done;
    }
    rv = rebuild_kept(&s, store, err);
    fl_store_close(store);
done:
    for (i = 0; s.state != NULL && i < r->n_state; i++) {
        free(s.state[i]);
    }
    free(s.state);
    free(s.theta);
    free(s.rounds);
    return rv;
}
