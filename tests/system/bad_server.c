/*
 * A server that says each command in each state of a client: for every cell of the table in
 * docs/clients.md it brings the client there in a session of its own, says the command,
 * and then asks something that a standing session answers. One line is printed for each:
 *
 *     STATE COMMAND stays|ends
 *
 * A Welcome said out of place describes a larger model. An upload of any but the model that the
 * session began with is printed as "leak".
 *
 *     bad_server ADDRESS [STATE COMMAND]
 *
 * Behind them come plans and tasks that are odd in themselves, with what they led to: the number
 * of units that the client then pushed, "asks" when it only asked how to, 0 for nothing.
 *
 *     ODD NAME stays|ends PUSHED
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/grpc/endpoint.h"
#include "libfl/wire/messages.h"

/* CODING and SENDING are PUSHING too: the lane has the result, the bytes are on their way. */
enum state {
    GREETING,
    READY,
    FETCHING,
    TRAINING,
    REPORTED,
    PUSHING,
    CODING,
    SENDING,
    DONE,
    N_STATES
};

static const char *const state_names[N_STATES] = {"GREETING", "READY",    "FETCHING",
                                                  "TRAINING", "REPORTED", "PUSHING",
                                                  "CODING",   "SENDING",  "DONE"};

static const struct {
    const char *name;
    enum fl_wire_command_type type;
} commands[] = {
    {"Welcome", FL_WIRE_WELCOME},     {"Refused", FL_WIRE_REFUSED},
    {"Task", FL_WIRE_TASK},           {"Plan", FL_WIRE_PLAN},
    {"Accepted", FL_WIRE_ACCEPTED},   {"Rejected", FL_WIRE_REJECTED},
    {"Dismissed", FL_WIRE_DISMISSED}, {"Evaluate", FL_WIRE_EVALUATE},
    {"Drain", FL_WIRE_DRAIN},         {"Heartbeat", FL_WIRE_HEARTBEAT_COMMAND},
};

/* What is odd is said with the Task, behind the Report, or while the client trains. */
enum odd { PAST_TASK, PAST_PLAN, FAR_PLAN, PADDED_PLAN, OTHER_ATTEMPT, CHANGED_TASK, N_ODD };

static const char *const odd_names[N_ODD] = {"past-task",   "past-plan",     "far-plan",
                                             "padded-plan", "other-attempt", "changed-task"};

#define N_CELLS    (N_STATES * N_COMMANDS)
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))
#define INPUTS     60
#define UNITS      2
#define SMALL      3
#define LARGE      4000
/* No round is ever one of these: a Plan for it is answered with Failed. */
#define NO_ROUND  1000000
#define PING      1000001
#define NEW_ROUND 2000000

struct bad {
    struct fl_loop *loop;
    struct fl_grpc_server *server;
    struct fl_call *attend; /* of the present session */
    size_t cell, end;
    bool said; /* the command of the cell */
    /* Of an odd one. */
    bool reported, in_training, asks;
    size_t pushed;
    unsigned turn;
};

/* A call beside Attend. */
struct side {
    struct bad *b;
    bool push, heard;
};

static enum state state_of(const struct bad *b)
{
    return (enum state)(b->cell / N_COMMANDS);
}

static bool is_odd(const struct bad *b)
{
    return b->cell >= N_CELLS;
}

static enum odd odd_of(const struct bad *b)
{
    return (enum odd)(b->cell - N_CELLS);
}

static uint64_t round_of(const struct bad *b)
{
    return b->cell + 1;
}

static size_t floats_of(size_t width)
{
    return INPUTS * width + width + 10 * width + 10;
}

static void send_command(struct bad *b, const struct fl_wire_command *command)
{
    struct fl_piece piece;
    struct fl_buf buf;

    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    if (b->attend != NULL && fl_wire_command_encode(command, &buf) == FL_OK) {
        piece = (struct fl_piece){.data = buf.data, .len = buf.len};
        if (fl_call_send(b->attend, &piece, 1) != FL_OK) {
            fl_call_cancel(b->attend);
        }
    }
    fl_buf_done(&buf);
}

static void reply(struct fl_call *call, const struct fl_buf *buf)
{
    struct fl_piece piece = {.data = buf->data, .len = buf->len};

    if (fl_call_send(call, &piece, 1) != FL_OK) {
        (void)printf("a reply could not be sent\n");
    }
    fl_call_finish(call, FL_GRPC_OK, NULL);
}

