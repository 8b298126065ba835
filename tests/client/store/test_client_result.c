/* The held result on disk: whole or none, and never mistaken for one of another version. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/store/cache.h"
#include "client/store/pending_result.h"
#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "tests/lib/container_file.h"
#include "tests/lib/suites.h"

static char dir[64], path[128];

static void setup(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/fl-result-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/result.bin", dir);
}

static void teardown(void)
{
    char collection[128];

    (void)snprintf(collection, sizeof(collection), "%s/summaries.bin", dir);
    (void)unlink(collection);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}

static float *floats(size_t n, float first)
{
    float *data = malloc(n * sizeof(*data));
    size_t i;

    ck_assert_ptr_nonnull(data);
    for (i = 0; i < n; i++) {
        data[i] = first + (float)i;
    }
    return data;
}

static struct fl_result *make(void)
{
    struct fl_result *r = fl_result_new();

    ck_assert_ptr_nonnull(r);
    r->key = (struct fl_round_key){7, 3};
    r->draw = 4;
    r->samples = 600;
    r->steps = 60;
    r->train_loss = 0.5;
    r->has_received = true;
    r->received = (struct fl_evaluation){100, 90, 12.5, "macro_f1=0.75 errors+=3:90"};
    r->has_trained = true;
    r->trained = (struct fl_evaluation){100, 95, 6.25, ""};
    r->previous_dot = -0.75;
    r->pending = true;
    (void)memset(r->digest, 9, sizeof(r->digest));
    (void)memset(r->generation, 8, sizeof(r->generation));
    r->n_units = 2;
    r->n_floats = 11;
    r->n_mask = 5;
    r->divergence = floats(2, 1.0f);
    r->delta = floats(11, 10.0f);
    r->sent = calloc(2, sizeof(*r->sent));
    r->mask = calloc(5, 1);
    ck_assert_ptr_nonnull(r->sent);
    ck_assert_ptr_nonnull(r->mask);
    r->sent[r->n_sent++] = floats(11, 100.0f);
    r->sent[r->n_sent++] = floats(11, 200.0f);
    r->mask[3] = 1;
    return r;
}

TEST_CASE("files", setup, teardown);

TEST(what_was_saved_is_loaded)
{
    struct fl_result *a = make();
    struct fl_result *b = NULL;

    ck_assert_int_eq(fl_result_save(dir, a, NULL), FL_OK);
    ck_assert_int_eq(fl_result_load(dir, &b, NULL), FL_OK);
    ck_assert_uint_eq(b->key.round, 7);
    ck_assert_uint_eq(b->key.attempt, 3);
    ck_assert_uint_eq(b->draw, 4);
    ck_assert_int_eq(memcmp(b->generation, a->generation, sizeof(a->generation)), 0);
    ck_assert_uint_eq(b->samples, 600);
    ck_assert_uint_eq(b->steps, 60);
    ck_assert_double_eq(b->train_loss, 0.5);
    ck_assert_double_eq(b->previous_dot, -0.75);
    ck_assert(b->has_received && b->has_trained && b->pending);
    ck_assert_uint_eq(b->received.correct, 90);
    ck_assert_str_eq(b->received.metrics, "macro_f1=0.75 errors+=3:90");
    ck_assert_str_eq(b->trained.metrics, "");
    ck_assert_uint_eq(b->trained.correct, 95);
    ck_assert_double_eq(b->trained.loss_sum, 6.25);
    ck_assert_mem_eq(b->digest, a->digest, sizeof(a->digest));
    ck_assert_uint_eq(b->n_sent, 2);
    ck_assert_mem_eq(b->divergence, a->divergence, 2 * sizeof(float));
    ck_assert_mem_eq(b->delta, a->delta, 11 * sizeof(float));
    ck_assert_mem_eq(b->sent[0], a->sent[0], 11 * sizeof(float));
    ck_assert_mem_eq(b->sent[1], a->sent[1], 11 * sizeof(float));
    ck_assert_mem_eq(b->mask, a->mask, 5);
    fl_result_unref(a);
    fl_result_unref(b);
    ck_assert_int_eq(fl_result_remove(dir, NULL), FL_OK);
    ck_assert_int_eq(fl_result_load(dir, &b, NULL), FL_ENOENT);
}

TEST(a_plain_result_has_none_of_the_rest)
{
    struct fl_result *a = fl_result_new();
    struct fl_result *b = NULL;

    a->key.round = 1;
    a->n_units = 1;
    a->n_floats = 3;
    a->divergence = floats(1, 1.0f);
    a->delta = floats(3, 1.0f);
    ck_assert_int_eq(fl_result_save(dir, a, NULL), FL_OK);
    ck_assert_int_eq(fl_result_load(dir, &b, NULL), FL_OK);
    ck_assert(!b->has_received && !b->has_trained && !b->pending);
    ck_assert_uint_eq(b->n_sent, 0);
    ck_assert_ptr_null(b->mask);
    fl_result_unref(a);
    fl_result_unref(b);
}

TEST(a_result_with_any_byte_changed_or_cut_is_none)
{
    struct fl_result *a = make();
    struct fl_result *b = NULL;
    struct fl_buf file;
    size_t i;

    ck_assert_int_eq(fl_result_save(dir, a, NULL), FL_OK);
    ck_assert_int_eq(fl_fs_read(path, SIZE_MAX / 2, &file, NULL), FL_OK);
    for (i = 0; i < file.len; i++) {
        struct fl_err err = {0};

        file.data[i] ^= 0x10;
        ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
        file.data[i] ^= 0x10;
        ck_assert_msg(fl_result_load(dir, &b, &err) == FL_EFORMAT, "byte %zu", i);
        ck_assert_ptr_nonnull(strstr(err.msg, "result.bin' is "));
        ck_assert_int_eq(fl_fs_replace(path, file.data, i, false, NULL), FL_OK);
        ck_assert_msg(fl_result_load(dir, &b, NULL) == FL_EFORMAT, "cut to %zu bytes", i);
    }
    fl_buf_done(&file);
    fl_result_unref(a);
}

TEST(a_result_of_a_later_version_is_neither_read_nor_taken_for_none)
{
    struct fl_pending_result held = {.state_dir = dir};
    struct fl_result *a = make();
    struct fl_err err = {0};
    struct fl_buf file;

    ck_assert_int_eq(fl_result_save(dir, a, NULL), FL_OK);
    fl_result_unref(a);
    ck_assert_int_eq(fl_fs_read(path, SIZE_MAX / 2, &file, NULL), FL_OK);
    container_make_later(&file);
    ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
    fl_buf_done(&file);
    ck_assert_int_eq(fl_pending_result_load(&held, &err), FL_EVERSION);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "has version 2 of its format, this program supports up to 1"));
    ck_assert(fl_fs_exists(path));
}

/* --- the one that is held --- */

