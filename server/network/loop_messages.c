#include "server/network/loop_messages.h"

#include <stdlib.h>

struct fl_coord_msg *fl_coord_msg_new(enum fl_coord_msg_type type)
{
    struct fl_coord_msg *up = calloc(1, sizeof(*up));

    if (up != NULL) {
        up->type = type;
    }
    return up;
}

void fl_coord_msg_free(struct fl_coord_msg *up)
{
    if (up == NULL) {
        return;
    }
    if (up->event.type != 0) {
        fl_wire_event_done(&up->event);
    }
    fl_buf_done(&up->summary);
    free(up->text);
    free(up->norms.unit);
    free(up);
}

void fl_net_msg_free(struct fl_net_msg *down)
{
    if (down == NULL) {
        return;
    }
    fl_bytes_done(&down->bytes);
    fl_differences_unref(down->differences);
    if (down->command.type == FL_WIRE_CENTRAL) {
        fl_wire_command_done(&down->command);
    }
    free(down->units);
    free(down->text);
    free(down);
}
