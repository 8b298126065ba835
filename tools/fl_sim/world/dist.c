#include <math.h>
#include <stdlib.h>

#include "tools/fl_sim/world/world_impl.h"

void fl__world_key(struct fl_rng *rng, uint64_t seed, unsigned what, uint64_t client)
{
    fl_rng_key(rng, seed, FL_RNG_WORLD, what, client);
}

void fl__world_key2(struct fl_rng *rng, uint64_t seed, unsigned what, uint64_t client, uint64_t a,
                    uint64_t b)
{
    fl__world_key(rng, seed, what, client);
    fl_rng_key(rng, fl_rng_u64(rng), FL_RNG_WORLD, a, b);
}

void fl__dist_set(struct fl__dist *dist, enum fl__unit_kind unit, double value)
{
    fl__dist_done(dist);
    *dist = (struct fl__dist){.kind = FL__CONSTANT, .unit = unit, .a = value};
}

void fl__dist_done(struct fl__dist *dist)
{
    free(dist->values);
    free(dist->until);
    *dist = (struct fl__dist){0};
}

static double dist_choose(const struct fl__dist *dist, double u)
{
    size_t low = 0;
    size_t high = dist->n - 1;

    u *= dist->until[dist->n - 1];
    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (dist->until[mid] <= u) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return dist->values[low];
}

static double dist_cell(const struct fl__dist *dist, uint64_t seed, uint64_t client)
{
    const struct fl__table *t = dist->table;
    struct fl_rng rng;
    uint64_t row = client;

    if (!dist->in_order) {
        fl__world_key(&rng, seed, FL__DRAW_ROW, client);
        row = fl_rng_below(&rng, t->n_rows);
    }
    return t->cells[row * t->n_columns + dist->column];
}

double fl__dist_draw(const struct fl__dist *dist, uint64_t seed, uint64_t client,
                     struct fl_rng *rng)
{
    double value = dist->a;

    switch (dist->kind) {
    case FL__CONSTANT:
        return value;
    case FL__UNIFORM:
        value += (dist->b - dist->a) * fl_rng_unit(rng);
        break;
    case FL__LOGNORMAL:
        value *= exp(dist->b * fl_rng_normal(rng));
        break;
    case FL__EXPONENTIAL:
        value *= -log(fl_rng_unit(rng));
        break;
    case FL__CHOICE:
        return dist_choose(dist, fl_rng_unit(rng));
    case FL__COLUMN:
        return dist_cell(dist, seed, client);
    }
    return fl__within(dist->unit, value);
}
