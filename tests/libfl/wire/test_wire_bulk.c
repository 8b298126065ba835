/* Bulk messages: the hand-made encoding and decoding against protobuf-c's own. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/messages.h"
#include "tests/lib/suites.h"

static const uint64_t offsets[] = {0,
                                   1,
                                   127,
                                   128,
                                   16383,
                                   16384,
                                   1u << 20,
                                   1u << 28,
                                   UINT32_MAX,
                                   UINT64_C(1) << 35,
                                   UINT64_MAX - (1u << 20)};
static const size_t lengths[] = {0, 1, 127, 128, 16383, 16384, 16385, FL_WIRE_CHUNK};
#define N_OFFSETS 11
#define N_LENGTHS 8

static uint8_t *payload; /* FL_WIRE_CHUNK + 1 bytes */

static void setup(void)
{
    size_t i;

    payload = malloc(FL_WIRE_CHUNK + 1);
    ck_assert_ptr_nonnull(payload);
    for (i = 0; i <= FL_WIRE_CHUNK; i++) {
        payload[i] = (uint8_t)(i * 31 + 7);
    }
}

static void teardown(void)
{
    free(payload);
}

static uint8_t *packed(const ProtobufCMessage *msg, size_t *ret_len)
{
    uint8_t *data = malloc(protobuf_c_message_get_packed_size(msg) + 1);

    ck_assert_ptr_nonnull(data);
    *ret_len = protobuf_c_message_pack(msg, data);
    return data;
}

static void fill_chunk(Fl__V1__Chunk *chunk, uint64_t offset, size_t len)
{
    fl__v1__chunk__init(chunk);
    chunk->offset = offset;
    chunk->data = (ProtobufCBinaryData){len, payload};
}

TEST_CASE("bulk", setup, teardown);

TEST_EACH(head_and_data_are_what_protobuf_writes, (N_OFFSETS * N_LENGTHS))
{
    uint64_t offset = offsets[_i % N_OFFSETS];
    size_t len = lengths[_i / N_OFFSETS];
    Fl__V1__Chunk chunk;
    Fl__V1__PushMessage push;
    uint8_t head[FL_WIRE_CHUNK_HEAD];
    size_t n;
    size_t want = 0;
    uint8_t *data;

    fill_chunk(&chunk, offset, len);
    data = packed(&chunk.base, &want);
    n = fl_wire_chunk_head(offset, len, head);
    ck_assert_uint_le(n, FL_WIRE_CHUNK_HEAD);
    ck_assert_uint_eq(n + len, want);
    ck_assert_int_eq(memcmp(data, head, n), 0);
    ck_assert_int_eq(memcmp(data + n, payload, len), 0);
    free(data);

    fl__v1__push_message__init(&push);
    push.message_case = FL__V1__PUSH_MESSAGE__MESSAGE_CHUNK;
    push.chunk = &chunk;
    data = packed(&push.base, &want);
    n = fl_wire_push_chunk_head(offset, len, head);
    ck_assert_uint_le(n, FL_WIRE_CHUNK_HEAD);
    ck_assert_uint_eq(n + len, want);
    ck_assert_int_eq(memcmp(data, head, n), 0);
    ck_assert_int_eq(memcmp(data + n, payload, len), 0);
    free(data);
}

TEST_EACH(a_chunk_is_decoded_without_a_copy, (N_OFFSETS * N_LENGTHS))
{
    uint64_t offset = offsets[_i % N_OFFSETS];
    size_t len = lengths[_i / N_OFFSETS];
    struct fl_wire_push_header header;
    struct fl_wire_chunk got = {0};
    Fl__V1__Chunk chunk;
    Fl__V1__PushMessage push;
    bool is_header = true;
    size_t n = 0;
    uint8_t *data;

    fill_chunk(&chunk, offset, len);
    data = packed(&chunk.base, &n);
    ck_assert_int_eq(fl_wire_chunk_decode(data, n, &got, NULL), FL_OK);
    ck_assert_uint_eq(got.offset, offset);
    ck_assert_uint_eq(got.len, len);
    ck_assert(len == 0 || got.data == data + n - len);
    free(data);

    fl__v1__push_message__init(&push);
    push.message_case = FL__V1__PUSH_MESSAGE__MESSAGE_CHUNK;
    push.chunk = &chunk;
    data = packed(&push.base, &n);
    ck_assert_int_eq(fl_wire_push_decode(data, n, &is_header, &header, &got, NULL), FL_OK);
    ck_assert(!is_header);
    ck_assert_uint_eq(got.offset, offset);
    ck_assert_uint_eq(got.len, len);
    ck_assert(len == 0 || got.data == data + n - len);
    free(data);
}

TEST(fields_in_any_order_and_twice_are_read_as_protobuf_reads_them)
{
    /* Data before offset; offset twice, the last counts; an unknown field between. */
    static const uint8_t chunk[] = {0x12, 2, 'a', 'b', 0x08, 5, 0x50, 1, 0x08, 9};
    struct fl_wire_chunk got = {0};

    ck_assert_int_eq(fl_wire_chunk_decode(chunk, sizeof(chunk), &got, NULL), FL_OK);
    ck_assert_uint_eq(got.offset, 9);
    ck_assert_uint_eq(got.len, 2);
    ck_assert_ptr_eq(got.data, chunk + 2);
}

