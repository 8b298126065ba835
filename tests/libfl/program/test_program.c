/* A program as a child: what it finds, and how it ends. */
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/program/program.h"
#include "tests/lib/suites.h"

static struct fl_program *sh(const char *script, struct fl_program_conf conf)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct fl_program *p = NULL;
    struct fl_err err = {0};

    conf.argv = argv;
    ck_assert_msg(fl_program_start(&conf, &p, &err) == FL_OK, "%s", err.msg);
    return p;
}

static int end_of(struct fl_program *p, struct fl_err *err)
{
    while (!fl_program_look(p, fl_clock_ms())) {
        struct pollfd wait = {.fd = fl_program_stderr(p), .events = POLLIN};

        (void)poll(&wait, 1, FL_PROGRAM_TICK_MS);
    }
    return fl_program_reap(p, err);
}

TEST(the_environment_has_the_additions_in_place_of_ours)
{
    const char *const additions[] = {"FL_TEST_A=of the program", "FL_TEST_NEW=new", NULL};
    struct fl_program_conf conf = {.additions = additions};
    struct fl_err err = {0};
    struct fl_program *p;

    ck_assert_int_eq(setenv("FL_TEST_A", "ours", 1), 0);
    ck_assert_int_eq(setenv("FL_TEST_AB", "stays", 1), 0);
    p = sh(
        "env | grep -c '^FL_TEST_A=' >&2; echo $FL_TEST_A, $FL_TEST_NEW, $FL_TEST_AB >&2; exit 2",
        conf);
    ck_assert_int_eq(end_of(p, &err), FL_EIO);
    fl_program_add_tail(p, &err);
    ck_assert_str_eq(err.msg,
                     "'sh' ended with exit code 2; its stderr ends: 1 of the program, new, stays");
    fl_program_free(p);
}

/* Whatever numbers they have here, also those that they are to have there. */
TEST(inherited_descriptors_stand_at_3_4_5_and_no_others_are_open)
{
    int fds[3][2];
    int inherited[3];
    struct fl_program_conf conf = {.inherited = inherited, .n_inherited = 3};
    struct fl_err err = {0};
    struct fl_program *p;
    char got[3][2] = {{0}};
    int other;
    size_t i;

    for (i = 0; i < 3; i++) {
        ck_assert_int_eq(pipe2(fds[i], O_CLOEXEC), 0);
    }
    other = open("/dev/null", O_RDONLY);
    ck_assert_int_ge(other, 0);
    inherited[0] = fds[2][1];
    inherited[1] = fds[0][1];
    inherited[2] = fds[1][1];
    p = sh("printf a >&3; printf b >&4; printf c >&5; ls /proc/self/fd | wc -l >&2", conf);
    ck_assert_int_eq(end_of(p, &err), FL_OK);
    ck_assert_int_eq(read(fds[2][0], got[0], 1), 1);
    ck_assert_int_eq(read(fds[0][0], got[1], 1), 1);
    ck_assert_int_eq(read(fds[1][0], got[2], 1), 1);
    ck_assert_str_eq(got[0], "a");
    ck_assert_str_eq(got[1], "b");
    ck_assert_str_eq(got[2], "c");
    fl_program_add_tail(p, &err);
    /* 0 to 5, and the folder that ls reads. */
    ck_assert_str_eq(err.msg, "; its stderr ends: 7");
    fl_program_free(p);
    (void)close(other);
}

TEST(freeing_kills_it_and_what_it_started)
{
    struct fl_program *p =
        sh("trap '' TERM; sleep 1000 & echo up >&2; wait", (struct fl_program_conf){0});
    char tail[FL_PROGRAM_TAIL];

    while (fl_program_tail(p, tail) == 0) {
        (void)fl_program_look(p, fl_clock_ms());
    }
    fl_program_free(p);
}

TEST(an_address_space_that_is_limited_is_that_of_the_program)
{
    struct fl_program_conf conf = {.memory_bytes = UINT64_C(64) << 20};
    struct fl_err err = {0};
    struct fl_program *p = sh("ulimit -v >&2", conf);

    ck_assert_int_eq(end_of(p, &err), FL_OK);
    fl_program_add_tail(p, &err);
    ck_assert_str_eq(err.msg, "; its stderr ends: 65536");
    fl_program_free(p);
    /* The other kind leaves the address space alone. */
    conf.memory_of = FL_PROGRAM_RESIDENT_MEMORY;
    p = sh("ulimit -v >&2", conf);
    err = (struct fl_err){0};
    ck_assert_int_eq(end_of(p, &err), FL_OK);
    fl_program_add_tail(p, &err);
    ck_assert_str_eq(err.msg, "; its stderr ends: unlimited");
    fl_program_free(p);
}

/* --- stderr --- */

struct written {
    char text[4096]; /* the last lines, '|' behind each */
    size_t lines, left_out;
};

static void keep_line(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    struct written *w = ctx;
    size_t used = strlen(w->text);

    ck_assert_str_eq(component, "program");
    if (strstr(text, " lines of stderr were dropped") != NULL) {
        ck_assert_int_eq(level, FL_LOG_WARNING);
        w->left_out += strtoull(text, NULL, 10);
        return;
    }
    ck_assert_int_eq(level, FL_LOG_INFO);
    w->lines++;
    if (used + strlen(text) + 2 < sizeof(w->text)) {
        (void)snprintf(w->text + used, sizeof(w->text) - used, "%s|", text);
    }
}

