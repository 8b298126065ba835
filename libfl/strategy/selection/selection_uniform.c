/*
 * selection: uniform
 *
 * Every candidate with the same probability, without replacement: partial Fisher-Yates. Used by
 * FedAvg, FedLDF, IGFL and FedMCSA. Options: none. State: none. Cost: O(n) time and 4 n bytes per
 * selection.
 */
#include <stdlib.h>

#include "libfl/strategy/selection/selection.h"
#include "libfl/strategy/selection/selection_impl.h"

static int uniform_compare_u32(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;

    return (*x > *y) - (*x < *y);
}

void fl__draw_uniform(uint32_t *chosen, uint32_t *scratch, size_t n, size_t want,
                      struct fl_rng *rng)
{
    size_t i;

    FL_REQUIRE(want <= n);
    for (i = 0; i < n; i++) {
        scratch[i] = (uint32_t)i;
    }
    for (i = 0; i < want; i++) {
        size_t j = i + (size_t)fl_rng_below(rng, n - i);
        uint32_t tmp = scratch[i];

        scratch[i] = scratch[j];
        scratch[j] = tmp;
        chosen[i] = scratch[i];
    }
    qsort(chosen, want, sizeof(*chosen), uniform_compare_u32);
}

static int uniform_pick(const struct fl_options *o, const struct fl_select_input *in,
                        struct fl_rng *rng, uint32_t *chosen)
{
    uint32_t *scratch;

    (void)o;
    FL_REQUIRE(in->want >= 1 && in->want <= in->n);
    scratch = malloc(in->n * sizeof(*scratch));
    if (scratch == NULL) {
        return FL_ENOMEM;
    }
    fl__draw_uniform(chosen, scratch, in->n, in->want, rng);
    free(scratch);
    return FL_OK;
}

const struct fl_selection_ops fl_selection_uniform = {
    .policy =
        {
            .name = "uniform",
            .help = "every client with the same probability",
            .source = "FedAvg",
            .options = fl_opt_none,
        },
    .pick = uniform_pick,
};
