#ifndef FL_BASE_FS_H
#define FL_BASE_FS_H

/*
 * Files: reading whole files with a limit, atomic replacement, folders, a folder lock. Blocking;
 * never called from a network loop for large files.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/base/err.h"

/* Create `path` and its parents with mode 0750, durably; an existing folder is fine. */
FL_MUST_CHECK int fl_fs_mkdirs(const char *path, struct fl_err *err);
/* Read a whole file; FL_ELIMIT when it is longer than `max`. `buf` is initialised here. */
FL_MUST_CHECK int fl_fs_read(const char *path, size_t max, struct fl_buf *ret_buf,
                             struct fl_err *err);
/*
 * Replace `path` so that after any crash it holds either the old or the new
 * bytes: write `path`.tmp, fsync when `sync`, rename, fsync the folder when `sync`.
 */
FL_MUST_CHECK int fl_fs_replace(const char *path, const void *data, size_t len, bool sync,
                                struct fl_err *err);
/* The same for `n` pieces of memory, written one after another without being copied together. */
struct fl_fs_run {
    const void *data;
    size_t len;
};
FL_MUST_CHECK int fl_fs_replace_runs(const char *path, const struct fl_fs_run *runs, size_t n,
                                     bool sync, struct fl_err *err);
/* The last two steps of fl_fs_replace(), for a file that was written otherwise. */
FL_MUST_CHECK int fl_fs_publish(const char *tmp, const char *path, bool sync, struct fl_err *err);
FL_MUST_CHECK int fl_fs_sync_dir(const char *path, struct fl_err *err);
/* Write all `len` bytes at `offset`. */
FL_MUST_CHECK int fl_fs_pwrite(int fd, const void *data, size_t len, uint64_t offset);
/* Read exactly `len` bytes at `offset`; FL_EFORMAT when the file ends before. */
FL_MUST_CHECK int fl_fs_pread(int fd, void *data, size_t len, uint64_t offset);
int fl_fs_fdatasync(int fd); /* as fdatasync(2) */
/*
 * Watch the disk of the calling thread: while one of these functions reads, writes or syncs,
 * `*since_ms` is when the call began (fl_clock_ms()), else 0. NULL: no longer.
 */
void fl_fs_watch(atomic_uint_fast64_t *since_ms);
/* Remove a file; a missing one is fine. */
FL_MUST_CHECK int fl_fs_remove(const char *path);
/* Remove a folder with its contents, on its file system; links are removed, never followed. A
 * missing one is fine. */
FL_MUST_CHECK int fl_fs_remove_tree(const char *path, struct fl_err *err);
bool fl_fs_exists(const char *path);
/* Free space for this user, and the size, of the file system of `path`, in bytes. */
struct fl_fs_room {
    uint64_t free, size;
};
FL_MUST_CHECK int fl_fs_space(const char *path, struct fl_fs_room *ret);
/*
 * Call `cb` for each name in `folder`, in no order; an error of `cb` is returned at once. A missing
 * folder is empty. A file that is created or removed meanwhile may or may not be listed.
 */
typedef int fl_fs_each_cb(void *ctx, const char *folder, const char *name, struct fl_err *err);
FL_MUST_CHECK int fl_fs_each(const char *folder, fl_fs_each_cb *cb, void *ctx, struct fl_err *err);
/*
 * Remove the files of `folder` for whose names `goes` returns true; "." and ".." are not asked for.
 * Continues after an error; returns the first error.
 */
typedef bool fl_fs_goes_cb(const void *ctx, const char *name);
FL_MUST_CHECK int fl_fs_remove_each(const char *folder, fl_fs_goes_cb *goes, const void *ctx,
                                    struct fl_err *err);
/*
 * Take the lock file `dir`/.lock for the life of the process; FL_EINUSE names the
 * process that holds it. Returns the descriptor owned; closing it releases the lock.
 */
FL_MUST_CHECK int fl_fs_lock_dir(const char *dir, int *ret_fd, struct fl_err *err);
/*
 * The process id that the holder of the lock of `dir` wrote into it; 0: not locked, or unknown.
 * Changes no file; but a process that tries the lock at the same moment can fail with FL_EINUSE.
 */
long fl_fs_lock_holder(const char *dir);
/*
 * As fl_fs_lock_dir(), for locks that are held only briefly, to write some files: waits up to 10 s.
 * Sleeps meanwhile; not for a thread that serves connections.
 */
FL_MUST_CHECK int fl_fs_lock_dir_wait(const char *dir, int *ret_fd, struct fl_err *err);
/* Make `path` absolute, relative to the current folder. FL_ELIMIT when it does not fit. */
FL_MUST_CHECK int fl_fs_absolute(const char *path, char *out, size_t size, struct fl_err *err);
/*
 * Check that this folder could be created, and files in it. Changes nothing. The error names the
 * folder that prevents it.
 */
FL_MUST_CHECK int fl_fs_check_folder(const char *path, struct fl_err *err);
/* Check that this file could be created in its folder, which must exist. */
FL_MUST_CHECK int fl_fs_check_place(const char *path, struct fl_err *err);
/*
 * Sets "cannot WHAT 'PATH': Permission denied" with the owner, the current user and the fix when
 * another user owns the path; otherwise the text of `errnum`. Returns the code of `errnum`.
 */
int fl_fs_denied(struct fl_err *err, int errnum, const char *what, const char *path);
/* "a/b" into `out`; FL_ELIMIT when it does not fit. */
FL_MUST_CHECK int fl_fs_join(char *out, size_t size, const char *a, const char *b);

#endif
