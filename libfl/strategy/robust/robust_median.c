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
#include <string.h>

#include "libfl/strategy/robust/robust_impl.h"

struct options {
    struct fl_robust_common common;
};

static const struct fl_opt_spec options[] = {
    FL__ROBUST_OPTIONS(struct options),
    FL_OPT_END_OF(struct options),
};

static const double *tile_row(const struct fl_robust_tile *t, size_t row)
{
    return t->rows + row * FL_ROBUST_TILE;
}

/* The mean of rows from … to - 1, and that these were used. */
static void tile_mean(const struct fl_robust_tile *t, size_t from, size_t to)
{
    fl_rows_mean(t->out, t->rows, from, to);
    (void)memcpy(t->low, tile_row(t, from), FL_ROBUST_TILE * sizeof(*t->low));
    (void)memcpy(t->high, tile_row(t, to - 1), FL_ROBUST_TILE * sizeof(*t->high));
}

static void tile_median(const struct fl_robust_tile *t)
{
    tile_mean(t, (t->n_rows - 1) / 2, t->n_rows / 2 + 1);
}

static void median_combine(const struct fl_options *o, const struct fl_robust_tile *t)
{
    (void)o;
    tile_median(t);
}

static void trimmed_combine(const struct fl_options *o, const struct fl_robust_tile *t)
{
    size_t f = fl__robust_bound_f(o, t->n_rows);

    tile_mean(t, f, t->n_rows - f);
}

static void meamed_combine(const struct fl_options *o, const struct fl_robust_tile *t)
{
    double median[FL_ROBUST_TILE];

    tile_median(t);
    (void)memcpy(median, t->out, sizeof(median));
    fl_rows_nearest(t->out, t->low, t->high, t->rows, t->n_rows, fl__robust_bound_f(o, t->n_rows),
                    median);
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
