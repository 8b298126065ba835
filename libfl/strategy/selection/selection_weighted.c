/*
 * selection: weighted
 *
 * Clients in proportion to their sample counts, without replacement: successive draws, each in
 * proportion to the remaining probabilities (docs/algorithms.md#draws-without-replacement).
 * Implemented in one pass with the exponential keys of Efraimidis and Spirakis, "Weighted random
 * sampling with a reservoir", 2006: key -ln(u)/p, the smallest keys win; the order of the keys is
 * distributed as successive draws are. Inclusion is not proportional to p. Options: none. State:
 * none. Cost: O(n log n) time and 16 n bytes per selection.
 */
#include <math.h>
#include <stdlib.h>

#include "libfl/strategy/selection/selection.h"
#include "libfl/strategy/selection/selection_impl.h"

struct key {
    double key;
    uint32_t index;
};

static int compare_key(const void *a, const void *b)
{
    const struct key *x = a;
    const struct key *y = b;

    if (x->key < y->key) {
        return -1;
    }
    if (x->key > y->key) {
        return 1;
    }
    return (x->index > y->index) - (x->index < y->index);
}

static int weighted_compare_u32(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;

    return (*x > *y) - (*x < *y);
}

int fl__draw_weighted(uint32_t *chosen, const double *p, size_t n, size_t want, struct fl_rng *rng)
{
    struct key *keys;
    size_t n_positive = 0;
    size_t n_zero = 0;
    size_t i;

    FL_REQUIRE(want >= 1 && want <= n);
    keys = malloc(n * sizeof(*keys));
    if (keys == NULL) {
        return FL_ENOMEM;
    }
    /*
     * One random number per candidate, also for those with probability 0, so that a client's
     * number does not depend on the others' probabilities. Candidates with probability 0 are
     * collected at the end.
     */
    for (i = 0; i < n; i++) {
        double u = fl_rng_unit(rng);

        if (p[i] > 0 && isfinite(p[i])) {
            keys[n_positive].key = -log(u) / p[i];
            keys[n_positive++].index = (uint32_t)i;
        } else {
            keys[n - ++n_zero].index = (uint32_t)i;
        }
    }
    qsort(keys, n_positive, sizeof(*keys), compare_key);
    for (i = n_positive; i < want; i++) {
        size_t j = i + (size_t)fl_rng_below(rng, n - i);
        struct key tmp = keys[i];

        keys[i] = keys[j];
        keys[j] = tmp;
    }
    for (i = 0; i < want; i++) {
        chosen[i] = keys[i].index;
    }
    qsort(chosen, want, sizeof(*chosen), weighted_compare_u32);
    free(keys);
    return FL_OK;
}

static int weighted_pick(const struct fl_options *o, const struct fl_select_input *in,
                         struct fl_rng *rng, uint32_t *chosen)
{
    (void)o;
    return fl__draw_weighted(chosen, in->samples, in->n, in->want, rng);
}

const struct fl_selection_ops fl_selection_weighted = {
    .policy =
        {
            .name = "weighted",
            .help = "clients in proportion to their sample counts",
            .source = "successive draws without replacement, p = n_k / sum n",
            .options = fl_opt_none,
        },
    .pick = weighted_pick,
};
