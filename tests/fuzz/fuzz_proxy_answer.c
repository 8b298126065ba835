/*
 * The answer of a proxy read at once and byte by byte: the same result, within its limits. What the
 * parser keeps can be printed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/net/proxy_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void check_text(const char *text, size_t size)
{
    size_t i;

    expect(memchr(text, '\0', size) != NULL);
    for (i = 0; text[i] != '\0'; i++) {
        expect((unsigned char)text[i] >= ' ');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_proxy_answer whole = {.done = false};
    struct fl_proxy_answer parts = {.done = false};
    size_t used = 0;
    size_t at;
    int rv = fl_proxy_answer_take(&whole, data, size, &used);
    int rv_parts = FL_OK;

    for (at = 0; at < size && rv_parts == FL_OK && !parts.done;) {
        size_t one = 0;

        rv_parts = fl_proxy_answer_take(&parts, data + at, 1, &one);
        at += one;
    }
    expect(rv == rv_parts && (rv == FL_OK || rv == FL_EPROTO || rv == FL_ELIMIT));
    expect(whole.done == parts.done && whole.status == parts.status);
    expect(whole.bytes <= FL_PROXY_ANSWER_MAX);
    expect(rv != FL_OK || (used == at && (whole.done || used == size)));
    expect(!whole.done || (whole.status >= 200 && whole.status < 600));
    expect(strcmp(whole.reason, parts.reason) == 0 && strcmp(whole.schemes, parts.schemes) == 0);
    check_text(whole.reason, sizeof(whole.reason));
    check_text(whole.schemes, sizeof(whole.schemes));
    return 0;
}
