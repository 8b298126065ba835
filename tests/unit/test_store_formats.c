/*
 * Files of earlier versions, byte by byte as those wrote them, and damaged files of this one: each
 * is read, refused or begun anew, none is used damaged.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/base/rng.h"
#include "libfl/model/digest.h"
#include "server/store/files.h"
#include "tests/lib/store_rig.h"

#define PAGE 4096

static struct fl_layout *layout;
static const char *dir;

static void setup(void)
{
    struct fl_store *s = NULL;
    struct fl_err err = {0};

    dir = rig_dir();
    layout = rig_layout();
    ck_assert_msg(fl_store_open(dir, "fed", layout, FL_DURABLE_PROCESS, &s, &err) == FL_OK, "%s",
                  err.msg); /* makes the folders */
    fl_store_close(s);
}

static void teardown(void)
{
    fl_layout_free(layout);
    rig_remove();
}

static void put_file(const char *name, const void *data, size_t len)
{
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(fl_fs_replace(rig_path(path, name), data, len, false, NULL), FL_OK);
}

static struct fl_buf get_file(const char *name)
{
    struct fl_buf file = {0};
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(fl_fs_read(rig_path(path, name), 1 << 20, &file, NULL), FL_OK);
    return file;
}

static void flip(const char *name, size_t offset)
{
    struct fl_buf file = get_file(name);

    ck_assert_uint_lt(offset, file.len);
    file.data[offset] ^= 1u;
    put_file(name, file.data, file.len);
    fl_buf_done(&file);
}

static bool exists(const char *name)
{
    char path[RIG_PATH_MAX];

    return fl_fs_exists(rig_path(path, name));
}

static uint8_t *put_le(uint8_t *to, uint64_t value, size_t bytes)
{
    size_t i;

    for (i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
    return to + bytes;
}

/* --- spool files of version 2: the coded bytes end the file --- */

#define UPLOAD      "spool/000007-002-edge-01.upd"
#define UPLOAD_DATA ((size_t)RIG_FC3 * 4)

static const struct fl_spool_part part = {
    .unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = UPLOAD_DATA};
static uint8_t upload[PAGE + UPLOAD_DATA];

static void put_upload(void)
{
    uint8_t *at = upload;
    float value = 1.5f;
    size_t i;

    (void)memset(upload, 0, sizeof(upload));
    (void)memcpy(at, "FLSPOOL\n", 8);
    at = put_le(at + 8, 2, 4); /* version */
    at = put_le(at, 1, 4);     /* parts */
    at = put_le(at, part.bytes, 8);
    at = put_le(at, part.unit, 4);
    at = put_le(at, 0, 4); /* bundle */
    at = put_le(at, part.codec, 4);
    at = put_le(at, 0, 4); /* not masked */
    at = put_le(at, part.bytes, 8);
    (void)put_le(at, fl_hash64(upload, (size_t)(at - upload)), 8);
    for (i = 0; i < RIG_FC3; i++) {
        (void)memcpy(upload + PAGE + 4 * i, &value, sizeof(value));
        value += 1.0f;
    }
    put_file(UPLOAD, upload, sizeof(upload));
}

static int open_upload(struct fl_spool_reader **ret)
{
    *ret = NULL;
    return fl_spool_reader_open(dir, 7, 2, "edge-01", layout, ret, NULL);
}

START_TEST(an_accepted_upload_without_sums_is_read_and_said_to_have_none)
{
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder d;
    float out[RIG_FC3];

    put_upload();
    ck_assert_int_eq(open_upload(&r), FL_OK);
    ck_assert(!fl_spool_reader_checked(r));
    ck_assert_uint_eq(fl_spool_reader_units(r)[2], 1);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 2, &d), FL_OK);
    ck_assert_int_eq(d.ops->read(&d, out, RIG_FC3), FL_OK);
    ck_assert_int_eq(d.ops->close(&d), FL_OK);
    ck_assert_mem_eq(out, upload + PAGE, sizeof(out));
    fl_spool_reader_close(r);
}
END_TEST

START_TEST(an_upload_without_sums_is_not_gone_on_with_but_begun_anew)
{
    struct fl_spool *s = NULL;
    struct fl_spool_reader *r = NULL;
    uint64_t received = 99;

    put_upload();
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), 0);
    ck_assert_int_eq(fl_spool_open(dir, 7, 2, "edge-01", &part, 1, &s, &received, NULL), FL_OK);
    ck_assert_uint_eq(received, 0);
    ck_assert_int_eq(fl_spool_write(s, 0, upload + PAGE, UPLOAD_DATA, NULL), FL_OK);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
    ck_assert_int_eq(open_upload(&r), FL_OK);
    ck_assert(fl_spool_reader_checked(r));
    fl_spool_reader_close(r);
}
END_TEST

