/*
 * Reads the headers of load balancers and hands their connections on. Runs on one loop. Does not
 * parse (balancer_header.c) and passes no bytes (tunnel.c).
 */
#include "libfl/net/balancer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/list.h"
#include "libfl/net/balancer_header.h"
#include "libfl/net/tunnel_impl.h"

struct fl_balancer {
    struct fl_balancer_setup setup;
    struct fl_list waiting; /* for their header */
    size_t n_waiting;
    struct fl_address_range from[]; /* [setup.n_from] */
};

struct balanced {
    struct fl__tunnel tunnel;     /* First. */
    struct fl_balancer *balancer; /* NULL: handed on */
    struct fl_list among;         /* waiting ones */
    struct fl_balancer_header header;
};

static struct balanced *balanced_of(struct fl__tunnel *tunnel)
{
    return (struct balanced *)tunnel;
}

static void balanced_leave(struct balanced *b)
{
    if (b->balancer != NULL) {
        fl_list_remove(&b->among);
        b->balancer->n_waiting--;
        b->balancer = NULL;
    }
}

static void balanced_free(struct fl__tunnel *tunnel)
{
    balanced_leave(balanced_of(tunnel));
    fl__tunnel_done(tunnel);
    free(tunnel);
}

static void balanced_refuse(struct balanced *b, const char *text)
{
    const struct fl_balancer_setup *setup = &b->balancer->setup;

    setup->notice(setup->ctx, b->tunnel.peer, "balancer", text);
    balanced_leave(b);
    fl_stream_close(&b->tunnel.stream);
}

static void balanced_on_timeout(void *arg)
{
    struct balanced *b = arg;

    if (b->balancer != NULL) {
        balanced_refuse(b, "connection closed: the header of the PROXY protocol did not arrive in "
                           "time; is this address a load balancer that sends version 2?");
    }
}

static void balanced_data(struct fl__tunnel *tunnel, const uint8_t *data, size_t len)
{
    struct balanced *b = balanced_of(tunnel);
    struct fl_balancer *balancer = b->balancer;
    size_t used = 0;
    int rv = fl_balancer_header_take(&b->header, data, len, &used);

    if (rv != FL_OK) {
        balanced_refuse(b, "connection closed: it does not begin with a header of the PROXY "
                           "protocol, version 2, for TCP: let the load balancer send one "
                           "(send-proxy-v2), or take its address out of proxy_protocol_from");
        return;
    }
    if (!b->header.done) {
        return;
    }
    if (b->header.peer[0] != '\0') {
        (void)snprintf(tunnel->peer, sizeof(tunnel->peer), "%s", b->header.peer);
    }
    balanced_leave(b);
    fl__tunnel_open(tunnel);
    balancer->setup.on_accept(balancer->setup.ctx, &tunnel->stream);
    fl__tunnel_flow(tunnel, data + used, len - used);
}

static void balanced_sent(struct fl__tunnel *tunnel, size_t n)
{
    (void)tunnel;
    (void)n; /* Nothing is sent before the tunnel is open. */
}

/* A health check: it connects and closes. */
static int balanced_ended(struct fl__tunnel *tunnel, int code, const char *text)
{
    (void)tunnel;
    (void)text;
    return code;
}

static const struct fl__tunnel_ops ops = {
    .data = balanced_data, .sent = balanced_sent, .ended = balanced_ended, .free = balanced_free};

static bool balancer_has(const struct fl_balancer *balancer, const char *peer)
{
    struct fl_ip ip;
    size_t i;

    if (fl_ip_of_peer(peer, &ip) != FL_OK) {
        return false; /* a unix socket */
    }
    for (i = 0; i < balancer->setup.n_from; i++) {
        if (fl_address_range_has(&balancer->from[i], &ip)) {
            return true;
        }
    }
    return false;
}

static int balancer_wait(struct fl_balancer *balancer, struct fl_stream *stream)
{
    struct balanced *b = calloc(1, sizeof(*b));
    int rv;

    if (b == NULL) {
        return FL_ENOMEM;
    }
    rv = fl__tunnel_init(&b->tunnel, balancer->setup.loop, &ops, balanced_on_timeout, stream);
    if (rv != FL_OK) {
        balanced_free(&b->tunnel);
        return rv;
    }
    b->balancer = balancer;
    fl_list_append(&balancer->waiting, &b->among);
    balancer->n_waiting++;
    fl_timer_start(b->tunnel.timer, balancer->setup.timeout_ms);
    fl__tunnel_begin(&b->tunnel);
    return FL_OK;
}

void fl_balancer_accept(struct fl_balancer *balancer, struct fl_stream *stream)
{
    const struct fl_balancer_setup *setup = &balancer->setup;

    if (!balancer_has(balancer, fl_stream_peer(stream))) {
        setup->on_accept(setup->ctx, stream);
        return;
    }
    if (balancer->n_waiting >= FL_BALANCER_WAITING_MAX || balancer_wait(balancer, stream) != FL_OK)
    {
        setup->notice(setup->ctx, fl_stream_peer(stream), "balancer",
                      "connection rejected: too many connections of load balancers wait for "
                      "their header, or out of memory");
        fl_stream_close(stream);
    }
}

int fl_balancer_create(const struct fl_balancer_setup *setup, struct fl_balancer **ret)
{
    size_t bytes = setup->n_from * sizeof(setup->from[0]);
    struct fl_balancer *balancer = calloc(1, sizeof(*balancer) + bytes);

    if (balancer == NULL) {
        return FL_ENOMEM;
    }
    balancer->setup = *setup;
    if (bytes > 0) {
        (void)memcpy(balancer->from, setup->from, bytes);
    }
    *ret = balancer;
    return FL_OK;
}

void fl_balancer_free(struct fl_balancer *balancer)
{
    struct balanced *b;

    if (balancer == NULL) {
        return;
    }
    while ((b = FL_LIST_FIRST(&balancer->waiting, struct balanced, among)) != NULL) {
        balanced_leave(b);
        fl_stream_close(&b->tunnel.stream);
    }
    free(balancer);
}
