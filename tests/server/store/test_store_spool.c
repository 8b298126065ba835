#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/store/store.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

#define HEADER 4096
/* fc1 and fc3, as plain floats. */
#define TOTAL ((RIG_FC1 + RIG_FC3) * sizeof(float))
/* Behind them: three checksums of blocks, and that of these. */
#define TAIL   32
#define FILE_A "spool/edge-01.upload"

static const struct fl_spool_part parts[] = {
    {.unit = 0, .codec = FL_CODEC_FLOAT32, .bytes = RIG_FC1 * sizeof(float)},
    {.unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = RIG_FC3 * sizeof(float)},
};

/* Check's own macro promotes to double, which the build forbids. */
static bool same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static struct fl_layout *layout;
static const char *dir;
static float update[RIG_FC1 + RIG_FC3];

static void setup(void)
{
    size_t i;

    dir = rig_dir();
    layout = rig_layout();
    for (i = 0; i < RIG_FC1 + RIG_FC3; i++) {
        update[i] = (float)i * 0.001f - 3.0f;
    }
}

static void teardown(void)
{
    fl_layout_free(layout);
    rig_remove();
}

static struct fl_spool *open_spool(uint64_t want_received)
{
    struct fl_spool *s = NULL;
    struct fl_err err = {0};
    uint64_t received = 0;
    int rv = fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", parts, 2, NULL}, &s,
                           &received, &err);

    ck_assert_msg(rv == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(received, want_received);
    ck_assert_uint_eq(fl_spool_received(s), want_received);
    return s;
}

static void write_span(struct fl_spool *s, uint64_t from, uint64_t to)
{
    struct fl_err err = {0};
    const char *bytes = (const char *)update;

    ck_assert_msg(fl_spool_write(s, from, bytes + from, (size_t)(to - from), &err) == FL_OK, "%s",
                  err.msg);
}

static struct fl_spool *whole_spool(void)
{
    struct fl_spool *s = open_spool(0);

    write_span(s, 0, TOTAL);
    return s;
}

/* With its checksums, as an accepted one. */
static void finished_spool(void)
{
    struct fl_spool *s = whole_spool();

    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
}

static int open_reader(struct fl_spool_reader **ret, struct fl_err *err)
{
    *ret = NULL;
    return fl_spool_reader_open(dir, 7, 2, "edge-01", layout, ret, err);
}

/* Decode a unit in steps of `step` and compare. */
static void compare_unit(struct fl_spool_reader *r, size_t unit, const float *want, size_t step)
{
    size_t count = fl_layout_unit(layout, unit)->count;
    float *got = calloc(count, sizeof(*got));
    struct fl_codec_decoder d;
    size_t i;

    ck_assert_ptr_nonnull(got);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, unit, &d), FL_OK);
    for (i = 0; i < count; i += step) {
        ck_assert_int_eq(d.ops->read(&d, got + i, count - i < step ? count - i : step), FL_OK);
    }
    ck_assert_int_eq(d.ops->close(&d), FL_OK);
    ck_assert_mem_eq(got, want, count * sizeof(*got));
    free(got);
}

static const size_t steps[] = {1, 7, 1000, 1024, 5000, RIG_FC1};

TEST_CASE("spool", setup, teardown);

TEST_EACH(an_upload_comes_back_as_it_was_sent, ARRAY_LEN(steps))
{
    struct fl_spool *s = open_spool(0);
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder d;
    const uint8_t *units;

    write_span(s, 0, 10);
    write_span(s, 10, 10);
    write_span(s, 10, RIG_FC1 * sizeof(float) + 3);
    write_span(s, RIG_FC1 * sizeof(float) + 3, TOTAL);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_POWER, NULL), FL_OK);
    fl_spool_close(s);
    ck_assert_int_eq(open_reader(&r, NULL), FL_OK);
    units = fl_spool_reader_units(r);
    ck_assert(units[0] == 1 && units[1] == 0 && units[2] == 1);
    /* The smallest buffer: every way of filling it is taken. */
    fl_spool_reader_share(r, _i % 2 == 0 ? 100000 : 1);
    compare_unit(r, 0, update, steps[_i]);
    compare_unit(r, 2, update + RIG_FC1, steps[_i]);
    compare_unit(r, 0, update, steps[_i]);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 1, &d), FL_ENOENT);
    fl_spool_reader_close(r);
    fl_spool_reader_close(NULL);
    fl_spool_close(NULL);
}

