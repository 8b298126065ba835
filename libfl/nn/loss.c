#include "libfl/nn/loss.h"

#include <math.h>

#include "libfl/base/err.h"

double fl__softmax_ce(const float *z, size_t ld, const int32_t *y, size_t batch, size_t classes,
                      float scale, float *dz, size_t *ret_correct)
{
    double total = 0.0;
    size_t correct = 0;
    size_t b;
    size_t j;

    for (b = 0; b < batch; b++) {
        const float *row = z + b * ld;
        size_t label = (size_t)y[b];
        size_t best = 0;
        double sum = 0.0;
        double loss;

        FL_REQUIRE(y[b] >= 0 && label < classes);
        for (j = 1; j < classes; j++) {
            best = row[j] > row[best] ? j : best;
        }
        /* The largest exponent is 0: no overflow, and the sum is at least 1. */
        for (j = 0; j < classes; j++) {
            float e = expf(row[j] - row[best]);

            sum += (double)e;
            if (dz != NULL) {
                dz[b * ld + j] = e;
            }
        }
        loss = log(sum) - ((double)row[label] - (double)row[best]);
        total += loss;
        correct += best == label && isfinite(loss);
        if (dz != NULL) {
            float factor = (float)((double)scale / sum);

            for (j = 0; j < classes; j++) {
                dz[b * ld + j] *= factor;
            }
            dz[b * ld + label] -= scale;
            for (j = classes; j < ld; j++) {
                dz[b * ld + j] = 0.0f;
            }
        }
    }
    if (ret_correct != NULL) {
        *ret_correct = correct;
    }
    return total;
}
