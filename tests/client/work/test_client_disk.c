/* A disk that fails, at any of its calls: what was there stays, and the step can be made again. */

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/store/cache.h"
#include "libfl/base/fs.h"
#include "tests/lib/client_kept.h"
#include "tests/lib/client_spy.h"
#include "tests/lib/suites.h"
#include "tests/lib/wrap_pwrite.h"

/* --- the n-th call from now on fails --- */

enum call { NO_CALL, PWRITE, FSYNC, RENAME, CLOSE };

static enum call broken;
static long until_broken;

static bool fails(enum call call)
{
    if (call != broken || until_broken-- != 0) {
        return false;
    }
    errno = ENOSPC;
    return true;
}

static void break_call(enum call call, long after)
{
    broken = call;
    until_broken = after;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_close(int fd);
int __wrap_close(int fd);
ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t offset);

int __wrap_rename(const char *from, const char *to)
{
    return fails(RENAME) ? -1 : __real_rename(from, to);
}

int __wrap_fsync(int fd)
{
    return fails(FSYNC) ? -1 : __real_fsync(fd);
}

/* The file is closed, but what was written may be lost. */
int __wrap_close(int fd)
{
    int rv = __real_close(fd);

    return fails(CLOSE) ? -1 : rv;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t offset)
{
    return fails(PWRITE) ? -1 : __real_pwrite(fd, data, len, offset);
}

/* --- whole files --- */

static char dir[64];

static void setup(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/fl-disk-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    broken = NO_CALL;
}

static void teardown(void)
{
    folder_remove(dir);
}

