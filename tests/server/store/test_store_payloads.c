/* Uploads that hold more than the update. */

#include <check.h>
#include <math.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/strategy/codec/codec_masked.h"
#include "server/store/store.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

#define FC1    (RIG_FC1 * sizeof(float))
#define FC3    (RIG_FC3 * sizeof(float))
#define TOTAL  (2 * FC1 + 2 * FC3)
#define FILE_A "spool/edge-01.upload"

/* fc1 and fc3, of each the update and what a solver sends. */
static const struct fl_spool_part parts[] = {
    {.unit = 0, .payload = 0, .codec = FL_CODEC_FLOAT32, .bytes = FC1},
    {.unit = 0, .payload = 1, .codec = FL_CODEC_FLOAT32, .bytes = FC1},
    {.unit = 2, .payload = 0, .codec = FL_CODEC_FLOAT32, .bytes = FC3},
    {.unit = 2, .payload = 1, .codec = FL_CODEC_FLOAT32, .bytes = FC3},
};
static const uint8_t grant[RIG_UNITS] = {1, 0, 1};
static const struct fl_spool_form form = {.codec = FL_CODEC_FLOAT32, .n_payloads = 2};

static struct fl_layout *layout;
static const char *dir;
static float values[TOTAL / sizeof(float)];

static void setup(void)
{
    size_t i;

    dir = rig_dir();
    layout = rig_layout();
    for (i = 0; i < TOTAL / sizeof(float); i++) {
        values[i] = (float)i * 0.001f - 3.0f;
    }
}

static void teardown(void)
{
    fl_layout_free(layout);
    rig_remove();
}

static int upload(const struct fl_spool_part *p, size_t n, double norm_bound, struct fl_err *err)
{
    struct fl_spool *s = NULL;
    uint64_t received = 0;
    int rv = fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", p, n, NULL}, &s,
                           &received, err);

    ck_assert_msg(rv == FL_OK, "%s", err->msg);
    if (received < TOTAL) {
        ck_assert_int_eq(fl_spool_write(s, received, (const char *)values + received,
                                        (size_t)(TOTAL - received), err),
                         FL_OK);
    }
    rv = fl_spool_finish(s, layout, norm_bound, FL_DURABLE_PROCESS, err);
    fl_spool_close(s);
    return rv;
}

static void same(struct fl_codec_decoder *d, const float *want, size_t n)
{
    float got[512];

    ck_assert_uint_le(n, 512);
    ck_assert_int_eq(d->ops->read(d, got, n), FL_OK);
    ck_assert_mem_eq(got, want, n * sizeof(float));
}

TEST_CASE("payloads", setup, teardown);

TEST_EACH(payloads_of_a_unit_are_read_in_turn, 2)
{
    const float *sent = values + RIG_FC1;
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder a;
    struct fl_codec_decoder b;
    struct fl_err err = {0};
    size_t i;

    ck_assert_int_eq(upload(parts, 4, 0.0, &err), FL_OK);
    ck_assert_int_eq(fl_spool_reader_open(dir, 7, 2, "edge-01", layout, &r, &err), FL_OK);
    fl_spool_reader_share(r, _i == 0 ? 1 : 100000);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 0, &a), FL_OK);
    ck_assert_int_eq(fl_spool_reader_unit(r, 1, 0, &b), FL_OK);
    for (i = 0; i < RIG_FC1; i += 420) {
        same(&a, values + i, 420);
        same(&b, sent + i, 420);
    }
    ck_assert_int_eq(a.ops->close(&a), FL_OK);
    ck_assert_int_eq(b.ops->close(&b), FL_OK);
    ck_assert_int_eq(fl_spool_reader_unit(r, 1, 2, &b), FL_OK);
    same(&b, values + 2 * RIG_FC1 + RIG_FC3, RIG_FC3);
    ck_assert_int_eq(fl_spool_reader_unit(r, 1, 1, &b), FL_ENOENT);
    ck_assert_int_eq(fl_spool_reader_unit(r, 2, 0, &b), FL_ENOENT);
    ck_assert_int_eq(fl_spool_reader_unit(r, 99, 0, &b), FL_ENOENT);
    ck_assert_mem_eq(fl_spool_reader_units(r), grant, RIG_UNITS);
    fl_spool_reader_close(r);
}

