#ifndef FL_BENCH_SIM_CLIENT_H
#define FL_BENCH_SIM_CLIENT_H

/*
 * A client that trains nothing: it fetches the model, reports, and pushes what it is asked for of a
 * shared, prepared update at once. For measuring a server; any number of them live on one loop.
 * Hostile ones do the same until a round, and from then on what their kind says.
 */

#include "bench/round_model.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/wire/messages.h"

struct bench_clients;

enum bench_kind {
    BENCH_HONEST,
    BENCH_SLOW_READER, /* fetches, and reads nothing of what comes */
    BENCH_HALF_UPLOAD  /* sends half of its update, then nothing, without ending the call */
};

struct bench_setup {
    struct fl_loop *loop;
    const char *address;
    size_t n;           /* clients */
    const char *prefix; /* of their names; NULL: "bench" */
    enum bench_kind kind;
    uint64_t honest_rounds; /* of hostile kinds: they begin after so many */
    fl_loop_cb halfway;     /* the round after these begins; may be NULL */
    bool spare;             /* rounds leave clients over, whose transfers then end without error */
    const struct round_update *update;
    uint64_t rounds;     /* stop after so many */
    fl_loop_cb ending;   /* the last round begins; then it is over, while the server still runs */
    fl_loop_cb finished; /* all clients saw the end of the federation */
    void *ctx;
};

int bench_clients_start(const struct bench_setup *setup, struct bench_clients **ret);
void bench_clients_free(struct bench_clients *clients);
/* Time (fl_clock_ns) of the first task of round i + 1; index n_rounds: the end. */
const uint64_t *bench_clients_times(const struct bench_clients *clients);
/* Bytes of the model that came and of updates that went, of all rounds. */
uint64_t bench_clients_moved(const struct bench_clients *clients);

#endif
