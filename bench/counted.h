#ifndef FL_BENCH_COUNTED_H
#define FL_BENCH_COUNTED_H

/*
 * The bytes that the code linked into a program has allocated, now and at most, for one file of a
 * program that is linked with -Wl,--wrap=malloc, calloc, realloc and free. One thread.
 */

#include <malloc.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

static size_t counted, counted_peak;

static void *counted_add(void *p)
{
    counted += malloc_usable_size(p);
    counted_peak = counted > counted_peak ? counted : counted_peak;
    return p;
}

void *__wrap_malloc(size_t size)
{
    return counted_add(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return counted_add(__real_calloc(n, size));
}

/* Both blocks exist while one is copied to the other. */
void *__wrap_realloc(void *p, size_t size)
{
    size_t before = malloc_usable_size(p);
    void *q = __real_realloc(p, size);

    if (q == p) {
        counted -= before;
        return counted_add(q);
    }
    if (q != NULL) {
        (void)counted_add(q);
        counted -= before;
    }
    return q;
}

void __wrap_free(void *p)
{
    counted -= malloc_usable_size(p);
    __real_free(p);
}

#endif
