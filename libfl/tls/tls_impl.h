#ifndef FL_TLS_TLS_IMPL_H
#define FL_TLS_TLS_IMPL_H

/*
 * Declarations that the files of libfl/tls share. Private to libfl/tls and its tests.
 *
 *   context.c      OpenSSL's context with the certificate and trust of one side; renewal
 *   tls_stream.c   the table of a stream, bytes in and out
 *   handshakes.c   handshakes and their scheduling
 *   tls_verify.c   verification and identity of the peer
 *   ticket.c       session resumption
 *   tls_text.c     error messages
 *   bio.c          OpenSSL's reads and writes as bytes of a stream
 */

#include <openssl/ssl.h>

#include "libfl/base/budget.h"
#include "libfl/base/identity.h"
#include "libfl/base/list.h"
#include "libfl/base/sm.h"
#include "libfl/tls/tls.h"

/* The payload of the largest record (RFC 8446, section 5.1). */
#define FL__TLS_RECORD ((size_t)16 * 1024)
/*
 * The user's bytes are encrypted in batches of this size. Half of it is a twentieth slower; over a
 * slow link HTTP/2 offers less (libfl/grpc/pacing.c), so an urgent message does not wait longer
 * there.
 */
#define FL__TLS_BATCH ((size_t)256 * 1024)
/* The batch when memory for peers is scarce. Smaller records would consist of headers and tags. */
#define FL__TLS_BATCH_LEAST ((size_t)4 * 1024)
/* The size as records, each with header, tag and type, plus one record for a key update. */
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
    bool names_host; /* it is a DNS name, not an address */
    int64_t (*now)(void *ctx);
    void *now_ctx;
    void (*notice)(void *ctx, const char *peer, const char *reason, const char *text);
    void *notice_ctx;
    struct fl_chain *chain;
    struct fl_trust *trust;
    SSL_CTX *ctx;
    BIO_METHOD *bio_method;
    struct fl__tls_ticket_key ticket_keys[2]; /* the current one, the previous one */
    SSL_SESSION *session;                     /* a client's, for its next connection; or NULL */
    struct fl_chain *session_chain;           /* the verified chain of its server */
    struct fl_list waiting;                   /* for a handshake step, in the order of arrival */
    unsigned n_active;                        /* streams that may do a handshake step now */
    uint32_t rekey_records;                   /* records that are sent with one key */
    uint8_t *spare; /* FL__TLS_BATCH_BYTES for the next stream with output; or NULL */
    uint8_t record[FL__TLS_RECORD]; /* plaintext, in use inside one call only */
};

/*
 *   FRESH -> CONNECTING -> HANDSHAKING -> OPEN -> FLUSHING
 *        \---------------->  |         |        |
 *        (each of them) ---------> CLOSING <----+
 */
enum fl__tls_state {
    FL__TLS_FRESH,      /* not started yet */
    FL__TLS_CONNECTING, /* the stream below is not connected yet */
    FL__TLS_HANDSHAKING,
    FL__TLS_OPEN,
    FL__TLS_FLUSHING, /* sends the remaining output, then a close_notify */
    FL__TLS_CLOSING   /* the stream below closes, at most the final records are still sent */
};

/* Bytes for the stream below. */
struct fl__tls_out {
    uint8_t *data;
    size_t len, cap, sent;
    size_t plain; /* plaintext bytes of our user in it */
};

struct fl__tls_stream {
    struct fl_stream stream; /* First. */
    struct fl_stream *below;
    struct fl_tls *tls;
    const struct fl_stream_cbs *cbs;
    void *ctx;
    struct fl_sm sm;
    SSL *ssl; /* NULL before the first step of the handshake */

    struct fl_list queued; /* waiting for a handshake step */
    bool has_turn;

    const uint8_t *in; /* OpenSSL's input, of the present call or in `kept` */
    size_t in_len;
    uint8_t *kept; /* input that waits for a handshake step or for the end of a pause; or NULL */
    size_t kept_cap;
    struct fl__tls_out out;
    struct fl__tls_out later;   /* made while `out` is being sent */
    bool out_busy;              /* `out` was passed to the stream below: its bytes must not move */
    bool no_memory;             /* an allocation of ours failed inside OpenSSL */
    struct fl_account *account; /* NULL: not charged */
    size_t charged;