static const char *in_dir(const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void expect_file(const char *path, const char *text)
{
    struct fl_buf file;

    ck_assert_int_eq(fl_fs_read(path, 100, &file, NULL), FL_OK);
    ck_assert_uint_eq(file.len, strlen(text));
    ck_assert_mem_eq(file.data, text, file.len);
    fl_buf_done(&file);
}

TEST_CASE("client_disk", setup, teardown);

TEST(a_file_is_written_from_several_runs_of_memory)
{
    const struct fl_fs_run runs[] = {{"one ", 4}, {NULL, 0}, {"two", 3}};
    const struct fl_fs_run less[] = {{"1", 1}};

    /* What a process left that was killed while it wrote. */
    ck_assert_int_eq(fl_fs_replace(in_dir("file.tmp"), "longer than that", 16, false, NULL), FL_OK);
    ck_assert_int_eq(fl_fs_replace_runs(in_dir("file"), runs, 3, true, NULL), FL_OK);
    expect_file(in_dir("file"), "one two");
    ck_assert_int_eq(fl_fs_replace_runs(in_dir("file"), less, 1, true, NULL), FL_OK);
    expect_file(in_dir("file"), "1"); /* Nothing of the longer one before. */
    ck_assert(!fl_fs_exists(in_dir("file.tmp")));
}

TEST_EACH(a_file_that_cannot_be_written_is_as_it_was_and_names_the_step, 4)
{
    static const struct {
        enum call call;
        const char *says;
    } rows[] = {{PWRITE, "cannot write '"},
                {FSYNC, "cannot sync '"},
                {CLOSE, "cannot close '"},
                {RENAME, "cannot "}};
    const struct fl_fs_run old = {"old", 3};
    const struct fl_fs_run new = {"newer", 5};
    struct fl_err err = {0};

    ck_assert_int_eq(fl_fs_replace_runs(in_dir("file"), &old, 1, true, NULL), FL_OK);
    break_call(rows[_i].call, 0);
    ck_assert_int_eq(fl_fs_replace_runs(in_dir("file"), &new, 1, true, &err), FL_ENOSPC);
    ck_assert_msg(strncmp(err.msg, rows[_i].says, strlen(rows[_i].says)) == 0, "%s", err.msg);
    ck_assert_ptr_nonnull(strstr(err.msg, "/file"));
    expect_file(in_dir("file"), "old");
    ck_assert(!fl_fs_exists(in_dir("file.tmp")));
    ck_assert_int_eq(fl_fs_replace_runs(in_dir("file"), &new, 1, true, NULL), FL_OK);
    expect_file(in_dir("file"), "newer");
}

TEST(a_folder_that_is_not_there_is_named)
{
    const struct fl_fs_run run = {"x", 1};
    struct fl_result *r = fl_result_new();
    struct fl_err err = {0};

    ck_assert_int_eq(fl_fs_replace_runs(in_dir("missing/file"), &run, 1, true, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "missing/file.tmp'"));
    ck_assert_int_eq(fl_cache_save(in_dir("missing"), FL_CACHE_SUMMARIES, "x", 1, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "missing/summaries.bin.tmp'"));
    ck_assert_int_eq(fl_result_save(in_dir("missing"), r, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "missing/result.bin.tmp'"));
    fl_result_unref(r);
}

/* Said before the path, which is longer than a message. */
static void expect_too_long(int rv, struct fl_err *err)
{
    ck_assert_int_eq(rv, FL_ELIMIT);
    ck_assert_msg(strncmp(err->msg, "this path is too long: '/xxx", 28) == 0, "%s", err->msg);
    *err = (struct fl_err){0};
}

TEST(a_path_that_is_too_long_is_called_that)
{
    static char path[4200];
    const uint8_t digest[FL_DIGEST_SIZE] = {0};
    const struct fl_fs_run run = {"x", 1};
    struct fl_result *r = fl_result_new();
    struct fl_result *loaded = NULL;
    struct fl_client_state *keeps = NULL;
    uint8_t *data = NULL;
    struct fl_err err = {0};

    (void)memset(path, 'x', 4094);
    path[0] = '/';
    ck_assert_int_eq(fl_fs_replace_runs(path, &run, 1, true, &err), FL_ELIMIT);
    expect_too_long(fl_result_save(path, r, &err), &err);
    expect_too_long(fl_result_load(path, &loaded, &err), &err);
    expect_too_long(fl_result_remove(path, &err), &err);
    expect_too_long(fl_cache_save(path, FL_CACHE_SUMMARIES, "x", 1, &err), &err);
    ck_assert_int_eq(fl_cache_load(path, FL_CACHE_SUMMARIES, digest, 1, &data), FL_ENOENT);
    expect_too_long(fl_client_state_open(path, NULL, &keeps, &err), &err);
    path[4089] = '\0'; /* "/keep" still fits, "/keep/index" does not. */
    expect_too_long(fl_client_state_open(path, NULL, &keeps, &err), &err);
    fl_result_unref(r);
}

TEST(a_folder_in_the_place_of_a_file_is_an_error_and_stays)
{
    struct fl_result *r = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_fs_mkdirs(in_dir("result.bin"), NULL), FL_OK);
    ck_assert_int_ne(fl_result_load(dir, &r, &err), FL_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "cannot read '"));
    ck_assert_int_eq(fl_fs_mkdirs(in_dir("result.bin/in"), NULL), FL_OK);
    ck_assert_int_ne(fl_result_remove(dir, &err), FL_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "cannot remove '"));
    ck_assert(fl_fs_exists(in_dir("result.bin")));
}

TEST(a_folder_of_kept_state_that_cannot_be_read_stops_the_start)
{
    struct fl_client_state *keeps = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_fs_mkdirs(in_dir("keep/index"), NULL), FL_OK);
    ck_assert_int_ne(fl_client_state_open(dir, NULL, &keeps, &err), FL_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "keep/index"));
    ck_assert_ptr_null(keeps);
}

/* --- a client on such a disk --- */

static const struct rig_server plain;

static struct fl_settling settling_of(struct rig *r, const struct fl_task *task)
{
    struct fl_inputs listed = {.n = 0};
    struct fl_settling s;

    ck_assert(fl_settling_begin(&r->worker, r->setup, &listed, task, &s));
    return s;
}

