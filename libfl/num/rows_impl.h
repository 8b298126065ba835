#ifndef FL_NUM_ROWS_IMPL_H
#define FL_NUM_ROWS_IMPL_H

/*
 * The kernels of rows.h, written once and compiled once per instruction set by the including file,
 * which defines ROWS_WIDTH, the doubles of a register, and ROWS_TILE, rows and columns of a tile of
 * pairs whose sums stay in registers; and ROWS_LOAD, as many floats as doubles, where compilers do
 * not make one instruction of that.
 *
 * A pair has FL_VEC_LANES sums, in as many registers as that takes: this is the order of vec.h.
 * Loops over columns are plain, for the compiler to vectorize: it has the minimum of two vectors,
 * which vector types lack.
 */

#include <string.h>

#include "libfl/num/rows.h"
#include "libfl/num/rows_kern.h"

#define ROWS_PARTS (FL_VEC_LANES / ROWS_WIDTH)
#define ROWS_PAIRS (ROWS_TILE * ROWS_TILE * ROWS_PARTS)

#if defined(__clang__)
#define ROWS_UNROLL _Pragma("clang loop unroll(full)")
#else
#define ROWS_UNROLL _Pragma("GCC unroll 32")
#endif

typedef double rows_lanes __attribute__((vector_size(ROWS_WIDTH * sizeof(double))));
#if !defined(ROWS_LOAD)
typedef float rows_floats __attribute__((vector_size(ROWS_WIDTH * sizeof(float))));
#endif

/* --- inner products --- */

/* ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)) */
static inline double rows_total(const rows_lanes *sums)
{
#if ROWS_WIDTH == 8
    typedef double half __attribute__((vector_size(4 * sizeof(double))));
    half low;
    half high;

    (void)memcpy(&low, sums, sizeof(low));
    (void)memcpy(&high, (const char *)sums + sizeof(low), sizeof(high));
    low += high;
    return (low[0] + low[2]) + (low[1] + low[3]);
#elif ROWS_WIDTH == 4
    rows_lanes low = sums[0] + sums[1];

    return (low[0] + low[2]) + (low[1] + low[3]);
#else
    rows_lanes low = (sums[0] + sums[2]) + (sums[1] + sums[3]);

    return low[0] + low[1];
#endif
}

#if defined(ROWS_LOAD)
static inline rows_lanes rows_load(const float *x)
{
    return ROWS_LOAD(x);
}
#else
static inline rows_lanes rows_load(const float *x)
{
    rows_floats narrow;

    (void)memcpy(&narrow, x, sizeof(narrow));
    return __builtin_convertvector(narrow, rows_lanes);
}
#endif

static inline rows_lanes rows_load_wide(const double *x)
{
    rows_lanes wide;

    (void)memcpy(&wide, x, sizeof(wide));
    return wide;
}

static inline void rows_store(double *x, rows_lanes wide)
{
    (void)memcpy(x, &wide, sizeof(wide));
}

/* The sums of pairs of rows a and b. */
static void rows_gram_tile(const float *const *a, const float *const *b, size_t columns,
                           rows_lanes *ret)
{
    rows_lanes sum[ROWS_PAIRS];
    size_t c;
    size_t i;
    size_t j;
    size_t q;

    ROWS_UNROLL for (i = 0; i < ROWS_PAIRS; i++)
    {
        sum[i] = (rows_lanes){0};
    }
    for (c = 0; c < columns; c += FL_VEC_LANES) {
        rows_lanes right[ROWS_TILE * ROWS_PARTS];

        ROWS_UNROLL for (j = 0; j < ROWS_TILE; j++)
        {
            ROWS_UNROLL for (q = 0; q < ROWS_PARTS; q++)
            {
                right[j * ROWS_PARTS + q] = rows_load(b[j] + c + q * ROWS_WIDTH);
            }
        }
        ROWS_UNROLL for (i = 0; i < ROWS_TILE; i++)
        {
            ROWS_UNROLL for (q = 0; q < ROWS_PARTS; q++)
            {
                rows_lanes left = rows_load(a[i] + c + q * ROWS_WIDTH);

                ROWS_UNROLL for (j = 0; j < ROWS_TILE; j++)
                {
                    sum[(i * ROWS_TILE + j) * ROWS_PARTS + q] += left * right[j * ROWS_PARTS + q];
                }
            }
        }
    }
    ROWS_UNROLL for (i = 0; i < ROWS_PAIRS; i++)
    {
        ret[i] = sum[i];
    }
}

