/*
 * Transfers at a rate. A call that sends bulk is granted DATA, and one that takes bulk gives window
 * credit, a portion at a time as a bucket allows; other calls know nothing of it. The server of a
 * call that takes bulk has no window but that credit, so nothing lies in buffers on the way.
 *
 * Time is known at ticks only. A tick says what may go, and when the next portion, or the rest,
 * is due; late ticks lose nothing as long as the bucket holds what came in.
 */
#include <stdlib.h>

#include "libfl/h2/h2_session_impl.h"

/* A portion is what the rate gives in this time: timers are exact to a millisecond or two. */
#define FL_PORTION_PER_S 100
/* Less would be more frame heads than payload, more would keep others from the connection. */
#define FL_PORTION_MIN 256
#define FL_PORTION_MAX ((uint64_t)256 * 1024)
/* What a loop that was busy elsewhere, or a peer that took nothing, may make up for: 100 ms. */
#define FL_BURST_PER_S 10
/* Credit that may be under way, so that a round trip of 250 ms slows nothing down. */
#define FL_CREDIT_PER_S 4

#define NS_PER_MS UINT64_C(1000000)

static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value > least ? value : least;
}

int fl__h2_bulk_new(uint64_t rate, struct fl__bulk **ret)
{
    struct fl__bulk *bulk;

    *ret = NULL;
    if (rate == 0) {
        return FL_OK;
    }
    bulk = malloc(sizeof(*bulk));
    if (bulk == NULL) {
        return FL_ENOMEM;
    }
    *bulk = (struct fl__bulk){.rate = rate < FL_RATE_MAX ? rate : FL_RATE_MAX};
    bulk->portion = at_least(rate / FL_PORTION_PER_S, FL_PORTION_MIN);
    bulk->portion = bulk->portion < FL_PORTION_MAX ? bulk->portion : FL_PORTION_MAX;
    *ret = bulk;
    return FL_OK;
}

struct fl__bulk *fl__h2_bulk_sends(const struct h2_stream *s)
{
    return fl_call_bulk(s->call) == FL_CALL_SENDS_BULK ? s->h2->sends : NULL;
}

struct fl__bulk *fl__h2_bulk_takes(const struct h2_stream *s)
{
    return fl_call_bulk(s->call) == FL_CALL_TAKES_BULK ? s->h2->takes : NULL;
}

static bool is_under_way(const struct h2_stream *s, const struct fl__bulk *bulk)
{
    if (!s->attached) {
        return false;
    }
    return fl__h2_bulk_takes(s) == bulk ||
           (fl__h2_bulk_sends(s) == bulk &&
            (fl_call_out_bytes(s->call) > 0 || !fl_call_out_end(s->call)));
}

/* The next of them behind `link`, or NULL. */
static struct h2_stream *next(const struct fl_h2 *h2, const struct fl_list *link,
                              const struct fl__bulk *bulk)
{
    struct fl_list *at;

    for (at = fl_list_next(&h2->all, link); at != NULL; at = fl_list_next(&h2->all, at)) {
        struct h2_stream *s = FL_LIST_ITEM(at, struct h2_stream, all);

        if (is_under_way(s, bulk)) {
            return s;
        }
    }
    return NULL;
}

void fl__h2_bulk_ended(const struct h2_stream *s)
{
    struct fl__bulk *bulk = fl__h2_bulk_sends(s);

    bulk = bulk != NULL ? bulk : fl__h2_bulk_takes(s);
    if (bulk != NULL) {
        bulk->running = false; /* The next one begins with nothing saved up. */
    }
}

static uint64_t deadline_of(const struct fl_h2 *h2, const struct fl__bulk *bulk)
{
    if (bulk == NULL || (!bulk->running && next(h2, &h2->all, bulk) == NULL)) {
        return UINT64_MAX;
    }
    return bulk->running ? bulk->due_ms : 0;
}

uint64_t fl__h2_bulk_deadline(const struct fl_h2 *h2)
{
    uint64_t sends = deadline_of(h2, h2->sends);
    uint64_t takes = deadline_of(h2, h2->takes);

    return sends < takes ? sends : takes;
}

/* What may go now; false: nothing is under way. */
static bool begin_tick(struct fl_h2 *h2, struct fl__bulk *bulk, uint64_t now_ms)
{
    uint64_t burst = at_least(bulk->rate / FL_BURST_PER_S, 2 * bulk->portion);

    if (bulk->rate == 0 || next(h2, &h2->all, bulk) == NULL) {
        bulk->running = false;
        return false;
    }
    if (!bulk->running) {
        bulk->running = true;
        fl_bucket_start(&bulk->bucket, bulk->rate, burst, now_ms * NS_PER_MS);
    }
    bulk->ready = fl_bucket_have(&bulk->bucket, now_ms * NS_PER_MS);
    return true;
}

