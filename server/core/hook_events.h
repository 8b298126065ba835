#ifndef FL_SERVER_CORE_HOOK_EVENTS_H
#define FL_SERVER_CORE_HOOK_EVENTS_H

/*
 * Hooks: programs of an operator that run after an event. Here is which events have one, and when
 * a further event of a hook that is still running waits or is left out. server/daemon/hook_runner.h
 * runs them. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/base/err.h"
#include "libfl/base/log_events.h"

/*
 * X(id, name, when, variables): the name is the key in the section `hooks`, and the event of the
 * log; `variables`, separated by blanks, are those of its program beside the ones of all hooks. Of
 * the last two docs/operating.md is made (fl-serverd --hooks).
 */
#define FL_HOOKS(X)                                                                              \
    X(ROUND_COMMITTED, round_committed, "a round is on disk",                                    \
      "FL_ROUND FL_ATTEMPT FL_SELECTED FL_RESPONDERS FL_ACCURACY FL_LOSS FL_UPLINK_BYTES")       \
    X(PAUSED, paused,                                                                            \
      "an operator paused the federation, or a round diverged; also at the start of a paused "   \
      "server",                                                                                  \
      "FL_ROUND FL_ATTEMPT FL_REASON")                                                           \
    X(FINISHED, finished, "all rounds are done", "FL_ROUND")                                     \
    X(CLIENT_QUARANTINED, client_quarantined, "a client is not selected any more",               \
      "FL_ROUND FL_ATTEMPT FL_CLIENT FL_REASON")                                                 \
    X(CERTIFICATE_EXPIRING, certificate_expiring,                                                \
      "once a day, in the last quarter of the validity of the server's certificate, 30 days at " \
      "most",                                                                                    \
      "FL_ENDS")

#define FL__HOOK_ID(id, ...) FL_HOOK_##id,
enum fl_hook { FL_HOOKS(FL__HOOK_ID) FL_HOOK_N };
#undef FL__HOOK_ID

extern const char *const fl_hook_names[FL_HOOK_N];

/* Appends the table of hooks (Markdown). FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_hooks_reference(struct fl_buf *out);

/* FL_HOOK_N: the event has none. */
enum fl_hook fl_hook_of(enum fl_log_event event);

#define FL_HOOK_VARIABLES 8
#define FL_HOOK_TEXT      1024

/* An event, with the environment of its program that is its own. */
struct fl_hook_event {
    enum fl_hook hook;
    size_t n;
    char variables[FL_HOOK_VARIABLES][FL_HOOK_TEXT]; /* "NAME=value" */
};

/*
 * Add "NAME=value", cleaned; a text that is too long is cut. Nothing happens where the hook has no
 * such variable.
 */
FL_PRINTF(2, 3) void fl_hook_event_add(struct fl_hook_event *event, const char *fmt, ...);

/* Events of one hook that wait or run. */
#define FL_HOOK_QUEUE 16

/* Zero is the initial state. */
struct fl_hook_queue {
    unsigned n;        /* running and waiting */
    uint64_t left_out; /* since the last end of a run */
};

/* An event: true, it is to be run; false, it is left out. */
bool fl_hook_queue_add(struct fl_hook_queue *queue);
/* A run has ended. Returns the number of events left out since the last one. */
uint64_t fl_hook_queue_end(struct fl_hook_queue *queue);

#endif
