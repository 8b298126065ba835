/*
 * A client that misbehaves on purpose: joins, takes the first task, and makes one Push
 * after the other, each bad in the way that its word tells. One line is printed for each:
 *
 *     WORD STATUS accepted=0|1 received=N message
 *
 * and at the end the verdict of the coordinator. After the harmless slips "good" shows
 * that the same client can still do it right, from the offset where the upload stands.
 *
 * "stored" as the first word holds the report back and uploads first (codec ternary, all zeros);
 * when the server has all of that, "over" begins the same upload anew in another form, leaves it
 * half done, and reports; "mended" uploads again should that have been taken.
 *
 *     bad_client ADDRESS NAME WORD…
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/grpc/endpoint.h"
#include "libfl/wire/messages.h"

/* So often asked in vain for more, the server has judged what it has. */
#define STATUS_OF_STORED 500

struct bad {
    struct fl_loop *loop;
    struct fl_grpc_channel *channel;
    struct fl_call *attend, *push;
    const char *name;
    char **words; /* what is still to be done; ended by NULL */
    const char *word;
    struct fl_wire_session token;
    struct fl_layout *layout;
    uint64_t round;
    uint32_t attempt;
    uint64_t resume; /* what the server has of the upload */
    size_t unsent;   /* bytes of "leave" */
    bool accepted, judged;
    bool whole; /* the server has all bytes of the upload */
    bool reported;
    unsigned asked; /* since then */
    int exit_code;
};

static bool is(const struct bad *b, const char *word)
{
    return strcmp(b->word, word) == 0;
}

static bool ternary(const struct bad *b)
{
    return is(b, "stored") || is(b, "over") || is(b, "mended");
}

/* A call that the server has ended already says so by itself: on_closed follows. */
static void send_pieces(struct fl_call *call, struct fl_piece *pieces, size_t n)
{
    int rv = fl_call_send(call, pieces, n);

    if (rv != FL_OK && rv != FL_ECLOSED) {
        (void)printf("send failed: %s\n", fl_strerror(rv));
    }
}

static void send_bytes(struct fl_call *call, const void *data, size_t len)
{
    struct fl_piece piece = {.data = data, .len = len};

    send_pieces(call, &piece, 1);
}

static void send_event(struct bad *b, const struct fl_wire_event *event)
{
    struct fl_buf buf;

    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    if (fl_wire_event_encode(event, &buf) == FL_OK) {
        send_bytes(b->attend, buf.data, buf.len);
    }
    fl_buf_done(&buf);
}

/* --- one bad push --- */

static void send_header(struct bad *b)
{
    struct fl_wire_push_header h = {.session = b->token, .round = b->round, .attempt = b->attempt};
    size_t n = fl_layout_units(b->layout);
    struct fl_wire_part *parts = calloc(n, sizeof(*parts));
    struct fl_buf buf;
    size_t l;

    if (parts == NULL) {
        return;
    }
    for (l = 0; l < n; l++) {
        (void)snprintf(parts[l].payload, sizeof(parts[l].payload), "%s",
                       is(b, "payload") ? "model" : "update");
        parts[l].unit = (uint32_t)l;
        parts[l].codec = is(b, "codec") ? 7 : 1;
        parts[l].bytes = fl_layout_unit(b->layout, l)->count * sizeof(float);
    }
    for (l = 0; ternary(b) && l < n; l++) { /* "over": as INT8 */
        parts[l].codec = 5;
        parts[l].bytes = 5 + (is(b, "over") ? fl_layout_unit(b->layout, l)->count : 0);
    }
    if (is(b, "shape")) { /* As of a narrower layer; send_data() sends as much. */
        parts[0].bytes -= sizeof(float);
    }
    h.parts = parts;
    h.n_parts = is(b, "missing") ? n - 1 : n;
    for (l = 0; l < h.n_parts; l++) {
        h.bytes += parts[l].bytes;
    }
    h.round = is(b, "zero") ? 0 : h.round + (is(b, "round") ? 7 : 0);
    h.attempt = is(b, "zero") ? 0 : h.attempt + (is(b, "attempt") ? 1 : 0);
    h.session.id[sizeof(h.session.id) - 1] ^= is(b, "session") ? 0xff : 0;
    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    if (fl_wire_push_header_encode(&h, &buf) == FL_OK) {
        send_bytes(b->push, buf.data, buf.len);
    }
    fl_buf_done(&buf);
    free(parts);
}

