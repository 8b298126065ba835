/*
 * aggregate: igfl_s (IGFL-S, attention-based averaging: IGFL, eq. 11, Algorithm 3)
 *
 *     self     alpha_ij = softmax_j(kappa <Delta_i, Delta_j>),  w_j = (1/S) sum_i alpha_ij
 *     global   w = softmax_j(kappa <Dbar, Delta_j>),  Dbar the plain mean
 *     time     w = softmax_j(kappa <Delta_j of its last round, Delta_j>)
 *     theta   += server_lr sum_j w_j Delta_j
 *
 * over the whole model, per unit under partial uploads. Buffers take the same weights. The paper
 * uses raw inner products: their spread grows with the updates' squared norms, so weights go from
 * near uniform to winner-take-all; `scale` limits this. Under partial uploads `time` has one inner
 * product for all units of a client, that of the whole updates.
 *
 * `time` as printed (option III) divides by a sum that depends on j, so its weights do not sum to
 * 1, and it needs every client's last update on the server; here they are normalised and clients
 * report one number.
 *
 * With share_cap no weight is above share_cap / n, with weight_samples share_cap n_k / sum n
 * (docs/algorithms.md#the-share-of-one-client).
 *
 * Options: attention, kappa, scale, weight_samples, server_lr. State: none on the server; with
 * `time` each client keeps its last update. A client without one has score 0. Equal updates, kappa
 * 0 and the first round of `time` are the plain mean.
 */
#include <math.h>
#include <string.h>

#include "libfl/strategy/aggregator/aggregate_impl.h"

enum attention { SELF, GLOBAL, TIME };
enum scale { RAW, INV_SQRT_D, COSINE };

struct options {
    struct fl__agg_common common;
    enum attention attention;
    double kappa;
    enum scale scale;
    bool weight_samples;
};

/* The factor of all scores of a component. */
static double igfl_s_kappa(const struct options *v, size_t entries)
{
    return v->scale == INV_SQRT_D ? v->kappa / sqrt((double)entries) : v->kappa;
}

static double igfl_s_similarity(const struct fl_attention *in, bool cosine, size_t i, size_t j)
{
    return cosine ? fl__agg_cosine(in, i, j) : in->gram[i * in->n + j];
}

/* Row i of alpha, added to out. */
static void igfl_s_add_row(const struct fl_attention *in, double kappa, bool cosine, size_t i,
                           double *out)
{
    double max = kappa * igfl_s_similarity(in, cosine, i, 0);
    double sum = 0;
    size_t j;

    for (j = 1; j < in->n; j++) {
        max = fmax(max, kappa * igfl_s_similarity(in, cosine, i, j));
    }
    for (j = 0; j < in->n; j++) {
        sum += exp(kappa * igfl_s_similarity(in, cosine, i, j) - max);
    }
    for (j = 0; j < in->n; j++) {
        out[j] += exp(kappa * igfl_s_similarity(in, cosine, i, j) - max) / sum;
    }
}

static void igfl_s_pair_scores(const struct fl_options *o, const struct fl_attention *in, size_t i,
                               double *row)
{
    const struct options *v = fl_options_values(o);

    (void)memset(row, 0, in->n * sizeof(*row));
    igfl_s_add_row(in, igfl_s_kappa(v, in->entries), v->scale == COSINE, i, row);
}

static void attend_self(const struct options *v, const struct fl_attention *in, double *out)
{
    double kappa = igfl_s_kappa(v, in->entries);
    bool cosine = v->scale == COSINE;
    size_t i;

    (void)memset(out, 0, in->n * sizeof(*out));
    for (i = 0; i < in->n; i++) {
        igfl_s_add_row(in, kappa, cosine, i, out);
    }
    fl__normalise(out, in->n);
}

