#ifndef FL_BENCH_ANCHORS_H
#define FL_BENCH_ANCHORS_H

/* One federation on the Synthetic data in this process; see anchors.c and anchors_run.c. */

#include "libfl/strategy/strategy.h"

#define ANCHOR_SETTINGS 4

struct anchor_row {
    const char *name;
    const char *preset;
    struct {
        enum fl_slot slot;
        const char *option; /* NULL ends the list */
        const char *value;
    } settings[ANCHOR_SETTINGS];
    uint32_t steps; /* of a batch of 20, a round */
    double weight_decay;
    double weighted, unweighted; /* expected, in percent */
    double tolerance;
};

struct anchor_result {
    double weighted, unweighted; /* best over the rounds, 0 to 1 */
};

FL_MUST_CHECK int anchor_run(const struct anchor_row *row, uint64_t rounds, uint64_t seed,
                             struct anchor_result *ret, struct fl_err *err);

#endif