static void send_chunk(struct bad *b, uint64_t offset, const uint8_t *data, size_t len)
{
    uint8_t head[FL_WIRE_CHUNK_HEAD];
    struct fl_piece pieces[2];

    pieces[0] = (struct fl_piece){.data = head, .len = fl_wire_push_chunk_head(offset, len, head)};
    pieces[1] = (struct fl_piece){.data = data, .len = len};
    send_pieces(b->push, pieces, 2);
}

static void send_data(struct bad *b)
{
    size_t n = fl_layout_count(b->layout);
    size_t bytes = n * sizeof(float) - (is(b, "shape") ? sizeof(float) : 0);
    float *update = calloc(n + 1, sizeof(float));
    const uint8_t *data = (const void *)update;

    if (update == NULL) {
        return;
    }
    if (ternary(b)) { /* Each unit: tag 0 and a count of none. */
        send_chunk(b, 0, data, is(b, "over") ? 5 : 5 * fl_layout_units(b->layout));
        free(update);
        return;
    }
    if (is(b, "nan") || is(b, "inf")) {
        update[n / 2] = is(b, "nan") ? (float)NAN : (float)INFINITY;
    }
    if (is(b, "large") || is(b, "largest")) {
        update[n / 2] = is(b, "large") ? 1e30f : 3.4e38f;
    }
    if (is(b, "gap")) {
        send_chunk(b, b->resume + 4, data, 4);
    } else if (is(b, "restart")) {
        send_chunk(b, 0, data, bytes);
    } else if (is(b, "many")) {
        send_chunk(b, b->resume, data, bytes + sizeof(float) - b->resume);
    } else if (is(b, "huge")) {
        send_chunk(b, UINT64_MAX - 3, data, 8);
    } else if (is(b, "early")) {
        send_chunk(b, b->resume, data, 100);
    } else {
        send_chunk(b, b->resume, data + b->resume, bytes - b->resume);
    }
    free(update);
}

static void ask_status(struct bad *b);

/* "leave": all of it, as fast as the server takes it. */
static void send_zeros(struct bad *b)
{
    static const uint8_t zeros[FL_WIRE_CHUNK];
    size_t bytes = fl_layout_count(b->layout) * sizeof(float);

    while (b->unsent > 0) {
        size_t n = b->unsent < sizeof(zeros) ? b->unsent : sizeof(zeros);
        uint8_t head[FL_WIRE_CHUNK_HEAD];
        struct fl_piece pieces[2];

        pieces[0] = (struct fl_piece){.data = head,
                                      .len = fl_wire_push_chunk_head(bytes - b->unsent, n, head)};
        pieces[1] = (struct fl_piece){.data = zeros, .len = n};
        if (fl_call_send(b->push, pieces, 2) != FL_OK) {
            return; /* on_writable comes, or the end */
        }
        b->unsent -= n;
        if (b->unsent == 0) {
            fl_call_end(b->push);
            ask_status(b);
        }
    }
}

static void next_push(struct bad *b);

static bool on_reply(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct bad *b = ctx;
    struct fl_wire_push_reply reply;

    (void)call;
    if (fl_wire_push_reply_decode(data, len, &reply, NULL) == FL_OK) {
        b->accepted = reply.accepted;
        b->resume = reply.received;
    }
    return true;
}

static void leave_when_judged(struct bad *b)
{
    if (b->judged && b->push == NULL && *b->words == NULL && b->channel != NULL) {
        fl_grpc_channel_close(b->channel);
    }
}

