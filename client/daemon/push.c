/*
 * Pushing an update. The happy path: PushStatus says how much the server has; the lane codes
 * the granted units into one byte string (code.c); header and chunks go out from there, a few
 * at a time; the reply, or Accepted on the control stream, ends it.
 * A temporary failure goes back to the session, which tries again from PushStatus.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/client.h"
#include "libfl/base/sm.h"

enum push_state {
    PUSH_ASKING,   /* PushStatus */
    PUSH_CODING,   /* on the lane */
    PUSH_SENDING,  /* Push */
    PUSH_WAITING,  /* all is sent, or the call is broken: for its end */
    PUSH_GIVEN_UP, /* freed as soon as nothing of it is under way */
    PUSH_STATES
};

static const struct fl_sm_state push_states[PUSH_STATES] = {
    [PUSH_ASKING] = {"ASKING", FL_SM_TO(PUSH_CODING) | FL_SM_TO(PUSH_GIVEN_UP)},
    [PUSH_CODING] = {"CODING", FL_SM_TO(PUSH_SENDING) | FL_SM_TO(PUSH_GIVEN_UP)},
    [PUSH_SENDING] = {"SENDING", FL_SM_TO(PUSH_WAITING) | FL_SM_TO(PUSH_GIVEN_UP)},
    [PUSH_WAITING] = {"WAITING", FL_SM_TO(PUSH_GIVEN_UP)},
    [PUSH_GIVEN_UP] = {"GIVEN_UP", 0},
};

/* What the server said of it last. */
enum push_answer { ANSWER_NONE, ANSWER_INCOMPLETE, ANSWER_ACCEPTED };

struct fl_push {
    struct fl_clientd *cli;
    struct fl_sm sm;
    struct fl_call *call; /* PushStatus, then Push; NULL: none runs */
    struct fl_round_key key;
    struct fl_code code;
    uint64_t offset;
    enum push_answer answer;
    uint64_t received; /* what PushStatus said */
    int error;         /* of the coding */
    struct fl_err err;
};

static void push_free(struct fl_push *p)
{
    if (p->cli->push == p) {
        p->cli->push = NULL;
    }
    fl_code_done(&p->code);
    free(p);
}

static bool granted(const uint8_t *units, size_t n_units, size_t l)
{
    return units == NULL || (l < n_units && units[l] != 0);
}

static void send_chunks(struct fl_push *p)
{
    uint64_t total = fl_blob_len(p->code.bytes);

    /* Until the call's queue is full: only then on_writable comes. It holds references. */
    while (p->sm.state == PUSH_SENDING && p->offset < total) {
        uint8_t head[FL_WIRE_CHUNK_HEAD];
        size_t n = total - p->offset < p->cli->chunk_bytes ? (size_t)(total - p->offset)
                                                           : p->cli->chunk_bytes;
        struct fl_piece pieces[2];
        int rv;

        pieces[0] =
            (struct fl_piece){.data = head, .len = fl_wire_push_chunk_head(p->offset, n, head)};
        pieces[1] = (struct fl_piece){
            .data = fl_blob_data(p->code.bytes) + p->offset, .len = n, .blob = p->code.bytes};
        rv = fl_call_send(p->call, pieces, 2);
        if (rv == FL_ELIMIT) {
            return;
        }
        if (rv != FL_OK) {
            fl_sm_move(&p->sm, PUSH_WAITING);
            fl_call_cancel(p->call);
            return;
        }
        p->offset += n;
    }
    if (p->sm.state == PUSH_SENDING) {
        fl_sm_move(&p->sm, PUSH_WAITING);
        fl_call_end(p->call);
    }
}

static int send_header(struct fl_push *p)
{
    struct fl_wire_push_header header = {.session = p->cli->token,
                                         .round = p->key.round,
                                         .attempt = p->key.attempt,
                                         .parts = p->code.parts,
                                         .n_parts = p->code.n_parts,
                                         .bytes = fl_blob_len(p->code.bytes)};
    struct fl_piece piece;
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    rv = fl_wire_push_header_encode(&header, &buf);
    if (rv == FL_OK) {
        piece = (struct fl_piece){.data = buf.data, .len = buf.len};
        rv = fl_call_send(p->call, &piece, 1);
    }
    fl_buf_done(&buf);
    return rv;
}

/* --- what came of it --- */

