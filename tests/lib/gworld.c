#include "tests/lib/gworld.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"

const struct fl_stream_filter *gworld_filter;
const struct fl_stream_filter *gworld_dial_filter;

void gworld_happened(struct world *world)
{
    ck_assert(!world->inside);
    if (world->done != NULL && world->done(world)) {
        fl_loop_stop(world->loop);
    }
}

/* The service: Echo answers one message, Stream each of them, Hold never. */

/* Echoes that did not fit the send queue wait, and their window credit with them. */
static void echo_waiting(struct side *side)
{
    while (side->n_waiting > 0) {
        struct fl_piece piece = {.data = side->waiting[0].data, .len = side->waiting[0].len};

        if (fl_call_send(side->call, &piece, 1) != FL_OK) {
            return;
        }
        fl_call_consume(side->call, piece.len);
        free(side->waiting[0].data);
        side->n_waiting--;
        (void)memmove(&side->waiting[0], &side->waiting[1],
                      side->n_waiting * sizeof(side->waiting[0]));
    }
    if (side->ended) {
        fl_call_finish(side->call, FL_GRPC_OK, NULL);
    }
}

static bool server_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct side *side = ctx;
    struct fl_piece piece = {.data = data, .len = len};
    int rv = side->n_waiting > 0 ? FL_ELIMIT : fl_call_send(call, &piece, 1);

    if (rv == FL_OK) {
        return true;
    }
    ck_assert_int_eq(rv, FL_ELIMIT);
    ck_assert_uint_lt(side->n_waiting, WAITING);
    side->waiting[side->n_waiting].data = fl_call_take(call);
    side->waiting[side->n_waiting].len = len;
    side->n_waiting++;
    return false;
}

static void server_writable(struct fl_call *call, void *ctx)
{
    (void)call;
    echo_waiting(ctx);
}

static void server_end(struct fl_call *call, void *ctx)
{
    struct side *side = ctx;

    (void)call;
    side->ended = true;
    echo_waiting(side);
}

static void server_call_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                               const char *message)
{
    struct side *side = ctx;
    struct world *world = side->world;

    (void)call;
    (void)message;
    while (side->n_waiting > 0) {
        free(side->waiting[--side->n_waiting].data);
    }
    world->server_closed_calls++;
    world->server_status = status;
    free(side);
    gworld_happened(world);
}

static const struct fl_call_handler server_handler = {.on_message = server_message,
                                                      .on_end = server_end,
                                                      .on_writable = server_writable,
                                                      .on_closed = server_call_closed};

static bool hold_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)call;
    (void)ctx;
    (void)data;
    (void)len;
    return true;
}

static const struct fl_call_handler hold_handler = {.on_message = hold_message,
                                                    .on_closed = server_call_closed};

static void start(struct fl_call *call, void *ctx, const struct fl_call_handler *handler)
{
    struct world *world = ctx;
    struct side *side = calloc(1, sizeof(*side));

    ck_assert_ptr_nonnull(side);
    side->world = world;
    side->call = call;
    world->server_calls++;
    fl_call_set_handler(call, handler, side);
    gworld_happened(world);
}

static void start_echo(struct fl_call *call, void *ctx)
{
    start(call, ctx, &server_handler);
}

static void start_hold(struct fl_call *call, void *ctx)
{
    start(call, ctx, &hold_handler);
    fl_call_set_patient(call, true);
}

static void start_known(struct fl_call *call, void *ctx)
{
    const struct world *world = ctx;

    fl_call_vouch(call, world->known_as);
    start_hold(call, ctx);
}

static void on_notice(void *ctx, const char *peer, const char *reason, const char *text)
{
    struct world *world = ctx;

    ck_assert_uint_gt(strlen(peer), 0);
    ck_assert_ptr_nonnull(reason);
    world->notices++;
    (void)snprintf(world->notice, sizeof(world->notice), "%s", text);
    gworld_happened(world);
}

/* The client's side. */

void gworld_send_more(struct side *side)
{
    struct fl_piece piece = {
        .data = fl_blob_data(side->blob), .len = fl_blob_len(side->blob), .blob = side->blob};

    while (side->to_send > 0) {
        int rv = fl_call_send(side->call, &piece, 1);

        if (rv == FL_ELIMIT) {
            return; /* on_writable goes on. */
        }
        ck_assert_int_eq(rv, FL_OK);
        side->to_send--;
    }
    if (!side->hold) {
        fl_call_end(side->call);
    }
}

static bool client_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct side *side = ctx;

    (void)call;
    side->messages++;
    side->bytes += len;
    side->intact = side->intact && side->blob != NULL && len == fl_blob_len(side->blob) &&
                   memcmp(data, fl_blob_data(side->blob), len) == 0;
    gworld_happened(side->world);
    return true;
}

static void client_writable(struct fl_call *call, void *ctx)
{
    (void)call;
    gworld_send_more(ctx);
}

static void client_call_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                               const char *message)
{
    struct side *side = ctx;

    (void)call;
    (void)message;
    side->closed++;
    side->status = status;
    side->call = NULL;
    gworld_happened(side->world);
}

static const struct fl_call_handler client_handler = {
    .on_message = client_message, .on_writable = client_writable, .on_closed = client_call_closed};

int gworld_call(struct client *client)
{
    struct side *side = &client->side;
    int rv;

    side->world = client->world;
    side->intact = true;
    rv = fl_grpc_call(client->channel, client->path, client->timeout_ms, &client_handler, side,
                      &side->call);
    if (rv == FL_OK) {
        fl_call_set_bulk(side->call, side->bulk);
    }
    if (rv == FL_OK && side->blob != NULL) {
        gworld_send_more(side);
    }
    return rv;
}