/* --- what a server says --- */

static int layout_of(size_t width, struct fl_layout **ret)
{
    const size_t first[] = {width, INPUTS};
    const size_t second[] = {10, width};
    struct fl_layout *l = NULL;
    int rv = fl_layout_create(&l);

    if (rv != FL_OK ||
        (rv = fl_layout_add(l, "fc1", "fc1.weight", first, 2, false, NULL)) != FL_OK ||
        (rv = fl_layout_add(l, "fc1", "fc1.bias", first, 1, false, NULL)) != FL_OK ||
        (rv = fl_layout_add(l, "fc2", "fc2.weight", second, 2, false, NULL)) != FL_OK ||
        (rv = fl_layout_add(l, "fc2", "fc2.bias", second, 1, false, NULL)) != FL_OK ||
        (rv = fl_layout_finish(l, NULL)) != FL_OK)
    {
        fl_layout_free(l);
        return rv;
    }
    *ret = l;
    return FL_OK;
}

static void say_welcome(struct bad *b, size_t width, uint32_t steps)
{
    struct fl_wire_command c = {.type = FL_WIRE_WELCOME};
    struct fl_wire_welcome *w = &c.u.welcome;
    char dense[32];
    char *layers[] = {dense, fl_wire_lend("relu"), fl_wire_lend("dense 10")};
    uint32_t input[] = {INPUTS};

    if (layout_of(width, &w->layout) != FL_OK) {
        return;
    }
    (void)snprintf(dense, sizeof(dense), "dense %zu", width);
    w->version = FL_WIRE_VERSION;
    w->federation = fl_wire_lend("bad");
    w->input = input;
    w->n_input = 1;
    w->layers = layers;
    w->n_layers = 3;
    w->classes = 10;
    w->solver.name = fl_wire_lend("sgd");
    w->codec.name = fl_wire_lend("float32");
    w->heartbeat_ms = 600000;
    w->limits = (struct fl_wire_limits){4096, 1u << 21, 16, 600000};
    w->training = (struct fl_wire_training){.steps = steps, .batch_size = 10};
    send_command(b, &c);
    fl_layout_free(w->layout);
}

static void say_task(struct bad *b, uint64_t round, bool planned)
{
    struct fl_wire_command c = {.type = FL_WIRE_TASK};
    struct fl_wire_payload model = {.name = fl_wire_lend("model"),
                                    .bytes = floats_of(SMALL) * sizeof(float)};

    c.u.task = (struct fl_wire_task){
        .task = {.key = {round, 1}, .learning_rate = 0.01, .deadline_ms = 600000},
        .payloads = &model,
        .n_payloads = 1,
        .has_plan = planned,
        .plan = {.round = round, .attempt = 1}};
    send_command(b, &c);
}

static void say_plan(struct bad *b, uint64_t round)
{
    struct fl_wire_command c = {.type = FL_WIRE_PLAN};

    c.u.plan = (struct fl_wire_plan){.round = round, .attempt = 1};
    send_command(b, &c);
}

static void say(struct bad *b, enum fl_wire_command_type type)
{
    struct fl_wire_command c = {.type = type};

    switch (type) {
    case FL_WIRE_WELCOME:
        say_welcome(b, LARGE, 1);
        return;
    case FL_WIRE_TASK:
        say_task(b, round_of(b) + NEW_ROUND, false);
        return;
    case FL_WIRE_PLAN:
        say_plan(b, round_of(b));
        return;
    case FL_WIRE_REFUSED:
        c.u.refused.reason = FL_WIRE_REASON_FULL;
        c.u.refused.message = fl_wire_lend("for \x1b[31mnow");
        c.u.refused.retry_after_ms = 1;
        break;
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_REJECTED:
    case FL_WIRE_DISMISSED:
        c.u.verdict.round = round_of(b);
        c.u.verdict.attempt = 1;
        c.u.verdict.reason = type == FL_WIRE_REJECTED ? fl_wire_lend("so\nthere") : NULL;
        break;
    case FL_WIRE_EVALUATE:
        c.u.evaluate.round = round_of(b);
        c.u.evaluate.payload = (struct fl_wire_payload){.name = fl_wire_lend("model"),
                                                        .bytes = floats_of(SMALL) * sizeof(float)};
        break;
    case FL_WIRE_DRAIN:
        c.u.drain.reason = fl_wire_lend("a\tpause");
        c.u.drain.reconnect_after_ms = 1;
        break;
    case FL_WIRE_HEARTBEAT_COMMAND:
        c.u.heartbeat = 1;
        break;
    case FL_WIRE_CENTRAL:
        c.u.central.revision = 1;
        break;
    }
    send_command(b, &c);
}