TEST(decoders_of_two_units_do_not_disturb_each_other)
{
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder a;
    struct fl_codec_decoder b;
    float x = 0.0f;
    float y = 0.0f;
    size_t i;

    finished_spool();
    ck_assert_int_eq(open_reader(&r, NULL), FL_OK);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 0, &a), FL_OK);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 2, &b), FL_OK);
    for (i = 0; i < RIG_FC3; i++) {
        ck_assert_int_eq(a.ops->read(&a, &x, 1), FL_OK);
        ck_assert_int_eq(b.ops->read(&b, &y, 1), FL_OK);
        ck_assert(same_float(x, update[i]));
        ck_assert(same_float(y, update[RIG_FC1 + i]));
    }
    fl_spool_reader_close(r);
}

TEST(an_interrupted_upload_goes_on_where_it_was)
{
    struct fl_spool *s = open_spool(0);
    struct fl_spool_reader *r = NULL;

    write_span(s, 0, 5001);
    fl_spool_close(s);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), 5001);
    s = open_spool(5001);
    write_span(s, 5001, TOTAL);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), TOTAL);
    ck_assert_int_eq(open_reader(&r, NULL), FL_OK);
    compare_unit(r, 0, update, 777);
    fl_spool_reader_close(r);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-02"), 0);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "../x"), 0);
}

static const uint64_t cuts[] = {0, 1, 23, 24, 60, 4095};

TEST_EACH(a_file_without_a_whole_header_counts_as_not_there, ARRAY_LEN(cuts))
{
    struct fl_spool *s = whole_spool();
    char path[RIG_PATH_MAX];

    fl_spool_close(s);
    rig_cut(rig_path(path, FILE_A), cuts[_i]);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), 0);
    s = open_spool(0);
    write_span(s, 0, TOTAL);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
}

TEST(a_file_cut_anywhere_behind_the_header_resumes_there)
{
    struct fl_spool *s = whole_spool();
    char path[RIG_PATH_MAX];

    fl_spool_close(s);
    rig_cut(rig_path(path, FILE_A), HEADER + 1234);
    s = open_spool(1234);
    write_span(s, 1234, TOTAL);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
    rig_cut(rig_path(path, FILE_A), HEADER);
    fl_spool_close(open_spool(0));
}

TEST(a_damaged_header_starts_over)
{
    struct fl_spool *s = whole_spool();
    struct fl_spool_reader *r = NULL;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    fl_spool_close(s);
    rig_damage(rig_path(path, FILE_A), 30, 1);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), 0);
    ck_assert_int_eq(open_reader(&r, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "has no complete header"));
    fl_spool_close(open_spool(0));
}

TEST(another_manifest_starts_over)
{
    struct fl_spool_part other[] = {parts[0], parts[1]};
    struct fl_spool *s = open_spool(0);
    uint64_t received = 99;

    write_span(s, 0, 5001);
    fl_spool_close(s);
    other[1].unit = 1;
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", other, 2, NULL},
                                   &s, &received, NULL),
                     FL_OK);
    ck_assert_uint_eq(received, 0);
    fl_spool_close(s);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), 0);
}

TEST(what_lies_behind_an_upload_in_its_file_is_not_part_of_it)
{
    struct fl_spool *s = whole_spool();
    struct fl_spool_reader *r = NULL;
    char path[RIG_PATH_MAX];

    fl_spool_close(s);
    rig_cut(rig_path(path, FILE_A), HEADER + TOTAL + TAIL + 100000);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), TOTAL);
    s = open_spool(TOTAL);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
    ck_assert_int_eq(open_reader(&r, NULL), FL_OK);
    compare_unit(r, 2, update + RIG_FC1, 777);
    fl_spool_reader_close(r);
}

TEST(a_chunk_at_the_wrong_offset_is_refused)
{
    struct fl_spool *s = open_spool(0);
    struct fl_err err = {0};

    write_span(s, 0, 100);
    ck_assert_int_eq(fl_spool_write(s, 99, update, 4, &err), FL_ERANGE);
    ck_assert_str_eq(err.msg, "upload continues at offset 100, not at 99");
    ck_assert_int_eq(fl_spool_write(s, 101, update, 4, &err), FL_ERANGE);
    ck_assert_uint_eq(fl_spool_received(s), 100);
    fl_spool_close(s);
}