static void written_by(const char *script, struct written *w)
{
    struct fl_log log = {.level = FL_LOG_INFO, .sink = keep_line, .ctx = w};
    struct fl_program_conf conf = {.log = &log};
    struct fl_program *p;

    *w = (struct written){.lines = 0};
    p = sh(script, conf);
    ck_assert_int_eq(end_of(p, NULL), FL_OK);
    fl_program_free(p);
}

TEST(each_line_of_stderr_goes_to_the_log)
{
    struct written w;

    written_by("printf 'a b\\n\\n  c\\n' >&2; printf d >&2; printf 'e\\nno end' >&2", &w);
    ck_assert_str_eq(w.text, "stderr: a b|stderr:   c|stderr: de|stderr: no end|");
    /* As a terminal shows it. */
    written_by("printf '10 %%\\r20 %%\\rdone\\r\\nnext\\r\\n' >&2", &w);
    ck_assert_str_eq(w.text, "stderr: done|stderr: next|");
}

TEST(a_long_line_of_stderr_is_several_with_whole_characters)
{
    char expected[4096];
    char part[1025] = "";
    struct written w;
    size_t i;

    /* 1023 bytes and the first of two. */
    for (i = 0; i < 1023; i++) {
        part[i] = 'x';
    }
    written_by("printf '%01023d\\303\\244end\\n' 0 | tr 0 x >&2", &w);
    (void)snprintf(expected, sizeof(expected), "stderr: %s|stderr: \303\244end|", part);
    ck_assert_str_eq(w.text, expected);
}

TEST(stderr_beyond_the_rate_is_counted)
{
    struct written w;

    written_by("seq 1 200000 >&2", &w);
    ck_assert_uint_gt(w.left_out, 0);
    ck_assert_uint_gt(w.lines, 30000);
    ck_assert_uint_eq(w.lines + w.left_out, 200000);
}

TEST(an_error_has_the_last_whole_lines_of_stderr)
{
    struct fl_err err = {0};
    struct fl_program *p =
        sh("printf 'Traceback\\n  File \"%01000d\"\\n  File \"%0400d\"\\n' 1 2 >&2;"
           "printf '    train()\\nValueError: nan\\n' >&2; exit 1",
           (struct fl_program_conf){0});
    const char *at;

    ck_assert_int_eq(end_of(p, &err), FL_EIO);
    fl_program_add_tail(p, &err);
    at = strstr(err.msg, "; its stderr ends: File \"000");
    ck_assert_msg(at != NULL, "%s", err.msg);
    ck_assert_ptr_nonnull(strstr(at, "2\" train() ValueError: nan"));
    ck_assert_uint_gt(strlen(err.msg), 450);
    fl_program_free(p);
}

TEST(the_script_of_an_interpreter_is_looked_for)
{
    static const struct {
        const char *argv[5];
        const char *message; /* NULL: nothing is wrong with it */
    } cases[] = {
        {{"sh", "/gone/a.sh"},
         "cannot read '/gone/a.sh', the script of 'sh': No such file or directory"},
        {{"/bin/sh", "-u", "gone.sh"},
         "cannot read 'gone.sh', the script of '/bin/sh': No such file or directory (from the "
         "current folder; name it by its full path)"},
        {{"sh", "/dev/null/a.sh"}, "cannot read '/dev/null/a.sh', the script of 'sh': Not a "},
        {{"sh", "/dev/null", "gone"}, NULL},
        {{"sh", "-c", "gone"}, NULL},    /* a text */
        {{"sh", "-o", "errexit"}, NULL}, /* an option that may have a value */
        {{"sh", "{task}"}, NULL},        /* filled in for each task */
        {{"sh"}, NULL},                  /* reads its input */
        {{"env", "/gone/a.sh"}, NULL},   /* no interpreter */
        {{"/gone/sh", "/dev/null"}, "cannot run '/gone/sh': No such file or directory"},
    };
    size_t i;

    for (i = 0; i < ARRAY_LEN(cases); i++) {
        struct fl_err err = {0};
        int rv = fl_program_check(cases[i].argv, &err);

        if (cases[i].message == NULL) {
            ck_assert_msg(rv == FL_OK, "%zu: %s", i, err.msg);
        } else {
            ck_assert_msg(rv != FL_OK &&
                              strncmp(err.msg, cases[i].message, strlen(cases[i].message)) == 0,
                          "%zu: %s", i, err.msg);
        }
    }
}

TEST(a_folder_and_an_empty_name_are_no_programs)
{
    char found[64];
    struct fl_err err = {0};

    ck_assert_int_eq(fl_program_find("", found, sizeof(found), &err), FL_ENOENT);
    ck_assert_str_eq(err.msg, "expected the name of a program, found an empty one");
    ck_assert_int_eq(fl_program_find("/tmp", found, sizeof(found), &err), FL_EPERM);
    ck_assert_str_eq(err.msg, "cannot run '/tmp': Is a directory");
    /* One of that name in PATH is passed over. */
    ck_assert_int_eq(setenv("PATH", "/:/usr/bin", 1), 0);
    ck_assert_int_eq(fl_program_find("tmp", found, sizeof(found), &err), FL_ENOENT);
    ck_assert_int_eq(fl_program_find("env", found, sizeof(found), &err), FL_OK);
    ck_assert_str_eq(found, "/usr/bin/env");
}
