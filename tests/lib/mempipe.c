#include "tests/lib/mempipe.h"

#include <stdlib.h>
#include <string.h>

#define WIRE_MAX ((size_t)256 * 1024 * 1024)
/* An odd number of runs, so that runs are split between two offers. */
#define IOV_MAX_TEST 5

void (*mempipe_own_memory)(bool own);

/* The pipe's own memory does not fail when a test lets allocations fail. */
static void own_memory(bool own)
{
    if (mempipe_own_memory != NULL) {
        mempipe_own_memory(own);
    }
}

void mempipe_init(struct mempipe *pipe, struct fl_h2 *client, struct fl_h2 *server)
{
    *pipe = (struct mempipe){.end = {client, server}};
    fl_buf_init(&pipe->wire[MEMPIPE_UP], WIRE_MAX);
    fl_buf_init(&pipe->wire[MEMPIPE_DOWN], WIRE_MAX);
}

void mempipe_done(struct mempipe *pipe)
{
    fl_h2_free(pipe->end[MEMPIPE_UP]);
    fl_h2_free(pipe->end[MEMPIPE_DOWN]);
    fl_buf_done(&pipe->wire[MEMPIPE_UP]);
    fl_buf_done(&pipe->wire[MEMPIPE_DOWN]);
}

size_t mempipe_collect(struct mempipe *pipe, int dir, size_t max)
{
    struct iovec iov[IOV_MAX_TEST];
    size_t total = 0;
    int n = fl_h2_output(pipe->end[dir], iov, IOV_MAX_TEST);
    int i;

    for (i = 0; i < n && total < max; i++) {
        size_t len = iov[i].iov_len < max - total ? iov[i].iov_len : max - total;

        own_memory(true);
        if (fl_buf_add(&pipe->wire[dir], iov[i].iov_base, len) != FL_OK) {
            abort();
        }
        own_memory(false);
        total += len;
    }
    fl_h2_sent(pipe->end[dir], total);
    pipe->sent[dir] += total;
    return total;
}

size_t mempipe_deliver(struct mempipe *pipe, int dir, size_t n)
{
    struct fl_buf *wire = &pipe->wire[dir];
    size_t at = pipe->arrived[dir];
    uint8_t *exact;
    int rv;

    n = n < wire->len - pipe->start[dir] ? n : wire->len - pipe->start[dir];
    if (pipe->cut[dir] > at && pipe->cut[dir] < at + n) {
        n = pipe->cut[dir] - at;
    }
    if (n == 0) {
        return 0;
    }
    if (!pipe->broken[dir]) {
        /* Memory of exactly this size: reading past the input is noticed. */
        own_memory(true);
        exact = malloc(n);
        own_memory(false);
        if (exact == NULL) {
            abort();
        }
        (void)memcpy(exact, wire->data + pipe->start[dir], n);
        rv = fl_h2_recv(pipe->end[1 - dir], exact, n);
        free(exact);
        if (rv != FL_OK) {
            pipe->broken[dir] = true;
            pipe->code[dir] = rv;
        }
    }
    pipe->start[dir] += n;
    if (pipe->start[dir] == wire->len) {
        pipe->start[dir] = 0;
        fl_buf_clear(wire);
    }
    pipe->arrived[dir] += n;
    return n;
}

void mempipe_run(struct mempipe *pipe)
{
    bool moved = true;
    int dir;

    while (moved) {
        moved = false;
        for (dir = 0; dir < 2; dir++) {
            if (!pipe->blocked[dir]) {
                moved = mempipe_collect(pipe, dir, SIZE_MAX) > 0 || moved;
            }
            fl_h2_dispatch(pipe->end[dir]);
            if (!pipe->parked[dir]) {
                moved =
                    mempipe_deliver(pipe, dir, pipe->step > 0 ? pipe->step : SIZE_MAX) > 0 || moved;
            }
        }
    }
}
