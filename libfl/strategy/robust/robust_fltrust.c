/*
 * robust: fltrust (Cao, Fang, Liu, Gong 2021, Algorithm 2; docs/algorithms.md#fltrust)
 *
 *     s_i    = max(0, cos(x_i, x_0))
 *     result = sum_i s_i (norm(x_0) / norm(x_i)) x_i / sum_i s_i
 *
 * x_0 is the reference update, which the server trains from the model of the round on its root data
 * set. The cosine with a zero update is 0. When all s_i are 0 there is no result, and the layers
 * that were compared keep their value.
 *
 * Any number of hostile clients is withstood as long as the root data set is like the data of the
 * honest ones. Weights by samples have no effect. Cost: the norms and one inner product of each
 * update.
 */
#include <math.h>
#include <string.h>

#include "libfl/strategy/robust/robust_impl.h"

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct fl_robust_root_options, INT, samples), .def = "100", .min = 1, .max = 1e9,
     .help = "Samples of evaluation.data that the server trains on, drawn once from the seed; it "
             "evaluates on the others."},
    {FL_OPT(struct fl_robust_root_options, INT, steps), .def = "0", .min = 0, .max = 1e9,
     .help = "Steps of the server in each round; 0: training.steps or training.epochs, as a "
             "client."},
    {FL_OPT_IN(struct fl_robust_root_options, BOOL, common, report), .def = "no",
     .help = "Only report what the rule would do; the mean is taken as without it."},
    FL_OPT_END_OF(struct fl_robust_root_options),
};

/* One sender is enough: it is compared with the server's own update. */
static size_t fltrust_needs(const struct fl_options *o)
{
    (void)o;
    return 1;
}

static double fltrust_cosine(const struct fl_robust_updates *in, size_t i)
{
    double a = fl__robust_product(in, i, i);
    double b = fl__robust_product(in, in->n, in->n);

    return a > 0 && b > 0
               ? fmin(fmax(fl__robust_product(in, i, in->n) / (sqrt(a) * sqrt(b)), -1), 1)
               : 0;
}

static int fltrust_weigh(const struct fl_options *o, const struct fl_robust_updates *in, double *w,
                         double *score)
{
    double length = sqrt(fl__robust_product(in, in->n, in->n));
    double sum = 0;
    size_t i;

    (void)o;
    (void)memset(w, 0, (in->n + 1) * sizeof(*w));
    for (i = 0; i < in->n; i++) {
        double cosine = fltrust_cosine(in, i);

        score[i] = 1 - cosine;
        w[i] = fmax(cosine, 0);
        sum += w[i];
    }
    for (i = 0; sum > 0 && i < in->n; i++) {
        if (w[i] > 0) {
            w[i] = w[i] / sum * (length / sqrt(fl__robust_product(in, i, i)));
        }
    }
    return FL_OK;
}

const struct fl_robust_ops fl_robust_fltrust = {
    .policy = {.name = "fltrust",
               .help = "mean of the updates, weighted by their cosine with an update that the "
                       "server trains, and as long as that one",
               .source = "Cao, Fang, Liu, Gong 2021",
               .options = options},
    .needs = fltrust_needs,
    .trusts = true,
    .wants = FL_ROBUST_REFERENCE,
    .weigh = fltrust_weigh,
};
