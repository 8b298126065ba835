/*
 * aggregate: mcsa (FedMCSA, self-attention per component: eq. 7)
 *
 * For each component c (tensor or unit) and sender i
 *
 *     psi[i][k] = exp(sigma cos(theta_ic, theta_kc)) / sum_h exp(sigma cos(theta_ic, theta_hc))
 *     q[i][k]   = psi[i][k] m_k / sum_h psi[i][h] m_h,   m_k = n_k or 1
 *     personalized model of i in c = sum_k q[i][k] theta_kc
 *
 * The server's model is the mean of the models sent, for export and evaluation only. `softmax:
 * column` normalises psi by its columns, as eq. (7) is printed, before the rows of q are made to
 * sum to 1.
 *
 * The cosine of a zero component with another is 0, with itself 1 (the released code gives NaN).
 * sigma 0: every client gets the mean; sigma very large: every client gets its own model.
 *
 * With share_cap what one sender has in the models of the others is bounded
 * (docs/algorithms.md#the-share-of-one-client).
 *
 * Options: sigma, component, size_weight, softmax. State: none.
 */
#include <math.h>
#include <string.h>

#include "libfl/strategy/aggregator/aggregate_impl.h"

enum component { TENSOR, UNIT };
enum softmax { ROW, COLUMN };

struct options {
    double sigma;
    enum component component;
    bool size_weight;
    enum softmax softmax;
};

static void mcsa_attend(const struct fl_options *o, const struct fl_attention *in, double *out)
{
    const struct options *v = fl_options_values(o);
    double sigma = v->sigma;
    bool column = v->softmax == COLUMN;
    bool size_weight = v->size_weight;
    size_t n = in->n;
    size_t i;
    size_t k;

    for (i = 0; i < n; i++) {
        for (k = 0; k < n; k++) {
            out[i * n + k] = sigma * fl__agg_cosine(in, i, k);
        }
        fl__softmax(out + i * n, n);
    }
    /* Cosines are symmetric, so psi normalised by columns is the transpose. */
    for (i = 0; column && i < n; i++) {
        for (k = 0; k < i; k++) {
            double x = out[i * n + k];

            out[i * n + k] = out[k * n + i];
            out[k * n + i] = x;
        }
    }
    /* psi[i][i] is the largest value of its row or column, so no row is all 0. */
    for (i = 0; i < n; i++) {
        for (k = 0; size_weight && k < n; k++) {
            out[i * n + k] *= in->samples[k];
        }
        fl__normalise(out + i * n, n);
    }
}

static enum fl_agg_scope mcsa_scope(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->component == UNIT ? FL_SCOPE_UNIT : FL_SCOPE_TENSOR;
}

static bool mcsa_attends_samples(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->size_weight;
}

static const char *const components[] = {[TENSOR] = "tensor", [UNIT] = "unit", NULL};
static const char *const softmaxes[] = {[ROW] = "row", [COLUMN] = "column", NULL};
static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, sigma), .def = "50", .min = 0, .max = 1e6,
     .help = "How similar models must be to be averaged; 0 averages all, 1000 hardly any."},
    {FL_OPT(struct options, ENUM, component), .def = "tensor", .choices = components,
     .help = "The component that is compared and averaged separately: each tensor, or each unit "
             "(layer)."},
    {FL_OPT(struct options, BOOL, size_weight), .def = "yes",
     .help = "Multiply the weights by the clients' numbers of samples."},
    {FL_OPT(struct options, ENUM, softmax), .def = "row", .choices = softmaxes,
     .help = "Dimension of the softmax; 'column' is eq. (7) as printed."},
    FL_OPT_END_OF(struct options),
};

const struct fl_aggregate_ops fl_aggregate_mcsa = {
    .policy =
        {
            .name = "mcsa",
            .help = "personalized models, averaged component by component with self-attention",
            .source = "FedMCSA",
            .options = options,
        },
    .scope = mcsa_scope,
    .attend = mcsa_attend,
    .attends_samples = mcsa_attends_samples,
    .mixes = true,
};
