/*
 * aggregate: heur_fedamp, fedamp (attentive message passing: Yutao Huang et al. 2021)
 *
 * Both average whole personalized models, u_i = sum_j xi_ij w_j.
 *
 *     heur_fedamp  xi_ij = (1 - xi_ii) e_ij / sum_{h != i} e_ih,  e_ij = exp(sigma cos(w_i, w_j))
 *     fedamp       xi_ij = alpha exp(-||w_i - w_j||^2 / sigma) / sigma,  xi_ii = 1 - sum
 *
 * for j != i. heur_fedamp gives xi_ii = self_weight; the cosine with a zero model is 0. In fedamp
 * xi_ii must not be below 0: where the others sum to more than 1 they are scaled to 1 and xi_ii is
 * 0. alpha 0 stands for sigma / S, the largest value with which no personalized model has a larger
 * share of another model than the mean has. A single sender gets its own model back.
 *
 * Options: sigma, self_weight; alpha, sigma. State: none.
 */
#include <math.h>
#include <string.h>

#include "libfl/strategy/aggregator/aggregate_impl.h"

struct heur_options {
    double sigma, self_weight;
};

struct amp_options {
    double sigma, alpha;
};

static enum fl_agg_scope fedamp_scope(const struct fl_options *o)
{
    (void)o;
    return FL_SCOPE_MODEL;
}

/* Compute xi_ii from the sum of the other entries of the row. */
static void fedamp_close_row(double *row, size_t n, size_t i)
{
    double sum = 0;
    size_t j;

    row[i] = 0;
    for (j = 0; j < n; j++) {
        sum += row[j];
    }
    for (j = 0; sum > 1 && j < n; j++) {
        row[j] /= sum;
    }
    row[i] = sum < 1 ? 1 - sum : 0;
}

static void fedamp_attend_heur(const struct fl_options *o, const struct fl_attention *in,
                               double *out)
{
    const struct heur_options *v = fl_options_values(o);
    double sigma = v->sigma;
    double self = v->self_weight;
    size_t n = in->n;
    size_t i;
    size_t j;

    /* The option's range has no negative values, so this tests for 0. */
    self = self > 0 ? self : 1 / (double)n;
    for (i = 0; i < n; i++) {
        double *row = out + i * n;

        for (j = 0; j < n; j++) {
            /* The lowest possible score: its exp() is 0. */
            row[j] = j == i ? -HUGE_VAL : sigma * fl__agg_cosine(in, i, j);
        }
        fl__softmax(row, n);
        for (j = 0; j < n; j++) {
            row[j] *= 1 - self;
        }
        fedamp_close_row(row, n, i);
    }
}

static void fedamp_attend_amp(const struct fl_options *o, const struct fl_attention *in,
                              double *out)
{
    const struct amp_options *v = fl_options_values(o);
    double sigma = v->sigma;
    double alpha = v->alpha;
    size_t n = in->n;
    size_t i;
    size_t j;

    alpha = alpha > 0 ? alpha : sigma / (double)n;
    for (i = 0; i < n; i++) {
        double *row = out + i * n;

        for (j = 0; j < n; j++) {
            double distance_sq =
                in->gram[i * n + i] + in->gram[j * n + j] - 2 * in->gram[i * n + j];

            /* Rounding can make it negative for equal models. */
            row[j] = alpha / sigma * exp(-fmax(distance_sq, 0) / sigma);
        }
        fedamp_close_row(row, n, i);
    }
}

static const struct fl_opt_spec heur_options[] = {
    {FL_OPT(struct heur_options, FLOAT, sigma), .def = "50", .min = 0, .max = 1e6,
     .help = "How much more similar models weigh than others; 0: all weigh the same."},
    {FL_OPT(struct heur_options, FLOAT, self_weight), .def = "0", .min = 0, .max = 1,
     .help = "Share of a client's own model in its personalized model; 0: one over the number of "
             "senders."},
    FL_OPT_END_OF(struct heur_options),
};

const struct fl_aggregate_ops fl_aggregate_heur_fedamp = {
    .policy =
        {
            .name = "heur_fedamp",
            .help = "personalized models, averaged with the most similar ones (cosine)",
            .source = "HeurFedAMP",
            .options = heur_options,
        },
    .scope = fedamp_scope,
    .attend = fedamp_attend_heur,
    .mixes = true,
};

static const struct fl_opt_spec amp_options[] = {
    {FL_OPT(struct amp_options, FLOAT, sigma), .def = "1", .min = 1e-9, .max = 1e9,
     .help = "Squared distance of two models at which their mutual weight falls to 1/e."},
    {FL_OPT(struct amp_options, FLOAT, alpha), .def = "0", .min = 0, .max = 1e9,
     .help = "Strength of the attraction; 0: sigma over the number of senders."},
    FL_OPT_END_OF(struct amp_options),
};

const struct fl_aggregate_ops fl_aggregate_fedamp = {
    .policy =
        {
            .name = "fedamp",
            .help = "personalized models, averaged with the nearest ones (distance)",
            .source = "FedAMP",
            .options = amp_options,
        },
    .scope = fedamp_scope,
    .attend = fedamp_attend_amp,
    .mixes = true,
};
