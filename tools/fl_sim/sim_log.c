/* The log of a trial's server, in the state that is kept of the trial. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/fl_sim/run.h"

#define LINE_MAX_SIZE 2048

/* No wall-clock time: it has no relation to simulated time. */
static void sim_log_write_line(void *ctx, enum fl_log_level level, const char *component,
                               const char *text)
{
    const struct trial_log *log = ctx;
    char line[LINE_MAX_SIZE];
    int n = snprintf(line, sizeof(line), "%-7s %s: %s\n", fl_log_names[level], component, text);

    if (n > 0 && write(log->fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1) < 0)
    {
        /* Write errors are ignored: the log is for debugging, and a full disk is reported for the
           results. */
        return;
    }
}

int trial_log_open(const char *state_dir, struct trial_log *ret, struct fl_err *err)
{
    char path[4200];

    (void)snprintf(path, sizeof(path), "%s/server.log", state_dir);
    ret->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0640);
    if (ret->fd < 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot write '%s': %s", path,
                          fl_strerror(fl_err_from_errno(errno)));
    }
    ret->log = (struct fl_log){.level = FL_LOG_DEBUG, .sink = sim_log_write_line, .ctx = ret};
    return FL_OK;
}

void trial_log_close(struct trial_log *log)
{
    if (log->fd >= 0) {
        (void)close(log->fd);
    }
    log->fd = -1;
}
