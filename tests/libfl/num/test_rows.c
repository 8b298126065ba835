/* libfl/num/rows.h: columns sorted, and inner products of all pairs, the same on every processor.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/rows.h"
#include "libfl/num/rows_kern.h"
#include "tests/lib/suites.h"

enum { COLUMNS = FL_ROWS_COLUMNS, MOST = 140 };

static int rows_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double *rows_drawn(size_t m, size_t columns)
{
    double *x = calloc(m * columns + 1, sizeof(*x));
    struct fl_rng rng;
    size_t i;

    ck_assert_ptr_nonnull(x);
    fl_rng_key(&rng, 5, FL_RNG_TEST, 1, m);
    for (i = 0; i < m * columns; i++) {
        /* Ties in the first columns. */
        x[i] = i % columns < 3 ? (double)fl_rng_below(&rng, 4) : (double)(float)fl_rng_normal(&rng);
    }
    return x;
}

static void assert_sorted(const double *x, const double *given, size_t m)
{
    double column[MOST];
    size_t i;
    size_t c;

    for (c = 0; c < COLUMNS; c++) {
        for (i = 0; i < m; i++) {
            column[i] = given[i * COLUMNS + c];
        }
        qsort(column, m, sizeof(*column), rows_compare);
        for (i = 0; i < m; i++) {
            ck_assert(x[i * COLUMNS + c] == column[i]);
        }
    }
}

/* Kernels that this processor has. */
static size_t kernels(const struct fl__rows_kern **ret)
{
    size_t n = 0;

    ret[n++] = &fl__rows_plain;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        ret[n++] = &fl__rows_avx2;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma")) {
        ret[n++] = &fl__rows_avx512;
    }
#endif
    return n;
}

TEST_EACH(columns_of_any_number_of_rows_are_sorted_by_every_kernel, MOST)
{
    size_t m = (size_t)_i;
    double *given = rows_drawn(m, COLUMNS);
    const struct fl__rows_kern *all[3];
    size_t n = kernels(all);
    size_t k;
    size_t i;

    for (k = 0; k < n; k++) {
        double *wide = rows_drawn(m, COLUMNS);
        float *narrow = calloc(m * COLUMNS + 1, sizeof(*narrow));

        ck_assert_ptr_nonnull(narrow);
        for (i = 0; i < m * COLUMNS; i++) {
            narrow[i] = (float)given[i];
        }
        all[k]->sort_wide(wide, m);
        assert_sorted(wide, given, m);
        all[k]->sort(narrow, m);
        for (i = 0; i < m * COLUMNS; i++) {
            ck_assert(narrow[i] == (float)wide[i]);
        }
        free(wide);
        free(narrow);
    }
    free(given);
}

/* Sums of fl_vec_dot() over floats, on any processor and for edges of tiles. */
TEST_EACH(inner_products_of_all_pairs_are_those_of_one_pair_bit_for_bit, 12)
{
    size_t m = (size_t)_i + 1;
    size_t columns = FL_ROWS_STEP * (1 + (size_t)_i * 3);
    double *x = rows_drawn(m, columns);
    float *narrow = calloc(m * columns, sizeof(*narrow));
    const struct fl__rows_kern *all[3];
    size_t n = kernels(all);
    size_t k, i, j;

    ck_assert_ptr_nonnull(narrow);
    for (i = 0; i < m * columns; i++) {
        narrow[i] = (float)x[i];
    }
    for (k = 0; k < n; k++) {
        double gram[12 * 13] = {0};

        for (i = 0; i < m * 13; i++) {
            gram[i] = 0.5;
        }
        all[k]->gram(gram, 13, narrow, columns, m, columns);
        for (i = 0; i < m; i++) {
            for (j = 0; j < 13; j++) {
                double dot =
                    j <= i ? fl_vec_dot(narrow + i * columns, narrow + j * columns, columns) : 0;

                ck_assert(gram[i * 13 + j] == 0.5 + dot);
            }
        }
    }
    free(x);
    free(narrow);
}