static void on_push_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                           const char *message)
{
    struct bad *b = ctx;

    if (call != b->push) {
        return; /* A newer one took over. */
    }
    b->push = NULL;
    if (b->accepted && is(b, "over")) {
        b->words++; /* There is nothing to be mended. */
    }
    (void)printf("%s %s accepted=%d received=%llu %s\n", b->word, fl_grpc_status_name(status),
                 b->accepted, (unsigned long long)b->resume, message != NULL ? message : "");
    (void)fflush(stdout);
    next_push(b);
}

static void on_push_writable(struct fl_call *call, void *ctx)
{
    struct bad *b = ctx;

    (void)call;
    send_zeros(b);
}

static const struct fl_call_handler push_handler = {
    .on_message = on_reply, .on_writable = on_push_writable, .on_closed = on_push_closed};

/* --- leaving while the server judges an upload that is complete --- */

static bool on_status(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct bad *b = ctx;
    struct fl_wire_push_status status = {0};
    size_t bytes = fl_layout_count(b->layout) * sizeof(float);

    (void)call;
    if (fl_wire_push_status_reply_decode(data, len, &status, NULL) != FL_OK) {
        b->exit_code = 1;
    }
    if (is(b, "stored")) {
        bytes = 5 * fl_layout_units(b->layout);
    }
    b->whole = status.accepted || status.received == bytes;
    if (status.accepted) {
        (void)printf("too late to leave\n");
    }
    return true;
}

static void on_status_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                             const char *message)
{
    struct bad *b = ctx;

    (void)call;
    (void)status;
    (void)message;
    if (b->push != NULL && is(b, "stored")) {
        b->asked += b->whole;
        if (b->asked == STATUS_OF_STORED) {
            (void)printf("stored\n");
            next_push(b); /* beside the first, which waits for the verdict */
        } else {
            ask_status(b);
        }
        return;
    }
    if (b->push == NULL || !is(b, "leave")) {
        return;
    }
    if (b->whole || b->exit_code != 0) {
        fl_call_cancel(b->push);
    } else {
        ask_status(b);
    }
}

static const struct fl_call_handler status_handler = {.on_message = on_status,
                                                      .on_closed = on_status_closed};

static void ask_status(struct bad *b)
{
    struct fl_wire_push_status status = {
        .session = b->token, .round = b->round, .attempt = b->attempt};
    struct fl_call *call = NULL;
    struct fl_buf buf;

    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    if (fl_wire_push_status_request_encode(&status, &buf) == FL_OK &&
        fl_grpc_call(b->channel, "/fl.v1.Federation/PushStatus", 0, &status_handler, b, &call) ==
            FL_OK)
    {
        send_bytes(call, buf.data, buf.len);
        fl_call_end(call);
    }
    fl_buf_done(&buf);
}

static void report(struct bad *b)
{
    struct fl_wire_event event = {.type = FL_WIRE_REPORT};

    if (b->reported) {
        return;
    }
    b->reported = true;
    event.u.report.round = b->round;
    event.u.report.attempt = b->attempt;
    event.u.report.samples = 100;
    event.u.report.steps = 1;
    event.u.report.train_loss = 1.0;
    send_event(b, &event);
}

static void next_push(struct bad *b)
{
    static const uint8_t junk[] = {0xff, 0xff, 0xff, 0xff, 0xff};

    if (*b->words == NULL) {
        leave_when_judged(b);
        return;
    }
    b->word = *b->words++;
    if (fl_grpc_call(b->channel, "/fl.v1.Federation/Push", 0, &push_handler, b, &b->push) != FL_OK)
    {
        b->exit_code = 1;
        fl_grpc_channel_close(b->channel);
        return;
    }
    if (is(b, "junk")) {
        send_bytes(b->push, junk, sizeof(junk));
    } else if (is(b, "chunk")) {
        send_chunk(b, 0, junk, sizeof(junk));
    } else if (!is(b, "nothing")) {
        send_header(b);
        if (is(b, "leave")) {
            b->unsent = fl_layout_count(b->layout) * sizeof(float);
            send_zeros(b);
            return;
        }
        if (is(b, "twice")) {
            send_header(b);
        } else {
            send_data(b);
        }
    }
    fl_call_end(b->push);
    if (is(b, "stored")) {
        ask_status(b);
    } else if (is(b, "over")) {
        report(b);
    }
}

