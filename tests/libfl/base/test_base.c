#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "libfl/base/buf.h"
#include "libfl/base/checksum.h"
#include "libfl/base/descriptors.h"
#include "libfl/base/err.h"
#include "libfl/base/fs.h"
#include "libfl/base/log.h"
#include "libfl/base/rng.h"
#include "libfl/base/sm.h"
#include "libfl/base/str.h"
#include "libfl/base/undumpable.h"
#include "libfl/base/utc.h"
#include "libfl/base/writer.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

TEST(a_process_that_keeps_keys_is_not_dumped)
{
#ifndef __SANITIZE_ADDRESS__
    ck_assert_int_eq(prctl(PR_GET_DUMPABLE), 1);
    fl_undumpable();
    ck_assert_int_eq(prctl(PR_GET_DUMPABLE), 0);
#endif
}

TEST(a_secret_buffer_keeps_what_is_in_it_when_it_grows)
{
    struct fl_buf buf;
    struct fl_blob *blob = NULL;
    size_t i;

    fl_buf_init(&buf, 1 << 16);
    buf.secret = true;
    for (i = 0; i < 1000; i++) {
        ck_assert_int_eq(fl_buf_add(&buf, "token", 5), FL_OK);
    }
    ck_assert_uint_eq(buf.len, 5000);
    ck_assert_int_eq(fl_blob_from_buf(&buf, &blob), FL_OK);
    for (i = 0; i < 1000; i++) {
        ck_assert_mem_eq(fl_blob_data(blob) + 5 * i, "token", 5);
    }
    fl_blob_unref(blob);
    fl_buf_done(&buf);
}

TEST(a_blob_of_a_buffer_keeps_its_bytes_and_tells_whether_others_have_it)
{
    struct fl_buf buf;
    struct fl_blob *blob = NULL;
    struct fl_blob *empty = NULL;

    fl_buf_init(&buf, 1000);
    ck_assert_int_eq(fl_buf_add(&buf, "bytes", 5), FL_OK);
    ck_assert_int_eq(fl_blob_from_buf(&buf, &blob), FL_OK);
    ck_assert_uint_eq(buf.cap, 0);
    ck_assert_uint_eq(fl_blob_len(blob), 5);
    ck_assert_mem_eq(fl_blob_data(blob), "bytes", 5);
    ck_assert(!fl_blob_is_shared(blob));
    ck_assert_ptr_eq(fl_blob_ref(blob), blob);
    ck_assert(fl_blob_is_shared(blob));
    fl_blob_unref(blob);
    ck_assert(!fl_blob_is_shared(blob));
    fl_blob_unref(blob);
    ck_assert_int_eq(fl_blob_from_buf(&buf, &empty), FL_OK);
    ck_assert_uint_eq(fl_blob_len(empty), 0);
    fl_blob_unref(empty);
}

TEST(every_error_code_has_its_own_text)
{
#define X(name, num, text)                     \
    ck_assert_str_eq(fl_strerror(name), text); \
    ck_assert_int_eq(name, -(num));
    FL_ERR_MAP(X)
#undef X
    ck_assert_str_eq(fl_strerror(-9999), "unknown error");
}

TEST(wrapping_puts_the_outer_words_first)
{
    struct fl_err err = {0};

    ck_assert_int_eq(fl_err_set(&err, FL_EIO, "disk %d", 7), FL_EIO);
    ck_assert_int_eq(fl_err_wrap(&err, FL_EIO, "round %d", 3), FL_EIO);
    ck_assert_str_eq(err.msg, "round 3: disk 7");
    ck_assert_int_eq(fl_err_set(NULL, FL_EIO, "x"), FL_EIO);
}

TEST(a_buffer_never_grows_past_its_limit)
{
    struct fl_buf buf;

    fl_buf_init(&buf, 10);
    ck_assert_int_eq(fl_buf_add(&buf, "0123456789", 10), FL_OK);
    ck_assert_int_eq(fl_buf_add(&buf, "x", 1), FL_ELIMIT);
    ck_assert_uint_eq(buf.len, 10);
    fl_buf_drop(&buf, 4);
    ck_assert_mem_eq(buf.data, "456789", 6);
    ck_assert_int_eq(fl_buf_add(&buf, "x", SIZE_MAX), FL_ELIMIT);
    fl_buf_done(&buf);
}

static void count_release(void *ctx)
{
    ++*(int *)ctx;
}

