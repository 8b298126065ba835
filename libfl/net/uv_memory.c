#include "libfl/net/uv_memory.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <uv.h>

/* One per process, as libuv's allocator is. */
static struct {
    const struct fl_uv_memory_cbs *cbs;
    void *ctx;
    _Atomic(void *) reserve;
} state;

/* The reserve was used before: allocate it again before libuv gets more memory. */
static void refill_reserve(void)
{
    void *none = NULL;
    void *fresh;

    if (atomic_load(&state.reserve) != NULL) {
        return;
    }
    fresh = malloc(FL_UV_MEMORY_RESERVE);
    if (fresh != NULL && !atomic_compare_exchange_strong(&state.reserve, &none, fresh)) {
        free(fresh); /* Another thread was faster. */
    }
}

static void *uv_reallocate(void *old, size_t size)
{
    void *memory;

    refill_reserve();
    memory = realloc(old, size);
    if (memory != NULL || size == 0) {
        return memory;
    }
    free(atomic_exchange(&state.reserve, NULL));
    memory = realloc(old, size);
    if (memory == NULL) {
        state.cbs->exhausted(state.ctx, size);
    } else {
        state.cbs->reserve_used(state.ctx, size);
    }
    return memory;
}

int fl_uv_memory_init(const struct fl_uv_memory_cbs *cbs, void *ctx)
{
    state.cbs = cbs;
    state.ctx = ctx;
    refill_reserve();
    if (atomic_load(&state.reserve) == NULL) {
        return FL_ENOMEM;
    }
    return uv_replace_allocator(malloc, uv_reallocate, calloc, free) == 0 ? FL_OK : FL_EINVAL;
}
