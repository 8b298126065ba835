/*
 * Messages of fl.v1.Admin about the status, the rounds, the clients and the models. Pure functions,
 * any thread. The rows are in wire_admin.h; here are the figures, which have rows of their own
 * (libfl/figures), and the checks that are no range. Identities are in wire_identity.c.
 */
#include "libfl/wire/wire_admin.h"
#include "fl/v1/admin.pb-c.h"
#include "libfl/figures/share.h"
#include "libfl/wire/row_impl.h"

/* --- figures: the rows of libfl/figures by the names of their fields --- */

/* Copy between `msg` and the record `rec`. */
#define PUT(type, member, field, ...)  (msg)->field = rec->member;
#define TAKE(type, member, field, ...) rec->member = (msg)->field;
/* Of a StatusReply. */
#define PUT_TOTAL(type, member, field, sent, ...)  SENT_##sent(PUT(type, member, field, ))
#define TAKE_TOTAL(type, member, field, sent, ...) SENT_##sent(TAKE(type, member, field, ))
#define SENT_TOTALS(assignment)                    assignment
#define SENT_OWN(assignment)

/* The values for an absent message. */
static Fl__V1__LocalFigures unknown_figures(void)
{
    Fl__V1__LocalFigures none;

    fl__v1__local_figures__init(&none);
    none.accuracy = none.mean = -1.0;
    return none;
}

static Fl__V1__ClientAccuracy unknown_client_accuracy(void)
{
    Fl__V1__ClientAccuracy none;

    fl__v1__client_accuracy__init(&none);
    none.mean = none.std = none.worst_tenth = none.median = -1.0;
    return none;
}

/* Omitted from the message when no figure is known. */
static Fl__V1__LocalFigures *if_known(Fl__V1__LocalFigures *figures)
{
    return fl_share_measured(figures->accuracy) ? figures : NULL;
}

/* Where the rows of a round are in a message: two LocalFigures and a ClientAccuracy. */
struct figures_parts {
    Fl__V1__LocalFigures personal, received;
    Fl__V1__ClientAccuracy client_accuracy;
};

static struct figures_parts unknown_parts(void)
{
    return (struct figures_parts){unknown_figures(), unknown_figures(), unknown_client_accuracy()};
}

#define FIGURES(name, own_, member, Message, put, take)                                      \
    static int name##_put(struct fl_pb_arena *arena, const void *own, void *to)              \
    {                                                                                        \
        const struct fl_round_rec *rec = &((const struct fl_wire_##own_ *)own)->member;      \
        struct figures_parts *parts = fl_pb_arena_array(arena, 1, sizeof(*parts));           \
        Fl__V1__##Message *msg = to;                                                         \
                                                                                             \
        if (parts == NULL) {                                                                 \
            return FL_ENOMEM;                                                                \
        }                                                                                    \
        *parts = unknown_parts();                                                            \
        msg->personal = &parts->personal;                                                    \
        msg->received = &parts->received;                                                    \
        msg->client_accuracy = &parts->client_accuracy;                                      \
        FL_ROUND_FIGURES(put)                                                                \
        msg->personal = if_known(msg->personal);                                             \
        msg->received = if_known(msg->received);                                             \
        msg->client_accuracy =                                                               \
            fl_share_measured(parts->client_accuracy.mean) ? &parts->client_accuracy : NULL; \
        return FL_OK;                                                                        \
    }                                                                                        \
    static int name##_take(const struct fl_pb_at *at, const void *from, void *own,           \
                           struct fl_err *err)                                               \
    {                                                                                        \
        struct fl_round_rec *rec = &((struct fl_wire_##own_ *)own)->member;                  \
        struct figures_parts none = unknown_parts();                                         \
        Fl__V1__##Message copy = *(const Fl__V1__##Message *)from;                           \
        Fl__V1__##Message *msg = &copy;                                                      \
                                                                                             \
        (void)at;                                                                            \
        (void)err;                                                                           \
        msg->personal = msg->personal != NULL ? msg->personal : &none.personal;              \
        msg->received = msg->received != NULL ? msg->received : &none.received;              \
        msg->client_accuracy =                                                               \
            msg->client_accuracy != NULL ? msg->client_accuracy : &none.client_accuracy;     \
        FL_ROUND_FIGURES(take)                                                               \
        return FL_OK;                                                                        \
    }                                                                                        \
    static const struct fl_pb_code name##_code = {name##_put, name##_take, NULL};

FIGURES(totals, status, totals, StatusReply, PUT_TOTAL, TAKE_TOTAL)
FIGURES(round, round, figures, RoundInfo, PUT, TAKE)

/* --- messages --- */

static int rule_forget(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_forget *forget = own;

    return (forget->name[0] != '\0') != (forget->unseen_for_ms != 0)
               ? FL_OK
               : fl_pb_refuse(at, err, "expected the name of a client, or an age");
}

FL_WIRE_ADMIN(FL__WIRE_DEFINE)

#define FL_WIRE_ROWS_export_request(X) X(U64, value, round)
FL__WIRE_VALUE(export_request, uint64_t, uint64_t *, ExportModelRequest, export_model_request,
               FL_WIRE_MAX_LINE)
#define FL_WIRE_ROWS_drop_summary(X) X(NAME_BUF, value, client)
FL__WIRE_VALUE(drop_summary, const char *, char *, DropSummaryRequest, drop_summary_request,
               FL_WIRE_MAX_SMALL)

#define FL_WIRE_ROWS_export_chunk(X) X(U64, round, round) X(DATA, data, data)
FL__WIRE_TABLE(export_chunk, export_chunk, ExportChunk, export_chunk, .max = 0)

int fl_wire_export_encode(const struct fl_wire_export_chunk *chunk, struct fl_buf *out)
{
    return fl_pb_encode(export_chunk_type(), chunk, out);
}

int fl_wire_export_decode(const void *data, size_t len, struct fl_wire_export_chunk *ret,
                          struct fl_err *err)
{
    struct fl_wire_chunk chunk = {0};
    /* Has the same fields as a Chunk: a number and bytes. */
    int rv = fl_wire_chunk_decode(data, len, &chunk, err);

    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "ExportChunk");
    }
    *ret = (struct fl_wire_export_chunk){chunk.offset, chunk.data, chunk.len};
    return FL_OK;
}
