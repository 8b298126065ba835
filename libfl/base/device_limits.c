#include "libfl/base/device_limits.h"

#include <string.h>

#include "libfl/base/quantity.h"
#include "libfl/base/rate.h"
#include "libfl/base/str.h"

static const char *const device_limit_names[FL_DEVICE_LIMITS_MAX] = {"upload_rate", "download_rate",
                                                                     "rounds_per_day"};

/* The most of limits.rounds_per_day (client/conf/client_conf.c). */
#define DAY_ROUNDS_MAX UINT64_C(1000000000)

static size_t device_limit_find(const char *key)
{
    size_t i = 0;

    while (i < FL_DEVICE_LIMITS_MAX && strcmp(device_limit_names[i], key) != 0) {
        i++;
    }
    return i;
}

bool fl_device_limits_has(const char *key)
{
    return device_limit_find(key) < FL_DEVICE_LIMITS_MAX;
}

static int device_limit_read(const char *key, const char *value, struct fl_device_limits *ret,
                             struct fl_err *err)
{
    static const struct fl_quantity_range rate = {
        .kind = FL_QUANTITY_RATE, .step = 8, .min = 1, .max = FL_RATE_MAX};
    uint64_t rounds;

    switch (device_limit_find(key)) {
    case 0:
        return fl_quantity_read(&rate, value, &ret->upload_rate, err);
    case 1:
        return fl_quantity_read(&rate, value, &ret->download_rate, err);
    case 2:
        if (fl_str_to_u64(value, &rounds) != FL_OK || rounds < 1 || rounds > DAY_ROUNDS_MAX) {
            return fl_err_set(err, FL_EINVAL, "expected a number of rounds from 1 on, found '%s'",
                              value);
        }
        ret->rounds_per_day = rounds;
        return FL_OK;
    default:
        return fl_err_set(err, FL_EINVAL,
                          "no limit that can be set here: expected upload_rate, download_rate or "
                          "rounds_per_day");
    }
}

int fl_device_limits_read(const struct fl_pair *pairs, size_t n, struct fl_device_limits *ret,
                          struct fl_err *err)
{
    struct fl_device_limits limits = {0};
    size_t i;

    for (i = 0; i < n; i++) {
        struct fl_err inner = {0};
        int rv = device_limit_read(pairs[i].key, pairs[i].value, &limits, &inner);

        if (rv != FL_OK) {
            return fl_err_set(err, rv, "'%s': %s", pairs[i].key, fl_err_text(&inner, rv));
        }
    }
    *ret = limits;
    return FL_OK;
}

/* 0 is none. */
static uint64_t device_limit_lower(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

struct fl_device_limits fl_device_limits_both(const struct fl_device_limits *a,
                                              const struct fl_device_limits *b)
{
    return (struct fl_device_limits){
        .upload_rate = device_limit_lower(a->upload_rate, b->upload_rate),
        .download_rate = device_limit_lower(a->download_rate, b->download_rate),
        .rounds_per_day = device_limit_lower(a->rounds_per_day, b->rounds_per_day)};
}
