#ifndef FL_BENCH_SIM_H
#define FL_BENCH_SIM_H

/* One simulated federation, measured in a process of its own, so that its memory is its own too. */

#include "libfl/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_case {
    const char *model;     /* a network of libfl/nn */
    const char *algorithm; /* preset */
    size_t clients;        /* that are registered */
    size_t selected;       /* of each round */
    size_t rounds;         /* that are measured, behind one that is not; 999 at most */
    size_t samples;        /* of a client */
    unsigned threads, epochs, batch;
    double learning_rate;
    unsigned evaluate_every; /* on 10 000 samples of the server; 0: never */
    const char *data;        /* folder with "train" and "test"; NULL: noise */
    const char *dir;         /* where the federation's folder is made */
};

struct sim_figures {
    size_t parameters;
    double start_s;  /* until the first round is over: everybody joins */
    double round_ms; /* median */
    double cpu_ms;   /* median of what it computed, all threads together */
    double total_s;  /* of all measured rounds */
    double train_ms; /* what the trainings of a round compute by themselves */
    double accuracy; /* of the last evaluation; negative: none */
    double peak_mb;  /* resident */
};

FL_MUST_CHECK int sim_run(const struct sim_case *c, struct sim_figures *ret, struct fl_err *err);

#endif
