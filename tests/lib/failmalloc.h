#ifndef FL_TESTS_FAILMALLOC_H
#define FL_TESTS_FAILMALLOC_H

/*
 * Allocations that fail on demand. A test program that is linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc counts all allocations of the objects
 * linked into it (not those of shared libraries) and lets one of them, or it and all later
 * ones, fail.
 */

#include <stdbool.h>
#include <stddef.h>

/* Start to count; the allocation number `fail_at` (from 0) fails. SIZE_MAX: none. */
void failmalloc_start(size_t fail_at, bool and_all_later);
/* Stop; returns how many allocations there were. */
size_t failmalloc_stop(void);
/* Allocations inside are neither counted nor do they fail. */
void failmalloc_pause(bool paused);

#endif