/* --- control --- */

static void take_task(struct bad *b, const struct fl_wire_task *task)
{
    if (b->round != 0) {
        return; /* One round is enough. */
    }
    b->round = task->task.key.round;
    b->attempt = task->task.key.attempt;
    if (strcmp(*b->words, "stored") != 0) {
        report(b);
    }
    next_push(b);
}

static bool on_command(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct bad *b = ctx;
    struct fl_wire_command command;

    if (fl_wire_command_decode(data, len, &command, NULL) != FL_OK) {
        fl_call_cancel(call);
        return true;
    }
    switch (command.type) {
    case FL_WIRE_WELCOME:
        b->token = command.u.welcome.session;
        b->layout = command.u.welcome.layout;
        command.u.welcome.layout = NULL;
        break;
    case FL_WIRE_TASK:
        take_task(b, &command.u.task);
        break;
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_REJECTED:
    case FL_WIRE_DISMISSED:
        b->judged = true;
        (void)printf("verdict %s\n", command.type == FL_WIRE_ACCEPTED   ? "accepted"
                                     : command.type == FL_WIRE_REJECTED ? "rejected"
                                                                        : "dismissed");
        if (command.type == FL_WIRE_REJECTED) {
            (void)printf("reason %s\n", command.u.verdict.reason);
        }
        leave_when_judged(b);
        break;
    default:
        break;
    }
    fl_wire_command_done(&command);
    return true;
}

static void on_attend_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                             const char *message)
{
    struct bad *b = ctx;

    (void)call;
    if (!b->judged) {
        (void)printf("attend %s %s\n", fl_grpc_status_name(status), message != NULL ? message : "");
    }
    b->attend = NULL;
    fl_grpc_channel_close(b->channel);
}

static const struct fl_call_handler attend_handler = {.on_message = on_command,
                                                      .on_closed = on_attend_closed};

static void on_up(void *ctx)
{
    struct bad *b = ctx;
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};

    if (fl_grpc_call(b->channel, "/fl.v1.Federation/Attend", 0, &attend_handler, b, &b->attend) !=
        FL_OK)
    {
        fl_grpc_channel_close(b->channel);
        return;
    }
    event.u.hello.version_min = FL_WIRE_VERSION;
    event.u.hello.version_max = FL_WIRE_VERSION;
    event.u.hello.client = fl_wire_lend(b->name);
    event.u.hello.agent = fl_wire_lend("bad_client");
    event.u.hello.samples = 100;
    send_event(b, &event);
}

static void on_down(void *ctx, int code, const char *text)
{
    struct bad *b = ctx;

    if (!b->judged) {
        (void)printf("down %d %s\n", code, text != NULL ? text : "");
        b->exit_code = 1;
    }
    b->channel = NULL;
    fl_loop_stop(b->loop);
}

static const struct fl_grpc_channel_cbs cbs = {.on_up = on_up, .on_down = on_down};

int main(int argc, char **argv)
{
    struct bad b = {0};
    struct fl_rpc_limits limits;
    struct fl_err err = {0};
    int rv;

    if (argc < 4) {
        (void)fputs("usage: bad_client ADDRESS NAME WORD...\n", stderr);
        return 2;
    }
    b.name = argv[2];
    b.words = argv + 3;
    fl_rpc_limits_default(&limits);
    rv = fl_loop_create(&b.loop, &err);
    if (rv == FL_OK) {
        rv = fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = b.loop,
                                                             .address = argv[1],
                                                             .limits = &limits,
                                                             .timeout_ms = 10000,
                                                             .cbs = &cbs,
                                                             .ctx = &b},
                             &b.channel, &err);
        if (rv == FL_OK) {
            fl_loop_run(b.loop);
        }
        fl_loop_free(b.loop);
    }
    fl_layout_free(b.layout);
    if (rv != FL_OK) {
        (void)fprintf(stderr, "bad_client: %s\n", fl_err_text(&err, rv));
        return 1;
    }
    return b.exit_code;
}
