/* Data summaries: the files of clients, the collection of them, and what is left after a kill. */

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "server/store/store_files.h"
#include "tests/lib/suites.h"
#include "tests/server/store/store_fixture.h"

TESTS_APART("a test leaves the steps that it watched");

/* --- the steps that make a change last, in place of libc's --- */

#define STEPS 5

static bool watching;
static int steps_left = -1; /* before the kill; -1: none comes */
static char steps[256];

static void step(const char *what)
{
    size_t len = strlen(steps);

    if (watching) {
        (void)snprintf(steps + len, sizeof(steps) - len, "%s ", what);
    }
    if (steps_left == 0) {
        (void)kill(getpid(), SIGKILL);
    }
    steps_left -= steps_left > 0;
}

static void die_at(int n)
{
    watching = true;
    steps_left = n;
}

int unlink(const char *path);
int rename(const char *from, const char *to);
int fsync(int fd);
int fdatasync(int fd);

int unlink(const char *path)
{
    step("unlink");
    return (int)syscall(SYS_unlinkat, -100 /* AT_FDCWD */, path, 0);
}

int rename(const char *from, const char *to)
{
    step("rename");
    return (int)syscall(SYS_renameat2, -100, from, -100, to, 0);
}

int fsync(int fd)
{
    struct stat st;

    step(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? "sync-folder" : "sync-file");
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    step("sync-file");
    return (int)syscall(SYS_fdatasync, fd);
}

/* --- summaries --- */

static void summary(const char *client, const char *text)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_summaries_put(dir, client, text, strlen(text), &err) == FL_OK, "%s", err.msg);
}

/* Of the text: an x fits no configuration, and a digit is how large its values are. */
static int no_x(void *ctx, const void *data, size_t len, double *ret_largest, struct fl_err *err)
{
    const char *text = data;
    size_t i;

    (void)ctx;
    *ret_largest = 1.0;
    for (i = 0; i < len; i++) {
        *ret_largest = text[i] >= '0' && text[i] <= '9' ? pow(10.0, text[i] - '0') : *ret_largest;
    }
    return memchr(data, 'x', len) == NULL ? FL_OK : fl_err_set(err, FL_EFORMAT, "an x");
}

static char left_out[256]; /* whose, and how */

static void note(void *ctx, const struct fl_data_summary_info *info, const char *why)
{
    size_t len = strlen(left_out);

    (void)ctx;
    (void)snprintf(left_out + len, sizeof(left_out) - len, "%s%s ", info->client,
                   why != NULL ? "" : "!");
}

static const struct fl_summaries_rule rule = {
    .max = 100, .range = 10.0, .check = no_x, .left_out = note};

static void fix(const char *want_left_out)
{
    struct fl_err err = {0};

    left_out[0] = '\0';
    ck_assert_msg(fl_summaries_fix(dir, &rule, &err) == FL_OK, "%s", err.msg);
    ck_assert_str_eq(left_out, want_left_out);
}

static bool renew(void)
{
    struct fl_err err = {0};
    bool made = false;

    left_out[0] = '\0';
    ck_assert_msg(fl_summaries_renew(dir, &rule, &made, &err) == FL_OK, "%s", err.msg);
    return made;
}

