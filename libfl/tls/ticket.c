#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include "libfl/base/buf.h"
#include "libfl/tls/tls_impl.h"

/*
 * Session resumption, on the loop of the streams. A server stores no sessions: its ticket contains
 * the session and the chain that the client has presented, encrypted with a key that only this
 * server has and that rotates. A client keeps the newest ticket and uses it once. On both sides the
 * peer's chain is verified again before the session is used; if it is no longer trusted, a full
 * handshake reports the reason.
 *
 * A used ticket proves that its holder has the secret of that session, so the chain in it is that
 * of the peer. A ticket that was decrypted and then not used proves nothing: `resumed` counts only
 * when SSL_session_reused() is true.
 */

/*
 * A key makes tickets for this time, and decrypts them for the same time again. A client that
 * reconnects later makes a full handshake, which costs a millisecond.
 */
#define KEY_S ((int64_t)12 * 3600)
/* Longer chains are not put into tickets, which are sent with each handshake. */
#define CHAIN_BYTES 8192

/* The first byte of our data in a ticket. */
enum { NO_CHAIN = 0, WITH_CHAIN = 1 };

/* --- keys --- */

static int new_key(struct fl_tls *tls, int64_t now)
{
    struct fl__tls_ticket_key key = {.born = now};

    if (RAND_bytes(key.name, sizeof(key.name)) != 1 ||
        RAND_priv_bytes(key.cipher, sizeof(key.cipher)) != 1 ||
        RAND_priv_bytes(key.mac, sizeof(key.mac)) != 1)
    {
        return FL_ENOMEM;
    }
    tls->ticket_keys[1] = tls->ticket_keys[0];
    tls->ticket_keys[0] = key;
    OPENSSL_cleanse(&key, sizeof(key));
    return FL_OK;
}

static bool in_span(const struct fl__tls_ticket_key *key, int64_t now, int64_t span)
{
    /* A clock that was set back expires a key too. */
    return key->born != INT64_MIN && now >= key->born && now - key->born < span;
}

static const struct fl__tls_ticket_key *key_named(const struct fl_tls *tls, const uint8_t *name)
{
    int64_t now = tls->now(tls->now_ctx);
    int i;

    for (i = 0; i < 2; i++) {
        const struct fl__tls_ticket_key *key = &tls->ticket_keys[i];

        if (in_span(key, now, 2 * KEY_S) && memcmp(key->name, name, sizeof(key->name)) == 0) {
            return key;
        }
    }
    return NULL;
}

static bool init_mac(EVP_MAC_CTX *mac, const struct fl__tls_ticket_key *key)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };

    return EVP_MAC_init(mac, key->mac, sizeof(key->mac), params) == 1;
}

/* SSL_CTX_set_tlsext_ticket_key_evp_cb(3): 1 continues, 0 no ticket, -1 fails. */
static int on_ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                         EVP_MAC_CTX *mac, int seal)
{
    struct fl_tls *tls = fl__tls_of_ssl(ssl)->tls;
    int64_t now = tls->now(tls->now_ctx);
    const struct fl__tls_ticket_key *key;

    if (seal == 0) {
        key = key_named(tls, name);
        return key == NULL ? 0
               : EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv) == 1 &&
                       init_mac(mac, key)
                   ? 1
                   : -1;
    }
    if (!in_span(&tls->ticket_keys[0], now, KEY_S) && new_key(tls, now) != FL_OK) {
        return 0;
    }
    key = &tls->ticket_keys[0];
    (void)memcpy(name, key->name, sizeof(key->name));
    return RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) == 1 &&
                   EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv) == 1 &&
                   init_mac(mac, key)
               ? 1
               : -1;
}

/* --- a server's data in a ticket --- */

static int add_chain(struct fl_buf *buf, const struct fl_chain *chain)
{
    const uint8_t kind = chain != NULL ? WITH_CHAIN : NO_CHAIN;
    int rv = fl_buf_add(buf, &kind, 1);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; chain != NULL && i < fl_chain_len(chain); i++) {
        size_t head = buf->len;
        size_t len;

        rv = fl_buf_add(buf, "\0\0", 2);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_chain_der(chain, i, buf);
        if (rv != FL_OK) {
            return rv;
        }
        len = buf->len - head - 2;
        buf->data[head] = (uint8_t)(len >> 8);
        buf->data[head + 1] = (uint8_t)len;
    }
    return FL_OK;
}

/*
 * Without the data the ticket is useless, which only costs a handshake. The ticket of a resumed
 * session has the data of the session.
 */
