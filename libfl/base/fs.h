#ifndef FL_BASE_FS_H
#define FL_BASE_FS_H

/*
 * Files: whole reads with a limit, atomic replacement, folders, a folder lock.
 * Blocking; never called from a network loop with large files.
 */

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
/* The last two steps of the above for a file that was written by other means. */
FL_MUST_CHECK int fl_fs_publish(const char *tmp, const char *path, bool sync, struct fl_err *err);
FL_MUST_CHECK int fl_fs_sync_dir(const char *path, struct fl_err *err);
/* Write all `len` bytes at `offset`. */
FL_MUST_CHECK int fl_fs_pwrite(int fd, const void *data, size_t len, uint64_t offset);
/* Read exactly `len` bytes at `offset`; FL_EFORMAT when the file ends before. */
FL_MUST_CHECK int fl_fs_pread(int fd, void *data, size_t len, uint64_t offset);
/* Remove a file; a missing one is fine. */
FL_MUST_CHECK int fl_fs_remove(const char *path);
bool fl_fs_exists(const char *path);
/*
 * Call `cb` for each name in `folder`, in no order; an error of it is returned at once. A folder
 * that is not there has none. Of a file that is made or removed meanwhile nothing is promised.
 */
typedef int fl_fs_each_cb(void *ctx, const char *folder, const char *name, struct fl_err *err);
FL_MUST_CHECK int fl_fs_each(const char *folder, fl_fs_each_cb *cb, void *ctx, struct fl_err *err);
/*
 * Remove the files of `folder` whose names `goes`. All are tried; the error is of the first that
 * stays.
 */
typedef bool fl_fs_goes_cb(const void *ctx, const char *name);
FL_MUST_CHECK int fl_fs_remove_each(const char *folder, fl_fs_goes_cb *goes, const void *ctx,
                                    struct fl_err *err);
/*
 * Take the lock file `dir`/.lock for the life of the process; FL_EINUSE names the
 * process that holds it. The descriptor is returned; closing it gives the lock up.
 */
FL_MUST_CHECK int fl_fs_lock_dir(const char *dir, int *ret_fd, struct fl_err *err);
/*
 * The process that holds the lock of `dir`, as it wrote itself down; 0: none, or not to be known.
 * Makes and changes nothing; a process that takes the lock at that very moment finds it taken.
 */
long fl_fs_lock_holder(const char *dir);
/*
 * The same where every holder needs the lock for a moment only, to write some files: waits for it
 * for up to 10 s. Sleeps meanwhile; not for a thread that serves connections.
 */
FL_MUST_CHECK int fl_fs_lock_dir_wait(const char *dir, int *ret_fd, struct fl_err *err);
/* `path` from the root on, by the current folder. FL_ELIMIT when it does not fit. */
FL_MUST_CHECK int fl_fs_absolute(const char *path, char *out, size_t size, struct fl_err *err);
/*
 * Could this folder be made, and files in it? Changes nothing. The error names the folder that is
 * in the way.
 */
FL_MUST_CHECK int fl_fs_check_folder(const char *path, struct fl_err *err);
/* Could this file be made in its folder, which has to be there? */
FL_MUST_CHECK int fl_fs_check_place(const char *path, struct fl_err *err);
/*
 * "cannot WHAT 'PATH': Permission denied", with whose it is, who this is and how that is mended
 * where another user has it; else the text of `errnum`. Returns its code.
 */
int fl_fs_denied(struct fl_err *err, int errnum, const char *what, const char *path);
/* "a/b" into `out`; FL_ELIMIT when it does not fit. */
FL_MUST_CHECK int fl_fs_join(char *out, size_t size, const char *a, const char *b);

#endif
