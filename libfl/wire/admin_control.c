/* fl.v1.Admin/Pause, Resume, Drain, AbortRound and ResetControls. */
#include <stdlib.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "libfl/wire/wire_admin.h"
#include "libfl/wire/wire_impl.h"

#define MAX_BYTES 4096

int fl_wire_control_encode(const struct fl_wire_control *control, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__ControlRequest msg;
    int rv = FL_ENOMEM;

    fl__v1__control_request__init(&msg);
    msg.reason = fl__wire_clean(&arena, control->reason);
    if (msg.reason != NULL) {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

int fl_wire_control_decode(const void *data, size_t len, struct fl_wire_control *ret,
                           struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_control control = {NULL};
    const Fl__V1__ControlRequest *msg;
    int rv = fl__wire_unpack(&fl__v1__control_request__descriptor, data, len, MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__ControlRequest *)u.msg;
    rv = strlen(msg->reason) <= FL_WIRE_MAX_REASON
             ? FL_OK
             : fl_err_set(err, FL_EPROTO, "ControlRequest.reason: more than %d bytes",
                          FL_WIRE_MAX_REASON);
    rv = rv != FL_OK
             ? rv
             : fl__wire_take_text("ControlRequest.reason", msg->reason, &control.reason, err);
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = control;
    }
    return rv;
}

void fl_wire_control_done(struct fl_wire_control *control)
{
    free(control->reason);
    *control = (struct fl_wire_control){NULL};
}

int fl_wire_controlled_encode(const struct fl_wire_controlled *reply, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__ControlReply msg;
    int rv = FL_ENOMEM;

    fl__v1__control_reply__init(&msg);
    msg.phase = fl__wire_clean(&arena, reply->phase);
    msg.text = fl__wire_clean(&arena, reply->text);
    msg.round = reply->round;
    if (msg.phase != NULL && msg.text != NULL) {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

int fl_wire_controlled_decode(const void *data, size_t len, struct fl_wire_controlled *ret,
                              struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_controlled reply = {NULL};
    const Fl__V1__ControlReply *msg;
    int rv = fl__wire_unpack(&fl__v1__control_reply__descriptor, data, len, MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__ControlReply *)u.msg;
    reply.round = msg->round;
    rv = fl__wire_take_text("ControlReply.phase", msg->phase, &reply.phase, err);
    if (rv == FL_OK) {
        rv = fl__wire_take_text("ControlReply.text", msg->text, &reply.text, err);
    }
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_controlled_done(&reply);
        return rv;
    }
    *ret = reply;
    return FL_OK;
}

void fl_wire_controlled_done(struct fl_wire_controlled *reply)
{
    free(reply->phase);
    free(reply->text);
    *reply = (struct fl_wire_controlled){NULL};
}