/* magic, version, parts, bytes, unit, codec, length of the part, hash */
static const size_t upload_flips[] = {0, 8, 12, 16, 24, 32, 40, 48};

START_TEST(a_damaged_head_of_an_upload_without_sums_is_lost)
{
    struct fl_spool_reader *r = NULL;

    put_upload();
    flip(UPLOAD, upload_flips[_i]);
    ck_assert(fl_spool_is_lost(open_upload(&r)));
}
END_TEST

START_TEST(an_upload_without_sums_of_another_length_is_lost)
{
    struct fl_spool_reader *r = NULL;
    uint8_t longer[sizeof(upload) + 1] = {0};
    size_t len;

    put_upload();
    for (len = 0; len < sizeof(upload); len += len < PAGE ? 512 : 1) {
        put_file(UPLOAD, upload, len);
        ck_assert(fl_spool_is_lost(open_upload(&r)));
    }
    (void)memcpy(longer, upload, sizeof(upload));
    put_file(UPLOAD, longer, sizeof(longer));
    ck_assert(fl_spool_is_lost(open_upload(&r)));
}
END_TEST

/* --- spool files of version 3: its length says how much is there --- */

static uint8_t third[PAGE + UPLOAD_DATA + 16];

/* With checksums, of one block, behind the coded bytes. */
static void put_third(size_t len)
{
    put_upload();
    (void)memcpy(third, upload, sizeof(upload));
    (void)put_le(third + 8, 3, 4);
    (void)put_le(third + 48, fl_hash64(third, 48), 8);
    (void)put_le(third + PAGE + UPLOAD_DATA, fl_checksum(third + PAGE, UPLOAD_DATA), 8);
    (void)put_le(third + PAGE + UPLOAD_DATA + 8, fl_checksum(third + PAGE + UPLOAD_DATA, 8), 8);
    put_file(UPLOAD, third, len);
}

START_TEST(an_accepted_upload_of_version_3_is_read_and_checked)
{
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder d;
    float out[RIG_FC3];

    put_third(sizeof(third));
    ck_assert_int_eq(open_upload(&r), FL_OK);
    ck_assert(fl_spool_reader_checked(r));
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 2, &d), FL_OK);
    ck_assert_int_eq(d.ops->read(&d, out, RIG_FC3), FL_OK);
    ck_assert_mem_eq(out, upload + PAGE, sizeof(out));
    fl_spool_reader_close(r);
    flip(UPLOAD, PAGE + 5);
    ck_assert_int_eq(open_upload(&r), FL_OK);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 2, &d), FL_OK);
    ck_assert(fl_spool_is_lost(d.ops->read(&d, out, RIG_FC3)));
    fl_spool_reader_close(r);
}
END_TEST

START_TEST(half_an_upload_of_version_3_is_begun_anew)
{
    struct fl_spool *s = NULL;
    struct fl_spool_reader *r = NULL;
    uint64_t received = 99;

    put_third(PAGE + 40);
    ck_assert(fl_spool_is_lost(open_upload(&r)));
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), 0);
    ck_assert_int_eq(fl_spool_open(dir, 7, 2, "edge-01", &part, 1, &s, &received, NULL), FL_OK);
    ck_assert_uint_eq(received, 0);
    fl_spool_close(s);
}
END_TEST

/* --- mixtures of version 1: no checksums of models, another one of the head --- */

#define MIXED     "mixtures/000003.mix"
#define MIX_MODEL 600

static uint8_t mixed[PAGE + 2 * MIX_MODEL];

static void put_mixtures(void)
{
    uint8_t *at = mixed;
    size_t i;

    (void)memset(mixed, 0, sizeof(mixed));
    (void)memcpy(at, "FLMIXED\n", 8);
    at = put_le(at + 8, 1, 4); /* version */
    at = put_le(at, 2, 4);     /* clients */
    at = put_le(at, 3, 8);     /* round */
    at = put_le(at, MIX_MODEL, 8);
    (void)memcpy(at, "ant", 3);
    (void)memcpy(at + FL_NAME_MAX, "bee", 3);
    at += 2 * FL_NAME_MAX;
    (void)put_le(at, fl_hash64(mixed, (size_t)(at - mixed)), 8);
    for (i = 0; i < (size_t)2 * MIX_MODEL; i++) {
        mixed[PAGE + i] = (uint8_t)(i * 5 + i / MIX_MODEL);
    }
    put_file(MIXED, mixed, sizeof(mixed));
}

