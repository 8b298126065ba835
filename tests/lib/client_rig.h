#ifndef FL_TESTS_CLIENT_RIG_H
#define FL_TESTS_CLIENT_RIG_H

/*
 * A client without a connection: a state folder, a small data set, the built-in trainer and a
 * worker that is prepared for what a made-up server describes. The model is that of
 * tests/client/train/train_fixture.h, two dense units.
 */

#include "client/work/code.h"
#include "client/work/evaluation.h"
#include "client/work/settle_state.h"
#include "client/work/training.h"
#include "libfl/data/dataset.h"
#include "tests/lib/folder.h"

#define RIG_SEED 4711 /* of the client */

/* The server's description. A component is "NAME KEY=VALUE ..."; NULL: the default one. */
struct rig_server {
    const char *solver, *codec, *upload, *personal, *broadcast, *space;
    const char *federation;               /* NULL: "rig" */
    size_t hidden;                        /* width of the first layer; 0: 16 */
    uint8_t generation, state_generation; /* first byte of each */
    uint32_t epochs;                      /* 0: 1 */
    uint64_t model_seed;                  /* of the first model; 0: none */
    double client_momentum;
    bool wants_previous_dot;
    bool norm;  /* a batch-norm after the first layer */
    bool local; /* and its statistics stay on clients */
};

struct rig {
    char dir[64];
    char lines[8192]; /* "LEVEL text" a line */
    struct fl_log log;
    struct fl_dataset *train, *test;
    struct fl_worker worker;
    struct fl_setup *setup;
    size_t count; /* floats of the model */
    float *theta; /* [count], a model to start from */
    struct fl_err err;
};

/* A payload as the server lists it and then sends it. */
struct rig_payload {
    const char *name;
    const void *data;
    size_t len;
    bool has_digest; /* listed with its SHA-256 */
};

/* The Welcome of such a server; returned owned. */
struct fl_wire_welcome rig_welcome(const struct rig_server *server);
struct fl_setup *rig_setup(const struct rig_server *server);

void client_rig_init(struct rig *r, const struct rig_server *server, bool with_test);
/* Removes the folder and its contents. */
void rig_done(struct rig *r);
/* Prepare the worker for another description. */
void rig_describe(struct rig *r, const struct rig_server *server);
/* The same with an existing setup, which it takes. */
void rig_use(struct rig *r, struct fl_setup *setup);
/* Restart the client as a new process with the same folder. */
void rig_restart(struct rig *r);
/* "<state folder>/NAME" in a buffer that the next call reuses. */
const char *client_rig_path(const struct rig *r, const char *name);
bool rig_has_file(const struct rig *r, const char *name);

/* [r->count] floats, all of them `value`; free(). */
float *rig_filled(const struct rig *r, float value);
/* A task of the first attempt, with learning rate 0.1. */
struct fl_task rig_task(uint64_t round, uint64_t counted_round);

/* As a Task lists them, into `ret` (which may hold others); fl_inputs_done(). */
void rig_list(const struct rig_payload *payloads, size_t n, struct fl_inputs *ret);
/*
 * Commit or discard the pending result, choose, and fetch missing payloads, as a client does before
 * it trains. `ret` may hold the payloads of an earlier attempt. Returns the number of fetched
 * payloads.
 */
size_t rig_fetch(struct rig *r, const struct fl_task *task, const struct rig_payload *payloads,
                 size_t n, struct fl_inputs *ret);
/* The same, and the training: an error, with r->err, or the result. */
int rig_try(struct rig *r, const struct fl_task *task, const struct rig_payload *payloads, size_t n,
            struct fl_result **ret);
/* The same; a failure ends the test. */
struct fl_result *rig_train(struct rig *r, const struct fl_task *task,
                            const struct rig_payload *payloads, size_t n);
/* From r->theta. */
struct fl_result *rig_train_plain(struct rig *r, const struct fl_task *task);
/* Encodes all units for a push, or those of `units`, as the worker thread does; fl_code_done(). */
struct fl_code rig_code(struct rig *r, struct fl_result *result, const uint8_t *units);
/* Both units of a push are in the upload mask and encoded. */
void rig_grant(struct rig *r, struct fl_result *result);
/* The client state stored under `name`; free(). */
float *rig_kept(struct rig *r, const char *name);

#endif