TEST(an_upload_is_what_was_asked_for_in_its_order)
{
    struct fl_spool_part p[5];
    struct fl_spool_form other = form;
    struct fl_err err = {0};

    (void)memcpy(p, parts, sizeof(parts));
    p[4] = parts[3];
    ck_assert_int_eq(fl_spool_check(layout, grant, &form, p, 4, &err), FL_OK);
    ck_assert_int_eq(fl_spool_check(layout, grant, &form, p, 3, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg,
                     "unit 'fc3' of what the solver sends was asked for and is not in its place");
    ck_assert_int_eq(fl_spool_check(layout, grant, &form, p, 5, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "1 units that were not asked for are in the upload");
    other.n_payloads = 1;
    ck_assert_int_eq(fl_spool_check(layout, grant, &other, p, 4, &err), FL_ESHAPE);
    p[0] = parts[1];
    p[1] = parts[0];
    ck_assert_int_eq(fl_spool_check(layout, grant, &form, p, 4, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "unit 'fc1' was asked for and is not in its place");
}

TEST(what_comes_beside_the_update_is_always_plain)
{
    struct fl_spool_form coded = {.codec = FL_CODEC_FLOAT16, .n_payloads = 2};
    struct fl_spool_part p[4];
    struct fl_err err = {0};

    (void)memcpy(p, parts, sizeof(parts));
    p[0].codec = p[2].codec = FL_CODEC_FLOAT16;
    p[0].bytes /= 2;
    p[2].bytes /= 2;
    ck_assert_int_eq(fl_spool_check(layout, grant, &coded, p, 4, &err), FL_OK);
    p[1].codec = FL_CODEC_FLOAT16;
    ck_assert_int_eq(fl_spool_check(layout, grant, &coded, p, 4, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "unit 'fc1' comes in codec 2, not float32");
    p[1] = parts[1];
    p[1].masked = true;
    ck_assert_int_eq(fl_spool_check(layout, grant, &coded, p, 4, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "unit 'fc1' comes with a mask of its neurons, it has to be whole");
}

TEST(masks_are_there_exactly_when_they_are_asked_for)
{
    struct fl_spool_form masked = {.codec = FL_CODEC_FLOAT32, .n_payloads = 2, .masked = true};
    struct fl_spool_part p[4];
    struct fl_err err = {0};

    (void)memcpy(p, parts, sizeof(parts));
    ck_assert_int_eq(fl_spool_check(layout, grant, &masked, p, 4, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "unit 'fc1' comes without a mask of its neurons, it has to have one");
    p[0].masked = p[2].masked = true;
    ck_assert_int_eq(fl_spool_check(layout, grant, &masked, p, 4, &err), FL_OK);
    ck_assert_int_eq(fl_spool_check(layout, grant, &form, p, 4, &err), FL_ESHAPE);
}

TEST_EACH(every_payload_has_to_be_finite, 2)
{
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    values[RIG_FC1 + 77] = INFINITY;
    ck_assert_int_eq(upload(parts, 4, _i == 0 ? 0.0 : 1e30, &err), FL_ENUMERIC);
    ck_assert_str_eq(err.msg, "unit 'fc1' of what is sent beside the upload holds a value that is "
                              "not finite");
    ck_assert(!fl_fs_exists(rig_path(path, FILE_A)));
}

TEST(the_norm_bound_is_for_the_update_alone)
{
    struct fl_err err = {0};
    double sum = 0.0;
    size_t i;

    for (i = 0; i < RIG_FC1; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    for (i = 2 * RIG_FC1; i < 2 * RIG_FC1 + RIG_FC3; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    ck_assert_int_eq(upload(parts, 4, sqrt(sum) * 1.0001, &err), FL_OK);
    ck_assert_int_eq(upload(parts, 4, sqrt(sum) * 0.9999, &err), FL_ERANGE);
}

TEST_EACH(a_manifest_with_other_payloads_starts_over, 2)
{
    struct fl_spool_part p[4];
    struct fl_spool *s = NULL;
    struct fl_err err = {0};
    uint64_t received = 0;

    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", parts, 4, NULL},
                                   &s, &received, &err),
                     FL_OK);
    ck_assert_int_eq(fl_spool_write(s, 0, values, 5000, &err), FL_OK);
    fl_spool_close(s);
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", parts, 4, NULL},
                                   &s, &received, &err),
                     FL_OK);
    ck_assert_uint_eq(received, 5000);
    fl_spool_close(s);
    (void)memcpy(p, parts, sizeof(parts));
    if (_i == 0) {
        p[1].payload = 2;
    } else {
        p[1].masked = true;
    }
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", p, 4, NULL}, &s,
                                   &received, &err),
                     FL_OK);
    ck_assert_uint_eq(received, 0);
    fl_spool_close(s);
}

TEST(payloads_of_a_unit_rise_and_are_few)
{
    struct fl_spool_part p[4];
    struct fl_spool *s = NULL;
    struct fl_err err = {0};
    uint64_t received = 0;

    (void)memcpy(p, parts, sizeof(parts));
    p[1].payload = 0;
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", p, 4, NULL}, &s,
                                   &received, &err),
                     FL_EINVAL);
    p[1].payload = FL_SPOOL_MAX_PAYLOADS;
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", p, 4, NULL}, &s,
                                   &received, &err),
                     FL_EINVAL);
    ck_assert_str_eq(err.msg, "an upload holds up to 4 payloads, not 4");
}

