#ifndef FL_CLIENTD_CLIENT_H
#define FL_CLIENTD_CLIENT_H

/*
 * The client daemon put together: one loop that carries out the effects of fl_session, one
 * lane that trains, codes and touches what is kept. client.c is the life cycle and the session's
 * effects, control.c the Attend call, events.c what is sent on it, fetch.c and push.c the
 * transfers, offer.c what is told of the data, train.c and work.c what the lane does of
 * client/work. What a task means is not decided here.
 *
 * Threading: everything belongs to the loop but what is handed to the lane: the worker, and the
 * jobs of train.c, work.c, push.c, offer.c and fetch.c. The worker is prepared for another setup
 * only while the lane is idle; each job holds the setup that it began with.
 */

#include "client/core/session.h"
#include "client/daemon/conf.h"
#include "client/work/code.h"
#include "client/work/training.h"
#include "libfl/base/log.h"
#include "libfl/data/dataset.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/strategy/strategy.h"
#include "libfl/wire/messages.h"

struct fl_fetch;
struct fl_push;
struct fl_train_job;
struct fl_work_job;

struct fl_clientd {
    const struct fl_client_conf *conf;
    const struct fl_log *log;
    struct fl_loop *loop;
    struct fl_lane *lane;
    struct fl_timer *timer;
    struct fl_session *session;
    int lock_fd;
    int exit_code;
    uint64_t descriptors; /* the soft limit of them that we were started with */
    bool stopping;
    bool stepping;

    /* The connection; control.c. */
    struct fl_grpc_channel *channel;
    struct fl_call *attend;
    struct fl_wire_session token;
    uint32_t chunk_bytes;
    uint64_t heartbeat;
    char unfit[FL_ERR_BUF_SIZE]; /* why this client leaves, while the server is being told */

    /* What the server described, and the worker is prepared for; NULL: nothing. A reference;
       what is under way holds its own. */
    struct fl_setup *setup;

    /* Data and training; work.c. */
    struct fl_dataset *train, *test;
    struct fl_worker worker;
    uint64_t samples, evaluation_samples;
    struct fl_train_job *training;  /* the newest, NULL: none */
    struct fl_work_job *evaluating; /* the newest, NULL: none */

    /* The newest task and what belongs to it. */
    struct fl_task task;
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
void fl_clientd_step(struct fl_clientd *cli, struct fl_session_event *event);
void fl_clientd_step_key(struct fl_clientd *cli, enum fl_session_event_type type,
                         struct fl_round_key key);
void fl_clientd_step_failed(struct fl_clientd *cli, enum fl_session_event_type type,
                            struct fl_round_key key, const char *reason, bool permanent);
/* Permanent: what came out is not finite (FL_ENUMERIC), the same task would give it again. */
void fl_clientd_step_diverged(struct fl_clientd *cli, enum fl_session_event_type type,
                              struct fl_round_key key, const char *reason);

/* Of this client, the same in every run: jitter, what is told of the data. */
uint64_t fl_clientd_seed(const struct fl_clientd *cli);
const char *fl_clientd_state_dir(const struct fl_clientd *cli);
/* Is the held result that of `key`? */
bool fl_clientd_holds(const struct fl_clientd *cli, struct fl_round_key key);

/* control.c */
void fl_control_connect(struct fl_clientd *cli);
void fl_control_disconnect(struct fl_clientd *cli);

/* events.c */
void fl_control_send(struct fl_clientd *cli, const struct fl_wire_event *event);
void fl_control_hello(struct fl_clientd *cli, struct fl_round_key held);
void fl_control_heartbeat(struct fl_clientd *cli);
void fl_control_report(struct fl_clientd *cli);
void fl_control_failed(struct fl_clientd *cli, struct fl_round_key key, const char *reason,
                       bool diverged);
/* `adapted` may be NULL. */
void fl_control_evaluation(struct fl_clientd *cli, uint64_t round,
                           const struct fl_wire_evaluation *result,
                           const struct fl_wire_evaluation *adapted);

/* fetch.c */
void fl_fetch_begin(struct fl_clientd *cli, struct fl_round_key key);
void fl_fetch_cancel(struct fl_clientd *cli);
/* The bundle of an evaluation, into its own memory, then fl_work_evaluate(). */
void fl_fetch_evaluation(struct fl_clientd *cli);
void fl_fetch_free(struct fl_clientd *cli);

/* push.c */
void fl_push_begin(struct fl_clientd *cli, struct fl_round_key key, const uint8_t *units,
                   size_t n_units);
void fl_push_cancel(struct fl_clientd *cli);

/* offer.c */
/* Welcome wants it: from its first byte. */
void fl_offer_begin(struct fl_clientd *cli);
/* More fits the control stream. */
void fl_offer_go_on(struct fl_clientd *cli);
/* The stream is gone. */
void fl_offer_stop(struct fl_clientd *cli);
/* Another description: what was made does not count. */
void fl_offer_forget(struct fl_clientd *cli);

/* train.c */
void fl_work_train(struct fl_clientd *cli, struct fl_round_key key);
void fl_work_cancel(struct fl_clientd *cli);

/* work.c */
FL_MUST_CHECK int fl_work_open(struct fl_clientd *cli, int *ret_exit, struct fl_err *err);
void fl_work_close(struct fl_clientd *cli);
/* Is anything on the lane that uses the description? */
bool fl_work_busy(const struct fl_clientd *cli);
/* Prepare the worker for another description, while not busy. Takes `setup`. */
FL_MUST_CHECK int fl_work_prepare(struct fl_clientd *cli, struct fl_setup *setup,
                                  struct fl_err *err);
/* Nothing is described any more. */
void fl_work_forget(struct fl_clientd *cli);
/* Training comes first: an evaluation ends as soon as it can. */
void fl_work_leave_evaluation(struct fl_clientd *cli);
/* Takes `model`, which was fetched under `setup`. */
void fl_work_evaluate(struct fl_clientd *cli, uint64_t round, struct fl_setup *setup, float *model);

#endif
