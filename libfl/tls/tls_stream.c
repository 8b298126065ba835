/*
 * The TLS filter as an fl_stream: decrypts received bytes, encrypts the user's output in batches,
 * pauses, flushes and closes. Runs on one loop. Schedules no handshakes (handshakes.c) and verifies
 * no certificates (tls_verify.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "libfl/base/str.h"
#include "libfl/tls/tls_impl.h"

/* How long an alert and the peer's end may take before the connection is closed without them. */
#define LAST_WORDS_MS 1000
/* A batch of small frames needs this many runs. */
#define RUNS 64
/* Key updates and tickets that a peer may send: a legitimate peer sends one in 400 GB. */
#define MESSAGES_MAX 1000

/* clang-format off */
static const struct fl_sm_state states[] = {
    [FL__TLS_FRESH]      = {"fresh",      FL_SM_TO(FL__TLS_CONNECTING) | FL_SM_TO(FL__TLS_HANDSHAKING) | FL_SM_TO(FL__TLS_CLOSING)},
    [FL__TLS_CONNECTING] = {"connecting", FL_SM_TO(FL__TLS_HANDSHAKING) | FL_SM_TO(FL__TLS_CLOSING)},
    [FL__TLS_HANDSHAKING]    = {"handshaking",    FL_SM_TO(FL__TLS_OPEN) | FL_SM_TO(FL__TLS_CLOSING)},
    [FL__TLS_OPEN]       = {"open",       FL_SM_TO(FL__TLS_FLUSHING) | FL_SM_TO(FL__TLS_CLOSING)},
    [FL__TLS_FLUSHING]   = {"flushing",   FL_SM_TO(FL__TLS_CLOSING)},
    [FL__TLS_CLOSING]    = {"closing",    0},
};
/* clang-format on */

static struct fl__tls_stream *tls_stream_of(struct fl_stream *stream)
{
    return (struct fl__tls_stream *)stream;
}

static void tls_begin_close(struct fl__tls_stream *s)
{
    fl_sm_move(&s->sm, FL__TLS_CLOSING);
    fl__tls_handshakes_leave(s);
}

void fl__tls_fail(struct fl__tls_stream *s, int code, const char *text)
{
    char line[FL__TLS_TEXT_MAX];

    if (s->sm.state == FL__TLS_CLOSING) {
        return;
    }
    (void)snprintf(line, sizeof(line), "%s: %s", fl_stream_peer(s->below), text);
    s->code = code;
    s->text = fl_str_dup(line); /* Out of memory: the text is missing, the code is kept. */
    if (code == FL_EPERM && s->tls->notice != NULL) {
        s->tls->notice(s->tls->notice_ctx, fl_stream_peer(s->below), s->refusal_reason, text);
    }
    tls_begin_close(s);
    if (s->out.len > s->out.sent || s->later.len > 0) {
        fl_stream_close_flushed(s->below, LAST_WORDS_MS);
    } else {
        fl_stream_close(s->below);
    }
}

void fl__tls_set_pause(struct fl__tls_stream *s)
{
    bool paused = (s->paused && s->established) || fl_list_is_linked(&s->queued) || s->has_turn;

    if (paused != s->below_paused && s->sm.state < FL__TLS_FLUSHING) {
        s->below_paused = paused;
        fl_stream_pause(s->below, paused);
    }
}

/* Updates the account to the bytes held: this may close streams, this one among them. */
static void charge_held(struct fl__tls_stream *s)
{
    size_t held = s->out.cap + s->later.cap + s->kept_cap;
    size_t before = s->charged;

    if (s->account == NULL) {
        return;
    }
    s->charged = held;
    if (held > before) {
        fl_account_add(s->account, held - before);
    } else {
        fl_account_give(s->account, before - held);
    }
}

void fl__tls_wake_if_output(struct fl__tls_stream *s)
{
    if (s->out.len > s->out.sent || s->later.len > 0) {
        fl_stream_wake(s->below);
    }
}

/* --- input --- */

void fl__tls_keep(struct fl__tls_stream *s, const uint8_t *data, size_t len)
{
    size_t old = s->kept != NULL ? s->in_len : 0;
    uint8_t *kept;

    if (old > 0 && s->in != s->kept) {
        (void)memmove(s->kept, s->in, old);
    }
    kept = realloc(s->kept, old + len);
    if (kept == NULL) {
        fl__tls_fail(s, FL_ENOMEM, "out of memory for the bytes that it sent");
        return;
    }
    (void)memcpy(kept + old, data, len);
    s->kept = kept;
    s->kept_cap = old + len;
    s->in = kept;
    s->in_len = old + len;
}

