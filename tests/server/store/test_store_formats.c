/*
 * Files that are damaged, cut or of an unknown version: each is refused or begun anew, none is
 * used.
 */

#include <check.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "server/store/store_files.h"
#include "tests/lib/container_file.h"
#include "tests/lib/suites.h"
#include "tests/server/store/store_fixture.h"

#define PAGE 4096

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

/* --- uploads --- */

#define UPLOAD      "spool/edge-01.upload"
#define UPLOAD_DATA ((size_t)RIG_FC3 * 4)

static const struct fl_spool_part part = {
    .unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = UPLOAD_DATA};
static uint8_t upload[UPLOAD_DATA]; /* zeros */

static void put_upload(void)
{
    struct fl_spool *s = NULL;
    uint64_t received = 99;

    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", &part, 1, NULL},
                                   &s, &received, NULL),
                     FL_OK);
    ck_assert_uint_eq(received, 0);
    ck_assert_int_eq(fl_spool_write(s, 0, upload, UPLOAD_DATA, NULL), FL_OK);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
}

static int open_upload(void)
{
    struct fl_spool_reader *r = NULL;
    int rv = fl_spool_reader_open(dir, 7, 2, "edge-01", layout, &r, NULL);

    fl_spool_reader_close(r);
    return rv;
}

TEST_CASE("formats", store_setup_folders, store_teardown);

/* Its head is whole: only the version is another. */
TEST(an_upload_of_an_unknown_version_is_lost_and_begun_anew)
{
    struct fl_buf file;

    put_upload();
    ck_assert_int_eq(open_upload(), FL_OK);
    file = get_file(UPLOAD);
    container_make_later(&file);
    put_file(UPLOAD, file.data, file.len);
    fl_buf_done(&file);
    ck_assert(fl_spool_is_lost(open_upload()));
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), 0);
    put_upload();
    ck_assert_int_eq(open_upload(), FL_OK);
}

/* --- personalized models --- */

#define MIXED     "personal_models/000003.mix"
#define MIX_MODEL 600

