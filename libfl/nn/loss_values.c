/*
 * Losses of values to be predicted (loss.h): mean squared error, mean absolute error, and binary
 * cross-entropy of logits, each as the mean over the outputs of a sample, as PyTorch's MSELoss,
 * L1Loss and BCEWithLogitsLoss. And the layers that name them. Pure; computes in double.
 */
#include <math.h>
#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/nn/loss.h"

/* The loss of one output, and its first and second derivatives by z. */
struct value_slopes {
    double loss, first, second;
};

static struct value_slopes loss_value(enum fl__loss loss, double z, double t)
{
    double sigmoid;

    switch (loss) {
    case FL__LOSS_CE: /* not a loss of values */
    case FL__LOSS_MSE:
        return (struct value_slopes){(z - t) * (z - t), 2.0 * (z - t), 2.0};
    case FL__LOSS_MAE:
        return (struct value_slopes){fabs(z - t), z > t ? 1.0 : (z < t ? -1.0 : z - t), 0.0};
    case FL__LOSS_BCE:
        sigmoid = 1.0 / (1.0 + exp(-z));
        /* log(1 + e^-|z|) does not overflow, and keeps small losses. */
        return (struct value_slopes){fmax(z, 0.0) - z * t + log1p(exp(-fabs(z))) + 0.0 * z,
                                     sigmoid - t, sigmoid * (1.0 - sigmoid)};
    }
    return (struct value_slopes){NAN, NAN, NAN};
}

/* Are all outputs on the side of their values? A NaN is on none. */
static bool loss_sides(const float *z, const float *t, size_t n)
{
    size_t j;

    for (j = 0; j < n && ((z[j] > 0.0F && t[j] > 0.5F) || (z[j] <= 0.0F && t[j] <= 0.5F)); j++) {
    }
    return j == n;
}

double fl__loss_of_values(const struct fl__value_loss *in, float *dz, float *sz, double *ret_slope,
                          size_t *ret_correct)
{
    double share = 1.0 / (double)in->width;
    double total = 0.0;
    double along = 0.0;
    size_t correct = 0;
    size_t b;
    size_t j;

    FL_REQUIRE(in->loss != FL__LOSS_CE && in->table != NULL);
    for (b = 0; b < in->batch; b++) {
        const float *z = in->z + b * in->ld;
        const float *t = in->table + (size_t)in->y[b] * in->width;

        for (j = 0; j < in->width; j++) {
            struct value_slopes v = loss_value(in->loss, (double)z[j], (double)t[j]);
            double move = in->rz != NULL ? (double)in->rz[b * in->ld + j] : 0.0;

            total += v.loss * share;
            along += v.first * move * share;
            if (dz != NULL) {
                dz[b * in->ld + j] = (float)(share * ((double)in->scale * v.first +
                                                      (double)in->slope * v.second * move));
            }
            if (sz != NULL) {
                sz[b * in->ld + j] = (float)(share * (double)in->slope * v.first);
            }
        }
        if (dz != NULL) {
            (void)memset(dz + b * in->ld + in->width, 0, (in->ld - in->width) * sizeof(*dz));
        }
        if (sz != NULL) {
            (void)memset(sz + b * in->ld + in->width, 0, (in->ld - in->width) * sizeof(*sz));
        }
        correct += in->loss == FL__LOSS_BCE && loss_sides(z, t, in->width);
    }
    if (ret_slope != NULL) {
        *ret_slope = along;
    }
    if (ret_correct != NULL) {
        *ret_correct = correct;
    }
    return total;
}

/* The last "layer" of a network that predicts values; the network takes it off (net_create.c). */
#define LOSS_LAYER(name, LOSS)                      \
    const struct fl__layer_ops fl__layer_##name = { \
        .word = #name, .usage = #name, .loss = LOSS, .parse = fl__layer_no_args}

LOSS_LAYER(bce, FL__LOSS_BCE);
LOSS_LAYER(mae, FL__LOSS_MAE);
LOSS_LAYER(mse, FL__LOSS_MSE);
