/* libuv gets memory that was kept back for it, and a process without any ends with a line. */

#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#include "libfl/net/loop.h"
#include "libfl/net/uv_memory.h"
#include "tests/lib/suites.h"

#define EXIT_OF_TEST 77

void *__real_realloc(void *ptr, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

static unsigned n_fail, n_used; /* the next so many realloc() fail; calls of reserve_used */

void *__wrap_realloc(void *ptr, size_t size)
{
    if (n_fail > 0) {
        n_fail--;
        return NULL;
    }
    return __real_realloc(ptr, size);
}

static void on_reserve_used(void *ctx, size_t bytes)
{
    ck_assert_ptr_eq(ctx, &n_used);
    ck_assert_uint_gt(bytes, 0);
    n_used++;
}

static void on_exhausted(void *ctx, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    _exit(EXIT_OF_TEST);
}

static void setup(void)
{
    static const struct fl_uv_memory_cbs cbs = {.reserve_used = on_reserve_used,
                                                .exhausted = on_exhausted};

    n_fail = n_used = 0;
    ck_assert_int_eq(fl_uv_memory_init(&cbs, &n_used), FL_OK);
}

TEST_CASE("all", setup, NULL);

/* A loop's first watcher makes libuv allocate its table with realloc(). */
TEST(a_failed_realloc_takes_the_reserve_each_time_it_is_there)
{
    unsigned i;

    for (i = 1; i <= 3; i++) {
        struct fl_loop *loop = NULL;

        n_fail = 1;
        ck_assert_int_eq(fl_loop_create(&loop, NULL), FL_OK);
        ck_assert_uint_eq(n_fail, 0);
        ck_assert_uint_eq(n_used, i);
        fl_loop_free(loop);
    }
}

TEST_ROW(without_any_memory_the_process_ends_by_itself_and_not_by_an_abort, 0, EXIT_OF_TEST, 0, 1)
{
    struct fl_loop *loop = NULL;

    n_fail = 1000;
    ck_assert_int_ne(fl_loop_create(&loop, NULL), FL_OK);
    ck_abort_msg("libuv went on without memory");
}
