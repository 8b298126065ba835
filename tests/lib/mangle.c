#include "tests/lib/mangle.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GREETING = 8, FRAME_HEAD = 2, FRAME = 1000, BATCH = 5 * FRAME, ONE_BY_ONE = 300, RUNS = 64 };

struct mangle {
    struct fl_stream stream; /* First. */
    struct fl_stream *below;
    const struct fl_stream_cbs *cbs; /* NULL: not started */
    void *ctx;
    bool outgoing, greeted, heard, held_back, flushing, closing, paused, said_goodbye;
    uint8_t out[BATCH + BATCH / FRAME * FRAME_HEAD + GREETING];
    size_t out_len, out_sent;
    size_t plain; /* bytes of our user in `out` */
    uint8_t *in;
    size_t in_len, in_cap;
    size_t frame_at; /* of the first frame, delivered already */
    size_t delivered;
    int code;
    char text[128];
};

static void break_off(struct mangle *m, const char *text)
{
    m->code = FL_EPROTO;
    (void)snprintf(m->text, sizeof(m->text), "%s: %s", fl_stream_peer(m->below), text);
    m->closing = true;
    fl_stream_close(m->below);
}

/* --- in --- */

/* True when all of the frame was delivered. */
static bool deliver(struct mangle *m, uint8_t *data, size_t len)
{
    size_t i;

    for (i = 0; m->frame_at == 0 && i < len; i++) {
        data[i] ^= 0x5a;
    }
    while (m->frame_at < len && !m->closing && !m->paused) {
        size_t n = m->delivered < ONE_BY_ONE ? 1 : len - m->frame_at;
        const uint8_t *from = data + m->frame_at;

        m->delivered += n;
        m->frame_at += n;
        m->cbs->on_data(m->ctx, from, n);
    }
    if (m->frame_at < len) {
        return false;
    }
    m->frame_at = 0;
    return true;
}

/* One thing of the input: its length, or 0 when more has to come. */
static size_t take_one(struct mangle *m)
{
    size_t len;

    if (!m->heard) {
        if (m->in_len < GREETING) {
            return 0;
        }
        if (memcmp(m->in, MANGLE_GREETING, GREETING) != 0) {
            break_off(m, "it does not greet");
            return 0;
        }
        m->heard = true;
        if (m->outgoing) {
            m->cbs->on_open(m->ctx);
        }
        if (!m->closing) {
            fl_stream_wake(m->below);
        }
        return GREETING;
    }
    if (m->in_len < FRAME_HEAD) {
        return 0;
    }
    len = (size_t)m->in[0] << 8 | m->in[1];
    if (len > FRAME) {
        break_off(m, "its frame is too long");
        return 0;
    }
    if (m->in_len < FRAME_HEAD + len) {
        return 0;
    }
    return deliver(m, m->in + FRAME_HEAD, len) ? FRAME_HEAD + len : 0;
}

static void take_input(struct mangle *m)
{
    size_t n = 1;

    while (n > 0 && !m->closing && !m->paused) {
        n = take_one(m);
        if (n > 0) {
            m->in_len -= n;
            (void)memmove(m->in, m->in + n, m->in_len);
        }
    }
    if (m->in_len == 0) { /* An idle one costs little. */
        free(m->in);
        m->in = NULL;
        m->in_cap = 0;
    }
}

static void below_data(void *ctx, const uint8_t *data, size_t len)
{
    struct mangle *m = ctx;

    if (m->in_len + len > m->in_cap) {
        m->in_cap = m->in_len + len;
        m->in = realloc(m->in, m->in_cap);
        ck_assert_ptr_nonnull(m->in);
    }
    (void)memcpy(m->in + m->in_len, data, len);
    m->in_len += len;
    take_input(m);
}

/* --- out --- */

static void put_frame(struct mangle *m, const uint8_t *data, size_t len)
{
    size_t i;

    m->out[m->out_len++] = (uint8_t)(len >> 8);
    m->out[m->out_len++] = (uint8_t)len;
    for (i = 0; i < len; i++) {
        m->out[m->out_len++] = data[i] ^ 0x5a;
    }
}

