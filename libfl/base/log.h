#ifndef FL_BASE_LOG_H
#define FL_BASE_LOG_H

/*
 * Log lines: one line an event, lower-case start, no full stop, key=value
 * fields after the text. A line may have a note: an event, and figures that its text says in words,
 * for outputs that have members (log_out.h).
 *
 * Ownership: a struct fl_log is passed in, never global. Libraries return errors and only trace;
 * the daemons log. Threading: fl_log() may be called from any thread when the sink may (log_out.h:
 * output of a daemon); the level may be set meanwhile. Security: text that a peer supplied goes
 * through fl_log_quote() first. Model data, keys and tokens are never logged.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "libfl/base/err.h"
#include "libfl/base/log_events.h"
#include "libfl/base/log_gate.h"

enum fl_log_level { FL_LOG_ERROR, FL_LOG_WARNING, FL_LOG_NOTICE, FL_LOG_INFO, FL_LOG_DEBUG };

typedef void (*fl_log_sink_cb)(void *ctx, enum fl_log_level level, const char *component,
                               const char *text);

/* A figure of a line; `name` is a literal in [a-z_]. */
struct fl_log_field {
    const char *name;
    const char *text; /* NULL: `whole` */
    uint64_t whole;
};

#define FL_LOG_WHOLE(name_, value)        \
    {                                     \
        .name = (name_), .whole = (value) \
    }
#define FL_LOG_WORD(name_, value)        \
    {                                    \
        .name = (name_), .text = (value) \
    }

struct fl_log_note {
    enum fl_log_event event;
    const struct fl_log_field *fields;
    size_t n;
};

/* A note for the time of a call: FL_LOG_NOTE(PAUSED, FL_LOG_WHOLE("round", round)). */
#define FL_LOG_NOTE(event_, ...)                                                           \
    (&(const struct fl_log_note){.event = FL_LOG_EVENT_##event_,                           \
                                 .fields = (const struct fl_log_field[]){__VA_ARGS__},     \
                                 .n = sizeof((const struct fl_log_field[]){__VA_ARGS__}) / \
                                      sizeof(struct fl_log_field)})

/* As fl_log_sink_cb, of a line with a note. */
typedef void (*fl_log_note_cb)(void *ctx, enum fl_log_level level, const char *component,
                               const char *text, const struct fl_log_note *note);

/* State of the rate limit of fl_log_peer(); initialize with FL_LOG_LIMIT_INIT. */
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
    fl_log_note_cb note; /* NULL: `sink` gets lines with a note too */
    void *ctx;
    struct fl_log_limit *limit; /* Rate limit of lines that peers can cause; NULL: none. */
};

/* `log` may be NULL: nothing is written. */
FL_PRINTF(4, 5)
void fl_log(const struct fl_log *log, enum fl_log_level level, const char *component,
            const char *fmt, ...);

/*
 * A line that `peer` (an address or a name) can cause: rate limited for each `fmt` (a literal),
 * with a count of the suppressed lines; see log_gate.h.
 */
FL_PRINTF(5, 6)
void fl_log_peer(const struct fl_log *log, enum fl_log_level level, const char *component,
                 const char *peer, const char *fmt, ...);
/* The same for one `fmt` with several reasons: `reason` is a literal too. */
FL_PRINTF(6, 7)
void fl_log_reason(const struct fl_log *log, enum fl_log_level level, const char *component,
                   const char *peer, const char *reason, const char *fmt, ...);
/* A line with a note; `peer` as for fl_log_peer(), NULL: nobody else can cause it. */
FL_PRINTF(6, 7)
void fl_log_noted(const struct fl_log *log, enum fl_log_level level, const char *component,
                  const char *peer, const struct fl_log_note *note, const char *fmt, ...);
/* Log the number of suppressed lines of ended spans; `all`: of current spans too. */
void fl_log_left_out(const struct fl_log *log, bool all);

/* All lines that the rate limit left out so far. */
uint64_t fl_log_n_left_out(const struct fl_log *log);

/* Names of the levels, NULL terminated. */
extern const char *const fl_log_names[];

/*
 * Write `text` in single quotes to `out` with everything but printable ASCII
 * escaped, truncated with "..." when it does not fit. Returns `out`.
 */
const char *fl_log_quote(char *out, size_t size, const char *text, size_t len);

#endif
