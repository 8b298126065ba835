/* Reads the header of the PROXY protocol, version 2. Pure functions, any thread. */
#include "libfl/net/balancer_header.h"

#include <string.h>

#define HEAD_BYTES 16

static const uint8_t signature[12] = {'\r', '\n', '\r', '\n', 0,   '\r',
                                      '\n', 'Q',  'U',  'I',  'T', '\n'};

/* Values of bytes 12 and 13. */
enum { COMMAND_LOCAL = 0x20, COMMAND_PROXY = 0x21 };
enum { FAMILY_UNKNOWN = 0x00, FAMILY_TCP4 = 0x11, FAMILY_TCP6 = 0x21 };

static unsigned header_u16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static size_t header_address_bytes(uint8_t family)
{
    return family == FAMILY_TCP4 ? 12 : family == FAMILY_TCP6 ? 36 : 0;
}

/* The first 16 bytes are there. */
static int header_begin(struct fl_balancer_header *h)
{
    unsigned length = header_u16(h->head + 14);
    uint8_t family = h->head[13];

    if (memcmp(h->head, signature, sizeof(signature)) != 0 ||
        (h->head[12] != COMMAND_LOCAL && h->head[12] != COMMAND_PROXY))
    {
        return FL_EPROTO;
    }
    if (h->head[12] == COMMAND_PROXY &&
        ((family != FAMILY_UNKNOWN && header_address_bytes(family) == 0) ||
         length < header_address_bytes(family)))
    {
        return FL_EPROTO;
    }
    if (length > FL_BALANCER_HEADER_MAX) {
        return FL_ELIMIT;
    }
    h->length = HEAD_BYTES + length;
    return FL_OK;
}

/* The whole header is there; what follows the addresses (TLV) is ignored. */
static void header_end(struct fl_balancer_header *h)
{
    const uint8_t *address = h->head + HEAD_BYTES;
    struct fl_ip ip;

    h->done = true;
    if (h->head[12] != COMMAND_PROXY || header_address_bytes(h->head[13]) == 0) {
        return;
    }
    if (h->head[13] == FAMILY_TCP4) {
        fl_ip_of_v4(address, &ip);
        fl_ip_peer(&ip, header_u16(address + 8), h->peer);
    } else {
        (void)memcpy(ip.bytes, address, sizeof(ip.bytes));
        fl_ip_peer(&ip, header_u16(address + 32), h->peer);
    }
}

int fl_balancer_header_take(struct fl_balancer_header *h, const uint8_t *data, size_t len,
                            size_t *ret_used)
{
    size_t i;
    int rv;

    for (i = 0; i < len && !h->done; i++) {
        /* A connection without the header may never send 16 bytes. */
        if (h->bytes < sizeof(signature) && data[i] != signature[h->bytes]) {
            return FL_EPROTO;
        }
        if (h->bytes < sizeof(h->head)) {
            h->head[h->bytes] = data[i];
        }
        h->bytes++;
        if (h->bytes == HEAD_BYTES) {
            rv = header_begin(h);
            if (rv != FL_OK) {
                return rv;
            }
        }
        if (h->bytes >= HEAD_BYTES && h->bytes == h->length) {
            header_end(h);
        }
    }
    *ret_used = i;
    return FL_OK;
}
