/*
 * A client that asks for what is not its, and tells of its data in odd ways. Joins with
 * `NAME` and does what each word says, one after the other:
 *
 *     fetch:ROUND:PAYLOAD   prints "fetch PAYLOAD STATUS bytes=N"
 *     summary:OFFSET:TOTAL:N a piece of a summary, N bytes of 0xA5
 *     flood                events that nobody asked for, as fast as they are taken, without end
 *     stay                 does nothing more, and does not leave
 *     wait                 until the server has taken what was sent (a heartbeat comes back)
 *
 * Without "samples" as the first word it has none, and is nobody to wait for.
 * "welcome summary=0|1" comes first and "attend STATUS message" last. With the name "-" it
 * talks to an admin socket instead: "twice" sends a request two times, "never" none; it
 * prints "STATUS messages=N".
 *
 *     odd_client ADDRESS NAME WORD…
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/grpc/endpoint.h"
#include "libfl/wire/messages.h"

struct odd {
    struct fl_loop *loop;
    struct fl_grpc_channel *channel;
    struct fl_call *attend;
    const char *name;
    char **words; /* what is still to be done; ended by NULL */
    struct fl_wire_session token;
    char payload[FL_NAME_MAX];
    unsigned long long received;
    unsigned messages;
    uint64_t beat;
    bool welcome, waiting, floods;
};

static void send_bytes(struct fl_call *call, const void *data, size_t len)
{
    struct fl_piece piece = {.data = data, .len = len};

    int rv = fl_call_send(call, &piece, 1);

    if (rv != FL_OK && rv != FL_ECLOSED) { /* A call that ended says so by itself. */
        (void)printf("send failed: %s\n", fl_strerror(rv));
    }
}

static void send_event(struct odd *o, const struct fl_wire_event *event)
{
    struct fl_buf buf;

    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    if (fl_wire_event_encode(event, &buf) == FL_OK) {
        send_bytes(o->attend, buf.data, buf.len);
    }
    fl_buf_done(&buf);
}

static void next_word(struct odd *o);

/* --- fetch --- */

static bool on_chunk(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct odd *o = ctx;
    struct fl_wire_chunk chunk;

    (void)call;
    if (fl_wire_chunk_decode(data, len, &chunk, NULL) == FL_OK) {
        o->received += chunk.len;
    }
    return true;
}

static void on_fetch_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                            const char *message)
{
    struct odd *o = ctx;

    (void)call;
    (void)message;
    (void)printf("fetch %s %s bytes=%llu\n", o->payload, fl_grpc_status_name(status), o->received);
    next_word(o);
}

static const struct fl_call_handler fetch_handler = {.on_message = on_chunk,
                                                     .on_closed = on_fetch_closed};

static void fetch(struct odd *o, const char *word)
{
    struct fl_wire_fetch f = {.session = o->token};
    struct fl_call *call = NULL;
    struct fl_buf buf;
    char *end = NULL;

    f.round = strtoull(word, &end, 10);
    (void)snprintf(f.payload, sizeof(f.payload), "%s", end + 1);
    (void)snprintf(o->payload, sizeof(o->payload), "%s", f.payload);
    o->received = 0;
    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    if (fl_wire_fetch_encode(&f, &buf) == FL_OK &&
        fl_grpc_call(o->channel, "/fl.v1.Federation/Fetch", 0, &fetch_handler, o, &call) == FL_OK)
    {
        send_bytes(call, buf.data, buf.len);
        fl_call_end(call);
    }
    fl_buf_done(&buf);
}

/* --- the control stream --- */

static void summary(struct odd *o, const char *word)
{
    static uint8_t bytes[FL_WIRE_SUMMARY_PIECE];
    struct fl_wire_event event = {.type = FL_WIRE_DATA_SUMMARY};
    char *at = NULL;

    (void)memset(bytes, 0xA5, sizeof(bytes));
    event.u.summary.offset = strtoull(word, &at, 10);
    event.u.summary.total = strtoull(at + 1, &at, 10);
    event.u.summary.len = strtoull(at + 1, &at, 10);
    event.u.summary.data = bytes;
    send_event(o, &event);
}

/* Evaluations of nothing, until the queue is full; on_flood_writable goes on. */
static void flood(struct odd *o)
{
    struct fl_wire_event event = {.type = FL_WIRE_EVALUATION};
    struct fl_piece piece;
    struct fl_buf buf;

    event.u.evaluation.round = 1;
    event.u.evaluation.result.samples = 1;
    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    if (fl_wire_event_encode(&event, &buf) == FL_OK) {
        piece = (struct fl_piece){.data = buf.data, .len = buf.len};
        while (fl_call_send(o->attend, &piece, 1) == FL_OK) {
        }
    }
    fl_buf_done(&buf);
}

static void on_flood_writable(struct fl_call *call, void *ctx)
{
    struct odd *o = ctx;

    (void)call;
    if (o->floods) {
        flood(o);
    }
}

