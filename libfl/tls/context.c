/*
 * OpenSSL's context of one side: protocol, ciphers, certificate and trust, and their renewal. Runs
 * on one loop. Handshakes and streams are in handshakes.c and tls_stream.c.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "libfl/base/str.h"
#include "libfl/net/address.h"
#include "libfl/pki/native.h"
#include "libfl/tls/tls_impl.h"

/*
 * The first takes half the time of the 256-bit cipher and has no known relevant weakness. The last
 * is for processors without AES, whose clients prefer it by SSL_OP_PRIORITIZE_CHACHA.
 */
#define CIPHERS "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS  "X25519:P-256:P-384"
/* Bytes of certificates that a peer may send: the largest chain. */
#define CERTIFICATES_BYTES (64 * 1024)
/* 2^24.5 full records exhaust a key of AES-GCM (RFC 8446, section 5.5); this is 128 GB. */
#define REKEY_RECORDS (UINT32_C(1) << 23)

static int fail_ssl(struct fl_err *err, int code, const char *what, const char *origin)
{
    const char *why = ERR_reason_error_string(ERR_peek_error());

    return fl_err_set(err, code, "%s%s%s: %s", origin, origin[0] != '\0' ? ": " : "", what,
                      why != NULL ? why : "out of memory");
}

/*
 * A server takes the first of its own ciphers that the client offers, so the client's order counts
 * only when it begins with ChaCha.
 */
static bool set_protocol(SSL_CTX *ctx, bool server)
{
    static const unsigned char h2[] = {2, 'h', '2'};

    (void)SSL_CTX_set_options(ctx, SSL_OP_PRIORITIZE_CHACHA | SSL_OP_CIPHER_SERVER_PREFERENCE);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_max_cert_list(ctx, CERTIFICATES_BYTES);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(ctx, CIPHERS) == 1 &&
           SSL_CTX_set1_groups_list(ctx, GROUPS) == 1 &&
           (server || SSL_CTX_set_alpn_protos(ctx, h2, sizeof(h2)) == 0);
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *in, unsigned in_len, void *arg)
{
    unsigned at = 0;

    (void)ssl;
    (void)arg;
    while (at + 2 < in_len) {
        if (in[at] == 2 && in[at + 1] == 'h' && in[at + 2] == '2') {
            *out = in + at + 1;
            *out_len = 2;
            return SSL_TLSEXT_ERR_OK;
        }
        at += 1u + in[at];
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Without ALPN in the ClientHello the ALPN callback above is not called. */
static int on_client_hello(SSL *ssl, int *alert, void *arg)
{
    const unsigned char *data;
    size_t len;

    (void)arg;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &data,
                                  &len) == 1)
    {
        return SSL_CLIENT_HELLO_SUCCESS;
    }
    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    ERR_raise(ERR_LIB_SSL, SSL_R_NO_APPLICATION_PROTOCOL);
    return SSL_CLIENT_HELLO_ERROR;
}

static void on_tls_message(int sent, int version, int type, const void *data, size_t len, SSL *ssl,
                           void *arg)
{
    struct fl__tls_stream *s = fl__tls_of_ssl(ssl);

    (void)version;
    (void)data;
    (void)len;
    (void)arg;
    if (sent == 0 && type == SSL3_RT_HANDSHAKE && s->established) {
        s->messages++;
    }
}

int fl__tls_context(struct fl_tls *tls, const struct fl_chain *chain, const struct fl_key *key,
                    SSL_CTX **ret, struct fl_err *err)
{
    SSL_CTX *ctx;
    size_t i;
    int rv;

    ERR_clear_error();
    ctx = SSL_CTX_new(tls->server ? TLS_server_method() : TLS_client_method());
    if (ctx == NULL || !set_protocol(ctx, tls->server)) {
        rv = fail_ssl(err, FL_ENOMEM, "TLS", "");
        goto fail;
    }
    if (chain != NULL) {
        if (SSL_CTX_use_certificate(ctx, fl_chain_native(chain, 0)) != 1) {
            rv = fail_ssl(err, FL_ECONF, "certificate unusable", fl_chain_origin(chain));
            goto fail;
        }
        for (i = 1; i < fl_chain_len(chain); i++) {
            if (SSL_CTX_add1_chain_cert(ctx, fl_chain_native(chain, i)) != 1) {
                rv = fail_ssl(err, FL_ECONF, "certificate chain unusable", fl_chain_origin(chain));
                goto fail;
            }
        }
        if (SSL_CTX_use_PrivateKey(ctx, fl_key_native(key)) != 1) {
            rv = fail_ssl(err, FL_ECONF, "private key unusable", fl_key_origin(key));
            goto fail;
        }
    }
    SSL_CTX_set_verify(ctx, tls->server && !tls->ask ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, fl__tls_on_verify, tls);
    SSL_CTX_set_msg_callback(ctx, on_tls_message);
    if (tls->server) {
        SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
        SSL_CTX_set_client_hello_cb(ctx, on_client_hello, NULL);
        fl__tls_tickets_server(tls, ctx);
    } else {
        fl__tls_tickets_client(ctx);
    }
    *ret = ctx;
    return FL_OK;

fail:
    SSL_CTX_free(ctx);
    ERR_clear_error();
    return rv;
}