static void attend_global(const struct options *v, const struct fl_attention *in, double *out)
{
    double kappa = igfl_s_kappa(v, in->entries);
    double mean_sq = 0; /* ||Dbar||^2 */
    size_t i;
    size_t j;

    for (j = 0; j < in->n; j++) {
        out[j] = 0;
        for (i = 0; i < in->n; i++) {
            out[j] += in->gram[i * in->n + j] / (double)in->n;
        }
        mean_sq += out[j] / (double)in->n;
    }
    for (j = 0; j < in->n; j++) {
        double own_sq = in->gram[j * in->n + j];

        if (v->scale == COSINE) {
            out[j] = own_sq > 0 && mean_sq > 0 ? out[j] / (sqrt(own_sq) * sqrt(mean_sq)) : 0;
        }
        out[j] *= kappa;
    }
    fl__softmax(out, in->n);
}

static void attend_time(const struct options *v, const struct fl_attention *in, double *out)
{
    /* The reported inner products are over the whole model. */
    double kappa = igfl_s_kappa(v, in->model_entries);
    size_t j;

    for (j = 0; j < in->n; j++) {
        out[j] = kappa * in->previous_dot[j];
    }
    fl__softmax(out, in->n);
}

static void igfl_s_attend(const struct fl_options *o, const struct fl_attention *in, double *out)
{
    const struct options *v = fl_options_values(o);
    size_t j;

    if (v->attention == SELF) {
        attend_self(v, in, out);
    } else if (v->attention == GLOBAL) {
        attend_global(v, in, out);
    } else {
        attend_time(v, in, out);
    }
    if (v->weight_samples) {
        for (j = 0; j < in->n; j++) {
            out[j] *= in->samples[j];
        }
        fl__normalise(out, in->n);
    }
}

static enum fl_agg_scope igfl_s_scope(const struct fl_options *o)
{
    (void)o;
    return FL_SCOPE_MODEL;
}

static bool igfl_s_attends_samples(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->weight_samples;
}

static bool igfl_s_scores_pairs(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->attention == SELF;
}

static bool wants_previous_dot(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->attention == TIME;
}

static int igfl_s_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);

    if (v->attention == TIME && v->scale == COSINE) {
        return fl_err_set(err, FL_ECONF,
                          "scale 'cosine' cannot be combined with attention 'time': clients report "
                          "only the inner product with their last update; set scale to 'raw' or "
                          "'inv_sqrt_d'");
    }
    return FL_OK;
}

static const char *const attentions[] = {
    [SELF] = "self", [GLOBAL] = "global", [TIME] = "time", NULL};
static const char *const scales[] = {
    [RAW] = "raw", [INV_SQRT_D] = "inv_sqrt_d", [COSINE] = "cosine", NULL};
static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, ENUM, attention), .def = "global", .choices = attentions,
     .help = "What an update is compared with: all others, their mean, or the client's last one."},
    {FL_OPT(struct options, FLOAT, kappa), .def = "1", .min = 0, .max = 1e6,
     .help = "Factor of the similarities before the softmax; 0 is the plain mean."},
    {FL_OPT(struct options, ENUM, scale), .def = "raw", .choices = scales,
     .help = "Similarity: inner product as in the paper, that over sqrt(entries), or cosine."},
    {FL_OPT(struct options, BOOL, weight_samples), .def = "no",
     .help = "Multiply the weights by the clients' numbers of samples."},
    {FL_OPT_IN(struct options, FLOAT, common, server_lr), .def = "1", .min = 0, .max = 1000,
     .help = "Factor of the mean update."},
    FL_OPT_END_OF(struct options),
};

const struct fl_aggregate_ops fl_aggregate_igfl_s = {
    .policy =
        {
            .name = "igfl_s",
            .help = "mean of the updates, weighted by attention between them",
            .source = "IGFL-S",
            .options = options,
            .check = igfl_s_check,
        },
    .step = fl__agg_mean_step,
    .scope = igfl_s_scope,
    .attend = igfl_s_attend,
    .attends_samples = igfl_s_attends_samples,
    .scores_pairs = igfl_s_scores_pairs,
    .pair_scores = igfl_s_pair_scores,
    .wants_previous_dot = wants_previous_dot,
};
