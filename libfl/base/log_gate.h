#ifndef FL_BASE_LOG_GATE_H
#define FL_BASE_LOG_GATE_H

/*
 * A rate limit for log lines that peers can cause: a number of lines for each peer and reason in a
 * time span, a total number, and at the end of the span one line with the number of suppressed
 * lines. The table has a fixed size; peers that do not fit share one entry.
 *
 * Pure: time is an argument. Threading: the caller serializes calls (fl_log_peer() has a lock).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enough to diagnose a problem, for each peer and reason ... */
#define FL_LOG_GATE_SPAN_MS 10000
#define FL_LOG_GATE_LINES   20
/* ... and, with lines of 150 bytes, at most about 150 KB in a span for any number of peers. */
#define FL_LOG_GATE_ALL    1000
#define FL_LOG_GATE_PLACES 256
#define FL_LOG_GATE_SAMPLE 64

struct fl_log_gate_place {
    char peer[64];      /* without its port; "": free */
    const char *reason; /* compared as a pointer */
    uint64_t since_ms;
    unsigned lines;
    uint64_t left_out;
    char sample[FL_LOG_GATE_SAMPLE]; /* start of the first suppressed line */
};

/* All zero is the initial state. */
struct fl_log_gate {
    uint64_t since_ms; /* start of the span of the total */
    unsigned lines;
    uint64_t due_ms;   /* the next summary; 0: none */
    uint64_t left_out; /* all lines so far that were not written */
    /* The last entry is shared by peers that do not fit. */
    struct fl_log_gate_place places[FL_LOG_GATE_PLACES + 1];
};

/*
 * May this line be written? `peer` is an address with or without a port, or a name; `reason` lives
 * as long as the gate (a literal); `text` is the line. Call fl_log_gate_due() first.
 */
bool fl_log_gate_pass(struct fl_log_gate *gate, uint64_t now_ms, const char *peer,
                      const char *reason, const char *text);
/*
 * true: a span with suppressed lines has ended; `*ret` gets a copy of its entry. Call until it
 * returns false.
 */
bool fl_log_gate_due(struct fl_log_gate *gate, uint64_t now_ms, struct fl_log_gate_place *ret);

#endif
