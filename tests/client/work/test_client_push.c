/*
 * The bytes of a push: the granted units in order, what is sent beside them, masks; and what the
 * codec loses, which counts when the round does.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/rng.h"
#include "libfl/strategy/codec/codec_masked.h"
#include "tests/lib/client_kept.h"
#include "tests/lib/client_spy.h"
#include "tests/lib/suites.h"

static const struct rig_server plain, ternary = {.codec = "ternary share=0.1 residual=yes"};
static const uint8_t first_only[] = {1, 0}, last_only[] = {0, 1}, none[] = {0, 0}, both[] = {1, 1};

static struct fl_code coded(struct rig *r, struct fl_result *result, const uint8_t *units)
{
    struct fl_code code = rig_code(r, result, units);

    ck_assert_msg(fl_code_run(&code, &r->err) == FL_OK, "%s", r->err.msg);
    return code;
}

static bool same_bytes(const struct fl_code *a, const struct fl_code *b)
{
    return fl_blob_len(a->bytes) == fl_blob_len(b->bytes) &&
           memcmp(fl_blob_data(a->bytes), fl_blob_data(b->bytes), fl_blob_len(a->bytes)) == 0;
}

TEST(a_unit_that_the_plan_does_not_reach_is_not_granted)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_code code;
    struct rig r;

    client_rig_init(&r, &plain, false);
    result = rig_train_plain(&r, &task);
    ck_assert_int_eq(fl_code_begin(&code, &r.worker, result, both, 1), FL_OK);
    ck_assert_uint_eq(code.units[0], 1);
    ck_assert_uint_eq(code.units[1], 0);
    fl_code_done(&code);
    ck_assert_int_eq(fl_code_begin(&code, &r.worker, result, NULL, 0), FL_OK);
    ck_assert_uint_eq(code.units[0], 1);
    ck_assert_uint_eq(code.units[1], 1);
    fl_code_done(&code);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(what_is_sent_beside_the_update_follows_each_unit_as_float32)
{
    const struct rig_server server = {.codec = "float16"};
    struct fl_task task = rig_task(1, 0);
    const struct fl_unit *unit;
    struct fl_result *result;
    struct fl_code code;
    const float *sent;
    struct rig r;
    size_t l;
    size_t at = 0;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &server);
    result = rig_train_plain(&r, &task);
    for (l = 0; l < r.count; l++) {
        result->sent[0][l] = (float)l; /* Each entry another. */
    }
    code = coded(&r, result, last_only);
    ck_assert_uint_eq(code.n_parts, 2); /* Nothing is sent beside a unit that is not. */
    ck_assert_uint_eq(code.parts[1].unit, 1);
    fl_code_done(&code);
    code = coded(&r, result, NULL);
    ck_assert_uint_eq(code.n_parts, 4);
    for (l = 0; l < 2; l++) {
        const struct fl_wire_part *part = &code.parts[2 * l];

        unit = fl_layout_unit(r.setup->layout, l);
        ck_assert_str_eq(part[0].payload, "update");
        ck_assert_uint_eq(part[0].unit, l);
        ck_assert_uint_eq(part[0].codec, FL_CODEC_FLOAT16);
        ck_assert_uint_eq(part[0].bytes, unit->count * 2);
        ck_assert(!part[0].masked);
        ck_assert_str_eq(part[1].payload, "beside");
        ck_assert_uint_eq(part[1].codec, FL_CODEC_FLOAT32);
        ck_assert_uint_eq(part[1].bytes, unit->count * 4);
        sent = (const float *)(const void *)(fl_blob_data(code.bytes) + at + part[0].bytes);
        ck_assert_mem_eq(sent, result->sent[0] + unit->offset, unit->count * 4);
        at += part[0].bytes + part[1].bytes;
    }
    ck_assert_uint_eq(fl_blob_len(code.bytes), at);
    fl_code_done(&code);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(only_granted_units_are_sent)
{
    struct fl_task task = rig_task(1, 0);
    const struct fl_unit *unit;
    struct fl_result *result;
    struct fl_code code;
    struct rig r;

    client_rig_init(&r, &plain, false);
    result = rig_train_plain(&r, &task);
    unit = fl_layout_unit(r.setup->layout, 1);
    code = coded(&r, result, last_only);
    ck_assert_uint_eq(code.n_parts, 1);
    ck_assert_uint_eq(code.parts[0].unit, 1);
    ck_assert_uint_eq(fl_blob_len(code.bytes), unit->count * sizeof(float));
    ck_assert_mem_eq(fl_blob_data(code.bytes), result->delta + unit->offset,
                     unit->count * sizeof(float));
    fl_code_done(&code);
    code = coded(&r, result, none);
    ck_assert_uint_eq(code.n_parts, 0);
    ck_assert_uint_eq(fl_blob_len(code.bytes), 0);
    fl_code_done(&code);
    fl_result_unref(result);
    rig_done(&r);
}