/* A plan that has this bit in a mask for `units` units. */
static void say_unit(struct bad *b, uint32_t attempt, size_t unit, size_t units)
{
    struct fl_wire_command c = {.type = FL_WIRE_PLAN};
    uint8_t mask[64] = {0};

    mask[0] = 1;
    mask[unit] = 1;
    c.u.plan = (struct fl_wire_plan){round_of(b), attempt, mask, units};
    send_command(b, &c);
}

/* Another task by the same name: of one unit, a model of other bytes, a rate that diverges. */
static void say_odd_task(struct bad *b, size_t unit)
{
    struct fl_wire_command c = {.type = FL_WIRE_TASK};
    struct fl_wire_payload model = {.name = fl_wire_lend("model"), .bytes = 8};
    uint8_t mask[8] = {0};

    mask[unit] = 1;
    c.u.task = (struct fl_wire_task){
        .task = {.key = {round_of(b), 1}, .learning_rate = 1e30, .deadline_ms = 600000},
        .payloads = &model,
        .n_payloads = 1,
        .has_plan = true,
        .plan = {round_of(b), 1, mask, sizeof(mask)}};
    send_command(b, &c);
}

static void play_odd(struct bad *b)
{
    if (b->said || b->attend == NULL) {
        return;
    }
    b->said = true;
    switch (odd_of(b)) {
    case PAST_TASK:
        say_odd_task(b, UNITS);
        break;
    case PAST_PLAN:
        say_unit(b, 1, UNITS, 8);
        break;
    case FAR_PLAN:
        say_unit(b, 1, 39, 40);
        break;
    case PADDED_PLAN:
        say_unit(b, 1, 0, 40);
        break;
    case OTHER_ATTEMPT:
        say_unit(b, 2, 1, UNITS);
        break;
    case CHANGED_TASK:
        say_odd_task(b, 0);
        break;
    case N_ODD:
        break;
    }
    say_plan(b, NO_ROUND);
}

/* The client is in the state of the cell. */
static void play(struct bad *b)
{
    if (b->said || b->attend == NULL) {
        return;
    }
    b->said = true;
    say(b, commands[b->cell % N_COMMANDS].type);
    if (state_of(b) == GREETING && commands[b->cell % N_COMMANDS].type != FL_WIRE_WELCOME) {
        say_welcome(b, SMALL, 1);
    }
    say_plan(b, NO_ROUND);
}

/* --- Attend --- */

static void cell_is_over(struct bad *b, const char *outcome)
{
    if (!is_odd(b)) {
        (void)printf("%s %s %s\n", state_names[state_of(b)], commands[b->cell % N_COMMANDS].name,
                     outcome);
    } else if (b->asks && b->pushed == 0) {
        (void)printf("ODD %s %s asks\n", odd_names[odd_of(b)], outcome);
    } else {
        (void)printf("ODD %s %s %zu\n", odd_names[odd_of(b)], outcome, b->pushed);
    }
    (void)fflush(stdout);
    b->said = b->reported = b->in_training = b->asks = false;
    b->pushed = 0;
    b->cell++;
    if (b->cell == b->end) {
        fl_loop_stop(b->loop);
    }
}

static void on_hello(struct bad *b)
{
    enum state state = state_of(b);

    if (is_odd(b)) {
        /* Steps enough that what is said behind the model comes while they are made. */
        say_welcome(b, SMALL, odd_of(b) == CHANGED_TASK ? 300000 : 1);
        if (odd_of(b) == PAST_TASK) {
            play_odd(b);
        } else {
            say_task(b, round_of(b), odd_of(b) == CHANGED_TASK);
        }
        return;
    }
    if (state == GREETING) {
        play(b);
        return;
    }
    say_welcome(b, SMALL, state == TRAINING ? 1000000000 : 1);
    if (state == DONE) {
        struct fl_wire_command c = {.type = FL_WIRE_DRAIN};

        c.u.drain.reason = fl_wire_lend("that was all");
        send_command(b, &c);
    }
    if (state == READY || state == DONE) {
        play(b);
    } else {
        say_task(b, round_of(b), state >= PUSHING);
    }
}

