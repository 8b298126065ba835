/* The mark of a state folder whose federation was moved to another host: writing, checking,
 * removing it. One thread, blocking; takes the folder lock where it writes. */

#include "server/store/moved.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/utc.h"
#include "server/store/store_impl.h"

#define MARK     "moved"
#define FORM     "fl-serverd moved 1"
#define MARK_MAX (2 * FL__STORE_PATH_MAX)
/* Most characters of a line of the mark shown in a message. */
#define SHOWN 256

/* Files created by root must be readable by the owner of the folder. */
static int moved_set_owner(const char *dir, const char *path, struct fl_err *err)
{
    struct stat st;
    int saved;

    if (geteuid() != 0 || (stat(dir, &st) == 0 && chown(path, st.st_uid, st.st_gid) == 0)) {
        return FL_OK;
    }
    saved = errno;
    return fl_err_set(err, fl_err_from_errno(saved),
                      "cannot set the owner of '%s' to that of '%s': %s", path, dir,
                      strerror(saved));
}

/* --- reading --- */

/* The rest of the line that starts with `key`, other bytes than ASCII text replaced by "?"; "?": no
 * such line. */
static void read_mark_line(const struct fl_buf *buf, const char *key, char out[SHOWN])
{
    size_t len = strlen(key);
    size_t at = 0;
    size_t n = 0;

    (void)memcpy(out, "?", 2);
    while (at < buf->len) {
        const uint8_t *end = memchr(buf->data + at, '\n', buf->len - at);
        size_t stop = end != NULL ? (size_t)(end - buf->data) : buf->len;

        if (stop - at > len && memcmp(buf->data + at, key, len) == 0) {
            for (at += len; at < stop && n + 1 < SHOWN; at++) {
                out[n++] = buf->data[at] >= ' ' && buf->data[at] <= '~' ? (char)buf->data[at] : '?';
            }
            out[n] = '\0';
            return;
        }
        at = stop + 1;
    }
}

int fl_moved_check(const char *dir, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char to[SHOWN] = "?";
    char at[SHOWN] = "?";
    char round[SHOWN] = "?";
    struct fl_buf buf = {.len = 0};
    struct stat st;
    int rv = fl__store_join(path, dir, MARK, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (lstat(path, &st) != 0) {
        return errno == ENOENT || errno == ENOTDIR ? FL_OK
                                                   : fl__store_fail(err, "cannot stat", path);
    }
    /* An unreadable mark also marks the folder. */
    if (fl_fs_read(path, MARK_MAX, &buf, NULL) == FL_OK) {
        read_mark_line(&buf, "to ", to);
        read_mark_line(&buf, "at ", at);
        read_mark_line(&buf, "round ", round);
        fl_buf_done(&buf);
    }
    return fl_err_set(err, FL_ESTATE,
                      "state folder '%s' was moved at %s after round %s, with the backup '%s' "
                      "('flctl backup --moved'): starting it again could run two servers of one "
                      "identity. Start the server that was restored from that backup; only if none "
                      "ever was started and none will be, 'flctl --state-dir %s unmove' undoes the "
                      "move",
                      dir, at, round, to, dir);
}

/* --- writing --- */

static int write_moved_mark(const struct fl_backup *b, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char target[FL__STORE_PATH_MAX];
    char text[MARK_MAX];
    char when[32] = "?";
    struct tm tm;
    int n;
    int rv = fl__store_join(path, b->dir, MARK, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_absolute(b->target, target, sizeof(target), err);
    if (rv != FL_OK) {
        return rv;
    }
    if (fl_utc((int64_t)(b->wall_ms / 1000), &tm)) {
        (void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    n = snprintf(text, sizeof(text), FORM "\nto %s\nat %s\nround %" PRIu64 "\nby %s\n", target,
                 when, b->committed, b->program);
    if (n < 0 || (size_t)n >= sizeof(text)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", target);
    }
    rv = fl_fs_replace(path, text, (size_t)n, /* sync= */ true, err);
    if (rv != FL_OK) {
        return rv;
    }
    return moved_set_owner(b->dir, path, err);
}

/* Do not create a lock file in a folder that is not a state folder. */
static int lock_folder(const char *dir, int *ret_lock, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    int rv = fl__store_join(path, dir, "federation.db", err);

    if (rv != FL_OK || !fl_fs_exists(path)) {
        return rv;
    }
    rv = fl_fs_lock_dir(dir, ret_lock, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__store_join(path, dir, ".lock", err);
    if (rv != FL_OK) {
        return rv;
    }
    return moved_set_owner(dir, path, err);
}

int fl_moved_make(struct fl_backup *backup, struct fl_err *err)
{
    struct fl_err inner = {0};
    int lock = -1;
    int rv = lock_folder(backup->dir, &lock, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_moved_check(backup->dir, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_backup_make(backup, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = write_moved_mark(backup, &inner);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv,
                         "the backup is whole, but the state folder is not marked as moved and "
                         "could be started again: %.600s; fix that, remove '%s', and do it again",
                         fl_err_text(&inner, rv), backup->target);
    }
done:
    if (lock >= 0) {
        (void)close(lock);
    }
    return rv;
}

int fl_moved_undo(const char *dir, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    int lock = -1;
    int rv = lock_folder(dir, &lock, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__store_join(path, dir, MARK, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (unlink(path) != 0) {
        rv = errno == ENOENT
                 ? fl_err_set(err, FL_ENOENT, "state folder '%s' is not marked as moved", dir)
                 : fl__store_fail(err, "cannot remove", path);
        goto done;
    }
    rv = fl_fs_sync_dir(dir, err);
done:
    if (lock >= 0) {
        (void)close(lock);
    }
    return rv;
}