/* The next tick is when `more` came in beyond what is ready. */
static void end_tick(struct fl__bulk *bulk, uint64_t more, uint64_t now_ms)
{
    uint64_t ns = fl_bucket_when(&bulk->bucket, bulk->ready + more);

    bulk->due_ms = at_least((ns + NS_PER_MS - 1) / NS_PER_MS, now_ms + 1);
}

static void tick_sends(struct fl_h2 *h2, uint64_t now_ms)
{
    struct fl__bulk *bulk = h2->sends;
    struct h2_stream *s;
    uint64_t queued = 0;
    uint64_t rest;

    if (bulk == NULL || !begin_tick(h2, bulk, now_ms)) {
        return;
    }
    for (s = next(h2, &h2->all, bulk); s != NULL; s = next(h2, &s->all, bulk)) {
        queued += fl_call_out_bytes(s->call);
    }
    rest = queued > bulk->ready ? queued - bulk->ready : 0;
    end_tick(bulk, rest > 0 && rest < bulk->portion ? rest : bulk->portion, now_ms);
    if (queued > 0 && bulk->ready > 0) {
        fl__h2_wake_output(h2);
    }
}

bool fl__h2_bulk_may_send(const struct h2_stream *s)
{
    const struct fl__bulk *bulk = fl__h2_bulk_sends(s);
    uint64_t queued = fl_call_out_bytes(s->call);

    return bulk == NULL ||
           (bulk->running && bulk->ready >= (queued < bulk->portion ? queued : bulk->portion));
}

void fl__h2_bulk_sent(struct h2_stream *s, size_t n)
{
    struct fl__bulk *bulk = fl__h2_bulk_sends(s);

    if (bulk != NULL) {
        fl_bucket_take(&bulk->bucket, n);
        bulk->ready -= n < bulk->ready ? n : bulk->ready;
    }
}

/* Window for the stream, at most `n`; returns how much. */
static uint64_t credit(struct h2_stream *s, const struct fl__bulk *bulk, uint64_t n)
{
    nghttp2_session *session = s->h2->session;
    uint64_t most = at_least(bulk->rate / FL_CREDIT_PER_S, 2 * bulk->portion);
    int32_t open = nghttp2_session_get_stream_local_window_size(session, s->id);

    if (most > s->h2->conn.limits.stream_window) {
        most = s->h2->conn.limits.stream_window;
    }
    if (open < 0 || (uint64_t)open >= most) { /* Its request is not even sent; it has enough. */
        return 0;
    }
    n = n < most - (uint64_t)open ? n : most - (uint64_t)open;
    if (n > 0) {
        (void)fl__h2_check(
            s->h2, nghttp2_submit_window_update(session, NGHTTP2_FLAG_NONE, s->id, (int32_t)n));
    }
    return n;
}

static void tick_takes(struct fl_h2 *h2, uint64_t now_ms)
{
    struct fl__bulk *bulk = h2->takes;
    struct h2_stream *s;
    uint64_t n = 0;

    if (bulk == NULL || !begin_tick(h2, bulk, now_ms)) {
        return;
    }
    for (s = next(h2, &h2->all, bulk); s != NULL; s = next(h2, &s->all, bulk)) {
        n++;
    }
    for (s = next(h2, &h2->all, bulk); s != NULL; s = next(h2, &s->all, bulk)) {
        uint64_t given = credit(s, bulk, bulk->ready / n);

        n--;
        bulk->ready -= given;
        fl_bucket_take(&bulk->bucket, given);
    }
    end_tick(bulk, bulk->portion, now_ms);
    fl__h2_wake_output(h2);
}

void fl__h2_bulk_tick(struct fl_h2 *h2, uint64_t now_ms)
{
    if (h2->code == FL_OK) {
        tick_sends(h2, now_ms);
        tick_takes(h2, now_ms);
    }
}

/* All streams begin without a window then, see submit_settings(). */
int fl__h2_bulk_opened(struct h2_stream *s)
{
    struct fl_h2 *h2 = s->h2;
    /* Until the server has acknowledged that, nghttp2 counts from the window of RFC 9113. */
    uint64_t window = (uint64_t)h2->conn.limits.stream_window + FL_H2_WINDOW_MIN;

    if (h2->takes == NULL || fl__h2_bulk_takes(s) != NULL) {
        return FL_OK;
    }
    window = window < FL_H2_WINDOW_MAX ? window : FL_H2_WINDOW_MAX;
    return fl__h2_check(h2, nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE,
                                                                  s->id, (int32_t)window));
}