TEST(a_chunk_past_the_manifest_is_refused)
{
    struct fl_spool *s = open_spool(0);
    struct fl_err err = {0};

    write_span(s, 0, TOTAL - 3);
    ck_assert_int_eq(fl_spool_write(s, TOTAL - 3, update, 4, &err), FL_ELIMIT);
    ck_assert_str_eq(err.msg, "upload has more than the 33688 bytes of its manifest");
    ck_assert_int_eq(fl_spool_write(s, TOTAL - 3, update, SIZE_MAX, &err), FL_ELIMIT);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "upload is not complete: 33685 of 33688 bytes");
    write_span(s, TOTAL - 3, TOTAL);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
}

TEST(two_writers_of_one_upload_are_refused)
{
    struct fl_spool *s = open_spool(0);
    struct fl_spool *second = NULL;
    struct fl_err err = {0};
    uint64_t received = 0;

    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", parts, 2, NULL},
                                   &second, &received, &err),
                     FL_EINUSE);
    ck_assert_ptr_nonnull(strstr(err.msg, "is being uploaded already"));
    fl_spool_close(s);
    fl_spool_close(open_spool(0));
}

static const float poison[] = {(float)NAN, (float)INFINITY, -(float)INFINITY};

TEST_EACH(a_value_that_is_not_finite_is_refused_and_removed, 6)
{
    struct fl_spool *s;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    update[_i % 3 == 0 ? RIG_FC1 - 1 : RIG_FC1 + 5] = poison[_i % 3];
    s = whole_spool();
    /* With a norm bound and without one. */
    ck_assert_int_eq(fl_spool_finish(s, layout, _i < 3 ? 0.0 : 1e9, FL_DURABLE_PROCESS, &err),
                     FL_ENUMERIC);
    ck_assert_str_eq(err.msg, _i % 3 == 0
                                  ? "unit 'fc1' of the upload holds a value that is not finite"
                                  : "unit 'fc3' of the upload holds a value that is not finite");
    fl_spool_close(s);
    ck_assert(!fl_fs_exists(rig_path(path, FILE_A)));
}

TEST(the_norm_bound_counts_all_units)
{
    struct fl_spool *s = whole_spool();
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];
    double sum = 0.0;
    size_t i;

    for (i = 0; i < RIG_FC1 + RIG_FC3; i++) {
        sum += (double)update[i] * (double)update[i];
    }
    ck_assert_int_eq(fl_spool_finish(s, layout, sqrt(sum) * 1.0001, FL_DURABLE_PROCESS, &err),
                     FL_OK);
    ck_assert_int_eq(fl_spool_finish(s, layout, sqrt(sum) * 0.9999, FL_DURABLE_PROCESS, &err),
                     FL_ERANGE);
    ck_assert_ptr_nonnull(strstr(err.msg, "exceeds the bound"));
    ck_assert_ptr_nonnull(strstr(err.msg, "most of it in unit 'fc1'"));
    fl_spool_close(s);
    ck_assert(!fl_fs_exists(rig_path(path, FILE_A)));
}

/* Of an entry of what was sent, whatever was; the largest float does not overflow it. */
TEST_EACH(a_finished_upload_tells_its_norms, 2)
{
    struct fl_spool *s;
    struct fl_norms norms;
    double sum = 0.0;
    double unit = 0.0;
    size_t i;

    update[3] = _i == 0 ? update[3] : 3.4028235e38f;
    for (i = 0; i < RIG_FC1 + RIG_FC3; i++) {
        unit += i < RIG_FC1 ? (double)update[i] * (double)update[i] : 0.0;
        sum += (double)update[i] * (double)update[i];
    }
    s = whole_spool();
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    norms = fl_spool_take_norms(s);
    ck_assert_ptr_nonnull(norms.unit);
    ck_assert_double_eq_tol(norms.rms[0] / sqrt(sum / (RIG_FC1 + RIG_FC3)), 1, 1e-9);
    ck_assert_double_eq(norms.rms[1], 0);
    ck_assert_double_eq(norms.rms[FL_NORMS_BUFFERS], 0);
    ck_assert_double_eq_tol((double)norms.unit[0].norm / sqrt(unit), 1, 1e-6);
    ck_assert_double_lt((double)norms.unit[1].norm, 0); /* It was not asked for. */
    ck_assert_double_ge((double)norms.unit[2].norm, 0);
    free(norms.unit);
    fl_spool_close(s);
}

