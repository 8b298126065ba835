/*
 * Bytes of a peer into a stream over TLS, and changes to what two of them say to each other.
 *
 * Byte 0: bit 0 the stream is a server's, bit 1 changes instead of bytes, bit 2 the user pauses and
 * goes on, the rest is the length of the runs that the bytes are cut into (0: one run). Bytes: the
 * peer says the rest of the input. Changes: each three bytes are a place (two, of the bytes that
 * arrive at either end) and what is added to the byte there.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/pki/issue.h"
#include "libfl/tls/tls.h"

#define NOW  INT64_C(1800000000)
#define YEAR INT64_C(31536000)
/* What two ends say to each other before they are cut off. */
#define TALK_MAX ((size_t)64 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* --- certificates, once --- */

static struct fl_stream_filter filter[2];

static int64_t now(void *ctx)
{
    (void)ctx;
    return NOW;
}

static void make_side(bool server, const struct fl_chain *ca, const struct fl_key *ca_key,
                      struct fl_trust *trust)
{
    const char *hosts[] = {"server"};
    struct fl_issue issue = {.federation = "fuzz",
                             .not_before = NOW - YEAR,
                             .not_after = NOW + YEAR,
                             .serial = {server ? 3 : 4},
                             .role = server ? FL_ROLE_SERVER : FL_ROLE_CLIENT,
                             .name = "somebody",
                             .hosts = server ? hosts : NULL,
                             .n_hosts = server ? 1 : 0};
    struct fl_tls_setup setup = {.server = server,
                                 .ask = server,
                                 .trust = trust,
                                 .host = server ? NULL : "server",
                                 .now = now};
    struct fl_tls *tls = NULL;

    expect(fl_key_make(&setup.key) == FL_OK);
    expect(fl_issue_leaf(ca, ca_key, setup.key, &issue, &setup.chain, NULL) == FL_OK);
    expect(fl_tls_create(&setup, &tls, NULL) == FL_OK);
    filter[server] = fl_tls_filter(tls); /* kept until the end */
    fl_key_unref(setup.key);
    fl_chain_unref(setup.chain);
}

static void make_sides(void)
{
    struct fl_issue issue = {
        .federation = "fuzz", .not_before = NOW - YEAR, .not_after = NOW + YEAR, .serial = {1}};
    struct fl_trust_setup believe = {.federation = "fuzz"};
    struct fl_key *root_key = NULL;
    struct fl_key *ca_key = NULL;
    struct fl_chain *root = NULL;
    struct fl_chain *ca = NULL;
    struct fl_trust *trust = NULL;

    if (filter[0].wrap != NULL) {
        return;
    }
    expect(fl_key_make(&root_key) == FL_OK && fl_key_make(&ca_key) == FL_OK);
    expect(fl_issue_root(root_key, &issue, &root, NULL) == FL_OK);
    issue.serial[0] = 2;
    expect(fl_issue_intermediate(root, root_key, ca_key, &issue, &ca, NULL) == FL_OK);
    believe.roots = root;
    expect(fl_trust_create(&believe, &trust, NULL) == FL_OK);
    make_side(false, ca, ca_key, trust);
    make_side(true, ca, ca_key, trust);
    fl_trust_unref(trust);
    fl_chain_unref(ca);
    fl_chain_unref(root);
    fl_key_unref(ca_key);
    fl_key_unref(root_key);
}

/* --- a stream below, and who is above --- */

struct end {
    struct fl_stream below; /* First. */
    struct fl_stream *stream;
    const struct fl_stream_cbs *cbs;
    void *ctx;
    bool closing, closed, paused, pauses, hello;
    size_t got;
    uint8_t out[TALK_MAX]; /* what it has sent; beyond is lost */
    size_t out_len, out_taken;
};

static void start(struct fl_stream *stream, const struct fl_stream_cbs *cbs, void *ctx)
{
    struct end *end = (struct end *)stream;

    end->cbs = cbs;
    end->ctx = ctx;
}

static void wake(struct fl_stream *stream)
{
    (void)stream;
}

static void pause_reading(struct fl_stream *stream, bool paused)
{
    ((struct end *)stream)->paused = paused;
}

static void close_now(struct fl_stream *stream)
{
    ((struct end *)stream)->closing = true;
}

static void close_flushed(struct fl_stream *stream, uint32_t timeout_ms)
{
    (void)timeout_ms;
    ((struct end *)stream)->closing = true;
}

static const char *peer(const struct fl_stream *stream)
{
    (void)stream;
    return "fuzz";
}

static const struct fl_stream_ops ops = {.start = start,
                                         .wake = wake,
                                         .pause = pause_reading,
                                         .close = close_now,
                                         .close_flushed = close_flushed,
                                         .peer = peer};

static void user_open(void *ctx)
{
    (void)ctx;
}

