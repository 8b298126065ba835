#include "bench/sim_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"

struct client {
    struct bench_clients *all;
    size_t index;
    struct fl_grpc_channel *channel;
    struct fl_call *attend, *push;
    struct fl_wire_session token;
    struct fl_layout *layout;
    size_t chunk; /* as the server asks */
    uint64_t round;
    uint32_t attempt;
    uint8_t units[ROUND_UNITS]; /* that are asked for */
    size_t unit;                /* of the push: where it is */
    uint64_t in_unit;
    uint64_t offset, total; /* of what is pushed */
    bool fetched, planned;  /* of the task; both: it can push */
    bool half_closed;
};

struct bench_clients {
    struct bench_setup setup;
    struct client *list;
    uint64_t *times;
    uint64_t moved;
    size_t alive;
    bool halfway; /* hostile kinds are no longer honest */
};

static void send_event(struct client *c, const struct fl_wire_event *event)
{
    struct fl_buf buf;

    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    if (fl_wire_event_encode(event, &buf) == FL_OK) {
        struct fl_piece piece = {.data = buf.data, .len = buf.len};

        if (fl_call_send(c->attend, &piece, 1) != FL_OK) {
            fl_call_cancel(c->attend);
        }
    }
    fl_buf_done(&buf);
}

/* --- push --- */

/* How much of its update it sends. */
static uint64_t push_end(const struct client *c)
{
    bool half = c->all->halfway && c->all->setup.kind == BENCH_HALF_UPLOAD;

    return half ? c->total / 2 : c->total;
}

/*
 * What comes next of the units that are asked for, at most a chunk: as far as they lie together, as
 * fl-clientd, which has them all together, would send them.
 */
static const uint8_t *next_piece(struct client *c, size_t *ret_n)
{
    const struct round_update *update = c->all->setup.update;
    uint64_t to_send = push_end(c) - c->offset;
    size_t most = to_send < c->chunk ? (size_t)to_send : c->chunk;
    const uint8_t *at;
    size_t n = 0;

    while (c->units[c->unit] == 0 || c->in_unit == update->at[c->unit + 1] - update->at[c->unit]) {
        c->unit++;
        c->in_unit = 0;
    }
    at = fl_blob_data(update->bytes) + update->at[c->unit] + c->in_unit;
    for (;;) {
        uint64_t left = update->at[c->unit + 1] - update->at[c->unit] - c->in_unit;
        size_t take = left < most - n ? (size_t)left : most - n;

        n += take;
        c->in_unit += take;
        if (n == most || c->unit + 1 == ROUND_UNITS || c->units[c->unit + 1] == 0) {
            break;
        }
        c->unit++;
        c->in_unit = 0;
    }
    *ret_n = n;
    return at;
}

static void push_chunks(struct client *c)
{
    while (c->push != NULL && c->offset < push_end(c)) {
        uint8_t head[FL_WIRE_CHUNK_HEAD];
        size_t n = 0;
        size_t unit = c->unit;
        uint64_t in_unit = c->in_unit;
        const uint8_t *data = next_piece(c, &n);
        struct fl_piece pieces[2];

        pieces[0] =
            (struct fl_piece){.data = head, .len = fl_wire_push_chunk_head(c->offset, n, head)};
        pieces[1] = (struct fl_piece){.data = data, .len = n, .blob = c->all->setup.update->bytes};
        if (fl_call_send(c->push, pieces, 2) != FL_OK) {
            c->unit = unit;
            c->in_unit = in_unit;
            return;
        }
        c->offset += n;
        c->all->moved += n;
    }
    if (c->push != NULL && c->offset >= c->total && !c->half_closed) {
        c->half_closed = true;
        fl_call_end(c->push);
    }
}

static bool on_push_reply(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)call;
    (void)ctx;
    (void)data;
    (void)len;
    return true;
}

static void on_push_writable(struct fl_call *call, void *ctx)
{
    (void)call;
    push_chunks(ctx);
}

static void on_push_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                           const char *message)
{
    struct client *c = ctx;

    if (c->push == call) {
        c->push = NULL;
    }
    if (status != FL_GRPC_OK && !c->all->setup.spare) {
        (void)fprintf(stderr, "bench: push of client %zu: %s %s\n", c->index,
                      fl_grpc_status_name(status), message != NULL ? message : "");
    }
}

static const struct fl_call_handler push_handler = {
    .on_message = on_push_reply, .on_writable = on_push_writable, .on_closed = on_push_closed};

/* The parts of the units that are asked for; returns how many. */
static size_t fill_parts(struct client *c, struct fl_wire_part *parts)
{
    const struct round_update *update = c->all->setup.update;
    size_t n = 0;
    size_t l;

    c->total = 0;
    for (l = 0; l < ROUND_UNITS; l++) {
        if (c->units[l] != 0) {
            (void)memcpy(parts[n].payload, "update", sizeof("update"));
            parts[n].unit = (uint32_t)l;
            parts[n].codec = update->codec;
            parts[n].bytes = update->at[l + 1] - update->at[l];
            c->total += parts[n++].bytes;
        }
    }
    return n;
}