/* Of any numbers of sums and rows, in the order that rows.h states. */
TEST_EACH(sums_of_some_rows_are_added_group_by_group_by_every_kernel, 60)
{
    size_t m = (size_t)_i % 12 + 1;
    size_t rows = 1 + (size_t)_i;
    size_t n_groups = fl_rows_groups(rows);
    double *x = rows_drawn(rows, COLUMNS);
    float *narrow = calloc(rows * COLUMNS, sizeof(*narrow));
    const struct fl__rows_kern *all[3];
    size_t n = kernels(all);
    uint8_t groups[12 * 15] = {0};
    double sums[12 * COLUMNS];
    size_t k, a, i, c;

    ck_assert_ptr_nonnull(narrow);
    for (i = 0; i < rows * COLUMNS; i++) {
        narrow[i] = (float)x[i];
    }
    for (a = 0; a < m; a++) {
        for (i = 0; i < rows; i++) {
            groups[a * n_groups + i / FL_ROWS_GROUP] |=
                (uint8_t)((unsigned)((a * 5 + i * 3) % 4 != 0) << i % FL_ROWS_GROUP);
        }
    }
    for (k = 0; k < n; k++) {
        all[k]->sum(sums, groups, m, narrow, rows);
        for (a = 0; a < m; a++) {
            for (c = 0; c < COLUMNS; c++) {
                double want = 0;
                double group = 0;

                for (i = 0; i < rows; i++) {
                    group += (a * 5 + i * 3) % 4 != 0 ? x[i * COLUMNS + c] : 0;
                    if (i % FL_ROWS_GROUP == FL_ROWS_GROUP - 1 || i + 1 == rows) {
                        want += group;
                        group = 0;
                    }
                }
                ck_assert(sums[a * COLUMNS + c] == want);
            }
        }
    }
    free(x);
    free(narrow);
}

/* Against the definition: leave out the farther end, of equal ones the larger, f times. */
TEST_EACH(the_values_nearest_to_the_middle_one_are_found_by_every_kernel, 30)
{
    size_t m = (size_t)_i + 1;
    size_t f = (m - 1) / 2 < 1 + (size_t)_i % 7 ? (m - 1) / 2 : 1 + (size_t)_i % 7;
    double *x = rows_drawn(m, COLUMNS);
    const struct fl__rows_kern *all[3];
    size_t n = kernels(all);
    double middle[COLUMNS], out[COLUMNS], low[COLUMNS], high[COLUMNS];
    size_t k, i, c;

    all[0]->sort_wide(x, m);
    all[0]->mean(middle, x, (m - 1) / 2, m / 2 + 1);
    for (k = 0; k < n; k++) {
        all[k]->nearest(out, low, high, x, m, f, middle);
        for (c = 0; c < COLUMNS; c++) {
            size_t from = 0;
            size_t to = m;
            double mean = 0;
            size_t between = 0;

            while (to - from > m - f) {
                if (middle[c] - x[from * COLUMNS + c] > x[(to - 1) * COLUMNS + c] - middle[c]) {
                    from++;
                } else {
                    to--;
                }
            }
            ck_assert(low[c] == x[from * COLUMNS + c]);
            ck_assert(high[c] == x[(to - 1) * COLUMNS + c]);
            for (i = 0; i < m; i++) {
                mean += i >= from && i < to ? x[i * COLUMNS + c] / (double)(m - f) : 0;
                between += all[k]->between_wide(x + i * COLUMNS + c, low + c, high + c, 1);
            }
            ck_assert_double_eq_tol(out[c], mean, 1e-12);
            ck_assert_uint_ge(between, m - f);
        }
    }
    free(x);
}

/* The same bits with every kernel, of values and of counts. */
TEST_EACH(means_and_counts_are_the_same_with_every_kernel, 12)
{
    size_t m = (size_t)_i * 3 + 1;
    double *x = rows_drawn(m, COLUMNS);
    float narrow[COLUMNS];
    const struct fl__rows_kern *all[3];
    size_t n = kernels(all);
    double first[COLUMNS], out[COLUMNS];
    size_t k, c, i;

    for (c = 0; c < COLUMNS; c++) {
        narrow[c] = (float)x[c];
    }
    for (k = 0; k < n; k++) {
        size_t between = 0;

        all[k]->mean(k == 0 ? first : out, x, m / 4, m);
        ck_assert(k == 0 || memcmp(first, out, sizeof(out)) == 0);
        for (c = 0; c < COLUMNS; c++) {
            double mean = 0;

            for (i = m / 4; i < m; i++) {
                mean += x[i * COLUMNS + c];
            }
            ck_assert(first[c] == mean / (double)(m - m / 4));
            between += narrow[c] <= (float)first[c] && narrow[c] >= -1;
        }
        for (c = 0; c < COLUMNS; c++) {
            out[c] = -1;
            first[c] = (double)(float)first[c];
        }
        ck_assert_uint_eq(all[k]->between(narrow, out, first, COLUMNS), between);
        all[k]->widen(out, narrow, COLUMNS);
        for (c = 0; c < COLUMNS; c++) {
            ck_assert(out[c] == (double)narrow[c]);
        }
        all[k]->mean(first, x, m / 4, m);
    }
    free(x);
}