TEST(a_writer_keeps_its_first_error_and_appends_nothing_after_it)
{
    struct fl_buf buf;
    struct fl_writer w = {.out = &buf};

    fl_buf_init(&buf, 12);
    fl_writer_printf(&w, "%d,", 1);
    fl_writer_escape(&w, "a|b", '|', '\\');
    fl_writer_add(&w, "cd", 2);
    fl_writer_note(&w, FL_OK);
    ck_assert_int_eq(w.code, FL_OK);
    ck_assert_mem_eq(buf.data, "1,a\\|bcd", 8);
    fl_writer_printf(&w, "%s", "too long");
    ck_assert_int_eq(w.code, FL_ELIMIT);
    fl_writer_printf(&w, "e");
    fl_writer_add(&w, "e", 1);
    fl_writer_note(&w, FL_EIO);
    ck_assert_int_eq(w.code, FL_ELIMIT);
    ck_assert_uint_eq(buf.len, 8);
    fl_buf_done(&buf);
}

TEST(a_blob_is_released_with_its_last_reference)
{
    struct fl_blob *blob = NULL;
    int released = 0;

    ck_assert_int_eq(fl_blob_wrap("abc", 3, count_release, &released, &blob), FL_OK);
    ck_assert_ptr_eq(fl_blob_ref(blob), blob);
    fl_blob_unref(blob);
    ck_assert_int_eq(released, 0);
    fl_blob_unref(blob);
    ck_assert_int_eq(released, 1);
    fl_blob_unref(NULL);
}

TEST(streams_with_different_keys_differ_and_repeat)
{
    struct fl_rng a;
    struct fl_rng b;

    fl_rng_key(&a, 1, FL_RNG_SELECT, 2, 3);
    fl_rng_key(&b, 1, FL_RNG_SELECT, 3, 2);
    ck_assert_uint_ne(fl_rng_u64(&a), fl_rng_u64(&b));
    fl_rng_key(&b, 1, FL_RNG_SELECT, 2, 3);
    (void)fl_rng_u64(&b);
    ck_assert_uint_eq(fl_rng_u64(&a), fl_rng_u64(&b));
}

TEST(normals_have_mean_zero_and_variance_one)
{
    struct fl_rng rng;
    double sum = 0.0;
    double sq = 0.0;
    int i;

    fl_rng_seed(&rng, 42);
    for (i = 0; i < 100000; i++) {
        double x = fl_rng_normal(&rng);

        sum += x;
        sq += x * x;
    }
    ck_assert_double_lt(sum / 1e5, 0.02);
    ck_assert_double_gt(sum / 1e5, -0.02);
    ck_assert_double_eq_tol(sq / 1e5, 1.0, 0.02);
}

TEST(below_is_uniform)
{
    struct fl_rng rng;
    unsigned counts[7] = {0};
    int i;

    fl_rng_seed(&rng, 7);
    for (i = 0; i < 70000; i++) {
        counts[fl_rng_below(&rng, 7)]++;
    }
    for (i = 0; i < 7; i++) {
        ck_assert_uint_gt(counts[i], 9600);
        ck_assert_uint_lt(counts[i], 10400);
    }
}

TEST(a_state_machine_moves_only_where_its_table_allows)
{
    static const struct fl_sm_state states[] = {{"a", FL_SM_TO(1)}, {"b", 0}};
    struct fl_sm sm;

    fl_sm_init(&sm, states, 2, 0);
    ck_assert(!fl_sm_can(&sm, 0));
    ck_assert(!fl_sm_can(&sm, 5));
    fl_sm_move(&sm, 1);
    ck_assert_str_eq(fl_sm_name(&sm), "b");
    ck_assert(!fl_sm_can(&sm, 0));
}

TEST(quoted_text_holds_no_control_character)
{
    char out[32];

    ck_assert_str_eq(fl_log_quote(out, sizeof(out), "a'\n\xff", 4), "'a\\x27\\x0a\\xff'");
    ck_assert_str_eq(fl_log_quote(out, 12, "abcdefghijk", 11), "'abcdef...'");
}

TEST(a_cleaned_text_commands_no_terminal_and_stays_utf_8)
{
    char text[] = "a\x1b[31mb\nc\x7f \xc3\xa4\xe2\x82\xac \xc2\x9b \xff\xc3";

    ck_assert_ptr_eq(fl_str_clean(text), text);
    ck_assert_str_eq(text, "a?[31mb?c? \xc3\xa4\xe2\x82\xac ?? ??");
    ck_assert_ptr_null(fl_str_clean(NULL));
}

