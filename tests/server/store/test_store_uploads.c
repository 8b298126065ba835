/* What lies in memory is refused, read and cleaned as a spool file is. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/store/uploads.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

#define FLOATS (RIG_FC1 + RIG_FC3)
#define TOTAL  (FLOATS * sizeof(float))

static const struct fl_spool_part parts[] = {
    {.unit = 0, .codec = FL_CODEC_FLOAT32, .bytes = RIG_FC1 * sizeof(float)},
    {.unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = RIG_FC3 * sizeof(float)},
};

static struct fl_layout *layout;
static const char *dir;
static float update[FLOATS];
static struct fl_uploads *uploads;

static void setup(void)
{
    size_t i;

    dir = rig_dir();
    layout = rig_layout();
    for (i = 0; i < FLOATS; i++) {
        update[i] = (float)i * 0.001f - 3.0f;
    }
    ck_assert_int_eq(fl_uploads_create(&uploads), FL_OK);
}

static void teardown(void)
{
    fl_uploads_free(uploads);
    fl_layout_free(layout);
    rig_remove();
}

/* --- the two ways in --- */

static int to_file(const struct fl_spool_part *of, size_t n, size_t len, double bound,
                   struct fl_err *err)
{
    struct fl_spool *s = NULL;
    uint64_t there = 0;
    int rv = fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", of, n, NULL}, &s,
                           &there, err);

    rv = rv == FL_OK ? fl_spool_write(s, 0, update, len, err) : rv;
    rv = rv == FL_OK ? fl_spool_finish(s, layout, bound, FL_DURABLE_PROCESS, err) : rv;
    fl_spool_close(s);
    return rv;
}

static struct fl_blob *blob(size_t len)
{
    struct fl_blob *ret = NULL;

    ck_assert_int_eq(fl_blob_create(len, &ret), FL_OK);
    (void)memcpy(fl_blob_fill(ret), update, len);
    return ret;
}

static int to_memory(const struct fl_spool_part *of, size_t n, size_t len, double bound,
                     struct fl_upload **ret, struct fl_err *err)
{
    struct fl_blob *bytes = blob(len);
    int rv = fl_upload_make(of, n, bytes, layout, bound, ret, err);

    fl_blob_unref(bytes); /* An upload has a reference of its own. */
    return rv;
}

static void put(uint64_t round, uint32_t attempt, const char *client)
{
    struct fl_upload *u = NULL;
    struct fl_err err = {0};

    ck_assert_msg(to_memory(parts, 2, TOTAL, 0, &u, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_uploads_put(uploads, round, attempt, client, u), FL_OK);
}

static int open_reader(uint64_t round, uint32_t attempt, const char *client,
                       struct fl_spool_reader **ret, struct fl_err *err)
{
    *ret = NULL;
    return fl_uploads_open(uploads, round, attempt, client, layout, ret, err);
}

static bool there(uint64_t round, uint32_t attempt, const char *client)
{
    struct fl_spool_reader *r = NULL;
    int rv = open_reader(round, attempt, client, &r, NULL);

    fl_spool_reader_close(r);
    ck_assert(rv == FL_OK || rv == FL_ENOENT);
    return rv == FL_OK;
}

/* --- good ones --- */

static void compare_unit(struct fl_spool_reader *r, size_t unit, const float *want, size_t step)
{
    size_t count = fl_layout_unit(layout, unit)->count;
    float *got = calloc(count, sizeof(*got));
    struct fl_codec_decoder d;
    size_t i;

    ck_assert_int_eq(fl_spool_reader_unit(r, 0, unit, &d), FL_OK);
    for (i = 0; i < count; i += step) {
        ck_assert_int_eq(d.ops->read(&d, got + i, count - i < step ? count - i : step), FL_OK);
    }
    ck_assert_int_eq(d.ops->close(&d), FL_OK);
    ck_assert_mem_eq(got, want, count * sizeof(*got));
    free(got);
}

TEST_CASE("all", setup, teardown);

TEST(an_upload_comes_back_as_it_was_sent)
{
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder d;

    put(7, 2, "edge-01");
    ck_assert_uint_eq(fl_uploads_bytes(uploads), TOTAL);
    ck_assert_int_eq(open_reader(7, 2, "edge-01", &r, NULL), FL_OK);
    ck_assert(fl_spool_reader_units(r)[0] == 1 && fl_spool_reader_units(r)[1] == 0 &&
              fl_spool_reader_units(r)[2] == 1);
    fl_spool_reader_share(r, 100000);
    compare_unit(r, 0, update, 7);
    compare_unit(r, 2, update + RIG_FC1, RIG_FC1);
    compare_unit(r, 0, update, RIG_FC1);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 1, &d), FL_ENOENT);
    fl_spool_reader_close(r);
}

