#include "tests/lib/failmalloc.h"

#include <stdint.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

static struct {
    bool on;
    bool paused;
    bool and_all_later;
    size_t fail_at;
    size_t count;
} state;

static bool fails(void)
{
    size_t i;

    if (!state.on || state.paused) {
        return false;
    }
    i = state.count++;
    return i == state.fail_at || (state.and_all_later && i > state.fail_at);
}

void failmalloc_start(size_t fail_at, bool and_all_later)
{
    state.on = true;
    state.paused = false;
    state.and_all_later = and_all_later;
    state.fail_at = fail_at;
    state.count = 0;
}

size_t failmalloc_stop(void)
{
    state.on = false;
    return state.count;
}

void failmalloc_pause(bool paused)
{
    state.paused = paused;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    return fails() ? NULL : __real_realloc(ptr, size);
}
