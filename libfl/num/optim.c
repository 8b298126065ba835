#include "libfl/num/optim.h"

#include <math.h>

void fl_nesterov_step(float *restrict x, float *restrict v, const float *restrict g, float momentum,
                      float rate, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        v[i] = momentum * v[i] + g[i];
        x[i] -= rate * (g[i] + momentum * v[i]);
    }
}

void fl_adam_step(float *restrict x, float *restrict m, float *restrict v, const float *restrict g,
                  const struct fl_adam *adam, size_t n)
{
    const struct fl_adam a = *adam;
    float rate = a.rate * a.first_scale;
    size_t i;

    for (i = 0; i < n; i++) {
        m[i] = a.beta1 * m[i] + (1.0f - a.beta1) * g[i];
        v[i] = a.beta2 * v[i] + (1.0f - a.beta2) * g[i] * g[i];
        x[i] -= rate * m[i] / (a.second_scale * sqrtf(v[i]) + a.epsilon);
    }
}