TEST(finite_values_with_an_infinite_norm_are_over_every_bound)
{
    struct fl_spool *s;

    update[3] = 3e38f;
    s = whole_spool();
    ck_assert_int_eq(fl_spool_finish(s, layout, 1e30, FL_DURABLE_PROCESS, NULL), FL_ERANGE);
    fl_spool_close(s);
}

static const struct {
    struct fl_spool_part part;
    const char *message;
} lies[] = {
    {{.unit = 3, .codec = FL_CODEC_FLOAT32, .bytes = 8},
     "upload holds unit 3 of a model of 3 units"},
    {{.unit = 0, .codec = 99, .bytes = 8}, "unit 'fc1' of the upload is not what its codec writes"},
    {{.unit = 0, .codec = UINT32_MAX, .bytes = 8},
     "unit 'fc1' of the upload is not what its codec writes"},
    {{.unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = RIG_FC3 * 4 - 4},
     "unit 'fc3' of the upload is not what its codec writes"},
    {{.unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = RIG_FC3 * 4 + 4},
     "unit 'fc3' of the upload is not what its codec writes"},
    {{.unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = 0},
     "unit 'fc3' of the upload is not what its codec writes"},
};

TEST_EACH(a_manifest_that_lies_is_refused_at_the_end, ARRAY_LEN(lies))
{
    struct fl_spool *s = NULL;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];
    uint64_t received = 0;

    ck_assert_int_eq(
        fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", &lies[_i].part, 1, NULL}, &s,
                      &received, NULL),
        FL_OK);
    ck_assert_int_eq(fl_spool_write(s, 0, update, (size_t)lies[_i].part.bytes, NULL), FL_OK);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, &err), FL_EFORMAT);
    ck_assert_str_eq(err.msg, lies[_i].message);
    fl_spool_close(s);
    ck_assert(!fl_fs_exists(rig_path(path, FILE_A)));
}

TEST(a_manifest_out_of_order_or_too_large_is_refused_at_once)
{
    const struct fl_spool_part falling[] = {parts[1], parts[0]};
    const struct fl_spool_part twice[] = {parts[0], parts[0]};
    const struct fl_spool_part huge[] = {{.unit = 0, .codec = 1, .bytes = UINT64_MAX}};
    struct fl_spool *s = NULL;
    struct fl_err err = {0};
    uint64_t r = 0;

    ck_assert_int_eq(
        fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", falling, 2, NULL}, &s, &r,
                      &err),
        FL_EINVAL);
    ck_assert_str_eq(err.msg, "the units of an upload must rise: 0 follows 2");
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", twice, 2, NULL},
                                   &s, &r, NULL),
                     FL_EINVAL);
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", huge, 1, NULL},
                                   &s, &r, NULL),
                     FL_EINVAL);
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", parts, 0, NULL},
                                   &s, &r, NULL),
                     FL_EINVAL);
    ck_assert_int_eq(
        fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "a/../../b", parts, 2, NULL}, &s, &r,
                      &err),
        FL_EINVAL);
    ck_assert_str_eq(err.msg, "not a valid client name");
}

