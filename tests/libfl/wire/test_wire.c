/* Rules that hold for every message on the wire. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suites.h"
#include "tests/lib/wire_samples_identity.h"

#define N_SAMPLES (45 + WIRE_N_IDENTITY_SAMPLES)

static void encode_sample(int i, struct fl_buf *out)
{
    fl_buf_init(out, 1u << 20);
    ck_assert_int_eq(wire_samples[i].encode(out), FL_OK);
    ck_assert_uint_gt(out->len, 0);
}

TEST_CASE("rest", NULL, NULL);

TEST(the_sample_table_is_whole)
{
    size_t n = 0;

    while (wire_samples[n].name != NULL) {
        n++;
    }
    ck_assert_uint_eq(n, N_SAMPLES);
}

TEST_CASE("every message", NULL, NULL);

TEST_EACH(every_message_survives_a_round_trip, N_SAMPLES)
{
    struct fl_buf first;
    struct fl_buf second;
    struct fl_err err = {0};

    encode_sample(_i, &first);
    fl_buf_init(&second, 1u << 20);
    ck_assert_msg(wire_samples[_i].recode(first.data, first.len, &second, &err) == FL_OK, "%s: %s",
                  wire_samples[_i].name, err.msg);
    ck_assert_uint_eq(first.len, second.len);
    ck_assert_mem_eq(first.data, second.data, first.len);
    fl_buf_done(&first);
    fl_buf_done(&second);
}

/* `data` in memory of exactly its length, so that a sanitizer sees every read past it. */
static int recode_exactly(int i, const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    struct fl_buf out;
    struct fl_err err = {0};
    int rv;

    ck_assert_ptr_nonnull(copy);
    if (len > 0) {
        (void)memcpy(copy, data, len);
    }
    fl_buf_init(&out, 1u << 20);
    rv = wire_samples[i].recode(copy, len, &out, &err);
    ck_assert(rv == FL_OK || rv == FL_EPROTO || rv == FL_ELIMIT || rv == FL_EPERM);
    ck_assert_msg(rv == FL_OK || err.msg[0] != '\0', "%s: refused without a message",
                  wire_samples[i].name);
    fl_buf_done(&out);
    free(copy);
    return rv;
}

TEST_EACH(a_message_cut_at_any_byte_is_refused_or_whole, N_SAMPLES)
{
    struct fl_buf whole;
    size_t len;

    encode_sample(_i, &whole);
    for (len = 0; len < whole.len; len++) {
        (void)recode_exactly(_i, whole.data, len);
    }
    fl_buf_done(&whole);
}

TEST_EACH(a_message_with_any_byte_changed_never_crashes, N_SAMPLES)
{
    static const uint8_t masks[] = {0x01, 0x80, 0xff, 0x07, 0x08};
    struct fl_buf whole;
    size_t at;
    size_t m;

    encode_sample(_i, &whole);
    for (at = 0; at < whole.len; at++) {
        for (m = 0; m < sizeof(masks); m++) {
            whole.data[at] ^= masks[m];
            (void)recode_exactly(_i, whole.data, whole.len);
            whole.data[at] ^= masks[m];
        }
    }
    fl_buf_done(&whole);
}

TEST_EACH(unknown_fields_are_ignored, N_SAMPLES)
{
    /* Field 1000: a varint, eight bytes, three bytes of text, four bytes. */
    static const uint8_t unknown[] = {0xc0, 0x3e, 0x96, 0x01, 0xc1, 0x3e, 1,    2,   3,
                                      4,    5,    6,    7,    8,    0xc2, 0x3e, 3,   'a',
                                      'b',  'c',  0xc5, 0x3e, 1,    2,    3,    0xff};
    struct fl_buf plain;
    struct fl_buf out;
    struct fl_buf more;
    struct fl_err err = {0};

    encode_sample(_i, &plain);
    fl_buf_init(&more, 1u << 20);
    fl_buf_init(&out, 1u << 20);
    ck_assert_int_eq(fl_buf_add(&more, unknown, sizeof(unknown)), FL_OK);
    ck_assert_int_eq(fl_buf_add(&more, plain.data, plain.len), FL_OK);
    ck_assert_int_eq(fl_buf_add(&more, unknown, sizeof(unknown)), FL_OK);
    ck_assert_msg(wire_samples[_i].recode(more.data, more.len, &out, &err) == FL_OK, "%s: %s",
                  wire_samples[_i].name, err.msg);
    ck_assert_uint_eq(out.len, plain.len);
    ck_assert_mem_eq(out.data, plain.data, plain.len);
    fl_buf_done(&plain);
    fl_buf_done(&more);
    fl_buf_done(&out);
}

TEST_EACH(encoding_past_the_limit_of_the_buffer_changes_nothing, N_SAMPLES)
{
    struct fl_buf whole;
    struct fl_buf small;

    encode_sample(_i, &whole);
    fl_buf_init(&small, whole.len - 1);
    if (wire_samples[_i].recode(whole.data, whole.len, &small, NULL) != FL_ELIMIT) {
        /* Chunks are added in two steps by the test itself. */
        ck_assert_ptr_nonnull(strstr(wire_samples[_i].name, "chunk"));
    } else if (strstr(wire_samples[_i].name, "chunk") == NULL) {
        ck_assert_uint_eq(small.len, 0);
    }
    fl_buf_done(&whole);
    fl_buf_done(&small);
}