/* Those of the pairs of rows a that are not written twice. */
static void rows_gram_triangle(const float *const *a, size_t columns, rows_lanes *ret)
{
    rows_lanes sum[ROWS_PAIRS];
    size_t c;
    size_t i;
    size_t j;
    size_t q;

    ROWS_UNROLL for (i = 0; i < ROWS_PAIRS; i++)
    {
        sum[i] = (rows_lanes){0};
    }
    for (c = 0; c < columns; c += FL_VEC_LANES) {
        rows_lanes x[ROWS_TILE * ROWS_PARTS];

        ROWS_UNROLL for (i = 0; i < ROWS_TILE; i++)
        {
            ROWS_UNROLL for (q = 0; q < ROWS_PARTS; q++)
            {
                x[i * ROWS_PARTS + q] = rows_load(a[i] + c + q * ROWS_WIDTH);
            }
        }
        ROWS_UNROLL for (i = 0; i < ROWS_TILE; i++)
        {
            ROWS_UNROLL for (j = 0; j <= i; j++)
            {
                ROWS_UNROLL for (q = 0; q < ROWS_PARTS; q++)
                {
                    sum[(i * ROWS_TILE + j) * ROWS_PARTS + q] +=
                        x[i * ROWS_PARTS + q] * x[j * ROWS_PARTS + q];
                }
            }
        }
    }
    ROWS_UNROLL for (i = 0; i < ROWS_PAIRS; i++)
    {
        ret[i] = sum[i];
    }
}

/* Rows beyond the last one repeat it in a tile and are not written. */
static void rows_kern_gram(double *gram, size_t stride, const float *x, size_t row, size_t n,
                           size_t columns)
{
    rows_lanes sum[ROWS_PAIRS];
    const float *a[ROWS_TILE];
    const float *b[ROWS_TILE];
    size_t i0;
    size_t j0;
    size_t i;
    size_t j;

    for (i0 = 0; i0 < n; i0 += ROWS_TILE) {
        for (j0 = 0; j0 <= i0; j0 += ROWS_TILE) {
            for (i = 0; i < ROWS_TILE; i++) {
                a[i] = x + (i0 + i < n ? i0 + i : n - 1) * row;
                b[i] = x + (j0 + i < n ? j0 + i : n - 1) * row;
            }
            if (j0 == i0) {
                rows_gram_triangle(a, columns, sum);
            } else {
                rows_gram_tile(a, b, columns, sum);
            }
            for (i = 0; i < ROWS_TILE && i0 + i < n; i++) {
                for (j = 0; j < ROWS_TILE && j0 + j <= i0 + i; j++) {
                    gram[(i0 + i) * stride + j0 + j] +=
                        rows_total(sum + (i * ROWS_TILE + j) * ROWS_PARTS);
                }
            }
        }
    }
}

/* --- sums of some rows --- */

/* Columns and groups of which all sums of a group are in memory at once: 16 KB. */
#define ROWS_STRIP       64
#define ROWS_GROUPS      4
#define ROWS_SUBSETS     (1u << FL_ROWS_GROUP)
#define ROWS_STRIP_PARTS (ROWS_STRIP / ROWS_WIDTH)

/* The sums of all subsets of four rows of a tile, for a strip of columns. */
static void rows_subsets(double *restrict sums, const float *a, const float *b, const float *c,
                         const float *d)
{
    size_t i;

    for (i = 0; i < ROWS_STRIP; i++) {
        double w = (double)a[i];
        double x = (double)b[i];
        double y = (double)c[i];
        double z = (double)d[i];
        double wx = w + x;

        sums[i] = 0;
        sums[i + ROWS_STRIP] = w;
        sums[i + 2 * ROWS_STRIP] = x;
        sums[i + 3 * ROWS_STRIP] = wx;
        sums[i + 4 * ROWS_STRIP] = y;
        sums[i + 5 * ROWS_STRIP] = w + y;
        sums[i + 6 * ROWS_STRIP] = x + y;
        sums[i + 7 * ROWS_STRIP] = wx + y;
        sums[i + 8 * ROWS_STRIP] = z;
        sums[i + 9 * ROWS_STRIP] = w + z;
        sums[i + 10 * ROWS_STRIP] = x + z;
        sums[i + 11 * ROWS_STRIP] = wx + z;
        sums[i + 12 * ROWS_STRIP] = y + z;
        sums[i + 13 * ROWS_STRIP] = (w + y) + z;
        sums[i + 14 * ROWS_STRIP] = (x + y) + z;
        sums[i + 15 * ROWS_STRIP] = (wx + y) + z;
    }
}