static int open_mixtures(struct fl_mixtures **ret)
{
    *ret = NULL;
    return fl_mixtures_open(dir, 3, MIX_MODEL, ret, NULL);
}

START_TEST(mixtures_without_sums_are_read_and_said_to_have_none)
{
    struct fl_mixtures *m = NULL;
    uint8_t got[MIX_MODEL];
    size_t i;

    put_mixtures();
    ck_assert_int_eq(open_mixtures(&m), FL_OK);
    ck_assert(!fl_mixtures_checked(m));
    ck_assert_int_eq(fl_mixtures_verify(m, NULL), FL_OK);
    ck_assert_uint_eq(fl_mixtures_count(m), 2);
    ck_assert_str_eq(fl_mixtures_name(m, 0), "ant");
    ck_assert_uint_eq(fl_mixtures_find(m, "bee"), 1);
    for (i = 0; i < 2; i++) {
        struct fl_file *f = fl_mixtures_file(m, i);

        ck_assert_int_eq(fl_file_read(f, 0, got, MIX_MODEL), FL_OK);
        ck_assert_mem_eq(got, mixed + PAGE + i * MIX_MODEL, MIX_MODEL);
        fl_file_unref(f);
    }
    fl_mixtures_close(m);
}
END_TEST

/* magic, version, clients, round, bytes, both names, hash */
static const size_t mixed_flips[] = {0, 8, 12, 16, 24, 32, 32 + FL_NAME_MAX, 32 + 2 * FL_NAME_MAX};

START_TEST(a_damaged_head_of_mixtures_without_sums_is_found)
{
    struct fl_mixtures *m = NULL;

    put_mixtures();
    flip(MIXED, mixed_flips[_i]);
    ck_assert_int_eq(open_mixtures(&m), FL_EFORMAT);
}
END_TEST

START_TEST(mixtures_without_sums_of_another_length_are_found)
{
    struct fl_mixtures *m = NULL;
    uint8_t longer[sizeof(mixed) + 1] = {0};

    put_mixtures();
    put_file(MIXED, mixed, sizeof(mixed) - 1);
    ck_assert_int_eq(open_mixtures(&m), FL_EFORMAT);
    put_file(MIXED, mixed, 31);
    ck_assert_int_eq(open_mixtures(&m), FL_EFORMAT);
    put_file(MIXED, mixed, 0);
    ck_assert_int_eq(open_mixtures(&m), FL_EFORMAT);
    (void)memcpy(longer, mixed, sizeof(mixed));
    put_file(MIXED, longer, sizeof(longer));
    ck_assert_int_eq(open_mixtures(&m), FL_EFORMAT);
}
END_TEST

/* --- offers --- */

#define OFFER 20000 /* two of them: three blocks of checksums */

static uint8_t offers[2 * OFFER];

static size_t n_left_out;

static int any(void *ctx, const void *data, size_t len, double *ret_largest, struct fl_err *err)
{
    (void)ctx;
    (void)data;
    (void)err;
    *ret_largest = 1.0;
    return len == OFFER ? FL_OK : FL_EFORMAT;
}

static void count(void *ctx, const struct fl_offer_info *info, const char *why)
{
    (void)ctx;
    (void)info;
    (void)why;
    n_left_out++;
}

static const struct fl_offers_rule rule = {.max = OFFER, .check = any, .left_out = count};

static void put_offers(void)
{
    struct fl_err err = {0};
    size_t i;

    for (i = 0; i < sizeof(offers); i++) {
        offers[i] = (uint8_t)(i * 11 + i / 256);
    }
    ck_assert_int_eq(fl_offers_put(dir, "ann", offers, OFFER, &err), FL_OK);
    ck_assert_int_eq(fl_offers_put(dir, "bob", offers + OFFER, OFFER, &err), FL_OK);
}