static void start_push(struct client *c)
{
    struct fl_wire_part parts[ROUND_UNITS] = {0};
    struct fl_wire_push_header header = {.session = c->token,
                                         .round = c->round,
                                         .attempt = c->attempt,
                                         .parts = parts,
                                         .n_parts = fill_parts(c, parts),
                                         .bytes = c->total};
    struct fl_buf buf;

    if (header.n_parts == 0) {
        return; /* Nothing is asked of it. */
    }
    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    if (fl_wire_push_header_encode(&header, &buf) == FL_OK &&
        fl_grpc_call(c->channel, "/fl.v1.Federation/Push", 0, &push_handler, c, &c->push) == FL_OK)
    {
        struct fl_piece piece = {.data = buf.data, .len = buf.len};

        c->unit = 0;
        c->in_unit = 0;
        c->offset = 0;
        c->half_closed = false;
        if (fl_call_send(c->push, &piece, 1) == FL_OK) {
            push_chunks(c);
        }
    }
    fl_buf_done(&buf);
}

/* --- fetch --- */

static void report(struct client *c)
{
    struct fl_wire_event event = {.type = FL_WIRE_REPORT};
    float divergence[ROUND_UNITS];
    size_t l;

    event.u.report.round = c->round;
    event.u.report.attempt = c->attempt;
    event.u.report.samples = 100;
    event.u.report.steps = 1;
    event.u.report.train_loss = 1.0;
    if (!c->planned) { /* So that each unit is asked of others. */
        event.u.report.divergence = divergence;
        event.u.report.n_divergence = ROUND_UNITS;
    }
    for (l = 0; l < ROUND_UNITS; l++) {
        divergence[l] = (float)((c->index * 7 + l * 13) % 101 + 1);
    }
    send_event(c, &event);
}

static bool on_chunk(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct client *c = ctx;
    struct fl_wire_chunk chunk;
    struct fl_err err = {0};

    if (c->all->halfway && c->all->setup.kind == BENCH_SLOW_READER) {
        return false;
    }
    if (fl_wire_chunk_decode(data, len, &chunk, &err) != FL_OK) {
        (void)fprintf(stderr, "bench: %s\n", err.msg);
        fl_call_cancel(call);
        return true;
    }
    c->all->moved += chunk.len;
    return true;
}

static void on_fetch_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                            const char *message)
{
    struct client *c = ctx;

    (void)call;
    if (status != FL_GRPC_OK) {
        if (!c->all->setup.spare) {
            (void)fprintf(stderr, "bench: fetch of client %zu: %s %s\n", c->index,
                          fl_grpc_status_name(status), message != NULL ? message : "");
        }
        return;
    }
    if (c->all->halfway && c->all->setup.kind == BENCH_SLOW_READER) {
        return; /* the model fits the window, and was not read */
    }
    report(c);
    c->fetched = true;
    if (c->planned) {
        start_push(c);
    }
}

static const struct fl_call_handler fetch_handler = {.on_message = on_chunk,
                                                     .on_closed = on_fetch_closed};

static void start_fetch(struct client *c)
{
    struct fl_wire_fetch request = {.session = c->token, .round = c->round, .payload = "model"};
    struct fl_call *call = NULL;
    struct fl_buf buf;

    fl_buf_init(&buf, 4096);
    if (fl_wire_fetch_encode(&request, &buf) == FL_OK &&
        fl_grpc_call(c->channel, "/fl.v1.Federation/Fetch", 0, &fetch_handler, c, &call) == FL_OK)
    {
        struct fl_piece piece = {.data = buf.data, .len = buf.len};

        if (fl_call_send(call, &piece, 1) == FL_OK) {
            fl_call_end(call);
        }
    }
    fl_buf_done(&buf);
}

/* --- control --- */

/* Before or after it has reported: upload `ldf` asks by what was reported. */
static void on_plan(struct client *c, const struct fl_wire_plan *plan)
{
    size_t l;

    for (l = 0; l < ROUND_UNITS; l++) {
        c->units[l] = l < plan->n_units ? plan->units[l] : 0;
    }
    c->planned = true;
    if (c->fetched) {
        start_push(c);
    }
}

/* The first to hear of it says when `n` rounds were over. */
static void note_time(struct bench_clients *all, uint64_t n)
{
    if (all->times[n] == 0) {
        all->times[n] = fl_clock_ns();
        if (n + 1 >= all->setup.rounds) {
            all->setup.ending(all->setup.ctx);
        }
    }
}