static void keep_line(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    (void)level;
    (void)component;
    (void)snprintf(ctx, 64, "%s", text);
}

TEST(a_line_of_the_log_is_one_line_whatever_is_in_it)
{
    char line[64] = "";
    struct fl_log log = {.level = FL_LOG_INFO, .sink = keep_line, .ctx = line};

    fl_log(&log, FL_LOG_INFO, "test", "said: %s", "go\r\n2026 error: \x1b]0;x\a");
    ck_assert_str_eq(line, "said: go??2026 error: ?]0;x?");
}

TEST(a_typing_slip_finds_its_word_and_nonsense_does_not)
{
    static const char *const names[] = {"deadline", "min_clients", "seed"};

    ck_assert_str_eq(fl_str_nearest("dedline", names, 3), "deadline");
    ck_assert_str_eq(fl_str_nearest("min_client", names, 3), "min_clients");
    ck_assert_str_eq(fl_str_nearest("min_", names, 3), "min_clients"); /* half of it */
    ck_assert_ptr_null(fl_str_nearest("mi", names, 3));
    ck_assert_ptr_null(fl_str_nearest("zzzzzzzz", names, 3));
}

TEST(names_become_file_names_safely)
{
    char longest[FL_NAME_MAX + 1];

    ck_assert(fl_name_valid("edge-04.site_1"));
    ck_assert(!fl_name_valid(""));
    ck_assert(!fl_name_valid("../etc"));
    ck_assert(!fl_name_valid(".hidden"));
    ck_assert(!fl_name_valid("a/b"));
    (void)memset(longest, 'a', FL_NAME_MAX);
    longest[FL_NAME_MAX] = '\0';
    ck_assert(!fl_name_valid(longest));
    longest[FL_NAME_MAX - 1] = '\0';
    ck_assert(fl_name_valid(longest));
}

TEST(numbers_are_parsed_whole_or_not_at_all)
{
    uint64_t u = 0;
    double d = 0.0;

    ck_assert_int_eq(fl_str_to_u64("18446744073709551615", &u), FL_OK);
    ck_assert_int_eq(fl_str_to_u64("18446744073709551616", &u), FL_ERANGE);
    ck_assert_int_eq(fl_str_to_u64("12x", &u), FL_EINVAL);
    ck_assert_int_eq(fl_str_to_u64("-1", &u), FL_EINVAL);
    ck_assert_int_eq(fl_str_to_double("nan", &d), FL_EINVAL);
    ck_assert_int_eq(fl_str_to_double("1e-3", &d), FL_OK);
}

TEST(a_replaced_file_holds_the_new_bytes_and_leaves_no_temporary)
{
    char dir[] = "/tmp/fl-base-XXXXXX";
    char path[64];
    char tmp[80];
    struct fl_buf buf;
    struct fl_err err = {0};

    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/f", dir);
    (void)snprintf(tmp, sizeof(tmp), "%s.tmp", path);
    ck_assert_int_eq(fl_fs_replace(path, "one", 3, true, &err), FL_OK);
    ck_assert_int_eq(fl_fs_replace(path, "two!", 4, true, &err), FL_OK);
    ck_assert_int_eq(fl_fs_read(path, 100, &buf, &err), FL_OK);
    ck_assert_uint_eq(buf.len, 4);
    ck_assert_mem_eq(buf.data, "two!", 4);
    fl_buf_done(&buf);
    ck_assert(!fl_fs_exists(tmp));
    ck_assert_int_eq(fl_fs_read(path, 3, &buf, &err), FL_ELIMIT);
    ck_assert_int_eq(fl_fs_remove(path), FL_OK);
    ck_assert_int_eq(fl_fs_remove(path), FL_OK);
    ck_assert_int_eq(fl_fs_read(path, 3, &buf, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, path));
    (void)rmdir(dir);
}

static bool is_old(const void *ctx, const char *name)
{
    return fl_str_ends_with(name, ctx);
}

static bool is_any(const void *ctx, const char *name)
{
    (void)ctx;
    return name[0] != '\0';
}

