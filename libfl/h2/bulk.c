/*
 * Transfers at a limited rate, on the loop of the session. A call that sends bulk data is granted
 * DATA frames, and one that receives bulk data gives window credit, a portion at a time as a token
 * bucket allows; other calls are not affected. The server of a call that receives bulk data has no
 * window but that credit, so no data waits in buffers on the way.
 *
 * The time is known at ticks only. A tick determines how many bytes may be sent, and when the next
 * portion, or the rest, is due; late ticks lose nothing as long as the bucket is not full.
 */
#include <stdlib.h>

#include "libfl/h2/h2_session_impl.h"

/*
 * A portion is what the rate gives in this part of a second: timers are exact to a millisecond or
 * two.
 */
#define FL_PORTION_PER_S 100
/*
 * Smaller portions would be more frame headers than payload, larger ones would keep other calls
 * from the connection.
 */
#define FL_PORTION_MIN 256
#define FL_PORTION_MAX ((uint64_t)256 * 1024)
/*
 * The bucket holds 100 ms: after a busy loop, or a peer that took nothing, this much is made up
 * for.
 */
#define FL_BURST_PER_S 10
/* Credit in flight: a round trip of 250 ms does not slow the transfer down. */
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

/* The next stream with this rate limit after `link`, or NULL. */
static struct h2_stream *bulk_next_stream(const struct fl_h2 *h2, const struct fl_list *link,
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
        bulk->running = false; /* The next transfer begins with an empty bucket. */
    }
}

static uint64_t deadline_of(const struct fl_h2 *h2, const struct fl__bulk *bulk)
{
    if (bulk == NULL || (!bulk->running && bulk_next_stream(h2, &h2->all, bulk) == NULL)) {
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

/* Computes the bytes that may be sent now; false: no transfer runs. */
static bool begin_tick(struct fl_h2 *h2, struct fl__bulk *bulk, uint64_t now_ms)
{
    uint64_t burst = at_least(bulk->rate / FL_BURST_PER_S, 2 * bulk->portion);

    if (bulk->rate == 0 || bulk_next_stream(h2, &h2->all, bulk) == NULL) {
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

/* Sets the next tick to when `more` bytes beyond the ready ones have accumulated. */
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
    for (s = bulk_next_stream(h2, &h2->all, bulk); s != NULL;
         s = bulk_next_stream(h2, &s->all, bulk)) {
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

/* Gives the stream window credit of at most `n`; returns how much. */
static uint64_t bulk_credit(struct h2_stream *s, const struct fl__bulk *bulk, uint64_t n)
{
    nghttp2_session *session = s->h2->session;
    uint64_t most = at_least(bulk->rate / FL_CREDIT_PER_S, 2 * bulk->portion);
    int32_t open = nghttp2_session_get_stream_local_window_size(session, s->id);

    if (most > s->h2->conn.limits.stream_window) {
        most = s->h2->conn.limits.stream_window;
    }
    if (open < 0 || (uint64_t)open >= most)
    { /* Its request was not sent yet; the window is large enough. */
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
    for (s = bulk_next_stream(h2, &h2->all, bulk); s != NULL;
         s = bulk_next_stream(h2, &s->all, bulk)) {
        n++;
    }
    for (s = bulk_next_stream(h2, &h2->all, bulk); s != NULL;
         s = bulk_next_stream(h2, &s->all, bulk)) {
        uint64_t given = bulk_credit(s, bulk, bulk->ready / n);

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

/* All streams begin without a window in this case, see submit_settings(). */
int fl__h2_bulk_opened(struct h2_stream *s)
{
    struct fl_h2 *h2 = s->h2;
    /*
     * Until the server has acknowledged the SETTINGS, nghttp2 counts from the window of RFC 9113.
     */
    uint64_t window = (uint64_t)h2->conn.limits.stream_window + FL_H2_WINDOW_MIN;

    if (h2->takes == NULL || fl__h2_bulk_takes(s) != NULL) {
        return FL_OK;
    }
    window = window < FL_H2_WINDOW_MAX ? window : FL_H2_WINDOW_MAX;
    return fl__h2_check(h2, nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE,
                                                                  s->id, (int32_t)window));
}