static int on_seal(SSL *ssl, void *arg)
{
    struct fl__tls_stream *s = fl__tls_of_ssl(ssl);
    struct fl_buf buf;

    (void)arg;
    fl_buf_init(&buf, CHAIN_BYTES);
    if (SSL_session_reused(ssl) == 0 && add_chain(&buf, s->shown) == FL_OK) {
        (void)SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), buf.data, buf.len);
    }
    fl_buf_done(&buf);
    return 1;
}

/* The ticket was encrypted by us: this fails only when out of memory. */
static struct fl_chain *read_chain(const uint8_t *data, size_t len, const char *peer)
{
    struct fl_der certs[FL_CHAIN_MAX];
    struct fl_chain *chain = NULL;
    size_t n = 0;
    size_t at = 0;

    while (len - at > 2 && n < FL_CHAIN_MAX) {
        size_t size = (size_t)data[at] << 8 | data[at + 1];

        if (size > len - at - 2) {
            return NULL;
        }
        certs[n++] = (struct fl_der){.data = data + at + 2, .len = size};
        at += 2 + size;
    }
    return n > 0 && fl_chain_from_der(certs, n, peer, &chain, NULL) == FL_OK ? chain : NULL;
}

/* True when the peer of a session is trusted now; then `resumed` is its identity. */
static bool ticket_verify_peer(struct fl__tls_stream *s, const struct fl_chain *chain)
{
    struct fl_identity identity = {0};
    struct fl_refusal refusal;

    free(s->resumed);
    s->resumed = NULL;
    if (chain != NULL &&
        (s->tls->trust == NULL || !fl__tls_believes(s->tls, chain, &identity, &refusal, NULL)))
    {
        return false;
    }
    s->resumed = malloc(sizeof(*s->resumed));
    if (s->resumed == NULL) {
        return false;
    }
    *s->resumed = identity;
    return true;
}

static bool recognise_ticket(struct fl__tls_stream *s, SSL_SESSION *session)
{
    struct fl_chain *chain;
    void *data = NULL;
    const uint8_t *bytes;
    size_t len = 0;
    bool known;

    if (SSL_SESSION_get0_ticket_appdata(session, &data, &len) != 1 || data == NULL || len == 0) {
        return false;
    }
    bytes = data;
    if (bytes[0] == NO_CHAIN) {
        return ticket_verify_peer(s, NULL);
    }
    chain = read_chain(bytes + 1, len - 1, fl_stream_peer(s->below));
    known = chain != NULL && ticket_verify_peer(s, chain);
    fl_chain_unref(chain);
    return known;
}

static SSL_TICKET_RETURN on_ticket_open(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                        size_t name_len, SSL_TICKET_STATUS status, void *arg)
{
    (void)name;
    (void)name_len;
    (void)arg;
    if ((status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW) &&
        recognise_ticket(fl__tls_of_ssl(ssl), session))
    {
        return SSL_TICKET_RETURN_USE_RENEW;
    }
    return SSL_TICKET_RETURN_IGNORE_RENEW;
}

void fl__tls_tickets_server(struct fl_tls *tls, SSL_CTX *ctx)
{
    static const unsigned char context[] = "fl";

    (void)tls;
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    /* Without a context OpenSSL resumes no session that had a certificate. */
    (void)SSL_CTX_set_session_id_context(ctx, context, sizeof(context) - 1);
    (void)SSL_CTX_set_num_tickets(ctx, 1);
    (void)SSL_CTX_set_timeout(ctx, (long)KEY_S);
    (void)SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket_key);
    (void)SSL_CTX_set_session_ticket_cb(ctx, on_seal, on_ticket_open, NULL);
}

/* --- a client's session --- */

void fl__tls_forget_session(struct fl_tls *tls)
{
    SSL_SESSION_free(tls->session);
    tls->session = NULL;
    fl_chain_unref(tls->session_chain);
    tls->session_chain = NULL;
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct fl__tls_stream *s = fl__tls_of_ssl(ssl);
    struct fl_tls *tls = s->tls;

    /* Sessions of credentials that were replaced meanwhile are not kept. */
    if (s->shown == NULL || tls->has_pin || SSL_get_SSL_CTX(ssl) != tls->ctx) {
        return 0;
    }
    fl__tls_forget_session(tls);
    tls->session = session;
    tls->session_chain = fl_chain_ref(s->shown);
    return 1;
}

void fl__tls_tickets_client(SSL_CTX *ctx)
{
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
}

void fl__tls_resume(struct fl__tls_stream *s)
{
    struct fl_tls *tls = s->tls;

    if (tls->session == NULL) {
        return;
    }
    if (ticket_verify_peer(s, tls->session_chain) && SSL_set_session(s->ssl, tls->session) == 1) {
        s->shown = fl_chain_ref(tls->session_chain);
    }
    fl__tls_forget_session(
        tls); /* A ticket is used once, so that connections cannot be linked by an observer. */
}
