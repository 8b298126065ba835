#ifndef FL_NET_UV_MEMORY_H
#define FL_NET_UV_MEMORY_H

/*
 * Memory of libuv. A failed malloc() or calloc() makes libuv return UV_ENOMEM, but a failed
 * realloc() of its table of watchers makes it call abort(). So a reserve is kept back for
 * realloc(): it is freed when memory runs out, and allocated again as soon as there is memory.
 *
 * Threading: init once, before any other function of this room; the callbacks run on the thread
 * that allocates, inside libuv, and must not call libuv.
 */

#include <stddef.h>

#include "libfl/base/err.h"

/* Enough for the table of watchers of more than 65 536 descriptors. */
#define FL_UV_MEMORY_RESERVE ((size_t)1 << 20)

struct fl_uv_memory_cbs {
    /* The reserve was freed, and the allocation of libuv succeeded. */
    void (*reserve_used)(void *ctx, size_t bytes);
    /*
     * The reserve did not suffice: the callback must end the process, because libuv would abort()
     * without a message.
     */
    void (*exhausted)(void *ctx, size_t bytes);
};

/* Borrows `cbs` and `ctx` for the life of the process. FL_ENOMEM. */
FL_MUST_CHECK int fl_uv_memory_init(const struct fl_uv_memory_cbs *cbs, void *ctx);

#endif
