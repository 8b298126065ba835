#include "libfl/base/rate.h"

#define NS_PER_S UINT64_C(1000000000)
/* Bytes earned since the start. */
static uint64_t bucket_earned(const struct fl_bucket *bucket, uint64_t now_ns)
{
    uint64_t ns = now_ns - bucket->start_ns;

    return ns / NS_PER_S * bucket->rate + ns % NS_PER_S * bucket->rate / NS_PER_S;
}

void fl_bucket_start(struct fl_bucket *bucket, uint64_t rate, uint64_t burst, uint64_t now_ns)
{
    FL_REQUIRE(rate > 0 && rate <= FL_RATE_MAX && burst > 0);
    *bucket = (struct fl_bucket){.rate = rate, .burst = burst, .start_ns = now_ns};
}

uint64_t fl_bucket_have(struct fl_bucket *bucket, uint64_t now_ns)
{
    uint64_t in = bucket_earned(bucket, now_ns);
    uint64_t have = in > bucket->spent ? in - bucket->spent : 0;

    if (have > bucket->burst) {
        bucket->spent += have - bucket->burst;
        have = bucket->burst;
    }
    return have;
}

void fl_bucket_take(struct fl_bucket *bucket, uint64_t n)
{
    bucket->spent += n;
}

uint64_t fl_bucket_when(const struct fl_bucket *bucket, uint64_t n)
{
    uint64_t want = bucket->spent + n;
    uint64_t rest = want % bucket->rate * NS_PER_S;

    return bucket->start_ns + want / bucket->rate * NS_PER_S + rest / bucket->rate +
           (rest % bucket->rate > 0 ? 1 : 0);
}
