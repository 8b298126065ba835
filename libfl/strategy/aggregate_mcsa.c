/*
 * aggregate: mcsa (FedMCSA, self-attention per component: eq. 7)
 *
 * For each component c (tensor or unit) and sender i
 *
 *     psi[i][k] = exp(sigma cos(theta_ic, theta_kc)) / sum_h exp(sigma cos(theta_ic, theta_hc))
 *     q[i][k]   = psi[i][k] m_k / sum_h psi[i][h] m_h,   m_k = n_k or 1
 *     mixture of i in c = sum_k q[i][k] theta_kc
 *
 * The server's model is the mean of what was sent, for export and evaluation only. `softmax:
 * column` normalises psi by its columns, as eq. (7) is printed, before the rows of q are
 * made to sum to 1.
 *
 * The cosine of a zero component with another is 0, with itself 1 (the released code gives
 * NaN). sigma 0: the mean for everybody; sigma very large: everybody its own.
 *
 * Options: sigma, component, size_weight, softmax. State: none.
 */
#include <math.h>
#include <string.h>

#include "libfl/strategy/aggregate_impl.h"

enum component { TENSOR, UNIT };
enum softmax { ROW, COLUMN };

struct options {
    double sigma;
    enum component component;
    bool size_weight;
    enum softmax softmax;
};

static void attend(const struct fl_options *o, const struct fl_attention *in, double *out)
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
    /* Cosines are symmetric, so psi by columns is the transposed one. */
    for (i = 0; column && i < n; i++) {
        for (k = 0; k < i; k++) {
            double x = out[i * n + k];

            out[i * n + k] = out[k * n + i];
            out[k * n + i] = x;
        }
    }
    /* psi[i][i] is the largest of what it was normalised with: no row is all 0. */
    for (i = 0; i < n; i++) {
        for (k = 0; size_weight && k < n; k++) {
            out[i * n + k] *= in->samples[k];
        }
        fl__normalise(out + i * n, n);
    }
}

static enum fl_agg_scope scope(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->component == UNIT ? FL_SCOPE_UNIT : FL_SCOPE_TENSOR;
}

static const char *const components[] = {[TENSOR] = "tensor", [UNIT] = "unit", NULL};
static const char *const softmaxes[] = {[ROW] = "row", [COLUMN] = "column", NULL};
static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, sigma), .def = "50", .min = 0, .max = 1e6,
     .help = "How much alike models must be to be mixed; 0 mixes all, 1000 hardly any."},
    {FL_OPT(struct options, ENUM, component), .def = "tensor", .choices = components,
     .help = "What is compared and mixed by itself: each tensor, or each unit."},
    {FL_OPT(struct options, BOOL, size_weight), .def = "yes",
     .help = "Multiply the weights by the clients' numbers of samples."},
    {FL_OPT(struct options, ENUM, softmax), .def = "row", .choices = softmaxes,
     .help = "What the softmax goes over; 'column' is eq. (7) as printed."},
    FL_OPT_END_OF(struct options),
};

const struct fl_aggregate_ops fl_aggregate_mcsa = {
    .policy =
        {
            .name = "mcsa",
            .help = "personal models, mixed component by component with self-attention",
            .source = "FedMCSA",
            .options = options,
        },
    .scope = scope,
    .attend = attend,
    .mixes = true,
};
