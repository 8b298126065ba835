#ifndef FL_CLI_CLIENT_H
#define FL_CLI_CLIENT_H

/*
 * The client daemon put together: one loop that carries out the effects of fl_session, one
 * lane that trains, codes and touches what is kept. client.c is the life cycle and the session's
 * effects, control.c the Attend call, events.c what is sent on it, fetch.c and push.c the
 * transfers, inputs.c the bundles of a task, setup.c what Welcome describes, work.c what is
 * prepared for it and evaluations, train.c a training, code.c an update on its way to its
 * bytes, offer.c what is told of the data; result.c, keep.c and cache.c have the files.
 *
 * Threading: everything belongs to the loop but what is handed to the lane: `keeps`, and the
 * jobs of train.c, code.c, offer.c and fetch.c. The trainer and `keeps` are prepared for
 * another setup only while the lane is idle; each job holds the setup that it began with.
 */

#include "client/cli/code.h"
#include "client/cli/conf.h"
#include "client/core/session.h"
#include "libfl/base/log.h"
#include "libfl/data/dataset.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/strategy/strategy.h"
#include "libfl/wire/messages.h"

/* The peer of lines that the server can cause (fl_log_peer()). */
#define FL_CLI_SERVER "the server"

struct fl_trainer;
struct fl_fetch;
struct fl_push;
struct fl_train_job;
struct fl_work_job;

/* A bundle: as a task lists it, then with what of it is here. */
struct fl_input {
    char name[FL_NAME_MAX];
    uint64_t bytes, have;
    bool has_digest;
    uint8_t digest[FL_DIGEST_SIZE];
    bool opaque;   /* not a block of floats in the model's shape */
    bool cached;   /* found on the disk */
    uint8_t *data; /* [bytes], owned, or NULL */
};

/* What a training starts from. */
struct fl_inputs {
    struct fl_setup *setup; /* they were chosen for; a reference, NULL: only listed */
    size_t n;
    struct fl_input list[FL_WIRE_MAX_BUNDLES];
    float *own; /* the client's own model, when that is where it starts; owned */
};

struct fl_cli {
    const struct fl_client_conf *conf;
    const struct fl_log *log;
    struct fl_loop *loop;
    struct fl_lane *lane;
    struct fl_timer *timer;
    struct fl_session *session;
    int lock_fd;
    int exit_code;
    bool stopping;
    bool stepping;

    /* The connection; control.c. */
    struct fl_grpc_channel *channel;
    struct fl_call *attend;
    struct fl_wire_session token;
    uint32_t chunk_bytes;
    uint64_t heartbeat;
    char unfit[FL_ERR_BUF_SIZE]; /* why this client leaves, while the server is being told */

    /* What the server described, and the trainer and `keeps` are prepared for; NULL: nothing. A
       reference; what is under way holds its own. */
    struct fl_setup *setup;

    /* Data and training; work.c. */
    struct fl_dataset *train, *test;
    struct fl_trainer *trainer;
    uint64_t samples, evaluation_samples;
    struct fl_keeps *keeps;
    struct fl_train_job *training;  /* the newest, NULL: none */
    struct fl_work_job *evaluating; /* the newest, NULL: none */

    /* The newest task and what belongs to it. */
    struct fl_round_key task, counted;
    double learning_rate;
    uint64_t seed;
    uint64_t order_seed;
    uint64_t deadline_ms;
    uint32_t n_selected, population;
    struct fl_inputs listed;  /* without data */
    struct fl_inputs inputs;  /* whole; filled by fetch.c, taken by training */
    struct fl_result *result; /* held, or NULL */

    /* An evaluation that was asked for. */
    uint64_t evaluate_round;
    double evaluate_rate;
    struct fl_input evaluate_bundle;

    /* What this client tells of its data; offer.c. */
    struct fl_buf offer;
    bool offer_wanted, offer_making, offer_made;
    uint64_t offer_sent;
    size_t queue_bytes; /* of the control stream */

    struct fl_fetch *fetch, *evaluate_fetch;
    struct fl_push *push;
};

/* Run the daemon; returns the exit code. */
int fl_client_run(const struct fl_client_conf *conf, const struct fl_log *log);

/* Step the session with an event (time is filled in) and carry out the effects. */
void fl_cli_step(struct fl_cli *cli, struct fl_session_event *event);
void fl_cli_step_key(struct fl_cli *cli, enum fl_session_event_type type, struct fl_round_key key);
void fl_cli_step_failed(struct fl_cli *cli, enum fl_session_event_type type,
                        struct fl_round_key key, const char *reason, bool permanent);
