#ifndef FL_NET_STREAM_H
#define FL_NET_STREAM_H

/*
 * Streams of bytes, independent of their transport: a table of functions that a socket implements
 * (conn.h), or a filter over another stream (compression, TLS). The user of a stream does not see
 * the layers below.
 *
 * Bytes to send are pulled: a stream asks for them with `output` when it can send some, and reports
 * with `sent` how many of these are on their way to the peer. Bytes that it has not asked for stay
 * with its user, who can still put more urgent ones in front.
 *
 * A filter starts the stream below with its own callbacks and calls those of its user. It
 *   - pulls only when the stream below has taken all bytes that the filter made before, and reports
 *     `sent` then or in parts, counted in bytes of its user, so that no more is committed than is
 *     in flight;
 *   - may send and receive before its user's first byte (a handshake): it asks for output with
 *     fl_stream_wake() below, delays `on_open` until the handshake is done, and pulls nothing until
 *     then;
 *   - passes `on_wake` on, and while it is paused keeps its input until after a wake;
 *   - charges the bytes that it holds to the account that it is given, and passes it to the
 *     stream below;
 *   - sends its own final bytes after its user's when the user closes with a flush;
 *   - when it fails (a damaged record), closes the stream below and reports its own code and
 *     text in `on_close`, from within the on_close of the stream below and never earlier; after
 * that it is freed.
 *
 * Threading: one loop. Callbacks never run inside the function that caused them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "libfl/base/err.h"
#include "libfl/base/identity.h"

/*
 * Every callback may call every function below, on its own stream too. After fl_stream_close() and
 * fl_stream_close_flushed() no more on_data comes.
 */
struct fl_stream_cbs {
    /* The stream is connected (outgoing ones only). */
    void (*on_open)(void *ctx);
    void (*on_data)(void *ctx, const uint8_t *data, size_t len);
    /* First step after fl_stream_wake(), before `output`, even while the socket takes nothing.
       May be NULL. */
    void (*on_wake)(void *ctx);
    /* Up to `max` runs of bytes to send, valid until `sent`; 0: nothing; negative: close. */
    int (*output)(void *ctx, struct iovec *iov, int max);
    /* The first `n` bytes of the last `output` are taken. */
    void (*sent)(void *ctx, size_t n);
    /*
     * The last callback, exactly once. `code` is FL_OK after the peer's orderly end or after
     * fl_stream_close(), else the reason (FL_EUNAVAIL, FL_ETIMEOUT, FL_EIO, what `output` returned)
     * with `text`, which names the peer and is borrowed. The stream is freed.
     */
    void (*on_close)(void *ctx, int code, const char *text);
};

struct fl_account;
struct fl_stream;

struct fl_stream_ops {
    void (*start)(struct fl_stream *stream, const struct fl_stream_cbs *cbs, void *ctx);
    void (*wake)(struct fl_stream *stream);
    void (*pause)(struct fl_stream *stream, bool paused);
    void (*close)(struct fl_stream *stream);
    void (*close_flushed)(struct fl_stream *stream, uint32_t timeout_ms);
    const char *(*peer)(const struct fl_stream *stream);
    /* May be NULL: the peer is never identified. */
    const struct fl_identity *(*identity)(const struct fl_stream *stream);
    /* May be NULL: the stream holds no bytes. */
    void (*charge)(struct fl_stream *stream, struct fl_account *account);
};

/* First member of every implementation. */
struct fl_stream {
    const struct fl_stream_ops *ops;
};

/*
 * Once, before every other function but the closing ones, and before the loop runs again. `ctx`
 * lives until on_close.
 */
static inline void fl_stream_start(struct fl_stream *stream, const struct fl_stream_cbs *cbs,
                                   void *ctx)
{
    stream->ops->start(stream, cbs, ctx);
}

/* There may be output now. */
static inline void fl_stream_wake(struct fl_stream *stream)
{
    stream->ops->wake(stream);
}

/* Stop and start reading, for backpressure. */
static inline void fl_stream_pause(struct fl_stream *stream, bool paused)
{
    stream->ops->pause(stream, paused);
}

/*
 * Closes now, unsent bytes are dropped; on_close follows. Idempotent. A stream that was not started
 * is freed at once.
 */
static inline void fl_stream_close(struct fl_stream *stream)
{
    stream->ops->close(stream);
}

/*
 * Closes when `output` has nothing more and the peer has closed too, or after `timeout_ms`:
 * FL_ETIMEOUT when bytes were still unsent then.
 */
static inline void fl_stream_close_flushed(struct fl_stream *stream, uint32_t timeout_ms)
{
    stream->ops->close_flushed(stream, timeout_ms);
}

/* "127.0.0.1:50312" or "unix"; valid until on_close has returned. */
static inline const char *fl_stream_peer(const struct fl_stream *stream)
{
    return stream->ops->peer(stream);
}

/*
 * The peer's identity, as far as the stream has verified it; NULL: not verified. It is final before
 * the first on_data, for outgoing streams with on_open; valid until on_close has returned.
 */
static inline const struct fl_identity *fl_stream_identity(const struct fl_stream *stream)
{
    return stream->ops->identity != NULL ? stream->ops->identity(stream) : NULL;
}

/*
 * Once, before the start: charges the bytes of its user and its peer that the stream holds to
 * `account` (libfl/base/budget.h), which lives until on_close. The account to evict is chosen
 * inside a callback of the stream below.
 */
static inline void fl_stream_charge(struct fl_stream *stream, struct fl_account *account)
{
    if (stream->ops->charge != NULL) {
        stream->ops->charge(stream, account);
    }
}

/* A filter over each stream of a server, or over the stream of a channel. */
struct fl_stream_filter {
    /*
     * Returns a stream over `below`, which is not started yet and is taken on success only.
     * FL_ENOMEM.
     */
    int (*wrap)(void *ctx, struct fl_stream *below, struct fl_stream **ret);
    void *ctx;
};

/* Puts `filter` (may be NULL) over `*stream`, which stays the caller's on error. FL_ENOMEM. */
FL_MUST_CHECK static inline int fl_stream_wrap(const struct fl_stream_filter *filter,
                                               struct fl_stream **stream)
{
    return filter != NULL ? filter->wrap(filter->ctx, *stream, stream) : FL_OK;
}

#endif