TEST(of_a_folder_all_goes_that_is_said_and_one_that_stays_keeps_no_other)
{
    static const char *const names[] = {"a.old", "b.old", "c.new", "old"};
    char dir[] = "/tmp/fl-base-XXXXXX";
    char path[64];
    char sub[64];
    struct fl_err err = {0};
    size_t i;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    for (i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        ck_assert_int_eq(fl_fs_replace(path, "", 0, false, &err), FL_OK);
    }
    (void)snprintf(sub, sizeof(sub), "%s/folder.old", dir);
    ck_assert_int_eq(fl_fs_mkdirs(sub, &err), FL_OK);
    ck_assert_int_ne(fl_fs_remove_each(dir, is_old, ".old", &err), FL_OK); /* No file. */
    ck_assert_ptr_nonnull(strstr(err.msg, "'folder.old'"));
    for (i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        ck_assert_int_eq(fl_fs_exists(path), i >= 2);
    }
    ck_assert_int_eq(rmdir(sub), 0);
    ck_assert_int_eq(fl_fs_remove_each(dir, is_any, NULL, &err), FL_OK); /* But the folder. */
    ck_assert_int_eq(rmdir(dir), 0);
    ck_assert_int_eq(fl_fs_remove_each(dir, is_old, ".old", &err), FL_OK);
}

TEST(a_folder_is_locked_once_and_the_holder_is_named)
{
    char dir[] = "/tmp/fl-base-XXXXXX";
    char path[64];
    char pid[32];
    struct fl_err err = {0};
    int a = -1;
    int b = -1;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(fl_fs_lock_dir(dir, &a, &err), FL_OK);
    ck_assert_int_eq(fl_fs_lock_dir(dir, &b, &err), FL_EINUSE);
    (void)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    ck_assert_ptr_nonnull(strstr(err.msg, pid));
    (void)close(a);
    ck_assert_int_eq(fl_fs_lock_dir(dir, &b, &err), FL_OK);
    (void)close(b);
    (void)snprintf(path, sizeof(path), "%s/.lock", dir);
    (void)unlink(path);
    (void)rmdir(dir);
}

TEST(folders_are_made_with_their_parents)
{
    char dir[] = "/tmp/fl-base-XXXXXX";
    char path[64];
    struct fl_err err = {0};

    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/a/b", dir);
    ck_assert_int_eq(fl_fs_mkdirs(path, &err), FL_OK);
    ck_assert_int_eq(fl_fs_mkdirs(path, &err), FL_OK);
    ck_assert_int_eq(fl_fs_mkdirs("/proc/nope/x", &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "/proc/nope"));
    (void)rmdir(path);
    (void)snprintf(path, sizeof(path), "%s/a", dir);
    (void)rmdir(path);
    (void)rmdir(dir);
}

TEST(a_folder_that_could_be_made_is_told_from_one_that_could_not)
{
    char dir[] = "/tmp/fl-base-XXXXXX";
    char path[64];
    struct fl_err err = {0};

    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(fl_fs_check_folder(dir, &err), FL_OK);
    (void)snprintf(path, sizeof(path), "%s/a/b//c/", dir);
    ck_assert_int_eq(fl_fs_check_folder(path, &err), FL_OK);
    ck_assert(!fl_fs_exists(path));
    ck_assert_int_eq(fl_fs_check_place(path, &err), FL_ENOENT);
    (void)snprintf(path, sizeof(path), "%s/file", dir);
    ck_assert_int_eq(fl_fs_check_place(path, &err), FL_OK);
    ck_assert_int_eq(fl_fs_replace(path, "", 0, false, &err), FL_OK);
    ck_assert_int_eq(fl_fs_check_folder(path, &err), FL_EEXIST);
    (void)snprintf(path, sizeof(path), "%s/file/a/b", dir);
    ck_assert_int_ne(fl_fs_check_folder(path, &err), FL_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "/file"));
    ck_assert_int_eq(fl_fs_check_folder("somewhere/below", &err), FL_OK);
    ck_assert_int_eq(fl_fs_check_folder("", &err), FL_ELIMIT);
    (void)snprintf(path, sizeof(path), "%s/file", dir);
    (void)unlink(path);
    (void)rmdir(dir);
}