/* The mask of a unit begins behind those of the units before, granted or not. */
TEST(a_masked_unit_has_its_own_part_of_the_mask)
{
    const struct rig_server server = {.upload = "fedadp rho=0.5"};
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_code code[2];
    struct rig r;
    size_t kept = 0;
    size_t i;

    client_rig_init(&r, &server, false);
    result = rig_train_plain(&r, &task);
    for (i = 0; i < 16; i++) {
        kept += result->mask[i];
    }
    ck_assert_uint_lt(kept, 16);
    code[0] = coded(&r, result, first_only);
    ck_assert(code[0].parts[0].masked);
    /* 12 weights and a bias each, behind a bit for each of 16. */
    ck_assert_uint_eq(code[0].parts[0].bytes, 2 + kept * 13 * sizeof(float));
    code[1] = coded(&r, result, last_only);
    ck_assert_uint_eq(code[1].parts[0].bytes, 1 + 3 * 17 * sizeof(float)); /* It is whole. */
    fl_code_done(&code[0]);
    fl_code_done(&code[1]);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(what_the_codec_loses_joins_the_pending_set_and_counts_with_the_round)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_code code;
    struct rig r;
    double lost = 0;
    float *residual;
    size_t i;

    client_rig_init(&r, &ternary, false);
    result = rig_train_plain(&r, &task);
    code = coded(&r, result, NULL);
    fl_code_done(&code);
    ck_assert(!client_kept(r.worker.keeps, FL_KEEP_RESIDUAL)); /* Not counted yet. */
    task = rig_task(2, 1);
    fl_result_unref(rig_train_plain(&r, &task));
    residual = rig_kept(&r, FL_KEEP_RESIDUAL);
    for (i = 0; i < r.count; i++) {
        lost += residual[i] > 0 ? (double)residual[i] : -(double)residual[i];
    }
    ck_assert_double_gt(lost, 0);
    free(residual);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(each_unit_is_coded_with_its_own_part_of_the_kept_residual)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_unit_update in = {0};
    struct fl_result *result;
    struct fl_code code;
    struct fl_buf want;
    struct rig r;
    float *residual;
    size_t at;

    client_rig_init(&r, &ternary, false);
    rig_grant(&r, result = rig_train_plain(&r, &task));
    fl_result_unref(result);
    task = rig_task(2, 1);
    result = rig_train_plain(&r, &task);
    residual = rig_kept(&r, FL_KEEP_RESIDUAL);
    at = fl_layout_unit(r.setup->layout, 1)->offset;
    in.delta = result->delta + at;
    in.residual = in.residual_new = residual + at;
    fl_buf_init(&want, SIZE_MAX / 2);
    ck_assert_int_eq(
        fl_unit_encode(r.setup->codec, r.setup->codec_options, r.setup->layout, 1, &in, &want),
        FL_OK);
    code = coded(&r, result, last_only);
    ck_assert_uint_eq(fl_blob_len(code.bytes), want.len);
    ck_assert_mem_eq(fl_blob_data(code.bytes), want.data, want.len);
    fl_code_done(&code);
    fl_buf_done(&want);
    free(residual);
    fl_result_unref(result);
    rig_done(&r);
}

/*
 * Each layer has its own stream; the same update of another round, or of a client with another
 * seed, is rounded in another way.
 */
