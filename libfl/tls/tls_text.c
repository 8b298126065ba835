/*
 * Error messages of TLS: recognises peers that speak no TLS, and turns alerts and errors of OpenSSL
 * into one line with the remedy. Runs on the loop of the stream. Texts about untrusted certificates
 * are in libfl/pki.
 */
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

#include "libfl/tls/tls_impl.h"

static bool tls_begins_with(const struct fl__tls_stream *s, const char *with)
{
    size_t n = strlen(with);

    return s->in_len >= n && memcmp(s->in, with, n) == 0;
}

/*
 * RFC 8446, section 5.1: type, then a version whose first byte never changed. A client begins with
 * a handshake record, a server may begin with an alert.
 */
static bool may_be_tls(const struct fl__tls_stream *s)
{
    uint8_t type = s->in[0];

    if (s->in_len > 1 && s->in[1] != 3) {
        return false;
    }
    return type == SSL3_RT_HANDSHAKE || (!s->tls->server && type == SSL3_RT_ALERT);
}

bool fl__tls_is_plain_server(const struct fl__tls_stream *s)
{
    /* Servers begin with a SETTINGS frame on stream 0, of at most 255 bytes in practice. */
    return !s->tls->server && s->in_len >= 5 && s->in[0] == 0 && s->in[1] == 0 && s->in[3] == 4 &&
           s->in[4] == 0;
}

const char *fl__tls_not_tls(struct fl__tls_stream *s)
{
    /* A fatal alert, protocol_version: a TLS implementation reports it as an error. */
    static const uint8_t alert[] = {SSL3_RT_ALERT,          3, 3, 0, 2, SSL3_AL_FATAL,
                                    SSL_AD_PROTOCOL_VERSION};

    if (may_be_tls(s)) {
        return NULL;
    }
    if (!s->tls->server) {
        if (fl__tls_is_plain_server(s)) {
            return "it speaks HTTP/2 without TLS: this address of the server is `insecure`; "
                   "connect to one with TLS, or set `insecure` here too";
        }
        return "it speaks no TLS; check whether another service uses this address";
    }
    if (!fl__tls_out_add(s, alert, sizeof(alert))) {
        return "out of memory for the alert to a peer without TLS";
    }
    if (tls_begins_with(s, "PRI * HTTP/2")) {
        return "it speaks HTTP/2 without TLS, and this address requires TLS; join that client "
               "(fl-clientd --join) or set `tls` there, or let it use an address that is "
               "`insecure`";
    }
    if (tls_begins_with(s, "GET ") || tls_begins_with(s, "POST ") || tls_begins_with(s, "HEAD ")) {
        return "it speaks HTTP/1 without TLS, and this address serves gRPC over TLS";
    }
    return "it speaks no TLS, and this address requires TLS";
}

/* Alerts about certificates (RFC 8446, section 6.2), described for the side that receives them. */
static const struct {
    int alert;
    const char *server; /* text for our certificate, when a server has sent the alert */
    const char *client;
} refusals[] = {
    {SSL_AD_BAD_CERTIFICATE,
     "it rejects our certificate as bad (its log has the reason; compare the clocks of both hosts)",
     "it rejects our certificate as bad: this server is not the one it expected, or the clocks "
     "differ (its log has the reason)"},
    {SSL_AD_UNSUPPORTED_CERTIFICATE,
     "it rejects our certificate for its usage: a client's certificate is needed here",
     "it rejects our certificate for its usage: a server's certificate is needed here"},
    {SSL_AD_CERTIFICATE_REVOKED, "our certificate is revoked; ask for a new invitation",
     "our certificate is revoked; issue a new one"},
    {SSL_AD_CERTIFICATE_EXPIRED,
     "our certificate has expired or is not valid yet; compare the clocks of both hosts, else join "
     "again",
     "our certificate has expired or is not valid yet; compare the clocks of both hosts, else "
     "issue a new one"},
    {SSL_AD_CERTIFICATE_UNKNOWN, "it rejects our certificate (its log has the reason)",
     "it rejects our certificate (its log has the reason)"},
    {SSL_AD_UNKNOWN_CA,
     "it does not trust the issuer of our certificate: it is of another federation, or its root "
     "was replaced; join this one",
     "it does not trust the issuer of our certificate: it has joined another federation, or has an "
     "old root"},
    {SSL_AD_ACCESS_DENIED, "access denied: it knows our certificate and rejects it",
     "access denied: it knows our certificate and rejects it"},
    {SSL_AD_HANDSHAKE_FAILURE,
     "it accepts none of the names in our certificate, or rejects the handshake (its log has the "
     "reason); compare the certificate with `tls.names` of the server",
     "it accepts none of the names in our certificate, or rejects the handshake (its log has the "
     "reason); check which federation and server it connects to"},
    {SSL_AD_CERTIFICATE_REQUIRED,
     "it requires a certificate and we have none; join (fl-clientd --join) or set "
     "`tls.certificate`",
     "it requires a certificate and we have none"},
};

