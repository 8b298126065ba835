/* Limits that can be set on the server: read whole or not at all, and the lower one holds. */
#include <check.h>

#include "libfl/base/device_limits.h"
#include "tests/lib/suites.h"

static char up[] = "upload_rate", down[] = "download_rate", rounds[] = "rounds_per_day";

TEST(limits_are_read_with_their_units)
{
    static char mbit[] = "1 Mbit/s", bytes[] = "2 kB/s", four[] = "4";
    const struct fl_pair pairs[] = {{up, mbit}, {down, bytes}, {rounds, four}};
    struct fl_device_limits limits;

    ck_assert_int_eq(fl_device_limits_read(pairs, 3, &limits, NULL), FL_OK);
    ck_assert_uint_eq(limits.upload_rate, 125000);
    ck_assert_uint_eq(limits.download_rate, 2000);
    ck_assert_uint_eq(limits.rounds_per_day, 4);
}

TEST(one_bad_limit_refuses_all_of_them)
{
    static char mbit[] = "1 Mbit/s", zero[] = "0", other[] = "memory";
    const struct fl_pair none[] = {{up, mbit}, {rounds, zero}}, odd[] = {{up, mbit}, {other, zero}};
    struct fl_device_limits limits = {.upload_rate = 7};
    struct fl_err err = {0};

    ck_assert_int_eq(fl_device_limits_read(none, 2, &limits, &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "'rounds_per_day': expected a number of rounds from 1 on, found '0'");
    ck_assert_int_eq(fl_device_limits_read(odd, 2, &limits, &err), FL_EINVAL);
    ck_assert_uint_eq(limits.upload_rate, 7);
    ck_assert(fl_device_limits_has("download_rate"));
    ck_assert(!fl_device_limits_has("memory"));
}

TEST(the_lower_limit_of_owner_and_server_holds)
{
    const struct fl_device_limits owner = {.upload_rate = 100, .rounds_per_day = 3};
    const struct fl_device_limits server = {.upload_rate = 200, .download_rate = 50};
    const struct fl_device_limits both = fl_device_limits_both(&owner, &server);

    ck_assert_uint_eq(both.upload_rate, 100);
    ck_assert_uint_eq(both.download_rate, 50);
    ck_assert_uint_eq(both.rounds_per_day, 3);
}
