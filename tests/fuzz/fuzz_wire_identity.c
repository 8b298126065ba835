/*
 * What anybody may send who reaches the port, and what an operator's program may send or be
 * answered: the first byte says as which message the rest is taken. Decoding and encoding agree,
 * nothing crashes.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/wire_samples_identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int (*recode_fn)(const void *data, size_t len, struct fl_buf *out, struct fl_err *err);

#define X(name) wire_recode_##name##_,
static const recode_fn kinds[] = {WIRE_IDENTITY_SAMPLES(X)};
#undef X

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_buf once;
    struct fl_buf twice;
    struct fl_err err = {0};
    recode_fn recode;

    if (size == 0) {
        return 0;
    }
    recode = kinds[data[0] % (sizeof(kinds) / sizeof(kinds[0]))];
    fl_buf_init(&once, 8u << 20);
    fl_buf_init(&twice, 8u << 20);
    if (recode(data + 1, size - 1, &once, &err) == FL_OK) {
        /* What was taken once is taken again, and is the same. */
        if (recode(once.data, once.len, &twice, &err) != FL_OK || once.len != twice.len ||
            (once.len > 0 && memcmp(once.data, twice.data, once.len) != 0))
        {
            abort();
        }
    } else if (err.msg[0] == '\0') {
        abort();
    }
    fl_buf_done(&once);
    fl_buf_done(&twice);
    return 0;
}