void fl__tls_keep_rest(struct fl__tls_stream *s)
{
    const uint8_t *rest = s->in;
    size_t len = s->in_len;

    if (s->kept != NULL) {
        if (len > 0 && s->sm.state <= FL__TLS_OPEN) {
            return;
        }
        free(s->kept);
        s->kept = NULL;
        s->kept_cap = 0;
    }
    s->in = NULL;
    s->in_len = 0;
    if (len > 0 && s->sm.state <= FL__TLS_OPEN) {
        fl__tls_keep(s, rest, len);
    }
}

/* Delivers `in` until it is used up or the user pauses. */
static void feed_input(struct fl__tls_stream *s)
{
    while (s->sm.state == FL__TLS_OPEN && !s->paused) {
        int n;

        ERR_clear_error();
        n = SSL_read(s->ssl, s->tls->record, sizeof(s->tls->record));
        if (s->messages > MESSAGES_MAX) {
            fl__tls_fail(s, FL_ELIMIT, "too many key updates");
            break;
        }
        if (n > 0) {
            s->cbs->on_data(s->ctx, s->tls->record, (size_t)n);
            continue;
        }
        if (SSL_get_error(s->ssl, n) == SSL_ERROR_WANT_READ) {
            break;
        }
        if ((SSL_get_shutdown(s->ssl) & SSL_RECEIVED_SHUTDOWN) != 0 &&
            SSL_get_error(s->ssl, n) == SSL_ERROR_ZERO_RETURN)
        {
            /* The peer has sent close_notify: further input is ignored, and it reads no output. */
            tls_begin_close(s);
            fl_stream_close(s->below);
        } else {
            fl__tls_fail_ssl(s);
        }
    }
    fl__tls_keep_rest(s);
    fl__tls_wake_if_output(s); /* The reply to a key update. */
}

static void take_data(struct fl__tls_stream *s, const uint8_t *data, size_t len)
{
    s->received = true;
    if (s->sm.state == FL__TLS_HANDSHAKING) {
        fl__tls_keep(s, data, len);
        if (s->sm.state == FL__TLS_HANDSHAKING) {
            fl__tls_handshakes_soon(s);
        }
        return;
    }
    if (s->sm.state != FL__TLS_OPEN) {
        return;
    }
    if (s->kept != NULL || s->paused) {
        fl__tls_keep(s, data, len);
        return;
    }
    s->in = data;
    s->in_len = len;
    feed_input(s);
}

static void below_data(void *ctx, const uint8_t *data, size_t len)
{
    take_data(ctx, data, len);
    charge_held(ctx);
}

/* --- output --- */

static int write_record(struct fl__tls_stream *s, const void *data, size_t len)
{
    ERR_clear_error();
    if (++s->records >= s->tls->rekey_records) {
        s->records = 0;
        if (SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
            return FL_ENOMEM;
        }
    }
    /* The BIO takes everything: a partial write is an error. */
    if (SSL_write(s->ssl, data, (int)len) != (int)len) {
        fl__tls_fail_ssl(s);
        return s->code;
    }
    s->out.plain += len;
    return FL_OK;
}

/*
 * How many of these bytes to encrypt at a time: less when memory for peers is scarce, but never 0.
 */
static size_t batch_bytes(const struct fl__tls_stream *s, const struct iovec *iov, int n)
{
    size_t spare = s->account != NULL ? fl_account_spare(s->account) / 4 : FL__TLS_BATCH;
    size_t most = spare < FL__TLS_BATCH ? spare : FL__TLS_BATCH;
    size_t plain = 0;
    int i;

    most = most > FL__TLS_BATCH_LEAST ? most : FL__TLS_BATCH_LEAST;
    for (i = 0; i < n && plain < most; i++) {
        plain += iov[i].iov_len;
    }
    return plain < most ? plain : most;
}

/* Small runs share a record; runs that fill one are encrypted without a copy. */
static int encrypt_batch(struct fl__tls_stream *s, const struct iovec *iov, int n)
{
    uint8_t *record = s->tls->record;
    size_t gathered = 0;
    size_t left = batch_bytes(s, iov, n);
    int rv;
    int i;

    if (!fl__tls_out_reserve(s, left)) {
        fl__tls_fail(s, FL_ENOMEM, "out of memory for the bytes to send");
        return s->code;
    }
    for (i = 0; i < n; i++) {
        const uint8_t *data = iov[i].iov_base;
        size_t len = iov[i].iov_len < left ? iov[i].iov_len : left;

        left -= len;
        while (len > 0) {
            size_t part = FL__TLS_RECORD - gathered;

            part = part < len ? part : len;
            if (part == FL__TLS_RECORD) {
                rv = write_record(s, data, part);
                if (rv != FL_OK) {
                    return rv;
                }
            } else {
                (void)memcpy(record + gathered, data, part);
                gathered += part;
            }
            if (gathered == FL__TLS_RECORD) {
                rv = write_record(s, record, gathered);
                if (rv != FL_OK) {
                    return rv;
                }
                gathered = 0;
            }
            data += part;
            len -= part;
        }
    }
    return gathered > 0 ? write_record(s, record, gathered) : FL_OK;
}

