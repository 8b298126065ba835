#ifndef FL_GRPC_LINK_IMPL_H
#define FL_GRPC_LINK_IMPL_H

/*
 * One connection and the HTTP/2 session on it; private to libfl/grpc. The server has one
 * for each client, a channel has one.
 *
 * Life: fl__link_attach() ... ops->gone(), the last callback, after which the owner frees
 * its memory. Threading: one loop.
 */

#include "libfl/grpc/backlog_impl.h"
#include "libfl/grpc/keepalive_impl.h"
#include "libfl/grpc/pacing_impl.h"
#include "libfl/h2/h2.h"
#include "libfl/net/conn.h"

struct fl__link;

struct fl__link_ops {
    /* An outgoing connection is established. */
    void (*opened)(struct fl__link *link);
    /*
     * The first bytes have arrived, so the peer's identity is final. They are processed unless this
     * callback has closed the link. May be NULL.
     */
    void (*arrived)(struct fl__link *link);
    /* The peer's SETTINGS have arrived. May be NULL. */
    void (*ready)(struct fl__link *link);
    /*
     * Called when the link was attached, when calls began or ended, and at the owner's deadline;
     * returns the next deadline (UINT64_MAX: none). For an outgoing link `h2` is NULL until it is
     * connected.
     */
    uint64_t (*check)(struct fl__link *link, uint64_t now_ms);
    /* The connection is closed and the session freed. `text` is borrowed. */
    void (*gone)(struct fl__link *link, int code, const char *text);
};

struct fl__link {
    struct fl_loop *loop;
    struct fl_stream *stream; /* NULL once it is closed. */
    struct fl_h2 *h2;         /* NULL before it is connected and after it is closed. */
    struct fl_timer *timer;
    const struct fl__link_ops *ops;
    struct fl__pacing pace;
    struct fl__keepalive keepalive; /* its times are the owner's */
    uint64_t timer_at;              /* When `timer` fires; UINT64_MAX: it does not run. */
    uint64_t grace_at;              /* A draining connection is closed then. */
    struct fl__backlog unread;
    uint32_t idle_ms; /* Within this time the peer has to take the waiting bytes. */
    int code;         /* Why we close the connection; FL_OK: no error. */
    const char *why;  /* The same in words, kept; NULL: the text of the code. */
    bool arrived;
    bool ready;
    bool mute; /* Nothing more is sent. */
};

/* Initialises the link. FL_ENOMEM. */
FL_MUST_CHECK int fl__link_init(struct fl__link *link, struct fl_loop *loop,
                                const struct fl__link_ops *ops);
/* Undoes fl__link_init() of a link that never had a connection. */
void fl__link_done(struct fl__link *link);
/* Starts `stream`, which belongs to the link from now on. */
void fl__link_attach(struct fl__link *link, struct fl_stream *stream);
/*
 * Creates the session, before an accepted stream is attached or when an outgoing one is connected;
 * `setup` lacks only peer, wake and ctx.
 */
FL_MUST_CHECK int fl__link_start(struct fl__link *link, const char *peer, struct fl_h2_setup *setup,
                                 bool server);
/* Sends GOAWAY; closes when the calls have ended or `grace_ms` later. */
void fl__link_drain(struct fl__link *link, uint32_t grace_ms);
/*
 * For the owner's check, while the session is ready: sends a PING when it is due, and aborts the
 * connection when one is not answered. Returns when to check again.
 */
uint64_t fl__link_keepalive(struct fl__link *link, uint64_t now_ms);
/*
 * Closes now with `code` and `why`, without sending anything more. Keeps `why`. May be called any
 * time.
 */
void fl__link_abort(struct fl__link *link, int code, const char *why);
/*
 * Closes with `code` (FL_OK: no error), flushing what is committed but sending nothing more. Keeps
 * `why`, which may be NULL.
 */
void fl__link_close(struct fl__link *link, int code, const char *why);

#endif
