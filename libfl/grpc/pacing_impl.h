#ifndef FL_GRPC_PACE_IMPL_H
#define FL_GRPC_PACE_IMPL_H

/*
 * How many bytes of a connection to commit at a time; private to libfl/grpc, pure. What was
 * committed cannot be overtaken by a control message: on a slow link it must be little, while
 * a fast one wants large writes. So it is what the link took lately in FL__PACING_HORIZON_MS.
 */

#include <stddef.h>
#include <stdint.h>

/* Bulk delays control by about this on its way to the kernel. */
#define FL__PACING_HORIZON_MS 50
/* Shorter than this, a rate says how large the kernel's buffers are, not how fast the link. */
#define FL__PACING_WINDOW_MS 20
#define FL__PACING_MIN       ((size_t)8 * 1024)
/* Two of the largest default frames: more gains nothing on loopback. */
#define FL__PACING_MAX   ((size_t)512 * 1024)
#define FL__PACING_START ((size_t)64 * 1024)

struct fl__pacing {
    uint64_t since_ms; /* The window of measuring began, later by the idle time in it. */
    uint64_t idle_ms;  /* UINT64_MAX: there is something to send; else since when not. */
    size_t bytes;      /* Sent in the window. */
    size_t value;
};

void fl__pacing_init(struct fl__pacing *pace, uint64_t now_ms);
/* There is something to send. */
void fl__pacing_busy(struct fl__pacing *pace, uint64_t now_ms);
/* The socket took `n` bytes. Returns the value from now on. */
size_t fl__pacing_sent(struct fl__pacing *pace, uint64_t now_ms, size_t n);
/* There is nothing to send: the time until fl__pacing_busy() says nothing about the link. */
void fl__pacing_idle(struct fl__pacing *pace, uint64_t now_ms);

#endif