static void on_task(struct client *c, const struct fl_wire_task *task)
{
    if (task->task.key.round > c->all->setup.rounds) {
        return;
    }
    note_time(c->all, task->task.key.round - 1);
    if (!c->all->halfway && task->task.key.round > c->all->setup.honest_rounds) {
        c->all->halfway = true;
        if (c->all->setup.halfway != NULL) {
            c->all->setup.halfway(c->all->setup.ctx);
        }
    }
    c->round = task->task.key.round;
    c->attempt = task->task.key.attempt;
    c->fetched = false;
    c->planned = false;
    if (task->has_plan) {
        on_plan(c, &task->plan);
    }
    start_fetch(c);
}

static bool on_command(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct client *c = ctx;
    struct fl_wire_command command;
    struct fl_err err = {0};

    if (fl_wire_command_decode(data, len, &command, &err) != FL_OK) {
        (void)fprintf(stderr, "bench: %s\n", err.msg);
        fl_call_cancel(call);
        return true;
    }
    if (command.type == FL_WIRE_WELCOME) {
        c->token = command.u.welcome.session;
        c->layout = command.u.welcome.layout;
        c->chunk = command.u.welcome.limits.chunk_bytes;
        command.u.welcome.layout = NULL;
    } else if (command.type == FL_WIRE_TASK) {
        on_task(c, &command.u.task);
    } else if (command.type == FL_WIRE_PLAN) {
        on_plan(c, &command.u.plan);
    } else if (command.type == FL_WIRE_DRAIN) {
        note_time(c->all, c->all->setup.rounds);
    }
    fl_wire_command_done(&command);
    return true;
}

static void on_attend_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                             const char *message)
{
    struct client *c = ctx;

    (void)call;
    (void)message;
    (void)status;
    c->attend = NULL;
    fl_grpc_channel_close(c->channel);
}

static const struct fl_call_handler attend_handler = {.on_message = on_command,
                                                      .on_closed = on_attend_closed};

static void on_up(void *ctx)
{
    struct client *c = ctx;
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};
    const char *prefix = c->all->setup.prefix != NULL ? c->all->setup.prefix : "bench";
    char name[64];
    char agent[] = "bench/round";

    if (fl_grpc_call(c->channel, "/fl.v1.Federation/Attend", 0, &attend_handler, c, &c->attend) !=
        FL_OK)
    {
        fl_grpc_channel_close(c->channel);
        return;
    }
    (void)snprintf(name, sizeof(name), "%s-%05zu", prefix, c->index);
    event.u.hello.version_min = FL_WIRE_VERSION;
    event.u.hello.version_max = FL_WIRE_VERSION;
    event.u.hello.client = name;
    event.u.hello.agent = agent;
    event.u.hello.samples = 100;
    send_event(c, &event);
}

static void on_down(void *ctx, int code, const char *text)
{
    struct client *c = ctx;
    struct bench_clients *all = c->all;

    if (code != FL_OK && all->times[all->setup.rounds] == 0 && all->setup.kind == BENCH_HONEST) {
        (void)fprintf(stderr, "bench: client %zu lost its connection: %s\n", c->index, text);
    }
    c->channel = NULL;
    if (--all->alive == 0) {
        all->setup.finished(all->setup.ctx);
    }
}

static const struct fl_grpc_channel_cbs cbs = {.on_up = on_up, .on_down = on_down};

int bench_clients_start(const struct bench_setup *setup, struct bench_clients **ret)
{
    struct bench_clients *all = calloc(1, sizeof(*all));
    struct fl_rpc_limits limits;
    struct fl_err err = {0};
    size_t i;

    if (all == NULL) {
        return FL_ENOMEM;
    }
    fl_rpc_limits_default(&limits);
    all->setup = *setup;
    all->list = calloc(setup->n, sizeof(*all->list));
    all->times = calloc(setup->rounds + 1, sizeof(*all->times));
    if (all->list == NULL || all->times == NULL) {
        bench_clients_free(all);
        return FL_ENOMEM;
    }
    *ret = all;
    for (i = 0; i < setup->n; i++) {
        struct client *c = &all->list[i];
        int rv;

        c->all = all;
        c->index = i;
        rv = fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = setup->loop,
                                                             .address = setup->address,
                                                             .limits = &limits,
                                                             .timeout_ms = 10000,
                                                             .cbs = &cbs,
                                                             .ctx = c},
                             &c->channel, &err);
        if (rv != FL_OK) {
            (void)fprintf(stderr, "bench: %s\n", fl_err_text(&err, rv));
            return rv;
        }
        all->alive++;
    }
    return FL_OK;
}

void bench_clients_free(struct bench_clients *clients)
{
    size_t i;

    if (clients == NULL) {
        return;
    }
    for (i = 0; clients->list != NULL && i < clients->setup.n; i++) {
        fl_layout_free(clients->list[i].layout);
    }
    free(clients->list);
    free(clients->times);
    free(clients);
}

const uint64_t *bench_clients_times(const struct bench_clients *clients)
{
    return clients->times;
}

uint64_t bench_clients_moved(const struct bench_clients *clients)
{
    return clients->moved;
}