/* Returns an error of our user. */
static int put_batch(struct mangle *m)
{
    struct iovec iov[RUNS];
    int n = m->cbs->output(m->ctx, iov, RUNS);
    int i;

    if (n < 0) {
        return n;
    }
    for (i = 0; i < n; i++) {
        const uint8_t *data = iov[i].iov_base;
        size_t at = 0;

        while (at < iov[i].iov_len && m->out_len + FRAME_HEAD + 1 < sizeof(m->out)) {
            size_t room = sizeof(m->out) - m->out_len - FRAME_HEAD;
            size_t len = iov[i].iov_len - at;

            len = len < FRAME ? len : FRAME;
            len = len < room ? len : room;
            put_frame(m, data + at, len);
            at += len;
        }
        m->plain += at;
    }
    if (n == 0 && m->flushing && !m->said_goodbye) {
        m->said_goodbye = true;
        put_frame(m, NULL, 0);
    }
    return FL_OK;
}

static int below_output(void *ctx, struct iovec *iov, int max)
{
    struct mangle *m = ctx;
    int rv = FL_OK;

    ck_assert_int_gt(max, 0);
    if (m->out_sent == m->out_len) {
        m->out_sent = m->out_len = 0;
        if (!m->greeted) {
            m->greeted = true;
            (void)memcpy(m->out, MANGLE_GREETING, GREETING);
            m->out_len = GREETING;
        } else if (m->heard && !m->held_back && !m->flushing) {
            m->held_back = true;
            fl_stream_wake(m->below);
        } else if (m->heard) {
            m->held_back = false;
            rv = put_batch(m);
        }
    }
    if (rv != FL_OK || m->out_sent == m->out_len) {
        return rv;
    }
    *iov = (struct iovec){.iov_base = m->out + m->out_sent, .iov_len = m->out_len - m->out_sent};
    return 1;
}

static void below_sent(void *ctx, size_t n)
{
    struct mangle *m = ctx;
    size_t plain = m->plain;

    m->out_sent += n;
    ck_assert_uint_le(m->out_sent, m->out_len);
    if (m->out_sent == m->out_len && plain > 0) {
        m->plain = 0;
        m->cbs->sent(m->ctx, plain);
    }
}

/* --- the rest --- */

static void below_open(void *ctx)
{
    struct mangle *m = ctx;

    m->outgoing = true;
}

static void below_wake(void *ctx)
{
    struct mangle *m = ctx;

    take_input(m); /* What came before a pause. */
    if (m->heard && !m->closing && m->cbs->on_wake != NULL) {
        m->cbs->on_wake(m->ctx);
    }
}

static void below_close(void *ctx, int code, const char *text)
{
    struct mangle *m = ctx;

    m->cbs->on_close(m->ctx, m->code != FL_OK ? m->code : code, m->code != FL_OK ? m->text : text);
    free(m->in);
    free(m);
}

static const struct fl_stream_cbs below_cbs = {below_open,   below_data, below_wake,
                                               below_output, below_sent, below_close};

static void mangle_start(struct fl_stream *stream, const struct fl_stream_cbs *cbs, void *ctx)
{
    struct mangle *m = (struct mangle *)stream;

    m->cbs = cbs;
    m->ctx = ctx;
    fl_stream_start(m->below, &below_cbs, m);
}

static void mangle_wake(struct fl_stream *stream)
{
    fl_stream_wake(((struct mangle *)stream)->below);
}

static void mangle_pause(struct fl_stream *stream, bool paused)
{
    struct mangle *m = (struct mangle *)stream;

    m->paused = paused;
    fl_stream_pause(m->below, paused);
    fl_stream_wake(m->below);
}

static void mangle_close(struct fl_stream *stream)
{
    struct mangle *m = (struct mangle *)stream;

    m->closing = true;
    fl_stream_close(m->below);
    if (m->cbs == NULL) {
        free(m);
    }
}

static void mangle_close_flushed(struct fl_stream *stream, uint32_t timeout_ms)
{
    struct mangle *m = (struct mangle *)stream;

    m->closing = true;
    m->flushing = true;
    fl_stream_close_flushed(m->below, timeout_ms);
}

static const char *mangle_peer(const struct fl_stream *stream)
{
    return fl_stream_peer(((const struct mangle *)stream)->below);
}

static const struct fl_stream_ops ops = {.start = mangle_start,
                                         .wake = mangle_wake,
                                         .pause = mangle_pause,
                                         .close = mangle_close,
                                         .close_flushed = mangle_close_flushed,
                                         .peer = mangle_peer};

static int wrap(void *ctx, struct fl_stream *below, struct fl_stream **ret)
{
    struct mangle *m = calloc(1, sizeof(*m));

    (void)ctx;
    if (m == NULL) {
        return FL_ENOMEM;
    }
    m->stream.ops = &ops;
    m->below = below;
    *ret = &m->stream;
    return FL_OK;
}

const struct fl_stream_filter mangle_filter = {wrap, NULL};
