#ifndef FL_NET_BALANCER_HEADER_H
#define FL_NET_BALANCER_HEADER_H

/*
 * The header that a TCP load balancer puts in front of a connection to name the client behind it:
 * version 2 of the PROXY protocol (HAProxy's proxy-protocol.txt), read as it arrives. Pure; a
 * struct belongs to its caller.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/net/address_range.h"

/* Longest part behind the first 16 bytes; balancers send 12 to some hundred bytes. */
#define FL_BALANCER_HEADER_MAX 4096u

/* Zero-initialized before the first byte. */
struct fl_balancer_header {
    bool done;
    /* The client behind the balancer, "192.0.2.7:50312"; "": the balancer itself, or not known. */
    char peer[FL_PEER_MAX];
    size_t bytes;          /* read so far */
    size_t length;         /* of the whole header, once 16 bytes are read */
    uint8_t head[16 + 36]; /* as far as it is needed */
};

/*
 * Reads up to `len` bytes; `*ret_used` of them belong to the header. FL_OK: `done`, or all bytes
 * are used and more are needed. FL_EPROTO: no such header, or one that is not of TCP. FL_ELIMIT:
 * longer than FL_BALANCER_HEADER_MAX.
 */
FL_MUST_CHECK int fl_balancer_header_take(struct fl_balancer_header *header, const uint8_t *data,
                                          size_t len, size_t *ret_used);

#endif
