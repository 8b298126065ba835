/*
 * Requests and replies around the transfer of payloads: Fetch, Push and PushStatus. Pure functions,
 * any thread. The chunks are in chunk.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/wire_impl.h"

/* Maximum size of these requests and replies: a few numbers and a name. */
#define SMALL_MAX 4096

/*
 * A token of wrong length belongs to no session, so it is unknown like one that was never issued.
 */
static int take_session(const char *field, const ProtobufCBinaryData *value,
                        struct fl_wire_session *ret, struct fl_err *err)
{
    if (value->len != FL_WIRE_SESSION) {
        return fl_err_set(err, FL_EPERM, "%s: unknown session, it has %zu bytes and not %d", field,
                          value->len, FL_WIRE_SESSION);
    }
    return fl__wire_copy_session(field, value, ret, err);
}

int fl_wire_fetch_encode(const struct fl_wire_fetch *fetch, struct fl_buf *out)
{
    Fl__V1__FetchRequest msg;

    fl__v1__fetch_request__init(&msg);
    msg.session = fl__wire_bytes(fetch->session.id, FL_WIRE_SESSION);
    msg.round = fetch->round;
    msg.payload = (char *)(uintptr_t)fetch->payload;
    msg.offset = fetch->offset;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_fetch_decode(const void *data, size_t len, struct fl_wire_fetch *ret,
                         struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_fetch fetch = {0};
    const Fl__V1__FetchRequest *msg;
    int rv = fl__wire_unpack(&fl__v1__fetch_request__descriptor, data, len, SMALL_MAX, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__FetchRequest *)u.msg;
    fetch.round = msg->round;
    fetch.offset = msg->offset;
    rv = take_session("FetchRequest.session", &msg->session, &fetch.session, err);
    if (rv == FL_OK) {
        rv = fl__wire_copy_name("FetchRequest.payload", msg->payload, fetch.payload, err);
    }
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = fetch;
    }
    return rv;
}

/* --- PushHeader --- */

int fl_wire_push_header_encode(const struct fl_wire_push_header *header, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    Fl__V1__PushMessage msg;
    Fl__V1__PushHeader head;
    Fl__V1__Part *parts = fl__arena_array(&arena, header->n_parts, sizeof(*parts));
    size_t i;
    int rv = FL_ENOMEM;

    fl__v1__push_message__init(&msg);
    fl__v1__push_header__init(&head);
    head.parts = fl__arena_array(&arena, header->n_parts, sizeof(*head.parts));
    if (parts == NULL || head.parts == NULL) {
        goto out;
    }
    for (i = 0; i < header->n_parts; i++) {
        fl__v1__part__init(&parts[i]);
        parts[i].payload = (char *)(uintptr_t)header->parts[i].payload;
        parts[i].unit = header->parts[i].unit;
        parts[i].codec = (Fl__V1__Codec)header->parts[i].codec;
        parts[i].masked = header->parts[i].masked;
        parts[i].bytes = header->parts[i].bytes;
        head.parts[i] = &parts[i];
    }
    head.session = fl__wire_bytes(header->session.id, FL_WIRE_SESSION);
    head.round = header->round;
    head.attempt = header->attempt;
    head.n_parts = header->n_parts;
    head.bytes = header->bytes;
    msg.message_case = FL__V1__PUSH_MESSAGE__MESSAGE_HEADER;
    msg.header = &head;
    rv = fl__wire_pack(&msg.base, out);
out:
    fl__arena_done(&arena);
    return rv;
}

static int push_take_section(const Fl__V1__Part *msg, struct fl_wire_part *ret, struct fl_err *err)
{
    int rv;

    if ((rv = fl__wire_copy_name("PushMessage.header.parts.payload", msg->payload, ret->payload,
                                 err)) != FL_OK ||
        (rv = fl__wire_check_range("PushMessage.header.parts.unit", msg->unit, 0,
                                   FL_LAYOUT_MAX_UNITS - 1, err)) != FL_OK)
    {
        return rv;
    }
    ret->unit = msg->unit;
    ret->codec = (uint32_t)msg->codec;
    ret->masked = msg->masked;
    ret->bytes = msg->bytes;
    return FL_OK;
}

