#include "server/core/loss_trend.h"

#include <math.h>

#define RISE_FACTOR 2.0
#define RISE_LEAST  0.5

void fl_loss_trend_add(struct fl_loss_trend *t, uint64_t round, double loss)
{
    double sum = 0;
    size_t i;

    if (!isfinite(loss)) {
        return;
    }
    t->newest[t->n % FL_LOSS_TREND_ROUNDS] = loss;
    t->n++;
    if (t->n < FL_LOSS_TREND_ROUNDS) {
        return;
    }
    for (i = 0; i < FL_LOSS_TREND_ROUNDS; i++) {
        sum += t->newest[i] / FL_LOSS_TREND_ROUNDS;
    }
    t->mean = sum;
    if (t->lowest_round == 0 || t->mean < t->lowest) {
        t->lowest = t->mean;
        t->lowest_round = round;
    }
}

bool fl_loss_trend_rises(const struct fl_loss_trend *t)
{
    return t->lowest_round > 0 && t->mean > RISE_FACTOR * t->lowest &&
           t->mean > t->lowest + RISE_LEAST;
}
