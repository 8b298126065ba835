/* What a message may cost: memory is bounded, and all that is legal fits the bound. */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/protobuf/protobuf.h"
#include "tests/lib/suites.h"
#include "tests/lib/wire_samples.h"

static void encode_sample(const char *name, struct fl_buf *out)
{
    size_t i = 0;

    while (wire_samples[i].name != NULL && strcmp(wire_samples[i].name, name) != 0) {
        i++;
    }
    ck_assert_ptr_nonnull(wire_samples[i].name);
    fl_buf_init(out, 1u << 20);
    ck_assert_int_eq(wire_samples[i].encode(out), FL_OK);
}

/* As many scalars as a layout takes, with names as short as can be: the densest legal message. */
TEST(the_densest_model_is_taken)
{
    static char name[] = "ok";
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};
    struct fl_wire_welcome *w = &command.u.welcome;
    struct fl_layout *layout = NULL;
    struct fl_err err = {0};
    struct fl_buf out;
    unsigned i;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    for (i = 0; i < FL_LAYOUT_MAX_TENSORS; i++) {
        char unit[16];
        char tensor[16];

        (void)snprintf(unit, sizeof(unit), "%x", i / (FL_LAYOUT_MAX_TENSORS / FL_LAYOUT_MAX_UNITS));
        (void)snprintf(tensor, sizeof(tensor), "%x", i);
        ck_assert_int_eq(fl_layout_add(layout, unit, tensor, NULL, 0, false, &err), FL_OK);
    }
    ck_assert_int_eq(fl_layout_finish(layout, &err), FL_OK);
    *w = (struct fl_wire_welcome){.version = 1,
                                  .federation = name,
                                  .layout = layout,
                                  .solver = {name, NULL, 0},
                                  .codec = {name, NULL, 0},
                                  .heartbeat_ms = 1,
                                  .limits = {1, 1, 1, 1},
                                  .training = {1, 0, 1, 0.0, 0.0, 0.0}};
    fl_buf_init(&out, FL_WIRE_MAX_CONTROL);
    ck_assert_int_eq(fl_wire_command_encode(&command, &out), FL_OK);
    ck_assert_msg(fl_wire_command_decode(out.data, out.len, &command, &err) == FL_OK, "%s",
                  err.msg);
    ck_assert(fl_layout_equal(layout, command.u.welcome.layout));
    fl_wire_command_done(&command);
    fl_layout_free(layout);
    fl_buf_done(&out);
}

