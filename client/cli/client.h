#ifndef FL_CLI_CLIENT_H
#define FL_CLI_CLIENT_H

/*
 * The client daemon put together: one loop that carries out the effects of fl_session, one
 * lane that trains. client.c is the life cycle and the session's effects, control.c the
 * Attend call, fetch.c and push.c the transfers, work.c the training lane, result.c the
 * finished result on disk.
 *
 * Threading: everything belongs to the loop but what work.c hands to the lane.
 */

#include "client/cli/conf.h"
#include "client/cli/result.h"
#include "client/core/session.h"
#include "libfl/base/log.h"
#include "libfl/data/dataset.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/strategy/strategy.h"
#include "libfl/wire/messages.h"

struct fl_trainer;
struct fl_fetch;
struct fl_push;
struct fl_work_job;

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

    /* What the server described; NULL layout: nothing yet. */
    struct fl_wire_welcome welcome;
    bool described;
    const struct fl_codec_ops *codec;
    struct fl_options *codec_options;
    const struct fl_solver_ops *solver;
    struct fl_options *solver_options;

    /* Data and training; work.c. */
    struct fl_dataset *train, *test;
    struct fl_trainer *trainer;
    uint64_t samples, evaluation_samples;
    struct fl_work_job *training; /* the newest, NULL: none */

    /* The newest task and what belongs to it. */
    struct fl_round_key task;
    double learning_rate;
    uint64_t seed;
    uint64_t deadline_ms;
    float *model; /* [floats of the layout], filled by fetch.c, taken by training; or NULL */
    struct fl_result result;
    bool has_result;

    /* An evaluation that was asked for. */
    uint64_t evaluate_round;
    char evaluate_bundle[FL_NAME_MAX];

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

/* control.c */
void fl_control_connect(struct fl_cli *cli);
void fl_control_disconnect(struct fl_cli *cli);
void fl_control_hello(struct fl_cli *cli, struct fl_round_key held);
void fl_control_heartbeat(struct fl_cli *cli);
void fl_control_report(struct fl_cli *cli);
void fl_control_failed(struct fl_cli *cli, struct fl_round_key key, const char *reason);
void fl_control_evaluation(struct fl_cli *cli, uint64_t round, uint64_t samples, uint64_t correct,
                           double loss_sum);
void fl_control_forget(struct fl_cli *cli);

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

/* work.c */
FL_MUST_CHECK int fl_work_open(struct fl_cli *cli, int *ret_exit, struct fl_err *err);
void fl_work_close(struct fl_cli *cli);
/* Prepare the trainer for what Welcome describes. */
FL_MUST_CHECK int fl_work_prepare(struct fl_cli *cli, struct fl_err *err);
void fl_work_train(struct fl_cli *cli, struct fl_round_key key);
void fl_work_cancel(struct fl_cli *cli);
/* Takes `model`. */
void fl_work_evaluate(struct fl_cli *cli, uint64_t round, float *model);

#endif
