#ifndef FL_NET_ADDRESS_RANGE_H
#define FL_NET_ADDRESS_RANGE_H

/*
 * Ranges of IP addresses as operators write them: "192.0.2.7", "10.0.0.0/8", "2001:db8::/32".
 * Pure: no name is resolved.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* IPv6 in network order; an IPv4 address is a mapped one (::ffff:192.0.2.7). */
struct fl_ip {
    uint8_t bytes[16];
};

struct fl_address_range {
    struct fl_ip first;
    unsigned bits; /* leading bits that are equal in the whole range: 0 to 128 */
};

/* An IPv4 or IPv6 address without port and brackets. FL_EINVAL. */
FL_MUST_CHECK int fl_ip_parse(const char *text, struct fl_ip *ret);
/*
 * The host of the name of a peer ("192.0.2.7:50312", "[2001:db8::1]:50312"). FL_EINVAL: it is none
 * of TCP.
 */
FL_MUST_CHECK int fl_ip_of_peer(const char *peer, struct fl_ip *ret);
/* The name of a peer, as fl_ip_of_peer() reads it. */
#define FL_PEER_MAX 64
void fl_ip_peer(const struct fl_ip *ip, unsigned port, char out[FL_PEER_MAX]);
/* From the 4 bytes of an IPv4 address in network order. */
void fl_ip_of_v4(const uint8_t *v4, struct fl_ip *ret);
/* FL_EINVAL with a text that quotes `text` and says what was expected. */
FL_MUST_CHECK int fl_address_range_parse(const char *text, struct fl_address_range *ret,
                                         struct fl_err *err);
bool fl_address_range_has(const struct fl_address_range *range, const struct fl_ip *ip);

#endif
