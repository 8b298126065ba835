#ifndef FL_NET_ADDRESS_H
#define FL_NET_ADDRESS_H

/*
 * Addresses as operators write them: "host:port", "[v6]:port", "*:port", "unix:/path".
 * Pure: no name is resolved.
 */

#include <stdbool.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* RFC 1035: a name has at most 253 characters. */
#define FL_ADDRESS_HOST_MAX 254
/* sizeof(sun_path) on Linux; the system calls would truncate a longer path silently. */
#define FL_ADDRESS_PATH_MAX 108

enum fl_address_kind {
    FL_ADDRESS_ANY,
    FL_ADDRESS_IP4,
    FL_ADDRESS_IP6,
    FL_ADDRESS_NAME,
    FL_ADDRESS_UNIX
};

struct fl_address {
    enum fl_address_kind kind;
    char host[FL_ADDRESS_HOST_MAX]; /* Without brackets; empty for ANY and UNIX. */
    uint16_t port;
    char path[FL_ADDRESS_PATH_MAX]; /* UNIX only. */
};

/* FL_EINVAL with a text that quotes `text` and says what is wrong; `*ret` is then unchanged. */
FL_MUST_CHECK int fl_address_parse(const char *text, struct fl_address *ret, struct fl_err *err);
/*
 * Checks a host without a port, as a certificate contains it: a name, an IPv4 address or an IPv6
 * address without brackets; no URL, no port, no "*". FL_EINVAL with a text that says what is wrong.
 */
FL_MUST_CHECK int fl_address_check_host(const char *host, struct fl_err *err);
/*
 * The same with or without a port: "fl.example.org", "fl.example.org:443", "[2001:db8::1]:443".
 * Without one `ret->port` is 0; a port is from 1 on.
 */
FL_MUST_CHECK int fl_address_parse_host(const char *text, struct fl_address *ret,
                                        struct fl_err *err);

#endif