struct bad_bytes {
    const char *bytes;
    size_t len;
    const char *text;
};

static const struct bad_bytes bad_chunks[] = {
    {"\x0a\x01x", 3, "Chunk: 3 bytes are no protobuf message of this type"},
    {"\x10\x05", 2, "Chunk: 2 bytes are no protobuf message of this type"},
    {"\x12\x05"
     "abc",
     5, "Chunk: 5 bytes are no protobuf message of this type"},
    {"\x08", 1, "Chunk: 1 bytes are no protobuf message of this type"},
    {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12,
     "Chunk: 12 bytes are no protobuf message of this type"},
    {"\x00\x01", 2, "Chunk: 2 bytes are no protobuf message of this type"},
    {"\x1b\x1c", 2, "Chunk: 2 bytes are no protobuf message of this type"},
    {"\x12\xff\xff\xff\xff\xff\x01", 7, "Chunk: 7 bytes are no protobuf message of this type"},
    {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x01x", 14,
     "Chunk.offset: the chunk ends past 2^64"},
};
#define N_BAD_CHUNKS 9

TEST_EACH(a_bad_chunk_is_refused, N_BAD_CHUNKS)
{
    const struct bad_bytes *bad = &bad_chunks[_i];
    struct fl_wire_chunk got = {42, NULL, 0};
    struct fl_err err = {0};

    ck_assert_int_eq(fl_wire_chunk_decode(bad->bytes, bad->len, &got, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, bad->text);
    ck_assert_uint_eq(got.offset, 42);
}

TEST(a_chunk_of_more_than_a_mebibyte_is_refused)
{
    struct fl_wire_push_header header;
    struct fl_wire_chunk got;
    Fl__V1__Chunk chunk;
    Fl__V1__PushMessage push;
    struct fl_err err = {0};
    bool is_header;
    size_t n = 0;
    uint8_t *data;

    fill_chunk(&chunk, 0, FL_WIRE_CHUNK + 1);
    data = packed(&chunk.base, &n);
    ck_assert_int_eq(fl_wire_chunk_decode(data, n, &got, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "Chunk.data: 1048577 bytes, at most 1048576 are taken");
    free(data);
    fl__v1__push_message__init(&push);
    push.message_case = FL__V1__PUSH_MESSAGE__MESSAGE_CHUNK;
    push.chunk = &chunk;
    data = packed(&push.base, &n);
    ck_assert_int_eq(fl_wire_push_decode(data, n, &is_header, &header, &got, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "PushMessage.chunk.data: 1048577 bytes, at most 1048576 are taken");
    free(data);
}

/* --- PushHeader --- */

static char text_update[] = "update";
static char text_control[] = "control";
static char text_bad[] = "../x";

static const char *spoil_header(int row, Fl__V1__PushHeader *m)
{
    switch (row) {
    case 0:
        m->session.len = 4;
        return "PushMessage.header.session: unknown session, it has 4 bytes and not 16";
    case 1:
        m->round = 0;
        return "PushMessage.header.round: 0 is out of range, expected 1 to 18446744073709551615";
    case 2:
        m->bytes = 31;
        return "PushMessage.header.bytes: 31, but the parts sum to 30";
    case 3:
        m->parts[0]->bytes = UINT64_MAX;
        return "PushMessage.header.parts: their sum is past 2^64";
    case 4:
        m->parts[1]->payload = text_bad;
        return "PushMessage.header.parts.payload: '../x' is not a name (1 to 127 of "
               "[A-Za-z0-9._-], not starting with a dot)";
    case 5:
        m->parts[1]->unit = FL_LAYOUT_MAX_UNITS;
        return "PushMessage.header.parts.unit: 4096 is out of range, expected 0 to 4095";
    case 6:
        m->parts[2]->payload = text_update;
        return "PushMessage.header.parts: unit 1 of 'update' is there twice";
    default:
        return NULL;
    }
}
#define N_HEADER 7

static void fill_header(Fl__V1__PushHeader *head, Fl__V1__Part part[3], Fl__V1__Part *parts[3])
{
    size_t i;

    fl__v1__push_header__init(head);
    for (i = 0; i < 3; i++) {
        fl__v1__part__init(&part[i]);
        part[i].payload = i == 2 ? text_control : text_update;
        part[i].unit = i == 0 ? 0 : 1;
        part[i].codec = (Fl__V1__Codec)77; /* any number: the strategies know theirs */
        part[i].bytes = 10;
        parts[i] = &part[i];
    }
    head->session = (ProtobufCBinaryData){FL_WIRE_SESSION, payload};
    head->round = 1;
    head->parts = parts;
    head->n_parts = 3;
    head->bytes = 30;
}

TEST_EACH(a_bad_header_is_refused, N_HEADER)
{
    Fl__V1__PushMessage push;
    Fl__V1__PushHeader head;
    Fl__V1__Part part[3];
    Fl__V1__Part *parts[3];
    struct fl_wire_push_header header;
    struct fl_wire_chunk chunk;
    struct fl_err err = {0};
    const char *expected;
    bool is_header;
    size_t n = 0;
    uint8_t *data;

    fill_header(&head, part, parts);
    expected = spoil_header(_i, &head);
    fl__v1__push_message__init(&push);
    push.message_case = FL__V1__PUSH_MESSAGE__MESSAGE_HEADER;
    push.header = &head;
    data = packed(&push.base, &n);
    ck_assert_int_eq(fl_wire_push_decode(data, n, &is_header, &header, &chunk, &err),
                     head.session.len != FL_WIRE_SESSION ? FL_EPERM : FL_EPROTO);
    ck_assert_str_eq(err.msg, expected);
    free(data);
}

TEST(a_header_is_read_whole)
{
    Fl__V1__PushMessage push;
    Fl__V1__PushHeader head;
    Fl__V1__Part part[3];
    Fl__V1__Part *parts[3];
    struct fl_wire_push_header header;
    struct fl_wire_chunk chunk;
    bool is_header = false;
    size_t n = 0;
    uint8_t *data;

    fill_header(&head, part, parts);
    fl__v1__push_message__init(&push);
    push.message_case = FL__V1__PUSH_MESSAGE__MESSAGE_HEADER;
    push.header = &head;
    data = packed(&push.base, &n);
    ck_assert_int_eq(fl_wire_push_decode(data, n, &is_header, &header, &chunk, NULL), FL_OK);
    ck_assert(is_header);
    ck_assert_uint_eq(header.n_parts, 3);
    ck_assert_uint_eq(header.parts[2].unit, 1);
    ck_assert_uint_eq(header.parts[2].codec, 77);
    ck_assert_str_eq(header.parts[2].payload, "control");
    ck_assert_uint_eq(header.bytes, 30);
    fl_wire_push_header_done(&header);
    free(data);
}

TEST(a_push_message_with_two_members_is_refused)
{
    static const struct {
        uint8_t bytes[16];
        size_t len;
    } rows[] = {{{0x12, 2, 0x08, 7, 0x12, 3, 0x12, 1, 'x'}, 9},
                {{0x0a, 0, 0x12, 2, 0x08, 7}, 6},
                {{0x12, 2, 0x08, 7, 0x0a, 0}, 6}};
    struct fl_wire_push_header header;
    struct fl_wire_chunk chunk;
    struct fl_err err = {0};
    bool is_header;
    size_t i;

    for (i = 0; i < 3; i++) {
        ck_assert_int_eq(
            fl_wire_push_decode(rows[i].bytes, rows[i].len, &is_header, &header, &chunk, &err),
            FL_EPROTO);
        ck_assert_str_eq(err.msg, "PushMessage.message: is set more than once");
    }
}

TEST(a_push_message_with_nothing_in_it_is_refused)
{
    struct fl_wire_push_header header;
    struct fl_wire_chunk chunk;
    struct fl_err err = {0};
    bool is_header;

    ck_assert_int_eq(fl_wire_push_decode(NULL, 0, &is_header, &header, &chunk, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "PushMessage.message: neither header nor chunk is set");
    ck_assert_int_eq(fl_wire_push_decode("\x08\x01", 2, &is_header, &header, &chunk, &err),
                     FL_EPROTO);
    ck_assert_str_eq(err.msg, "PushMessage: 2 bytes are no protobuf message of this type");
}

/* --- the small messages --- */

TEST(bad_requests_and_replies_are_refused)
{
    struct fl_wire_fetch fetch;
    struct fl_wire_push_status status;
    struct fl_wire_push_reply reply;
    Fl__V1__FetchRequest request;
    struct fl_err err = {0};
    size_t n = 0;
    uint8_t *data;

    ck_assert_int_eq(fl_wire_fetch_decode(NULL, 0, &fetch, &err), FL_EPERM);
    ck_assert_str_eq(err.msg, "FetchRequest.session: unknown session, it has 0 bytes and not 16");
    fl__v1__fetch_request__init(&request);
    request.session = (ProtobufCBinaryData){FL_WIRE_SESSION, payload};
    request.payload = text_bad;
    data = packed(&request.base, &n);
    ck_assert_int_eq(fl_wire_fetch_decode(data, n, &fetch, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "FetchRequest.payload: '../x' is not a name (1 to 127 of "
                              "[A-Za-z0-9._-], not starting with a dot)");
    free(data);
    ck_assert_int_eq(fl_wire_push_status_request_decode(NULL, 0, &status, &err), FL_EPERM);
    ck_assert_str_eq(err.msg,
                     "PushStatusRequest.session: unknown session, it has 0 bytes and not 16");
    ck_assert_int_eq(fl_wire_push_reply_decode(NULL, 0, &reply, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "PushReply.result: 0 is out of range, expected 1 to 2");
    ck_assert_int_eq(fl_wire_push_reply_decode("\x08\x03", 2, &reply, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "PushReply.result: 3 is out of range, expected 1 to 2");
    ck_assert_int_eq(fl_wire_push_reply_decode(payload, 5000, &reply, &err), FL_ELIMIT);
}
