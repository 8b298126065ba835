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
#include "libfl/grpc/pacing_impl.h"
#include "libfl/h2/h2.h"
#include "libfl/net/conn.h"

struct fl__link;

struct fl__link_ops {
    /* An outgoing connection stands. */
    void (*opened)(struct fl__link *link);
    /* The first bytes have come: whom they are from is known now. They are looked at when it has
       not closed the link. May be NULL. */
    void (*arrived)(struct fl__link *link);
    /* The peer's SETTINGS have come. May be NULL. */
    void (*ready)(struct fl__link *link);
    /* It was attached, calls began or ended, or the owner's deadline has come: look, and return the
       next deadline (UINT64_MAX: none). Of an outgoing one `h2` is NULL until it stands. */
    uint64_t (*check)(struct fl__link *link, uint64_t now_ms);
    /* The connection is gone and the session freed. `text` is borrowed. */
    void (*gone)(struct fl__link *link, int code, const char *text);
};

struct fl__link {
    struct fl_loop *loop;
    struct fl_stream *stream; /* NULL once it is gone. */
    struct fl_h2 *h2;         /* NULL before it stands and after it is gone. */
    struct fl_timer *timer;
    const struct fl__link_ops *ops;
    struct fl__pacing pace;
    uint64_t timer_at; /* When `timer` fires; UINT64_MAX: it does not run. */
    uint64_t grace_at; /* A draining connection is closed then. */
    struct fl__backlog unread;
    uint32_t idle_ms; /* In it the peer has to take what waits. */
    int code;         /* Why we close it; FL_OK: nobody's fault. */
    const char *why;  /* The same in words, kept; NULL: the text of the code. */
    bool arrived;
    bool ready;
    bool mute; /* Nothing is sent any more. */
};

/* Fill in what is common. FL_ENOMEM. */
FL_MUST_CHECK int fl__link_init(struct fl__link *link, struct fl_loop *loop,
                                const struct fl__link_ops *ops);
/* Undo fl__link_init() of a link that never had a connection. */
void fl__link_done(struct fl__link *link);
/* Start `stream`, which is the link's from now on. */
void fl__link_attach(struct fl__link *link, struct fl_stream *stream);
/*
 * Make the session, before a stream that was accepted is attached or when one that was connected
 * stands; `setup` lacks only peer, wake and ctx.
 */
FL_MUST_CHECK int fl__link_start(struct fl__link *link, const char *peer, struct fl_h2_setup *setup,
                                 bool server);
/* Say GOAWAY; close when the calls are over or `grace_ms` later. */
void fl__link_drain(struct fl__link *link, uint32_t grace_ms);
/* Close now for a reason of ours, without last words. Keeps `why`. May be called any time. */
void fl__link_abort(struct fl__link *link, int code, const char *why);
/* Close for a reason of ours (FL_OK: none), orderly but without sending anything more. Keeps
   `why`, which may be NULL. */
void fl__link_close(struct fl__link *link, int code, const char *why);

#endif
