#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/quantity.h"
#include "tests/lib/suites.h"

static const struct fl_quantity_range us = {.kind = FL_QUANTITY_TIME, .step = 1};
static const struct fl_quantity_range ms = {.kind = FL_QUANTITY_TIME, .step = 1000};
static const struct fl_quantity_range bytes = {.kind = FL_QUANTITY_SIZE, .step = 1};
static const struct fl_quantity_range rate = {
    .kind = FL_QUANTITY_RATE, .step = 8, .min = 1, .max = UINT64_C(12500000000), .none = "none"};

static const struct {
    const struct fl_quantity_range *range;
    const char *text;
    uint64_t value;
    const char *back;
} good[] = {
    {&us, "7us", 7, "7us"},
    {&us, "3ms", 3000, "3ms"},
    {&us, "1.5 s", 1500000, "1500ms"},
    {&us, "2m", 120000000, "2m"},
    {&us, "2min", 120000000, "2m"},
    {&us, "3h", UINT64_C(10800000000), "3h"},
    {&us, "30d", UINT64_C(2592000000000), "720h"},
    {&us, "100000d", UINT64_C(8640000000000000), "2400000h"},
    {&ms, "5000us", 5, "5ms"},
    {&ms, "500ms", 500, "500ms"},
    {&ms, "10s", 10000, "10s"},
    {&ms, "0.1s", 100, "100ms"},
    {&ms, "1.1d", 95040000, "1584m"},
    {&ms, "10957.3d", UINT64_C(946710720000), "15778512m"},
    {&ms, "1e3ms", 1000, "1s"},
    {&ms, "0us", 0, "0s"},
    {&bytes, "0", 0, "0"},
    {&bytes, "1000", 1000, "1000"},
    {&bytes, "7B", 7, "7"},
    {&bytes, "64K", 65536, "64K"},
    {&bytes, "64 KiB", 65536, "64K"},
    {&bytes, "8M", 8388608, "8M"},
    {&bytes, "1.5MiB", 1572864, "1536K"},
    {&bytes, "1G", 1073741824, "1G"},
    {&bytes, "2GiB", UINT64_C(2147483648), "2G"},
    {&bytes, "1T", UINT64_C(1099511627776), "1T"},
    {&bytes, "1TiB", UINT64_C(1099511627776), "1T"},
    {&bytes, "5kB", 5000, "5000"},
    {&bytes, "5KB", 5000, "5000"},
    {&bytes, "1.5MB", 1500000, "1500000"},
    {&bytes, "1GB", 1000000000, "1000000000"},
    {&bytes, "1.024TB", UINT64_C(1024000000000), "1000000000K"},
    {&bytes, "9007199254740992", UINT64_C(9007199254740992), "8192T"},
    {&rate, "2Mbit/s", 250000, "2Mbit/s"},
    {&rate, "1.5 Mbit/s", 187500, "1500kbit/s"},
    {&rate, "500KB/s", 500000, "4Mbit/s"},
    {&rate, "64kB/s", 64000, "64kB/s"},
    {&rate, "3MB/s", 3000000, "3MB/s"},
    {&rate, "250kbit/s", 31250, "250kbit/s"},
    {&rate, "60Kbit/s", 7500, "60kbit/s"},
    {&rate, "100Gbit/s", UINT64_C(12500000000), "100Gbit/s"},
    {&rate, "12.5GB/s", UINT64_C(12500000000), "100Gbit/s"},
    {&rate, "9bit/s", 1, "1B/s"},
    {&rate, "1234567B/s", 1234567, "1234567B/s"},
    {&rate, "none", 0, "none"},
    {&rate, "0", 0, "none"},
};

TEST_EACH(a_quantity_is_read_and_printed_with_its_unit, ARRAY_LEN(good))
{
    const struct fl_quantity_range *range = good[_i].range;
    char text[FL_QUANTITY_TEXT];
    uint64_t value = 77;
    uint64_t again = 77;
    struct fl_err err = {0};

    ck_assert_msg(fl_quantity_read(range, good[_i].text, &value, &err) == FL_OK, "%s: %s",
                  good[_i].text, err.msg);
    ck_assert_uint_eq(value, good[_i].value);
    ck_assert_str_eq(fl_quantity_text(range, value, text, sizeof(text)), good[_i].back);
    ck_assert_int_eq(fl_quantity_read(range, text, &again, NULL), FL_OK);
    ck_assert_uint_eq(again, value);
}

#define MS    "expected a duration such as 10s, found "
#define UNITS "us, ms, s, m, h, d"
#define SIZE  "expected a size such as 64K, 8M or 1G, found "
#define SIZES ": units are B, K, M, G, T, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
#define RATE  "expected a rate such as 2Mbit/s or 500kB/s, or none, 1B/s to 100Gbit/s, found "
#define RATES "bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s"

