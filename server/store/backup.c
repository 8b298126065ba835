/* Making a backup of a state folder, beside a running server or without one. One thread of flctl,
 * blocking. Restoring is in backup_restore.c, verification in backup_check.c. */

#include "server/store/backup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libfl/base/descriptors.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/base/utc.h"
#include "server/store/backup_impl.h"
#include "server/store/models_impl.h"
#include "server/store/spool_impl.h"
#include "server/store/store_files_impl.h"

#define DATABASE "federation.db"
#define IDENTITY "identity"
/* Retries after a round was committed while its files were being opened; never reached in practice.
 */
#define TRIES 1000

/* --- opening files: an open file cannot be lost by removal --- */

struct opening {
    struct fl__making *m;
    const char *folder; /* below the state folder */
};

/* Checkpoints of committed rounds, and the kept checkpoints of abandoned rounds. */
static int open_model(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct opening *o = ctx;
    uint64_t round = 0;

    (void)folder;
    if (!fl__models_round_of(name, &round) ||
        !((fl_str_ends_with(name, FL__MODELS_SUFFIX) && round <= o->m->needs.committed) ||
          strstr(name, FL__MODELS_SUFFIX ".generation-") != NULL))
    {
        return FL_OK;
    }
    return fl__making_open(o->m, o->folder, name, err);
}

static int open_personal_models(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct opening *o = ctx;

    (void)folder;
    return fl_str_ends_with(name, FL__PERSONAL_MODELS_SUFFIX)
               ? fl__making_open(o->m, o->folder, name, err)
               : FL_OK;
}

/* One that is being written has another suffix. Those of a round that is not committed do no harm.
 */
static int open_step(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct opening *o = ctx;

    (void)folder;
    return fl_str_ends_with(name, ".step") ? fl__making_open(o->m, o->folder, name, err) : FL_OK;
}

/* Published data summaries; a file that is being written has another suffix. */
static int open_summary(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct opening *o = ctx;

    (void)folder;
    return fl_str_ends_with(name, ".summary") || strcmp(name, "fixed") == 0 ||
                   strcmp(name, "all") == 0
               ? fl__making_open(o->m, o->folder, name, err)
               : FL_OK;
}

