#ifndef FL_TLS_TLS_H
#define FL_TLS_TLS_H

/*
 * TLS 1.3 as a filter over a stream (libfl/net/stream.h), the only user of libssl. ALPN "h2" is
 * demanded by both sides; no early data, no older version, no renegotiation, no compression.
 *
 * Handshakes cost 0.1 to 1 ms of the processor. They are done in steps, of which a fl_tls does four
 * in a turn of the loop; who comes when more are to be done waits its turn, first come first
 * served. So the streams that stand have their turns in between, however many come at once.
 *
 * An idle stream holds no buffer. A session is resumed by a ticket, of which a client keeps one;
 * who the peer is then is verified again, at the present time and against the present trust.
 *
 * Errors (on_close of the stream; its text begins with the peer):
 *   FL_EPERM     a certificate was refused, ours by the peer or the peer's by us: trying again soon
 *                does not help
 *   FL_EPROTO    it speaks no TLS, not this TLS or not HTTP/2, or a record is damaged
 *   FL_EUNAVAIL  it ended the connection in the handshake
 *   FL_ELIMIT    it changes keys all the time
 *   FL_ENOMEM    the stream ends, others go on
 * A stream that ends without a close_notify ends with FL_OK, as one below TLS: who is above knows
 * whether something was cut.
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

/* What one side shows and whom it believes. Counted: streams keep a reference. */
struct fl_tls;

struct fl_tls_setup {
    bool server;
    /* Referenced. A client that joins has neither. */
    struct fl_chain *chain;
    struct fl_key *key;
    /* Referenced. NULL: a server that does not ask, a client with `pin`. */
    struct fl_trust *trust;
    /* A server: ask for a certificate. A peer without one is let in as FL_IDENTITY_NONE. */
    bool ask;
    /* A client that joins: SHA-256 of the root's public key, and whose root that is. Copied. */
    const uint8_t *pin; /* FL_KEY_HASH bytes, or NULL */
    const char *federation;
    /* A client: the name or address that the server's certificate must have, copied. */
    const char *host;
    /* Seconds since 1970. */
    int64_t (*now)(void *ctx);
    void *now_ctx;
    /*
     * A certificate was refused (FL_EPERM), in one line: which file or peer, what was expected,
     * what was found, what to do. `reason` is a literal that is the same for what is alike. `peer`
     * and `text` are borrowed. What else ends a stream is said in its on_close. May be NULL.
     */
    void (*notice)(void *ctx, const char *peer, const char *reason, const char *text);
    void *notice_ctx;
};

/* FL_ECONF: what the library refuses of chain and key. */
FL_MUST_CHECK int fl_tls_create(const struct fl_tls_setup *setup, struct fl_tls **ret,
                                struct fl_err *err);
/*
 * Streams that begin their handshake from now on show and believe these; those that stand go on. On
 * error all is as it was.
 */
FL_MUST_CHECK int fl_tls_renew(struct fl_tls *tls, struct fl_chain *chain, struct fl_key *key,
                               struct fl_trust *trust, struct fl_err *err);
void fl_tls_unref(struct fl_tls *tls); /* NULL is allowed. */

/* Keeps no reference: `tls` outlives the filter, its streams may outlive both. */
struct fl_stream_filter fl_tls_filter(struct fl_tls *tls);

/* What the server at the other end of a stream that this filter made has shown and was verified;
   NULL before. Valid until on_close has returned. On a server's side NULL. */
const struct fl_chain *fl_tls_peer_chain(const struct fl_stream *stream);

/* `host` of a client from the address it connects to: "fl.example.org:7443", "[2001:db8::1]:7443".
   A unix socket has the name "localhost". FL_EINVAL. */
FL_MUST_CHECK int fl_tls_host(const char *address, char *ret, size_t size, struct fl_err *err);

#endif
