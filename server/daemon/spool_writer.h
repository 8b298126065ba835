#ifndef FL_SERVERD_SPOOL_WRITER_H
#define FL_SERVERD_SPOOL_WRITER_H

/*
 * A spool file that is written on the io lane. What is asked of it happens in that order, and each
 * completion comes in the same order, on the network loop, never inside the function that asked.
 * Pieces may be appended as soon as it exists: they wait behind the opening.
 *
 * Backpressure is the caller's: a piece is in memory until `appended` tells of it, so whoever gives
 * window credit back only then is never sent more than its window.
 *
 * Ownership: it lives until it is closed and the lane has done what it has of it; whoever closed it
 * hears nothing more. Threading: the network loop.
 */

#include "server/daemon/frontend_impl.h"

struct fl_spool_writer;

/* A piece of the coded bytes, and the memory in which it lies. */
struct fl_spool_piece {
    uint64_t offset;
    const uint8_t *data; /* in `memory` */
    size_t len;
    uint8_t *memory;
    size_t memory_len;
};

/* Every completion may close the writer. `received`: bytes in the file now. `err` is borrowed. */
struct fl_spool_writer_cbs {
    /* As fl_spool_open(). After an error only fl_spool_writer_close() makes sense. */
    void (*opened)(void *ctx, int code, uint64_t received, const struct fl_err *err);
    /* As fl_spool_write(); of a piece that had `memory_len`. */
    void (*appended)(void *ctx, int code, uint64_t received, size_t memory_len,
                     const struct fl_err *err);
    /* As fl_spool_finish(). `norms` of a good one; what is taken out of them is the callee's. */
    void (*finished)(void *ctx, int code, struct fl_norms *norms, const struct fl_err *err);
};

/* Open, or continue, the file of (`key`, `client`). Takes `parts`. FL_ENOMEM, FL_ECLOSED. */
FL_MUST_CHECK int fl_spool_writer_open(struct fl_frontend *frontend,
                                       const struct fl_session_key *key, const char *client,
                                       struct fl_spool_part *parts, size_t n_parts,
                                       const struct fl_spool_writer_cbs *cbs, void *ctx,
                                       struct fl_spool_writer **ret);
/* Takes the piece's memory. FL_ENOMEM, FL_ECLOSED. */
FL_MUST_CHECK int fl_spool_writer_append(struct fl_spool_writer *w,
                                         const struct fl_spool_piece *piece);
/* Validate and complete it. FL_ENOMEM, FL_ECLOSED. */
FL_MUST_CHECK int fl_spool_writer_finish(struct fl_spool_writer *w);
/* Nothing that was asked for is still to complete. */
bool fl_spool_writer_idle(const struct fl_spool_writer *w);
/*
 * Give the file up as it is, behind what was asked for and before any writer that comes later. NULL
 * is allowed.
 */
void fl_spool_writer_close(struct fl_spool_writer *w);

#endif