static const struct {
    const struct fl_quantity_range *range;
    const char *text, *message;
} bad[] = {
    {&ms, "", MS "''"},
    {&ms, "soon", MS "'soon'"},
    {&ms, "10", MS "'10': add a unit (" UNITS ")"},
    {&ms, "10 ", MS "'10 ': add a unit (" UNITS ")"},
    {&ms, "10x", MS "'10x': units are " UNITS},
    {&ms, "10S", MS "'10S': units are " UNITS},
    {&ms, "10MB", MS "'10MB': units are " UNITS},
    {&ms, "10  s", MS "'10  s': units are " UNITS},
    {&ms, "10s ", MS "'10s ': units are " UNITS},
    {&ms, " 10s", MS "' 10s'"},
    {&ms, "-1s", MS "'-1s'"},
    {&ms, ".5s", MS "'.5s'"},
    {&ms, "5.s", MS "'5.s'"},
    {&ms, "1.2.3s", MS "'1.2.3s'"},
    {&ms, "1h30m", MS "'1h30m': units are " UNITS},
    {&ms, "0x2s", MS "'0x2s': units are " UNITS},
    {&ms, "infs", MS "'infs'"},
    {&ms, "1e300d", MS "'1e300d'"},
    {&ms, "500us", MS "'500us': a multiple of 1ms is needed"},
    {&ms, "1.5ms", MS "'1.5ms': a multiple of 1ms is needed"},
    {&us, "200000d", MS "'200000d'"},
    {&bytes, "1.5", SIZE "'1.5': a multiple of 1 is needed"},
    {&bytes, "1K2", SIZE "'1K2'" SIZES},
    {&bytes, "64k", SIZE "'64k'" SIZES},
    {&bytes, "17179869184G", SIZE "'17179869184G'"},
    {&rate, "250000", RATE "'250000': add a unit (" RATES ")"},
    {&rate, "2Mbps", RATE "'2Mbps': units are " RATES},
    {&rate, "2MBIT/S", RATE "'2MBIT/S': units are " RATES},
    {&rate, "None", RATE "'None'"},
    {&rate, "101Gbit/s", RATE "'101Gbit/s'"},
    {&rate, "3bit/s", RATE "'3bit/s'"},
    {&rate, "0Mbit/s", RATE "'0Mbit/s'"},
};

TEST_EACH(what_is_no_quantity_is_refused_with_what_would_be, ARRAY_LEN(bad))
{
    struct fl_err err = {0};
    uint64_t value = 77;

    ck_assert_int_eq(fl_quantity_read(bad[_i].range, bad[_i].text, &value, &err), FL_EINVAL);
    ck_assert_uint_eq(value, 77);
    ck_assert_str_eq(err.msg, bad[_i].message);
}

TEST(a_range_is_checked_and_named)
{
    const struct fl_quantity_range range = {
        .kind = FL_QUANTITY_TIME, .step = 1000, .min = 10, .max = 3600000};
    const struct fl_quantity_range least = {.kind = FL_QUANTITY_TIME, .step = 1000, .min = 10};
    struct fl_err err = {0};
    uint64_t value = 77;

    ck_assert_int_eq(fl_quantity_read(&range, "9ms", &value, &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "expected a duration such as 10s, 10ms to 1h, found '9ms'");
    ck_assert_int_eq(fl_quantity_read(&range, "3600001ms", &value, &err), FL_EINVAL);
    ck_assert_int_eq(fl_quantity_read(&least, "0s", &value, &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "expected a duration such as 10s, at least 10ms, found '0s'");
    ck_assert_uint_eq(value, 77);
    ck_assert_int_eq(fl_quantity_read(&range, "10ms", &value, &err), FL_OK);
    ck_assert_uint_eq(value, 10);
    ck_assert_int_eq(fl_quantity_read(&range, "1h", &value, &err), FL_OK);
    ck_assert_uint_eq(value, 3600000);
}

/* What an error lists, and what a table's column may have in brackets. */
TEST_EACH(every_unit_that_is_listed_is_one_of_its_kind, FL_QUANTITY_COUNT)
{
    enum fl_quantity kind = (enum fl_quantity)_i;
    enum fl_quantity found;
    char list[128];
    char *word, *rest;
    double base;

    (void)snprintf(list, sizeof(list), "%s", fl_quantity_units(kind));
    for (word = strtok_r(list, ", ", &rest); word != NULL; word = strtok_r(NULL, ", ", &rest)) {
        char text[32];
        double value;

        (void)snprintf(text, sizeof(text), "2%s", word);
        ck_assert(fl_quantity_unit(word, &found, &base));
        ck_assert_int_eq(found, kind);
        ck_assert_int_eq(fl_quantity_parse(kind, text, &value, NULL), FL_OK);
        ck_assert_double_eq(value, 2.0 * base);
    }
    ck_assert(!fl_quantity_unit("", &found, &base));
    ck_assert(!fl_quantity_unit("x", &found, &base));
}
