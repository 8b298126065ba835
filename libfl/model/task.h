#ifndef FL_MODEL_TASK_H
#define FL_MODEL_TASK_H

/*
 * What the server asks of one client in one round, beside the payloads that it trains from: the
 * same struct from the coordinator over the wire (message Task) to the client's work.
 * A plain value without pointers.
 */

#include <stdint.h>

/* One attempt of a round. */
struct fl_round_key {
    uint64_t round; /* 0: none */
    uint32_t attempt;
};

struct fl_task {
    struct fl_round_key key;
    /*
     * The last round that aggregated this client, 0: none. It may be newer than `key`: a server
     * that lost its newest rounds repeats them.
     */
    struct fl_round_key counted;
    double learning_rate;
    uint64_t seed;        /* of this round's batches */
    uint64_t order_seed;  /* of the fixed order that `steps` follow, the same in every round; 0: not
                             sent */
    uint64_t deadline_ms; /* span, from the task to the report */
    uint32_t n_selected;  /* K_t; 0: not sent */
    uint32_t population;  /* N; 0: not sent */
    uint64_t epoch;       /* first round whose client state is in the server's sum; 0: not sent */
};

#endif