/* Permanent: what came out is not finite (FL_ENUMERIC), the same task would give it again. */
void fl_cli_step_diverged(struct fl_cli *cli, enum fl_session_event_type type,
                          struct fl_round_key key, const char *reason);

/* Of this client, the same in every run: jitter, what is told of the data. */
uint64_t fl_cli_seed(const struct fl_cli *cli);
const char *fl_cli_state_dir(const struct fl_cli *cli);
/* Is the held result that of `key`? */
bool fl_cli_holds(const struct fl_cli *cli, struct fl_round_key key);

/* control.c */
void fl_control_connect(struct fl_cli *cli);
void fl_control_disconnect(struct fl_cli *cli);

/* events.c */
void fl_control_send(struct fl_cli *cli, const struct fl_wire_event *event);
void fl_control_hello(struct fl_cli *cli, struct fl_round_key held);
void fl_control_heartbeat(struct fl_cli *cli);
void fl_control_report(struct fl_cli *cli);
void fl_control_failed(struct fl_cli *cli, struct fl_round_key key, const char *reason,
                       bool diverged);
/* `adapted` may be NULL. */
void fl_control_evaluation(struct fl_cli *cli, uint64_t round,
                           const struct fl_wire_evaluation *result,
                           const struct fl_wire_evaluation *adapted);

/* inputs.c */
void fl_inputs_done(struct fl_inputs *inputs);
/* NULL: not there. */
struct fl_input *fl_inputs_find(struct fl_inputs *inputs, const char *name);
/* Remember what a task lists. */
void fl_inputs_list(struct fl_cli *cli, const struct fl_wire_task *task);
/*
 * The bundles that a client of `setup` needs of those that are `listed`, into `ret` (initialised
 * here); `has_own`: it has a model of its own. FL_EPROTO: one that cannot be what it says.
 */
FL_MUST_CHECK int fl_inputs_choose(struct fl_setup *setup, struct fl_inputs *listed, bool has_own,
                                   const struct fl_log *log, struct fl_inputs *ret,
                                   struct fl_err *err);
/* Keep of `old` what is also in `now`, so that it is not fetched twice; frees the rest. */
void fl_inputs_reuse(struct fl_inputs *now, struct fl_inputs *old);
/* A whole input: is it what its digest says? FL_EFORMAT. */
FL_MUST_CHECK int fl_inputs_check(const struct fl_input *input, struct fl_err *err);
/* What is the same in the next round goes to the disk, so that it need not come again. */
void fl_inputs_save(const struct fl_cli *cli, const struct fl_inputs *inputs);

/* fetch.c */
void fl_fetch_begin(struct fl_cli *cli, struct fl_round_key key);
void fl_fetch_cancel(struct fl_cli *cli);
/* The bundle of an evaluation, into its own memory, then fl_work_evaluate(). */
void fl_fetch_evaluation(struct fl_cli *cli);
void fl_fetch_free(struct fl_cli *cli);

/* push.c */
void fl_push_begin(struct fl_cli *cli, struct fl_round_key key, const uint8_t *units,
                   size_t n_units);
void fl_push_cancel(struct fl_cli *cli);

/* offer.c */
/* Welcome wants it: from its first byte. */
void fl_offer_begin(struct fl_cli *cli);
/* More fits the control stream. */
void fl_offer_go_on(struct fl_cli *cli);
/* The stream is gone. */
void fl_offer_stop(struct fl_cli *cli);
/* Another description: what was made does not count. */
void fl_offer_forget(struct fl_cli *cli);

/* train.c */
void fl_work_train(struct fl_cli *cli, struct fl_round_key key);
void fl_work_cancel(struct fl_cli *cli);

/* work.c */
FL_MUST_CHECK int fl_work_open(struct fl_cli *cli, int *ret_exit, struct fl_err *err);
void fl_work_close(struct fl_cli *cli);
/* Is anything on the lane that uses the description? */
bool fl_work_busy(const struct fl_cli *cli);
/* Prepare the trainer and what is kept for another description, while not busy. Takes `setup`. */
FL_MUST_CHECK int fl_work_prepare(struct fl_cli *cli, struct fl_setup *setup, struct fl_err *err);
/* Nothing is described any more. */
void fl_work_forget(struct fl_cli *cli);
/* Why the held result cannot be sent to what is described now; NULL: it can. */
const char *fl_work_unfit(const struct fl_cli *cli);
/* Training comes first: an evaluation ends as soon as it can. */
void fl_work_leave_evaluation(struct fl_cli *cli);
/* Takes `model`, which was fetched under `setup`. */
void fl_work_evaluate(struct fl_cli *cli, uint64_t round, struct fl_setup *setup, float *model);

#endif
