/*
 * A process with hostile clients: those of sim_client.h, and one peer for each flood, driven by a
 * timer. It never ends by itself.
 */
#include "bench/hostile.h"

#include <stdlib.h>

#include "bench/peers.h"
#include "bench/sim_client.h"
#include "libfl/wire/messages.h"

/* Of the floods: what one tick begins. */
#define TICK_MS         10
#define CALLS_AT_MOST   1000
#define CALLS_A_TICK    (HOSTILE_CALLS_PER_S * TICK_MS / 1000)
#define CONNECTS_A_TICK (HOSTILE_RECONNECTS_PER_S * TICK_MS / 1000)

struct hostile {
    const struct hostile_setup *setup;
    struct fl_loop *loop;
    struct fl_rpc_limits limits;
    struct fl_timer *tick;
    struct fl_grpc_channel *flood; /* NULL: not connected */
    bool up;
    unsigned n_calls;
};

/* --- a flood of calls --- */

static void on_flood_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                            const char *message)
{
    struct hostile *h = ctx;

    (void)call;
    (void)status;
    (void)message;
    h->n_calls--;
}

static void on_flood_up(void *ctx)
{
    struct hostile *h = ctx;

    h->up = true;
}

static void on_flood_down(void *ctx, int code, const char *text)
{
    struct hostile *h = ctx;

    (void)code;
    (void)text;
    h->flood = NULL;
    h->up = false;
}

static void flood(struct hostile *h)
{
    static const struct fl_grpc_channel_cbs cbs = {on_flood_up, on_flood_down};
    static const struct fl_call_handler handler = {.on_message = peer_echo,
                                                   .on_closed = on_flood_closed};
    unsigned i;

    if (h->flood == NULL &&
        fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = h->loop,
                                                        .address = h->setup->address,
                                                        .limits = &h->limits,
                                                        .timeout_ms = 10000,
                                                        .cbs = &cbs,
                                                        .ctx = h},
                        &h->flood, NULL) != FL_OK)
    {
        return;
    }
    for (i = 0; h->up && i < CALLS_A_TICK && h->n_calls < CALLS_AT_MOST; i++) {
        struct fl_piece piece = {.data = "?", .len = 1};
        struct fl_call *call = NULL;

        if (fl_grpc_call(h->flood, "/fl.v1.Federation/PushStatus", 0, &handler, h, &call) == FL_OK)
        {
            h->n_calls++;
            if (fl_call_send(call, &piece, 1) == FL_OK) {
                fl_call_end(call);
            }
        }
    }
}

/* --- reconnect loops: Hello, and away at the answer --- */

struct visit {
    struct hostile *h;
    struct fl_grpc_channel *channel;
};

static bool on_visit_answer(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct visit *visit = ctx;

    (void)call;
    (void)data;
    (void)len;
    fl_grpc_channel_close(visit->channel);
    return true;
}

static void on_visit_up(void *ctx)
{
    static const struct fl_call_handler handler = {.on_message = on_visit_answer,
                                                   .on_closed = peer_closed};
    struct visit *visit = ctx;
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};
    struct fl_call *call = NULL;
    char name[] = "hostile-loop";
    char agent[] = "bench/hostile";
    struct fl_buf buf;

    event.u.hello.version_min = FL_WIRE_VERSION;
    event.u.hello.version_max = FL_WIRE_VERSION;
    event.u.hello.client = name;
    event.u.hello.agent = agent;
    event.u.hello.samples = 100;
    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    if (fl_wire_event_encode(&event, &buf) == FL_OK &&
        fl_grpc_call(visit->channel, "/fl.v1.Federation/Attend", 0, &handler, visit, &call) ==
            FL_OK)
    {
        struct fl_piece piece = {.data = buf.data, .len = buf.len};

        must(fl_call_send(call, &piece, 1), "Hello");
    }
    fl_buf_done(&buf);
}

static void on_visit_down(void *ctx, int code, const char *text)
{
    (void)code;
    (void)text;
    free(ctx);
}

static void reconnect(struct hostile *h)
{
    static const struct fl_grpc_channel_cbs cbs = {on_visit_up, on_visit_down};
    unsigned i;

    for (i = 0; i < CONNECTS_A_TICK; i++) {
        struct visit *visit = calloc(1, sizeof(*visit));

        if (visit == NULL) {
            die("out of memory");
        }
        visit->h = h;
        if (fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = h->loop,
                                                            .address = h->setup->address,
                                                            .limits = &h->limits,
                                                            .timeout_ms = 10000,
                                                            .cbs = &cbs,
                                                            .ctx = visit},
                            &visit->channel, NULL) != FL_OK)
        {
            free(visit);
        }
    }
}

static void on_tick(void *arg)
{
    struct hostile *h = arg;

    flood(h);
    reconnect(h);
    fl_timer_start(h->tick, TICK_MS);
}

static void on_hostile(void *arg)
{
    struct hostile *h = arg;

    fl_timer_start(h->tick, 0); /* the first of both kinds begins the floods */
}

static void nothing(void *arg)
{
    (void)arg;
}

static void run_hostile(const void *ctx, int fd)
{
    static const struct {
        const char *prefix;
        enum bench_kind kind;
    } kinds[] = {{"hostile-reader", BENCH_SLOW_READER}, {"hostile-half", BENCH_HALF_UPLOAD}};
    struct hostile h = {.setup = ctx};
    size_t i;

    (void)fd;
    fl_rpc_limits_default(&h.limits);
    must(fl_loop_create(&h.loop, NULL), "loop");
    must(fl_timer_create(h.loop, on_tick, &h, &h.tick), "timer");
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct bench_clients *clients = NULL;

        must(bench_clients_start(&(struct bench_setup){.loop = h.loop,
                                                       .address = h.setup->address,
                                                       .n = (h.setup->clients + i) / 2,
                                                       .prefix = kinds[i].prefix,
                                                       .kind = kinds[i].kind,
                                                       .honest_rounds = h.setup->honest_rounds,
                                                       .halfway = on_hostile,
                                                       .spare = true,
                                                       .update = h.setup->update,
                                                       .rounds = h.setup->rounds,
                                                       .ending = nothing,
                                                       .finished = nothing,
                                                       .ctx = &h},
                                 &clients),
             "hostile clients");
    }
    fl_loop_run(h.loop); /* until it is killed */
}

pid_t hostile_start(const struct hostile_setup *setup, int *ret_fd)
{
    return peer_start(run_hostile, setup, ret_fd);
}
