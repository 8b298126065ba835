#include "bench/sealed.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#define RECORD  16384
#define PAIR    65536 /* of a handshake */
#define FLIGHTS 10    /* more than a handshake has */

struct sealed {
    SSL_CTX *ctx;
    SSL *server, *client;
};

static void must(int ok, const char *what)
{
    if (ok != 1) {
        (void)fprintf(stderr, "TLS: %s\n", what);
        exit(EXIT_FAILURE);
    }
}

static SSL_CTX *context_new(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();

    must(ctx != NULL && key != NULL && x != NULL, "out of memory");
    must(X509_gmtime_adj(X509_getm_notBefore(x), 0) != NULL &&
             X509_gmtime_adj(X509_getm_notAfter(x), 3600) != NULL && X509_set_pubkey(x, key) == 1 &&
             X509_sign(x, key, EVP_sha256()) > 0,
         "a certificate");
    must(SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
             SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") == 1 &&
             SSL_CTX_use_certificate(ctx, x) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1,
         "its context");
    X509_free(x);
    EVP_PKEY_free(key);
    return ctx;
}

struct sealed *sealed_open(void)
{
    struct sealed *s = calloc(1, sizeof(*s));
    BIO *a = NULL;
    BIO *b = NULL;
    BIO *nowhere = BIO_new(BIO_s_null());
    int i;

    must(s != NULL && nowhere != NULL && BIO_new_bio_pair(&a, PAIR, &b, PAIR) == 1,
         "out of memory");
    s->ctx = context_new();
    s->server = SSL_new(s->ctx);
    s->client = SSL_new(s->ctx);
    must(s->server != NULL && s->client != NULL, "out of memory");
    SSL_set_bio(s->server, a, a);
    SSL_set_bio(s->client, b, b);
    SSL_set_accept_state(s->server);
    SSL_set_connect_state(s->client);
    for (i = 0; i < FLIGHTS; i++) {
        (void)SSL_do_handshake(s->client);
        (void)SSL_do_handshake(s->server);
    }
    must(SSL_is_init_finished(s->server), "the handshake");
    SSL_set0_wbio(s->server, nowhere);
    return s;
}

void sealed_write(struct sealed *s, const void *data, size_t len)
{
    const unsigned char *at = data;

    while (len > 0) {
        size_t n = len < RECORD ? len : RECORD;
        size_t written = 0;

        must(SSL_write_ex(s->server, at, n, &written), "a record");
        at += written;
        len -= written;
    }
}

void sealed_close(struct sealed *s)
{
    SSL_free(s->server);
    SSL_free(s->client);
    SSL_CTX_free(s->ctx);
    free(s);
}
