#ifndef FL_NUM_LANES_IMPL_H
#define FL_NUM_LANES_IMPL_H

/*
 * Vectors of FL__LANES floats, for kernels that are written once and compiled once per instruction
 * set: 16 with AVX-512, 8 with AVX2, 4 on any processor. The including source defines FL__LANES and
 * the target (see dense_avx512.c) and then includes the kernels.
 *
 * Accumulator arrays must stay in registers: every loop over one has a constant trip count
 * and is unrolled, and every function with one is inlined into a caller that knows the
 * constants. Products and sums are contracted to FMA (build flag of libflnumfma).
 */

#include <stdint.h>

typedef float vec __attribute__((vector_size(4 * FL__LANES)));
typedef int32_t vec_mask __attribute__((vector_size(4 * FL__LANES)));
/* A vector in memory with the alignment of a float. */
typedef float vec_mem __attribute__((vector_size(4 * FL__LANES), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif

/*
 * Hides how an address was computed. Otherwise the compiler keeps each of the dozens of
 * addresses of a tile in memory over the loop, with a load for every load.
 */
#define OPAQUE(p) __asm__("" : "+r"(p))

INLINE vec load(const float *p)
{
    return *(const vec_mem *)p;
}

INLINE void store(float *p, vec v)
{
    *(vec_mem *)p = v;
}

INLINE vec broadcast(float x)
{
    return x - (vec){0};
}

/* max(v, 0), but NaN stays NaN: a diverged network must not look healthy. */
INLINE vec relu_of(vec v)
{
    vec_mask negative = v < (vec){0};

    return (vec)((vec_mask)v & ~negative);
}

#endif
