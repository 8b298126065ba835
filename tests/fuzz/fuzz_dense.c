/*
 * Any bytes as a list of whole numbers in its coded form, and any numbers through it. The first
 * byte gives the count, the rest the bytes.
 *
 * Checked: nothing outside the bytes is read; a code that is decoded is the one that the encoder
 * writes; bytes taken as numbers are decoded again.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/codec/dense_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COUNT 1020

static void expect(bool fact)
{
    if (!fact) {
        abort();
    }
}

static void any_bytes(const uint8_t *data, size_t size, size_t n)
{
    uint8_t *copy = malloc(size > 0 ? size : 1); /* Of exactly that length, for the sanitizer. */
    int32_t values[COUNT];
    struct fl_buf buf;
    size_t used = 0;

    expect(copy != NULL);
    if (size > 0) {
        (void)memcpy(copy, data, size);
    }
    if (fl_dense_decode(copy, size, n, values, &used, NULL) == FL_OK) {
        expect(used <= size);
        fl_buf_init(&buf, SIZE_MAX / 2);
        expect(fl_dense_encode(values, n, &buf) == FL_OK);
        /* Plain numbers are the one form that is not compared with the shorter one. */
        expect(copy[0] == 0 ? buf.len <= used
                            : buf.len == used && memcmp(buf.data, copy, used) == 0);
        fl_buf_done(&buf);
    }
    free(copy);
}

/* Each 4 bytes as a number, which the lowest 5 bits shorten. */
static void any_numbers(const uint8_t *data, size_t size)
{
    int32_t values[COUNT];
    int32_t out[COUNT];
    size_t n = size / 4 < COUNT ? size / 4 : COUNT;
    struct fl_buf buf;
    size_t used = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        uint32_t bits = 0;

        (void)memcpy(&bits, data + 4 * i, 4);
        values[i] = (int32_t)(bits >> 6 >> (bits & 31) % 26);
        values[i] = (bits & 32) != 0 ? -(values[i] / 2) : values[i] / 2;
    }
    fl_buf_init(&buf, SIZE_MAX / 2);
    expect(fl_dense_encode(values, n, &buf) == FL_OK);
    expect(buf.len <= fl_dense_max_size(n));
    expect(fl_dense_decode(buf.data, buf.len, n, out, &used, NULL) == FL_OK);
    expect(used == buf.len && memcmp(out, values, n * sizeof(*out)) == 0);
    fl_buf_done(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) {
        any_bytes(data + 1, size - 1, (size_t)data[0] * 4);
        any_numbers(data + 1, size - 1);
    }
    return 0;
}
