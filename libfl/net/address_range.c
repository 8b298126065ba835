/* Parses and compares ranges of IP addresses. Pure functions, any thread. */
#include "libfl/net/address_range.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/base/str.h"

/* Bits in front of an IPv4 address that is mapped into IPv6. */
#define MAPPED_BITS 96
/* Longest text of an address, without brackets and port. */
#define IP_TEXT_MAX 64

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void fl_ip_of_v4(const uint8_t *v4, struct fl_ip *ret)
{
    (void)memcpy(ret->bytes, mapped, sizeof(mapped));
    (void)memcpy(ret->bytes + sizeof(mapped), v4, 4);
}

int fl_ip_parse(const char *text, struct fl_ip *ret)
{
    struct fl_ip ip;
    uint8_t v4[4];

    if (inet_pton(AF_INET, text, v4) == 1) {
        fl_ip_of_v4(v4, &ip);
    } else if (inet_pton(AF_INET6, text, ip.bytes) != 1) {
        return FL_EINVAL;
    }
    *ret = ip;
    return FL_OK;
}

void fl_ip_peer(const struct fl_ip *ip, unsigned port, char out[FL_PEER_MAX])
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (memcmp(ip->bytes, mapped, sizeof(mapped)) == 0) {
        (void)inet_ntop(AF_INET, ip->bytes + sizeof(mapped), host, sizeof(host));
        (void)snprintf(out, FL_PEER_MAX, "%s:%u", host, port);
    } else {
        (void)inet_ntop(AF_INET6, ip->bytes, host, sizeof(host));
        (void)snprintf(out, FL_PEER_MAX, "[%s]:%u", host, port);
    }
}

int fl_ip_of_peer(const char *peer, struct fl_ip *ret)
{
    bool bracketed = peer[0] == '[';
    const char *host = bracketed ? peer + 1 : peer;
    const char *end = bracketed ? strchr(host, ']') : strrchr(host, ':');
    char text[IP_TEXT_MAX];

    if (end == NULL || (size_t)(end - host) >= sizeof(text)) {
        return FL_EINVAL;
    }
    (void)memcpy(text, host, (size_t)(end - host));
    text[end - host] = '\0';
    return fl_ip_parse(text, ret);
}

int fl_address_range_parse(const char *text, struct fl_address_range *ret, struct fl_err *err)
{
    const char *slash = strchr(text, '/');
    size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
    bool is_v4 = memchr(text, ':', len) == NULL;
    uint64_t bits = is_v4 ? 32 : 128;
    uint64_t most = bits;
    struct fl_address_range range;
    char quoted[2 * IP_TEXT_MAX];
    char host[IP_TEXT_MAX];

    if (len >= sizeof(host)) {
        goto bad;
    }
    (void)memcpy(host, text, len);
    host[len] = '\0';
    if (fl_ip_parse(host, &range.first) != FL_OK ||
        (slash != NULL && (fl_str_to_u64(slash + 1, &bits) != FL_OK || bits > most)))
    {
        goto bad;
    }
    range.bits = (unsigned)bits + (is_v4 ? MAPPED_BITS : 0);
    *ret = range;
    return FL_OK;
bad:
    return fl_err_set(err, FL_EINVAL,
                      "%s: expected an IP address, or a range of them such as 10.0.0.0/8 or "
                      "2001:db8::/32",
                      fl_log_quote(quoted, sizeof(quoted), text, strlen(text)));
}

bool fl_address_range_has(const struct fl_address_range *range, const struct fl_ip *ip)
{
    unsigned whole = range->bits / 8;
    unsigned rest = range->bits % 8;
    uint8_t mask = (uint8_t)(0xff00u >> rest);

    return memcmp(range->first.bytes, ip->bytes, whole) == 0 &&
           (rest == 0 || ((range->first.bytes[whole] ^ ip->bytes[whole]) & mask) == 0);
}