TEST(dates_are_told_and_read_before_1970_and_after_2038)
{
    static const struct {
        int64_t s;
        int year, month, day, hour, minute, second;
    } cases[] = {{0, 1970, 1, 1, 0, 0, 0},
                 {-1, 1969, 12, 31, 23, 59, 59},
                 {INT64_C(2147483647), 2038, 1, 19, 3, 14, 7},
                 {INT64_C(2147483648), 2038, 1, 19, 3, 14, 8},
                 {INT64_C(4107542399), 2100, 2, 28, 23, 59, 59},
                 {INT64_C(253402300799), 9999, 12, 31, 23, 59, 59}};
    char text[FL_UTC_TEXT];
    struct tm tm;
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert(fl_utc(cases[i].s, &tm));
        ck_assert_int_eq(tm.tm_year + 1900, cases[i].year);
        ck_assert_int_eq(tm.tm_mon + 1, cases[i].month);
        ck_assert_int_eq(tm.tm_mday, cases[i].day);
        ck_assert_int_eq(tm.tm_hour, cases[i].hour);
        ck_assert_int_eq(tm.tm_min, cases[i].minute);
        ck_assert_int_eq(tm.tm_sec, cases[i].second);
        ck_assert_int_eq(fl_utc_seconds(&tm), cases[i].s);
    }
    ck_assert(!fl_utc(INT64_MAX, &tm));
    ck_assert(fl_utc_text(4102444800, text));
    ck_assert_str_eq(text, "2100-01-01T00:00:00Z");
    ck_assert(!fl_utc_text(INT64_MAX, text));
}

TEST(a_relative_path_starts_at_the_current_folder)
{
    char here[4096];
    char want[4200];
    char out[4200];
    struct fl_err err = {0};

    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    (void)snprintf(want, sizeof(want), "%s/a/b", here);
    ck_assert_int_eq(fl_fs_absolute("a/b", out, sizeof(out), &err), FL_OK);
    ck_assert_str_eq(out, want);
    ck_assert_int_eq(fl_fs_absolute("/a/b", out, sizeof(out), &err), FL_OK);
    ck_assert_str_eq(out, "/a/b");
    ck_assert_int_eq(fl_fs_absolute("/a/b", out, 4, &err), FL_ELIMIT);
}

/* The published value of no bytes: what lies on a disk is found right by every later build. */
TEST(a_checksum_of_pieces_is_that_of_the_whole)
{
    struct fl_summer *summer = NULL;
    char text[FL_CHECKSUM_TEXT];
    uint8_t data[3000];
    size_t i;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 7 + i / 256);
    }
    ck_assert_str_eq(fl_checksum_text(fl_checksum(data, 0), text), "2d06800538d394c2");
    ck_assert_int_eq(fl_summer_new(&summer), FL_OK);
    ck_assert_uint_eq(fl_summer_value(summer), fl_checksum(data, 0));
    for (i = 0; i < sizeof(data); i += 300) {
        fl_summer_add(summer, data + i, 300);
        ck_assert_uint_eq(fl_summer_value(summer), fl_checksum(data, i + 300));
    }
    fl_summer_reset(summer);
    fl_summer_add(summer, data, 17);
    ck_assert_uint_eq(fl_summer_value(summer), fl_checksum(data, 17));
    fl_summer_free(summer);
    fl_summer_free(NULL);
}

TEST(a_text_that_is_too_long_keeps_its_beginning_and_most_of_its_end)
{
    char out[32];

    ck_assert_str_eq(fl_str_ends(out, sizeof(out), NULL), "");
    ck_assert_str_eq(fl_str_ends(out, sizeof(out), "exactly thirty-one characters.."),
                     "exactly thirty-one characters..");
    ck_assert_str_eq(
        fl_str_ends(out, sizeof(out), "training failed: a long story; KeyError: 'age'"),
        "training ... y; KeyError: 'age'");
    /* Sequences of UTF-8 stay whole, and so may the text become shorter. */
    ck_assert_str_eq(fl_str_ends(out, sizeof(out),
                                 "1234567\xc3\xa4 and so on and on and on: \xc3\xa4"
                                 "23456789012345678"),
                     "1234567 ... 23456789012345678");
}

TEST(the_soft_limit_of_descriptors_is_raised_to_the_hard_one)
{
    struct rlimit limit = {.rlim_cur = 100, .rlim_max = 200};
    uint64_t before = 0;

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(fl_descriptors_most(), 200);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, 100);
    ck_assert_uint_eq(fl_descriptors_raise(&before), 200);
    ck_assert_uint_eq(before, 100);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, 200);
    ck_assert_uint_eq(fl_descriptors_raise(NULL), 200);
}
