#ifndef FL_NET_NET_IMPL_H
#define FL_NET_NET_IMPL_H

/* Declarations that the files of libfl/net share. Private to libfl/net. */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <uv.h>

#include "libfl/base/sm.h"
#include "libfl/net/address.h"
#include "libfl/net/address_range.h"
#include "libfl/net/conn.h"
#include "libfl/net/loop.h"

/*
 * One read buffer serves all connections of a loop, so that an idle connection needs none. 256 KiB:
 * measured on loopback; smaller buffers cost system calls, larger ones leave the cache.
 */
#define FL__READ_BYTES (256u * 1024)
/*
 * Bytes that one connection may read or write in one turn of the loop before the others have their
 * turn.
 */
#define FL__TURN_BYTES (1024u * 1024)
/* Longest text of on_close. */
#define FL__TEXT_MAX 384

/*
 * A function to run on the loop. It is freed with free() after it ran, so it must be the first
 * member of the struct that embeds it.
 */
struct fl__post {
    struct fl__post *next;
    fl_loop_cb fn;
    void *arg;
};

struct fl_loop {
    uv_loop_t uv;
    uv_async_t async;
    uv_prepare_t prepare; /* Runs the due connections before each poll. */
    uv_idle_t idle;       /* Active while connections are due: keeps the poll from waiting. */
    pthread_mutex_t lock; /* Guards posts_head and posts_tail. */
    struct fl__post *posts_head;
    struct fl__post **posts_tail;
    atomic_bool stop;
    struct fl_conn *due_head; /* Connections with something to do, in order of fl_stream_wake(). */
    struct fl_conn *due_tail;
    char *read_buf;
    uint32_t turn;      /* Number of this turn of the loop. */
    unsigned n_open;    /* Open timers, signals, listeners and connections. */
    unsigned n_closing; /* Handles that libuv has not closed yet. */
};

/* Queue a post that cannot fail. Takes `post`. */
void fl__loop_post(struct fl_loop *loop, struct fl__post *post);
/* Counts the handles that must be closed before fl_loop_free(). */
void fl__loop_opened(struct fl_loop *loop);
void fl__loop_closing(struct fl_loop *loop);
void fl__loop_closed(struct fl_loop *loop);

/* The only translation of libuv's error codes. */
int fl_uv_err(int status);
/* Record "what: text of libuv" and return the translated code. */
FL_PRINTF(3, 4) int fl__uv_fail(struct fl_err *err, int status, const char *fmt, ...);

/* pthread_create() with every signal blocked: only the loop that registered a signal handles it. */
FL_MUST_CHECK int fl__thread_start(pthread_t *ret, const char *name, bool detached,
                                   void *(*fn)(void *), void *arg);

/*
 * Name resolution on a separate thread: a name server that does not answer must neither delay
 * fl_loop_free() nor block libuv's four threads.
 */
#define FL__RESOLVE_MAX 16

struct fl__resolved {
    int status; /* 0, or an EAI_… code. */
    unsigned n;
    struct sockaddr_storage addrs[FL__RESOLVE_MAX];
};

struct fl__resolve;
typedef void (*fl__resolve_cb)(void *ctx, const struct fl__resolved *result);
/* `cb` runs on the loop, once, unless fl__resolve_cancel() was called before. */
FL_MUST_CHECK int fl__resolve_start(struct fl_loop *loop, const char *host, uint16_t port,
                                    fl__resolve_cb cb, void *ctx, struct fl__resolve **ret);
/* Cancels the callback; NULL is allowed. Not after `cb`. */
void fl__resolve_cancel(struct fl__resolve *resolve);
/* Blocking; for listening only. */
void fl__resolve_now(const char *host, uint16_t port, struct fl__resolved *ret);
/* IP4, IP6 or ANY, without a name server. */
void fl__resolve_literal(const struct fl_address *address, struct fl__resolved *ret);

/* A duplicate of the inherited socket that listens on this address; -1: there is none. */
int fl__inherited_take(const struct sockaddr *address, size_t len);

