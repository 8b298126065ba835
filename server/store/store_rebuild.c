/* Recovery of a state folder whose database is lost or does not match its checkpoints (fl-serverd
 * --recover). Before the server runs, one thread, blocking. Never deletes a database or a
 * checkpoint: unusable ones are quarantined. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/digest.h"
#include "libfl/model/safetensors.h"
#include "server/store/models_impl.h"
#include "server/store/store_files.h"
#include "server/store/store_impl.h"

/* Most quarantined databases: the last number is reused. */
#define QUARANTINE_MAX 9

/* --- files of an existing federation --- */

struct found {
    const char *suffix;
    bool any;
};

static int look_for_suffix(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct found *found = ctx;

    (void)folder;
    (void)err;
    found->any = found->any || fl_str_ends_with(name, found->suffix);
    return FL_OK;
}

/* Does `dir`/`folder` hold a file with this suffix? An unreadable folder is an error. */
static int folder_holds(const char *dir, const char *folder, const char *suffix, bool *ret,
                        struct fl_err *err)
{
    struct found found = {.suffix = suffix};
    char path[FL__STORE_PATH_MAX];
    int rv;

    if (fl_fs_join(path, sizeof(path), dir, folder) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    rv = fl_fs_each(path, look_for_suffix, &found, err);
    *ret = found.any;
    return rv;
}

int fl__store_check_new(const char *dir, const char *what, struct fl_err *err)
{
    static const struct {
        const char *folder, *suffix, *what;
    } left[] = {{"spool", ".upload", "uploads"},
                {"personal_models", ".mix", "personal models"},
                {"summaries", ".summary", "data summaries"}};
    uint64_t *rounds = NULL;
    uint64_t newest = 0;
    size_t n = 0;
    size_t i;
    int rv = fl_models_list(dir, &rounds, &n, err);

    newest = n > 0 ? rounds[0] : 0;
    free(rounds);
    if (rv == FL_OK && n > 0) {
        return fl_err_set(
            err, FL_ESTATE,
            "'%s/federation.db' %s, but '%s/models' holds checkpoints up to round "
            "%" PRIu64 "; nothing was touched. 'fl-serverd --recover CONFIG' goes on "
            "from the newest good one; to start a new federation, move the folder away or choose "
            "another state_dir",
            dir, what, dir, newest);
    }
    for (i = 0; rv == FL_OK && i < sizeof(left) / sizeof(left[0]); i++) {
        bool there = false;

        rv = folder_holds(dir, left[i].folder, left[i].suffix, &there, err);
        if (rv == FL_OK && there) {
            rv = fl_err_set(err, FL_ESTATE,
                            "'%s/federation.db' %s, but '%s/%s' holds %s of a federation; nothing "
                            "was touched. To start over, move the folder away or choose another "
                            "state_dir",
                            dir, what, dir, left[i].folder, left[i].what);
        }
    }
    return rv;
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

static void search_done(struct search *s)
{
    size_t i;

    for (i = 0; s->state != NULL && i < s->r->n_state; i++) {
        free(s->state[i]);
    }
    free(s->state);
    free(s->theta);
    free(s->rounds);
}

/* Read the database id from the file; loading the checkpoint verifies it. */
static int read_id(struct search *s, uint64_t round, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    int rv = fl_models_path(s->r->dir, round, NULL, path, sizeof(path));

    s->id[0] = '\0';
    rv = rv == FL_OK ? fl_st_meta(path, FL__MODELS_DATABASE_KEY, s->id, sizeof(s->id), err) : rv;
    return rv == FL_ELIMIT || (rv == FL_ENOENT && fl_fs_exists(path)) ? FL_EFORMAT : rv;
}

static int try_round(struct search *s, uint64_t round, struct fl_err *err)
{
    struct fl_models_tag tag = {.database = s->id};
    int rv = s->any_id ? read_id(s, round, err) : FL_OK;

    return rv == FL_OK ? fl_models_load(s->r->dir, round, &tag, s->r->layout, s->theta, s->state,
                                        s->r->state_names, s->r->n_state, &s->found, err)
                       : rv;
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

        if (rv == FL_OK) {
            *ret_i = i;
            return FL_OK;
        }
        if (!is_unusable(rv)) {
            return rv;
        }
        fl_log(s->r->log, FL_LOG_WARNING, "server",
               "checkpoint of round %" PRIu64 " cannot be used: %s", s->rounds[i],
               fl_err_text(err, rv));
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

static int quarantine_name(const char *path, unsigned number, const char *part, char *out,
                           size_t size)
{
    int n = snprintf(out, size, "%s.bad-%u%s", path, number, part);

    return n > 0 && (size_t)n < size ? FL_OK : FL_ELIMIT;
}

static int quarantine_db(const char *path, struct fl_err *err)
{
    char from[FL__STORE_PATH_MAX];
    char to[FL__STORE_PATH_MAX];
    unsigned number = 1;
    size_t i;
    int rv = quarantine_name(path, number, "", to, sizeof(to));

    while (rv == FL_OK && number < QUARANTINE_MAX && fl_fs_exists(to)) {
        rv = quarantine_name(path, ++number, "", to, sizeof(to));
    }
    for (i = 0; rv == FL_OK && i < N_PARTS; i++) {
        int n = snprintf(from, sizeof(from), "%s%s", path, parts[i]);

        rv = n > 0 && (size_t)n < sizeof(from)
                 ? quarantine_name(path, number, parts[i], to, sizeof(to))
                 : FL_ELIMIT;
        if (rv == FL_OK) {
            rv = rename_db_file(from, to, err);
        }
    }
    return rv == FL_ELIMIT ? fl_err_set(err, rv, "path '%s' is too long", path) : rv;
}

static int remove_db(const char *path, struct fl_err *err)
{
    char name[FL__STORE_PATH_MAX];
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < N_PARTS; i++) {
        int n = snprintf(name, sizeof(name), "%s%s", path, parts[i]);

        rv = n > 0 && (size_t)n < sizeof(name) ? fl_fs_remove(name) : FL_ELIMIT;
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "cannot remove '%s': %s", name, fl_strerror(rv));
        }
    }
    return rv;
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
    struct fl_store *store = NULL;
    int n = snprintf(fresh, sizeof(fresh), "%s.new", path);
    int rv = n > 0 && (size_t)n < sizeof(fresh) ? id_of(id_text, id) : FL_ELIMIT;

