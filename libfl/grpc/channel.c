#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/grpc/link_impl.h"
#include "libfl/net/proxy.h"

/*
 * A connection attempt that times out reports the better reason, so its deadline is this much
 * earlier.
 */
#define DIAL_REPORT_MS 100

struct fl_grpc_channel {
    struct fl__link link; /* First: the link's callbacks cast to the channel. */
    struct fl_rpc_limits limits;
    const struct fl_grpc_channel_cbs *cbs;
    void *ctx;
    char *authority;
    uint64_t up_by; /* Deadline for the HTTP/2 session to be ready. */
};

static void on_opened(struct fl__link *link)
{
    struct fl_grpc_channel *channel = (struct fl_grpc_channel *)link;
    struct fl_h2_setup setup = {.limits = channel->limits,
                                .authority = channel->authority,
                                .secure = fl_stream_identity(link->stream) != NULL};
    int rv = fl__link_start(link, fl_stream_peer(link->stream), &setup, false);

    if (rv != FL_OK) {
        link->code = rv;
        fl_stream_close(link->stream);
    }
}

static void on_ready(struct fl__link *link)
{
    struct fl_grpc_channel *channel = (struct fl_grpc_channel *)link;

    channel->cbs->on_up(channel->ctx);
}

static uint64_t channel_check(struct fl__link *link, uint64_t now_ms)
{
    struct fl_grpc_channel *channel = (struct fl_grpc_channel *)link;
    bool connected = link->h2 != NULL;
    uint64_t by = channel->up_by + (connected ? 0 : DIAL_REPORT_MS);

    if (link->ready) {
        return fl__link_keepalive(link, now_ms);
    }
    if (now_ms >= by) {
        fl__link_close(
            link, FL_ETIMEOUT,
            connected ? "timed out: it accepts connections but does not speak HTTP/2"
                      : "timed out: it accepts connections but does not complete the handshake");
    }
    return by;
}

static void channel_on_gone(struct fl__link *link, int code, const char *text)
{
    struct fl_grpc_channel *channel = (struct fl_grpc_channel *)link;

    channel->cbs->on_down(channel->ctx, code, text);
    free(channel->authority);
    free(channel);
}

static const struct fl__link_ops ops = {
    .opened = on_opened, .ready = on_ready, .check = channel_check, .gone = channel_on_gone};

int fl_grpc_connect(const struct fl_grpc_channel_setup *setup, struct fl_grpc_channel **ret,
                    struct fl_err *err)
{
    struct fl_grpc_channel *channel = calloc(1, sizeof(*channel));
    struct fl_stream *stream = NULL;
    int rv;

    if (channel == NULL) {
        return fl_err_set(err, FL_ENOMEM, "connecting: out of memory");
    }
    rv = fl__link_init(&channel->link, setup->loop, &ops);
    /*
     * RFC 9110 section 7.2: the authority is the address that the user gave; a unix socket has no
     * host.
     */
    channel->authority =
        fl_str_dup(strncmp(setup->address, "unix:", 5) == 0 ? "localhost" : setup->address);
    if (rv != FL_OK || channel->authority == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "connecting: out of memory");
        goto fail;
    }
    channel->limits = *setup->limits;
    channel->cbs = setup->cbs;
    channel->ctx = setup->ctx;
    channel->link.keepalive.after_ms = setup->ping_after_ms;
    channel->link.keepalive.limit_ms = setup->ping_limit_ms;
    rv = fl_proxy_connect(setup->loop, setup->address, setup->proxy, setup->timeout_ms,
                          setup->traffic, &stream, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (fl_stream_wrap(setup->filter, &stream) != FL_OK) {
        fl_stream_close(stream);
        rv = fl_err_set(err, FL_ENOMEM, "connecting: out of memory");
        goto fail;
    }
    channel->up_by = fl_loop_now(setup->loop) + setup->timeout_ms;
    fl__link_attach(&channel->link, stream);
    *ret = channel;
    return FL_OK;

fail:
    fl__link_done(&channel->link);
    free(channel->authority);
    free(channel);
    return rv;
}

int fl_grpc_call(struct fl_grpc_channel *channel, const char *path, uint64_t timeout_ms,
                 const struct fl_call_handler *handler, void *ctx, struct fl_call **ret)
{
    struct fl__link *link = &channel->link;

    if (link->stream == NULL || link->mute || link->code != FL_OK) {
        return FL_ECLOSED;
    }
    if (!link->ready) {
        return FL_EAGAIN;
    }
    return fl_h2_call(link->h2, path, fl_loop_now(link->loop), timeout_ms, handler, ctx, ret);
}

void fl_grpc_channel_close(struct fl_grpc_channel *channel)
{
    fl__link_close(&channel->link, FL_OK, NULL);
}