static void fail_alert(struct fl__tls_stream *s, int alert)
{
    const char *origin = s->tls->chain != NULL ? fl_chain_origin(s->tls->chain) : "";
    const char *name = SSL_alert_desc_string_long(alert);
    char text[FL__TLS_TEXT_MAX];
    size_t i;

    for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (refusals[i].alert == alert) {
            (void)snprintf(text, sizeof(text), "%s%s%.300s [TLS alert: %s]",
                           s->tls->server ? refusals[i].client : refusals[i].server,
                           origin[0] != '\0' ? "; ours is " : "", origin, name);
            s->refusal_reason = "refused by the peer";
            fl__tls_fail(s, FL_EPERM, text);
            return;
        }
    }
    if (alert == SSL_AD_NO_APPLICATION_PROTOCOL) {
        (void)snprintf(
            text, sizeof(text),
            "it speaks TLS, but not HTTP/2; check whether another service uses this address");
    } else if (alert == SSL_AD_PROTOCOL_VERSION) {
        (void)snprintf(text, sizeof(text), "it does not support TLS 1.3, which is required");
    } else {
        (void)snprintf(text, sizeof(text), "it closed the connection with TLS alert: %s (alert %d)",
                       name, alert);
    }
    fl__tls_fail(s, FL_EPROTO, text);
}

static const char *what_of(int reason, bool established)
{
    switch (reason) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_BAD_PROTOCOL_VERSION_NUMBER:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
    case SSL_R_VERSION_TOO_LOW:
        return "it does not support TLS 1.3, which is required";
    case SSL_R_NO_APPLICATION_PROTOCOL:
        return "it speaks TLS, but not HTTP/2 (\"h2\" in ALPN); check whether it is another "
               "program";
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_BAD_LENGTH:
    case SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
    case SSL_R_WRONG_VERSION_NUMBER:
        return "a record is damaged, or was changed on the way";
    default:
        return established ? "it violates the TLS protocol" : "its handshake is invalid";
    }
}

void fl__tls_fail_ssl(struct fl__tls_stream *s)
{
    unsigned long error = ERR_peek_error();
    int reason = ERR_GET_REASON(error);
    char text[FL__TLS_TEXT_MAX];

    ERR_clear_error();
    if (s->no_memory || reason == ERR_R_MALLOC_FAILURE) {
        fl__tls_fail(s, FL_ENOMEM, "out of memory in TLS");
    } else if (s->refusal != NULL) {
        fl__tls_fail(s, FL_EPERM, s->refusal);
    } else if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET &&
               reason <= SSL_AD_REASON_OFFSET + 255)
    {
        fail_alert(s, reason - SSL_AD_REASON_OFFSET);
    } else {
        const char *why = ERR_reason_error_string(error);

        (void)snprintf(text, sizeof(text), "%s (%s)", what_of(reason, s->established),
                       why != NULL ? why : "no details from the library");
        fl__tls_fail(s, FL_EPROTO, text);
    }
}
