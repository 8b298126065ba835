/* A client in a hashed space: it trains in it, and sends numbers with the divergences of these. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/client_rig.h"
#include "tests/lib/suites.h"

static const struct rig_server hashed = {.broadcast = "lattice",
                                         .space = "hashed size=40 redraw=2",
                                         .norm = true},
                               full = {.broadcast = "lattice", .norm = true},
                               kept = {.broadcast = "lattice",
                                       .codec = "int8 residual=yes",
                                       .space = "hashed size=40 redraw=2"};

static struct rig r;

static void begin(const struct rig_server *server)
{
    client_rig_init(&r, server, false);
}

static struct fl_code code_of(struct fl_result *result)
{
    struct fl_code code = rig_code(&r, result, NULL);

    ck_assert_msg(fl_code_run(&code, &r.err) == FL_OK, "%s", r.err.msg);
    return code;
}

/* The numbers of what was sent, and the buffers behind those of each unit. */
static float *sent_numbers(const struct fl_code *code)
{
    const struct fl_layout *updates = r.setup->space->updates;
    float *z = calloc(fl_layout_count(updates), sizeof(*z));

    ck_assert_uint_eq(fl_blob_len(code->bytes), fl_layout_count(updates) * sizeof(*z));
    (void)memcpy(z, fl_blob_data(code->bytes), fl_blob_len(code->bytes));
    return z;
}

static double norm_of(const float *x, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sqrt(sum);
}

TEST_CASE("space", NULL, NULL);

TEST(an_update_is_its_numbers_and_their_norms_are_the_divergences)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    const struct fl_layout *updates;
    struct fl_code code;
    float *z;
    size_t l;

    begin(&hashed);
    updates = r.setup->space->updates;
    ck_assert_uint_lt(fl_layout_trainable(updates), fl_layout_trainable(r.setup->layout) / 2);
    result = rig_train_plain(&r, &task);
    code = code_of(result);
    z = sent_numbers(&code);
    for (l = 0; l < fl_layout_units(updates); l++) {
        const struct fl_unit *unit = fl_layout_unit(updates, l);

        ck_assert_double_gt(result->divergence[l], 1e-3);
        ck_assert_double_eq_tol(result->divergence[l], norm_of(z + unit->offset, unit->n_trainable),
                                1e-5);
    }
    free(z);
    fl_code_done(&code);
    fl_result_unref(result);
    rig_done(&r);
}

/* Also when the result waited on disk: what is sent is that of the draw that it was trained in. */
TEST(an_update_is_about_the_numbers_of_the_draw_that_its_task_names)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_space_map map;
    struct fl_code code;
    float *z;
    float *x;
    double off = 0;
    uint64_t draw;
    size_t i;

    begin(&hashed);
    task.draw = 3;
    result = rig_train_plain(&r, &task);
    ck_assert_uint_eq(result->draw, 3);
    code = code_of(result);
    z = sent_numbers(&code);
    x = calloc(fl_layout_count(r.setup->layout), sizeof(*x));
    for (draw = 2; draw <= 3; draw++) {
        off = 0;
        ck_assert_int_eq(fl_space_map_make(r.setup->space, draw, &map), FL_OK);
        fl_space_unfold(&map, z, x);
        for (i = 0; i < map.entries; i++) {
            off = fmax(off, fabs((double)x[i] - (double)result->delta[i]));
        }
        fl_space_map_done(&map);
        ck_assert(draw == 3 ? off < 1e-6 : off > 1e-3);
    }
    free(z);
    free(x);
    fl_code_done(&code);
    fl_result_unref(result);
    rig_done(&r);
}

/* Every entry moved by its number, up to sign and scale, and batch-norm statistics as they did. */
TEST(what_is_trained_stays_in_the_space)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_space_map map;
    struct fl_result *result;
    float *z;
    float *x;
    size_t i;

    begin(&hashed);
    result = rig_train_plain(&r, &task);
    ck_assert_int_eq(fl_space_map_make(r.setup->space, 0, &map), FL_OK);
    z = calloc(map.numbers, sizeof(*z));
    x = calloc(map.entries, sizeof(*x));
    fl_space_fold(&map, result->delta, z);
    fl_space_unfold(&map, z, x);
    for (i = 0; i < map.entries; i++) {
        ck_assert_double_eq_tol(x[i], result->delta[i], 1e-6);
    }
    free(z);
    free(x);
    fl_space_map_done(&map);
    fl_result_unref(result);
    rig_done(&r);
}

/*
 * Training in the space is not training all entries and looking for the nearest point of it at the
 * end: each step starts from a point of the space.
 */
TEST(each_step_is_made_in_the_space)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_result *whole;
    struct fl_code code;
    struct fl_space_map map;
    float *at_end;
    float *z;
    double off = 0;
    size_t i;

    begin(&full);
    whole = rig_train_plain(&r, &task);
    rig_done(&r);
    begin(&hashed);
    result = rig_train_plain(&r, &task);
    code = code_of(result);
    z = sent_numbers(&code);
    ck_assert_int_eq(fl_space_map_make(r.setup->space, 0, &map), FL_OK);
    at_end = calloc(map.numbers, sizeof(*at_end));
    fl_space_fold(&map, whole->delta, at_end);
    for (i = 0; i < map.numbers; i++) {
        off += fabs((double)z[i] - (double)at_end[i]);
    }
    ck_assert_double_gt(off / norm_of(z, map.numbers), 0.1);
    free(z);
    free(at_end);
    fl_space_map_done(&map);
    fl_code_done(&code);
    fl_result_unref(whole);
    fl_result_unref(result);
    rig_done(&r);
}

/* The residual is kept model-sized, so that it is one of the space of the next draw, too. */
TEST(what_a_codec_loses_of_the_numbers_is_kept)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_code code;
    struct fl_space_map map;
    float *residual;
    float *z;
    float *exact;
    size_t i;

    begin(&kept);
    result = rig_train_plain(&r, &task);
    code = code_of(result);
    ck_assert_uint_lt(fl_blob_len(code.bytes), 80);
    ck_assert_int_eq(fl_space_map_make(r.setup->space, 0, &map), FL_OK);
    exact = calloc(map.numbers, sizeof(*exact));
    z = calloc(map.numbers, sizeof(*z));
    fl_space_fold(&map, result->delta, exact);
    fl_code_done(&code);
    fl_result_unref(result);
    task = rig_task(2, 1);
    result = rig_train_plain(&r, &task); /* Commits the residual of the first round. */
    residual = rig_kept(&r, FL_KEEP_RESIDUAL);
    fl_space_fold(&map, residual, z);
    for (i = 0; i < map.numbers; i++) { /* At most half a level: the largest number / 254. */
        ck_assert_double_le(fabs((double)z[i]), norm_of(exact, map.numbers) / 254 + 1e-7);
    }
    ck_assert_double_gt(norm_of(z, map.numbers), 1e-5);
    free(residual);
    free(z);
    free(exact);
    fl_space_map_done(&map);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(a_space_that_the_client_does_not_know_is_refused_by_name)
{
    static const struct rig_server other = {.broadcast = "lattice", .space = "folded"};
    struct fl_wire_welcome w = rig_welcome(&other);
    struct fl_setup *setup = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_setup_create(&w, &setup, &err), FL_ECONF);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "the server's space is 'folded', which this client does not support"));
}
