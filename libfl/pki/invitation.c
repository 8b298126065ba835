/*
 * Writing and parsing of invitation lines, and the hash and prefix of their tokens. Pure functions,
 * any thread. Does not store invitations or check whether one is still valid.
 */
#include "libfl/pki/invitation.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/pki/pki_impl.h"

#define FL_INVITE_HEAD "fl1:"
#define FL_PIN_TEXT    43
#define FL_TOKEN_TEXT  28
#define FL_AGAIN       "ask for the line again (`flctl invite NAME` on the server) and copy it whole"

/* base64 of RFC 4648, section 5, without padding; at most 33 bytes. */
static void to_text(const uint8_t *data, size_t len, char *out, size_t size)
{
    unsigned char text[48];
    size_t n = (size_t)EVP_EncodeBlock(text, data, (int)len);
    size_t i;

    while (n > 0 && text[n - 1] == '=') {
        n--;
    }
    FL_REQUIRE(n < size);
    for (i = 0; i < n; i++) {
        out[i] = (char)(text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]);
    }
    out[n] = '\0';
    OPENSSL_cleanse(text, sizeof(text));
}

/* Accepts only what to_text() writes: one secret has one spelling. */
static bool from_text(const char *text, size_t text_len, uint8_t *out, size_t len)
{
    unsigned char padded[48];
    unsigned char data[36];
    char again[48];
    bool ok = text_len < sizeof(padded) - 4;
    size_t i;

    for (i = 0; ok && i < text_len; i++) {
        char c = text[i];

        ok = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_';
        padded[i] = (unsigned char)(c == '-' ? '+' : c == '_' ? '/' : c);
    }
    while (ok && i % 4 != 0) {
        padded[i++] = '=';
    }
    if (ok && EVP_DecodeBlock(data, padded, (int)i) >= (int)len) {
        to_text(data, len, again, sizeof(again));
        ok = strlen(again) == text_len && CRYPTO_memcmp(again, text, text_len) == 0;
        (void)memcpy(out, data, len);
    } else {
        ok = false;
    }
    OPENSSL_cleanse(padded, sizeof(padded));
    OPENSSL_cleanse(data, sizeof(data));
    OPENSSL_cleanse(again, sizeof(again));
    return ok;
}

/* A name or an address: without characters that separate the parts of the line. */
static bool host_fits(const char *host)
{
    size_t len = strlen(host);

    return len > 0 && len < FL_INVITE_HOST_MAX &&
           strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:%") ==
               len;
}

/* HOST:PORT,HOST:PORT…; false: there is none, or one that cannot be written. */
static bool invitation_write_addresses(char out[FL_INVITE_MAX], const struct fl_invite *invite)
{
    size_t len = 0;
    size_t i;

    for (i = 0; i < invite->n_addresses; i++) {
        const struct fl_invite_address *a = &invite->addresses[i];
        bool v6 = strchr(a->host, ':') != NULL;

        if (!host_fits(a->host) || a->port == 0) {
            return false;
        }
        /* Eight of the longest fit. */
        len += (size_t)snprintf(out + len, FL_INVITE_MAX - len, "%s%s%s%s:%u", i > 0 ? "," : "",
                                v6 ? "[" : "", a->host, v6 ? "]" : "", (unsigned)a->port);
    }
    return invite->n_addresses > 0;
}

int fl_invite_write(char *out, size_t size, const struct fl_invite *invite, struct fl_err *err)
{
    char pin[FL_PIN_TEXT + 1];
    char token[FL_TOKEN_TEXT + 1];
    char addresses[FL_INVITE_MAX];
    int n;

    if (!invitation_write_addresses(addresses, invite)) {
        return fl_err_set(
            err, FL_EINVAL,
            "an invitation needs the name or address and the port that clients connect to");
    }
    if (!fl_name_allowed(invite->federation)) {
        return fl_err_set(
            err, FL_EINVAL,
            "an invitation needs a federation's name of 1 to %d of A-Z a-z 0-9 . _ -, "
            "not starting with a dot or '-'",
            FL_NAME_MAX - 1);
    }
    to_text(invite->pin, sizeof(invite->pin), pin, sizeof(pin));
    to_text(invite->token, sizeof(invite->token), token, sizeof(token));
    n = snprintf(out, size, FL_INVITE_HEAD "%s:%s:%s:%s", addresses, invite->federation, pin,
                 token);
    OPENSSL_cleanse(token, sizeof(token));
    FL_REQUIRE(n > 0);
    return (size_t)n < size ? FL_OK
                            : fl_err_set(err, FL_EINVAL, "the names in an invitation are too long");
}

/* Cuts the part after the last colon off `text`; false when there is none. */
static bool cut_last(const char *text, size_t *len, const char **ret, size_t *ret_len)
{
    size_t i = *len;

    while (i > 0 && text[i - 1] != ':') {
        i--;
    }
    if (i == 0) {
        return false;
    }
    *ret = text + i;
    *ret_len = *len - i;
    *len = i - 1;
    return true;
}

