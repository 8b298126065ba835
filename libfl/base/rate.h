#ifndef FL_BASE_RATE_H
#define FL_BASE_RATE_H

/*
 * The bucket that keeps to a rate of a link in bytes per second.
 * Pure: the time is an argument.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* 100 Gbit/s: with more the arithmetic of a bucket would not fit 64 bits. */
#define FL_RATE_MAX UINT64_C(12500000000)

/*
 * A bucket: from its start on, `rate` bytes for each second, of which at most `burst` may be saved
 * up. Exact: no byte is lost or won by how often it is asked.
 */
struct fl_bucket {
    uint64_t rate;  /* 1 to FL_RATE_MAX */
    uint64_t burst; /* 1 or more */
    uint64_t start_ns;
    uint64_t spent; /* of what has come in since: taken, or more than it holds */
};

/* Empty from `now_ns` on. */
void fl_bucket_start(struct fl_bucket *bucket, uint64_t rate, uint64_t burst, uint64_t now_ns);
/* How many bytes may go now. What does not fit is lost. `now_ns` never goes back. */
uint64_t fl_bucket_have(struct fl_bucket *bucket, uint64_t now_ns);
/* `n` bytes go; more than there are make a debt. */
void fl_bucket_take(struct fl_bucket *bucket, uint64_t n);
/* The earliest time at which `n` bytes, at most `burst`, may go if none go before. */
uint64_t fl_bucket_when(const struct fl_bucket *bucket, uint64_t n);

#endif
