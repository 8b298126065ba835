/*
 * The suites of a program: its rows come from constructors, whose order is the compiler's, and are
 * kept by file and line.
 *
 * A process for each test costs 15 ms, far more than most tests, and several times that under
 * sanitizers. So the tests of a program run one after the other in one process, but for those that
 * end theirs and those of a file with TESTS_APART(). When one fails there, or the process crashes
 * or hangs, all run again, each in a process of its own: this names the one that crashed, and shows
 * a failure that comes from what an earlier test left behind. CK_FORK=yes: each in its own at once.
 * CK_FORK=no: all in the process that was started, for a debugger.
 *
 * Check writes the place of every assertion that holds to a file, which its parent reads in turn.
 * Assertions in loops spend most of a test's time on it, under AddressSanitizer nearly all. So
 * each place is written once in a test (-Wl,--wrap=_mark_point, configure.ac): of a test that a
 * signal ends, Check names the last place that was new. A failed assertion is always named.
 */
#include "tests/lib/suites.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What all tests of one process may take in seconds: far more than any, so that only a hang does.
 */
#define SHARED_LIMIT 1800

/* Which tests a run has. */
enum pass { PASS_ALL, PASS_SHARED, PASS_APART };

struct outcome {
    int n_run;
    int n_failed;
};

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

/* Does the row of a file whose first row is `first` run in `pass`? */
static bool is_in_pass(const struct suites_row *row, const struct suites_row *first, enum pass pass)
{
    bool is_apart = first->apart || row->signal != 0 || row->status != 0;

    return pass == PASS_ALL || is_apart == (pass == PASS_APART);
}

static void add_test(TCase *tc, const struct suites_row *row, const struct suites_row *first,
                     enum pass pass)
{
    if (is_in_pass(row, first, pass)) {
        _tcase_add_test(tc, row->test, row->signal, row->status, row->from, row->to());
    }
}

/* The case that begins with `head`; its own tests come after it. `first` is the file's first row.
 */
static TCase *add_case(Suite *suite, const struct suites_row *head, const struct suites_row *first,
                       enum pass pass)
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
            add_test(tc, row, first, pass);
        }
    }
    suite_add_tcase(suite, tc);
    return tc;
}

/* The suite of the file whose first row it is. Returns the first row of the next file. */
static struct suites_row *add_suite(SRunner *runner, struct suites_row *first, enum pass pass)
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
        if (row->apart) {
            continue;
        }
        if (row->test == NULL) {
            tc = add_case(suite, row, first, pass);
            continue;
        }
        if (tc == NULL) {
            tc = add_case(suite, &all, first, pass);
        }
        add_test(tc, row, first, pass);
    }
    srunner_add_suite(runner, suite);
    return row;
}

static bool has_tests(const char *only, enum pass pass)
{
    const struct suites_row *first = rows;
    const struct suites_row *row;

    for (row = rows; row != NULL; row = row->next) {
        first = is_of_suite(row, first) ? first : row;
        if (row->test != NULL && (only == NULL || is_of_file(only, row->file)) &&
            is_in_pass(row, first, pass))
        {
            return true;
        }
    }
    return false;
}

/* The tests of `pass`, of the file `only` or, with NULL, of all, in processes as `how` says. */
static struct outcome run_pass(const char *only, enum pass pass, enum fork_status how)
{
    SRunner *runner = srunner_create(NULL);
    struct suites_row *row = rows;
    struct outcome outcome;

    while (row != NULL) {
        row =
            only == NULL || is_of_file(only, row->file) ? add_suite(runner, row, pass) : row->next;
    }
    srunner_set_fork_status(runner, how);
    srunner_run_all(runner, CK_ENV);
    outcome = (struct outcome){srunner_ntests_run(runner), srunner_ntests_failed(runner)};
    srunner_free(runner);
    return outcome;
}

/* The shared tests in one process. False: not all passed. */
static bool run_shared(const char *only, struct outcome *outcome)
{
    struct outcome *found =
        mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;
    pid_t child;

    (void)fflush(NULL);
    if (found == MAP_FAILED || (child = fork()) < 0) {
        (void)fprintf(stderr, "no process for the tests: %s\n", strerror(errno));
        return false;
    }
    if (child == 0) {
        (void)alarm(SHARED_LIMIT);
        *found = run_pass(only, PASS_SHARED, CK_NOFORK);
        (void)alarm(0);
        exit(found->n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    *outcome = *found;
    (void)munmap(found, sizeof(*found));
    if (WIFSIGNALED(status)) {
        (void)printf("the process of all tests was ended by signal %d\n", WTERMSIG(status));
    } else if (WEXITSTATUS(status) != EXIT_SUCCESS) {
        (void)printf("the process of all tests exited with %d, %d of %d tests had failed\n",
                     WEXITSTATUS(status), outcome->n_failed, outcome->n_run);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

/* As most runs: returns the sum of both passes. */
static struct outcome run_together(const char *only)
{
    struct outcome shared = {0, 0};
    struct outcome apart = {0, 0};

    if (has_tests(only, PASS_SHARED) && !run_shared(only, &shared)) {
        (void)printf("the tests of one process did not all pass: again, each in its own\n");
        shared = run_pass(only, PASS_SHARED, CK_FORK);
        if (shared.n_failed == 0) {
            (void)printf("%s: each test passes alone, but not after the others in one process\n",
                         only != NULL ? only : "all");
            shared.n_failed = 1;
        }
    }
    if (has_tests(only, PASS_APART)) {
        apart = run_pass(only, PASS_APART, CK_FORK);
    }
    return (struct outcome){shared.n_run + apart.n_run, shared.n_failed + apart.n_failed};
}

int suites_run(const char *program)
{
    const char *name = base_name(program);
    const char *only = strncmp(name, "test_", 5) == 0 ? name : NULL;
    const char *wanted = getenv("CK_FORK");
    const struct suites_row *row = rows;
    struct outcome outcome;

    while (only != NULL && row != NULL && !is_of_file(only, row->file)) {
        row = row->next;
    }
    if (row == NULL) {
        (void)fprintf(stderr, "%s: no file of this program has a suite of that name\n", name);
        return EXIT_FAILURE;
    }
    /* A limit that only a hang can reach, unless the environment has another one. */
    (void)setenv("CK_DEFAULT_TIMEOUT", "600", 0);
    outcome = wanted != NULL ? run_pass(only, PASS_ALL, CK_FORK_GETENV) : run_together(only);
    if (outcome.n_run > 0) {
        (void)printf("%d%%: Checks: %d, Failures: %d, Errors: 0\n",
                     100 * (outcome.n_run - outcome.n_failed) / outcome.n_run, outcome.n_run,
                     outcome.n_failed);
    }
    return outcome.n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
