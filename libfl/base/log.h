#ifndef FL_BASE_LOG_H
#define FL_BASE_LOG_H

/*
 * Log lines: one line an event, lower-case start, no full stop, key=value
 * fields after the text.
 *
 * Ownership: a struct fl_log is passed in, never global. Library rooms return
 * errors and only trace; the daemons log.
 * Threading: fl_log() may be called from any thread when the sink may (log_out.h: where a daemon's
 * lines go); the level may be set meanwhile.
 * Security: text that a peer supplied goes through fl_log_quote() first. Model
 * data, keys and tokens are never logged.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "libfl/base/err.h"
#include "libfl/base/log_gate.h"

enum fl_log_level { FL_LOG_ERROR, FL_LOG_WARNING, FL_LOG_NOTICE, FL_LOG_INFO, FL_LOG_DEBUG };

typedef void (*fl_log_sink_cb)(void *ctx, enum fl_log_level level, const char *component,
                               const char *text);

/* What fl_log_peer() remembers; FL_LOG_LIMIT_INIT begins one. */
struct fl_log_limit {
    pthread_mutex_t lock;
    struct fl_log_gate gate;
};

#define FL_LOG_LIMIT_INIT                 \
    {                                     \
        .lock = PTHREAD_MUTEX_INITIALIZER \
    }

struct fl_log {
    atomic_int level; /* enum fl_log_level: lines above it are dropped. */
    fl_log_sink_cb sink;
    void *ctx;
    struct fl_log_limit *limit; /* Of lines that peers can cause; NULL: none. */
};

/* `log` may be NULL: nothing is written. */
FL_PRINTF(4, 5)
void fl_log(const struct fl_log *log, enum fl_log_level level, const char *component,
            const char *fmt, ...);

/*
 * A line that `peer` (an address or a name) can cause at will: only so many of each `fmt` (a
 * literal) are written, then how many more there were; see log_gate.h.
 */
FL_PRINTF(5, 6)
void fl_log_peer(const struct fl_log *log, enum fl_log_level level, const char *component,
                 const char *peer, const char *fmt, ...);
/* The same where one `fmt` serves several reasons: `reason` is a literal too. */
FL_PRINTF(6, 7)
void fl_log_reason(const struct fl_log *log, enum fl_log_level level, const char *component,
                   const char *peer, const char *reason, const char *fmt, ...);
/* Say what was left out in spans that are over, `all`: in those that are not, too. */
void fl_log_left_out(const struct fl_log *log, bool all);

/* The words for the levels; NULL behind the last. */
extern const char *const fl_log_names[];

/*
 * Write `text` in single quotes to `out` with everything but printable ASCII
 * escaped, cut with "..." when it does not fit. Returns `out`.
 */
const char *fl_log_quote(char *out, size_t size, const char *text, size_t len);

#endif