/* Row i of a strip of n rows; 0 beyond them. */
static const float *rows_of_strip(const float *x, size_t i, size_t n)
{
    static const float none[ROWS_STRIP];

    return i < n ? x + i * FL_ROWS_COLUMNS : none;
}

static void rows_kern_sum(double *sums, const uint8_t *groups, size_t m, const float *x, size_t n)
{
    _Alignas(64) double subsets[ROWS_GROUPS * ROWS_SUBSETS * ROWS_STRIP];
    size_t n_groups = fl_rows_groups(n);
    size_t c0;
    size_t g0;
    size_t g;
    size_t a;
    size_t q;

    for (c0 = 0; c0 < FL_ROWS_COLUMNS; c0 += ROWS_STRIP) {
        for (g0 = 0; g0 < n_groups; g0 += ROWS_GROUPS) {
            size_t some = n_groups - g0 < ROWS_GROUPS ? n_groups - g0 : ROWS_GROUPS;

            for (g = 0; g < some; g++) {
                size_t i = (g0 + g) * FL_ROWS_GROUP;

                rows_subsets(subsets + g * ROWS_SUBSETS * ROWS_STRIP, rows_of_strip(x + c0, i, n),
                             rows_of_strip(x + c0, i + 1, n), rows_of_strip(x + c0, i + 2, n),
                             rows_of_strip(x + c0, i + 3, n));
            }
            for (a = 0; a < m; a++) {
                const uint8_t *members = groups + a * n_groups + g0;
                double *to = sums + a * FL_ROWS_COLUMNS + c0;
                rows_lanes sum[ROWS_STRIP_PARTS];

                ROWS_UNROLL for (q = 0; q < ROWS_STRIP_PARTS; q++)
                {
                    sum[q] = g0 > 0 ? rows_load_wide(to + q * ROWS_WIDTH) : (rows_lanes){0};
                }
                for (g = 0; g < some; g++) {
                    const double *add = subsets + (g * ROWS_SUBSETS + members[g]) * ROWS_STRIP;

                    ROWS_UNROLL for (q = 0; q < ROWS_STRIP_PARTS; q++)
                    {
                        sum[q] += rows_load_wide(add + q * ROWS_WIDTH);
                    }
                }
                ROWS_UNROLL for (q = 0; q < ROWS_STRIP_PARTS; q++)
                {
                    rows_store(to + q * ROWS_WIDTH, sum[q]);
                }
            }
        }
    }
}

/* --- sorting --- */

#define ROWS_ORDER(type, a, b)                     \
    do {                                           \
        type first_ = (a);                         \
        type second_ = (b);                        \
                                                   \
        (a) = first_ < second_ ? first_ : second_; \
        (b) = first_ > second_ ? first_ : second_; \
    } while (0)

/*
 * Batcher's odd-even merge sort (Knuth, TAOCP 3, 5.3.4) of all columns at once. Of 0 and -0, which
 * are equal, either may be there twice. Comparisons with rows beyond the last one are left out, as
 * if they were infinite. Eight rows are sorted in registers; runs of p of them are then merged in
 * stages k = p, p / 2, … 1 of comparisons of rows k apart, the last three of which are one pass.
 */
