#ifndef FL_NUM_OPTIM_H
#define FL_NUM_OPTIM_H

/*
 * Steps of optimizers for n numbers. Arrays do not overlap; n may be 0. Purity: no allocation, no
 * state. Element by element, so that results are the same bit for bit on every machine.
 */

#include <stddef.h>

/* Nesterov's momentum in PyTorch's form: v = m v + g, x = x - rate (g + m v). */
void fl_nesterov_step(float *x, float *v, const float *g, float momentum, float rate, size_t n);

struct fl_adam {
    float rate, beta1, beta2, epsilon;
    /* 1 / (1 - beta1^t) and 1 / sqrt(1 - beta2^t) at step t, from 1 */
    float first_scale, second_scale;
};
/*
 * Adam (Kingma and Ba 2015, algorithm 1): m = beta1 m + (1 - beta1) g, v likewise of g^2,
 * x = x - rate first_scale m / (second_scale sqrt(v) + epsilon).
 */
void fl_adam_step(float *x, float *m, float *v, const float *g, const struct fl_adam *adam,
                  size_t n);

#endif
