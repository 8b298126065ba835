/*
 * Whole numbers as bytes, by the test vectors that readers in other languages have:
 * docs/dense.json, which tests/interop/dense_vectors.py makes with an encoder of its own.
 */
#include "libfl/strategy/codec/dense_code.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/vectors_fixture.h"

TEST(each_list_of_the_vectors_has_their_bytes_and_is_decoded_from_them)
{
    json_t *rows = vectors_of("dense", "good");
    size_t i;
    size_t k;

    for (i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *list = json_object_get(row, "values");
        size_t n = json_array_size(list);
        int32_t *values = malloc((n + 1) * sizeof(*values));
        int32_t *out = malloc((n + 1) * sizeof(*out));
        size_t used = 0;
        struct fl_buf coded;
        size_t len;
        uint8_t *bytes = bytes_of(row, "bytes", &len);

        for (k = 0; k < n; k++) {
            values[k] = (int32_t)json_integer_value(json_array_get(list, k));
        }
        fl_buf_init(&coded, 1u << 20);
        ck_assert_int_eq(fl_dense_encode(values, n, &coded), FL_OK);
        ck_assert_msg(coded.len == len && memcmp(coded.data, bytes, len) == 0, "%s: other bytes",
                      text_of(row, "name"));
        ck_assert_int_eq(fl_dense_decode(bytes, len, n, out, &used, NULL), FL_OK);
        ck_assert_uint_eq(used, len);
        ck_assert_msg(memcmp(out, values, n * sizeof(*out)) == 0, "%s: other numbers",
                      text_of(row, "name"));
        fl_buf_done(&coded);
        free(values);
        free(out);
        free(bytes);
    }
    json_decref(rows);
}

TEST(each_refused_vector_is_refused_for_its_reason)
{
    json_t *rows = vectors_of("dense", "refused");
    size_t i;

    for (i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        size_t n = (size_t)json_integer_value(json_object_get(row, "n"));
        int32_t *out = malloc((n + 1) * sizeof(*out));
        struct fl_err err = {.code = FL_OK};
        size_t used;
        size_t len;
        uint8_t *bytes = bytes_of(row, "bytes", &len);

        ck_assert_int_eq(fl_dense_decode(bytes, len, n, out, &used, &err), FL_EFORMAT);
        ck_assert_msg(strcmp(err.msg, text_of(row, "reason")) == 0, "%s: '%s'",
                      text_of(row, "name"), err.msg);
        free(out);
        free(bytes);
    }
    json_decref(rows);
}
