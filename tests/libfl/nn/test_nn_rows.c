#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/nn/net.h"
#include "libfl/num/kernels_impl.h"
#include "tests/lib/suites.h"

/* What leaves a network does not depend on whose kernels compute in it. */

static const char *const all_kinds[] = {
    "conv 32 3x3 pad 1",
    "bn",
    "relu",
    "maxpool 2",
    "lrn",
    "conv 48 5x5 pad 2",
    "relu",
    "bn",
    "dropout 0.5",
    "conv 16 1x1",
    "relu",
    "conv 7 3x3 stride 2",
    "flatten",
    "relu",
    "dense 40",
    "relu",
    "dense 10",
};

static size_t n_presets(void)
{
    size_t n = 0;

    while (fl_net_presets()[n] != NULL) {
        n++;
    }
    return n;
}

static struct fl_net_spec spec_of(size_t i)
{
    struct fl_net_spec spec = {.input = {3, 10, 14}, .n_input = 3, .layers = all_kinds};

    spec.n_layers = sizeof(all_kinds) / sizeof(all_kinds[0]);
    if (i < n_presets()) {
        ck_assert_int_eq(fl_net_preset(fl_net_presets()[i], &spec, NULL), FL_OK);
    }
    return spec;
}

static struct fl_net *make(const struct fl_net_spec *spec, const char *row)
{
    struct fl_net_spec forced = *spec;
    struct fl_net *net = NULL;
    struct fl_err err = {0};
    struct fl_rng rng;

    if (fl_kernels_named(row, &forced.kernels, &err) != FL_OK) {
        return NULL;
    }
    ck_assert_msg(fl_net_create(&forced, 2, &net, &err) == FL_OK, "%s: %s", row, err.msg);
    fl_rng_key(&rng, 11, FL_RNG_INIT, 0, 0);
    fl_net_init(net, &rng);
    return net;
}

static float *floats(size_t n)
{
    float *p = calloc(n, sizeof(*p));

    ck_assert_ptr_nonnull(p);
    return p;
}

static void check_row(const struct fl_net_spec *spec, const struct fl_net *reference,
                      const char *row)
{
    struct fl_net *net = make(spec, row);
    const struct fl_layout *layout = fl_net_layout(reference);
    size_t n = fl_layout_count(layout);
    float *want = floats(n);
    float *found = floats(n);
    size_t i;

    if (net != NULL) {
        ck_assert(fl_layout_equal(layout, fl_net_layout(net)));
        fl_net_get(reference, want);
        fl_net_get(net, found);
        ck_assert_msg(memcmp(want, found, n * sizeof(*want)) == 0, "%s: another first model", row);
        for (i = 0; i < n; i++) {
            want[i] = (float)i; /* Each its own, exact below 2^24. */
        }
        fl_net_set(net, want);
        (void)memset(found, 0, n * sizeof(*found));
        fl_net_get(net, found);
        ck_assert_msg(memcmp(want, found, n * sizeof(*want)) == 0, "%s: another order", row);
    }
    free(want);
    free(found);
    fl_net_free(net);
}

TEST_EACH(a_seed_gives_the_same_exported_model_under_every_row_and_each_keeps_the_exported_order,
          (int)n_presets() + 1)
{
    const struct fl_net_spec spec = spec_of((size_t)_i);
    struct fl_net *reference = make(&spec, "reference");
    size_t i;

    ck_assert_ptr_nonnull(reference);
    for (i = 0; fl_kernels_names[i] != NULL; i++) {
        check_row(&spec, reference, fl_kernels_names[i]);
    }
    fl_net_free(reference);
}

TEST(each_name_is_a_row_or_refused_with_those_that_would_do)
{
    const struct fl_kernels *best = fl_kernels_best();
    size_t n = 0;
    size_t i;

    ck_assert_str_eq(fl_kernels_names[0], "auto");
    for (i = 1; fl_kernels_names[i] != NULL; i++) {
        const struct fl_kernels *row = fl__kernels_row(i - 1);
        const struct fl_kernels *found = NULL;
        struct fl_err err = {0};
        int rv = fl_kernels_named(fl_kernels_names[i], &found, &err);

        ck_assert_str_eq(fl_kernels_name(row), fl_kernels_names[i]);
        if (row->supported()) {
            ck_assert_msg(rv == FL_OK && found == row, "%s", err.msg);
            n++;
        } else {
            ck_assert_int_eq(rv, FL_ECONF);
            ck_assert_ptr_null(found);
            ck_assert_ptr_nonnull(strstr(err.msg, fl_kernels_names[i]));
            ck_assert_ptr_nonnull(strstr(err.msg, "supported: auto, "));
        }
    }
    ck_assert_uint_ge(n, 2); /* portable and reference */
    ck_assert_ptr_null(fl__kernels_row(i - 1));
    ck_assert_int_eq(fl_kernels_named("auto", &best, NULL), FL_OK);
    ck_assert_ptr_eq(best, fl_kernels_best());
}

TEST(a_name_that_is_none_gets_the_nearest_one)
{
    const struct fl_kernels *found = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_kernels_named("portabel", &found, &err), FL_ECONF);
    ck_assert_ptr_null(found);
    ck_assert_ptr_nonnull(strstr(err.msg, "'portabel', did you mean 'portable'?"));
    ck_assert_ptr_nonnull(strstr(err.msg, fl_kernels_name(fl_kernels_best())));
}
