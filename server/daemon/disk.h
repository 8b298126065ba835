#ifndef FL_SERVERD_DISK_H
#define FL_SERVERD_DISK_H

/*
 * What peers want to know of files, asked on the io lane: the network loop never waits for a disk.
 * A few of these jobs are on the lane at a time, the others wait here in the order of asking. So
 * what uploads write comes in between, and whoever asks and goes away leaves little behind however
 * slow the disk is.
 *
 * Ownership: fl_disk_ask() takes the job, which is freed after `release`. Threading: the network
 * loop, but for `work`.
 */

#include "libfl/base/list.h"
#include "libfl/net/loop.h"

struct fl_frontend;

/* Lies first in what its owner makes with calloc(). */
struct fl_disk_job {
    int (*work)(struct fl_disk_job *job);     /* on the lane; touches nothing but the job */
    void (*done)(struct fl_disk_job *job);    /* on the loop, unless it was forgotten */
    void (*release)(struct fl_disk_job *job); /* lets go of what it holds; may be NULL */
    int code;                                 /* of `work`, or why it could not run */
    /* From here on private. */
    struct fl_list waits;
    struct fl_frontend *frontend;
    bool forgotten;
};

/* The jobs that wait, and how many the lane has; all zero at first. */
struct fl_disk {
    struct fl_list waiting; /* in the order of asking */
    unsigned n_on_lane;
};

/* Takes `job`. FL_ENOMEM; FL_ECLOSED: all ends. */
FL_MUST_CHECK int fl_disk_ask(struct fl_frontend *frontend, struct fl_disk_job *job);
/* Nobody waits for it any more. NULL is allowed. */
void fl_disk_forget(struct fl_disk_job *job);

#endif