    rv = rv == FL_OK ? remove_db(fresh, err) : rv;
    if (rv == FL_OK) {
        rv = fl__store_open_path(r->dir, fresh, r->federation, r->layout, FL_DURABLE_POWER, id,
                                 &store, err);
    }
    rv = rv == FL_OK ? fl__store_restore(store, r->round, err) : rv;
    fl_store_close(store); /* What is in its log goes into the file. */
    rv = rv == FL_OK ? quarantine_db(path, err) : rv;
    rv = rv == FL_OK ? rename_db_file(fresh, path, err) : rv;
    return rv == FL_OK ? fl_fs_sync_dir(r->dir, err) : rv;
}

/* FL_EAGAIN: the database is lost, `*ret` is not set. */
static int open_db(struct fl_store_rebuild *r, const char *path, struct fl_store **ret,
                   struct fl_err *err)
{
    uint8_t id[FL__STORE_ID_SIZE];
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
    rv = rv == FL_OK ? fl__store_open_path(r->dir, path, r->federation, r->layout, FL_DURABLE_POWER,
                                           id, ret, err)
                     : rv;
    if (rv == FL_EFORMAT) {
        fl_log(r->log, FL_LOG_WARNING, "server", "%s", fl_err_text(err, rv));
        return FL_EAGAIN;
    }
    return rv;
}

static int quarantine_bad_checkpoints(const struct search *s, size_t n, struct fl_err *err)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < n; i++) {
        rv = fl_models_quarantine(s->r->dir, s->rounds[i], err);
    }
    return rv;
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
    struct fl_generation line;
    size_t i = r->n_own;
    int rv = fl_store_generation(store, &line, err);

    if (rv != FL_OK || line.kept_since >= round) {
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
    if (rv == FL_EIO && (rv = fl_personal_models_quarantine(r->dir, round, err)) != FL_OK) {
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

    (void)memcpy(s->id, fl_store_id(store), sizeof(s->id));
    if (rv != FL_OK) {
        return rv;
    }
    /* One newer checkpoint is from a round that was not committed; more are from a newer database.
     */
    rv = s->n > 0 && s->rounds[0] > r->had + 1 ? FL_ENOENT : try_round(s, r->had, err);
    if (rv == FL_OK) {
        r->round = r->had;
        rv = check_whole(s, store, r->had, err);
        r->unchanged = rv == FL_OK;
        return rv == FL_ENOENT ? fl__store_restore(store, r->round, err) : rv;
    }
    if (!is_unusable(rv)) {
        return rv;
    }
    rv = find_good(s, &i, err);
    if (rv == FL_OK) {
        r->round = s->rounds[i];
        rv = fl__store_restore(store, r->round, err);
    }
    return rv == FL_OK ? quarantine_bad_checkpoints(s, i, err) : rv;
}

static int rebuild_fresh(struct search *s, const char *path, struct fl_err *err)
{
    size_t i = 0;
    int rv;

    s->any_id = true;
    s->r->fresh = true;
    rv = find_good(s, &i, err);
    if (rv == FL_OK) {
        s->r->round = s->rounds[i];
        rv = make_db(s->r, path, s->id, err);
    }
    return rv == FL_OK ? quarantine_bad_checkpoints(s, i, err) : rv;
}

int fl_store_rebuild(struct fl_store_rebuild *r, struct fl_err *err)
{
    struct search s = {.r = r};
    struct fl_store *store = NULL;
    char path[FL__STORE_PATH_MAX];
    int rv = fl_fs_join(path, sizeof(path), r->dir, "federation.db");

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "path '%s' is too long", r->dir);
    }
    rv = search_take_memory(&s, err);
    rv = rv == FL_OK ? fl_models_list(r->dir, &s.rounds, &s.n, err) : rv;
    rv = rv == FL_OK ? open_db(r, path, &store, err) : rv;
    if (rv == FL_OK) {
        rv = rebuild_kept(&s, store, err);
        fl_store_close(store);
    } else if (rv == FL_EAGAIN) {
        rv = rebuild_fresh(&s, path, err);
    }
    search_done(&s);
    return rv;
}
