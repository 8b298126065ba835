/*
 * Whole numbers as bytes, by the test vectors that readers in other languages have:
 * docs/dense.json, which tests/interop/dense_vectors.py makes with an encoder of its own.
 */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/codec/dense_code.h"
#include "tests/lib/suites.h"

static json_t *vectors_of(const char *list)
{
    char path[4096];
    json_error_t error;
    json_t *file;
    json_t *rows;

    ck_assert_ptr_nonnull(getenv("FL_SRCDIR"));
    (void)snprintf(path, sizeof(path), "%s/docs/dense.json", getenv("FL_SRCDIR"));
    file = json_load_file(path, 0, &error);
    ck_assert_msg(file != NULL, "%s:%d: %s", path, error.line, error.text);
    rows = json_incref(json_object_get(file, list));
    ck_assert_msg(json_array_size(rows) >= 12, "%s: '%s' has %zu vectors", path, list,
                  json_array_size(rows));
    json_decref(file);
    return rows;
}

static const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));

    ck_assert_msg(text != NULL, "a vector without '%s'", key);
    return text;
}

/* Memory of exactly that length, for the sanitizer; a byte where there is none. */
static uint8_t *bytes_of(const json_t *row, size_t *ret_len)
{
    const char *hex = text_of(row, "bytes");
    size_t n = strlen(hex) / 2;
    uint8_t *out = malloc(n + (n == 0));
    size_t i;

    ck_assert_ptr_nonnull(out);
    for (i = 0; i < n; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

        out[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    *ret_len = n;
    return out;
}

TEST(each_list_of_the_vectors_has_their_bytes_and_is_decoded_from_them)
{
    json_t *rows = vectors_of("good");
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
        uint8_t *bytes = bytes_of(row, &len);

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
    json_t *rows = vectors_of("refused");
    size_t i;

    for (i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        size_t n = (size_t)json_integer_value(json_object_get(row, "n"));
        int32_t *out = malloc((n + 1) * sizeof(*out));
        struct fl_err err = {.code = FL_OK};
        size_t used;
        size_t len;
        uint8_t *bytes = bytes_of(row, &len);

        ck_assert_int_eq(fl_dense_decode(bytes, len, n, out, &used, &err), FL_EFORMAT);
        ck_assert_msg(strcmp(err.msg, text_of(row, "reason")) == 0, "%s: '%s'",
                      text_of(row, "name"), err.msg);
        free(out);
        free(bytes);
    }
    json_decref(rows);
}