static int compare_parts(const void *a, const void *b)
{
    const struct fl_wire_part *x = *(const struct fl_wire_part *const *)a;
    const struct fl_wire_part *y = *(const struct fl_wire_part *const *)b;

    return x->unit != y->unit ? (x->unit < y->unit ? -1 : 1) : strcmp(x->payload, y->payload);
}

/* A layer that occurs twice would be aggregated twice. */
static int check_no_part_twice(const struct fl_wire_push_header *header, struct fl_err *err)
{
    const struct fl_wire_part **order;
    size_t i;
    int rv = FL_OK;

    if (header->n_parts < 2) {
        return FL_OK;
    }
    order = malloc(header->n_parts * sizeof(*order));
    if (order == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < header->n_parts; i++) {
        order[i] = &header->parts[i];
    }
    qsort(order, header->n_parts, sizeof(*order), compare_parts);
    for (i = 1; i < header->n_parts && rv == FL_OK; i++) {
        if (compare_parts(&order[i - 1], &order[i]) == 0) {
            rv = fl_err_set(err, FL_EPROTO,
                            "PushMessage.header.parts: unit %" PRIu32 " of '%s' is there twice",
                            order[i]->unit, order[i]->payload);
        }
    }
    free(order);
    return rv;
}

static int take_parts(const Fl__V1__PushHeader *msg, struct fl_wire_push_header *ret,
                      struct fl_err *err)
{
    uint64_t sum = 0;
    size_t i;
    int rv = fl__wire_check_count("PushMessage.header.parts", msg->n_parts, FL_WIRE_MAX_PARTS, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (msg->n_parts > 0) {
        ret->parts = calloc(msg->n_parts, sizeof(*ret->parts));
        if (ret->parts == NULL) {
            return FL_ENOMEM;
        }
    }
    ret->n_parts = msg->n_parts;
    for (i = 0; i < msg->n_parts; i++) {
        rv = push_take_section(msg->parts[i], &ret->parts[i], err);
        if (rv != FL_OK) {
            return rv;
        }
        if (ret->parts[i].bytes > UINT64_MAX - sum) {
            return fl_err_set(err, FL_EPROTO, "PushMessage.header.parts: their sum is past 2^64");
        }
        sum += ret->parts[i].bytes;
    }
    if (sum != msg->bytes) {
        return fl_err_set(err, FL_EPROTO,
                          "PushMessage.header.bytes: %" PRIu64 ", but the parts sum to %" PRIu64,
                          msg->bytes, sum);
    }
    ret->bytes = sum;
    return check_no_part_twice(ret, err);
}

static int take_header(const Fl__V1__PushHeader *msg, struct fl_wire_push_header *ret,
                       struct fl_err *err)
{
    int rv;

    ret->round = msg->round;
    ret->attempt = msg->attempt;
    if ((rv = take_session("PushMessage.header.session", &msg->session, &ret->session, err)) !=
            FL_OK ||
        (rv = fl__wire_check_range("PushMessage.header.round", msg->round, 1, UINT64_MAX, err)) !=
            FL_OK)
    {
        return rv;
    }
    return take_parts(msg, ret, err);
}

int fl__wire_push_header_decode(const void *data, size_t len, struct fl_wire_push_header *ret,
                                struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_push_header header = {0};
    const Fl__V1__PushMessage *msg;
    int rv = fl__wire_unpack(&fl__v1__push_message__descriptor, data, len,
                             FL_WIRE_CHUNK + FL_WIRE_CHUNK_HEAD, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__PushMessage *)u.msg;
    rv = msg->message_case == FL__V1__PUSH_MESSAGE__MESSAGE_HEADER
             ? take_header(msg->header, &header, err)
             : fl_err_set(err, FL_EPROTO, "PushMessage.message: the header is not set");
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_push_header_done(&header);
        return rv;
    }
    *ret = header;
    return FL_OK;
}

