#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/args.h"
#include "tests/lib/suites.h"

enum { COUNT = 1, VERBOSE };

static const char *name;
static bool yes;
static const struct fl_arg rows[] = {
    {.name = "count", .letter = 'c', .value = "N", .id = COUNT, .help = "how many there are"},
    {.name = "verbose", .letter = 'v', .id = VERBOSE, .help = "more"},
    {.name = "name", .value = "NAME", .text = &name, .help = "of whom"},
    {.name = "yes", .letter = 'y', .flag = &yes, .help = "do not ask"},
    {.name = NULL}};

#define WORDS_MAX 8

static char *words[WORDS_MAX + 2];
static char copies[WORDS_MAX + 2][64];
static struct fl_args args;
static char said[1024];

static void begin(const char *const *list)
{
    static char program[] = "prog";
    size_t n = 0;

    name = NULL;
    yes = false;
    words[n++] = program;
    while (list[n - 1] != NULL && n <= WORDS_MAX) {
        (void)snprintf(copies[n], sizeof(copies[n]), "%s", list[n - 1]);
        words[n] = copies[n];
        n++;
    }
    words[n] = NULL;
    args = (struct fl_args){.program = "prog x", .rows = rows, .argc = (int)n, .argv = words};
}

/* "c=3 v + a b": ids with values, flags, then the operands. */
static const char *all_of(const char *const *list)
{
    static char out[256];
    int id, i;

    begin(list);
    out[0] = '\0';
    while ((id = fl_args_next(&args)) > 0) {
        size_t used = strlen(out);

        (void)snprintf(out + used, sizeof(out) - used, "%c%s%s ", id == COUNT ? 'c' : 'v',
                       args.value != NULL ? "=" : "", args.value != NULL ? args.value : "");
    }
    ck_assert_int_eq(id, FL_ARGS_END);
    (void)snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s%s%s+", yes ? "yes " : "",
                   name != NULL ? name : "", name != NULL ? " " : "");
    for (i = 1; i <= args.n_operands; i++) {
        (void)snprintf(out + strlen(out), sizeof(out) - strlen(out), " %s", words[i]);
    }
    return out;
}

static const struct {
    const char *words[WORDS_MAX];
    const char *all;
} good[] = {
    {{NULL}, "+"},
    {{"a", "b", NULL}, "+ a b"},
    {{"--count", "3", "a", NULL}, "c=3 + a"},
    {{"--count=3", "a", NULL}, "c=3 + a"},
    {{"--count=", NULL}, "c= +"},
    {{"--count", "--verbose", NULL}, "c=--verbose +"},
    {{"-c", "3", NULL}, "c=3 +"},
    {{"-c3", NULL}, "c=3 +"},
    {{"-vyc3", "-v", NULL}, "v c=3 v yes +"},
    {{"-vc", "3", "a", NULL}, "v c=3 + a"},
    {{"a", "--verbose", "b", "-y", "c", NULL}, "v yes + a b c"},
    {{"--name=x=y", "-", NULL}, "x=y + -"},
    {{"-v", "--", "-v", "--", "a", NULL}, "v + -v -- a"},
    {{"-c", "1", "-c", "2", NULL}, "c=1 c=2 +"},
};

TEST_EACH(options_and_operands_are_told_apart, ARRAY_LEN(good))
{
    ck_assert_str_eq(all_of(good[_i].words), good[_i].all);
}

static const struct {
    const char *words[WORDS_MAX];
    const char *says;
} bad[] = {
    {{"--cuont", "3", NULL}, "unknown option '--cuont', did you mean '--count'?"},
    {{"--verb", NULL}, "unknown option '--verb', did you mean '--verbose'?"},
    {{"--zzzzzz=3", NULL}, "unknown option '--zzzzzz'"},
    {{"a", "-x", NULL}, "unknown option '-x'"},
    {{"-yx", NULL}, "unknown option '-x'"},
    {{"---", NULL}, "unknown option '---'"},
    {{"--=3", NULL}, "unknown option '--'"},
    {{"--count", NULL}, "--count needs a value (N)"},
    {{"-vc", NULL}, "--count needs a value (N)"},
    {{"--yes=no", NULL}, "--yes takes no value"},
    {{"--name", "a", "--name", "b", NULL}, "--name is given twice"},
    {{"--a\nb", NULL}, "unknown option '--a?b'"},
};

/* What goes to stderr meanwhile is in `said`. */
static int hear(int (*next)(struct fl_args *))
{
    char path[] = "/tmp/fl-test-args-XXXXXX";
    int fd = mkstemp(path);
    int old = dup(STDERR_FILENO);
    int id;
    ssize_t n;

    ck_assert(fd >= 0 && old >= 0 && unlink(path) == 0);
    ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
    while ((id = next(&args)) > 0) {
    }
    (void)fflush(stderr);
    ck_assert_int_ge(dup2(old, STDERR_FILENO), 0);
    n = pread(fd, said, sizeof(said) - 1, 0);
    ck_assert_int_ge(n, 0);
    said[n] = '\0';
    (void)close(fd);
    (void)close(old);
    return id;
}

TEST_EACH(wrong_usage_is_said_with_what_was_meant, ARRAY_LEN(bad))
{
    char want[256];

    begin(bad[_i].words);
    ck_assert_int_eq(hear(fl_args_next), FL_ARGS_WRONG);
    (void)snprintf(want, sizeof(want), "prog x: %s\ntry prog x --help\n", bad[_i].says);
    ck_assert_str_eq(said, want);
}

TEST(help_is_made_of_the_rows)
{
    static const struct fl_arg many[] = {
        {.name = "short", .letter = 's', .help = "one"},
        {.name = "of-file",
         .value = "FILE",
         .help = "two lines of words, which are too many for one "
                 "line of a terminal and go on where they began"},
        {.name = "with-a-name-that-is-long", .value = "THING", .help = "at once"},
        {.name = NULL}};
    char text[512];
    FILE *out = fmemopen(text, sizeof(text), "w");

    ck_assert_ptr_nonnull(out);
    fl_args_help(many, out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(
        text, "  -s, --short         one\n"
              "      --of-file FILE  two lines of words, which are too many for one line of a "
              "terminal and go\n"
              "                      on where they began\n"
              "      --with-a-name-that-is-long THING  at once\n");
}
