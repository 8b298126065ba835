/*
 * Robust rules by entries, each over the n values of an entry
 * (docs/algorithms.md#robust-aggregation):
 *
 *     median         the middle value, of an even number the mean of both
 *     trimmed_mean   the mean without the f smallest and the f largest (Yin et al. 2018)
 *     meamed         the mean of the n - f values nearest to the median (Xie, Koyejo, Gupta 2018);
 *                    of two equally near ones the smaller is taken
 *
 * Weights by samples have no effect. Cost: the values of an entry are sorted, O(n log^2 n).
 */
#include "libfl/strategy/robust/robust_impl.h"

struct options {
    struct fl_robust_common common;
};

static const struct fl_opt_spec options[] = {
    FL__ROBUST_OPTIONS(struct options),
    FL_OPT_END_OF(struct options),
};

static double tile_at(const struct fl_robust_tile *t, size_t row, size_t c)
{
    return t->rows[row * FL_ROBUST_TILE + c];
}

/* The mean of rows from … to - 1, and that these were used. */
static void tile_mean(const struct fl_robust_tile *t, size_t from, size_t to, size_t c)
{
    double sum = 0;
    size_t i;

    for (i = from; i < to; i++) {
        sum += tile_at(t, i, c);
    }
    t->out[c] = sum / (double)(to - from);
    t->low[c] = tile_at(t, from, c);
    t->high[c] = tile_at(t, to - 1, c);
}

static void median_combine(const struct fl_options *o, const struct fl_robust_tile *t)
{
    size_t c;

    (void)o;
    for (c = 0; c < t->n; c++) {
        tile_mean(t, (t->n_rows - 1) / 2, t->n_rows / 2 + 1, c);
    }
}

static void trimmed_combine(const struct fl_options *o, const struct fl_robust_tile *t)
{
    size_t f = fl__robust_bound_f(o, t->n_rows);
    size_t c;

    for (c = 0; c < t->n; c++) {
        tile_mean(t, f, t->n_rows - f, c);
    }
}

static void meamed_combine(const struct fl_options *o, const struct fl_robust_tile *t)
{
    size_t f = fl__robust_bound_f(o, t->n_rows);
    size_t c;

    for (c = 0; c < t->n; c++) {
        double median = (tile_at(t, (t->n_rows - 1) / 2, c) + tile_at(t, t->n_rows / 2, c)) / 2;
        size_t from = 0;
        size_t to = t->n_rows;

        /* The f farthest ones are at the ends of the sorted values. */
        while (to - from > t->n_rows - f) {
            if (median - tile_at(t, from, c) > tile_at(t, to - 1, c) - median) {
                from++;
            } else {
                to--;
            }
        }
        tile_mean(t, from, to, c);
    }
}

const struct fl_robust_ops fl_robust_median = {
    .policy = {.name = "median",
               .help = "median of each entry",
               .source = "Yin et al. 2018",
               .options = options},
    .needs = fl__robust_majority,
    .combine = median_combine,
};

const struct fl_robust_ops fl_robust_trimmed_mean = {
    .policy = {.name = "trimmed_mean",
               .help = "mean of each entry without the f smallest and f largest values",
               .source = "Yin et al. 2018",
               .options = options},
    .needs = fl__robust_majority,
    .combine = trimmed_combine,
};

const struct fl_robust_ops fl_robust_meamed = {
    .policy = {.name = "meamed",
               .help = "mean of the n - f values of each entry nearest to its median",
               .source = "Xie, Koyejo, Gupta 2018",
               .options = options},
    .needs = fl__robust_majority,
    .combine = meamed_combine,
};
