#ifndef FL_BASE_LOG_GATE_H
#define FL_BASE_LOG_GATE_H

/*
 * Which lines go into a log when peers can cause them at will: of one peer and one reason so many
 * in a span of time, of all together so many, and at the end of the span one line that says how
 * many more there were. What is remembered has a fixed size; peers beyond it share one place.
 *
 * Pure: time is passed in. Threading: the caller's business (fl_log_peer() has a lock).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enough to see what is going on, for each peer and reason ... */
#define FL_LOG_GATE_SPAN_MS 10000
#define FL_LOG_GATE_LINES   20
/* ... and, with lines of 150 bytes, some 150 KB in a span however many peers there are. */
#define FL_LOG_GATE_ALL    1000
#define FL_LOG_GATE_PLACES 256
#define FL_LOG_GATE_SAMPLE 64

struct fl_log_gate_place {
    char peer[64];      /* without its port; "": free */
    const char *reason; /* compared as a pointer */
    uint64_t since_ms;
    unsigned lines;
    uint64_t left_out;
    char sample[FL_LOG_GATE_SAMPLE]; /* the beginning of the first line that was left out */
};

/* All zero is one that has seen nothing. */
struct fl_log_gate {
    uint64_t since_ms; /* of the span of all together */
    unsigned lines;
    uint64_t due_ms; /* nothing is due before; 0: nothing at all */
    /* The last one is shared by those for whom there is no place. */
    struct fl_log_gate_place places[FL_LOG_GATE_PLACES + 1];
};

/*
 * May this line be written? `peer` is an address with or without a port, or a name; `reason` lives
 * as long as the gate (a literal); `text` is the line. Call fl_log_gate_due() first.
 */
bool fl_log_gate_pass(struct fl_log_gate *gate, uint64_t now_ms, const char *peer,
                      const char *reason, const char *text);
/*
 * A span has ended in which lines were left out: `*ret` is a copy of what is known about it. Call
 * until it is false.
 */
bool fl_log_gate_due(struct fl_log_gate *gate, uint64_t now_ms, struct fl_log_gate_place *ret);

#endif
