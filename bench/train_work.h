#ifndef FL_BENCH_TRAIN_WORK_H
#define FL_BENCH_TRAIN_WORK_H

/* A network, synthetic samples and an algorithm's solver that makes steps on them. */

#include "libfl/nn/net.h"
#include "libfl/strategy/strategy.h"

#define TRAIN_MAX_OPTIONS 8

struct train_how {
    const char *model; /* of the presets, or train_layer_nets */
    const char *algorithm;
    const struct fl_kernels *kernels;
    const char *options[TRAIN_MAX_OPTIONS]; /* NAME=VALUE of the solver */
    size_t n_options;
    uint64_t batch;
    double momentum;
};

struct train_work {
    struct fl_net_spec spec;
    struct fl_net *net;
    float *x;
    int32_t *y;
    size_t batch, n_samples;
    size_t at; /* the sample that the next step begins with */
    struct fl_strategy *strategy;
    struct fl_solver *solver;
    struct fl_buf summaries;
};

/* Networks of layers that no preset has; the last one has no name. */
struct train_layer_net {
    const char *name;
    struct fl_net_spec spec;
};
extern const struct train_layer_net train_layer_nets[];

/* To be closed in any case, also when it fails. */
int train_work_open(struct train_work *work, const struct train_how *how, struct fl_err *err);
void train_work_close(struct train_work *work);
/* Steps for about so many seconds, at least one; samples per second. */
double train_work_rate(struct train_work *work, double seconds);
/* What the process had at most so far, after an evaluation too. */
unsigned long long train_work_peak_rss(struct train_work *work);

/* Zeros; ends the program without memory. */
void *train_alloc(size_t n, size_t size);

#endif
