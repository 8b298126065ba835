/* How many connections fit into a limit of descriptors, and when that is too few to start. */
#include <check.h>

#include "server/daemon/descriptor_limit.h"
#include "tests/lib/suites.h"

#define RESERVE (FL_SERVERD_ADMIN_CONNECTIONS + FL_SERVERD_OWN_DESCRIPTORS)

TEST(what_serves_all_comes_before_connections)
{
    uint64_t n = 0;

    ck_assert_int_eq(fl_serverd_connections(RESERVE + 20, 10000, 2, &n, NULL), FL_OK);
    ck_assert_uint_eq(n, 10);
    ck_assert_int_eq(fl_serverd_connections(1024, 10000, 2, &n, NULL), FL_OK);
    ck_assert_uint_eq(n, (1024 - RESERVE) / 2);
    ck_assert_int_eq(fl_serverd_connections(UINT64_MAX, 10000, 2, &n, NULL), FL_OK);
    ck_assert_uint_eq(n, 10000);
}

TEST(fewer_than_a_round_needs_are_refused_with_the_way_out)
{
    struct fl_err err = {0};
    uint64_t n = 7;

    ck_assert_int_eq(fl_serverd_connections(RESERVE + 19, 10000, 10, &n, &err), FL_ELIMIT);
    ck_assert_uint_eq(n, 7);
    ck_assert_str_eq(err.msg, "83 descriptors allow 9 connections, but a round begins with 10 "
                              "clients: raise the hard limit of open files (ulimit -Hn, "
                              "LimitNOFILE= of the unit) to 84 or more");
    ck_assert_int_eq(fl_serverd_connections(20, 10000, 0, &n, &err), FL_ELIMIT);
    ck_assert_int_eq(fl_serverd_connections(0, 10000, 1, &n, &err), FL_ELIMIT);
}
