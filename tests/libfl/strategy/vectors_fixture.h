#ifndef FL_TESTS_VECTORS_FIXTURE_H
#define FL_TESTS_VECTORS_FIXTURE_H

/* Test vectors of docs/NAME.json: lists of good and of refused ones (tests/interop/vector_file.py).
 */

#include <check.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The list "good" or "refused"; json_decref(). */
static inline json_t *vectors_of(const char *name, const char *list)
{
    char path[4096];
    json_error_t error;
    json_t *file;
    json_t *rows;

    ck_assert_ptr_nonnull(getenv("FL_SRCDIR"));
    (void)snprintf(path, sizeof(path), "%s/docs/%s.json", getenv("FL_SRCDIR"), name);
    file = json_load_file(path, 0, &error);
    ck_assert_msg(file != NULL, "%s:%d: %s", path, error.line, error.text);
    rows = json_incref(json_object_get(file, list));
    ck_assert_msg(json_array_size(rows) >= 12, "%s: '%s' has %zu vectors", path, list,
                  json_array_size(rows));
    json_decref(file);
    return rows;
}

static inline const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));

    ck_assert_msg(text != NULL, "a vector without '%s'", key);
    return text;
}

/* Memory of exactly that length, for the sanitizer; a byte where there is none. */
static inline uint8_t *bytes_of(const json_t *row, const char *key, size_t *ret_len)
{
    const char *hex = text_of(row, key);
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

#endif