static void finish_cell(struct bad *b)
{
    struct fl_call *attend = b->attend;

    cell_is_over(b, "stays");
    b->attend = NULL;
    if (attend != NULL) {
        fl_call_finish(attend, FL_GRPC_OK, NULL);
    }
}

static void on_odd_event(struct bad *b, const struct fl_wire_event *event)
{
    uint64_t failed = event->type == FL_WIRE_FAILED ? event->u.failed.round : 0;

    if (event->type == FL_WIRE_REPORT) {
        b->reported = true;
        if (odd_of(b) != CHANGED_TASK) {
            play_odd(b);
        }
    } else if (failed == PING) {
        play_odd(b);
    } else if (failed == NO_ROUND && b->said) {
        b->in_training = !b->reported;
        /* A grant that stands is pushed for: that ends the others. */
        if (odd_of(b) != PADDED_PLAN && odd_of(b) != CHANGED_TASK) {
            finish_cell(b);
        }
    } else if (failed == round_of(b)) {
        (void)printf("failed %s attempt %u\n", odd_names[odd_of(b)],
                     (unsigned)event->u.failed.attempt);
    }
}

static bool on_event(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct bad *b = ctx;
    struct fl_wire_event event;

    if (fl_wire_event_decode(data, len, &event, NULL) != FL_OK) {
        (void)printf("an event that is none\n");
        fl_call_cancel(call);
        return true;
    }
    if (event.type == FL_WIRE_HELLO) {
        on_hello(b);
    } else if (is_odd(b)) {
        on_odd_event(b, &event);
    } else if (event.type == FL_WIRE_REPORT && state_of(b) == REPORTED) {
        play(b);
    } else if (event.type == FL_WIRE_FAILED && event.u.failed.round == PING) {
        play(b);
    } else if (event.type == FL_WIRE_FAILED && event.u.failed.round == NO_ROUND && b->said) {
        finish_cell(b);
    } else if (event.type == FL_WIRE_EVALUATION && event.u.evaluation.result.samples == 0) {
        (void)printf("no evaluation in %s\n", state_names[state_of(b)]);
    }
    fl_wire_event_done(&event);
    return true;
}

/* Before the command was said the client had its reasons, and comes again. */
static void on_attend_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                             const char *message)
{
    struct bad *b = ctx;

    (void)status;
    (void)message;
    if (b->attend != call) {
        return;
    }
    b->attend = NULL;
    if (b->said) {
        cell_is_over(b, "ends");
    }
}

static const struct fl_call_handler attend_handler = {.on_message = on_event,
                                                      .on_closed = on_attend_closed};

static void on_attend(struct fl_call *call, void *ctx)
{
    struct bad *b = ctx;

    b->attend = call;
    b->said = false;
    fl_call_set_handler(call, &attend_handler, b);
}

/* --- the other calls --- */

static void on_side_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                           const char *message)
{
    struct side *s = ctx;

    (void)call;
    (void)message;
    /* The end of the Fetch is on its way: what follows the answer to this comes behind it. */
    if (status == FL_GRPC_OK && !s->push && !s->b->said &&
        (is_odd(s->b) ? odd_of(s->b) == CHANGED_TASK : state_of(s->b) == TRAINING))
    {
        say_plan(s->b, PING);
    }
    free(s);
}

static void begin_side(struct fl_call *call, struct bad *b, const struct fl_call_handler *handler)
{
    struct side *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        fl_call_finish(call, FL_GRPC_UNAVAILABLE, "out of memory");
        return;
    }
    s->b = b;
    fl_call_set_handler(call, handler, s);
}

static bool on_fetch_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct side *s = ctx;
    size_t bytes = floats_of(SMALL) * sizeof(float);
    uint8_t head[FL_WIRE_CHUNK_HEAD];
    uint8_t *zeros = calloc(1, bytes);
    struct fl_buf buf;

    (void)data;
    (void)len;
    fl_buf_init(&buf, SIZE_MAX / 2);
    if (state_of(s->b) == FETCHING || zeros == NULL) {
        play(s->b); /* and leave it open */
    } else if (fl_buf_add(&buf, head, fl_wire_chunk_head(0, bytes, head)) == FL_OK &&
               fl_buf_add(&buf, zeros, bytes) == FL_OK)
    {
        reply(call, &buf);
    }
    fl_buf_done(&buf);
    free(zeros);
    return true;
}