static void report_end(struct fl_push *p, enum fl_grpc_status status, const char *message)
{
    struct fl_clientd *cli = p->cli;
    const char *text =
        message != NULL && message[0] != '\0' ? message : fl_grpc_status_name(status);

    if (p->answer == ANSWER_ACCEPTED) {
        fl_clientd_step_key(cli, FL_CEV_ACCEPTED, p->key);
        return;
    }
    switch (status) {
    case FL_GRPC_INVALID_ARGUMENT:
        fl_log_peer(cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "round %llu: update rejected: %s", (unsigned long long)p->key.round, text);
        fl_clientd_step_failed(cli, FL_CEV_REJECTED, p->key, text, true);
        break;
    case FL_GRPC_FAILED_PRECONDITION:
        fl_log_peer(cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "round %llu: update not wanted: %s", (unsigned long long)p->key.round, text);
        fl_clientd_step_key(cli, FL_CEV_DISMISSED, p->key);
        break;
    default:
        fl_log_peer(cli->log, FL_LOG_INFO, "client", FL_WORK_SERVER,
                    "upload for round %llu interrupted: %s", (unsigned long long)p->key.round,
                    status == FL_GRPC_OK ? "incomplete" : text);
        fl_clientd_step_failed(cli, FL_CEV_PUSH_FAILED, p->key, text, false);
        break;
    }
}

static bool on_reply(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_push *p = ctx;
    struct fl_wire_push_reply reply;
    struct fl_err err = {0};

    if (fl_wire_push_reply_decode(data, len, &reply, &err) != FL_OK) {
        fl_call_cancel(call);
        return true;
    }
    p->answer = reply.accepted ? ANSWER_ACCEPTED : ANSWER_INCOMPLETE;
    return true;
}

static void on_push_writable(struct fl_call *call, void *ctx)
{
    (void)call;
    send_chunks(ctx);
}

static void on_push_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                           const char *message)
{
    struct fl_push *p = ctx;

    (void)call;
    p->call = NULL;
    if (p->sm.state != PUSH_GIVEN_UP) {
        p->cli->push = NULL;
        report_end(p, status, message);
    }
    push_free(p);
}

static const struct fl_call_handler push_handler = {
    .on_message = on_reply, .on_writable = on_push_writable, .on_closed = on_push_closed};

static void give_up(struct fl_push *p, const char *text, bool permanent)
{
    struct fl_clientd *cli = p->cli;
    struct fl_round_key key = p->key;
    bool diverged = p->error == FL_ENUMERIC; /* The codec has no such number. */
    char copy[FL_ERR_BUF_SIZE];

    (void)snprintf(copy, sizeof(copy), "%s", text);
    push_free(p);
    if (diverged) {
        fl_clientd_step_diverged(cli, FL_CEV_PUSH_FAILED, key, copy);
    } else {
        fl_clientd_step_failed(cli, FL_CEV_PUSH_FAILED, key, copy, permanent);
    }
}

static void start_push(struct fl_push *p)
{
    int rv = p->cli->channel != NULL ? FL_OK : FL_ECLOSED;

    if (rv == FL_OK) {
        /* More than there is, or another coding: the server starts over by itself. */
        p->offset = p->received <= fl_blob_len(p->code.bytes) ? p->received : 0;
        rv = fl_grpc_call(p->cli->channel, "/fl.v1.Federation/Push", 0, &push_handler, p, &p->call);
    }
    if (rv != FL_OK) {
        give_up(p, fl_strerror(rv), false);
        return;
    }
    fl_sm_move(&p->sm, PUSH_SENDING);
    if (send_header(p) != FL_OK) {
        fl_sm_move(&p->sm, PUSH_WAITING);
        fl_call_cancel(p->call);
        return;
    }
    send_chunks(p);
}

/* --- coding --- */

static void code_work(void *arg)
{
    struct fl_push *p = arg;

    p->error = fl_code_run(&p->code, &p->err);
}

static void code_done(void *arg)
{
    struct fl_push *p = arg;
    const char *text = fl_err_text(&p->err, p->error);

    if (p->sm.state == PUSH_GIVEN_UP || p->cli->stopping) {
        push_free(p);
    } else if (p->error == FL_OK) {
        start_push(p);
    } else {
        fl_log_peer(p->cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "coding the update of round %llu: %s", (unsigned long long)p->key.round, text);
        give_up(p, text, p->error == FL_ESTATE);
    }
}