static int open_folder(struct fl__making *m, const char *folder, fl_fs_each_cb *cb,
                       struct fl_err *err)
{
    struct opening o = {m, folder};
    char path[FL__STORE_PATH_MAX];
    int rv = fl__store_join(path, m->b->dir, folder, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_each(path, cb, &o, err);
}

/* Accepted updates only: an unfinished upload is sent again by its client. */
static int open_uploads(struct fl__making *m, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < m->needs.n_accepted; i++) {
        size_t before = m->files.n;
        char path[FL__STORE_PATH_MAX];
        int rv = fl__spool_find(m->b->dir, m->needs.accepted[i], path, sizeof(path), err);

        if (rv != FL_OK) {
            return rv;
        }
        rv = fl__making_open(m, "spool", strrchr(path, '/') + 1, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (m->files.n > before)
        { /* Lock the file, so that no later upload is written into it (recycled_files.h). */
            (void)flock(m->files.list[before].fd, LOCK_SH | LOCK_NB);
        }
    }
    return FL_OK;
}

/* --- copying --- */

/* Copy the database and the files that it refers to, in one consistent state. */
static int copy_instant(struct fl__making *m, struct fl_db *db, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    size_t i;
    int rv = sqlite3_exec(db->handle, "BEGIN", NULL, NULL, NULL) == SQLITE_OK
                 ? FL_OK
                 : fl_db_error(db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__backup_read_needs(db, &m->needs, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = open_folder(m, "models", open_model, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = open_folder(m, "personal_models", open_personal_models, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = open_folder(m, "steps", open_step, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = open_uploads(m, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = open_folder(m, "summaries", open_summary, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__store_join(path, m->state, DATABASE, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_db_copy(db, path, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__making_add(m, FL__BACKUP_STATE "/" DATABASE, err);
done:
    (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < m->files.n; i++) {
        rv = m->files.list[i].fd >= 0 ? fl__making_copy(m, &m->files.list[i], err) : FL_OK;
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* Check the copy as a server start would. */
static int check_copy(struct fl__making *m, struct fl_err *err)
{
    struct fl_db db;
    char path[FL__STORE_PATH_MAX];
    int rv = fl__store_join(path, m->state, DATABASE, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_db_open_as_is(&db, &fl__store_db, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_db_verify(&db, err);
    fl_db_close(&db);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__backup_check(m->state, &m->needs, err);
}

static int copy_state(struct fl__making *m, struct fl_db *db, struct fl_err *err)
{
    unsigned i;

    for (i = 0;; i++) {
        struct fl__backup_needs now;
        struct fl_err inner = {0};
        bool moved = false;
        int found;
        int rv = copy_instant(m, db, err);

        if (rv != FL_OK) {
            return rv;
        }
        found = check_copy(m, &inner);
        if (found == FL_ENOENT || fl_models_is_bad(found)) {
            /* Did the records change since? Then a missing file was removed legitimately. */
            rv = fl__backup_read_needs(db, &now, err);
            if (rv != FL_OK) {
                return rv;
            }
            moved = !fl__backup_same_needs(&m->needs, &now);
            fl__backup_needs_done(&now);
        }
        if (!moved || i == TRIES) {
            return found == FL_OK ? FL_OK
                                  : fl_err_set(err, found, "%s", fl_err_text(&inner, found));
        }
        fl__backup_needs_done(&m->needs);
        rv = fl__making_forget(m, 0, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
}

/* --- the whole backup --- */

static int write_info(struct fl__making *m, struct fl_err *err)
{
    const struct fl_backup *b = m->b;
    char path[FL__STORE_PATH_MAX];
    char text[1024];
    char when[32] = "";
    struct tm tm;
    int n;
    int rv = fl__store_join(path, b->target, FL__BACKUP_INFO, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (fl_utc((int64_t)(b->wall_ms / 1000), &tm)) {
        (void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    n = snprintf(text, sizeof(text),
                 FL__BACKUP_FORM "\nmade by %s at %s\nfederation %s\nround %" PRIu64 "\n"
                                 "open round %" PRIu64 " attempt %" PRIu32 " with %" PRIu64
                                 " accepted updates\nkeys %s\n",
                 b->program, when, b->federation, b->committed, b->open_round, b->open_attempt,
                 b->accepted, b->keys ? "yes: keep it as secret as the server" : "no");
    rv = fl_fs_replace(path, text, (size_t)n, /* sync= */ true, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__making_add(m, FL__BACKUP_INFO, err);
}

static int backup_write_all(struct fl__making *m, struct fl_db *db, struct fl_err *err)
{
    static const char *const folders[] = {"models",    "personal_models", "steps",
                                          "summaries", "spool",           IDENTITY};
    struct fl_backup *b = m->b;
    char path[FL__STORE_PATH_MAX];
    size_t i;
    int rv = copy_state(m, db, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__backup_copy_keys(m, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(b->federation, m->needs.federation, sizeof(b->federation));
    b->committed = m->needs.committed;
    b->open_round = m->needs.open_round;
    b->open_attempt = m->needs.open_attempt;
    b->accepted = m->needs.n_accepted;
    rv = write_info(m, err);
    if (rv != FL_OK) {
        return rv;
    }
    b->files = m->files.n;
    /* Sync the folders, so that the new names survive a power failure. */
    for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        rv = fl__store_join(path, m->state, folders[i], err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_fs_exists(path) ? fl_fs_sync_dir(path, err) : FL_OK;
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl_fs_sync_dir(m->state, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__backup_write_sums(b->target, &m->files, err);
}

/* Check that `b->dir` is a state folder before the target is created. */
static int open_state(const struct fl_backup *b, struct fl_db *db, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl__backup_needs needs;
    int rv = fl__store_join(path, b->dir, DATABASE, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (access(path, F_OK) != 0) {
        return errno == ENOENT
                   ? fl_err_set(err, FL_ENOENT, "'%s' is no state folder of a server: it has no %s",
                                b->dir, DATABASE)
                   : fl__store_fail(err, "cannot open", path);
    }
    rv = fl_db_open_as_is(db, &fl__store_db, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__backup_read_needs(db, &needs, err);
    if (rv != FL_OK) {
        fl_db_close(db);
        return rv;
    }
    fl__backup_needs_done(&needs);
    return FL_OK;
}

int fl_backup_make(struct fl_backup *backup, struct fl_err *err)
{
    struct fl__making m = {.b = backup};
    struct fl_db db;
    int rv = fl__backup_check_empty(backup->target, NULL, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_join(m.state, backup->target, FL__BACKUP_STATE, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = open_state(backup, &db, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)fl_descriptors_raise(NULL);
    rv = fl__making_folder(backup->target, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__making_folder(m.state, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = backup_write_all(&m, &db, err);
done:
    fl_db_close(&db);
    fl__backup_needs_done(&m.needs);
    fl__backup_list_done(&m.files);
    return rv;
}

#define BACKUP_NOTE "backup.made"

int fl_backup_note(const char *dir, struct fl_err *err)
{
    static const char text[] = "The time of this file is that of the newest complete backup.\n";
    char path[FL__STORE_PATH_MAX];
    int rv = fl__store_join(path, dir, BACKUP_NOTE, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_replace(path, text, sizeof(text) - 1, /* sync= */ false, err);
}

uint64_t fl_backup_last_ms(const char *dir)
{
    char path[FL__STORE_PATH_MAX];
    struct stat st;

    if (fl__store_join(path, dir, BACKUP_NOTE, NULL) != FL_OK || stat(path, &st) != 0) {
        return 0;
    }
    return 1000 * (uint64_t)st.st_mtim.tv_sec + (uint64_t)st.st_mtim.tv_nsec / 1000000;
}
