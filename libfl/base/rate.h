#ifndef FL_BASE_RATE_H
#define FL_BASE_RATE_H

/*
 * A token bucket that limits a link to a rate in bytes per second. Pure: the time is an argument.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* 100 Gbit/s: above it the arithmetic of a bucket would overflow 64 bits. */
#define FL_RATE_MAX UINT64_C(12500000000)

/*
 * A token bucket: earns `rate` bytes each second from its start, and stores at most `burst`. Exact:
 * the number of calls does not change the total.
 */
struct fl_bucket {
    uint64_t rate;  /* 1 to FL_RATE_MAX */
    uint64_t burst; /* 1 or more */
    uint64_t start_ns;
    uint64_t spent; /* earned bytes that were taken, or lost above `burst` */
};

/* Start an empty bucket at `now_ns`. */
void fl_bucket_start(struct fl_bucket *bucket, uint64_t rate, uint64_t burst, uint64_t now_ns);
/* Bytes that may be sent now. Bytes above `burst` are lost. `now_ns` must not decrease. */
uint64_t fl_bucket_have(struct fl_bucket *bucket, uint64_t now_ns);
/* Take `n` bytes; more than available makes a debt. */
void fl_bucket_take(struct fl_bucket *bucket, uint64_t n);
/* The earliest time at which `n` bytes (at most `burst`) may be sent if none are sent before. */
uint64_t fl_bucket_when(const struct fl_bucket *bucket, uint64_t n);

#endif