static void count(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    size_t *lines = ctx;

    (void)component;
    (void)text;
    ck_assert_int_eq(level, FL_LOG_WARNING);
    (*lines)++;
}

TEST(a_held_result_is_that_of_its_round_and_goes_with_its_file)
{
    struct fl_pending_result held = {.state_dir = dir};
    struct fl_err err = {0};

    ck_assert_int_eq(fl_pending_result_load(&held, &err), FL_OK); /* None is fine. */
    ck_assert(!fl_pending_result_is(&held, (struct fl_round_key){0, 0}));
    fl_pending_result_put(&held, make());
    ck_assert_int_eq(fl_result_save(dir, held.result, NULL), FL_OK);
    fl_pending_result_put(&held, make()); /* In place of the one before. */
    ck_assert(fl_pending_result_is(&held, (struct fl_round_key){7, 3}));
    ck_assert(!fl_pending_result_is(&held, (struct fl_round_key){7, 2}));
    ck_assert(!fl_pending_result_is(&held, (struct fl_round_key){6, 3}));
    fl_pending_result_drop(&held, (struct fl_round_key){7, 2});
    ck_assert_ptr_nonnull(held.result);
    fl_pending_result_done(&held);
    ck_assert_int_eq(fl_pending_result_load(&held, &err), FL_OK); /* What is on disk stayed. */
    ck_assert(fl_pending_result_is(&held, (struct fl_round_key){7, 3}));
    fl_pending_result_drop(&held, (struct fl_round_key){7, 3});
    ck_assert_ptr_null(held.result);
    ck_assert_int_ne(access(path, F_OK), 0);
}

TEST(a_damaged_held_result_counts_as_none_and_is_told)
{
    size_t lines = 0;
    struct fl_log log = {.level = FL_LOG_INFO, .sink = count, .ctx = &lines};
    struct fl_pending_result held = {.state_dir = dir, .log = &log};

    ck_assert_int_eq(fl_fs_replace(path, "junk", 4, false, NULL), FL_OK);
    ck_assert_int_eq(fl_pending_result_load(&held, NULL), FL_OK);
    ck_assert_ptr_null(held.result);
    ck_assert_uint_eq(lines, 1);
}

TEST(a_held_result_whose_file_cannot_go_is_dropped_and_told)
{
    size_t lines = 0;
    struct fl_log log = {.level = FL_LOG_INFO, .sink = count, .ctx = &lines};
    struct fl_pending_result held = {.state_dir = dir, .log = &log};

    fl_pending_result_put(&held, make());
    ck_assert_int_eq(mkdir(path, 0700), 0);
    fl_pending_result_drop(&held, (struct fl_round_key){7, 3});
    ck_assert_ptr_null(held.result);
    ck_assert_uint_eq(lines, 1);
    ck_assert_int_eq(rmdir(path), 0);
}

TEST(a_cached_payload_is_what_its_digest_says)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5};
    uint8_t digest[FL_DIGEST_SIZE];
    uint8_t *data = NULL;

    ck_assert_int_eq(fl_sha256(bytes, sizeof(bytes), digest), FL_OK);
    ck_assert_int_eq(fl_cache_load(dir, FL_CACHE_SUMMARIES, digest, sizeof(bytes), &data),
                     FL_ENOENT);
    ck_assert_int_eq(fl_cache_save(dir, FL_CACHE_SUMMARIES, bytes, sizeof(bytes), NULL), FL_OK);
    ck_assert_int_eq(fl_cache_load(dir, FL_CACHE_SUMMARIES, digest, sizeof(bytes), &data), FL_OK);
    ck_assert_mem_eq(data, bytes, sizeof(bytes));
    free(data);
    ck_assert_int_eq(fl_cache_load(dir, FL_CACHE_SUMMARIES, digest, 4, &data), FL_ENOENT);
    digest[0] ^= 1;
    ck_assert_int_eq(fl_cache_load(dir, FL_CACHE_SUMMARIES, digest, sizeof(bytes), &data),
                     FL_ENOENT);
}