TEST(random_rounding_follows_from_the_round_and_the_client)
{
    static const struct rig_server steps = {.codec = "steps step=0.0009765625"};
    struct fl_task task = rig_task(2, 1);
    struct fl_unit_update in = {0};
    struct fl_buf want;
    struct fl_rng rng;
    struct fl_result *result;
    struct fl_code code[4];
    struct rig r;
    size_t i;

    client_rig_init(&r, &steps, false);
    result = rig_train_plain(&r, &task);
    code[0] = coded(&r, result, NULL);
    code[1] = coded(&r, result, NULL);
    ck_assert(same_bytes(&code[0], &code[1]));
    fl_buf_init(&want, SIZE_MAX / 2);
    for (i = 0; i < 2; i++) {
        fl_rng_key(&rng, r.worker.seed, FL_RNG_CODEC, 2, i);
        in.seed = fl_rng_u64(&rng);
        in.delta = result->delta + fl_layout_unit(r.setup->layout, i)->offset;
        ck_assert_int_eq(
            fl_unit_encode(r.setup->codec, r.setup->codec_options, r.setup->layout, i, &in, &want),
            FL_OK);
    }
    ck_assert_uint_eq(fl_blob_len(code[0].bytes), want.len);
    ck_assert_mem_eq(fl_blob_data(code[0].bytes), want.data, want.len);
    fl_buf_done(&want);
    result->key.round = 3;
    code[2] = coded(&r, result, NULL);
    ck_assert(!same_bytes(&code[0], &code[2]));
    result->key.round = 2;
    r.worker.seed++;
    code[3] = coded(&r, result, NULL);
    ck_assert(!same_bytes(&code[0], &code[3]));
    for (i = 0; i < ARRAY_LEN(code); i++) {
        fl_code_done(&code[i]);
    }
    fl_result_unref(result);
    rig_done(&r);
}

TEST(a_push_that_is_made_again_has_the_same_bytes)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_result *held = NULL;
    struct fl_code code[3];
    struct rig r;
    size_t i;

    client_rig_init(&r, &ternary, false);
    rig_grant(&r, result = rig_train_plain(&r, &task)); /* Leaves a residual of round 1. */
    fl_result_unref(result);
    task = rig_task(2, 1);
    task.seed = 78;
    result = rig_train_plain(&r, &task);
    ck_assert(client_kept(r.worker.keeps, FL_KEEP_RESIDUAL));
    code[0] = coded(&r, result, NULL);
    code[1] = coded(&r, result, NULL);
    ck_assert(same_bytes(&code[0], &code[1]));
    rig_restart(&r); /* Another process sends the rest. */
    ck_assert_int_eq(fl_result_load(r.dir, &held, &r.err), FL_OK);
    code[2] = coded(&r, held, NULL);
    ck_assert(same_bytes(&code[0], &code[2]));
    for (i = 0; i < 3; i++) {
        fl_code_done(&code[i]);
    }
    fl_result_unref(held);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(a_push_needs_the_pending_set_of_its_round)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_code code;
    struct rig r;

    client_rig_init(&r, &ternary, false);
    result = rig_train_plain(&r, &task);
    result->key.round = 5;
    code = rig_code(&r, result, NULL);
    ck_assert_int_eq(fl_code_run(&code, &r.err), FL_ESTATE);
    ck_assert_str_eq(r.err.msg, "no pending client state of round 5/1");
    fl_code_done(&code);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(a_damaged_residual_is_told_and_counts_as_none)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_code code[2];
    struct rig r;

    client_rig_init(&r, &ternary, false);
    result = rig_train_plain(&r, &task);
    code[0] = coded(&r, result, NULL);
    fl_result_unref(result);
    task = rig_task(2, 1);
    result = rig_train_plain(&r, &task);
    ck_assert(rig_has_file(&r, "keep/codec.residual.1.keep"));
    ck_assert_int_eq(
        fl_fs_replace(client_rig_path(&r, "keep/codec.residual.1.keep"), "x", 1, false, NULL),
        FL_OK);
    code[1] = coded(&r, result, NULL); /* The same task: the same bytes as without a residual. */
    ck_assert_ptr_nonnull(strstr(r.lines, "client state 'codec.residual' is lost"));
    ck_assert(same_bytes(&code[0], &code[1]));
    fl_code_done(&code[0]);
    fl_code_done(&code[1]);
    fl_result_unref(result);
    rig_done(&r);
}
