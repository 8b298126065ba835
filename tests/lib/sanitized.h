#ifndef FL_TESTS_SANITIZED_H
#define FL_TESTS_SANITIZED_H

/*
 * Under AddressSanitizer a test takes about five times as long. Where hundreds of cases run the
 * same code and differ only in a place, plain deploy/test.sh runs all of them without it, and each
 * n-th with it; deploy/test.sh --all and `make check` run all of them in both builds.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool sanitized_short(void)
{
#ifdef __SANITIZE_ADDRESS__
    const char *slow = getenv("FL_SLOW_TESTS");

    return slow != NULL && strcmp(slow, "no") == 0;
#else
    return false;
#endif
}

/* `n` where each n-th case is enough, else 1. */
static inline size_t sanitized_stride(size_t n)
{
    return sanitized_short() ? n : 1;
}

#endif
