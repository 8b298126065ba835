#ifndef FL_TESTS_MEMPIPE_H
#define FL_TESTS_MEMPIPE_H

/*
 * A client and a server session joined in memory. mempipe_run() moves bytes until nothing
 * moves any more: all at once, `step` bytes at a time, or cut at one position. Either
 * direction can stand still: `blocked` (the sender's socket is full) or `parked` (bytes are
 * under way and do not arrive).
 */

#include "libfl/base/buf.h"
#include "libfl/h2/h2.h"

enum { MEMPIPE_UP, MEMPIPE_DOWN }; /* client to server, server to client */

struct mempipe {
    struct fl_h2 *end[2];  /* the sender of each direction: client, server */
    struct fl_buf wire[2]; /* bytes under way, from `start` */
    size_t start[2];
    bool blocked[2];
    bool parked[2];
    bool broken[2]; /* the receiver has refused bytes */
    size_t step;    /* 0: everything there is */
    size_t cut[2];  /* an offset in the stream where a delivery ends; 0: none */
    size_t sent[2]; /* bytes that left the sender */
    size_t arrived[2];
    int code[2]; /* first error of the receiver of each direction */
};

/* Called around the pipe's own allocations when set. */
extern void (*mempipe_own_memory)(bool own);

void mempipe_init(struct mempipe *pipe, struct fl_h2 *client, struct fl_h2 *server);
/* Frees both sessions. */
void mempipe_done(struct mempipe *pipe);
void mempipe_run(struct mempipe *pipe);
/* Let at most `n` bytes arrive in one direction; returns how many did. */
size_t mempipe_deliver(struct mempipe *pipe, int dir, size_t n);
/* Take what the sender offers, at most `max` bytes; returns how many. */
size_t mempipe_collect(struct mempipe *pipe, int dir, size_t max);

#endif
