/* Bytes of downloads by kind, coded and before any coding. */
#include <check.h>

#include "server/network/download_counts.h"
#include "tests/lib/suites.h"

TEST(the_kind_follows_from_the_payload)
{
    ck_assert_int_eq(fl_download_kind_of("model", false), FL_DOWNLOAD_MODEL);
    ck_assert_int_eq(fl_download_kind_of("model", true), FL_DOWNLOAD_DIFFERENCE);
    ck_assert_int_eq(fl_download_kind_of("candidate", false), FL_DOWNLOAD_CANDIDATE);
    ck_assert_int_eq(fl_download_kind_of("personal_model", false), FL_DOWNLOAD_PERSONAL_MODEL);
    ck_assert_int_eq(fl_download_kind_of("control", false), FL_DOWNLOAD_INPUT);
}

TEST(only_a_whole_download_counts_as_a_full_one)
{
    struct fl_download_counts counts = {.model_bytes = 9000};

    fl_download_counted(&counts, FL_DOWNLOAD_MODEL, 100, 4500, false);
    ck_assert_uint_eq(counts.sent[FL_DOWNLOAD_MODEL], 100);
    ck_assert_uint_eq(counts.full[FL_DOWNLOAD_MODEL], 0);
    fl_download_counted(&counts, FL_DOWNLOAD_MODEL, 4400, 4500, true);
    ck_assert_uint_eq(counts.sent[FL_DOWNLOAD_MODEL], 4500);
    ck_assert_uint_eq(counts.full[FL_DOWNLOAD_MODEL], 9000);
    fl_download_counted(NULL, FL_DOWNLOAD_MODEL, 1, 1, true);
}

TEST(what_is_sent_as_float32_would_have_been_as_long)
{
    struct fl_download_counts counts = {.model_bytes = 9000};

    fl_download_counted(&counts, FL_DOWNLOAD_DIFFERENCE, 50, 50, true);
    fl_download_counted(&counts, FL_DOWNLOAD_INPUT, 60, 60, true);
    fl_download_counted(&counts, FL_DOWNLOAD_PERSONAL_MODEL, 70, 70, true);
    ck_assert_uint_eq(counts.full[FL_DOWNLOAD_DIFFERENCE], 9000);
    ck_assert_uint_eq(counts.full[FL_DOWNLOAD_INPUT], 60);
    ck_assert_uint_eq(counts.full[FL_DOWNLOAD_PERSONAL_MODEL], 70);
}
