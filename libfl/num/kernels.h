#ifndef FL_NUM_KERNELS_H
#define FL_NUM_KERNELS_H

/*
 * Instruction-set table: one row of kernels (functions) per instruction set, chosen once by the
 * creator of a network and passed down (docs/kernels.md#instruction-sets). Rows differ only in the
 * last bits of their results: weights are stored and initialised in the same way with each.
 *
 *     avx512      AVX-512F, AVX2 and FMA
 *     avx2        AVX2 and FMA
 *     portable    vectors of four floats: any x86-64, any arm64
 *     reference   no vector kernels: patches, plain loops and OpenBLAS
 *
 * Threads: rows are constants.
 */

#include "libfl/base/err.h"

struct fl_kernels;

/* The fastest row that this processor supports; never NULL. */
const struct fl_kernels *fl_kernels_best(void);
/*
 * The row with that name; "auto" is the fastest supported one. FL_ECONF: unknown name, or not
 * supported by the processor; the message lists the supported names.
 */
FL_MUST_CHECK int fl_kernels_named(const char *name, const struct fl_kernels **ret,
                                   struct fl_err *err);
const char *fl_kernels_name(const struct fl_kernels *kernels);
/* All names, "auto" first, NULL-terminated; the processor may not support some. */
extern const char *const fl_kernels_names[];

#endif
