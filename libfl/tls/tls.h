#ifndef FL_TLS_TLS_H
#define FL_TLS_TLS_H

/*
 * TLS 1.3 as a filter over a stream (libfl/net/stream.h), the only user of libssl. Both sides
 * require ALPN "h2"; no early data, no older version, no renegotiation, no compression.
 *
 * Handshakes cost 0.1 to 1 ms of the processor. They are done in steps, and a fl_tls does four
 * steps in a turn of the loop; further connections wait in the order of their arrival. So
 * established streams have their turns in between, however many clients connect at once.
 *
 * An idle stream holds no buffer. A session is resumed with a ticket, of which a client keeps one;
 * the peer is then verified again, at the present time and against the present trust.
 *
 * Errors (on_close of the stream; its text begins with the peer):
 *   FL_EPERM     a certificate was refused, ours by the peer or the peer's by us: retrying soon
 * does not help FL_EPROTO    it speaks no TLS, not this TLS or not HTTP/2, or a record is damaged
 *   FL_EUNAVAIL  it closed the connection during the handshake
 *   FL_ELIMIT    it changes keys all the time
 *   FL_ENOMEM    the stream ends, others continue
 * A stream that ends without a close_notify ends with FL_OK, like one without TLS: the user of the
 * stream knows whether data is missing.
 *
 * Threading: one loop.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/net/stream.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/key.h"
#include "libfl/pki/trust.h"

/*
 * The certificate that one side presents and the roots that it trusts. Reference-counted: streams
 * keep a reference.
 */
struct fl_tls;

struct fl_tls_setup {
    bool server;
    /* Referenced. A client that joins has neither. */
    struct fl_chain *chain;
    struct fl_key *key;
    /* Referenced. NULL: a server that does not request certificates, a client with `pin`. */
    struct fl_trust *trust;
    /* A server: request a certificate. A peer without one is accepted as FL_IDENTITY_NONE. */
    bool ask;
    /*
     * A client that joins: SHA-256 of the root's public key, and the federation of that root.
     * Copied.
     */
    const uint8_t *pin; /* FL_KEY_HASH bytes, or NULL */
    const char *federation;
    /* A client: the name or address that the server's certificate must have, copied. */
    const char *host;
    /* Seconds since 1970. */
    int64_t (*now)(void *ctx);
    void *now_ctx;
    /*
     * A certificate was refused (FL_EPERM), in one line: which file or peer, what was expected,
     * what was found, what to do. `reason` is a literal, the same for events of one kind. `peer`
     * and `text` are borrowed. Other errors of a stream are reported by its on_close. May be NULL.
     */
    void (*notice)(void *ctx, const char *peer, const char *reason, const char *text);
    void *notice_ctx;
};

/* FL_ECONF: the library rejects the chain or the key. */
FL_MUST_CHECK int fl_tls_create(const struct fl_tls_setup *setup, struct fl_tls **ret,
                                struct fl_err *err);
/*
 * Streams that begin their handshake from now on use the new chain and trust; established ones
 * continue. On error nothing has changed.
 */
FL_MUST_CHECK int fl_tls_renew(struct fl_tls *tls, struct fl_chain *chain, struct fl_key *key,
                               struct fl_trust *trust, struct fl_err *err);
void fl_tls_unref(struct fl_tls *tls); /* NULL is allowed. */

/* Keeps no reference: `tls` outlives the filter, its streams may outlive both. */
struct fl_stream_filter fl_tls_filter(struct fl_tls *tls);

/*
 * The verified chain of the server at the other end of a stream that this filter made; NULL before
 * the handshake. Valid until on_close has returned. On a server's side NULL.
 */
const struct fl_chain *fl_tls_peer_chain(const struct fl_stream *stream);

/* `host` of a client from the address it connects to: "fl.example.org:7443", "[2001:db8::1]:7443".
   A unix socket has the name "localhost". FL_EINVAL. */
FL_MUST_CHECK int fl_tls_host(const char *address, char *ret, size_t size, struct fl_err *err);

#endif
