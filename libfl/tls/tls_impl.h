#ifndef FL_TLS_TLS_IMPL_H
#define FL_TLS_TLS_IMPL_H

/*
 * What the files of this room share. Nothing outside includes it, but for its tests.
 *
 *   context.c  what one side shows and believes, as OpenSSL has it; new credentials
 *   stream.c   the table of a stream, bytes in and out
 *   handshakes.c    handshakes, and whose turn it is
 *   verify.c   whether a peer is believed, and who it is
 *   ticket.c   sessions that are resumed
 *   text.c     what went wrong, for people
 *   bio.c      OpenSSL's reads and writes as bytes of a stream
 */

#include <openssl/ssl.h>

#include "libfl/base/budget.h"
#include "libfl/base/identity.h"
#include "libfl/base/list.h"
#include "libfl/base/sm.h"
#include "libfl/tls/tls.h"

/* The payload of the largest record (RFC 8446, section 5.1). */
#define FL__TLS_RECORD ((size_t)16 * 1024)
/* What is made of the user's bytes at a time. Half of it is a twentieth slower; over a slow link
   HTTP/2 offers less (libfl/grpc/pacing.c), so an urgent message waits for no more there. */
#define FL__TLS_BATCH ((size_t)256 * 1024)
/* When memory for peers is scarce. Smaller records would be made of heads and tags. */
#define FL__TLS_BATCH_LEAST ((size_t)4 * 1024)
/* Bytes as records, each with head, tag and type, with one more that a change of keys needs. */
#define FL__TLS_WIRE_BYTES(plain) ((plain) + ((plain) / FL__TLS_RECORD + 2) * 64)
#define FL__TLS_BATCH_BYTES       FL__TLS_WIRE_BYTES(FL__TLS_BATCH)
/* Longest text of on_close. */
#define FL__TLS_TEXT_MAX 640

struct fl__tls_ticket_key {
    uint8_t name[16];
    uint8_t cipher[32];
    uint8_t mac[32];
    int64_t born; /* seconds since 1970; INT64_MIN: there is none */
};

struct fl__tls_stream;

struct fl_tls {
    unsigned refs;
    bool server;
    bool ask;
    bool has_pin;
    uint8_t pin[FL_KEY_HASH];
    char *federation;
    char *host;
    bool names_host; /* it is a name, not an address */
    int64_t (*now)(void *ctx);
    void *now_ctx;
    void (*notice)(void *ctx, const char *peer, const char *reason, const char *text);
    void *notice_ctx;
    struct fl_chain *chain;
    struct fl_trust *trust;
    SSL_CTX *ctx;
    BIO_METHOD *bio_method;
    struct fl__tls_ticket_key ticket_keys[2]; /* the one in use, the one before */
    SSL_SESSION *session;                     /* a client's, for its next connection; or NULL */
    struct fl_chain *session_chain;           /* whom it was with */
    struct fl_list waiting;                   /* for their turn, the first to come first */
    unsigned n_turns;                         /* streams that have theirs now */
    uint32_t rekey_records;                   /* so many are sent with one key */
    uint8_t *spare; /* FL__TLS_BATCH_BYTES that the next stream with output takes; or NULL */
    uint8_t record[FL__TLS_RECORD]; /* plain bytes, in use inside one call only */
};

/*
 *   FRESH -> CONNECTING -> SHAKING -> OPEN -> FLUSHING
 *        \---------------->  |         |        |
 *        (each of them) ---------> CLOSING <----+
 */
enum fl__tls_state {
    FL__TLS_FRESH,      /* no callbacks yet */
    FL__TLS_CONNECTING, /* the stream below does not stand yet */
    FL__TLS_SHAKING,
    FL__TLS_OPEN,
    FL__TLS_FLUSHING, /* sends what `output` still has, and a close_notify */
    FL__TLS_CLOSING   /* the stream below closes, at most the last words still go out */
};

/* Bytes for the stream below. */
struct fl__tls_out {
    uint8_t *data;
    size_t len, cap, sent;
    size_t plain; /* bytes of our user in it */
};

struct fl__tls_stream {
    struct fl_stream stream; /* First. */
    struct fl_stream *below;
    struct fl_tls *tls;
    const struct fl_stream_cbs *cbs;
    void *ctx;
    struct fl_sm sm;
    SSL *ssl; /* NULL before the first step of the handshake */

    struct fl_list queued; /* waiting for its turn */
    bool has_turn;