/*
 * Pulls and encrypts the next batch of our user, then our close_notify. Returns an error of our
 * user.
 */
static int pull_output(struct fl__tls_stream *s)
{
    struct iovec iov[RUNS];
    int n = s->cbs->output(s->ctx, iov, RUNS);

    if (n < 0 || (s->sm.state != FL__TLS_OPEN && s->sm.state != FL__TLS_FLUSHING)) {
        return n < 0 ? n : FL_OK;
    }
    if (n > 0) {
        return encrypt_batch(s, iov, n);
    }
    if (s->sm.state == FL__TLS_FLUSHING && !s->said_goodbye) {
        s->said_goodbye = true;
        ERR_clear_error();
        (void)SSL_shutdown(s->ssl); /* Out of memory: the stream ends without a close_notify. */
        ERR_clear_error();
    }
    return FL_OK;
}

static int below_output(void *ctx, struct iovec *iov, int max)
{
    struct fl__tls_stream *s = ctx;
    int rv = FL_OK;

    FL_REQUIRE(max > 0);
    if (s->out.len == 0 && (s->sm.state == FL__TLS_OPEN || s->sm.state == FL__TLS_FLUSHING)) {
        rv = pull_output(s);
    }
    charge_held(s);
    if (rv != FL_OK || s->out.len == 0) {
        return rv;
    }
    s->out_busy = true;
    *iov =
        (struct iovec){.iov_base = s->out.data + s->out.sent, .iov_len = s->out.len - s->out.sent};
    return 1;
}

static void below_sent(void *ctx, size_t n)
{
    struct fl__tls_stream *s = ctx;
    size_t plain = s->out.plain;

    FL_REQUIRE(n <= s->out.len - s->out.sent);
    s->out.sent += n;
    if (s->out.sent < s->out.len) {
        return;
    }
    fl__tls_out_done(s, &s->out);
    s->out_busy = false;
    s->out = s->later;
    s->later = (struct fl__tls_out){0};
    charge_held(s);
    if (plain > 0) {
        s->cbs->sent(s->ctx, plain);
    }
}

/* --- table of stream functions --- */

static void below_open(void *ctx)
{
    struct fl__tls_stream *s = ctx;

    fl_sm_move(&s->sm, FL__TLS_HANDSHAKING);
    fl__tls_handshakes_soon(s);
}

void fl__tls_opened(struct fl__tls_stream *s)
{
    fl_sm_move(&s->sm, FL__TLS_OPEN);
    s->established = true;
    fl__tls_set_pause(s);
    if (!s->tls->server) {
        s->cbs->on_open(s->ctx);
    }
    fl_stream_wake(s->below); /* It was not asked for output before. */
    if (s->kept != NULL) {
        feed_input(s);
    }
}

static void below_wake(void *ctx)
{
    struct fl__tls_stream *s = ctx;

    if (s->has_turn) {
        fl__tls_handshakes(s);
        charge_held(s);
        return; /* The user's on_wake follows with the next wake, once the stream is open. */
    }
    if (s->sm.state == FL__TLS_OPEN && s->kept != NULL) {
        feed_input(s);
        charge_held(s);
    }
    if ((s->sm.state == FL__TLS_OPEN || s->sm.state == FL__TLS_FLUSHING) && s->cbs->on_wake != NULL)
    {
        s->cbs->on_wake(s->ctx);
    }
}

