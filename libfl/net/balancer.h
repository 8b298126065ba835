#ifndef FL_NET_BALANCER_H
#define FL_NET_BALANCER_H

/*
 * Accepted connections of TCP load balancers: each begins with a header that names the client
 * behind it (balancer_header.h), and is handed on when the header is read, with the name of that
 * client as its peer. Only connections from listed addresses have the header, and all of them must:
 * anyone else could claim any address.
 *
 * Threading: one loop.
 */

#include "libfl/net/address_range.h"
#include "libfl/net/conn.h"

/* Connections whose header is awaited; beyond it the newest is closed. */
#define FL_BALANCER_WAITING_MAX 1024

struct fl_balancer;

struct fl_balancer_setup {
    struct fl_loop *loop;
    const struct fl_address_range *from; /* [n_from], copied */
    size_t n_from;
    uint32_t timeout_ms;    /* of the header */
    fl_accept_cb on_accept; /* the connection of a client: start or close it */
    /* A connection was refused. `reason` is a literal, `peer` and `text` are borrowed. */
    void (*notice)(void *ctx, const char *peer, const char *reason, const char *text);
    void *ctx; /* of both */
};

/* FL_ENOMEM. */
FL_MUST_CHECK int fl_balancer_create(const struct fl_balancer_setup *setup,
                                     struct fl_balancer **ret);
/* Closes the connections whose header has not arrived. NULL is allowed. */
void fl_balancer_free(struct fl_balancer *balancer);
/* An accepted connection, not started yet: handed on at once or after its header. Takes it. */
void fl_balancer_accept(struct fl_balancer *balancer, struct fl_stream *stream);

#endif