/*
 * A connection.
 *
 *   RESOLVING -> CONNECTING --> OPEN --> FLUSHING --> LINGERING
 *                         FRESH --^           |            |
 *        (each of them) ------------------> CLOSING <------+   -> CLOSED
 */
enum fl__conn_state {
    FL__CONN_RESOLVING,
    FL__CONN_CONNECTING,
    FL__CONN_FRESH, /* Accepted, not started yet. */
    FL__CONN_OPEN,
    FL__CONN_FLUSHING,  /* Sends the remaining output. */
    FL__CONN_LINGERING, /* Has sent FIN, waits for the peer's FIN: closing at once would reset the
                           connection. */
    FL__CONN_CLOSING,
    FL__CONN_CLOSED
};

/* State of an outgoing connection while it connects; freed when it is connected. */
struct fl__dial {
    struct fl__resolve *resolve;
    struct fl__resolved found;
    unsigned next; /* Index of the next address to try. */
    struct fl_address address;
    uint64_t deadline;
    uint32_t timeout_ms;
    bool retrying; /* This attempt has failed, its handle is closing. */
    int status;    /* libuv's code for the last attempt. */
    uv_connect_t req;
};

#define FL__CONN_MAGIC UINT32_C(0x666c636e)

struct fl_conn {
    struct fl_stream stream; /* First. */
    uint32_t magic;
    struct fl_loop *loop;
    struct fl_traffic *traffic;      /* NULL: not counted */
    const struct fl_stream_cbs *cbs; /* NULL: not started */
    void *ctx;
    struct fl_sm sm;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } u;
    uv_timer_t timer; /* Deadline of connecting, then of flushing. */
    union {
        uv_write_t write;
        uv_shutdown_t shutdown;
    } req;
    struct fl__dial *dial;
    struct fl_conn *due_next;
    struct fl_conn *due_prev;
    size_t writing; /* Bytes handed to uv_write() and not yet written. */
    size_t turn_bytes;
    uint32_t turn; /* The turn that turn_bytes belongs to. */
    unsigned n_handles;
    int code;
    bool due;
    bool paused;
    bool peer_ended;  /* The peer's FIN arrived while we were flushing. */
    bool stream_live; /* u is initialised and not closing. */
    char peer[FL_PEER_MAX];
    struct fl_identity *identity; /* Peer of a unix socket; NULL: unknown. */
    char *text;                   /* The text of on_close, NULL for FL_OK. */
};

/*
 * The process that connected this unix socket, from the kernel. Returns owned memory for free().
 * NULL: not reported by the kernel, or no memory.
 */
struct fl_identity *fl__local_identity(int fd);

/* A connection without a stream. The state is `initial`. */
FL_MUST_CHECK int fl__conn_create(struct fl_loop *loop, enum fl__conn_state initial,
                                  struct fl_conn **ret);
/* Initialise u as TCP or unix stream. */
FL_MUST_CHECK int fl__conn_stream_init(struct fl_conn *conn, bool is_unix);
/* The stream is connected: sets socket options and the name of the peer. */
void fl__conn_established(struct fl_conn *conn, bool is_unix);
/* Moves to OPEN: starts reading, and asks for output. */
void fl__conn_opened(struct fl_conn *conn);
/* Begins to close with this code and text; does nothing when closing already. */
FL_PRINTF(3, 4) void fl__conn_fail(struct fl_conn *conn, int code, const char *fmt, ...);
/* As fl_stream_close(). */
void fl__conn_close(struct fl_conn *conn);
/* A handle was closed. */
void fl__conn_handle_gone(struct fl_conn *conn);
/* Adds to, and removes from, the loop's list of connections with work. */
void fl__conn_due(struct fl_conn *conn);
void fl__conn_not_due(struct fl_conn *conn);
/* One step of a due connection, called by the loop. */
void fl__conn_step(struct fl_conn *conn);
/* Steps of a connecting connection: its addresses are resolved; its deadline has passed. */
void fl__dial_step(struct fl_conn *conn);
void fl__dial_timeout(struct fl_conn *conn);
void fl__dial_free(struct fl_conn *conn);

#endif
