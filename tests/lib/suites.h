#ifndef FL_LIB_SUITES_H
#define FL_LIB_SUITES_H

/*
 * A test is its definition: TEST(name) { … } is run without being listed anywhere. The tests of a
 * file are a suite, named after it (test_x.c: x), in the order of the file.
 *
 * The unit tests of one room are one program, tests/server/core/server_core. suites_main.c has its
 * main(): run under the name of a file (a link, as make check does) it runs the suite of this file,
 * under its own name all.
 *
 * The tests of a file run one after the other in one process, which a test leaves as it found it.
 * Where they cannot, the file says TESTS_APART(why), and each has a process of its own, as has
 * always one that ends its process. See suites.c.
 */

#include <check.h>
#include <stdbool.h>

/* For TEST_EACH(). */
#define ARRAY_LEN(list) (sizeof(list) / sizeof((list)[0]))

/*
 * A test of a file, or with `test` NULL the case that the tests below it belong to, or with
 * `apart`, before them all, that they need processes of their own.
 */
struct suites_row {
    const TTest *test;
    const char *file;
    int line;
    int signal;
    int status;
    int from;
    int (*to)(void);
    const char *name;
    const char *again;
    SFun setup, teardown;
    bool once;
    bool apart;
    char suite[64]; /* of the first row of a file: the name of its suite, which Check borrows */
    struct suites_row *next;
};

/* Keeps a reference to `row`, for the life of the program. */
void suites_add(struct suites_row *row);
/* Run the suite of the file that `program` is named after, or all. Returns the status of main(). */
int suites_run(const char *program);

/*
 * Once for each _i from `from_` to `to_` - 1. Each is to end by the signal `signal_`, or with the
 * status `status_` of a process.
 */
#define TEST_ROW(name_, signal_, status_, from_, to_)                            \
    static void name_##_fn(int _i);                                              \
    static const TTest name_##_ttest = {#name_, name_##_fn, __FILE__, __LINE__}; \
    static int name_##_to(void)                                                  \
    {                                                                            \
        return (int)(to_);                                                       \
    }                                                                            \
    __attribute__((constructor)) static void name_##_is_known(void)              \
    {                                                                            \
        static struct suites_row row = {.test = &name_##_ttest,                  \
                                        .file = __FILE__,                        \
                                        .line = __LINE__,                        \
                                        .signal = signal_,                       \
                                        .status = status_,                       \
                                        .from = from_,                           \
                                        .to = name_##_to};                       \
                                                                                 \
        suites_add(&row);                                                        \
    }                                                                            \
    static void name_##_fn(int _i CK_ATTRIBUTE_UNUSED)
#define TEST(name_)              TEST_ROW(name_, 0, 0, 0, 1)
#define TEST_EACH(name_, n_)     TEST_ROW(name_, 0, 0, 0, n_)
#define TEST_IF(name_, whether_) TEST_ROW(name_, 0, 0, 0, (whether_) ? 1 : 0)

/* Once in a file. `why_` is for readers. */
#define TESTS_APART(why_)                                                               \
    __attribute__((constructor)) static void tests_are_apart(void)                      \
    {                                                                                   \
        static struct suites_row row = {.file = __FILE__, .name = why_, .apart = true}; \
                                                                                        \
        suites_add(&row);                                                               \
    }                                                                                   \
    _Static_assert(sizeof(why_) > 1, "a reason")

/*
 * The tests from here to the next TEST_CASE() are the case `name_` (without one: "all"), and
 * `setup_` and `teardown_`, which may be NULL, are called around each of them; with
 * TEST_CASE_ONCE() around all of them, in the process that starts them. A TEST_CASE_AGAIN() has
 * also all tests of the case `again_` of this file.
 */
#define TEST_CASE(...)                          TEST_CASE_AT(__LINE__, false, NULL, __VA_ARGS__)
#define TEST_CASE_ONCE(...)                     TEST_CASE_AT(__LINE__, true, NULL, __VA_ARGS__)
#define TEST_CASE_AGAIN(again_, ...)            TEST_CASE_AT(__LINE__, false, again_, __VA_ARGS__)
#define TEST_CASE_AT(line_, once_, again_, ...) TEST_CASE_OF(line_, once_, again_, __VA_ARGS__)
#define TEST_CASE_OF(line_, once_, again_, name_, setup_, teardown_)       \
    __attribute__((constructor)) static void case_##line_##_is_known(void) \
    {                                                                      \
        static struct suites_row row = {.file = __FILE__,                  \
                                        .line = line_,                     \
                                        .name = name_,                     \
                                        .again = again_,                   \
                                        .setup = setup_,                   \
                                        .teardown = teardown_,             \
                                        .once = once_};                    \
                                                                           \
        suites_add(&row);                                                  \
    }                                                                      \
    _Static_assert(line_ > 0, "a line of a file")

#endif
