/*
 * The header of a load balancer read at once and byte by byte: the same result, within its limits,
 * and a peer that can be read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/net/balancer_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_balancer_header whole = {.done = false};
    struct fl_balancer_header parts = {.done = false};
    struct fl_ip ip;
    size_t used = 0;
    size_t at = 0;
    int rv = fl_balancer_header_take(&whole, data, size, &used);
    int rv_parts = FL_OK;

    while (at < size && rv_parts == FL_OK && !parts.done) {
        size_t one = 0;

        rv_parts = fl_balancer_header_take(&parts, data + at, 1, &one);
        at += one;
    }
    expect(rv == rv_parts && (rv == FL_OK || rv == FL_EPROTO || rv == FL_ELIMIT));
    expect(whole.done == parts.done && strcmp(whole.peer, parts.peer) == 0);
    expect(rv != FL_OK || (used == at && (whole.done || used == size)));
    expect(whole.bytes <= 16 + FL_BALANCER_HEADER_MAX);
    expect(whole.peer[0] == '\0' || (whole.done && fl_ip_of_peer(whole.peer, &ip) == FL_OK));
    return 0;
}
