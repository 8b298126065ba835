/* Messages of fl.v1.Admin about models: list, pin and export checkpoints, and roll back. */

#include <stdlib.h>

#include "fl/v1/admin.pb-c.h"
#include "libfl/wire/wire_admin.h"
#include "libfl/wire/wire_impl.h"

/* One or two numbers and a line of text. */
#define LINE_MAX_BYTES 65536

int fl_wire_checkpoint_encode(const struct fl_wire_checkpoint *checkpoint, struct fl_buf *out)
{
    Fl__V1__CheckpointInfo msg;

    fl__v1__checkpoint_info__init(&msg);
    msg.round = checkpoint->round;
    msg.made_ms = checkpoint->made_ms;
    msg.accuracy = checkpoint->accuracy;
    msg.why = checkpoint->why;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_checkpoint_decode(const void *data, size_t len, struct fl_wire_checkpoint *ret,
                              struct fl_err *err)
{
    struct fl_wire_checkpoint checkpoint = {0};
    const Fl__V1__CheckpointInfo *msg;
    struct fl__unpacked u;
    int rv =
        fl__wire_unpack(&fl__v1__checkpoint_info__descriptor, data, len, LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__CheckpointInfo *)u.msg;
    checkpoint.round = msg->round;
    checkpoint.made_ms = msg->made_ms;
    checkpoint.accuracy = msg->accuracy;
    rv = fl__wire_take_text("CheckpointInfo.why", msg->why, &checkpoint.why, err);
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = checkpoint;
    }
    return rv;
}

void fl_wire_checkpoint_done(struct fl_wire_checkpoint *checkpoint)
{
    free(checkpoint->why);
    *checkpoint = (struct fl_wire_checkpoint){0};
}

int fl_wire_hold_encode(const struct fl_wire_hold *hold, struct fl_buf *out)
{
    Fl__V1__HoldCheckpointRequest msg;

    fl__v1__hold_checkpoint_request__init(&msg);
    msg.round = hold->round;
    msg.release = hold->release;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_hold_decode(const void *data, size_t len, struct fl_wire_hold *ret, struct fl_err *err)
{
    const Fl__V1__HoldCheckpointRequest *msg;
    struct fl__unpacked u;
    int rv = fl__wire_unpack(&fl__v1__hold_checkpoint_request__descriptor, data, len,
                             LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__HoldCheckpointRequest *)u.msg;
    *ret = (struct fl_wire_hold){msg->round, msg->release != 0};
    fl__wire_unpacked_done(&u);
    return FL_OK;
}

int fl_wire_rollback_encode(const struct fl_wire_rollback *rollback, struct fl_buf *out)
{
    Fl__V1__RollbackRequest msg;

    fl__v1__rollback_request__init(&msg);
    msg.round = rollback->round;
    msg.force = rollback->force;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_rollback_decode(const void *data, size_t len, struct fl_wire_rollback *ret,
                            struct fl_err *err)
{
    const Fl__V1__RollbackRequest *msg;
    struct fl__unpacked u;
    int rv =
        fl__wire_unpack(&fl__v1__rollback_request__descriptor, data, len, LINE_MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__RollbackRequest *)u.msg;
    *ret = (struct fl_wire_rollback){msg->round, msg->force != 0};
    fl__wire_unpacked_done(&u);
    return FL_OK;
}

int fl_wire_export_request_encode(uint64_t round, struct fl_buf *out)
{
    Fl__V1__ExportModelRequest msg;

    fl__v1__export_model_request__init(&msg);
    msg.round = round;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_export_request_decode(const void *data, size_t len, uint64_t *ret_round,
                                  struct fl_err *err)
{
    struct fl__unpacked u;
    int rv = fl__wire_unpack(&fl__v1__export_model_request__descriptor, data, len, LINE_MAX_BYTES,
                             &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret_round = ((const Fl__V1__ExportModelRequest *)u.msg)->round;
    fl__wire_unpacked_done(&u);
    return FL_OK;
}
