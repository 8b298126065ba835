#ifndef FL_SERVER_CORE_LOSS_TREND_H
#define FL_SERVER_CORE_LOSS_TREND_H

/*
 * Whether the training loss of a federation rises instead of falling, while it is still finite: its
 * mean over ten rounds is above twice the lowest such mean, and by 0.5 (nats) at least, as losses
 * near zero vary. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FL_LOSS_TREND_ROUNDS 10

/* Zero is the initial state. */
struct fl_loss_trend {
    double newest[FL_LOSS_TREND_ROUNDS];
    size_t n;              /* losses so far */
    double mean;           /* of the newest ten; valid with `lowest_round` */
    double lowest;         /* of these means */
    uint64_t lowest_round; /* the last round of it; 0: there were fewer than ten rounds */
};

/* The loss of the next committed round; NaN is left out. */
void fl_loss_trend_add(struct fl_loss_trend *trend, uint64_t round, double loss);
bool fl_loss_trend_rises(const struct fl_loss_trend *trend);

#endif
