/*
 * Parsing and formatting of gRPC's header values, and lists of metadata. Pure functions, any
 * thread. HPACK and HTTP/2 fields are libfl/h2's.
 */
#include "libfl/rpc/headers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Peers allow 8 KiB for all trailers, and each byte may become three. */
#define FL_MESSAGE_MAX 1024

bool fl_grpc_content_type_ok(const char *value, size_t len)
{
    static const char want[] = FL_GRPC_CONTENT_TYPE;
    size_t n = sizeof(want) - 1;

    return len >= n && memcmp(value, want, n) == 0 &&
           (len == n || value[n] == '+' || value[n] == ';');
}

char *fl_grpc_message_encode(const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t len = strlen(text);
    char *out;
    char *p;
    size_t i;

    if (len > FL_MESSAGE_MAX) {
        len = FL_MESSAGE_MAX;
        while (len > 0 && ((uint8_t)text[len] & 0xc0) == 0x80) {
            len--; /* never within a UTF-8 sequence */
        }
    }
    out = malloc(3 * len + 1);
    if (out == NULL) {
        return NULL;
    }
    p = out;
    for (i = 0; i < len; i++) {
        uint8_t c = (uint8_t)text[i];

        if (c >= 0x20 && c <= 0x7e && c != '%') {
            *p++ = (char)c;
        } else {
            *p++ = '%';
            *p++ = hex[c >> 4];
            *p++ = hex[c & 15];
        }
    }
    *p = '\0';
    return out;
}

static int header_hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return -1;
}

char *fl_grpc_message_decode(const char *value, size_t len)
{
    char *out = malloc(len + 1);
    size_t i;
    size_t n = 0;

    if (out == NULL) {
        return NULL;
    }
    for (i = 0; i < len; i++) {
        char c = value[i];

        if (c == '%' && len - i > 2 && header_hex_digit(value[i + 1]) >= 0 &&
            header_hex_digit(value[i + 2]) >= 0)
        {
            c = (char)(header_hex_digit(value[i + 1]) * 16 + header_hex_digit(value[i + 2]));
            i += 2;
        }
        out[n++] = c != '\0' ? c : '?';
    }
    out[n] = '\0';
    return out;
}

enum fl_grpc_status fl_grpc_status_parse(const char *value, size_t len)
{
    unsigned status = 0;
    size_t i;

    if (len == 0 || len > 2) {
        return FL_GRPC_UNKNOWN;
    }
    for (i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9') {
            return FL_GRPC_UNKNOWN;
        }
        status = status * 10 + (unsigned)(value[i] - '0');
    }
    return status <= FL_GRPC_UNAUTHENTICATED ? (enum fl_grpc_status)status : FL_GRPC_UNKNOWN;
}

void fl_grpc_timeout_format(char out[FL_GRPC_TIMEOUT_SIZE], uint64_t timeout_ms)
{
    static const struct {
        uint64_t ms;
        char unit;
    } units[] = {{1, 'm'}, {1000, 'S'}, {60 * 1000, 'M'}, {3600 * 1000, 'H'}};
    const uint64_t most = 99999999; /* "at most 8 digits" */
    size_t i = 0;
    uint64_t n = timeout_ms;

    while (n > most && i + 1 < sizeof(units) / sizeof(units[0])) {
        i++;
        n = timeout_ms / units[i].ms + (timeout_ms % units[i].ms != 0);
    }
    if (n > most) {
        n = most;
    }
    (void)snprintf(out, FL_GRPC_TIMEOUT_SIZE, "%" PRIu64 "%c", n, units[i].unit);
}

int fl_grpc_timeout_parse(const char *value, size_t len, uint64_t *ret_ms)
{
    uint64_t n = 0;
    size_t i;

    if (len < 2 || len > 9) {
        return FL_EINVAL;
    }
    for (i = 0; i + 1 < len; i++) {
        if (value[i] < '0' || value[i] > '9') {
            return FL_EINVAL;
        }
        n = n * 10 + (uint64_t)(value[i] - '0');
    }
    switch (value[len - 1]) {
    case 'H':
        n *= UINT64_C(3600) * 1000;
        break;
    case 'M':
        n *= UINT64_C(60) * 1000;
        break;
    case 'S':
        n *= 1000;
        break;
    case 'm':
        break;
    case 'u':
        n = (n + 999) / 1000;
        break;
    case 'n':
        n = (n + 999999) / 1000000;
        break;
    default:
        return FL_EINVAL;
    }
    *ret_ms = n;
    return FL_OK;
}
