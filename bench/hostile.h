#ifndef FL_BENCH_HOSTILE_H
#define FL_BENCH_HOSTILE_H

/*
 * Hostile clients of a server, in a process of their own (bench/round --hostile): slow readers,
 * uploads that stop half way, floods of calls and reconnect loops. They take part honestly for the
 * first rounds, so that both halves of a run have the same clients.
 */

#include "bench/round_model.h"

#include <sys/types.h>

struct hostile_setup {
    const char *address;
    const struct round_update *update;
    uint64_t clients; /* half of them slow readers, half with half uploads */
    uint64_t honest_rounds, rounds;
};

#define HOSTILE_CALLS_PER_S      2000
#define HOSTILE_RECONNECTS_PER_S 200

/* peer_kill() ends it. */
pid_t hostile_start(const struct hostile_setup *setup, int *ret_fd);

#endif
