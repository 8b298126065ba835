/* PINGs on silent connections: when they are due, and from the server while a call waits. */
#include <check.h>

#include "libfl/grpc/keepalive_impl.h"
#include "tests/lib/suites.h"

static uint64_t at;

static enum fl__keepalive_due check(struct fl__keepalive *k, uint64_t received, uint64_t now_ms)
{
    return fl__keepalive_check(k, received, now_ms, &at);
}

TEST(a_ping_follows_silence_and_any_byte_answers_it)
{
    struct fl__keepalive k = {.after_ms = 100, .limit_ms = 50};

    ck_assert_int_eq(check(&k, 10, 1000), FL__KEEPALIVE_NOTHING);
    ck_assert_uint_eq(at, 1100);
    ck_assert_int_eq(check(&k, 10, 1099), FL__KEEPALIVE_NOTHING);
    ck_assert_int_eq(check(&k, 10, 1100), FL__KEEPALIVE_PING);
    ck_assert_uint_eq(at, 1150);
    ck_assert_int_eq(check(&k, 10, 1149), FL__KEEPALIVE_NOTHING); /* One ping, not more. */
    ck_assert_int_eq(check(&k, 11, 1149), FL__KEEPALIVE_NOTHING);
    ck_assert_uint_eq(at, 1249);
}

TEST(a_ping_without_an_answer_ends_the_connection)
{
    struct fl__keepalive k = {.after_ms = 100, .limit_ms = 50};

    ck_assert_int_eq(check(&k, 10, 1000), FL__KEEPALIVE_NOTHING);
    ck_assert_int_eq(check(&k, 10, 1100), FL__KEEPALIVE_PING);
    ck_assert_int_eq(check(&k, 10, 1150), FL__KEEPALIVE_FAILED);
}

TEST(a_keepalive_of_zero_never_pings)
{
    struct fl__keepalive k = {.after_ms = 0, .limit_ms = 50};

    ck_assert_int_eq(check(&k, 10, 1000000), FL__KEEPALIVE_NOTHING);
    ck_assert_uint_eq(at, UINT64_MAX);
}
