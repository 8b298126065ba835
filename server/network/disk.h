#ifndef FL_SERVER_NETWORK_DISK_H
#define FL_SERVER_NETWORK_DISK_H

/*
 * File requests of peers, executed on the io thread: the network loop never waits for a disk. A few
 * of these jobs are on the thread at a time, the others wait here in the order of their requests.
 * So writes of uploads are interleaved with them, and a peer that disconnects leaves little work
 * behind however slow the disk is.
 *
 * Ownership: fl_disk_ask() takes the job, which is freed after `release`. Threading: the network
 * loop, except `work`.
 */

#include "libfl/base/list.h"
#include "libfl/net/loop.h"

struct fl_frontend;

/* The first member of the owner's struct, which is allocated with calloc(). */
struct fl_disk_job {
    int (*work)(struct fl_disk_job *job);     /* on the io thread; touches nothing but the job */
    void (*done)(struct fl_disk_job *job);    /* on the loop, unless it was forgotten */
    void (*release)(struct fl_disk_job *job); /* frees the members of the job; may be NULL */
    int code;                                 /* of `work`, or why it could not run */
    /* Private from here on. */
    struct fl_list waits;
    struct fl_frontend *frontend;
    bool forgotten;
};

/* The waiting jobs, and how many the io thread has; zero-initialized. */
struct fl_disk {
    struct fl_list waiting; /* in the order of the requests */
    unsigned n_submitted;
};

/* Takes `job`. FL_ENOMEM; FL_ECLOSED: shutting down. */
FL_MUST_CHECK int fl_disk_ask(struct fl_frontend *frontend, struct fl_disk_job *job);
/* Drops interest in the result: `done` is not called. NULL is allowed. */
void fl_disk_forget(struct fl_disk_job *job);

#endif
