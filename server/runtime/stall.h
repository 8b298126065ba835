#ifndef FL_SERVER_RUNTIME_STALL_H
#define FL_SERVER_RUNTIME_STALL_H

/*
 * A disk stall: one of the threads that wait for a disk (io, db, identity) has been in the same job
 * for long, or the one that aggregates (work) in the same read or write. Clients are not at fault,
 * so the coordinator's time is suspended meanwhile; operators see the stall in the log, in STATUS,
 * in `flctl why` and in the answer of a command; and after a while the watchdog is no longer fed
 * (docs/operating.md#a-disk-that-does-not-answer).
 *
 * Threading: fl_stall_find() any thread, once the daemon has started; a clock is its owner's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fl_auth;
struct fl_worker_thread;

/* At this age of a job the coordinator's time is suspended, */
#define FL_STALL_CLOCK_MS 2000
/* operators are warned, */
#define FL_STALL_REPORT_MS 10000
/*
 * and the service manager ends the process, after five periods of its watchdog when they are
 * shorter. A commit of a large model on a slow disk takes minutes.
 */
#define FL_STALL_WATCHDOG_MS      600000
#define FL_STALL_WATCHDOG_PERIODS 5

struct fl_stall {
    const char *thread; /* "io", "db", "work" or "identity" */
    uint64_t for_ms;    /* 0: all are idle */
};

/* The threads that wait for a disk; constant once the daemon has started. */
struct fl_stall_watch {
    const char *state_dir;
    struct fl_worker_thread *io, *db, *work;
    struct fl_auth *auth; /* NULL: no identity thread */
};

/* The oldest job of these threads. */
struct fl_stall fl_stall_find(const struct fl_stall_watch *watch);
/* What it begins with; the argument is the state folder. */
#define FL_STALL_TEXT "the disk of '%s' has not answered"
/* "the disk of '/var/lib/fl-serverd' has not answered for 35 s (thread io)". Returns `out`. */
const char *fl_stall_text(const struct fl_stall_watch *watch, struct fl_stall stall, char *out,
                          size_t size);

/* Time without the stalls; zero-initialized. */
struct fl_stall_clock {
    uint64_t last_ms;    /* the last time that was read */
    uint64_t stalled_ms; /* sum of all stalls so far */
    bool stopped;        /* at last_ms */
};

/* `now_ms`: fl_clock_ms(); `busy_ms`: age of the oldest running job. The result never decreases. */
uint64_t fl_stall_clock_read(struct fl_stall_clock *clock, uint64_t now_ms, uint64_t busy_ms);

#endif