static void on_up(void *ctx)
{
    struct client *client = ctx;

    client->up++;
    if (client->call_on_up) {
        client->world->inside = true;
        ck_assert_int_eq(gworld_call(client), FL_OK);
        client->world->inside = false;
    }
    gworld_happened(client->world);
}

static void on_down(void *ctx, int code, const char *text)
{
    struct client *client = ctx;

    client->down++;
    client->code = code;
    (void)snprintf(client->text, sizeof(client->text), "%s", text);
    client->channel = NULL;
    gworld_happened(client->world);
}

const struct fl_grpc_channel_cbs gworld_channel_cbs = {on_up, on_down};

void gworld_begin(struct world *world, const char *listen_on)
{
    static struct fl_rpc_method methods[6];
    struct fl_grpc_server_setup setup = {
        .methods = methods, .notice = on_notice, .notice_ctx = world};
    struct fl_grpc_listen listen = {
        .address = listen_on, .filter = gworld_filter, .who = world->who, .who_ctx = world};
    struct fl_err err = {0};
    unsigned port = 0;

    methods[0] = (struct fl_rpc_method){"/t.T/Echo", FL_WHO_ANYBODY, start_echo, world};
    methods[1] = (struct fl_rpc_method){"/t.T/Hold", FL_WHO_ANYBODY, start_hold, world};
    methods[2] = (struct fl_rpc_method){"/t.T/Known", FL_WHO_ANYBODY, start_known, world};
    methods[3] = (struct fl_rpc_method){"/t.T/Members", FL_WHO_CLIENT, start_echo, world};
    methods[4] = (struct fl_rpc_method){"/t.T/Nobody", 0, start_echo, world};
    methods[5] = (struct fl_rpc_method){NULL, 0, NULL, NULL};
    if (world->limits.streams == 0) {
        fl_rpc_limits_default(&world->limits);
    }
    ck_assert_int_eq(fl_loop_create(&world->loop, NULL), FL_OK);
    setup.loop = world->loop;
    setup.limits = world->limits;
    setup.peer_connections = world->peer_connections;
    setup.max_connections = world->max_connections != 0 ? world->max_connections : CLIENTS;
    ck_assert_int_eq(fl_grpc_server_create(&setup, &world->server, &err), FL_OK);
    ck_assert_msg(fl_grpc_server_listen(world->server, &listen, &port, &err) == FL_OK, "%s",
                  err.msg);
    if (port != 0) {
        (void)snprintf(world->address, sizeof(world->address), "127.0.0.1:%u", port);
    } else {
        (void)snprintf(world->address, sizeof(world->address), "%s", listen_on);
    }
}

struct client *gworld_connect(struct world *world, const char *address, uint32_t timeout_ms)
{
    struct client *client = &world->client[world->n_clients++];
    struct fl_err err = {0};

    client->world = world;
    if (client->path == NULL) {
        client->path = "/t.T/Echo";
    }
    world->inside = true;
    ck_assert_int_eq(fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = world->loop,
                                                                     .address = address,
                                                                     .limits = &world->limits,
                                                                     .timeout_ms = timeout_ms,
                                                                     .cbs = &gworld_channel_cbs,
                                                                     .ctx = client,
                                                                     .filter = gworld_dial_filter},
                                     &client->channel, &err),
                     FL_OK);
    world->inside = false;
    return client;
}

static void on_server_closed(void *arg)
{
    struct world *world = arg;

    world->server = NULL;
    world->server_closed++;
    gworld_happened(world);
}

void gworld_close_server(struct world *world, uint32_t grace_ms)
{
    world->inside = true;
    fl_grpc_server_close(world->server, grace_ms, on_server_closed, world);
    world->inside = false;
}

bool gworld_all_gone(struct world *world)
{
    unsigned i;

    for (i = 0; i < world->n_clients; i++) {
        if (world->client[i].down == 0) {
            return false;
        }
    }
    return world->server_closed > 0;
}

void gworld_end(struct world *world)
{
    unsigned i;

    for (i = 0; i < world->n_clients; i++) {
        if (world->client[i].channel != NULL) {
            world->inside = true;
            fl_grpc_channel_close(world->client[i].channel);
            world->inside = false;
        }
    }
    if (world->server != NULL) {
        gworld_close_server(world, 0);
    }
    world->done = gworld_all_gone;
    if (!gworld_all_gone(world)) {
        fl_loop_run(world->loop);
    }
    fl_loop_free(world->loop);
    for (i = 0; i < world->n_clients; i++) {
        ck_assert_uint_eq(world->client[i].down, 1);
        ck_assert_uint_le(world->client[i].up, 1);
        ck_assert_uint_le(world->client[i].side.closed, 1);
        fl_blob_unref(world->client[i].side.blob);
    }
    ck_assert_uint_eq(world->server_calls, world->server_closed_calls);
}

struct fl_blob *gworld_blob(size_t len)
{
    struct fl_blob *blob = NULL;
    struct fl_rng rng;
    size_t i;

    ck_assert_int_eq(fl_blob_create(len, &blob), FL_OK);
    fl_rng_seed(&rng, len);
    for (i = 0; i < len; i++) {
        fl_blob_fill(blob)[i] = (uint8_t)fl_rng_u64(&rng);
    }
    return blob;
}

bool gworld_calls_closed(struct world *world)
{
    unsigned i;

    for (i = 0; i < world->n_clients; i++) {
        if (world->client[i].side.closed == 0) {
            return false;
        }
    }
    return true;
}