/* A header as the first version wrote it, whole and with its hash. */
TEST(a_file_of_the_first_version_is_started_over)
{
    struct fl_spool *s = NULL;
    struct fl_spool_reader *r = NULL;
    struct fl_err err = {0};
    uint64_t received = 9;
    char path[RIG_PATH_MAX];
    static const uint8_t head[4096] = {'F', 'L', 'S', 'P', 'O', 'O', 'L', '\n', 1, 0, 0, 0, 1};

    ck_assert_int_eq(fl_fs_mkdirs(rig_path(path, "spool"), &err), FL_OK);
    ck_assert_int_eq(fl_fs_replace(rig_path(path, FILE_A), head, sizeof(head), false, &err), FL_OK);
    ck_assert_uint_eq(fl_spool_peek(dir, 7, 2, "edge-01"), 0);
    ck_assert_int_eq(fl_spool_reader_open(dir, 7, 2, "edge-01", layout, &r, &err), FL_EFORMAT);
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", parts, 4, NULL},
                                   &s, &received, &err),
                     FL_OK);
    ck_assert_uint_eq(received, 0);
    fl_spool_close(s);
}

/* --- masked units (FedADP) --- */

/* fc1 with every third neuron, of 100 entries each, and fc3 whole, as it has to be. */
static void code_masked(struct fl_buf *out, struct fl_spool_part p[2])
{
    uint8_t keep[84];
    uint8_t all[RIG_FC3];
    struct fl_unit_update in = {.delta = values, .keep = keep};
    size_t j;

    for (j = 0; j < 84; j++) {
        keep[j] = j % 3 == 0;
    }
    (void)memset(all, 1, sizeof(all));
    fl_buf_init(out, 1u << 20);
    ck_assert_int_eq(fl_unit_encode(&fl_codec_float32, NULL, layout, 0, &in, out), FL_OK);
    p[0] = (struct fl_spool_part){.unit = 0, .codec = FL_CODEC_FLOAT32, .masked = true};
    p[0].bytes = out->len;
    in = (struct fl_unit_update){.delta = values + RIG_FC1, .keep = all};
    ck_assert_int_eq(fl_unit_encode(&fl_codec_float32, NULL, layout, 2, &in, out), FL_OK);
    p[1] = p[0];
    p[1].unit = 2;
    p[1].bytes = out->len - p[0].bytes;
}