TEST_EACH(settling_that_fails_has_changed_nothing_and_can_be_done_again, 3)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_settling s;
    struct rig r;
    float *two;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    spy.keeps[1] = 100;
    fl_result_unref(rig_train_plain(&r, &task));
    task = rig_task(2, 1);
    s = settling_of(&r, &task);
    break_call(_i == 0 ? PWRITE : _i == 1 ? FSYNC : RENAME, 0);
    ck_assert_int_eq(fl_settling_run(&s, &r.worker, &r.err), FL_ENOSPC);
    ck_assert(!client_kept(r.worker.keeps, "spy.two"));
    ck_assert(fl_client_state_pending(r.worker.keeps, (struct fl_round_key){1, 1}));
    ck_assert_int_eq(fl_settling_run(&s, &r.worker, &r.err), FL_OK);
    two = rig_kept(&r, "spy.two");
    ck_assert_double_eq((double)two[0], 100);
    free(two);
    fl_settling_done(&s);
    rig_done(&r);
}

/* Each write that the pending set takes fails once: its blocks, then the index. */
TEST_EACH(a_training_whose_pending_set_cannot_be_written_fails_and_tells_nobody, 3)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result = NULL;
    struct rig_payload model;
    struct rig r;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    model = (struct rig_payload){"model", r.theta, r.count * sizeof(float), false};
    spy.keeps[1] = 100;
    fl_result_unref(rig_train_plain(&r, &task));
    task = rig_task(2, 1);
    fl_result_unref(rig_train_plain(&r, &task)); /* Settled: what follows only writes. */
    spy.keeps[1] = 200;
    break_call(RENAME, _i);
    ck_assert_int_eq(rig_try(&r, &task, &model, 1, &result), FL_ENOSPC);
    ck_assert_ptr_nonnull(strstr(r.err.msg, "cannot save the client state of the next round: "));
    ck_assert_ptr_null(result);
    rig_restart(&r);
    ck_assert_int_eq(fl_result_load(r.dir, &result, &r.err), FL_OK); /* That of before. */
    ck_assert_ptr_null(fl_worker_unfit(&r.worker, result));
    fl_result_unref(result);
    fl_result_unref(rig_train_plain(&r, &task));
    ck_assert_double_eq(spy.kept[1].first, 100);
    rig_done(&r);
}

TEST(a_result_that_cannot_be_held_lives_as_long_as_the_process_with_a_warning)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *held = NULL;
    struct fl_result *result;
    struct rig r;

    client_rig_init(&r, &plain, false);
    break_call(RENAME, 0);
    result = rig_train_plain(&r, &task);
    ck_assert_ptr_nonnull(
        strstr(r.lines, "the result is not saved on disk, so a restart loses it: "));
    ck_assert_ptr_null(fl_worker_unfit(&r.worker, result));
    ck_assert_int_eq(fl_result_load(r.dir, &held, &r.err), FL_ENOENT);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(a_client_whose_state_folder_is_gone_trains_and_warns)
{
    struct fl_task task = rig_task(1, 0);
    struct rig r;

    client_rig_init(&r, &plain, false);
    folder_remove(r.dir);
    fl_result_unref(rig_train_plain(&r, &task));
    ck_assert_ptr_nonnull(
        strstr(r.lines, "the result is not saved on disk, so a restart loses it: "));
    rig_done(&r);
}

TEST_EACH(a_push_whose_residual_cannot_be_kept_fails_and_is_made_again_with_the_same_bytes, 2)
{
    const struct rig_server server = {.codec = "ternary share=0.1 residual=yes"};
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_code code[2];
    struct rig r;
    size_t i;

    client_rig_init(&r, &server, false);
    result = rig_train_plain(&r, &task);
    for (i = 0; i < 2; i++) {
        code[i] = rig_code(&r, result, NULL);
    }
    break_call(RENAME, _i); /* The block, then the index. */
    ck_assert_int_eq(fl_code_run(&code[0], &r.err), FL_ENOSPC);
    ck_assert_int_eq(fl_code_run(&code[1], &r.err), FL_OK);
    ck_assert_mem_eq(fl_blob_data(code[0].bytes), fl_blob_data(code[1].bytes),
                     fl_blob_len(code[1].bytes));
    for (i = 0; i < 2; i++) {
        fl_code_done(&code[i]);
    }
    fl_result_unref(result);
    rig_done(&r);
}
