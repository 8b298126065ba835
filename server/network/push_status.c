/*
 * PushStatus calls: how many bytes of an update are on disk, so that a client resumes from there.
 * Without an open Push the file is read on the io thread; the rest runs on the network loop.
 */

#include <stdlib.h>
#include <string.h>

#include "server/network/frontend_impl.h"

struct question {
    struct fl_frontend *frontend;
    struct fl_call *call;
    bool asked;
    struct fl_wire_push_status status;
    struct peek *peek; /* NULL: no read of the file in progress */
};

struct peek {
    struct fl_disk_job job; /* first member: the callbacks of the job cast to struct peek */
    struct question *question;
    const char *dir;
    char client[FL_NAME_MAX];
    uint64_t round;
    uint32_t attempt;
    uint64_t received;
};

static void push_status_answer(struct question *q)
{
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, 256);
    rv = fl_wire_push_status_reply_encode(&q->status, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_frontend_send(q->call, &buf);
done:
    fl_buf_done(&buf);
    fl_call_finish(q->call, fl_grpc_status_from_err(rv), NULL);
}

static int peek_work(struct fl_disk_job *job)
{
    struct peek *p = (struct peek *)(void *)job;

    p->received = fl_spool_peek(p->dir, p->round, p->attempt, p->client);
    return FL_OK;
}

static void peek_done(struct fl_disk_job *job)
{
    struct peek *p = (struct peek *)(void *)job;
    struct question *q = p->question;

    q->peek = NULL;
    q->status.received = p->received;
    if (job->code == FL_OK) {
        push_status_answer(q);
    } else {
        fl_frontend_fail(q->call, job->code, NULL);
    }
}

static void push_status_ask_file(struct question *q, const char *client)
{
    struct peek *p = calloc(1, sizeof(*p));
    int rv = FL_ENOMEM;

    if (p != NULL) {
        *p = (struct peek){.job = {.work = peek_work, .done = peek_done},
                           .question = q,
                           .dir = q->frontend->setup.state_dir,
                           .round = q->status.round,
                           .attempt = q->status.attempt};
        (void)memcpy(p->client, client, sizeof(p->client));
        rv = fl_disk_ask(q->frontend, &p->job);
    }
    if (rv != FL_OK) {
        free(p);
        fl_frontend_fail(q->call, rv, NULL);
        return;
    }
    q->peek = p;
    fl_call_set_patient(q->call, true);
}

static bool push_status_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct question *q = ctx;
    struct fl_wire_push_status *s = &q->status;
    const struct fl_control_stream *stream;
    const struct fl_frontend_client *slot;
    struct fl_err err = {0};
    int rv;

    if (q->asked) {
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "a second request");
        return true;
    }
    q->asked = true;
    rv = fl_wire_push_status_request_decode(data, len, s, &err);
    if (rv != FL_OK) {
        fl_frontend_fail_request(call, rv, &err);
        return true;
    }
    stream = fl_frontend_session(q->frontend, call, &s->session);
    if (stream == NULL) {
        fl_call_finish(call, FL_GRPC_UNAUTHENTICATED, "unknown session: stream first");
        return true;
    }
    slot = &q->frontend->slots[stream->client];
    s->accepted = fl_session_is(&slot->accepted, s->round, s->attempt);
    if (s->accepted || fl_push_written(slot->push, s->round, s->attempt, &s->received)) {
        push_status_answer(q);
    } else {
        push_status_ask_file(q, stream->name);
    }
    return true;
}

static void push_status_on_end(struct fl_call *call, void *ctx)
{
    const struct question *q = ctx;

    if (!q->asked) {
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "the request is missing");
    }
}

static void push_status_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                                  const char *message)
{
    struct question *q = ctx;

    (void)call;
    (void)status;
    (void)message;
    fl_disk_forget(q->peek != NULL ? &q->peek->job : NULL);
    free(q);
}

static const struct fl_call_handler handler = {.on_message = push_status_on_message,
                                               .on_end = push_status_on_end,
                                               .on_closed = push_status_on_closed};

void fl_push_status_start(struct fl_call *call, void *ctx)
{
    struct question *q = calloc(1, sizeof(*q));

    if (q == NULL) {
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    q->frontend = ctx;
    q->call = call;
    fl_call_set_handler(call, &handler, q);
}
