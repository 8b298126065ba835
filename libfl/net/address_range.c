/* Parses and compares ranges of IP addresses. Pure functions, any thread. */
#include "libfl/net/address_range.h"

#include <arpa/inet.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/base/str.h"

/* Bits in front of an IPv4 address that is mapped into IPv6. */
#define MAPPED_BITS 96
/* Longest text of an address, without brackets and port. */
#define IP_TEXT_MAX 64

int fl_ip_parse(const char *text, struct fl_ip *ret)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct fl_ip ip = {{0}};

    if (inet_pton(AF_INET, text, ip.bytes + sizeof(mapped)) == 1) {
        (void)memcpy(ip.bytes, mapped, sizeof(mapped));
    } else if (inet_pton(AF_INET6, text, ip.bytes) != 1) {
        return FL_EINVAL;
    }
    *ret = ip;
    return FL_OK;
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