void fl_wire_push_header_done(struct fl_wire_push_header *header)
{
    free(header->parts);
    *header = (struct fl_wire_push_header){0};
}

/* --- PushReply, PushStatus --- */

int fl_wire_push_reply_encode(const struct fl_wire_push_reply *reply, struct fl_buf *out)
{
    Fl__V1__PushReply msg;

    fl__v1__push_reply__init(&msg);
    msg.result = reply->accepted ? FL__V1__PUSH_REPLY__RESULT__RESULT_ACCEPTED
                                 : FL__V1__PUSH_REPLY__RESULT__RESULT_INCOMPLETE;
    msg.received = reply->received;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_push_reply_decode(const void *data, size_t len, struct fl_wire_push_reply *ret,
                              struct fl_err *err)
{
    struct fl__unpacked u;
    const Fl__V1__PushReply *msg;
    int rv = fl__wire_unpack(&fl__v1__push_reply__descriptor, data, len, SMALL_MAX, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__PushReply *)u.msg;
    rv = fl__wire_check_range("PushReply.result", (uint32_t)msg->result,
                              FL__V1__PUSH_REPLY__RESULT__RESULT_ACCEPTED,
                              FL__V1__PUSH_REPLY__RESULT__RESULT_INCOMPLETE, err);
    if (rv == FL_OK) {
        ret->accepted = msg->result == FL__V1__PUSH_REPLY__RESULT__RESULT_ACCEPTED;
        ret->received = msg->received;
    }
    fl__wire_unpacked_done(&u);
    return rv;
}

int fl_wire_push_status_request_encode(const struct fl_wire_push_status *status, struct fl_buf *out)
{
    Fl__V1__PushStatusRequest msg;

    fl__v1__push_status_request__init(&msg);
    msg.session = fl__wire_bytes(status->session.id, FL_WIRE_SESSION);
    msg.round = status->round;
    msg.attempt = status->attempt;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_push_status_request_decode(const void *data, size_t len,
                                       struct fl_wire_push_status *ret, struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_push_status status = {0};
    const Fl__V1__PushStatusRequest *msg;
    int rv =
        fl__wire_unpack(&fl__v1__push_status_request__descriptor, data, len, SMALL_MAX, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__PushStatusRequest *)u.msg;
    status.round = msg->round;
    status.attempt = msg->attempt;
    rv = take_session("PushStatusRequest.session", &msg->session, &status.session, err);
    if (rv == FL_OK) {
        rv = fl__wire_check_range("PushStatusRequest.round", msg->round, 1, UINT64_MAX, err);
    }
    fl__wire_unpacked_done(&u);
    if (rv == FL_OK) {
        *ret = status;
    }
    return rv;
}

int fl_wire_push_status_reply_encode(const struct fl_wire_push_status *status, struct fl_buf *out)
{
    Fl__V1__PushStatusReply msg;

    fl__v1__push_status_reply__init(&msg);
    msg.received = status->received;
    msg.accepted = status->accepted;
    return fl__wire_pack(&msg.base, out);
}

int fl_wire_push_status_reply_decode(const void *data, size_t len, struct fl_wire_push_status *ret,
                                     struct fl_err *err)
{
    struct fl__unpacked u;
    const Fl__V1__PushStatusReply *msg;
    int rv = fl__wire_unpack(&fl__v1__push_status_reply__descriptor, data, len, SMALL_MAX, &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    msg = (const Fl__V1__PushStatusReply *)u.msg;
    ret->received = msg->received;
    ret->accepted = msg->accepted != 0;
    fl__wire_unpacked_done(&u);
    return FL_OK;
}
