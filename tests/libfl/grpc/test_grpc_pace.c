#include <check.h>
#include <string.h>

#include "libfl/grpc/pacing_impl.h"
#include "libfl/h2/h2.h"
#include "tests/lib/suites.h"

/* The estimate. */

/* `link` bytes a millisecond leave, always something to send; returns the last value. */
static size_t run_link(struct fl__pacing *pace, uint64_t *now_ms, size_t rate, unsigned ms)
{
    size_t value = pace->value;
    unsigned i;

    fl__pacing_busy(pace, *now_ms);
    for (i = 0; i < ms; i++) {
        *now_ms += 1;
        value = fl__pacing_sent(pace, *now_ms, rate);
    }
    return value;
}

TEST(a_fast_link_gets_large_writes_step_by_step)
{
    struct fl__pacing pace;
    uint64_t now_ms = 1000;

    fl__pacing_init(&pace, now_ms);
    ck_assert_uint_eq(run_link(&pace, &now_ms, 1000 * 1000, 19), FL__PACING_START);
    ck_assert_uint_eq(run_link(&pace, &now_ms, 1000 * 1000, 1), FL__PACING_START * 2);
    ck_assert_uint_eq(run_link(&pace, &now_ms, 1000 * 1000, 100), FL__PACING_MAX);
}

TEST(a_slow_link_gets_what_it_takes_in_the_horizon)
{
    struct fl__pacing pace;
    uint64_t now_ms = 1000;

    fl__pacing_init(&pace, now_ms);
    /* 2 Mbit/s. */
    ck_assert_uint_eq(run_link(&pace, &now_ms, 250, 200), 250 * FL__PACING_HORIZON_MS);
    /* And never less than is worth a frame. */
    ck_assert_uint_eq(run_link(&pace, &now_ms, 1, 200), FL__PACING_MIN);
}

TEST(one_stall_of_a_second_is_seen_at_once)
{
    struct fl__pacing pace;
    uint64_t now_ms = 1000;

    fl__pacing_init(&pace, now_ms);
    (void)run_link(&pace, &now_ms, 1000 * 1000, 200);
    now_ms += 1000;
    ck_assert_uint_eq(fl__pacing_sent(&pace, now_ms, 250000), 12500);
}

TEST(time_without_anything_to_send_does_not_count)
{
    struct fl__pacing pace;
    uint64_t now_ms = 1000;
    size_t value;

    fl__pacing_init(&pace, now_ms);
    (void)run_link(&pace, &now_ms, 4000, 200);
    value = pace.value;
    ck_assert_uint_eq(value, 4000 * FL__PACING_HORIZON_MS);
    fl__pacing_idle(&pace, now_ms);
    now_ms += 100;
    fl__pacing_idle(&pace, now_ms);
    now_ms += 60000;
    ck_assert_uint_eq(run_link(&pace, &now_ms, 4000, 60), value);
}

/* What the session makes of it. */

static void ignore_wake(void *ctx)
{
    (void)ctx;
}

static bool ignore_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)call;
    (void)ctx;
    (void)data;
    (void)len;
    return true;
}

static void ignore_close(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                         const char *message)
{
    (void)call;
    (void)ctx;
    (void)status;
    (void)message;
}

static size_t offered(struct fl_h2 *h2)
{
    struct iovec iov[64];
    size_t sum = 0;
    int n = fl_h2_output(h2, iov, 64);
    int i;

    for (i = 0; i < n; i++) {
        sum += iov[i].iov_len;
    }
    return sum;
}

/* Within the window of 65535 bytes that every peer grants before it has said anything. */
#define QUEUED ((size_t)60000)

static const struct {
    size_t pace;
    size_t least; /* what is offered at once of QUEUED bytes */
    size_t most;
} paces[] = {
    /* A frame begins while less than the pace is waiting, and is half as long. */
    {16 * 1024, 16 * 1024, (16 + 8 + 1) * 1024},
    {0, 8 * 1024, (8 + 4 + 1) * 1024},
    {SIZE_MAX, QUEUED, QUEUED + 1024},
};

TEST_EACH(a_session_offers_about_its_pace, ARRAY_LEN(paces))
{
    static const struct fl_call_handler handler = {.on_message = ignore_message,
                                                   .on_closed = ignore_close};
    static const uint8_t bytes[QUEUED];
    struct fl_piece piece = {.data = bytes, .len = sizeof(bytes)};
    struct fl_h2_setup setup = {.wake = ignore_wake, .authority = "x"};
    struct fl_call *call = NULL;
    struct fl_h2 *h2 = NULL;
    size_t sum = 0;
    size_t n;

    fl_rpc_limits_default(&setup.limits);
    ck_assert_int_eq(fl_h2_client_create(&setup, &h2), FL_OK);
    /* What comes first on every connection is not measured here. */
    fl_h2_sent(h2, offered(h2));
    ck_assert_int_eq(fl_h2_call(h2, "/t.T/M", 0, 0, &handler, NULL, &call), FL_OK);
    ck_assert_int_eq(fl_call_send(call, &piece, 1), FL_OK);
    fl_h2_set_pacing(h2, paces[_i].pace);
    ck_assert_uint_ge(offered(h2), paces[_i].least);
    while ((n = offered(h2)) > 0) {
        size_t part = n > 1 ? n / 2 : n;

        ck_assert_uint_lt(n, paces[_i].most);
        fl_h2_sent(h2, part);
        sum += part;
    }
    ck_assert_uint_gt(sum, QUEUED);
    fl_h2_free(h2);
}