TEST(what_a_peer_announces_is_checked_against_its_grant)
{
    static const uint8_t grant[] = {1, 0, 1};
    static const uint8_t all[] = {1, 1, 1};
    static const uint8_t one[] = {1, 0, 0};
    struct fl_spool_part other[] = {parts[0], parts[1]};
    struct fl_err err = {0};
    const struct fl_spool_form f32 = {.codec = FL_CODEC_FLOAT32, .n_payloads = 1};

    ck_assert_int_eq(fl_spool_check(layout, grant, &f32, parts, 2, NULL), FL_OK);
    ck_assert_int_eq(fl_spool_check(layout, all, &f32, parts, 2, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "unit 'fc2' was asked for and is not in its place");
    ck_assert_int_eq(fl_spool_check(layout, grant, &f32, parts, 1, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "unit 'fc3' was asked for and is not in its place");
    ck_assert_int_eq(fl_spool_check(layout, one, &f32, parts, 2, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "1 units that were not asked for are in the upload");
    other[1].codec = FL_CODEC_INT8;
    ck_assert_int_eq(fl_spool_check(layout, grant, &f32, other, 2, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "unit 'fc3' comes in codec 4, not float32");
    other[1] = parts[1];
    other[0].bytes++;
    ck_assert_int_eq(fl_spool_check(layout, grant, &f32, other, 2, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "unit 'fc1' has 33601 bytes, at most 33600 are possible");
}

TEST(a_reader_refuses_what_is_not_complete)
{
    struct fl_spool *s = open_spool(0);
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder d;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];
    float out[64];

    ck_assert_int_eq(fl_spool_reader_open(dir, 8, 1, "edge-02", layout, &r, &err), FL_ENOENT);
    ck_assert_int_eq(fl_spool_reader_open(dir, 8, 1, "edge-01", layout, &r, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "has no complete header of this upload"));
    write_span(s, 0, TOTAL - 1);
    ck_assert_int_eq(open_reader(&r, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "has 33687 coded bytes, its header says 33688"));
    write_span(s, TOTAL - 1, TOTAL);
    ck_assert_int_eq(open_reader(&r, NULL), FL_EFORMAT); /* Its checksums are missing. */
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
    /* Cut while it is being read: an error, not a crash. */
    ck_assert_int_eq(open_reader(&r, NULL), FL_OK);
    rig_cut(rig_path(path, FILE_A), HEADER + 100);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 2, &d), FL_OK);
    ck_assert_int_eq(d.ops->read(&d, out, 4), FL_EFORMAT);
    (void)unlink(path);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 0, &d), FL_OK);
    ck_assert_int_eq(d.ops->read(&d, out, 4), FL_ENOENT);
    fl_spool_reader_close(r);
}

static void flip(uint64_t offset)
{
    char path[RIG_PATH_MAX];
    struct fl_buf file;

    ck_assert_int_eq(fl_fs_read(rig_path(path, FILE_A), 1 << 20, &file, NULL), FL_OK);
    file.data[offset] ^= 1u;
    ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
    fl_buf_done(&file);
}

static int read_all(void)
{
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder d;
    float out[RIG_FC1];
    int rv = open_reader(&r, NULL);

    if (rv == FL_OK && (rv = fl_spool_reader_unit(r, 0, 0, &d)) == FL_OK &&
        (rv = d.ops->read(&d, out, RIG_FC1)) == FL_OK &&
        (rv = fl_spool_reader_unit(r, 0, 2, &d)) == FL_OK)
    {
        rv = d.ops->read(&d, out, RIG_FC3);
    }
    fl_spool_reader_close(r);
    return rv;
}

static const uint64_t flips[] = {
    40, HEADER, HEADER + 20000, HEADER + TOTAL - 1, HEADER + TOTAL, HEADER + TOTAL + TAIL - 1};

TEST_EACH(a_flipped_bit_of_an_accepted_upload_is_found_before_it_is_used, ARRAY_LEN(flips))
{
    finished_spool();
    ck_assert_int_eq(read_all(), FL_OK);
    flip(flips[_i]);
    ck_assert_int_eq(read_all(), FL_EFORMAT);
    ck_assert(fl_spool_is_lost(FL_EFORMAT));
    flip(flips[_i]);
    ck_assert_int_eq(read_all(), FL_OK);
}

TEST(bytes_that_change_before_the_upload_is_judged_are_not_its_fault)
{
    struct fl_spool *s = whole_spool();
    char path[RIG_PATH_MAX];
    struct fl_err err = {0};
    int rv;

    rig_damage(rig_path(path, FILE_A), HEADER + 9000, 1);
    rv = fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, &err);
    fl_spool_close(s);
    ck_assert_int_eq(rv, FL_EIO);
    ck_assert(!fl_spool_is_bad(rv));
    ck_assert_ptr_nonnull(strstr(err.msg, "does not hold the bytes that were received"));
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), 0);
}