static int upload_masked(const struct fl_buf *coded, const struct fl_spool_part p[2],
                         double norm_bound, struct fl_err *err)
{
    struct fl_spool *s = NULL;
    uint64_t received = 0;
    int rv;

    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 7, 2, "edge-01", p, 2, NULL}, &s,
                                   &received, err),
                     FL_OK);
    ck_assert_int_eq(fl_spool_write(s, 0, coded->data, coded->len, err), FL_OK);
    rv = fl_spool_finish(s, layout, norm_bound, FL_DURABLE_PROCESS, err);
    fl_spool_close(s);
    return rv;
}

TEST_EACH(absent_neurons_are_no_fault_and_read_as_absent, 2)
{
    struct fl_spool_form masked = {.codec = FL_CODEC_FLOAT32, .n_payloads = 1, .masked = true};
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder d;
    struct fl_spool_part p[2];
    struct fl_err err = {0};
    struct fl_buf coded;
    float row[100];
    size_t j;

    code_masked(&coded, p);
    ck_assert_uint_eq(p[0].bytes, 11 + 28 * 100 * sizeof(float));
    ck_assert_msg(fl_spool_check(layout, grant, &masked, p, 2, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(upload_masked(&coded, p, _i == 0 ? 0.0 : 1e6, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_spool_reader_open(dir, 7, 2, "edge-01", layout, &r, &err), FL_OK);
    ck_assert_int_eq(fl_spool_reader_unit(r, 0, 0, &d), FL_OK);
    for (j = 0; j < 84; j++) {
        ck_assert_int_eq(d.ops->read(&d, row, 100), FL_OK);
        if (j % 3 == 0) {
            ck_assert_mem_eq(row, values + 100 * j, sizeof(row));
        } else {
            ck_assert(isnan(row[0]) && isnan(row[99]));
        }
    }
    ck_assert_int_eq(d.ops->close(&d), FL_OK);
    fl_spool_reader_close(r);
    fl_buf_done(&coded);
}

TEST_EACH(what_is_present_has_to_be_finite_and_the_mask_right, 3)
{
    struct fl_spool_part p[2];
    struct fl_err err = {0};
    struct fl_buf coded;

    code_masked(&coded, p);
    if (_i < 2) {
        const float bad = NAN;

        (void)memcpy(coded.data + 11 + 400, &bad, sizeof(bad));
    } else {
        coded.data[10] |= 0x80; /* a neuron past the last one */
    }
    ck_assert_int_eq(upload_masked(&coded, p, _i == 0 ? 0.0 : 1e6, &err),
                     _i < 2 ? FL_ENUMERIC : FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "unit 'fc1' of the upload"));
    fl_buf_done(&coded);
}

TEST(a_masked_unit_is_not_longer_than_it_can_be)
{
    struct fl_spool_form masked = {.codec = FL_CODEC_FLOAT32, .n_payloads = 1, .masked = true};
    struct fl_spool_part p[2] = {
        {.unit = 0, .codec = FL_CODEC_FLOAT32, .masked = true, .bytes = FC1 + 11},
        {.unit = 2, .codec = FL_CODEC_FLOAT32, .masked = true, .bytes = FC3 + 3},
    };
    struct fl_err err = {0};

    ck_assert_int_eq(fl_spool_check(layout, grant, &masked, p, 2, &err), FL_OK);
    p[0].bytes++;
    ck_assert_int_eq(fl_spool_check(layout, grant, &masked, p, 2, &err), FL_ESHAPE);
    ck_assert_str_eq(err.msg, "unit 'fc1' has 33612 bytes, at most 33611 are possible");
}
