#ifndef FL_BASE_RATE_H
#define FL_BASE_RATE_H

/*
 * Rates of links in bytes per second: how people write them, and the bucket that keeps to one.
 * Pure: the time is an argument.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

/* 100 Gbit/s: with more the arithmetic of a bucket would not fit 64 bits. */
#define FL_RATE_MAX UINT64_C(12500000000)
/* Room for fl_rate_text(). */
#define FL_RATE_TEXT 32

/*
 * "2Mbit/s", "1.5 Mbit/s", "250kbit/s", "500KB/s", "64kB/s": units as links are named, so k, M and
 * G are powers of 1000; the nearest whole number of bytes. "none" and "0" are 0. FL_EINVAL:
 * anything else, a number without a unit too; FL_ERANGE: above FL_RATE_MAX, or so small that it
 * would be 0.
 */
FL_MUST_CHECK int fl_rate_parse(const char *text, uint64_t *ret_bytes_per_s);
/* The shortest such text that reads back as the same rate; returns `out`. */
const char *fl_rate_text(char *out, size_t size, uint64_t bytes_per_s);

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