static void next_word(struct odd *o)
{
    struct fl_wire_event beat = {.type = FL_WIRE_HEARTBEAT_EVENT};

    while (o->attend != NULL && *o->words != NULL) {
        const char *word = *o->words++;

        if (strncmp(word, "summary:", 8) == 0) {
            summary(o, word + 8);
        } else if (strncmp(word, "fetch:", 6) == 0) {
            fetch(o, word + 6);
            return;
        } else if (strcmp(word, "flood") == 0) {
            o->floods = true;
            flood(o);
            return;
        } else if (strcmp(word, "stay") == 0) {
            return;
        } else {
            beat.u.heartbeat = ++o->beat;
            o->waiting = true;
            send_event(o, &beat);
            return;
        }
    }
    if (o->attend != NULL) {
        fl_call_end(o->attend);
    }
}

static bool on_command(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct odd *o = ctx;
    struct fl_wire_command command;

    if (fl_wire_command_decode(data, len, &command, NULL) != FL_OK) {
        fl_call_cancel(call);
        return true;
    }
    if (command.type == FL_WIRE_WELCOME && !o->welcome) {
        o->welcome = true;
        o->token = command.u.welcome.session;
        (void)printf("welcome summary=%d\n", command.u.welcome.wants_summary);
        (void)fflush(stdout);
        next_word(o);
    } else if (command.type == FL_WIRE_HEARTBEAT_COMMAND && o->waiting) {
        o->waiting = false;
        next_word(o);
    }
    fl_wire_command_done(&command);
    return true;
}

static void on_attend_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                             const char *message)
{
    struct odd *o = ctx;

    (void)call;
    (void)printf("attend %s %s\n", fl_grpc_status_name(status), message != NULL ? message : "");
    o->attend = NULL;
    fl_grpc_channel_close(o->channel);
}

static const struct fl_call_handler attend_handler = {
    .on_message = on_command, .on_writable = on_flood_writable, .on_closed = on_attend_closed};

/* --- the admin socket --- */

static bool on_answer(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct odd *o = ctx;

    (void)call;
    (void)data;
    (void)len;
    o->messages++;
    return true;
}

static void on_answered(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                        const char *message)
{
    struct odd *o = ctx;

    (void)call;
    (void)message;
    (void)printf("%s messages=%u\n", fl_grpc_status_name(status), o->messages);
    fl_grpc_channel_close(o->channel);
}

static const struct fl_call_handler admin_handler = {.on_message = on_answer,
                                                     .on_closed = on_answered};

static void ask_admin(struct odd *o)
{
    struct fl_call *call = NULL;
    int n = strcmp(*o->words, "twice") == 0 ? 2 : 0;

    if (fl_grpc_call(o->channel, "/fl.v1.Admin/Status", 0, &admin_handler, o, &call) != FL_OK) {
        fl_grpc_channel_close(o->channel);
        return;
    }
    while (n-- > 0) {
        send_bytes(call, "", 0);
    }
    fl_call_end(call);
}

static void on_up(void *ctx)
{
    struct odd *o = ctx;
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};

    if (strcmp(o->name, "-") == 0) {
        ask_admin(o);
        return;
    }
    if (fl_grpc_call(o->channel, "/fl.v1.Federation/Attend", 0, &attend_handler, o, &o->attend) !=
        FL_OK)
    {
        fl_grpc_channel_close(o->channel);
        return;
    }
    event.u.hello.version_min = FL_WIRE_VERSION;
    event.u.hello.version_max = FL_WIRE_VERSION;
    event.u.hello.client = fl_wire_lend(o->name);
    event.u.hello.agent = fl_wire_lend("odd_client");
    if (strcmp(*o->words, "samples") == 0) {
        event.u.hello.samples = 100;
        o->words++;
    }
    send_event(o, &event);
}

static void on_down(void *ctx, int code, const char *text)
{
    struct odd *o = ctx;

    (void)code;
    (void)text;
    o->channel = NULL;
    fl_loop_stop(o->loop);
}

static const struct fl_grpc_channel_cbs cbs = {.on_up = on_up, .on_down = on_down};

int main(int argc, char **argv)
{
    struct odd o = {0};
    struct fl_rpc_limits limits;
    struct fl_err err = {0};
    int rv;

    if (argc < 4) {
        (void)fputs("usage: odd_client ADDRESS NAME WORD...\n", stderr);
        return 2;
    }
    o.name = argv[2];
    o.words = argv + 3;
    fl_rpc_limits_default(&limits);
    rv = fl_loop_create(&o.loop, &err);
    if (rv == FL_OK) {
        rv = fl_grpc_connect(&(struct fl_grpc_channel_setup){.loop = o.loop,
                                                             .address = argv[1],
                                                             .limits = &limits,
                                                             .timeout_ms = 10000,
                                                             .cbs = &cbs,
                                                             .ctx = &o},
                             &o.channel, &err);
        if (rv == FL_OK) {
            fl_loop_run(o.loop);
        }
        fl_loop_free(o.loop);
    }
    if (rv != FL_OK) {
        (void)fprintf(stderr, "odd_client: %s\n", fl_err_text(&err, rv));
        return 1;
    }
    return 0;
}
