#ifndef FL_SIM_CLIENTS_H
#define FL_SIM_CLIENTS_H

/*
 * The clients of a federation, provided by the caller. A client is identified by its index in [0,
 * n).
 *
 * Threading: all functions may be called from several threads at once.
 */

#include "client/train/trainer.h"
#include "libfl/data/dataset.h"
#include "tools/fl_sim/attack/attack.h"

/* Size of the path of a folder with data. */
#define FL_SIM_FOLDER 4096

struct fl_sim_client {
    const char *name; /* fl_name_valid(); lives as long as struct fl_sim_clients */
    uint64_t samples, evaluation_samples;
    uint64_t seed;        /* as fl_worker.seed */
    uint64_t least_group; /* as fl_worker_terms */
    /* What it does as an attacker; lives as long as its name. NULL: it is honest. */
    const struct fl_attack *attack;
};

/* Data for training and evaluation; `of` is private to the owner. */
struct fl_sim_client_data {
    const struct fl_dataset *train, *test; /* test NULL: none */
    /* For a program: a folder, and whether all of it is this client's; "": the program has it. */
    char folder[FL_SIM_FOLDER];
    bool whole;
    void *of[2];
};

struct fl_sim_clients {
    size_t n;
    void (*sim_client)(void *ctx, size_t client, struct fl_sim_client *ret);
    int (*data)(void *ctx, size_t client, struct fl_sim_client_data *ret, struct fl_err *err);
    void (*release)(void *ctx, struct fl_sim_client_data *data);
    /* What trains and evaluates for all clients; NULL: the built-in engine. */
    const struct fl_command_conf *program;
    void *ctx;
};

#endif
