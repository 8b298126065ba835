/* Synthetic(alpha, beta) is bit for bit the set that numpy's legacy generator makes. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "libfl/data/numpy_rng.h"
#include "libfl/data/synthetic.h"
#include "tests/lib/suites.h"

/* The published sizes. */
static const size_t published[100] = {
    9545, 855,  2180, 24380, 11685, 285,  2075, 450,  470, 870,   610,   5250, 1500, 595,   910,
    780,  5665, 430,  760,   295,   250,  1255, 1785, 310, 25810, 260,   545,  435,  6100,  5405,
    620,  830,  295,  255,   385,   620,  3445, 3270, 375, 395,   280,   265,  255,  13755, 345,
    360,  270,  1540, 260,   425,   295,  840,  345,  275, 505,   890,   560,  745,  325,   380,
    320,  380,  300,  255,   635,   370,  260,  935,  290, 550,   1420,  600,  2915, 270,   860,
    315,  295,  335,  395,   555,   275,  1900, 940,  260, 5605,  12350, 3130, 440,  280,   2495,
    370,  3395, 660,  2175,  805,   1370, 525,  9960, 600, 855};

static struct fl_synthetic *make(size_t n_clients, double alpha, double beta, uint64_t seed)
{
    struct fl_synthetic_conf conf = {
        .n_clients = n_clients, .alpha = alpha, .beta = beta, .seed = seed};
    struct fl_synthetic *gen = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_synthetic_create(&conf, &gen, &err) == FL_OK, "%s", err.msg);
    return gen;
}

TEST(the_stream_is_that_of_mt19937)
{
    struct fl_numpy_rng rng;
    uint32_t x = 0;
    int i;

    /* The C++ standard, [rand.predef]: the 10000th number of mt19937 with seed 5489. */
    fl_numpy_rng_seed(&rng, 5489);
    for (i = 0; i < 10000; i++) {
        x = fl_numpy_rng_u32(&rng);
    }
    ck_assert_uint_eq(x, 4123659995u);
}

TEST(the_first_numbers_are_those_of_numpy)
{
    struct fl_numpy_rng rng;

    fl_numpy_rng_seed(&rng, 0);
    ck_assert_double_eq_tol(fl_numpy_rng_unit(&rng), 0.5488135039273248, 1e-15);
    fl_numpy_rng_seed(&rng, 0);
    ck_assert_double_eq_tol(fl_numpy_rng_normal(&rng), 1.764052345967664, 1e-15);
    ck_assert_double_eq_tol(fl_numpy_rng_normal(&rng), 0.4001572083672233, 1e-15);
}

TEST(the_hundred_sizes_are_the_published_ones)
{
    struct fl_synthetic *gen = make(100, 0.5, 0.5, 0);
    size_t least = SIZE_MAX;
    size_t most = 0;
    size_t total = 0;
    size_t k;

    for (k = 0; k < 100; k++) {
        size_t n = fl_synthetic_size(gen, k);

        ck_assert_uint_eq(n, published[k]);
        least = n < least ? n : least;
        most = n > most ? n : most;
        total += n;
    }
    ck_assert_uint_eq(least, 250);
    ck_assert_uint_eq(most, 25810);
    ck_assert_uint_eq(total, 205795);
    fl_synthetic_free(gen);
}

/*
 * The first feature, the last feature and the label histogram of two clients, from numpy 1.24:
 *   rng = numpy.random.RandomState(0), the draws of synthetic.c in their order, with
 *   multivariate_normal(mu, diag(j ** -1.2), n) for the features.
 */
TEST(features_and_labels_are_those_of_numpy)
{
    static const struct {
        size_t n;
        double first, last;
        size_t counts[10];
    } want[2] = {
        {9545, -0.17788087799374597, 0.41738693213051259, {9352, 187, 0, 0, 0, 0, 6, 0, 0, 0}},
        {855, -0.68624212386575489, 1.5677825320381498, {0, 0, 855, 0, 0, 0, 0, 0, 0, 0}}};
    struct fl_synthetic *gen = make(100, 0.5, 0.5, 0);
    struct fl_dataset *ds = NULL;
    size_t counts[10];
    size_t k;

    for (k = 0; k < 2; k++) {
        const float *x;

        ck_assert_int_eq(fl_synthetic_next(gen, &ds, NULL), FL_OK);
        ck_assert_uint_eq(ds->n, want[k].n);
        ck_assert_uint_eq(ds->dim, 60);
        ck_assert_uint_eq(ds->classes, 10);
        x = ds->x;
        ck_assert_double_eq_tol((double)x[0], want[k].first, 1e-6);
        ck_assert_double_eq_tol((double)x[ds->n * 60 - 1], want[k].last, 1e-6);
        fl_dataset_histogram(ds, counts);
        ck_assert_mem_eq(counts, want[k].counts, sizeof(counts));
        fl_dataset_free(ds);
    }
    fl_synthetic_free(gen);
}

TEST(clients_come_in_order_and_then_end)
{
    struct fl_synthetic *gen = make(3, 1.0, 1.0, 7);
    struct fl_dataset *ds = NULL;
    struct fl_err err = {0};
    size_t k;

    for (k = 0; k < 3; k++) {
        ck_assert_int_eq(fl_synthetic_next(gen, &ds, &err), FL_OK);
        ck_assert_uint_eq(ds->n, fl_synthetic_size(gen, k));
        fl_dataset_free(ds);
    }
    ck_assert_int_eq(fl_synthetic_next(gen, &ds, &err), FL_ENOENT);
    fl_synthetic_free(gen);
}

TEST(a_conf_that_cannot_be_is_refused)
{
    struct fl_synthetic_conf conf = {.n_clients = 0, .alpha = 0.5, .beta = 0.5};
    struct fl_synthetic *gen = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_synthetic_create(&conf, &gen, &err), FL_ERANGE);
    ck_assert_str_eq(err.msg, "expected 1 to 10000 clients, found 0");
    conf.n_clients = 1;
    conf.alpha = (double)NAN;
    ck_assert_int_eq(fl_synthetic_create(&conf, &gen, &err), FL_ERANGE);
    conf.alpha = 0.0;
    conf.seed = UINT64_C(1) << 32;
    ck_assert_int_eq(fl_synthetic_create(&conf, &gen, &err), FL_ERANGE);
    ck_assert_str_eq(err.msg, "expected a seed below 2^32, found 4294967296");
    ck_assert_ptr_null(gen);
    fl_synthetic_free(NULL);
}
