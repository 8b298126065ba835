#include <stdlib.h>

#include <openssl/err.h>

#include "libfl/tls/tls_impl.h"

/*
 * Handshake steps in a turn of the loop: 1 to 4 ms of it. A step is done in `on_wake` of the stream
 * below, which runs in the next turn of the loop, and only streams that have their turn are woken;
 * so nothing here needs to know when a turn begins.
 */
#define STEPS_PER_TURN 4

static void give_turns(struct fl_tls *tls)
{
    struct fl__tls_stream *s;

    while (tls->n_active < STEPS_PER_TURN &&
           (s = FL_LIST_FIRST(&tls->waiting, struct fl__tls_stream, queued)) != NULL)
    {
        fl_list_remove(&s->queued);
        s->has_turn = true;
        tls->n_active++;
        fl_stream_wake(s->below);
    }
}

void fl__tls_handshakes_soon(struct fl__tls_stream *s)
{
    struct fl_tls *tls = s->tls;

    if (fl_list_is_linked(&s->queued) || s->has_turn) {
        return;
    }
    fl_list_append(&tls->waiting, &s->queued);
    give_turns(tls);
    fl__tls_set_pause(s); /* A waiting peer is paused: it sends no more than was read already. */
}

void fl__tls_handshakes_leave(struct fl__tls_stream *s)
{
    struct fl_tls *tls = s->tls;

    fl_list_remove(&s->queued);
    if (s->has_turn) {
        s->has_turn = false;
        tls->n_active--;
        give_turns(tls);
    }
}

/*
 * The SSL object is made on the first step only: a peer that connects and sends nothing costs
 * little.
 */
static bool make_ssl(struct fl__tls_stream *s)
{
    struct fl_tls *tls = s->tls;
    BIO *bio;

    s->ssl = SSL_new(tls->ctx);
    if (s->ssl == NULL || SSL_set_app_data(s->ssl, s) != 1) {
        return false;
    }
    bio = fl__tls_bio(s);
    if (bio == NULL) {
        return false;
    }
    SSL_set_bio(s->ssl, bio, bio);
    if (tls->server) {
        SSL_set_accept_state(s->ssl);
        return true;
    }
    SSL_set_connect_state(s->ssl);
    if (tls->names_host && SSL_set_tlsext_host_name(s->ssl, tls->host) != 1) {
        return false;
    }
    fl__tls_resume(s);
    return true;
}

static void handshake_done(struct fl__tls_stream *s)
{
    const unsigned char *name = NULL;
    unsigned len = 0;

    if (SSL_session_reused(s->ssl) == 1) {
        s->identity = s->resumed != NULL ? *s->resumed : (struct fl_identity){0};
    }
    free(s->resumed);
    s->resumed = NULL;
    if (s->tls->server) {
        /*
         * A server has the peer's identity and has sent the ticket: the certificates would be half
         * of the memory of an idle client. Sessions of a server are in no cache, so this is the
         * only reference.
         */
        STACK_OF(X509) *chain = SSL_get_peer_cert_chain(s->ssl);

        while (chain != NULL && sk_X509_num(chain) > 0) {
            X509_free(sk_X509_pop(chain));
        }
        (void)SSL_SESSION_set1_ticket_appdata(SSL_get_session(s->ssl), NULL, 0);
        fl_chain_unref(s->shown);
        s->shown = NULL;
    }
    SSL_get0_alpn_selected(s->ssl, &name, &len);
    if (!(len == 2 && name[0] == 'h' && name[1] == '2')) {
        fl__tls_fail(s, FL_EPROTO,
                     "it speaks TLS, but not HTTP/2 (\"h2\" in ALPN); check that the address is "
                     "that of fl-serverd");
        return;
    }
    fl__tls_opened(s);
}

void fl__tls_handshakes(struct fl__tls_stream *s)
{
    const char *why = NULL;
    int rv;

    fl__tls_handshakes_leave(s); /* The next stream has its turn in the next turn of the loop. */
    fl__tls_set_pause(s);
    if (s->sm.state != FL__TLS_HANDSHAKING) {
        return;
    }
    if (!s->checked_tls && s->in_len > 0) {
        s->checked_tls = true;
        why = fl__tls_not_tls(s);
    }
    if (why != NULL) {
        s->refusal_reason = "no TLS"; /* reason of a notice, if one is due */
        /* A peer without TLS stays so until its configuration changes: a permanent error. */
        fl__tls_fail(s, fl__tls_is_plain_server(s) ? FL_EPERM : FL_EPROTO, why);
        return;
    }
    ERR_clear_error();
    if (s->ssl == NULL && !make_ssl(s)) {
        fl__tls_fail(s, FL_ENOMEM, "out of memory for a TLS connection");
        return;
    }
    rv = SSL_do_handshake(s->ssl);
    if (rv == 1) {
        handshake_done(s);
    } else if (SSL_get_error(s->ssl, rv) != SSL_ERROR_WANT_READ) {
        fl__tls_fail_ssl(s);
    }
    fl__tls_keep_rest(s);
    fl__tls_wake_if_output(s);
}