static void stream_free(struct fl__tls_stream *s)
{
    fl__tls_handshakes_leave(s);
    if (s->ssl != NULL && s->established && s->code == FL_OK) {
        /* Otherwise the session of a connection that was cut would not be resumed. */
        SSL_set_shutdown(s->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    }
    SSL_free(s->ssl);
    fl__tls_out_done(s, &s->out);
    fl__tls_out_done(s, &s->later);
    free(s->kept);
    free(s->text);
    free(s->refusal);
    free(s->resumed);
    fl_chain_unref(s->shown);
    fl_tls_unref(s->tls);
    free(s);
}

static void below_close(void *ctx, int code, const char *text)
{
    struct fl__tls_stream *s = ctx;
    char line[FL__TLS_TEXT_MAX];

    fl__tls_handshakes_leave(s);
    if (s->account != NULL) {
        fl_account_give(s->account, s->charged);
        s->account = NULL;
    }
    if (s->code != FL_OK) {
        code = s->code;
        text = s->text != NULL ? s->text : fl_strerror(code);
    } else if (code == FL_OK && s->sm.state == FL__TLS_HANDSHAKING &&
               (s->received || !s->tls->server)) {
        code = FL_EUNAVAIL;
        (void)snprintf(line, sizeof(line),
                       "%s: it closed the connection during the TLS handshake; check that it "
                       "serves TLS at this address",
                       fl_stream_peer(s->below));
        text = line;
    }
    s->cbs->on_close(s->ctx, code, text);
    stream_free(s);
}

static const struct fl_stream_cbs below_cbs = {below_open,   below_data, below_wake,
                                               below_output, below_sent, below_close};

static void tls_start(struct fl_stream *stream, const struct fl_stream_cbs *cbs, void *ctx)
{
    struct fl__tls_stream *s = tls_stream_of(stream);

    FL_REQUIRE(s->sm.state == FL__TLS_FRESH);
    s->cbs = cbs;
    s->ctx = ctx;
    fl_sm_move(&s->sm, s->tls->server ? FL__TLS_HANDSHAKING : FL__TLS_CONNECTING);
    fl_stream_start(s->below, &below_cbs, s);
}

static void tls_wake(struct fl_stream *stream)
{
    fl_stream_wake(tls_stream_of(stream)->below);
}

static void tls_pause(struct fl_stream *stream, bool paused)
{
    struct fl__tls_stream *s = tls_stream_of(stream);

    s->paused = paused;
    fl__tls_set_pause(s);
    if (!paused && s->kept != NULL) {
        fl_stream_wake(s->below);
    }
}

static void tls_close(struct fl_stream *stream)
{
    struct fl__tls_stream *s = tls_stream_of(stream);
    bool fresh = s->sm.state == FL__TLS_FRESH;

    if (s->sm.state != FL__TLS_CLOSING) {
        tls_begin_close(s);
    }
    fl_stream_close(s->below);
    if (fresh) {
        stream_free(s);
    }
}

static void tls_close_flushed(struct fl_stream *stream, uint32_t timeout_ms)
{
    struct fl__tls_stream *s = tls_stream_of(stream);

    if (s->sm.state == FL__TLS_OPEN) {
        fl_sm_move(&s->sm, FL__TLS_FLUSHING);
        fl_stream_close_flushed(s->below, timeout_ms);
    } else if (s->sm.state == FL__TLS_HANDSHAKING) {
        tls_begin_close(
            s); /* No output of our user is being sent; output of the handshake may be. */
        fl_stream_close_flushed(s->below, timeout_ms);
    } else if (s->sm.state < FL__TLS_HANDSHAKING) {
        tls_close(stream);
    }
}

static const char *tls_peer(const struct fl_stream *stream)
{
    return fl_stream_peer(((const struct fl__tls_stream *)stream)->below);
}

static const struct fl_identity *tls_identity(const struct fl_stream *stream)
{
    const struct fl__tls_stream *s = (const struct fl__tls_stream *)stream;

    return s->established ? &s->identity : NULL;
}

static void tls_charge(struct fl_stream *stream, struct fl_account *account)
{
    struct fl__tls_stream *s = tls_stream_of(stream);

    FL_REQUIRE(s->sm.state == FL__TLS_FRESH);
    s->account = account;
    fl_stream_charge(s->below, account);
}

static const struct fl_stream_ops ops = {.start = tls_start,
                                         .wake = tls_wake,
                                         .pause = tls_pause,
                                         .close = tls_close,
                                         .close_flushed = tls_close_flushed,
                                         .peer = tls_peer,
                                         .identity = tls_identity,
                                         .charge = tls_charge};

int fl__tls_wrap(void *ctx, struct fl_stream *below, struct fl_stream **ret)
{
    struct fl__tls_stream *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        return FL_ENOMEM;
    }
    s->stream.ops = &ops;
    s->below = below;
    s->tls = ctx;
    s->tls->refs++;
    fl_sm_init(&s->sm, states, FL__TLS_CLOSING + 1, FL__TLS_FRESH);
    *ret = &s->stream;
    return FL_OK;
}

const struct fl_chain *fl_tls_peer_chain(const struct fl_stream *stream)
{
    FL_REQUIRE(stream->ops == &ops);
    return ((const struct fl__tls_stream *)stream)->shown;
}
