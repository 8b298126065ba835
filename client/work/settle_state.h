#ifndef FL_CLIENT_WORK_SETTLE_H
#define FL_CLIENT_WORK_SETTLE_H

/*
 * Before the first payload of a task is fetched: commits or discards the pending client state by
 * the round that the server aggregated, and looks for the cached payload and for the model that
 * this client holds on disk. A new client makes the first model from its seed, if the server sends
 * it.
 */

#include "client/work/inputs.h"
#include "client/work/wanted.h"
#include "client/work/worker.h"

struct fl_settling {
    struct fl_setup *setup; /* a reference */
    struct fl_round_key task, counted;
    uint64_t epoch;
    bool evaluation; /* only the model of an evaluation is fetched */
    bool finds;      /* the model that this client holds is looked for */
    bool has_held;   /* it was found */
    uint8_t held[FL_DIGEST_SIZE];
    struct fl_input cached; /* the listed opaque payload; "" as its name: none */
    float *own;             /* the client's own model, owned; NULL: it has none */
};

/*
 * Initialise `ret` for `task` and its payloads in `listed`. False: nothing to settle, `ret` is
 * empty, and fl_settling_choose() may be called at once. Takes a reference to `setup`.
 */
bool fl_settling_begin(const struct fl_worker *worker, struct fl_setup *setup,
                       struct fl_inputs *listed, const struct fl_task *task,
                       struct fl_settling *ret);
/* The same for the model of an evaluation; then fl_settling_choose_model(). */
bool fl_settling_begin_model(const struct fl_worker *worker, struct fl_setup *setup,
                             const struct fl_input *payload, struct fl_settling *ret);
/* Commit or discard on disk. On an error nothing has changed; call it again. */
FL_MUST_CHECK int fl_settling_run(struct fl_settling *settling, const struct fl_worker *worker,
                                  struct fl_err *err);
/*
 * Replace `inputs` by the payloads to fetch, with the data that is present or was received in an
 * earlier attempt. FL_EPROTO: a payload has an impossible size or is missing.
 */
FL_MUST_CHECK int fl_settling_choose(struct fl_settling *settling, struct fl_inputs *listed,
                                     const struct fl_log *log, struct fl_inputs *inputs,
                                     struct fl_err *err);
/* Initialise `inputs` with the model of an evaluation. FL_EPROTO. */
FL_MUST_CHECK int fl_settling_choose_model(const struct fl_settling *settling,
                                           const struct fl_input *payload, struct fl_inputs *inputs,
                                           struct fl_err *err);
void fl_settling_done(struct fl_settling *settling);

#endif
