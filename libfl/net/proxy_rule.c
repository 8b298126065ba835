/*
 * Chooses the HTTP proxy of a connection: parses its URL, the list no_proxy and the file with its
 * credentials. Any thread; fl_proxy_find() and fl_proxy_check() read the environment and a small
 * file. Does not connect (proxy.c).
 */
#include "libfl/net/proxy_rule.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/net/address_range.h"
#include "libfl/net/conn.h"

static const char scheme[] = "http://";

/* --- the URL --- */

static int proxy_hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes %XX into `out`; false: it does not fit, or has an invalid or unprintable character. */
static bool proxy_decode(const char *from, size_t len, char *out, size_t size)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        int c = (unsigned char)from[i];

        if (c == '%') {
            int high = i + 2 < len ? proxy_hex(from[i + 1]) : -1;
            int low = high >= 0 ? proxy_hex(from[i + 2]) : -1;

            if (low < 0) {
                return false;
            }
            c = high * 16 + low;
            i += 2;
        }
        if (n + 1 >= size || c < ' ' || c == 0x7f) {
            return false;
        }
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return true;
}

/* Returns NULL, or what is wrong. The text may have a password, which no message shows. */
static const char *proxy_split(const char *text, struct fl_proxy *ret)
{
    const char *at =
        strncasecmp(text, scheme, sizeof(scheme) - 1) == 0 ? text + sizeof(scheme) - 1 : text;
    size_t len = strcspn(at, "/?#");
    const char *end = memchr(at, '@', len);
    const char *next;
    struct fl_address parsed;

    if (strstr(at, "://") != NULL) {
        return "only http:// proxies are supported: the connection through it has TLS of its own";
    }
    if (at[len] != '\0' && strcmp(at + len, "/") != 0) {
        return "a proxy has no path";
    }
    while (end != NULL && (next = memchr(end + 1, '@', len - (size_t)(end + 1 - at))) != NULL) {
        end = next;
    }
    if (end != NULL) {
        if (!proxy_decode(at, (size_t)(end - at), ret->user, sizeof(ret->user) - 1)) {
            return "user and password are too long or badly percent-encoded";
        }
        if (strchr(ret->user, ':') == NULL) { /* no password */
            size_t n = strlen(ret->user);

            ret->user[n] = ':'; /* proxy_decode() left room for it and its NUL */
            ret->user[n + 1] = '\0';
        }
        len -= (size_t)(end + 1 - at);
        at = end + 1;
    }
    if (len >= sizeof(ret->address)) {
        return "the host name is too long";
    }
    (void)memcpy(ret->address, at, len);
    ret->address[len] = '\0';
    if (fl_address_parse(ret->address, &parsed, NULL) != FL_OK || parsed.port == 0 ||
        parsed.kind == FL_ADDRESS_ANY || parsed.kind == FL_ADDRESS_UNIX)
    {
        return "its host or port is missing or wrong";
    }
    return NULL;
}

int fl_proxy_parse(const char *text, const char *key, struct fl_proxy *ret, struct fl_err *err)
{
    struct fl_proxy proxy = {.key = key, .file_key = "'proxy_credentials'"};
    const char *why = proxy_split(text, &proxy);
    int rv = FL_OK;

    if (why != NULL) {
        rv = fl_err_set(err, FL_EINVAL, "%s: expected http://HOST:PORT of an HTTP proxy: %s", key,
                        why);
    } else {
        *ret = proxy;
    }
    fl_proxy_done(&proxy);
    return rv;
}

/* --- no_proxy --- */

static bool proxy_is_below(const char *host, const char *domain, size_t len)
{
    size_t n = strlen(host);

    return n >= len && strncasecmp(host + n - len, domain, len) == 0 &&
           (n == len || host[n - len - 1] == '.');
}

static bool proxy_in_range(const char *entry, const char *host)
{
    struct fl_address_range range;
    struct fl_ip ip;

    return fl_ip_parse(host, &ip) == FL_OK &&
           fl_address_range_parse(entry, &range, NULL) == FL_OK &&
           fl_address_range_has(&range, &ip);
}

/* One entry without a port: "*", ".example.org", "10.0.0.0/8", "2001:db8::1". */
static bool proxy_host_matches(const char *entry, const char *host)
{
    const char *domain = entry[0] == '.' ? entry + 1 : entry;

    return strcmp(entry, "*") == 0 || proxy_in_range(entry, host) ||
           (domain[0] != '\0' && proxy_is_below(host, domain, strlen(domain)));
}