static void replace_context(struct fl_tls *tls, struct fl_chain *chain, struct fl_trust *trust,
                            SSL_CTX *ctx)
{
    fl_chain_unref(tls->chain);
    fl_trust_unref(tls->trust);
    SSL_CTX_free(tls->ctx);
    tls->chain = chain != NULL ? fl_chain_ref(chain) : NULL;
    tls->trust = trust != NULL ? fl_trust_ref(trust) : NULL;
    tls->ctx = ctx;
}

static int copy_names(struct fl_tls *tls, const struct fl_tls_setup *setup)
{
    uint8_t address[16];

    if (setup->federation != NULL) {
        tls->federation = fl_str_dup(setup->federation);
    }
    if (setup->host != NULL) {
        tls->host = fl_str_dup(setup->host);
        tls->names_host = inet_pton(AF_INET, setup->host, address) != 1 &&
                          inet_pton(AF_INET6, setup->host, address) != 1;
    }
    return (setup->federation != NULL && tls->federation == NULL) ||
                   (setup->host != NULL && tls->host == NULL)
               ? FL_ENOMEM
               : FL_OK;
}

int fl_tls_create(const struct fl_tls_setup *setup, struct fl_tls **ret, struct fl_err *err)
{
    struct fl_tls *tls = calloc(1, sizeof(*tls));
    SSL_CTX *ctx = NULL;
    int rv;

    FL_REQUIRE(setup->now != NULL && (setup->chain == NULL) == (setup->key == NULL));
    FL_REQUIRE(setup->server ? setup->chain != NULL && (!setup->ask || setup->trust != NULL)
                             : (setup->trust != NULL) != (setup->pin != NULL));
    if (tls == NULL) {
        return fl_err_set(err, FL_ENOMEM, "TLS: out of memory");
    }
    *tls = (struct fl_tls){.refs = 1,
                           .server = setup->server,
                           .ask = setup->ask,
                           .has_pin = setup->pin != NULL,
                           .now = setup->now,
                           .now_ctx = setup->now_ctx,
                           .notice = setup->notice,
                           .notice_ctx = setup->notice_ctx,
                           .ticket_keys = {{.born = INT64_MIN}, {.born = INT64_MIN}},
                           .rekey_records = REKEY_RECORDS};
    if (setup->pin != NULL) {
        (void)memcpy(tls->pin, setup->pin, sizeof(tls->pin));
    }
    tls->bio_method = fl__tls_bio_method();
    if (tls->bio_method == NULL || copy_names(tls, setup) != FL_OK) {
        rv = fl_err_set(err, FL_ENOMEM, "TLS: out of memory");
    } else {
        rv = fl__tls_context(tls, setup->chain, setup->key, &ctx, err);
    }
    if (rv != FL_OK) {
        fl_tls_unref(tls);
        return rv;
    }
    replace_context(tls, setup->chain, setup->trust, ctx);
    *ret = tls;
    return FL_OK;
}

int fl_tls_renew(struct fl_tls *tls, struct fl_chain *chain, struct fl_key *key,
                 struct fl_trust *trust, struct fl_err *err)
{
    SSL_CTX *ctx = NULL;
    int rv;

    FL_REQUIRE((chain == NULL) == (key == NULL) && (trust == NULL) == (tls->trust == NULL));
    FL_REQUIRE(!tls->server || chain != NULL);
    rv = fl__tls_context(tls, chain, key, &ctx, err);
    if (rv != FL_OK) {
        return rv;
    }
    replace_context(tls, chain, trust, ctx);
    fl__tls_forget_session(tls); /* The session was made with the old certificate. */
    return FL_OK;
}

void fl_tls_unref(struct fl_tls *tls)
{
    if (tls == NULL || --tls->refs > 0) {
        return;
    }
    fl__tls_forget_session(tls);
    replace_context(tls, NULL, NULL, NULL);
    BIO_meth_free(tls->bio_method);
    OPENSSL_cleanse(tls->ticket_keys, sizeof(tls->ticket_keys));
    free(tls->spare);
    free(tls->federation);
    free(tls->host);
    free(tls);
}

struct fl_stream_filter fl_tls_filter(struct fl_tls *tls)
{
    return (struct fl_stream_filter){.wrap = fl__tls_wrap, .ctx = tls};
}

int fl_tls_host(const char *address, char *ret, size_t size, struct fl_err *err)
{
    struct fl_address parsed;
    int rv = fl_address_parse(address, &parsed, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (parsed.kind == FL_ADDRESS_ANY) {
        return fl_err_set(err, FL_EINVAL, "address '%s': \"*\" is not the name of a server",
                          address);
    }
    if (fl_str_copy(ret, size, parsed.kind == FL_ADDRESS_UNIX ? "localhost" : parsed.host) != FL_OK)
    {
        return fl_err_set(err, FL_EINVAL, "address '%s': the host's name is too long", address);
    }
    return FL_OK;
}
