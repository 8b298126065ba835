/* PushStatus calls: how much of an update is here, so that a client goes on from there. */

#include "server/daemon/front_impl.h"

static bool on_status_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_front *front = ctx;
    struct fl_wire_push_status status = {0};
    const struct fl_attend *attend;
    const struct fl_slot_rec *slot;
    struct fl_err err = {0};
    struct fl_buf buf;
    int rv = fl_wire_push_status_request_decode(data, len, &status, &err);

    if (rv != FL_OK) {
        fl_front_fail_request(call, rv, &err);
        return true;
    }
    attend = fl_front_session(front, &status.session);
    if (attend == NULL) {
        fl_call_finish(call, FL_GRPC_UNAUTHENTICATED, "unknown session: attend first");
        return true;
    }
    slot = &front->slots[attend->client];
    status.accepted = fl_session_is(&slot->accepted, status.round, status.attempt);
    if (!fl_push_written(slot->push, status.round, status.attempt, &status.received) &&
        !status.accepted)
    {
        status.received =
            fl_spool_peek(front->srv->state_dir, status.round, status.attempt, attend->name);
    }
    fl_buf_init(&buf, 256);
    rv = fl_wire_push_status_reply_encode(&status, &buf);
    if (rv == FL_OK) {
        rv = fl_front_send(call, &buf);
    }
    fl_buf_done(&buf);
    fl_call_finish(call, fl_grpc_status_from_err(rv), NULL);
    return true;
}

static void on_status_end(struct fl_call *call, void *ctx)
{
    (void)ctx;
    fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "the request is missing"); /* or answered */
}

static void on_status_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                             const char *message)
{
    (void)call;
    (void)ctx;
    (void)status;
    (void)message;
}

static const struct fl_call_handler status_handler = {
    .on_message = on_status_message, .on_end = on_status_end, .on_closed = on_status_closed};

void fl_push_status_start(struct fl_call *call, void *ctx)
{
    fl_call_set_handler(call, &status_handler, ctx);
}
