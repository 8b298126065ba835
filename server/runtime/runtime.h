#ifndef FL_SERVER_RUNTIME_RUNTIME_H
#define FL_SERVER_RUNTIME_RUNTIME_H

/*
 * The coordinator thread: steps fl_coord and executes its effects on the worker threads and,
 * through fl_net_msg messages, in the network front end.
 *
 * Threading: fl_runtime_post() from any thread, everything else before the thread starts or after
 * it ended.
 */

#include "libfl/net/conn.h"
#include "server/conf/server_conf.h"
#include "server/core/hook_events.h"
#include "server/http/event_log.h"
#include "server/network/loop_messages.h"
#include "server/runtime/stall.h"
#include "server/work/aggregation_program.h"
#include "server/work/evaluator.h"
#include "server/work/root_training.h"

/* What the runtime is made of; everything but evaluator, root and program is borrowed. */
struct fl_runtime_setup {
    const struct fl_server_conf *conf;
    const char *state_dir;
    const struct fl_log *log;
    uint64_t started_ms;
    struct fl_worker_thread *db, *work;
    struct fl_event_log *events; /* NULL: none is kept */
    const struct fl_stall_watch *watch;
    struct fl_evaluator *evaluator;         /* taken; NULL: the server does not evaluate */
    struct fl_root *root;                   /* taken, as fl_federation.root */
    struct fl_aggregation_program *program; /* taken, as fl_federation.program */
    const struct fl_traffic *traffic;       /* of all clients */
    void (*hook)(void *ctx, const struct fl_hook_event *event); /* runs the hook of an event */
    void (*send)(void *ctx, struct fl_net_msg *down); /* to the network front end; takes `down` */
    void *ctx;
};

/*
 * Open the state and load the model to continue with. Does not start the thread. Copies `setup`.
 * `*ret_no_model`: the error is that the first model could not be made.
 */
FL_MUST_CHECK int fl_runtime_create(const struct fl_runtime_setup *setup, struct fl_runtime **ret,
                                    bool *ret_no_model, struct fl_err *err);
/* The generation of the model, constant as long as the runtime lives. */
const struct fl_generation *fl_runtime_generation(const struct fl_runtime *runtime);
/*
 * Make the newest good checkpoint of the state folder, which the caller has locked, its last
 * committed round (fl_store_rebuild()), and print the result.
 */
FL_MUST_CHECK int fl_runtime_rebuild(const struct fl_server_conf *conf, const char *state_dir,
                                     const struct fl_log *log, struct fl_err *err);
FL_MUST_CHECK int fl_runtime_start(struct fl_runtime *runtime, struct fl_err *err);
/* The coordinator's loop. Any thread. */
struct fl_loop *fl_runtime_loop(struct fl_runtime *runtime);
/* Takes `up`. */
void fl_runtime_post(struct fl_runtime *runtime, struct fl_coord_msg *up);
/* Stop the thread (no effect is executed after) and join it. Idempotent. */
void fl_runtime_stop(struct fl_runtime *runtime);
/* Call after the worker threads were freed. */
void fl_runtime_free(struct fl_runtime *runtime);

#endif
