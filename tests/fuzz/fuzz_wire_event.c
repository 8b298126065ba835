/* What a client may send on the control stream: decoding and encoding agree, nothing crashes. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/wire_samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_buf once;
    struct fl_buf twice;
    struct fl_err err = {0};

    fl_buf_init(&once, 8u << 20);
    fl_buf_init(&twice, 8u << 20);
    if (wire_recode_event(data, size, &once, &err) == FL_OK) {
        /* What was taken once is taken again, and is the same. */
        if (wire_recode_event(once.data, once.len, &twice, &err) != FL_OK ||
            once.len != twice.len || (once.len > 0 && memcmp(once.data, twice.data, once.len) != 0))
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
