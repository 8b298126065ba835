#include <unistd.h>

#include "server/daemon/exit_codes.h"
#include "server/daemon/server.h"

void fl_serverd_no_memory(const struct fl_serverd *srv, const char *what)
{
    fl_log(srv->log, FL_LOG_ERROR, "server",
           "out of memory for %s: ending here, all that was promised is on disk and the next start "
           "goes on from it",
           what);
    _exit(FL_EXIT_FAILURE);
}
