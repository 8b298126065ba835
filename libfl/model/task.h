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

/*
 * X(type, member, field), with the name in the message. `order_seed` is that of the fixed order
 * that `steps` follow, the same in every round; `epoch` the first round whose client state is in
 * the server's sum. 0: not sent, of the three counts and of `order_seed`.
 */
/* clang-format off */
#define FL_TASK_FIELDS(X)                                                                          \
    X(FINITE, learning_rate, learning_rate)                                                        \
    X(U64, seed, seed) /* of this round's batches */                                               \
    X(U64, order_seed, order_seed)                                                                 \
    X(U64, deadline_ms, deadline_ms) /* span, from the task to the report */                       \
    X(U32, n_selected, selected)     /* K_t */                                                     \
    X(U32, population, population)   /* N */                                                       \
    X(U64, draw, draw) /* of a hashed space (space.h); 0: the first, or none */                    \
    X(U64, epoch, epoch)
/* clang-format on */
#define FL_TASK_C_FINITE                    double
#define FL_TASK_C_U64                       uint64_t
#define FL_TASK_C_U32                       uint32_t
#define FL_TASK_MEMBER(type, member, field) FL_TASK_C_##type member;

struct fl_task {
    struct fl_round_key key;
    /*
     * The last round that aggregated this client, 0: none. It may be newer than `key`: a server
     * that lost its newest rounds repeats them.
     */
    struct fl_round_key counted;
    FL_TASK_FIELDS(FL_TASK_MEMBER)
};

#endif