static void fixed_are(const char *want)
{
    struct fl_file *f = NULL;
    struct fl_err err = {0};
    uint8_t digest[FL_DIGEST_SIZE];
    uint8_t expected[FL_DIGEST_SIZE];
    char got[256] = "";

    ck_assert_msg(fl_summaries_open(dir, &f, digest, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(fl_file_size(f), strlen(want));
    ck_assert_int_eq(fl_file_read(f, 0, got, strlen(want)), FL_OK);
    ck_assert_str_eq(got, want);
    ck_assert_int_eq(fl_sha256(want, strlen(want), expected), FL_OK);
    ck_assert_mem_eq(digest, expected, sizeof(digest));
    fl_file_unref(f);
}

TEST_CASE("all", store_setup_folders, store_teardown);

TEST(summaries_are_joined_in_client_order)
{
    summary("zoe", "last");
    summary("a-b", "first");
    summary("a.b", "second");
    summary("mia", "");
    fix("");
    fixed_are("firstsecondlast");
}

TEST(a_newer_summary_replaces_until_they_are_fixed)
{
    uint8_t digest[FL_DIGEST_SIZE];
    struct fl_file *f = NULL;
    struct fl_err err = {0};

    ck_assert(!fl_summaries_has(dir, "ann"));
    summary("ann", "old");
    ck_assert(fl_summaries_has(dir, "ann"));
    summary("ann", "new");
    ck_assert_int_eq(fl_summaries_open(dir, &f, digest, &err), FL_ENOENT);
    fix("");
    fixed_are("new");
    ck_assert_int_eq(fl_summaries_put(dir, "ann", "late", 4, &err), FL_EEXIST);
    ck_assert_int_eq(fl_summaries_put(dir, "bob", "late", 4, &err), FL_EEXIST);
    ck_assert(!fl_summaries_has(dir, "bob"));
    fix("");
    ck_assert(!renew());
    fixed_are("new");
}

TEST(summaries_that_do_not_fit_are_left_out)
{
    char large[102];

    (void)memset(large, 'a', sizeof(large));
    large[101] = '\0';
    summary("ann", "ok");
    summary("bob", "x");
    summary("cid", large);
    fix("bob cid ");
    fixed_are("ok");
}

TEST(no_summaries_at_all_are_fixed_too)
{
    fix("");
    fixed_are("");
    ck_assert_int_eq(fl_summaries_put(dir, "ann", "late", 4, NULL), FL_EEXIST);
    fix("");
    fixed_are("");
}

TEST(only_names_of_clients_are_offered)
{
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(fl_summaries_put(dir, "../x", "a", 1, &err), FL_EINVAL);
    ck_assert_int_eq(
        fl_fs_replace(rig_path(path, "summaries/.hidden.summary"), "h", 1, false, &err), FL_OK);
    ck_assert_int_eq(
        fl_fs_replace(rig_path(path, "summaries/ann.summary.tmp"), "t", 1, false, &err), FL_OK);
    ck_assert_int_eq(fl_fs_replace(rig_path(path, "summaries/.summary"), "n", 1, false, &err),
                     FL_OK);
    summary("all", "mine"); /* a client may be called as the file is */
    fix("");
    fixed_are("mine");
}

static void four(void)
{
    summary("ann", "A0");
    summary("bob", "B1");
    summary("cid", "C9");
    summary("dan", "D0");
}

TEST(a_summary_out_of_the_range_of_the_others_is_left_out)
{
    four();
    fix("cid! ");
    fixed_are("A0B1D0");
    ck_assert(!renew()); /* Nothing has changed. */
}

TEST_EACH(a_summary_that_is_removed_leaves_the_collection, 2)
{
    struct fl_err err = {0};

    four();
    fix("cid! ");
    ck_assert_int_eq(fl_summaries_remove(dir, "bob", _i != 0, &err), FL_OK);
    ck_assert(fl_summaries_has(dir, "bob") == (_i != 0));
    ck_assert(fl_summaries_dropped(dir, "bob") == (_i != 0));
    ck_assert(renew());
    ck_assert_str_eq(left_out, "cid! ");
    fixed_are("A0D0");
    ck_assert(!renew());
    ck_assert_int_eq(fl_summaries_remove(dir, "bob", _i != 0, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "no data summary of client 'bob'"));
}

TEST(a_dropped_summary_stays_dropped_and_is_no_damage)
{
    struct fl_err err = {0};

    summary("ann", "A");
    summary("bob", "B");
    ck_assert_int_eq(fl_summaries_remove(dir, "bob", true, &err), FL_OK);
    ck_assert(!renew()); /* There is no collection yet. */
    fix("");
    fixed_are("A");
}

TEST(a_dropped_summary_stays_dropped_when_the_settings_change)
{
    struct fl_err err = {0};

    summary("ann", "A");
    summary("bob", "B");
    ck_assert_int_eq(fl_summaries_remove(dir, "bob", true, &err), FL_OK);
    fix("");
    ck_assert_int_eq(fl_summaries_clear(dir, &err), FL_OK);
    ck_assert(!fl_summaries_has(dir, "ann"));
    ck_assert(!fl_summaries_fixed(dir));
    ck_assert(fl_summaries_dropped(dir, "bob"));
    ck_assert(fl_summaries_has(dir, "bob")); /* It is not asked for another one. */
    summary("ann", "C");
    fix("");
    fixed_are("C");
    ck_assert_int_eq(fl_summaries_remove(dir, "bob", false, &err), FL_OK); /* It is forgotten. */
    ck_assert(!fl_summaries_has(dir, "bob"));
}

TEST(readers_of_the_old_collection_keep_it)
{
    struct fl_file *f = NULL;
    uint8_t digest[FL_DIGEST_SIZE];
    char got[4] = "";

    summary("ann", "A");
    summary("bob", "B");
    fix("");
    ck_assert_int_eq(fl_summaries_open(dir, &f, digest, NULL), FL_OK);
    ck_assert_int_eq(fl_summaries_remove(dir, "bob", false, NULL), FL_OK);
    ck_assert(renew());
    ck_assert_int_eq(fl_file_read(f, 0, got, 2), FL_OK);
    ck_assert_str_eq(got, "AB");
    fl_file_unref(f);
    fixed_are("A");
}

TEST(another_range_makes_the_collection_again)
{
    struct fl_summaries_rule without = rule;
    bool made = false;

    four();
    fix("cid! ");
    without.range = 0.0;
    ck_assert_int_eq(fl_summaries_renew(dir, &without, &made, NULL), FL_OK);
    ck_assert(made);
    fixed_are("A0B1C9D0");
}

TEST(a_collection_that_cannot_be_made_again_is_made_later)
{
    struct fl_err err = {0};
    bool made = false;
    int rv;

    four();
    fix("cid! ");
    ck_assert_int_eq(fl_summaries_remove(dir, "bob", false, &err), FL_OK);
    rig_limit_files(30);
    rv = fl_summaries_renew(dir, &rule, &made, &err);
    rig_limit_files(0);
    ck_assert_int_ne(rv, FL_OK);
    ck_assert(!made);
    fixed_are("A0B1D0");
    ck_assert(renew());
    fixed_are("A0D0");
}

static int list(void *ctx, const struct fl_data_summary_info *info)
{
    char *out = ctx;
    size_t len = strlen(out);

    (void)snprintf(out + len, 256 - len, "%s=%d:%g:%g ", info->client, (int)info->state,
                   info->largest, info->bound);
    return FL_OK;
}

TEST(all_summaries_are_listed_with_what_became_of_them)
{
    char out[256] = "";

    four();
    summary("eva", "");
    summary("fay", "x");
    ck_assert_int_eq(fl_summaries_remove(dir, "ann", true, NULL), FL_OK);
    left_out[0] = '\0';
    ck_assert_int_eq(fl_summaries_list(dir, &rule, list, out, NULL), FL_OK);
    ck_assert_str_eq(out, "ann=3:0:inf bob=1:10:5e+09 cid=5:1e+09:55 dan=1:1:5e+09 eva=2:0:inf "
                          "fay=4:1:inf ");
    ck_assert_str_eq(left_out, "");
}

/* Killed by the operating system at each step that makes a change last; the next start finishes. */
TEST_EACH(a_removal_that_is_killed_at_any_step_is_undone_or_finished_by_the_next_start, STEPS + 1)
{
    struct fl_err err = {0};
    pid_t child;
    int status = 0;
    bool there;

    four();
    fix("cid! ");
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        bool made = false;

        die_at(_i);
        if (fl_summaries_remove(dir, "bob", false, NULL) != FL_OK ||
            fl_summaries_renew(dir, &rule, &made, NULL) != FL_OK)
        {
            _exit(2);
        }
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0),
                  "status %d", status);
    ck_assert(WIFSIGNALED(status) == (_i < STEPS)); /* All steps are tried. */
    there = fl_summaries_has(dir, "bob");
    ck_assert(there == (_i == 0));
    (void)renew();
    fixed_are(there ? "A0B1D0" : "A0D0");
    ck_assert_int_eq(fl_summaries_remove(dir, "bob", false, &err), there ? FL_OK : FL_ENOENT);
    (void)renew();
    fixed_are("A0D0");
}

/* Each of them is on disk before the next one: what a power cut leaves is what a kill leaves. */
TEST_EACH(a_removal_syncs_each_of_its_steps, 2)
{
    four();
    fix("cid! ");
    die_at(-1);
    ck_assert_int_eq(fl_summaries_remove(dir, "bob", _i != 0, NULL), FL_OK);
    ck_assert(renew());
    watching = false;
    ck_assert_str_eq(steps, _i == 0 ? "unlink sync-folder sync-file rename sync-folder "
                                    : "sync-file rename sync-folder sync-file rename "
                                      "sync-folder ");
}
