#ifndef FL_NUM_KERNELS_H
#define FL_NUM_KERNELS_H

/*
 * Which kernels compute: one row of functions per instruction set, chosen once by whoever
 * makes a network and handed down from there (docs/kernels.md#instruction-sets). Rows
 * differ in the last bits of what they compute, and in nothing else: weights are stored and
 * drawn alike under each.
 *
 *     avx512      AVX-512F, AVX2 and FMA
 *     avx2        AVX2 and FMA
 *     portable    vectors of four floats: any x86-64, any arm64
 *     reference   no kernels of our own: patches, plain loops and OpenBLAS
 *
 * Threads: rows are constants.
 */

#include "libfl/base/err.h"

struct fl_kernels;

/* The fastest row that this processor has; never NULL. */
const struct fl_kernels *fl_kernels_best(void);
/*
 * The row of that name; "auto" is the best one. FL_ECONF: no such name, or the processor
 * lacks its instructions; the text says which names would do.
 */
FL_MUST_CHECK int fl_kernels_named(const char *name, const struct fl_kernels **ret,
                                   struct fl_err *err);
const char *fl_kernels_name(const struct fl_kernels *kernels);
/* All names, "auto" first, NULL-terminated; this processor may lack some. */
extern const char *const fl_kernels_names[];

#endif