    const uint8_t *in; /* what OpenSSL reads next, inside one call, or of `kept` */
    size_t in_len;
    uint8_t *kept; /* input that waits: for its turn, or for the end of a pause; or NULL */
    size_t kept_cap;
    struct fl__tls_out out;
    struct fl__tls_out later;   /* made while `out` is on its way */
    bool out_busy;              /* the stream below has seen `out`: its bytes stay where they are */
    bool no_memory;             /* inside OpenSSL something of ours could not be made */
    struct fl_account *account; /* NULL: nobody counts what it holds */
    size_t charged;

    bool paused; /* by our user */
    bool below_paused;
    bool heard;  /* anything at all */
    bool judged; /* whether its first bytes are TLS */
    bool stands; /* the handshake is over */
    bool said_goodbye;
    uint32_t records;  /* sent with this key */
    uint32_t messages; /* of handshakes that came after the handshake */
    struct fl_identity identity;
    struct fl_identity *resumed; /* of the session that may be resumed, in the handshake */
    struct fl_chain *shown;      /* by the peer, verified; a server has it in the handshake only */

    int code; /* why we closed it; FL_OK: we did not */
    char *text;
    char *refusal; /* why the peer's certificate was refused */
    const char *refusal_reason;
};

static inline struct fl__tls_stream *fl__tls_of_ssl(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

/* context.c */
FL_MUST_CHECK int fl__tls_context(struct fl_tls *tls, const struct fl_chain *chain,
                                  const struct fl_key *key, SSL_CTX **ret, struct fl_err *err);

/* bio.c */
/* Both NULL: out of memory. */
BIO_METHOD *fl__tls_bio_method(void);
BIO *fl__tls_bio(struct fl__tls_stream *s);
/* Room for all the records of `plain` bytes of our user, at once; false: out of memory. */
FL_MUST_CHECK bool fl__tls_out_reserve(struct fl__tls_stream *s, size_t plain);
/* Append to what waits for the stream below; false: out of memory. */
FL_MUST_CHECK bool fl__tls_out_add(struct fl__tls_stream *s, const void *data, size_t len);
void fl__tls_out_done(struct fl__tls_stream *s, struct fl__tls_out *out);

/* stream.c */
int fl__tls_wrap(void *ctx, struct fl_stream *below, struct fl_stream **ret);
/* The handshake is over: tell, and take what came behind it. */
void fl__tls_opened(struct fl__tls_stream *s);
/* Input that cannot be taken yet. Ends the stream when there is no memory. */
void fl__tls_keep(struct fl__tls_stream *s, const uint8_t *data, size_t len);
/* What OpenSSL has not taken is of no use any more, or stays kept. */
void fl__tls_keep_rest(struct fl__tls_stream *s);
/* End it for this reason, with what OpenSSL still has to say to the peer. `text` is without the
   peer's name. */
void fl__tls_fail(struct fl__tls_stream *s, int code, const char *text);
/* Stop reading from below while the user wants it, or while input waits for its turn. */
void fl__tls_set_pause(struct fl__tls_stream *s);
/* OpenSSL may have made something to send. */
void fl__tls_wake_if_output(struct fl__tls_stream *s);

/* handshakes.c */
/* There is something to do for the handshake. */
void fl__tls_handshakes_soon(struct fl__tls_stream *s);
/* Its turn has come. */
void fl__tls_handshakes(struct fl__tls_stream *s);
/* It waits no longer, and gives back its turn. */
void fl__tls_handshakes_leave(struct fl__tls_stream *s);

/* verify.c */
int fl__tls_on_verify(X509_STORE_CTX *store, void *arg);
/* Is `chain` believed now? On false `refusal` says why not. */
FL_MUST_CHECK bool fl__tls_believes(const struct fl_tls *tls, const struct fl_chain *chain,
                                    struct fl_identity *ret, struct fl_refusal *ret_refusal,
                                    struct fl_err *err);

/* ticket.c */
void fl__tls_tickets_server(struct fl_tls *tls, SSL_CTX *ctx);
void fl__tls_tickets_client(SSL_CTX *ctx);
/* Try to resume, when there is a session and its peer is still believed. */
void fl__tls_resume(struct fl__tls_stream *s);
void fl__tls_forget_session(struct fl_tls *tls);

/* text.c */
/* What the first bytes of a peer are when they are no TLS, and it is told so; NULL: they may be. */
const char *fl__tls_not_tls(struct fl__tls_stream *s);
/* The first bytes are those of an HTTP/2 server without TLS. */
bool fl__tls_is_plain_server(const struct fl__tls_stream *s);
/* End `s` for what OpenSSL has just said. */
void fl__tls_fail_ssl(struct fl__tls_stream *s);

#endif