TEST(the_densest_lists_of_texts_are_taken)
{
    static char name[] = "a";
    static char *names[FL_WIRE_MAX_LAYERS];
    struct fl_wire_why why = {name, names, FL_WIRE_MAX_LAYERS};
    struct fl_wire_why got = {0};
    struct fl_err err = {0};
    struct fl_buf out;
    size_t i;

    for (i = 0; i < FL_WIRE_MAX_LAYERS; i++) {
        names[i] = name;
    }
    fl_buf_init(&out, FL_WIRE_MAX_CONTROL);
    ck_assert_int_eq(fl_wire_why_encode(&why, &out), FL_OK);
    ck_assert_msg(fl_wire_why_decode(out.data, out.len, &got, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(got.n_missing, FL_WIRE_MAX_LAYERS);
    fl_wire_why_done(&got);
    fl_buf_done(&out);
}

/* Two bytes each that would become some seventy in memory. */
static void hostile(struct fl_buf *out, const uint8_t *head, size_t n_head, size_t n)
{
    size_t i;
    uint8_t len[10];
    size_t n_len = fl_pb_varint_put(n * 2, len);

    fl_buf_init(out, FL_WIRE_MAX_CONTROL);
    ck_assert_int_eq(fl_buf_add(out, head, n_head), FL_OK);
    ck_assert_int_eq(fl_buf_add(out, len, n_len), FL_OK);
    for (i = 0; i < n; i++) {
        ck_assert_int_eq(fl_buf_add(out, "\x22\x00", 2), FL_OK); /* PushHeader.parts */
    }
}

TEST(a_message_that_would_swell_in_memory_is_refused)
{
    struct fl_wire_push_header header;
    struct fl_wire_chunk chunk;
    struct fl_err err = {0};
    struct fl_buf buf;
    bool is_header;

    hostile(&buf, (const uint8_t *)"\x0a", 1, 500000);
    ck_assert_int_eq(fl_wire_push_decode(buf.data, buf.len, &is_header, &header, &chunk, &err),
                     FL_ELIMIT);
    ck_assert_ptr_nonnull(strstr(err.msg, "of memory to decode"));
    fl_buf_done(&buf);
}

TEST(a_message_longer_than_its_kind_is_not_looked_at)
{
    struct fl_wire_command command;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_wire_command_decode("", FL_WIRE_MAX_CONTROL + 1, &command, &err),
                     FL_ELIMIT);
    ck_assert_str_eq(err.msg, "ServerCommand: 8388609 bytes, at most 8388608 are taken");
}

/* Every allocation of a decode fails once: refused, and all memory is given back. */
TEST_EACH(a_decode_that_runs_out_of_memory_leaves_nothing_behind, 5)
{
    static const struct {
        const char *sample;
        const ProtobufCMessageDescriptor *type;
    } kinds[] = {{"event_hello", &fl__v1__client_event__descriptor},
                 {"event_report", &fl__v1__client_event__descriptor},
                 {"command_welcome", &fl__v1__server_command__descriptor},
                 {"command_task", &fl__v1__server_command__descriptor},
                 {"push_header", &fl__v1__push_message__descriptor}};
    struct fl_buf buf;
    struct fl_err err = {0};
    size_t cap;
    bool whole = false;

    encode_sample(kinds[_i].sample, &buf);
    for (cap = 0; !whole && cap < 65536; cap += 8) {
        struct fl_pb_unpacked u;
        int rv = fl_pb_unpack_capped(kinds[_i].type, buf.data, buf.len, cap, &u, &err);

        ck_assert(rv == FL_OK || rv == FL_ELIMIT);
        whole = rv == FL_OK;
        fl_pb_unpacked_done(&u);
        ck_assert_uint_eq(u.used, 0);
    }
    ck_assert(whole);
    fl_buf_done(&buf);
}

TEST(texts_are_cut_and_made_utf8_when_they_are_sent)
{
    struct fl_wire_event event = {.type = FL_WIRE_FAILED};
    struct fl_wire_event got;
    struct fl_err err = {0};
    struct fl_buf out;
    char reason[3000];

    /* Two-byte letters up to the cut: none is cut in half. */
    (void)memset(reason, 0, sizeof(reason));
    for (size_t i = 0; i + 2 < sizeof(reason); i += 2) {
        (void)memcpy(reason + i, "\xc3\xa9", 2);
    }
    (void)memcpy(reason, "x", 1);
    event.u.failed.round = 1;
    event.u.failed.reason = reason;
    fl_buf_init(&out, 1u << 20);
    ck_assert_int_eq(fl_wire_event_encode(&event, &out), FL_OK);
    ck_assert_msg(fl_wire_event_decode(out.data, out.len, &got, &err) == FL_OK, "%s", err.msg);
    /* "x", the half of a letter as "?", then whole letters. */
    ck_assert_uint_eq(strlen(got.u.failed.reason), FL_WIRE_MAX_TEXT);
    ck_assert_int_eq(strncmp(got.u.failed.reason, "x?\xc3\xa9\xc3\xa9", 6), 0);
    fl_wire_event_done(&got);
    event.u.failed.reason = NULL;
    fl_buf_clear(&out);
    ck_assert_int_eq(fl_wire_event_encode(&event, &out), FL_OK);
    ck_assert_int_eq(fl_wire_event_decode(out.data, out.len, &got, &err), FL_OK);
    ck_assert_str_eq(got.u.failed.reason, "");
    ck_assert(!got.u.failed.diverged);
    fl_wire_event_done(&got);
    fl_buf_done(&out);
}

TEST(a_key_that_comes_twice_keeps_its_last_value)
{
    static char key[] = "site";
    static char first[] = "one";
    static char last[] = "two";
    static char client[] = "c";
    struct fl_pair labels[] = {{key, first}, {client, first}, {key, last}};
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};
    struct fl_wire_event got;
    struct fl_buf out;

    event.u.hello = (struct fl_wire_hello){
        .version_min = 1, .version_max = 1, .client = client, .labels = labels, .n_labels = 3};
    fl_buf_init(&out, 4096);
    ck_assert_int_eq(fl_wire_event_encode(&event, &out), FL_OK);
    ck_assert_int_eq(fl_wire_event_decode(out.data, out.len, &got, NULL), FL_OK);
    ck_assert_uint_eq(got.u.hello.n_labels, 2);
    ck_assert_str_eq(got.u.hello.labels[0].key, "site");
    ck_assert_str_eq(got.u.hello.labels[0].value, "two");
    fl_wire_event_done(&got);
    fl_buf_done(&out);
}

TEST(a_mask_has_a_bit_for_each_unit)
{
    uint8_t units[] = {0, 1, 0, 0, 0, 0, 0, 0, 1, 1};
    struct fl_wire_command command = {.type = FL_WIRE_PLAN, .u.plan = {1, 0, units, 10}};
    struct fl_wire_command got;
    struct fl_buf out;
    size_t i;

    fl_buf_init(&out, 4096);
    ck_assert_int_eq(fl_wire_command_encode(&command, &out), FL_OK);
    ck_assert_int_eq(fl_wire_command_decode(out.data, out.len, &got, NULL), FL_OK);
    ck_assert_uint_eq(got.u.plan.n_units, 16);
    for (i = 0; i < 16; i++) {
        ck_assert_uint_eq(got.u.plan.units[i], i < 10 ? units[i] : 0);
    }
    fl_wire_command_done(&got);
    /* No mask at all asks for all units. */
    command.u.plan.units = NULL;
    fl_buf_clear(&out);
    ck_assert_int_eq(fl_wire_command_encode(&command, &out), FL_OK);
    ck_assert_int_eq(fl_wire_command_decode(out.data, out.len, &got, NULL), FL_OK);
    ck_assert_ptr_null(got.u.plan.units);
    fl_wire_command_done(&got);
    fl_buf_done(&out);
}