static void start_coding(struct fl_push *p)
{
    int rv;

    fl_sm_move(&p->sm, PUSH_CODING);
    rv = fl_lane_submit(p->cli->lane, code_work, p->cli->loop, code_done, p);
    if (rv != FL_OK) {
        give_up(p, fl_strerror(rv), false);
    }
}

static bool on_status(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_push *p = ctx;
    struct fl_wire_push_status status;
    struct fl_err err = {0};

    if (fl_wire_push_status_reply_decode(data, len, &status, &err) != FL_OK) {
        fl_call_cancel(call);
        return true;
    }
    p->answer = status.accepted ? ANSWER_ACCEPTED : ANSWER_INCOMPLETE;
    p->received = status.received;
    return true;
}

static void on_status_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                             const char *message)
{
    struct fl_push *p = ctx;

    (void)call;
    p->call = NULL;
    if (p->sm.state == PUSH_GIVEN_UP) {
        push_free(p);
    } else if (status == FL_GRPC_OK && p->answer == ANSWER_INCOMPLETE) {
        start_coding(p);
    } else {
        p->cli->push = NULL;
        report_end(p, status, message);
        push_free(p);
    }
}

static const struct fl_call_handler status_handler = {.on_message = on_status,
                                                      .on_closed = on_status_closed};

static int ask_status(struct fl_push *p)
{
    struct fl_wire_push_status status = {
        .session = p->cli->token, .round = p->key.round, .attempt = p->key.attempt};
    struct fl_piece piece;
    struct fl_buf buf;
    int rv = p->cli->channel != NULL ? FL_OK : FL_ECLOSED;

    fl_buf_init(&buf, 4096);
    if (rv == FL_OK) {
        rv = fl_wire_push_status_request_encode(&status, &buf);
    }
    if (rv == FL_OK) {
        rv = fl_grpc_call(p->cli->channel, "/fl.v1.Federation/PushStatus", 60000, &status_handler,
                          p, &p->call);
    }
    if (rv == FL_OK) {
        piece = (struct fl_piece){.data = buf.data, .len = buf.len};
        if (fl_call_send(p->call, &piece, 1) != FL_OK) {
            fl_call_cancel(p->call); /* on_status_closed tells the session. */
        }
        fl_call_end(p->call);
    }
    fl_buf_done(&buf);
    return rv;
}

static struct fl_push *push_new(struct fl_clientd *cli, struct fl_round_key key,
                                const uint8_t *units, size_t n_units)
{
    size_t n = fl_layout_units(cli->setup->layout);
    struct fl_push *p = calloc(1, sizeof(*p));
    size_t l;

    if (p == NULL) {
        return NULL;
    }
    p->cli = cli;
    p->key = key;
    fl_sm_init(&p->sm, push_states, PUSH_STATES, PUSH_ASKING);
    p->code.keeps = cli->worker.keeps;
    p->code.units = malloc(n);
    if (p->code.units == NULL) {
        free(p);
        return NULL;
    }
    for (l = 0; l < n; l++) {
        p->code.units[l] = granted(units, n_units, l);
    }
    p->code.setup = fl_setup_ref(cli->setup);
    p->code.result = fl_result_ref(cli->result);
    return p;
}

void fl_push_begin(struct fl_clientd *cli, struct fl_round_key key, const uint8_t *units,
                   size_t n_units)
{
    struct fl_push *p;
    int rv;

    fl_push_cancel(cli);
    if (cli->setup == NULL || !fl_clientd_holds(cli, key)) {
        fl_clientd_step_failed(cli, FL_CEV_PUSH_FAILED, key, "the kept result is gone", true);
        return;
    }
    p = push_new(cli, key, units, n_units);
    rv = p != NULL ? ask_status(p) : FL_ENOMEM;
    if (rv == FL_OK) {
        cli->push = p;
        return;
    }
    if (p != NULL) {
        push_free(p);
    }
    fl_clientd_step_failed(cli, FL_CEV_PUSH_FAILED, key, fl_strerror(rv), false);
}

void fl_push_cancel(struct fl_clientd *cli)
{
    struct fl_push *p = cli->push;

    if (p == NULL) {
        return;
    }
    cli->push = NULL;
    fl_sm_move(&p->sm, PUSH_GIVEN_UP); /* on_closed or code_done() frees it. */
    if (p->call != NULL) {
        fl_call_cancel(p->call);
    }
}
