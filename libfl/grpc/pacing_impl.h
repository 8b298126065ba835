#ifndef FL_GRPC_PACE_IMPL_H
#define FL_GRPC_PACE_IMPL_H

/*
 * How many bytes of a connection to commit at a time; private to libfl/grpc, pure. A control
 * message cannot overtake committed bytes: on a slow link they must be few, while a fast one wants
 * large writes. So the value is what the link took lately in FL__PACING_HORIZON_MS.
 */

#include <stddef.h>
#include <stdint.h>

/* Bulk data delays control messages by about this time on the way to the kernel. */
#define FL__PACING_HORIZON_MS 50
/* Over a shorter time the rate measures the kernel's buffers, not the link. */
#define FL__PACING_WINDOW_MS 20
#define FL__PACING_MIN       ((size_t)8 * 1024)
/* Two of the largest default frames: more gains nothing on loopback. */
#define FL__PACING_MAX   ((size_t)512 * 1024)
#define FL__PACING_START ((size_t)64 * 1024)

struct fl__pacing {
    uint64_t since_ms; /* Start of the measuring window, moved later by the idle time in it. */
    uint64_t idle_ms;  /* UINT64_MAX: there is something to send; else idle since then. */
    size_t bytes;      /* Sent in the window. */
    size_t value;
};

void fl__pacing_init(struct fl__pacing *pace, uint64_t now_ms);
/* There is something to send. */
void fl__pacing_busy(struct fl__pacing *pace, uint64_t now_ms);
/* The socket took `n` bytes. Returns the new value. */
size_t fl__pacing_sent(struct fl__pacing *pace, uint64_t now_ms, size_t n);
/* There is nothing to send: the time until fl__pacing_busy() does not count. */
void fl__pacing_idle(struct fl__pacing *pace, uint64_t now_ms);

#endif