static void fix(size_t want_bad)
{
    struct fl_err err = {0};

    n_left_out = 0;
    ck_assert_msg(fl_offers_fix(dir, &rule, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(n_left_out, want_bad);
}

static int open_offers(void)
{
    struct fl_file *f = NULL;
    uint8_t digest[FL_DIGEST_SIZE];
    int rv = fl_offers_open(dir, &f, digest, NULL);

    fl_file_unref(f);
    return rv;
}

static void fixed_are(const uint8_t *want, size_t len)
{
    struct fl_file *f = NULL;
    struct fl_err err = {0};
    uint8_t digest[FL_DIGEST_SIZE];
    uint8_t expected[FL_DIGEST_SIZE];
    static uint8_t got[sizeof(offers)];

    ck_assert_msg(fl_offers_open(dir, &f, digest, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(fl_file_size(f), len);
    ck_assert_int_eq(fl_file_read(f, 0, got, len), FL_OK);
    ck_assert_mem_eq(got, want, len);
    ck_assert_int_eq(fl_sha256(want, len, expected), FL_OK);
    ck_assert_mem_eq(digest, expected, sizeof(digest));
    fl_file_unref(f);
}

static bool fixed_carry_checksums(void)
{
    struct fl_file *f = NULL;
    uint8_t digest[FL_DIGEST_SIZE];
    bool carry;

    ck_assert_int_eq(fl_offers_open(dir, &f, digest, NULL), FL_OK);
    carry = fl_file_checked(f);
    fl_file_unref(f);
    return carry;
}

START_TEST(what_an_earlier_version_fixed_stays_fixed)
{
    put_offers();
    put_file("offers/all", "what all told", 13);
    fix(0);
    ck_assert(!exists("offers/fixed"));
    fixed_are((const uint8_t *)"what all told", 13);
    ck_assert(!fixed_carry_checksums()); /* The log says so. */
}
END_TEST

START_TEST(an_offer_without_a_head_is_asked_for_again_and_never_joined)
{
    put_offers();
    put_file("offers/bob.offer", offers + OFFER, OFFER); /* as an earlier version put it */
    ck_assert(fl_offers_has(dir, "ann"));
    ck_assert(!fl_offers_has(dir, "bob"));
    fix(1);
    fixed_are(offers, OFFER);
}
END_TEST

/* magic, length, checksum, first and last byte */
static const size_t offer_flips[] = {0, 8, 15, 16, 23, 24, 24 + OFFER - 1};

START_TEST(a_damaged_offer_is_left_out)
{
    put_offers();
    flip("offers/ann.offer", offer_flips[_i]);
    fix(1);
    fixed_are(offers + OFFER, OFFER);
}
END_TEST

static const size_t offer_cuts[] = {0, 7, 8, 23, 24, OFFER, 24 + OFFER - 1};

START_TEST(an_offer_that_is_cut_is_left_out)
{
    char path[RIG_PATH_MAX];

    put_offers();
    rig_cut(rig_path(path, "offers/ann.offer"), offer_cuts[_i]);
    fix(1);
    fixed_are(offers + OFFER, OFFER);
}
END_TEST

/* magic, length, checksum of the sums; data in each block; the sums, first and last byte */
static const size_t fixed_flips[] = {0,
                                     7,
                                     8,
                                     12,
                                     15,
                                     16,
                                     23,
                                     32,
                                     32 + 16384,
                                     32 + 2 * OFFER - 1,
                                     32 + 2 * OFFER,
                                     32 + 2 * OFFER + 3 * 8 - 1};

/* Renamed, and made again out of the same offers. */
static void fixed_again(void)
{
    ck_assert_int_eq(open_offers(), FL_EFORMAT);
    ck_assert_int_eq(fl_offers_set_aside(dir, NULL), FL_OK);
    ck_assert(exists("offers/fixed.bad-1"));
    ck_assert_int_eq(open_offers(), FL_ENOENT);
    fix(0);
    fixed_are(offers, sizeof(offers));
}

START_TEST(fixed_offers_with_one_byte_changed_are_refused_and_fixed_again_alike)
{
    put_offers();
    fix(0);
    fixed_are(offers, sizeof(offers));
    flip("offers/fixed", fixed_flips[_i]);
    fixed_again();
}
END_TEST

static const size_t fixed_cuts[] = {
    0, 8, 23, 24, 32, 33, OFFER, 32 + 2 * OFFER, 32 + 2 * OFFER + 23};

START_TEST(fixed_offers_that_are_cut_are_refused_and_fixed_again_alike)
{
    char path[RIG_PATH_MAX];

    put_offers();
    fix(0);
    rig_cut(rig_path(path, "offers/fixed"), fixed_cuts[_i]);
    fixed_again();
}
END_TEST

/* Version 1 is version 2 without what it was made of, which lies behind the first 24 bytes. */
START_TEST(a_collection_of_version_1_is_read_and_made_again)
{
    static uint8_t v1[24 + 2 * OFFER + 3 * 8];
    char path[RIG_PATH_MAX];
    struct fl_buf buf;
    bool made = false;

    put_offers();
    fix(0);
    ck_assert_int_eq(fl_fs_read(rig_path(path, "offers/fixed"), 1 << 20, &buf, NULL), FL_OK);
    ck_assert_uint_eq(buf.len, sizeof(v1) + 8);
    (void)memcpy(v1, buf.data, 24);
    (void)memcpy(v1 + 7, "S", 1);
    (void)memcpy(v1 + 24, buf.data + 32, sizeof(v1) - 24);
    fl_buf_done(&buf);
    put_file("offers/fixed", v1, sizeof(v1));
    fixed_are(offers, sizeof(offers));
    ck_assert_int_eq(fl_offers_renew(dir, &rule, &made, NULL), FL_OK);
    ck_assert(made);
    fixed_are(offers, sizeof(offers));
    ck_assert_int_eq(fl_offers_renew(dir, &rule, &made, NULL), FL_OK);
    ck_assert(!made);
}
END_TEST

/* Where it says what it was made of: it cannot be trusted, and is made again alike. */
START_TEST(a_collection_made_of_other_files_is_made_again)
{
    bool made = false;

    put_offers();
    fix(0);
    flip("offers/fixed", 24 + (size_t)_i);
    ck_assert_int_eq(fl_offers_renew(dir, &rule, &made, NULL), FL_OK);
    ck_assert(made);
    fixed_are(offers, sizeof(offers));
}
END_TEST

START_TEST(forgetting_offers_forgets_what_was_fixed_of_them)
{
    put_offers();
    fix(0);
    put_file("offers/all", "of an earlier version", 21);
    ck_assert_int_eq(fl_offers_clear(dir, NULL), FL_OK);
    ck_assert_int_eq(open_offers(), FL_ENOENT);
    ck_assert(!fl_offers_has(dir, "ann"));
    fix(0);
    fixed_are((const uint8_t *)"", 0);
    ck_assert(fixed_carry_checksums());
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, an_accepted_upload_without_sums_is_read_and_said_to_have_none);
    tcase_add_test(tc, an_upload_without_sums_is_not_gone_on_with_but_begun_anew);
    tcase_add_loop_test(tc, a_damaged_head_of_an_upload_without_sums_is_lost, 0,
                        COUNT(upload_flips));
    tcase_add_test(tc, an_upload_without_sums_of_another_length_is_lost);
    tcase_add_test(tc, an_accepted_upload_of_version_3_is_read_and_checked);
    tcase_add_test(tc, half_an_upload_of_version_3_is_begun_anew);
    tcase_add_test(tc, mixtures_without_sums_are_read_and_said_to_have_none);
    tcase_add_loop_test(tc, a_damaged_head_of_mixtures_without_sums_is_found, 0,
                        COUNT(mixed_flips));
    tcase_add_test(tc, mixtures_without_sums_of_another_length_are_found);
    tcase_add_test(tc, what_an_earlier_version_fixed_stays_fixed);
    tcase_add_test(tc, an_offer_without_a_head_is_asked_for_again_and_never_joined);
    tcase_add_loop_test(tc, a_damaged_offer_is_left_out, 0, COUNT(offer_flips));
    tcase_add_loop_test(tc, an_offer_that_is_cut_is_left_out, 0, COUNT(offer_cuts));
    tcase_add_loop_test(tc, fixed_offers_with_one_byte_changed_are_refused_and_fixed_again_alike, 0,
                        COUNT(fixed_flips));
    tcase_add_loop_test(tc, fixed_offers_that_are_cut_are_refused_and_fixed_again_alike, 0,
                        COUNT(fixed_cuts));
    tcase_add_test(tc, a_collection_of_version_1_is_read_and_made_again);
    tcase_add_loop_test(tc, a_collection_made_of_other_files_is_made_again, 0, 8);
    tcase_add_test(tc, forgetting_offers_forgets_what_was_fixed_of_them);
}

int main(void)
{
    Suite *suite = suite_create("store_formats");
    TCase *tc = tcase_create("formats");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    add_tests(tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
