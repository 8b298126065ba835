#ifndef FL_H2_H2_H
#define FL_H2_H2_H

/*
 * An HTTP/2 session that carries gRPC calls: bytes in, calls out; messages in, bytes out. No I/O,
 * no clock. The only user of nghttp2.
 *
 * Driving it: feed received bytes to fl_h2_recv(), then send what fl_h2_output() offers and report
 * it with fl_h2_sent(); call fl_h2_tick() at fl_h2_deadline(). fl_call_*() functions may create
 * output too: `wake` notifies the owner, once until the next fl_h2_output() (or fl_h2_dispatch(),
 * for callbacks). nghttp2 is never entered from one of its own callbacks.
 *
 * Control messages never wait behind bulk data: calls with little queued (under 64 KiB) are served
 * before calls with much.
 *
 * Calls that carry bulk data (fl_call_set_bulk()) are limited to fl_rpc_limits.send_rate and
 * take_rate, by ticks.
 *
 * Threading: one loop.
 */

#include <sys/uio.h>

#include "libfl/base/budget.h"
#include "libfl/rpc/call.h"

struct fl_h2;

/* There may be output, or callbacks are due: run output or dispatch soon (not from here). */
typedef void (*fl_h2_wake_cb)(void *ctx);

struct fl_h2_setup {
    struct fl_rpc_limits limits;
    const char *peer; /* copied; for fl_call_peer() */
    fl_h2_wake_cb wake;
    /* A call ended because of what its peer does or fails to do; for logs. May be NULL. */
    void (*notice)(void *ctx, const struct fl_call *call, const char *reason, const char *text);
    void *ctx;
    /* The budget of the session's account, with `ctx` as its owner; NULL: none. */
    struct fl_budget *budget;
    const struct fl_rpc_method *methods; /* server; kept, ended by a NULL path */
    const char *authority;               /* client */
    bool secure; /* client: the stream below is verified, :scheme is https */
};

FL_MUST_CHECK int fl_h2_server_create(const struct fl_h2_setup *setup, struct fl_h2 **ret);
FL_MUST_CHECK int fl_h2_client_create(const struct fl_h2_setup *setup, struct fl_h2 **ret);
/*
 * Closes all calls with UNAVAILABLE (their on_closed runs here), then frees. Not from a callback of
 * this session.
 */
void fl_h2_free(struct fl_h2 *h2);

/*
 * Feeds bytes. FL_EPROTO, FL_ELIMIT: the connection has failed; flush the output and close. Runs
 * callbacks.
 */
FL_MUST_CHECK int fl_h2_recv(struct fl_h2 *h2, const void *data, size_t len);
/*
 * Up to `max` runs of bytes to write now, in order; they stay valid until fl_h2_sent(). Returns
 * their number, 0: nothing to send. Negative: fatal, and all output has been sent. A bounded amount
 * is offered at a time: ask again after fl_h2_sent().
 */
int fl_h2_output(struct fl_h2 *h2, struct iovec *iov, int max);
void fl_h2_sent(struct fl_h2 *h2, size_t n);
/*
 * Sets how much fl_h2_output() offers at a time: about `bytes`, at most two full frames (the
 * default). Bulk data is then cut into frames of half of it: a control message cannot overtake
 * offered bytes, so a slow link needs a small value.
 */
void fl_h2_set_pacing(struct fl_h2 *h2, size_t bytes);
/* Delivers due callbacks (on_writable, on_closed of cancelled calls). */
void fl_h2_dispatch(struct fl_h2 *h2);
/* Deadlines of calls; `now_ms` monotonic. Runs callbacks. */
void fl_h2_tick(struct fl_h2 *h2, uint64_t now_ms);
/*
 * When to call fl_h2_tick(); UINT64_MAX: no need. A session learns the time from ticks only:
 * 0 means now, because something has begun whose time must be measured. Ask again after
 * every other function.
 */
uint64_t fl_h2_deadline(const struct fl_h2 *h2);
/* Both directions have ended, or the connection has failed: close after the output is flushed. */
bool fl_h2_finished(const struct fl_h2 *h2);
/* The peer's SETTINGS have arrived: the handshake is complete. */
bool fl_h2_ready(const struct fl_h2 *h2);
/*
 * Number of calls whose request has been read (server) or begun (client), and that are not closed.
 */
size_t fl_h2_calls(const struct fl_h2 *h2);
/*
 * Server: sets the class of the peer (enum fl_who), why it was rejected (NULL: no reason), and its
 * identity; all copied. Default: FL_WHO_PLAIN. Running calls continue. FL_ENOMEM: nothing has
 * changed.
 */
FL_MUST_CHECK int fl_h2_identify(struct fl_h2 *h2, uint32_t who, const char *why,
                                 const struct fl_identity *identity);
uint32_t fl_h2_who(const struct fl_h2 *h2);
const struct fl_identity *fl_h2_identity(const struct fl_h2 *h2); /* NULL: unknown */
/* Server: ends all calls with PERMISSION_DENIED and `why`. */
void fl_h2_expel(struct fl_h2 *h2, const char *why);
/* The account of what the session holds for its peer. */
struct fl_account *fl_h2_account(struct fl_h2 *h2);
/* Bytes that were fed so far. */
uint64_t fl_h2_received(const struct fl_h2 *h2);
/* Sends a PING, which the peer answers. */
void fl_h2_ping(struct fl_h2 *h2);
/* Sends GOAWAY: no new calls, open ones end normally. */
void fl_h2_drain(struct fl_h2 *h2);

/*
 * Client: begins a call. `timeout_ms` 0: no deadline; it is sent as grpc-timeout and enforced here
 * too. FL_EAGAIN: the peer's stream limit is reached; FL_ECLOSED: the connection is draining.
 */
FL_MUST_CHECK int fl_h2_call(struct fl_h2 *h2, const char *path, uint64_t now_ms,
                             uint64_t timeout_ms, const struct fl_call_handler *handler, void *ctx,
                             struct fl_call **ret);

#endif
