#ifndef FL_NUM_ROWS_IMPL_H
#define FL_NUM_ROWS_IMPL_H

/*
 * The kernels of rows.h, written once and compiled once per instruction set by the including file,
 * which defines ROWS_WIDTH, the doubles of a register, and ROWS_TILE, rows and columns of a tile of
 * pairs whose sums stay in registers.
 *
 * A pair has FL_VEC_LANES sums, in as many registers as that takes: this is the order of vec.h.
 */

#include <string.h>

#include "libfl/num/rows.h"
#include "libfl/num/rows_kern.h"

#define ROWS_PARTS (FL_VEC_LANES / ROWS_WIDTH)

#if defined(__clang__)
#define ROWS_UNROLL _Pragma("clang loop unroll(full)")
#else
#define ROWS_UNROLL _Pragma("GCC unroll 8")
#endif

typedef double rows_lanes __attribute__((vector_size(ROWS_WIDTH * sizeof(double))));

static double rows_total(const rows_lanes *sums)
{
    double s[FL_VEC_LANES];

    (void)memcpy(s, sums, sizeof(s));
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* The sums of pairs of rows a and b. */
static void rows_gram_tile(const double *const *a, const double *const *b, size_t columns,
                           rows_lanes *ret)
{
    rows_lanes sum[ROWS_TILE * ROWS_TILE * ROWS_PARTS];
    size_t c;
    size_t i;
    size_t j;
    size_t q;

    ROWS_UNROLL for (i = 0; i < ROWS_TILE * ROWS_TILE * ROWS_PARTS; i++)
    {
        sum[i] = (rows_lanes){0};
    }
    for (c = 0; c < columns; c += FL_VEC_LANES) {
        rows_lanes right[ROWS_TILE * ROWS_PARTS];

        ROWS_UNROLL for (j = 0; j < ROWS_TILE; j++)
        {
            ROWS_UNROLL for (q = 0; q < ROWS_PARTS; q++)
            {
                (void)memcpy(&right[j * ROWS_PARTS + q], b[j] + c + q * ROWS_WIDTH,
                             sizeof(rows_lanes));
            }
        }
        ROWS_UNROLL for (i = 0; i < ROWS_TILE; i++)
        {
            ROWS_UNROLL for (q = 0; q < ROWS_PARTS; q++)
            {
                rows_lanes left;

                (void)memcpy(&left, a[i] + c + q * ROWS_WIDTH, sizeof(left));
                ROWS_UNROLL for (j = 0; j < ROWS_TILE; j++)
                {
                    sum[(i * ROWS_TILE + j) * ROWS_PARTS + q] += left * right[j * ROWS_PARTS + q];
                }
            }
        }
    }
    ROWS_UNROLL for (i = 0; i < ROWS_TILE * ROWS_TILE * ROWS_PARTS; i++)
    {
        ret[i] = sum[i];
    }
}

/* Rows beyond the last one repeat it in a tile and are not written. */
static void rows_kern_gram(double *gram, size_t stride, const double *x, size_t n, size_t columns)
{
    rows_lanes sum[ROWS_TILE * ROWS_TILE * ROWS_PARTS];
    const double *a[ROWS_TILE];
    const double *b[ROWS_TILE];
    size_t i0;
    size_t j0;
    size_t i;
    size_t j;

    for (i0 = 0; i0 < n; i0 += ROWS_TILE) {
        for (j0 = 0; j0 <= i0; j0 += ROWS_TILE) {
            for (i = 0; i < ROWS_TILE; i++) {
                a[i] = x + (i0 + i < n ? i0 + i : n - 1) * columns;
                b[i] = x + (j0 + i < n ? j0 + i : n - 1) * columns;
            }
            rows_gram_tile(a, b, columns, sum);
            for (i = 0; i < ROWS_TILE && i0 + i < n; i++) {
                for (j = 0; j < ROWS_TILE && j0 + j <= i0 + i; j++) {
                    gram[(i0 + i) * stride + j0 + j] +=
                        rows_total(sum + (i * ROWS_TILE + j) * ROWS_PARTS);
                }
            }
        }
    }
}

/* Rows of sums, and registers of their columns, that are added up at once. */
#define ROWS_SUMS 4
#define ROWS_WIDE ROWS_TILE

/* Rows beyond the last one repeat it and are not written. */
static void rows_kern_sum(double *sums, const double *members, size_t m, const double *x, size_t n)
{
    size_t a0;
    size_t c0;
    size_t a;
    size_t i;
    size_t q;

    for (a0 = 0; a0 < m; a0 += ROWS_SUMS) {
        const double *row[ROWS_SUMS];

        for (a = 0; a < ROWS_SUMS; a++) {
            row[a] = members + (a0 + a < m ? a0 + a : m - 1) * n;
        }
        for (c0 = 0; c0 < FL_ROWS_COLUMNS; c0 += ROWS_WIDE * ROWS_WIDTH) {
            rows_lanes sum[ROWS_SUMS * ROWS_WIDE];

            ROWS_UNROLL for (a = 0; a < ROWS_SUMS * ROWS_WIDE; a++)
            {
                sum[a] = (rows_lanes){0};
            }
            for (i = 0; i < n; i++) {
                rows_lanes values[ROWS_WIDE];

                ROWS_UNROLL for (q = 0; q < ROWS_WIDE; q++)
                {
                    (void)memcpy(&values[q], x + i * FL_ROWS_COLUMNS + c0 + q * ROWS_WIDTH,
                                 sizeof(rows_lanes));
                }
                ROWS_UNROLL for (a = 0; a < ROWS_SUMS; a++)
                {
                    ROWS_UNROLL for (q = 0; q < ROWS_WIDE; q++)
                    {
                        sum[a * ROWS_WIDE + q] += values[q] * row[a][i];
                    }
                }
            }
            for (a = 0; a < ROWS_SUMS && a0 + a < m; a++) {
                for (q = 0; q < ROWS_WIDE; q++) {
                    (void)memcpy(sums + (a0 + a) * FL_ROWS_COLUMNS + c0 + q * ROWS_WIDTH,
                                 &sum[a * ROWS_WIDE + q], sizeof(rows_lanes));
                }
            }
        }
    }
}

/*
 * Batcher's odd-even merge sort (Knuth, TAOCP 3, 5.2.2, Algorithm M), of all columns at once:
 * order() puts the smaller values of two rows into the first. Of 0 and -0, which are equal, either
 * may be there twice.
 */
#define ROWS_SORT(name, type)                                           \
    static void name##_order(type *restrict a, type *restrict b)        \
    {                                                                   \
        size_t i;                                                       \
                                                                        \
        for (i = 0; i < FL_ROWS_COLUMNS; i++) {                         \
            type x = a[i];                                              \
            type y = b[i];                                              \
                                                                        \
            a[i] = x < y ? x : y;                                       \
            b[i] = x > y ? x : y;                                       \
        }                                                               \
    }                                                                   \
                                                                        \
    static void name(type *rows, size_t m)                              \
    {                                                                   \
        size_t top = 1;                                                 \
        size_t p;                                                       \
                                                                        \
        while (2 * top < m) {                                           \
            top *= 2;                                                   \
        }                                                               \
        for (p = m > 1 ? top : 0; p > 0; p /= 2) {                      \
            size_t q = top;                                             \
            size_t r = 0;                                               \
            size_t d = p;                                               \
                                                                        \
            for (;;) {                                                  \
                size_t i;                                               \
                                                                        \
                for (i = 0; i + d < m; i++) {                           \
                    if ((i & p) == r) {                                 \
                        name##_order(rows + i * FL_ROWS_COLUMNS,        \
                                     rows + (i + d) * FL_ROWS_COLUMNS); \
                    }                                                   \
                }                                                       \
                if (q == p) {                                           \
                    break;                                              \
                }                                                       \
                d = q - p;                                              \
                q /= 2;                                                 \
                r = p;                                                  \
            }                                                           \
        }                                                               \
    }

ROWS_SORT(rows_kern_sort, float)
ROWS_SORT(rows_kern_sort_wide, double)

#define FL__ROWS_ROW                                                          \
    {                                                                         \
        .gram = rows_kern_gram, .sum = rows_kern_sum, .sort = rows_kern_sort, \
        .sort_wide = rows_kern_sort_wide,                                     \
    }

#endif
