/* What the server does when memory is missing for something that it cannot refuse. */

#include <unistd.h>

#include "libfl/net/uv_memory.h"
#include "server/daemon/serverd.h"
#include "server/daemon/serverd_exit.h"

FL_NORETURN static void end(const struct fl_log *log, const char *what)
{
    fl_log(log, FL_LOG_ERROR, "server",
           "out of memory for %s: ending here, all that was promised is on disk and the next start "
           "goes on from it",
           what);
    _exit(FL_EXIT_FAILURE);
}

void fl_serverd_no_memory(const struct fl_serverd *srv, const char *what)
{
    end(srv->log, what);
}

static void on_reserve_used(void *ctx, size_t bytes)
{
    fl_log(ctx, FL_LOG_WARNING, "server",
           "out of memory for %zu bytes of the event loop: used the memory kept back for it; free "
           "some memory or raise MemoryMax=, else the server ends the next time",
           bytes);
}

static void on_exhausted(void *ctx, size_t bytes)
{
    (void)bytes;
    end(ctx, "the event loop");
}

int fl_serverd_keep_back_memory(struct fl_log *log)
{
    static const struct fl_uv_memory_cbs cbs = {.reserve_used = on_reserve_used,
                                                .exhausted = on_exhausted};

    return fl_uv_memory_init(&cbs, log);
}
