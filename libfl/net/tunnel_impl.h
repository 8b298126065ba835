#ifndef FL_NET_TUNNEL_IMPL_H
#define FL_NET_TUNNEL_IMPL_H

/*
 * A stream that exchanges a few bytes of its own before its user's bytes pass through unchanged:
 * CONNECT with a proxy (proxy.c), the header of a load balancer (balancer.c). Private to libfl/net.
 */

#include "libfl/base/sm.h"
#include "libfl/net/conn.h"

/*
 *   FRESH -> BEFORE -> OPEN -> FLUSHING
 *     |         |        |         |
 *     +---------+--------+---------+--> CLOSING
 */
enum fl__tunnel_state {
    FL__TUNNEL_FRESH,
    FL__TUNNEL_BEFORE, /* of the user's bytes */
    FL__TUNNEL_OPEN,
    FL__TUNNEL_FLUSHING, /* the user closes: output continues, input does not */
    FL__TUNNEL_CLOSING,
    FL__TUNNEL_STATES
};

struct fl__tunnel;

/* What its owner does, until the tunnel is open. */
struct fl__tunnel_ops {
    /* The outgoing stream below is connected. May be NULL. */
    void (*connected)(struct fl__tunnel *tunnel);
    void (*data)(struct fl__tunnel *tunnel, const uint8_t *data, size_t len);
    /* As of struct fl_stream_cbs; may be NULL: nothing is sent. */
    int (*output)(struct fl__tunnel *tunnel, struct iovec *iov);
    void (*sent)(struct fl__tunnel *tunnel, size_t n);
    /*
     * The stream below has ended with `code` and `text` before the tunnel was open, and not by us:
     * returns the code for the user, and may set a text of its own with fl__tunnel_text().
     */
    int (*ended)(struct fl__tunnel *tunnel, int code, const char *text);
    /* After on_close. */
    void (*free)(struct fl__tunnel *tunnel);
};

#define FL__TUNNEL_PEER_MAX 640

/* First member of its owner's struct. */
struct fl__tunnel {
    struct fl_stream stream; /* First. */
    const struct fl__tunnel_ops *ops;
    struct fl_stream *below;
    const struct fl_stream_cbs *cbs; /* NULL: the user has not started it */
    void *ctx;
    struct fl_sm sm;
    struct fl_timer *timer; /* limit of what comes before; the owner starts it */
    struct fl_account *account;
    uint8_t *kept; /* bytes that arrived while the user has paused; NULL: none */
    size_t kept_len;
    bool paused;
    int code;   /* of on_close; FL_OK: that of the stream below */
    char *text; /* of on_close; NULL: that of the stream below */
    char peer[FL__TUNNEL_PEER_MAX];
};

/* Over `below`, which is taken on success only. FL_ENOMEM. */
FL_MUST_CHECK int fl__tunnel_init(struct fl__tunnel *tunnel, struct fl_loop *loop,
                                  const struct fl__tunnel_ops *ops, fl_loop_cb on_timer,
                                  struct fl_stream *below);
/* Frees what fl__tunnel_init() made, for `free` of the operations. */
void fl__tunnel_done(struct fl__tunnel *tunnel);
/* Starts the stream below before the user starts this one: for accepted streams. */
void fl__tunnel_begin(struct fl__tunnel *tunnel);
/* The user's bytes pass from now on. The owner then announces it, and calls: */
void fl__tunnel_open(struct fl__tunnel *tunnel);
/* Delivers the first of them, which may be none, and asks the user for output. */
void fl__tunnel_flow(struct fl__tunnel *tunnel, const uint8_t *data, size_t len);
/* Closes with this code and text; does nothing when closing already. */
FL_PRINTF(3, 4) void fl__tunnel_fail(struct fl__tunnel *tunnel, int code, const char *fmt, ...);
/* The text of on_close. */
FL_PRINTF(2, 3) void fl__tunnel_text(struct fl__tunnel *tunnel, const char *fmt, ...);

#endif