static bool copy_part(char *out, size_t size, const char *text, size_t len)
{
    if (len >= size) {
        return false;
    }
    (void)memcpy(out, text, len);
    out[len] = '\0';
    return strlen(out) == len;
}

static bool invitation_read_port(const char *text, size_t len, uint16_t *ret)
{
    char digits[8];
    uint64_t port;

    if (!copy_part(digits, sizeof(digits), text, len) || fl_str_to_u64(digits, &port) != FL_OK ||
        port == 0 || port > UINT16_MAX)
    {
        return false;
    }
    *ret = (uint16_t)port;
    return true;
}

static bool read_host(struct fl_invite_address *address, const char *text, size_t len)
{
    bool v6 = len > 2 && text[0] == '[' && text[len - 1] == ']';

    return copy_part(address->host, sizeof(address->host), text + v6, len - (v6 ? 2 : 0)) &&
           host_fits(address->host) && v6 == (strchr(address->host, ':') != NULL);
}

/* HOST:PORT */
static const char *read_address(struct fl_invite_address *address, const char *text, size_t len)
{
    const char *part;
    size_t n;

    if (!cut_last(text, &len, &part, &n) || !invitation_read_port(part, n, &address->port)) {
        return "the port in it is not a number from 1 to 65535";
    }
    return read_host(address, text, len) ? NULL : "the host in it is neither a name nor an address";
}

static const char *read_addresses(struct fl_invite *invite, const char *text, size_t len)
{
    const char *end = text + len;

    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *why;

        if (invite->n_addresses == FL_INVITE_ADDRESSES) {
            return "it has more than 8 addresses";
        }
        why = read_address(&invite->addresses[invite->n_addresses], text,
                           (size_t)((comma != NULL ? comma : end) - text));
        if (why != NULL) {
            return why;
        }
        invite->n_addresses++;
        if (comma == NULL) {
            return NULL;
        }
        text = comma + 1;
    }
}

static const char *invitation_parse(const char *text, size_t len, struct fl_invite *invite)
{
    size_t head = strlen(FL_INVITE_HEAD);
    const char *part;
    size_t n;

    if (len < head || memcmp(text, FL_INVITE_HEAD, head) != 0) {
        return len > 2 && memcmp(text, "fl", 2) == 0 && memchr(text, ':', len) != NULL
                   ? "its version is not fl1; check whether this program is older than the server"
                   : "it does not begin with 'fl1:'";
    }
    text += head;
    len -= head;
    if (!cut_last(text, &len, &part, &n) || !from_text(part, n, invite->token, FL_TOKEN_SIZE)) {
        return "its last part is not a token of 28 characters: the end of the line is missing or "
               "altered";
    }
    if (!cut_last(text, &len, &part, &n) || !from_text(part, n, invite->pin, FL_KEY_HASH)) {
        return "its part before the token is not the hash of a key, of 43 characters";
    }
    if (!cut_last(text, &len, &part, &n) ||
        !copy_part(invite->federation, sizeof(invite->federation), part, n) ||
        !fl_name_allowed(invite->federation))
    {
        return "the name of the federation in it is invalid";
    }
    return read_addresses(invite, text, len);
}

int fl_invite_parse(const char *text, size_t len, struct fl_invite *ret, struct fl_err *err)
{
    struct fl_invite invite = {.n_addresses = 0};
    const char *why;

    while (len > 0 && strchr(" \t\r\n", text[0]) != NULL && text[0] != '\0') {
        text++;
        len--;
    }
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL && text[len - 1] != '\0') {
        len--;
    }
    if (len == 0) {
        return fl_err_set(err, FL_EFORMAT,
                          "the invitation is missing: a line 'fl1:…' was expected; %s", FL_AGAIN);
    }
    why = len < FL_INVITE_MAX ? invitation_parse(text, len, &invite)
                              : "it is longer than any invitation";
    if (why != NULL) {
        fl_invite_done(&invite);
        return fl_err_set(err, FL_EFORMAT,
                          "invalid invitation: %s; fl1:HOST:PORT,…:FEDERATION:PIN:TOKEN was "
                          "expected, in one line of one word; %s",
                          why, FL_AGAIN);
    }
    *ret = invite;
    fl_invite_done(&invite);
    return FL_OK;
}

void fl_invite_done(struct fl_invite *invite)
{
    OPENSSL_cleanse(invite, sizeof(*invite));
}

int fl_token_hash(const uint8_t token[FL_TOKEN_SIZE], uint8_t out[32])
{
    return EVP_Digest(token, FL_TOKEN_SIZE, out, NULL, EVP_sha256(), NULL) == 1
               ? FL_OK
               : fl__openssl_forget(FL_ENOMEM);
}

const char *fl_token_prefix(const uint8_t token[FL_TOKEN_SIZE], char out[FL_TOKEN_PREFIX_TEXT])
{
    to_text(token, FL_TOKEN_PREFIX, out, FL_TOKEN_PREFIX_TEXT);
    return out;
}
