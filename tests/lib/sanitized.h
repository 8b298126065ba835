#ifndef FL_TESTS_SANITIZED_H
#define FL_TESTS_SANITIZED_H

/*
 * Where hundreds of cases run the same code and differ only in a place, deploy/test.sh --all and
 * `make check` run all of them. Plain deploy/test.sh (FL_SLOW_TESTS=no) runs each n-th of those
 * that take minutes; under AddressSanitizer, where a test takes about five times as long, it does
 * so with more of them and a larger n.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool everyday_short(void)
{
    const char *slow = getenv("FL_SLOW_TESTS");

    return slow != NULL && strcmp(slow, "no") == 0;
}

static inline bool sanitized_short(void)
{
#ifdef __SANITIZE_ADDRESS__
    return everyday_short();
#else
    return false;
#endif
}

/* `plain` or, under AddressSanitizer, `sanitized` where each of so many cases is enough, else 1. */
static inline size_t everyday_stride(size_t plain, size_t sanitized)
{
    return sanitized_short() ? sanitized : everyday_short() ? plain : 1;
}

#endif