static void user_data(void *ctx, const uint8_t *data, size_t len)
{
    struct end *end = ctx;

    /* Whatever was changed on the way: only what the other end has said comes through. */
    expect(len > 0 && end->got + len <= 5 && memcmp(data, &"hello"[end->got], len) == 0);
    end->got += len;
    if (end->pauses) {
        fl_stream_pause(end->stream, true);
    }
}

static int user_output(void *ctx, struct iovec *iov, int max)
{
    static char hello[] = "hello";
    const struct end *end = ctx;

    (void)max;
    iov[0] = (struct iovec){.iov_base = hello, .iov_len = 5};
    return end->hello ? 1 : 0;
}

static void user_sent(void *ctx, size_t n)
{
    struct end *end = ctx;

    expect(n == 5 && end->hello);
    end->hello = false;
}

static void user_close(void *ctx, int code, const char *text)
{
    struct end *end = ctx;

    expect(!end->closed && text != NULL && code <= 0);
    end->closed = true;
}

static const struct fl_stream_cbs user_cbs = {user_open,   user_data, NULL,
                                              user_output, user_sent, user_close};

static void begin(struct end *end, bool server, bool pauses)
{
    *end = (struct end){.below = {.ops = &ops}, .pauses = pauses, .hello = true};
    end->stream = &end->below;
    expect(fl_stream_wrap(&filter[server], &end->stream) == FL_OK);
    fl_stream_start(end->stream, &user_cbs, end);
    if (!server) {
        end->cbs->on_open(end->ctx);
    }
}

/* A turn of the loop. */
static void turn(struct end *end)
{
    struct iovec iov[4];
    int n;

    if (end->pauses && !end->closing) {
        fl_stream_pause(end->stream, false);
    }
    end->cbs->on_wake(end->ctx);
    while ((n = end->cbs->output(end->ctx, iov, 4)) > 0) {
        size_t len = iov[0].iov_len;

        if (len > TALK_MAX - end->out_len) {
            len = TALK_MAX - end->out_len;
        }
        (void)memcpy(end->out + end->out_len, iov[0].iov_base, len);
        end->out_len += len;
        end->cbs->sent(end->ctx, iov[0].iov_len);
    }
    end->closing = end->closing || n < 0;
}

/* Bytes that it did not take have to be offered again: a paused one gets none. */
static bool feed(struct end *end, const uint8_t *data, size_t len)
{
    uint8_t *copy;

    if (end->paused || end->closing) {
        return false;
    }
    copy = malloc(len);
    expect(copy != NULL);
    (void)memcpy(copy, data, len);
    end->cbs->on_data(end->ctx, copy, len);
    free(copy);
    return true;
}

static void finish(struct end *end)
{
    end->cbs->on_close(end->ctx, FL_OK, "closed");
    expect(end->closed);
}

/* --- the two games --- */

static void say(bool server, bool pauses, size_t run, const uint8_t *data, size_t size)
{
    static struct end end;

    begin(&end, server, pauses);
    turn(&end);
    while (size > 0 && !end.closing) {
        size_t len = run > 0 && run < size ? run : size;

        if (feed(&end, data, len)) {
            data += len;
            size -= len;
        }
        turn(&end);
    }
    finish(&end);
}

/* What goes from one to the other arrives changed. */
static bool pass(struct end *from, struct end *to, size_t run, const uint8_t *changes, size_t n)
{
    size_t len = from->out_len - from->out_taken;
    size_t i;

    len = run > 0 && run < len ? run : len;
    if (len == 0 || to->paused || to->closing) {
        return false;
    }
    for (i = 0; i < n; i++) {
        size_t at = (size_t)changes[3 * i] << 8 | changes[3 * i + 1];

        if (at / 2 >= from->out_taken && at / 2 < from->out_taken + len &&
            (at % 2 == 0) == (from < to)) {
            from->out[at / 2] = (uint8_t)(from->out[at / 2] + changes[3 * i + 2]);
        }
    }
    (void)feed(to, from->out + from->out_taken, len);
    from->out_taken += len;
    return true;
}

static void change(bool pauses, size_t run, const uint8_t *data, size_t size)
{
    static struct end end[2];
    bool moved = true;
    unsigned idle = 0;

    begin(&end[0], false, pauses);
    begin(&end[1], true, pauses);
    while (idle < 4) { /* a paused end goes on in its next turn */
        turn(&end[0]);
        turn(&end[1]);
        moved = pass(&end[0], &end[1], run, data, size / 3);
        moved = pass(&end[1], &end[0], run, data, size / 3) || moved;
        idle = moved ? 0 : idle + 1;
    }
    expect(size >= 3 || (end[0].got == 5 && end[1].got == 5));
    finish(&end[0]);
    finish(&end[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t how;

    make_sides();
    if (size == 0) {
        return 0;
    }
    how = data[0];
    if ((how & 2) != 0) {
        change((how & 4) != 0, (size_t)how >> 3, data + 1, size - 1);
    } else {
        say((how & 1) != 0, (how & 4) != 0, (size_t)how >> 3, data + 1, size - 1);
    }
    return 0;
}