static void put_personal_models(void)
{
    static const char *const names[] = {"ant", "bee"};
    struct fl_personal_models_writer *w = NULL;
    uint8_t model[MIX_MODEL] = {1};
    size_t i;

    ck_assert_int_eq(fl_personal_models_create(dir, 3, names, 2, MIX_MODEL, &w, NULL), FL_OK);
    for (i = 0; i < 2; i++) {
        ck_assert_int_eq(fl_personal_models_write(w, i, 0, model, MIX_MODEL, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_personal_models_publish(w, NULL), FL_OK);
}

static int open_personal_models(void)
{
    struct fl_personal_models *m = NULL;
    int rv = fl_personal_models_open(dir, 3, MIX_MODEL, &m, NULL);

    fl_personal_models_close(m);
    return rv;
}

/* Offsets in a head with two sections and these fields: round, bytes, both names. */
#define MIX_FIELDS (32 + 2 * 16)
#define MIX_HASH   (MIX_FIELDS + 16 + 2 * FL_NAME_MAX)

/* magic, kind, version, sections, flags, length of the fields, names and bytes of the sections,
 * round, bytes, both names, hash, the zeros behind it; checksums, seal */
static const size_t mixed_flips[] = {0,
                                     8,
                                     16,
                                     20,
                                     24,
                                     28,
                                     32,
                                     40,
                                     56,
                                     MIX_FIELDS,
                                     MIX_FIELDS + 8,
                                     MIX_FIELDS + 16,
                                     MIX_FIELDS + 16 + FL_NAME_MAX,
                                     MIX_HASH,
                                     MIX_HASH + 8,
                                     PAGE - 1,
                                     PAGE + 2 * MIX_MODEL,
                                     PAGE + 2 * MIX_MODEL + 16};

TEST_EACH(a_damaged_head_of_personal_models_is_found, ARRAY_LEN(mixed_flips))
{
    put_personal_models();
    ck_assert_int_eq(open_personal_models(), FL_OK);
    flip(MIXED, mixed_flips[_i]);
    ck_assert_int_eq(open_personal_models(), FL_EFORMAT);
}

TEST(personal_models_of_another_length_are_found)
{
    static const size_t cuts[] = {PAGE + 2 * MIX_MODEL + 3 * 8 - 1, PAGE + 2 * MIX_MODEL - 1,
                                  PAGE - 1, 31, 0};
    struct fl_buf file;
    uint8_t longer[PAGE + 2 * MIX_MODEL + 3 * 8 + 1] = {0};
    size_t i;

    put_personal_models();
    file = get_file(MIXED);
    ck_assert_uint_eq(file.len, sizeof(longer) - 1);
    for (i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        put_file(MIXED, file.data, cuts[i]);
        ck_assert_int_eq(open_personal_models(), FL_EFORMAT);
    }
    (void)memcpy(longer, file.data, file.len);
    put_file(MIXED, longer, sizeof(longer));
    ck_assert_int_eq(open_personal_models(), FL_EFORMAT);
    fl_buf_done(&file);
}

TEST(personal_models_of_an_unknown_version_are_refused)
{
    struct fl_buf file;

    put_personal_models();
    file = get_file(MIXED);
    container_make_later(&file);
    put_file(MIXED, file.data, file.len);
    fl_buf_done(&file);
    ck_assert_int_eq(open_personal_models(), FL_EFORMAT);
}

/* --- summaries --- */

#define SUMMARY 20000 /* two of them: three blocks of checksums */

static uint8_t summaries[2 * SUMMARY];

static size_t n_left_out;

static int any(void *ctx, const void *data, size_t len, double *ret_largest, struct fl_err *err)
{
    (void)ctx;
    (void)data;
    (void)err;
    *ret_largest = 1.0;
    return len == SUMMARY ? FL_OK : FL_EFORMAT;
}

static void count(void *ctx, const struct fl_data_summary_info *info, const char *why)
{
    (void)ctx;
    (void)info;
    (void)why;
    n_left_out++;
}

static const struct fl_summaries_rule rule = {.max = SUMMARY, .check = any, .left_out = count};

static void put_summaries(void)
{
    struct fl_err err = {0};
    size_t i;

    for (i = 0; i < sizeof(summaries); i++) {
        summaries[i] = (uint8_t)(i * 11 + i / 256);
    }
    ck_assert_int_eq(fl_summaries_put(dir, "ann", summaries, SUMMARY, &err), FL_OK);
    ck_assert_int_eq(fl_summaries_put(dir, "bob", summaries + SUMMARY, SUMMARY, &err), FL_OK);
}

static void fix(size_t want_bad)
{
    struct fl_err err = {0};

    n_left_out = 0;
    ck_assert_msg(fl_summaries_fix(dir, &rule, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(n_left_out, want_bad);
}

static int open_summaries(void)
{
    struct fl_file *f = NULL;
    uint8_t digest[FL_DIGEST_SIZE];
    int rv = fl_summaries_open(dir, &f, digest, NULL);

    fl_file_unref(f);
    return rv;
}

static void fixed_are(const uint8_t *want, size_t len)
{
    struct fl_file *f = NULL;
    struct fl_err err = {0};
    uint8_t digest[FL_DIGEST_SIZE];
    uint8_t expected[FL_DIGEST_SIZE];
    static uint8_t got[sizeof(summaries)];

    ck_assert_msg(fl_summaries_open(dir, &f, digest, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(fl_file_size(f), len);
    ck_assert_int_eq(fl_file_read(f, 0, got, len), FL_OK);
    ck_assert_mem_eq(got, want, len);
    ck_assert_int_eq(fl_sha256(want, len, expected), FL_OK);
    ck_assert_mem_eq(digest, expected, sizeof(digest));
    fl_file_unref(f);
}

TEST(a_summary_without_a_head_is_asked_for_again_and_never_joined)
{
    put_summaries();
    put_file("summaries/bob.summary", summaries + SUMMARY, SUMMARY);
    ck_assert(fl_summaries_has(dir, "ann"));
    ck_assert(!fl_summaries_has(dir, "bob"));
    fix(1);
    fixed_are(summaries, SUMMARY);
}

/* magic, kind, version, section, length, hash; first and last byte; checksums, seal */
static const size_t summary_flips[] = {
    0, 8, 16, 32, 40, 48, PAGE, PAGE + SUMMARY - 1, PAGE + SUMMARY, PAGE + SUMMARY + 2 * 8};

TEST_EACH(a_damaged_summary_is_left_out, ARRAY_LEN(summary_flips))
{
    put_summaries();
    flip("summaries/ann.summary", summary_flips[_i]);
    fix(1);
    fixed_are(summaries + SUMMARY, SUMMARY);
}

static const size_t summary_cuts[] = {
    0, 7, 8, 23, PAGE - 1, PAGE, PAGE + SUMMARY, PAGE + SUMMARY + 3 * 8 - 1};

TEST_EACH(a_summary_that_is_cut_is_left_out, ARRAY_LEN(summary_cuts))
{
    char path[RIG_PATH_MAX];

    put_summaries();
    rig_cut(rig_path(path, "summaries/ann.summary"), summary_cuts[_i]);
    fix(1);
    fixed_are(summaries + SUMMARY, SUMMARY);
}

/* magic, kind, version, section, length, inputs, hash; data in each block; the sums, first and last
 * byte */
static const size_t fixed_flips[] = {0,
                                     7,
                                     8,
                                     16,
                                     32,
                                     40,
                                     48,
                                     56,
                                     PAGE,
                                     PAGE + 16384,
                                     PAGE + 2 * SUMMARY - 1,
                                     PAGE + 2 * SUMMARY,
                                     PAGE + 2 * SUMMARY + 4 * 8 - 1};

/* Renamed, and made again out of the same summaries. */
static void fixed_again(void)
{
    ck_assert_int_eq(open_summaries(), FL_EFORMAT);
    ck_assert_int_eq(fl_summaries_quarantine(dir, NULL), FL_OK);
    ck_assert(exists("summaries/fixed.bad-1"));
    ck_assert_int_eq(open_summaries(), FL_ENOENT);
    fix(0);
    fixed_are(summaries, sizeof(summaries));
}

TEST_EACH(fixed_summaries_with_one_byte_changed_are_refused_and_fixed_again_alike,
          ARRAY_LEN(fixed_flips))
{
    put_summaries();
    fix(0);
    fixed_are(summaries, sizeof(summaries));
    flip("summaries/fixed", fixed_flips[_i]);
    fixed_again();
}

static const size_t fixed_cuts[] = {
    0, 8, 23, PAGE - 1, PAGE, SUMMARY, PAGE + 2 * SUMMARY, PAGE + 2 * SUMMARY + 4 * 8 - 1};

TEST_EACH(fixed_summaries_that_are_cut_are_refused_and_fixed_again_alike, ARRAY_LEN(fixed_cuts))
{
    char path[RIG_PATH_MAX];

    put_summaries();
    fix(0);
    rig_cut(rig_path(path, "summaries/fixed"), fixed_cuts[_i]);
    fixed_again();
}

/* Where it says what it was made of: it cannot be trusted, and is made again alike. */
TEST_EACH(a_collection_made_of_other_files_is_made_again, 8)
{
    bool made = false;

    put_summaries();
    fix(0);
    flip("summaries/fixed", 48 + (size_t)_i); /* the field */
    ck_assert_int_eq(fl_summaries_renew(dir, &rule, &made, NULL), FL_OK);
    ck_assert(made);
    fixed_are(summaries, sizeof(summaries));
}

TEST(forgetting_summaries_forgets_what_was_fixed_of_them)
{
    put_summaries();
    fix(0);
    ck_assert_int_eq(fl_summaries_clear(dir, NULL), FL_OK);
    ck_assert_int_eq(open_summaries(), FL_ENOENT);
    ck_assert(!fl_summaries_has(dir, "ann"));
    fix(0);
    fixed_are((const uint8_t *)"", 0);
}