    bool paused; /* by our user */
    bool below_paused;
    bool received;    /* received any byte */
    bool checked_tls; /* the first bytes were checked for TLS */
    bool established; /* the handshake is complete */
    bool said_goodbye;
    uint32_t records;  /* sent with this key */
    uint32_t messages; /* handshake messages received after the handshake */
    struct fl_identity identity;
    struct fl_identity
        *resumed;           /* identity in the session that may be resumed, during the handshake */
    struct fl_chain *shown; /* the peer's verified chain; on a server during the handshake only */

    int code; /* why we closed it; FL_OK: no error of ours */
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
/* Reserves room for all the records of `plain` bytes of our user, at once; false: out of memory. */
FL_MUST_CHECK bool fl__tls_out_reserve(struct fl__tls_stream *s, size_t plain);
/* Appends to the output for the stream below; false: out of memory. */
FL_MUST_CHECK bool fl__tls_out_add(struct fl__tls_stream *s, const void *data, size_t len);
void fl__tls_out_done(struct fl__tls_stream *s, struct fl__tls_out *out);

/* tls_stream.c */
int fl__tls_wrap(void *ctx, struct fl_stream *below, struct fl_stream **ret);
/* The handshake is complete: calls on_open and processes the input that followed it. */
void fl__tls_opened(struct fl__tls_stream *s);
/* Keeps input that cannot be processed yet. Ends the stream when out of memory. */
void fl__tls_keep(struct fl__tls_stream *s, const uint8_t *data, size_t len);
/* Drops the input that OpenSSL has not read, or keeps it in `kept`. */
void fl__tls_keep_rest(struct fl__tls_stream *s);
/*
 * Ends the stream with this error, after sending OpenSSL's pending alert to the peer. `text` is
 * without the peer's name.
 */
void fl__tls_fail(struct fl__tls_stream *s, int code, const char *text);
/* Pauses the stream below while the user wants it, or while input waits for a handshake step. */
void fl__tls_set_pause(struct fl__tls_stream *s);
/* Wakes the stream below: OpenSSL may have made output. */
void fl__tls_wake_if_output(struct fl__tls_stream *s);

/* handshakes.c */
/* Queues the stream for a handshake step. */
void fl__tls_handshakes_soon(struct fl__tls_stream *s);
/* Does a handshake step. */
void fl__tls_handshakes(struct fl__tls_stream *s);
/* Removes the stream from the queue and returns its turn. */
void fl__tls_handshakes_leave(struct fl__tls_stream *s);

/* tls_verify.c */
int fl__tls_on_verify(X509_STORE_CTX *store, void *arg);
/* True when `chain` is trusted now. On false `refusal` has the reason. */
FL_MUST_CHECK bool fl__tls_believes(const struct fl_tls *tls, const struct fl_chain *chain,
                                    struct fl_identity *ret, struct fl_refusal *ret_refusal,
                                    struct fl_err *err);

/* ticket.c */
void fl__tls_tickets_server(struct fl_tls *tls, SSL_CTX *ctx);
void fl__tls_tickets_client(SSL_CTX *ctx);
/* Sets the session to resume, when there is one and its peer is still trusted. */
void fl__tls_resume(struct fl__tls_stream *s);
void fl__tls_forget_session(struct fl_tls *tls);

/* tls_text.c */
/*
 * What the peer speaks when its first bytes are not TLS; an alert is sent to it. NULL: they may be
 * TLS.
 */
const char *fl__tls_not_tls(struct fl__tls_stream *s);
/* The first bytes are those of an HTTP/2 server without TLS. */
bool fl__tls_is_plain_server(const struct fl__tls_stream *s);
/* Ends `s` with OpenSSL's last error. */
void fl__tls_fail_ssl(struct fl__tls_stream *s);

#endif
