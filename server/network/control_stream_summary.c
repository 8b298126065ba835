/*
 * Data summaries, in pieces on the Attend stream (wants_summary). The pieces are assembled here,
 * within limits.summary, and posted to the coordinator as a whole.
 */

#include <stdio.h>

#include "server/network/frontend_impl.h"

static void summary_piece_refuse(struct fl_control_stream *stream, enum fl_grpc_status status,
                                 const char *text)
{
    fl_log_peer(stream->frontend->setup.log, FL_LOG_WARNING, "session",
                fl_control_stream_who(stream), "data summary of client '%s' at %s rejected: %s",
                stream->name, fl_call_peer(stream->call), text);
    fl_buf_done(&stream->summary);
    stream->wants_summary = false;
    fl_call_finish(stream->call, status, text);
}

/* NULL, or why the piece does not continue the previous ones. */
static const char *summary_piece_error(const struct fl_control_stream *stream,
                                       const struct fl_wire_data_summary *piece)
{
    if (!stream->wants_summary) {
        return "no data summary, or no more of it, is expected in this session";
    }
    if (piece->offset != stream->summary.len) {
        return "the pieces of the data summary have gaps or overlap";
    }
    if (piece->offset > 0 && piece->total != stream->summary_total) {
        return "the pieces of the data summary have different totals";
    }
    return piece->len == 0 && piece->total > 0 ? "empty piece in a data summary that is not empty"
                                               : NULL;
}

static void summary_post(struct fl_control_stream *stream)
{
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_SUMMARY);

    if (up == NULL) {
        summary_piece_refuse(stream, FL_GRPC_UNAVAILABLE, "out of memory");
        return;
    }
    up->session = stream->id;
    up->client = stream->client;
    up->summary = stream->summary;
    fl_call_discharge(stream->call, stream->summary.len);
    fl_buf_init(&stream->summary, 0);
    stream->wants_summary = false;
    fl_frontend_up(stream->frontend, up);
}

void fl_control_stream_summary(struct fl_control_stream *stream,
                               const struct fl_wire_data_summary *piece)
{
    const char *why = summary_piece_error(stream, piece);
    char text[160];
    int rv;

    if (why != NULL) {
        summary_piece_refuse(stream, FL_GRPC_INVALID_ARGUMENT, why);
        return;
    }
    if (piece->total > stream->summary.max) {
        (void)snprintf(text, sizeof(text),
                       "the data summary of %llu bytes is larger than limits.summary (%zu bytes)",
                       (unsigned long long)piece->total, stream->summary.max);
        summary_piece_refuse(stream, FL_GRPC_RESOURCE_EXHAUSTED, text);
        return;
    }
    stream->summary_total = piece->total;
    rv = fl_call_charge(stream->call, piece->len);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_buf_add(&stream->summary, piece->data, piece->len);
    if (rv != FL_OK) {
        goto fail;
    }
    if (stream->summary.len == piece->total) {
        summary_post(stream);
    }
    return;
fail:
    summary_piece_refuse(stream, fl_grpc_status_from_err(rv), fl_strerror(rv));
}