#define ROWS_SORT(name, type)                                                                      \
    static void name##_order(type *restrict a, type *restrict b)                                   \
    {                                                                                              \
        size_t c;                                                                                  \
                                                                                                   \
        for (c = 0; c < FL_ROWS_COLUMNS; c++) {                                                    \
            ROWS_ORDER(type, a[c], b[c]);                                                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* The comparisons of a stage whose upper row is `from` or above. */                           \
    static void name##_stage(type *rows, size_t first, size_t end, size_t p, size_t k,             \
                             size_t from)                                                          \
    {                                                                                              \
        size_t j;                                                                                  \
        size_t i;                                                                                  \
                                                                                                   \
        for (j = first + k % p; j + k < end; j += 2 * k) {                                         \
            for (i = j < from ? from : j; i < j + k && i + k < end; i++) {                         \
                name##_order(rows + i * FL_ROWS_COLUMNS, rows + (i + k) * FL_ROWS_COLUMNS);        \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void name##_eight(type *rows)                                                           \
    {                                                                                              \
        size_t c;                                                                                  \
                                                                                                   \
        for (c = 0; c < FL_ROWS_COLUMNS; c++) {                                                    \
            type x0 = rows[c], x1 = rows[c + FL_ROWS_COLUMNS];                                     \
            type x2 = rows[c + 2 * FL_ROWS_COLUMNS], x3 = rows[c + 3 * FL_ROWS_COLUMNS];           \
            type x4 = rows[c + 4 * FL_ROWS_COLUMNS], x5 = rows[c + 5 * FL_ROWS_COLUMNS];           \
            type x6 = rows[c + 6 * FL_ROWS_COLUMNS], x7 = rows[c + 7 * FL_ROWS_COLUMNS];           \
                                                                                                   \
            ROWS_ORDER(type, x0, x1);                                                              \
            ROWS_ORDER(type, x2, x3);                                                              \
            ROWS_ORDER(type, x4, x5);                                                              \
            ROWS_ORDER(type, x6, x7);                                                              \
            ROWS_ORDER(type, x0, x2);                                                              \
            ROWS_ORDER(type, x1, x3);                                                              \
            ROWS_ORDER(type, x4, x6);                                                              \
            ROWS_ORDER(type, x5, x7);                                                              \
            ROWS_ORDER(type, x1, x2);                                                              \
            ROWS_ORDER(type, x5, x6);                                                              \
            ROWS_ORDER(type, x0, x4);                                                              \
            ROWS_ORDER(type, x1, x5);                                                              \
            ROWS_ORDER(type, x2, x6);                                                              \
            ROWS_ORDER(type, x3, x7);                                                              \
            ROWS_ORDER(type, x2, x4);                                                              \
            ROWS_ORDER(type, x3, x5);                                                              \
            ROWS_ORDER(type, x1, x2);                                                              \
            ROWS_ORDER(type, x3, x4);                                                              \
            ROWS_ORDER(type, x5, x6);                                                              \
            rows[c] = x0;                                                                          \
            rows[c + FL_ROWS_COLUMNS] = x1;                                                        \
            rows[c + 2 * FL_ROWS_COLUMNS] = x2;                                                    \
            rows[c + 3 * FL_ROWS_COLUMNS] = x3;                                                    \
            rows[c + 4 * FL_ROWS_COLUMNS] = x4;                                                    \
            rows[c + 5 * FL_ROWS_COLUMNS] = x5;                                                    \
            rows[c + 6 * FL_ROWS_COLUMNS] = x6;                                                    \
            rows[c + 7 * FL_ROWS_COLUMNS] = x7;                                                    \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Stages 4, 2 and 1 of rows 0 … 7, after those of the rows before, of which -3 … -1 still \
       lack comparisons of stages 2 and 1. */                                                      \
    static void name##_last(type *rows)                                                            \
    {                                                                                              \
        type *before = rows - 3 * FL_ROWS_COLUMNS;                                                 \
        size_t c;                                                                                  \
                                                                                                   \
        for (c = 0; c < FL_ROWS_COLUMNS; c++) {                                                    \
            type p5 = before[c], p6 = before[c + FL_ROWS_COLUMNS];                                 \
            type p7 = before[c + 2 * FL_ROWS_COLUMNS];                                             \
            type x0 = before[c + 3 * FL_ROWS_COLUMNS], x1 = before[c + 4 * FL_ROWS_COLUMNS];       \
            type x2 = before[c + 5 * FL_ROWS_COLUMNS], x3 = before[c + 6 * FL_ROWS_COLUMNS];       \
            type x4 = before[c + 7 * FL_ROWS_COLUMNS], x5 = before[c + 8 * FL_ROWS_COLUMNS];       \
            type x6 = before[c + 9 * FL_ROWS_COLUMNS], x7 = before[c + 10 * FL_ROWS_COLUMNS];      \
                                                                                                   \
            ROWS_ORDER(type, x0, x4);                                                              \
            ROWS_ORDER(type, x1, x5);                                                              \
            ROWS_ORDER(type, x2, x6);                                                              \
            ROWS_ORDER(type, x3, x7);                                                              \
            ROWS_ORDER(type, p6, x0);                                                              \
            ROWS_ORDER(type, p7, x1);                                                              \
            ROWS_ORDER(type, x2, x4);                                                              \
            ROWS_ORDER(type, x3, x5);                                                              \
            ROWS_ORDER(type, p5, p6);                                                              \
            ROWS_ORDER(type, p7, x0);                                                              \
            ROWS_ORDER(type, x1, x2);                                                              \
            ROWS_ORDER(type, x3, x4);                                                              \
            before[c] = p5;                                                                        \
            before[c + FL_ROWS_COLUMNS] = p6;                                                      \
            before[c + 2 * FL_ROWS_COLUMNS] = p7;                                                  \
            before[c + 3 * FL_ROWS_COLUMNS] = x0;                                                  \
            before[c + 4 * FL_ROWS_COLUMNS] = x1;                                                  \
            before[c + 5 * FL_ROWS_COLUMNS] = x2;                                                  \
            before[c + 6 * FL_ROWS_COLUMNS] = x3;                                                  \
            before[c + 7 * FL_ROWS_COLUMNS] = x4;                                                  \
            before[c + 8 * FL_ROWS_COLUMNS] = x5;                                                  \
            before[c + 9 * FL_ROWS_COLUMNS] = x6;                                                  \
            before[c + 10 * FL_ROWS_COLUMNS] = x7;                                                 \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Merge the sorted runs first … first + p - 1 and first + p … end - 1. */                 \
    static void name##_merge(type *rows, size_t first, size_t end, size_t p)                       \
    {                                                                                              \
        size_t k;                                                                                  \
        size_t at;                                                                                 \
                                                                                                   \
        for (k = p; k > 4; k /= 2) {                                                               \
            name##_stage(rows, first, end, p, k, first);                                           \
        }                                                                                          \
        for (at = first + 4; at + 8 <= end; at += 8) {                                             \
            name##_last(rows + at * FL_ROWS_COLUMNS);                                              \
        }                                                                                          \
        name##_stage(rows, first, end, p, 4, at);                                                  \
        name##_stage(rows, first, end, p, 2, at - 2);                                              \
        name##_stage(rows, first, end, p, 1, at - 3);                                              \
    }                                                                                              \
                                                                                                   \
    static void name(type *rows, size_t m)                                                         \
    {                                                                                              \
        size_t first;                                                                              \
        size_t p;                                                                                  \
        size_t k;                                                                                  \
                                                                                                   \
        for (first = 0; first + 8 <= m; first += 8) {                                              \
            name##_eight(rows + first * FL_ROWS_COLUMNS);                                          \
        }                                                                                          \
        for (p = 1; p < 8; p *= 2) {                                                               \
            size_t at;                                                                             \
                                                                                                   \
            for (at = first; at < m; at += 2 * p) {                                                \
                for (k = p; k > 0; k /= 2) {                                                       \
                    name##_stage(rows, at, at + 2 * p < m ? at + 2 * p : m, p, k, at);             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (p = 8; p < m; p *= 2) {                                                               \
            for (first = 0; first + p < m; first += 2 * p) {                                       \
                name##_merge(rows, first, first + 2 * p < m ? first + 2 * p : m, p);               \
            }                                                                                      \
        }                                                                                          \
    }

ROWS_SORT(rows_kern_sort, float)
ROWS_SORT(rows_kern_sort_wide, double)

/* --- values of a tile --- */

static void rows_kern_load(float *restrict tile, const float *restrict x, size_t row, size_t m,
                           size_t n)
{
    size_t i;
    size_t c;

    for (i = 0; i < m; i++) {
        float *to = tile + i * FL_ROWS_COLUMNS;
        const float *from = x + i * row;

        if (n == FL_ROWS_COLUMNS) {
            for (c = 0; c < FL_ROWS_COLUMNS; c++) {
                to[c] = from[c];
            }
        } else {
            for (c = 0; c < FL_ROWS_COLUMNS; c++) {
                to[c] = c < n ? from[c] : 0;
            }
        }
    }
}

static void rows_kern_widen(double *restrict wide, const float *restrict x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        wide[i] = (double)x[i];
    }
}

/* Registers of columns that are added up at once. */
#define ROWS_WIDE 4

static void rows_kern_mean(double *out, const double *rows, size_t from, size_t to)
{
    size_t c;
    size_t i;
    size_t q;

    for (c = 0; c < FL_ROWS_COLUMNS; c += ROWS_WIDE * ROWS_WIDTH) {
        rows_lanes sum[ROWS_WIDE];

        ROWS_UNROLL for (q = 0; q < ROWS_WIDE; q++)
        {
            sum[q] = (rows_lanes){0};
        }
        for (i = from; i < to; i++) {
            const double *add = rows + i * FL_ROWS_COLUMNS + c;

            ROWS_UNROLL for (q = 0; q < ROWS_WIDE; q++)
            {
                sum[q] += rows_load_wide(add + q * ROWS_WIDTH);
            }
        }
        ROWS_UNROLL for (q = 0; q < ROWS_WIDE; q++)
        {
            rows_store(out + c + q * ROWS_WIDTH, sum[q] / (double)(to - from));
        }
    }
}

/*
 * The nearest ones are adjacent. Beginning with the m - f smallest, the smallest of them is
 * replaced by the next larger one while that is nearer; as the one only gets nearer and the other
 * farther, each of f comparisons can be made by itself. What is in all of these windows is added
 * last.
 */
static void rows_kern_nearest(double *restrict out, double *restrict low, double *restrict high,
                              const double *restrict rows, size_t m, size_t f,
                              const double *restrict middle)
{
    size_t n = m - f;
    size_t k;
    size_t c;

    (void)memset(out, 0, FL_ROWS_COLUMNS * sizeof(*out));
    (void)memcpy(low, rows, FL_ROWS_COLUMNS * sizeof(*low));
    (void)memcpy(high, rows + (n - 1) * FL_ROWS_COLUMNS, FL_ROWS_COLUMNS * sizeof(*high));
    for (k = 0; k < f; k++) {
        const double *here = rows + k * FL_ROWS_COLUMNS;
        const double *next = here + FL_ROWS_COLUMNS;
        const double *there = here + n * FL_ROWS_COLUMNS;

        for (c = 0; c < FL_ROWS_COLUMNS; c++) {
            double x = here[c];
            double y = there[c];
            double after = next[c];
            double below = low[c];
            double above = high[c];
            double limit = middle[c];
            int replaced = limit - x > y - limit;

            out[c] += replaced ? y : x;
            low[c] = replaced ? after : below;
            high[c] = replaced ? y : above;
        }
    }
    for (k = f; k < n; k++) {
        for (c = 0; c < FL_ROWS_COLUMNS; c++) {
            out[c] += rows[k * FL_ROWS_COLUMNS + c];
        }
    }
    for (c = 0; c < FL_ROWS_COLUMNS; c++) {
        out[c] /= (double)n;
    }
}

#define ROWS_BETWEEN(name, type)                                                       \
    static size_t name(const type *x, const double *low, const double *high, size_t n) \
    {                                                                                  \
        int64_t between = 0;                                                           \
        size_t c;                                                                      \
                                                                                       \
        for (c = 0; c < n; c++) {                                                      \
            between += ((double)x[c] >= low[c]) & ((double)x[c] <= high[c]);           \
        }                                                                              \
        return (size_t)between;                                                        \
    }

ROWS_BETWEEN(rows_kern_between, float)
ROWS_BETWEEN(rows_kern_between_wide, double)

#define FL__ROWS_ROW                                                                        \
    {                                                                                       \
        .gram = rows_kern_gram, .sum = rows_kern_sum, .sort = rows_kern_sort,               \
        .sort_wide = rows_kern_sort_wide, .widen = rows_kern_widen, .load = rows_kern_load, \
        .mean = rows_kern_mean, .nearest = rows_kern_nearest, .between = rows_kern_between, \
        .between_wide = rows_kern_between_wide,                                             \
    }

#endif
