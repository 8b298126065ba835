#ifndef FL_CLIENTD_SAVED_FILE_H
#define FL_CLIENTD_SAVED_FILE_H

/*
 * A small file of the state folder that the training thread writes, so that no disk delays the
 * loop: one write at a time, and then the newest content. For what a restarted client can do
 * without, as a kill loses what is not written yet.
 *
 * Threading: the loop; only `write` runs on the training thread.
 */

#include "client/daemon/jobs.h"

struct fl_saved_file {
    /* Set by the caller; borrowed */
    const struct fl_jobs *jobs;
    const char *state_dir;
    int (*write)(const char *state_dir, const void *data, size_t n, struct fl_err *err);
    void (*written)(void *ctx, int rv, const struct fl_err *err); /* err: of an error */
    void *ctx;
    /* Its own */
    struct fl_saved_write *next; /* content that no write began with */
    bool writing;
};

/* Saves a copy of `data`, as soon as there is a training thread. */
void fl_saved_file_set(struct fl_saved_file *file, const void *data, size_t n);
/*
 * Writes on this thread what the training thread, which has ended, did not. Call it after the loop
 * was freed.
 */
void fl_saved_file_end(struct fl_saved_file *file);

#endif
