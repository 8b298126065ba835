/* Verifies that every file that the records of a state folder need exists and is undamaged, and
 * reads from the records which these are. One thread of flctl, blocking; changes nothing. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "libfl/container/block_sums.h"
#include "libfl/model/safetensors.h"
#include "server/store/backup_impl.h"
#include "server/store/models_impl.h"
#include "server/store/spool_impl.h"
#include "server/store/store_files.h"

/* --- the checkpoint --- */

struct checkpoint {
    const char *dir;
    uint64_t round;
    struct fl_models_tag tag;
    struct fl_layout *layout;
    float *theta, *state;
};

/* Load the checkpoint once for each state vector, so that only two vectors are in memory. */
static int check_vectors(const struct checkpoint *c, const char *states, struct fl_err *err)
{
    struct fl_models_found found;
    struct fl_models_checkpoint of = {
        .dir = c->dir, .round = c->round, .tag = &c->tag, .layout = c->layout};
    const char *at = states;
    int rv = fl_models_load(&of, c->theta, NULL, &found, err);

    if (rv != FL_OK) {
        return rv;
    }
    while (*at != '\0') {
        char name[FL_NAME_MAX] = "";
        const char *names[] = {name};
        size_t n = strcspn(at, ": ");

        if (n >= sizeof(name)) {
            return fl_err_set(err, FL_EFORMAT, "the checkpoint of round %" PRIu64 " is damaged",
                              c->round);
        }
        (void)memcpy(name, at, n);
        of.state_names = names;
        of.n_state = 1;
        rv = fl_models_load(&of, c->theta, (float *const[]){c->state}, &found, err);
        if (rv != FL_OK) {
            return rv;
        }
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return FL_OK;
}

/* The bytes beside the vectors. */
static int check_kept(const struct checkpoint *c, struct fl_err *err)
{
    const struct fl_models_checkpoint of = {
        .dir = c->dir, .round = c->round, .tag = &c->tag, .layout = c->layout};
    struct fl_blob *kept = NULL;
    int rv = fl_models_load_kept(&of, SIZE_MAX, &kept, err);

    fl_blob_unref(kept);
    return rv;
}

static int check_personal_models(const struct checkpoint *c, const char *path, struct fl_err *err)
{
    struct fl_personal_models *m = NULL;
    char seal[FL_PERSONAL_MODELS_SEAL];
    int rv = fl_st_meta(path, FL__MODELS_MIXED_KEY, seal, sizeof(seal), err);

    if (rv != FL_OK) {
        return rv == FL_ENOENT ? FL_OK : rv; /* The round has no personalized models. */
    }
    rv = fl_personal_models_open_sealed(c->dir, c->round,
                                        fl_layout_count(c->layout) * sizeof(float), seal, &m, err);
    fl_personal_models_close(m);
    return rv;
}

static int check_checkpoint(const char *dir, const struct fl__backup_needs *needs,
                            struct fl_err *err)
{
    struct checkpoint c = {.dir = dir, .round = needs->committed, .tag = {.database = needs->id}};
    char path[FL__STORE_PATH_MAX];
    char states[FL__MODELS_STATES_MAX] = "";
    int rv = fl_models_path(dir, c.round, NULL, path, sizeof(path));

    if (rv != FL_OK) {
        return rv;
    }
    if (!fl_fs_exists(path)) {
        /* A server killed before it saved its first model creates it at the next start. */
        return c.round == 0 && needs->open_round == 0
                   ? FL_OK
                   : fl_err_set(err, FL_ENOENT, "the checkpoint of round %" PRIu64 " is missing",
                                c.round);
    }
    rv = fl_st_layout(path, &c.layout, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_st_meta(path, FL__MODELS_STATES_KEY, states, sizeof(states), err);
    if (rv != FL_OK) {
        goto done;
    }
    c.theta = calloc(fl_layout_count(c.layout) + 1, sizeof(*c.theta));
    c.state = calloc(fl_layout_count(c.layout) + 1, sizeof(*c.state));
    if (c.theta == NULL || c.state == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
        goto done;
    }
    rv = check_vectors(&c, states, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = check_kept(&c, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = needs->kept_since < c.round ? check_personal_models(&c, path, err) : FL_OK;
done:
    free(c.theta);
    free(c.state);
    fl_layout_free(c.layout);
    return rv;
}

/* --- uploads --- */

/* Check the coded bytes against their checksums. */
static int check_blocks(int fd, const struct fl__spool_head *head)
{
    uint8_t block[FL_SUM_BLOCK];
    uint64_t *sums = NULL;
    uint64_t at;
    int rv = fl_container_tail_read(fd, "", &head->file, &sums, NULL);

    if (rv != FL_OK) {
        return rv;
    }
    for (at = 0; at < head->bytes; at += sizeof(block)) {
        size_t n = head->bytes - at < sizeof(block) ? (size_t)(head->bytes - at) : sizeof(block);

        rv = fl_fs_pread(fd, block, n, head->file.start + at);
        if (rv != FL_OK) {
            goto done;
        }
        if (!fl_block_sums_match(sums, at, block, n)) {
            rv = FL_EFORMAT;
            goto done;
        }
    }
done:
    free(sums);
    return rv;
}

static int check_upload(const char *dir, const struct fl__backup_needs *needs, const char *client,
                        struct fl_err *err)
{
    struct fl__spool_head head = {0};
    char path[FL__STORE_PATH_MAX];
    struct stat st;
    int fd;
    int rv = fl__spool_find(dir, client, path, sizeof(path), err);

    if (rv != FL_OK) {
        return rv;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fl__store_fail(err, "cannot open", path);
    }
    rv = fl__spool_head_read(fd, fl__spool_upload(needs->open_round, needs->open_attempt, client),
                             &head);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fstat(fd, &st) == 0 && fl__spool_whole(&head, (uint64_t)st.st_size)
             ? check_blocks(fd, &head)
             : FL_EFORMAT;
done:
    fl__spool_head_done(&head);
    (void)close(fd);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "the accepted update '%s' is damaged: %s", path,
                          fl_strerror(rv));
    }
    return FL_OK;
}

int fl__backup_check(const char *dir, const struct fl__backup_needs *needs, struct fl_err *err)
{
    size_t i;
    int rv = check_checkpoint(dir, needs, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < needs->n_accepted; i++) {
        rv = check_upload(dir, needs, needs->accepted[i], err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* --- the records --- */

static int next_row(sqlite3_stmt *st, struct fl_db *db, struct fl_err *err)
{
    int rc = sqlite3_step(st);

    return rc == SQLITE_ROW ? FL_OK : rc == SQLITE_DONE ? FL_ENOENT : fl_db_error(db, err);
}

static int needs_prepare(struct fl_db *db, const char *sql, sqlite3_stmt **ret, struct fl_err *err)
{
    return sqlite3_prepare_v2(db->handle, sql, -1, ret, NULL) == SQLITE_OK ? FL_OK
                                                                           : fl_db_error(db, err);
}

/* FL_ENOENT: there is no such row. */
static int read_federation(struct fl_db *db, struct fl__backup_needs *ret, struct fl_err *err)
{
    sqlite3_stmt *st = NULL;
    const char *name;
    const char *id;
    int rv = needs_prepare(db, "SELECT name, lower(hex(id)), kept_since FROM federation", &st, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = next_row(st, db, err);
    if (rv != FL_OK) {
        goto done;
    }
    name = (const char *)sqlite3_column_text(st, 0);
    id = (const char *)sqlite3_column_text(st, 1);
    ret->kept_since = (uint64_t)sqlite3_column_int64(st, 2);
    if (fl_str_copy(ret->federation, sizeof(ret->federation), name != NULL ? name : "") != FL_OK ||
        fl_str_copy(ret->id, sizeof(ret->id), id != NULL ? id : "") != FL_OK)
    {
        rv = fl_err_set(err, FL_EFORMAT, "'%s' is damaged", db->path);
    }
done:
    (void)sqlite3_finalize(st); /* returns the error of the step again */
    return rv;
}

static int read_open(struct fl_db *db, struct fl__backup_needs *ret, struct fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int rv =
        needs_prepare(db,
                      "SELECT (SELECT COALESCE(MAX(round), 0) FROM round),"
                      " COALESCE((SELECT round FROM open_round WHERE EXISTS (SELECT 1 FROM part)), "
                      "0), COALESCE((SELECT attempt FROM open_round), 0)",
                      &st, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = next_row(st, db, err);
    if (rv != FL_OK) {
        goto done;
    }
    ret->committed = (uint64_t)sqlite3_column_int64(st, 0);
    ret->open_round = (uint64_t)sqlite3_column_int64(st, 1);
    ret->open_attempt = (uint32_t)sqlite3_column_int64(st, 2);
done:
    (void)sqlite3_finalize(st);
    return rv;
}

static int add_accepted(struct fl__backup_needs *needs, size_t *cap, const char *name)
{
    int rv = fl_grow(&needs->accepted, cap, needs->n_accepted, sizeof(*needs->accepted));

    if (rv != FL_OK) {
        return rv;
    }
    return fl_str_copy(needs->accepted[needs->n_accepted++], FL_NAME_MAX, name);
}

static int read_accepted(struct fl_db *db, struct fl__backup_needs *ret, struct fl_err *err)
{
    sqlite3_stmt *st = NULL;
    size_t cap = 0;
    int rv = needs_prepare(db,
                           "SELECT c.name FROM part AS p JOIN client AS c ON c.id = p.client WHERE "
                           "p.state = ? ORDER BY c.name",
                           &st, err);

    if (rv != FL_OK) {
        goto done;
    }
    if (sqlite3_bind_int64(st, 1, FL_PARTICIPANT_ACCEPTED) != SQLITE_OK) {
        rv = fl_db_error(db, err);
        goto done;
    }
    while ((rv = next_row(st, db, err)) == FL_OK) {
        const char *name = (const char *)sqlite3_column_text(st, 0);

        rv = add_accepted(ret, &cap, name != NULL ? name : "");
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "'%s': %s", db->path, fl_strerror(rv));
            goto done;
        }
    }
    rv = rv == FL_ENOENT ? FL_OK : rv;
done:
    (void)sqlite3_finalize(st);
    return rv;
}

int fl__backup_read_needs(struct fl_db *db, struct fl__backup_needs *ret, struct fl_err *err)
{
    struct fl__backup_needs needs = {.committed = 0};
    uint64_t version = 0;
    int rv = fl_db_version(db, &version, err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = version == 0 ? FL_ENOENT : read_federation(db, &needs, err);
    if (rv == FL_ENOENT) {
        rv = fl_err_set(err, FL_ESTATE, "'%s' holds no federation", db->path);
    }
    if (rv != FL_OK) {
        goto fail;
    }
    rv = read_open(db, &needs, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = read_accepted(db, &needs, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = needs;
    return FL_OK;
fail:
    fl__backup_needs_done(&needs);
    return rv;
}

void fl__backup_needs_done(struct fl__backup_needs *needs)
{
    free(needs->accepted);
    *needs = (struct fl__backup_needs){.committed = 0};
}

bool fl__backup_same_needs(const struct fl__backup_needs *a, const struct fl__backup_needs *b)
{
    return a->committed == b->committed && a->open_round == b->open_round &&
           a->open_attempt == b->open_attempt && a->n_accepted == b->n_accepted &&
           strcmp(a->id, b->id) == 0;
}
