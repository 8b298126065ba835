/* Parses and checks addresses. Pure functions, any thread. Resolves no names (resolve.c). */
#include "libfl/net/address.h"

#include <arpa/inet.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/base/str.h"
#include "libfl/net/conn.h"

static const char unix_prefix[] = "unix:";

static int address_error(struct fl_err *err, const char *text, const char *why)
{
    char quoted[FL_ADDRESS_HOST_MAX];

    return fl_err_set(err, FL_EINVAL,
                      "address %s: %s (expected \"host:port\", \"[v6]:port\", \"*:port\" or "
                      "\"unix:/path\")",
                      fl_log_quote(quoted, sizeof(quoted), text, strlen(text)), why);
}

static bool address_is_name(const char *host)
{
    size_t i;

    if (host[0] == '-' || host[0] == '.') {
        return false;
    }
    for (i = 0; host[i] != '\0'; i++) {
        char c = host[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.' || c == '_';

        if (!ok || (c == '.' && host[i + 1] == '.')) {
            return false;
        }
    }
    return i > 0;
}

/* Sets out->kind from out->host. Returns NULL, or what is wrong. */
static const char *address_classify(struct fl_address *out, bool bracketed)
{
    unsigned char raw[sizeof(struct in6_addr)];
    const char *dot;
    const char *last;

    if (bracketed) {
        out->kind = FL_ADDRESS_IP6;
        return inet_pton(AF_INET6, out->host, raw) == 1 ? NULL : "not an IPv6 address";
    }
    if (strcmp(out->host, "*") == 0) {
        out->kind = FL_ADDRESS_ANY;
        out->host[0] = '\0';
        return NULL;
    }
    if (strchr(out->host, ':') != NULL) {
        return "an IPv6 address needs brackets";
    }
    /*
     * "300.1.1.1" and "127.1" are mistyped addresses, not names: the last label of a name never has
     * only digits.
     */
    dot = strrchr(out->host, '.');
    last = dot != NULL ? dot + 1 : out->host;
    if (*last != '\0' && last[strspn(last, "0123456789")] == '\0') {
        out->kind = FL_ADDRESS_IP4;
        return inet_pton(AF_INET, out->host, raw) == 1 ? NULL : "not an IPv4 address";
    }
    out->kind = FL_ADDRESS_NAME;
    return address_is_name(out->host) ? NULL : "not a host name";
}

int fl_address_parse(const char *text, struct fl_address *ret, struct fl_err *err)
{
    struct fl_address out = {.kind = FL_ADDRESS_ANY};
    const char *host = text;
    const char *end;
    const char *colon;
    const char *why;
    uint64_t port;
    bool bracketed = text[0] == '[';

    if (strncmp(text, unix_prefix, sizeof(unix_prefix) - 1) == 0) {
        const char *path = text + sizeof(unix_prefix) - 1;
        struct fl_address local = {.kind = FL_ADDRESS_UNIX};

        if (path[0] != '/') {
            return address_error(err, text, "the path of a unix socket must be absolute");
        }
        if (fl_str_copy(local.path, sizeof(local.path), path) != FL_OK) {
            return address_error(err, text, "the path of a unix socket has at most 107 bytes");
        }
        *ret = local;
        return FL_OK;
    }
    if (bracketed) {
        host++;
        end = strchr(host, ']');
        colon = end != NULL ? end + 1 : NULL;
        if (colon == NULL || *colon != ':') {
            return address_error(err, text, "\"]:port\" is missing");
        }
    } else {
        colon = strrchr(text, ':');
        end = colon;
        if (colon == NULL) {
            return address_error(err, text, "the port is missing");
        }
    }
    if (end == host) {
        return address_error(err, text, "the host is missing");
    }
    if ((size_t)(end - host) >= sizeof(out.host)) {
        return address_error(err, text, "the host name is too long");
    }
    (void)memcpy(out.host, host, (size_t)(end - host));
    why = address_classify(&out, bracketed);
    if (why != NULL) {
        return address_error(err, text, why);
    }
    if (fl_str_to_u64(colon + 1, &port) != FL_OK || port > UINT16_MAX) {
        return address_error(err, text, "the port must be a number from 0 to 65535");
    }
    out.port = (uint16_t)port;
    *ret = out;
    return FL_OK;
}

int fl_address_check_host(const char *host, struct fl_err *err)
{
    struct fl_address a = {.kind = FL_ADDRESS_ANY};
    unsigned char raw[sizeof(struct in6_addr)];
    const char *why = NULL;

    if (strstr(host, "://") != NULL) {
        why = "expected only the name or address of a host, found a URL; remove the parts before "
              "and after the host";
    } else if (inet_pton(AF_INET6, host, raw) == 1) {
        return FL_OK;
    } else if (host[0] == '[' || strchr(host, ':') != NULL) {
        why = "expected only the name or address of a host, without brackets and port";
    } else if (strchr(host, '/') != NULL) {
        why = "expected only the name or address of a host, without a path";
    } else if (fl_str_copy(a.host, sizeof(a.host), host) != FL_OK) {
        why = "the host name is too long";
    } else {
        why = address_classify(&a, /* bracketed= */ false);
        why = why == NULL && a.kind == FL_ADDRESS_ANY
                  ? "'*' is not a host that clients can connect to"
                  : why;
    }
    return why == NULL ? FL_OK : fl_err_set(err, FL_EINVAL, "'%s': %s", host, why);
}

/* A colon outside of an IPv6 address, which stands in brackets when a port follows. */
static bool address_has_port(const char *text)
{
    const char *colon = strchr(text, ':');

    return strstr(text, "://") == NULL && colon != NULL &&
           (text[0] == '[' || strchr(colon + 1, ':') == NULL);
}

int fl_address_parse_host(const char *text, struct fl_address *ret, struct fl_err *err)
{
    struct fl_address a = {.kind = FL_ADDRESS_ANY};
    int rv;

    if (!address_has_port(text)) {
        rv = fl_address_check_host(text, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_str_copy(a.host, sizeof(a.host), text); /* The check above bounds its length. */
        *ret = a;
        return rv;
    }
    rv = fl_address_parse(text, &a, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (a.kind == FL_ADDRESS_UNIX || a.port == 0) {
        return fl_err_set(err, FL_EINVAL,
                          "'%s': expected the name or address of a host, and a port from 1 on or "
                          "none",
                          text);
    }
    rv = fl_address_check_host(a.host[0] != '\0' ? a.host : "*", err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = a;
    return FL_OK;
}

bool fl_address_is_loopback(const char *text)
{
    struct fl_address address;
    struct in_addr ip4;
    struct in6_addr ip6;

    if (fl_address_parse(text, &address, NULL) != FL_OK) {
        return false;
    }
    switch (address.kind) {
    case FL_ADDRESS_UNIX:
        return true;
    case FL_ADDRESS_ANY:
        return false;
    case FL_ADDRESS_NAME:
        return strcmp(address.host, "localhost") == 0;
    case FL_ADDRESS_IP4:
        return inet_pton(AF_INET, address.host, &ip4) == 1 && (ntohl(ip4.s_addr) >> 24) == 127;
    case FL_ADDRESS_IP6:
        return inet_pton(AF_INET6, address.host, &ip6) == 1 &&
               (IN6_IS_ADDR_LOOPBACK(&ip6) ||
                (IN6_IS_ADDR_V4MAPPED(&ip6) && ip6.s6_addr[12] == 127));
    }
    return false;
}
