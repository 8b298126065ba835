/* Out of memory for an operation that cannot be refused: the server ends. */

#include "server/network/no_memory.h"

#include <stdlib.h>
#include <unistd.h>

#include "libfl/net/uv_memory.h"

void fl_serverd_no_memory(const struct fl_log *log, const char *what)
{
    fl_log(log, FL_LOG_ERROR, "server",
           "out of memory for %s: exiting, all acknowledged data is on disk and the next start "
           "continues from it",
           what);
    _exit(EXIT_FAILURE);
}

static void memory_on_reserve_used(void *ctx, size_t bytes)
{
    fl_log(ctx, FL_LOG_WARNING, "server",
           "out of memory for %zu bytes of the event loop: used the reserved memory; free some "
           "memory or raise MemoryMax=, or the server exits the next time",
           bytes);
}

static void memory_on_exhausted(void *ctx, size_t bytes)
{
    (void)bytes;
    fl_serverd_no_memory(ctx, "the event loop");
}

int fl_serverd_keep_back_memory(struct fl_log *log)
{
    static const struct fl_uv_memory_cbs cbs = {.reserve_used = memory_on_reserve_used,
                                                .exhausted = memory_on_exhausted};

    return fl_uv_memory_init(&cbs, log);
}
