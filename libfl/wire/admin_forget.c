/* fl.v1.Admin/ForgetClients. */
#include <stdlib.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "libfl/base/str.h"
#include "libfl/wire/wire_admin.h"
#include "libfl/wire/wire_impl.h"

#define MAX_BYTES 4096

int fl_wire_forget_encode(const struct fl_wire_forget *forget, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__ForgetClientsRequest msg;
    int rv = FL_ENOMEM;

    fl__v1__forget_clients_request__init(&msg);
    msg.name = fl__wire_clean(&arena, forget->name);
    msg.unseen_for_ms = forget->unseen_for_ms;
    if (msg.name != NULL) {
        rv = fl__wire_pack(&msg.base, out);
    }
    fl__arena_done(&arena);
    return rv;
}

int fl_wire_forget_decode(const void *data, size_t len, struct fl_wire_forget *ret,
                          struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_forget forget = {.name = ""};
    const Fl__V1__ForgetClientsRequest *msg;
    int rv =
        fl__wire_unpack(&fl__v1__forget_clients_request__descriptor, data, len, MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__ForgetClientsRequest *)u.msg;
    forget.unseen_for_ms = msg->unseen_for_ms;
    if (msg->name[0] == '\0'
            ? forget.unseen_for_ms == 0
            : !fl_name_valid(msg->name) || forget.unseen_for_ms != 0 ||
                  fl_str_copy(forget.name, sizeof(forget.name), msg->name) != FL_OK)
    {
        rv = fl_err_set(err, FL_EPROTO,
                        "ForgetClientsRequest: expected the name of a client, or an age");
    }
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = forget;
    }
    return rv;
}

int fl_wire_forgotten_encode(const struct fl_wire_forgotten *reply, struct fl_buf *out)
{
    Fl__V1__ForgetClientsReply msg;

    fl__v1__forget_clients_reply__init(&msg);
    msg.forgotten = reply->forgotten;
    msg.in_round = reply->in_round;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_forgotten_decode(const void *data, size_t len, struct fl_wire_forgotten *ret,
                             struct fl_err *err)
{
    struct fl__unpacked u;
    const Fl__V1__ForgetClientsReply *msg;
    int rv =
        fl__wire_unpack(&fl__v1__forget_clients_reply__descriptor, data, len, MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__ForgetClientsReply *)u.msg;
    *ret = (struct fl_wire_forgotten){.forgotten = msg->forgotten, .in_round = msg->in_round};
    fl__wire_unpacked_done(&u);
    return FL_OK;
}
