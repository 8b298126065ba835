/* libfl/num/rows.h: columns sorted, and inner products of all pairs, the same on every processor.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/rows.h"
#include "libfl/num/rows_kern.h"
#include "tests/lib/suites.h"

enum { COLUMNS = FL_ROWS_COLUMNS, MOST = 70 };

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
        all[k]->gram(gram, 13, x, m, columns);
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

/* Of any numbers of sums and rows, edges of tiles included, in rising order of the rows. */
TEST_EACH(sums_of_some_rows_are_added_in_their_order_by_every_kernel, 12)
{
    size_t m = (size_t)_i + 1;
    size_t rows = 1 + (size_t)(_i * 7) % 12;
    double *x = rows_drawn(rows, COLUMNS);
    const struct fl__rows_kern *all[3];
    size_t n = kernels(all);
    double members[12 * 12];
    double sums[12 * COLUMNS];
    size_t k, a, i, c;

    for (a = 0; a < m; a++) {
        for (i = 0; i < rows; i++) {
            members[a * rows + i] = (a * 5 + i * 3) % 4 != 0;
        }
    }
    for (k = 0; k < n; k++) {
        all[k]->sum(sums, members, m, x, rows);
        for (a = 0; a < m; a++) {
            for (c = 0; c < COLUMNS; c++) {
                double want = 0;

                for (i = 0; i < rows; i++) {
                    want += members[a * rows + i] > 0 ? x[i * COLUMNS + c] : 0;
                }
                ck_assert(sums[a * COLUMNS + c] == want);
            }
        }
    }
    free(x);
}