static const struct fl_call_handler fetch_handler = {.on_message = on_fetch_message,
                                                     .on_closed = on_side_closed};

static void on_fetch(struct fl_call *call, void *ctx)
{
    begin_side(call, ctx, &fetch_handler);
}

static bool on_status_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct side *s = ctx;
    struct fl_wire_push_status status = {0};
    struct fl_buf buf;

    (void)data;
    (void)len;
    s->b->asks = is_odd(s->b);
    s->push = true;
    if (state_of(s->b) == PUSHING) {
        play(s->b); /* and leave it open */
        return true;
    }
    fl_buf_init(&buf, 4096);
    if (fl_wire_push_status_reply_encode(&status, &buf) == FL_OK) {
        reply(call, &buf);
    }
    fl_buf_done(&buf);
    if (state_of(s->b) == CODING) {
        play(s->b);
    }
    return true;
}

static const struct fl_call_handler status_handler = {.on_message = on_status_message,
                                                      .on_closed = on_side_closed};

static void on_status(struct fl_call *call, void *ctx)
{
    begin_side(call, ctx, &status_handler);
}

static bool on_push_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct side *s = ctx;
    struct fl_wire_push_header header = {.n_parts = 0};
    struct fl_wire_chunk chunk;
    bool is_header = false;

    (void)call;
    if (s->heard) {
        return true;
    }
    s->heard = true;
    s->push = true;
    if (fl_wire_push_decode(data, len, &is_header, &header, &chunk, NULL) != FL_OK || !is_header ||
        (!is_odd(s->b) && header.bytes != floats_of(SMALL) * sizeof(float)))
    {
        (void)printf("leak: an upload of another model\n");
    }
    s->b->pushed = header.n_parts;
    fl_wire_push_header_done(&header);
    if (is_odd(s->b)) {
        if (s->b->in_training) {
            (void)printf("changed in training\n");
        }
        finish_cell(s->b);
        return true;
    }
    if (state_of(s->b) == SENDING) {
        play(s->b);
    }
    return true;
}

static const struct fl_call_handler push_handler = {.on_message = on_push_message,
                                                    .on_closed = on_side_closed};

static void on_push(struct fl_call *call, void *ctx)
{
    begin_side(call, ctx, &push_handler);
}

/* --- the whole --- */

static bool choose(struct bad *b, const char *state, const char *command)
{
    size_t i;

    for (i = 0; i < N_STATES * N_COMMANDS; i++) {
        if (strcmp(state, state_names[i / N_COMMANDS]) == 0 &&
            strcmp(command, commands[i % N_COMMANDS].name) == 0)
        {
            b->cell = i;
            b->end = i + 1;
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    struct bad b = {.end = N_CELLS + N_ODD};
    struct fl_rpc_method methods[] = {
        {"/fl.v1.Federation/Attend", FL_WHO_ANYBODY, on_attend, &b},
        {"/fl.v1.Federation/Fetch", FL_WHO_ANYBODY, on_fetch, &b},
        {"/fl.v1.Federation/PushStatus", FL_WHO_ANYBODY, on_status, &b},
        {"/fl.v1.Federation/Push", FL_WHO_ANYBODY, on_push, &b},
        {NULL, 0, NULL, NULL}};
    struct fl_grpc_server_setup setup = {.max_connections = 8, .methods = methods};
    struct fl_err err = {0};
    int rv;

    if ((argc != 2 && argc != 4) || (argc == 4 && !choose(&b, argv[2], argv[3]))) {
        (void)fputs("usage: bad_server ADDRESS [STATE COMMAND]\n", stderr);
        return 2;
    }
    fl_rpc_limits_default(&setup.limits);
    rv = fl_loop_create(&b.loop, &err);
    setup.loop = b.loop;
    if (rv == FL_OK) {
        rv = fl_grpc_server_create(&setup, &b.server, &err);
    }
    if (rv == FL_OK) {
        rv = fl_grpc_server_listen(b.server, &(struct fl_grpc_listen){.address = argv[1]}, NULL,
                                   &err);
    }
    if (rv != FL_OK) {
        (void)fprintf(stderr, "bad_server: %s\n", fl_err_text(&err, rv));
        return 1;
    }
    (void)printf("listening\n");
    (void)fflush(stdout);
    fl_loop_run(b.loop);
    return 0; /* Connections and all go with the process. */
}
