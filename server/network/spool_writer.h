#ifndef FL_SERVER_NETWORK_SPOOL_WRITER_H
#define FL_SERVER_NETWORK_SPOOL_WRITER_H

/*
 * A spool file that is written on the io thread. Operations run in the order of the calls, and
 * their completions are delivered in the same order, on the network loop, never inside the call.
 * Pieces may be appended right after opening: they wait for it.
 *
 * Backpressure is the caller's: a piece is in memory until its `appended`, so a caller that returns
 * window credit only then never receives more than its window.
 *
 * Ownership: a writer lives until it is closed and the io thread has finished its jobs; no
 * completion is delivered after the close. Threading: the network loop.
 */

#include "server/network/frontend_impl.h"

struct fl_spool_writer;

/* A piece of the encoded bytes, and the memory that contains it. */
struct fl_spool_piece {
    uint64_t offset;
    const uint8_t *data; /* in `memory` */
    size_t len;
    uint8_t *memory;
    size_t memory_len;
};

/* Every completion may close the writer. `received`: bytes in the file now. `err` is borrowed. */
struct fl_spool_writer_cbs {
    /* Result of fl_spool_open(). After an error only fl_spool_writer_close() is allowed. */
    void (*opened)(void *ctx, int code, uint64_t received, const struct fl_err *err);
    /* Result of fl_spool_write() for a piece with `memory_len`. */
    void (*appended)(void *ctx, int code, uint64_t received, size_t memory_len,
                     const struct fl_err *err);
    /*
     * Result of fl_spool_finish(). `norms` of a valid file; members that are moved out are the
     * callee's.
     */
    void (*finished)(void *ctx, int code, struct fl_norms *norms, const struct fl_err *err);
};

/* The file of (`key`, `client`), which are copied. `cbs` and `ctx` are borrowed. */
struct fl_spool_writer_setup {
    struct fl_frontend *frontend;
    const struct fl_session_key *key;
    const char *client;
    struct fl_spool_part *parts; /* taken on success */
    size_t n_parts;
    const struct fl_spool_writer_cbs *cbs;
    void *ctx;
};

/* Open the file, or continue it. FL_ENOMEM, FL_ECLOSED. */
FL_MUST_CHECK int fl_spool_writer_open(const struct fl_spool_writer_setup *setup,
                                       struct fl_spool_writer **ret);
/* Takes the piece's memory. FL_ENOMEM, FL_ECLOSED. */
FL_MUST_CHECK int fl_spool_writer_append(struct fl_spool_writer *w,
                                         const struct fl_spool_piece *piece);
/* Validate and complete the file. FL_ENOMEM, FL_ECLOSED. */
FL_MUST_CHECK int fl_spool_writer_finish(struct fl_spool_writer *w);
/* True when no completion is pending. */
bool fl_spool_writer_idle(const struct fl_spool_writer *w);
/*
 * Close the file as it is, after the pending operations and before those of any later writer. NULL
 * is allowed.
 */
void fl_spool_writer_close(struct fl_spool_writer *w);

#endif
