/*
 * Data summaries, in pieces on the Attend stream (wants_offer). The pieces are assembled here,
 * within limits.offer, and posted to the coordinator as a whole.
 */

#include <stdio.h>

#include "server/network/frontend_impl.h"

static void summary_piece_refuse(struct fl_control_stream *attend, enum fl_grpc_status status,
                                 const char *text)
{
    fl_log_peer(attend->frontend->setup.log, FL_LOG_WARNING, "attend",
                fl_control_stream_who(attend), "data summary of client '%s' at %s rejected: %s",
                attend->name, fl_call_peer(attend->call), text);
    fl_buf_done(&attend->offer);
    attend->wants_offer = false;
    fl_call_finish(attend->call, status, text);
}

/* NULL, or why the piece does not continue the previous ones. */
static const char *summary_piece_error(const struct fl_control_stream *attend,
                                       const struct fl_wire_offer *piece)
{
    if (!attend->wants_offer) {
        return "no data summary, or no more of it, is expected in this session";
    }
    if (piece->offset != attend->offer.len) {
        return "the pieces of the data summary have gaps or overlap";
    }
    if (piece->offset > 0 && piece->total != attend->offer_total) {
        return "the pieces of the data summary have different totals";
    }
    return piece->len == 0 && piece->total > 0 ? "empty piece in a data summary that is not empty"
                                               : NULL;
}

static void summary_post(struct fl_control_stream *attend)
{
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_OFFER);

    if (up == NULL) {
        summary_piece_refuse(attend, FL_GRPC_UNAVAILABLE, "out of memory");
        return;
    }
    up->session = attend->id;
    up->client = attend->client;
    up->offer = attend->offer;
    fl_call_discharge(attend->call, attend->offer.len);
    fl_buf_init(&attend->offer, 0);
    attend->wants_offer = false;
    fl_frontend_up(attend->frontend, up);
}

void fl_control_stream_offer(struct fl_control_stream *attend, const struct fl_wire_offer *piece)
{
    const char *why = summary_piece_error(attend, piece);
    char text[160];
    int rv;

    if (why != NULL) {
        summary_piece_refuse(attend, FL_GRPC_INVALID_ARGUMENT, why);
        return;
    }
    if (piece->total > attend->offer.max) {
        (void)snprintf(text, sizeof(text),
                       "the data summary of %llu bytes is larger than limits.offer (%zu bytes)",
                       (unsigned long long)piece->total, attend->offer.max);
        summary_piece_refuse(attend, FL_GRPC_RESOURCE_EXHAUSTED, text);
        return;
    }
    attend->offer_total = piece->total;
    rv = fl_call_charge(attend->call, piece->len);
    if (rv == FL_OK) {
        rv = fl_buf_add(&attend->offer, piece->data, piece->len);
    }
    if (rv != FL_OK) {
        summary_piece_refuse(attend, fl_grpc_status_from_err(rv), fl_strerror(rv));
        return;
    }
    if (attend->offer.len == piece->total) {
        summary_post(attend);
    }
}