TEST(what_comes_again_takes_the_place_of_what_was_there)
{
    struct fl_spool_reader *r = NULL;

    put(7, 2, "edge-01");
    update[0] = 42;
    put(7, 2, "edge-01");
    ck_assert_uint_eq(fl_uploads_bytes(uploads), TOTAL);
    ck_assert_int_eq(open_reader(7, 2, "edge-01", &r, NULL), FL_OK);
    compare_unit(r, 0, update, 1000);
    fl_spool_reader_close(r);
}

TEST(many_are_found_by_their_client_and_attempt_and_cleaning_keeps_only_the_open_one)
{
    struct fl_err err = {0};
    struct fl_spool_reader *r = NULL;
    char name[16];
    unsigned i;

    for (i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof(name), "c%u", i);
        put(7, i % 2, name);
    }
    for (i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof(name), "c%u", i);
        ck_assert(there(7, i % 2, name));
        ck_assert(!there(7, 1 - i % 2, name) && !there(6, i % 2, name));
    }
    ck_assert_int_eq(open_reader(7, 0, "nobody", &r, &err), FL_ENOENT);
    ck_assert_str_eq(err.msg, "'nobody' has no upload of round 7/0");
    fl_uploads_clean(uploads, 7, 1);
    ck_assert_uint_eq(fl_uploads_bytes(uploads), 150 * TOTAL);
    ck_assert(!there(7, 0, "c0") && there(7, 1, "c1") && there(7, 1, "c299"));
    fl_uploads_clean(uploads, 0, 0);
    ck_assert_uint_eq(fl_uploads_bytes(uploads), 0);
    ck_assert(!there(7, 1, "c1"));
}

/* --- bad ones --- */

static void expect_same(const struct fl_spool_part *of, size_t n, size_t len, double bound,
                        int code)
{
    struct fl_upload *u = NULL;
    struct fl_err a = {0};
    struct fl_err b = {0};

    ck_assert_int_eq(to_file(of, n, len, bound, &a), code);
    ck_assert_int_eq(to_memory(of, n, len, bound, &u, &b), code);
    ck_assert_str_eq(a.msg, b.msg);
}

TEST(what_a_file_is_refused_for_is_refused_in_the_same_words)
{
    const struct fl_spool_part falling[] = {parts[1], parts[0]};
    const struct fl_spool_part lies[] = {
        {.unit = 3, .codec = FL_CODEC_FLOAT32, .bytes = 8},
        {.unit = 0, .codec = 99, .bytes = 8},
        {.unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = RIG_FC3 * 4 - 4},
        {.unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = RIG_FC3 * 4 + 4},
        {.unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = 0},
        {.unit = 0, .codec = FL_CODEC_FLOAT32, .masked = true, .bytes = RIG_FC1 * 4},
    };
    size_t i;

    for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        expect_same(&lies[i], 1, (size_t)lies[i].bytes, 0, FL_EFORMAT);
    }
    expect_same(falling, 2, TOTAL, 0, FL_EINVAL);
    expect_same(parts, 0, 0, 0, FL_EINVAL);
    expect_same(parts, 2, TOTAL - 1, 0, FL_ESTATE);
    expect_same(parts, 1, TOTAL, 0, FL_ELIMIT);
    expect_same(parts, 2, TOTAL, 1, FL_ERANGE);
    update[RIG_FC1 + 5] = (float)NAN;
    expect_same(parts, 2, TOTAL, 0, FL_ENUMERIC);
    expect_same(parts, 2, TOTAL, 1e9, FL_ENUMERIC);
    update[RIG_FC1 + 5] = 3e38f;
    expect_same(parts, 2, TOTAL, 1e30, FL_ERANGE);
}

TEST(a_name_that_no_client_has_is_refused)
{
    struct fl_upload *u = NULL;

    ck_assert_int_eq(to_memory(parts, 2, TOTAL, 0, &u, NULL), FL_OK);
    ck_assert_int_eq(fl_uploads_put(uploads, 7, 2, "a/../../b", u), FL_EINVAL);
    fl_upload_free(u); /* It was not taken. */
}