static bool proxy_entry_matches(const char *text, size_t len, const struct fl_address *address)
{
    char entry[FL_PROXY_ADDRESS_MAX];
    uint64_t port;
    char *colon;

    if (len >= sizeof(entry)) {
        return false;
    }
    (void)memcpy(entry, text, len);
    entry[len] = '\0';
    if (proxy_host_matches(entry, address->host)) {
        return true;
    }
    colon = strrchr(entry, ':');
    if (colon == NULL || fl_str_to_u64(colon + 1, &port) != FL_OK || port != address->port) {
        return false;
    }
    *colon = '\0';
    if (entry[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        return proxy_host_matches(entry + 1, address->host);
    }
    return proxy_host_matches(entry, address->host);
}

/* 127.0.0.0/8, ::1, "localhost" and its subdomains (RFC 6761). */
static bool proxy_is_local(const struct fl_address *address)
{
    return address->kind == FL_ADDRESS_UNIX ||
           (address->kind == FL_ADDRESS_NAME && proxy_is_below(address->host, "localhost", 9)) ||
           proxy_in_range("127.0.0.0/8", address->host) || proxy_in_range("::1", address->host);
}

bool fl_no_proxy_has(const char *no_proxy, const struct fl_address *address)
{
    const char *at = no_proxy;

    if (proxy_is_local(address)) {
        return true;
    }
    for (at += strspn(at, ", \t"); *at != '\0'; at += strspn(at, ", \t")) {
        size_t len = strcspn(at, ", \t");

        if (proxy_entry_matches(at, len, address)) {
            return true;
        }
        at += len;
    }
    return false;
}

/* --- the file --- */

static int proxy_check_file(const struct fl_proxy_rule *rule, struct fl_err *err)
{
    struct stat st;

    if (stat(rule->credentials, &st) == 0 && !S_ISREG(st.st_mode)) {
        return fl_err_set(err, FL_EINVAL, "%s: '%s' is not a regular file", rule->file_key,
                          rule->credentials);
    }
    if (stat(rule->credentials, &st) == 0 && (st.st_mode & S_IRWXO) != 0) {
        return fl_err_set(err, FL_EPERM,
                          "%s: '%s' has mode %04o: other users can read the password; run: chmod "
                          "o= '%s'",
                          rule->file_key, rule->credentials, (unsigned)(st.st_mode & 07777),
                          rule->credentials);
    }
    return FL_OK;
}

/* One line USER:PASSWORD. RFC 7617: no control characters. */
static int proxy_read_file(const struct fl_proxy_rule *rule, char *out, size_t size,
                           struct fl_err *err)
{
    struct fl_buf buf = {.data = NULL};
    size_t len;
    size_t i;
    int rv = proxy_check_file(rule, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_read(rule->credentials, size, &buf, err);
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "%s", rule->file_key);
    }
    buf.secret = true;
    for (len = buf.len; len > 0 && (buf.data[len - 1] == '\n' || buf.data[len - 1] == '\r'); len--)
    {
    }
    for (i = 0; i < len && buf.data[i] >= ' ' && buf.data[i] != 0x7f; i++) {
    }
    if (i < len || len >= size || len == 0 || memchr(buf.data, ':', len) == NULL) {
        rv = fl_err_set(err, FL_EINVAL,
                        "%s: '%s': expected one line USER:PASSWORD of less than %zu bytes",
                        rule->file_key, rule->credentials, size);
    } else {
        (void)memcpy(out, buf.data, len);
        out[len] = '\0';
    }
    fl_buf_done(&buf);
    return rv;
}

/* --- the choice --- */

static const char *proxy_variable(const char *lower, const char *upper, const char **ret_key)
{
    const char *text = getenv(lower);

    *ret_key = lower;
    if (text == NULL) {
        text = getenv(upper);
        *ret_key = upper;
    }
    return text != NULL ? text : "";
}

/* `text` is empty when the rule and the environment name no proxy. */
static int proxy_of(const struct fl_proxy_rule *rule, const char *text, const char *key,
                    struct fl_proxy *ret, struct fl_err *err)
{
    int rv = fl_proxy_parse(text, key, ret, err);

    if (rv != FL_OK) {
        return rv;
    }
    ret->file_key = rule->file_key;
    if (text == rule->proxy && ret->user[0] != '\0') {
        fl_proxy_done(ret);
        return fl_err_set(err, FL_EINVAL,
                          "%s: user and password of a proxy belong into a file that others cannot "
                          "read: name it in %s",
                          key, rule->file_key);
    }
    if (rule->credentials[0] != '\0') {
        rv = proxy_read_file(rule, ret->user, sizeof(ret->user), err);
    }
    if (rv != FL_OK) {
        fl_proxy_done(ret);
    }
    return rv;
}

int fl_proxy_check(const struct fl_proxy_rule *rule, struct fl_err *err)
{
    struct fl_proxy proxy = {.key = NULL};
    const char *key = rule->key;
    const char *text = rule->proxy;
    int rv = FL_OK;

    if (text[0] == '\0') {
        text = proxy_variable("https_proxy", "HTTPS_PROXY", &key);
    }
    if (text[0] != '\0' && strcmp(text, FL_PROXY_NONE) != 0) {
        rv = proxy_of(rule, text, key, &proxy, err);
    }
    fl_proxy_done(&proxy);
    return rv;
}

int fl_proxy_find(const struct fl_proxy_rule *rule, const char *address, struct fl_proxy *ret,
                  bool *ret_direct, struct fl_err *err)
{
    const char *key = rule != NULL ? rule->key : "";
    const char *text = rule != NULL ? rule->proxy : FL_PROXY_NONE;
    const char *ignored;
    struct fl_address parsed;
    int rv = fl_address_parse(address, &parsed, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret_direct = true;
    if (text[0] == '\0') {
        text = proxy_variable("https_proxy", "HTTPS_PROXY", &key);
        if (fl_no_proxy_has(proxy_variable("no_proxy", "NO_PROXY", &ignored), &parsed)) {
            return FL_OK;
        }
    }
    if (text[0] == '\0' || strcmp(text, FL_PROXY_NONE) == 0 || parsed.kind == FL_ADDRESS_UNIX) {
        return FL_OK;
    }
    *ret_direct = false;
    return proxy_of(rule, text, key, ret, err);
}

void fl_proxy_done(struct fl_proxy *proxy)
{
    explicit_bzero(proxy, sizeof(*proxy));
}