TEST(a_reader_refuses_the_units_of_another_model)
{
    struct fl_layout *other = NULL;
    const size_t dims[] = {RIG_FC1};
    struct fl_spool_reader *r = NULL;
    struct fl_err err = {0};

    finished_spool();
    ck_assert_int_eq(fl_layout_create(&other), FL_OK);
    ck_assert_int_eq(fl_layout_add(other, "a", "a.w", dims, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(other, NULL), FL_OK);
    ck_assert_int_eq(fl_spool_reader_open(dir, 7, 2, "edge-01", other, &r, &err), FL_ESHAPE);
    ck_assert_ptr_nonnull(strstr(err.msg, "holds unit 2 of a model of 1 units"));
    fl_layout_free(other);
}

TEST(more_readers_than_descriptors_are_open_at_once)
{
    struct fl_spool_reader *readers[300];
    struct rlimit limit = {.rlim_cur = 40, .rlim_max = 40};
    struct fl_codec_decoder d[300];
    float out[8];
    size_t i;
    size_t k;

    finished_spool();
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (i = 0; i < 300; i++) {
        ck_assert_int_eq(open_reader(&readers[i], NULL), FL_OK);
        fl_spool_reader_share(readers[i], 300);
        ck_assert_int_eq(fl_spool_reader_unit(readers[i], 0, 0, &d[i]), FL_OK);
    }
    for (k = 0; k < 3; k++) {
        for (i = 0; i < 300; i++) {
            ck_assert_int_eq(d[i].ops->read(&d[i], out, 8), FL_OK);
            ck_assert(same_float(out[0], update[k * 8]));
        }
    }
    for (i = 0; i < 300; i++) {
        fl_spool_reader_close(readers[i]);
    }
}

TEST(cleaning_keeps_only_the_open_attempt)
{
    static const struct {
        uint64_t round;
        uint32_t attempt;
    } files[] = {{6, 1}, {7, 1}, {7, 2}, {8, 1}, {70, 2}};
    char path[RIG_PATH_MAX];
    uint64_t received = 0;
    char client[16];
    size_t i;

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct fl_spool *s = NULL;

        (void)snprintf(client, sizeof(client), "edge-%zu", i);
        ck_assert_int_eq(
            fl_spool_open(&(struct fl_spool_opening){dir, files[i].round, files[i].attempt, client,
                                                     parts, 2, NULL},
                          &s, &received, NULL),
            FL_OK);
        ck_assert_int_eq(fl_spool_write(s, 0, update, 4, NULL), FL_OK);
        fl_spool_close(s);
    }
    ck_assert_int_eq(fl_fs_replace(rig_path(path, "spool/notes.txt"), "x", 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_spool_clean(dir, 7, 2, NULL), FL_OK);
    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        (void)snprintf(client, sizeof(client), "edge-%zu", i);
        ck_assert_uint_eq(fl_spool_peek(dir, files[i].round, files[i].attempt, client),
                          i == 2 ? 4 : 0);
    }
    ck_assert_int_eq(fl_spool_clean(dir, 0, 0, NULL), FL_OK);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-2"), 0);
    ck_assert(fl_fs_exists(path));
    ck_assert_int_eq(fl_spool_clean("/nonexistent/folder", 0, 0, NULL), FL_OK);
}

TEST(a_full_disk_leaves_what_was_received)
{
    struct fl_spool *s = open_spool(0);
    struct fl_err err = {0};

    write_span(s, 0, 1000);
    rig_limit_files(HEADER + 2000);
    ck_assert_int_ne(fl_spool_write(s, 1000, update, 20000, &err), FL_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "cannot write '"));
    ck_assert_uint_eq(fl_spool_received(s), 1000);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), 1000);
    rig_limit_files(0);
    write_span(s, 1000, TOTAL);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
}

TEST(what_was_received_survives_a_kill)
{
    struct fl_spool *s;
    uint64_t there;
    char bytes[64];
    int fds[2];
    int status;
    pid_t pid;

    ck_assert_int_eq(pipe(fds), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        uint64_t at;

        s = open_spool(0);
        for (at = 0; at + 64 <= TOTAL; at += 64) {
            write_span(s, at, at + 64);
            (void)!write(fds[1], "x", 1);
        }
        for (;;) {
            (void)pause();
        }
    }
    ck_assert_int_ge(read(fds[0], bytes, sizeof(bytes)), 1);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    there = fl_spool_peek(dir, 7, 2, "edge-01");
    ck_assert_uint_ge(there, 64);
    s = open_spool(there);
    write_span(s, there, TOTAL);
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
    {
        struct fl_spool_reader *r = NULL;

        ck_assert_int_eq(open_reader(&r, NULL), FL_OK);
        compare_unit(r, 0, update, 1000);
        compare_unit(r, 2, update + RIG_FC1, 1000);
        fl_spool_reader_close(r);
    }
}
