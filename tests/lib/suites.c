/*
 * The suites of a program: its rows come from constructors, whose order is the compiler's, and are
 * kept by file and line.
 *
 * Check writes the place of every assertion that holds to a file, which its parent reads in turn.
 * Assertions in loops spend most of a test's time on it, under AddressSanitizer nearly all. So
 * each place is written once in a test (-Wl,--wrap=_mark_point, configure.ac): of a test that a
 * signal ends, Check names the last place that was new. A failed assertion is always named.
 */
#include "tests/lib/suites.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct suites_row *rows;

/* Check's own, and what the linker takes instead of it. */
void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line)
{
    /* Of places whose lines differ by a multiple of the length, the last is remembered. */
    static _Thread_local struct {
        const char *file;
        int line;
    } written[256];
    size_t i = (size_t)line % ARRAY_LEN(written);

    if (written[i].file != file || written[i].line != line) {
        written[i].file = file;
        written[i].line = line;
        __real__mark_point(file, line);
    }
}

static bool row_is_before(const struct suites_row *a, const struct suites_row *b)
{
    int order = strcmp(a->file, b->file);

    return order != 0 ? order < 0 : a->line < b->line;
}

void suites_add(struct suites_row *row)
{
    struct suites_row **at = &rows;

    while (*at != NULL && row_is_before(*at, row)) {
        at = &(*at)->next;
    }
    row->next = *at;
    *at = row;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Is `name` that of the file, without its ".c"? */
static bool is_of_file(const char *name, const char *file)
{
    const char *base = base_name(file);
    size_t len = strlen(name);

    return strncmp(base, name, len) == 0 && strcmp(base + len, ".c") == 0;
}

static bool is_of_suite(const struct suites_row *row, const struct suites_row *first)
{
    return row != NULL && strcmp(row->file, first->file) == 0;
}

static void add_test(TCase *tc, const struct suites_row *row)
{
    _tcase_add_test(tc, row->test, row->signal, row->status, row->from, row->to());
}

/* The case that begins with `head`; its own tests come after it. `first` is the file's first row.
 */
static TCase *add_case(Suite *suite, const struct suites_row *head, const struct suites_row *first)
{
    const struct suites_row *row;
    TCase *tc = tcase_create(head->name);
    bool is_in = false;

    if (head->once) {
        tcase_add_unchecked_fixture(tc, head->setup, head->teardown);
    } else {
        tcase_add_checked_fixture(tc, head->setup, head->teardown);
    }
    for (row = first; head->again != NULL && is_of_suite(row, first); row = row->next) {
        if (row->test == NULL) {
            is_in = strcmp(row->name, head->again) == 0;
        } else if (is_in) {
            add_test(tc, row);
        }
    }
    suite_add_tcase(suite, tc);
    return tc;
}

/* The suite of the file whose first row it is. Returns the first row of the next file. */
static struct suites_row *add_suite(SRunner *runner, struct suites_row *first)
{
    static const struct suites_row all = {.name = "all"};
    const char *base = base_name(first->file);
    const char *name = strncmp(base, "test_", 5) == 0 ? base + 5 : base;
    struct suites_row *row;
    Suite *suite;
    TCase *tc = NULL;

    (void)snprintf(first->suite, sizeof(first->suite), "%.*s", (int)strcspn(name, "."), name);
    suite = suite_create(first->suite);
    for (row = first; is_of_suite(row, first); row = row->next) {
        if (row->test == NULL) {
            tc = add_case(suite, row, first);
            continue;
        }
        if (tc == NULL) {
            tc = add_case(suite, &all, first);
        }
        add_test(tc, row);
    }
    srunner_add_suite(runner, suite);
    return row;
}

int suites_run(const char *program)
{
    const char *name = base_name(program);
    bool one = strncmp(name, "test_", 5) == 0;
    struct suites_row *row = rows;
    SRunner *runner;
    size_t n_run = 0;
    int failed;

    /* A limit that only a hang can reach, unless the environment has another one. */
    (void)setenv("CK_DEFAULT_TIMEOUT", "600", 0);
    runner = srunner_create(NULL);
    while (row != NULL) {
        if (!one || is_of_file(name, row->file)) {
            row = add_suite(runner, row);
            n_run++;
        } else {
            row = row->next;
        }
    }
    if (n_run == 0) {
        (void)fprintf(stderr, "%s: no file of this program has a suite of that name\n", name);
        srunner_free(runner);
        return EXIT_FAILURE;
    }
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
