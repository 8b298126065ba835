/*
 * The table of instruction sets and their kernels, and the choice by processor or by name
 * (kernels.h).
 */
#include "libfl/num/kernels.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/num/dense_kern.h"
#include "libfl/num/first_kern.h"
#include "libfl/num/kernels_impl.h"
#include "libfl/num/pixel_kern.h"
#include "libfl/num/wino_kern.h"

#if defined(__x86_64__)
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("fma");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
static bool is_lacking(void)
{
    return false;
}
#endif

static bool is_supported(void)
{
    return true;
}

/*
 * Fastest first. Every build lists all names, so that a forced one that is not supported is
 * refused with its reason.
 */
static const struct fl_kernels rows[] = {
#if defined(__x86_64__)
    {
        .name = "avx512",
        .supported = has_avx512,
        .dense = &fl__dense_avx512,
        .first = &fl__first_avx512,
        .wino = &fl__wino_avx512,
        .pixel = &fl__pixel_avx512,
    },
    {
        .name = "avx2",
        .supported = has_avx2,
        .dense = &fl__dense_avx2,
        .first = &fl__first_avx2,
        .wino = &fl__wino_avx2,
        .pixel = &fl__pixel_avx2,
    },
#else
    {.name = "avx512", .supported = is_lacking, .pixel = &fl__pixel_ref},
    {.name = "avx2", .supported = is_lacking, .pixel = &fl__pixel_ref},
#endif
    {
        .name = "portable",
        .supported = is_supported,
        .dense = &fl__dense_plain,
        .first = &fl__first_plain,
        .wino = &fl__wino_plain,
        .pixel = &fl__pixel_plain,
    },
    {.name = "reference", .supported = is_supported, .pixel = &fl__pixel_ref},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

const char *const fl_kernels_names[] = {"auto", "avx512", "avx2", "portable", "reference", NULL};
_Static_assert(sizeof(fl_kernels_names) / sizeof(fl_kernels_names[0]) == N_ROWS + 2,
               "one name per row, and auto");

const struct fl_kernels *fl__kernels_row(size_t i)
{
    return i < N_ROWS ? &rows[i] : NULL;
}

const struct fl_kernels *fl_kernels_best(void)
{
    size_t i = 0;

    while (!rows[i].supported()) {
        i++;
    }
    return &rows[i];
}

const char *fl_kernels_name(const struct fl_kernels *kernels)
{
    return kernels->name;
}

/* List the names that this processor supports, for a message. */
static void list_rows(char *to, size_t size)
{
    size_t used = (size_t)snprintf(to, size, "auto");
    size_t i;

    for (i = 0; i < N_ROWS && used < size; i++) {
        if (rows[i].supported()) {
            used += (size_t)snprintf(to + used, size - used, ", %s", rows[i].name);
        }
    }
}

int fl_kernels_named(const char *name, const struct fl_kernels **ret, struct fl_err *err)
{
    char known[64];
    const char *nearest;
    size_t i;

    if (strcmp(name, "auto") == 0) {
        *ret = fl_kernels_best();
        return FL_OK;
    }
    list_rows(known, sizeof(known));
    for (i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].name, name) != 0) {
            continue;
        }
        if (!rows[i].supported()) {
            return fl_err_set(err, FL_ECONF,
                              "this processor does not support %s instructions; "
                              "supported: %s",
                              name, known);
        }
        *ret = &rows[i];
        return FL_OK;
    }
    nearest = fl_str_nearest(name, fl_kernels_names, N_ROWS + 1);
    return fl_err_set(err, FL_ECONF,
                      "no instruction set '%.32s'%s%s%s; supported by this processor: %s", name,
                      nearest != NULL ? ", did you mean '" : "", nearest != NULL ? nearest : "",
                      nearest != NULL ? "'?" : "", known);
}
