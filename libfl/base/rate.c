#include "libfl/base/rate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"

#define NS_PER_S UINT64_C(1000000000)
/* Longest number before a unit: more digits say nothing about a link. */
#define NUMBER_MAX 24

/* --- text --- */

/* Ends of texts with what they are in bits; the first of equal ones is how it is printed. */
static const struct unit {
    const char *text;
    uint64_t bits;
} units[] = {
    {"Gbit/s", UINT64_C(1000000000)},
    {"GB/s", UINT64_C(8000000000)},
    {"Mbit/s", 1000000},
    {"MB/s", 8000000},
    {"kbit/s", 1000},
    {"Kbit/s", 1000},
    {"kB/s", 8000},
    {"KB/s", 8000},
    {"bit/s", 1},
    {"B/s", 8},
};
#define N_UNITS (sizeof(units) / sizeof(units[0]))

int fl_rate_parse(const char *text, uint64_t *ret_bytes_per_s)
{
    char number[NUMBER_MAX + 1];
    size_t len = strspn(text, "0123456789.");
    double value = 0.0;
    double bytes;
    size_t i;

    if (strcmp(text, "none") == 0 || strcmp(text, "0") == 0) {
        *ret_bytes_per_s = 0;
        return FL_OK;
    }
    if (len == 0 || len > NUMBER_MAX || text[0] == '.' || text[len - 1] == '.') {
        return FL_EINVAL;
    }
    (void)memcpy(number, text, len);
    number[len] = '\0';
    if (fl_str_to_double(number, &value) != FL_OK) {
        return FL_EINVAL;
    }
    len += text[len] == ' ' ? 1 : 0;
    for (i = 0; i < N_UNITS && strcmp(text + len, units[i].text) != 0; i++) {
    }
    if (i == N_UNITS) {
        return FL_EINVAL;
    }
    bytes = round(value * (double)units[i].bits / 8.0);
    if (bytes > (double)FL_RATE_MAX || bytes < 1.0) {
        return FL_ERANGE;
    }
    *ret_bytes_per_s = (uint64_t)bytes;
    return FL_OK;
}

const char *fl_rate_text(char *out, size_t size, uint64_t bytes_per_s)
{
    uint64_t best = UINT64_MAX;
    size_t i;

    (void)snprintf(out, size, "none");
    for (i = 0; i < N_UNITS && bytes_per_s > 0; i++) {
        uint64_t bits = bytes_per_s * 8;

        if (bits % units[i].bits == 0 && bits / units[i].bits < best) {
            best = bits / units[i].bits;
            (void)snprintf(out, size, "%" PRIu64 "%s", best, units[i].text);
        }
    }
    return out;
}

/* --- the bucket --- */

/* What has come in since the start. */
static uint64_t earned(const struct fl_bucket *bucket, uint64_t now_ns)
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
    uint64_t in = earned(bucket, now_ns);
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
