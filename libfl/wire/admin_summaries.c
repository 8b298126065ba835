/* fl.v1.Admin/ListSummaries and DropSummary. */
#include <stdlib.h>

#include "fl/v1/admin.pb-c.h"
#include "libfl/base/str.h"
#include "libfl/wire/wire_admin.h"
#include "libfl/wire/wire_impl.h"

#define MAX_BYTES 4096

int fl_wire_summary_encode(const struct fl_wire_summary *summary, struct fl_buf *out)
{
    Fl__V1__SummaryInfo msg;

    fl__v1__summary_info__init(&msg);
    msg.client = summary->client;
    msg.bytes = summary->bytes;
    msg.largest = summary->largest;
    msg.bound = summary->bound;
    msg.state = summary->state;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_summary_decode(const void *data, size_t len, struct fl_wire_summary *ret,
                           struct fl_err *err)
{
    struct fl_wire_summary summary = {0};
    const Fl__V1__SummaryInfo *msg;
    struct fl__unpacked u;
    int rv = fl__wire_unpack(&fl__v1__summary_info__descriptor, data, len, MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__SummaryInfo *)u.msg;
    summary.bytes = msg->bytes;
    summary.largest = msg->largest;
    summary.bound = msg->bound;
    rv = fl__wire_take_text("SummaryInfo.client", msg->client, &summary.client, err);
    if (rv == FL_OK) {
        rv = fl__wire_take_text("SummaryInfo.state", msg->state, &summary.state, err);
    }
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = summary;
    } else {
        fl_wire_summary_done(&summary);
    }
    return rv;
}

void fl_wire_summary_done(struct fl_wire_summary *summary)
{
    free(summary->client);
    free(summary->state);
    *summary = (struct fl_wire_summary){0};
}

int fl_wire_drop_summary_encode(const char *client, struct fl_buf *out)
{
    Fl__V1__DropSummaryRequest msg;

    fl__v1__drop_summary_request__init(&msg);
    msg.client = (char *)(uintptr_t)client; /* not written */
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_drop_summary_decode(const void *data, size_t len, char ret_client[FL_NAME_MAX],
                                struct fl_err *err)
{
    const Fl__V1__DropSummaryRequest *msg;
    struct fl__unpacked u;
    int rv =
        fl__wire_unpack(&fl__v1__drop_summary_request__descriptor, data, len, MAX_BYTES, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__DropSummaryRequest *)u.msg;
    if (!fl_name_valid(msg->client) || fl_str_copy(ret_client, FL_NAME_MAX, msg->client) != FL_OK) {
        rv = fl_err_set(err, FL_EPROTO, "DropSummaryRequest: expected the name of a client");
    }
    fl__wire_unpacked_done(&u);
    return rv;
}
