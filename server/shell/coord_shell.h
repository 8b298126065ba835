#ifndef FL_SERVER_SHELL_COORD_SHELL_H
#define FL_SERVER_SHELL_COORD_SHELL_H

/*
 * The shell of the coordinator: steps the state machine (server/core) with an event and carries out
 * the effects of the step over a table of operations. fl-serverd supplies them with a loop, threads
 * and connections, fl-sim in virtual time, and the tests with faults.
 *
 * A job goes: operation `submit`, fl_coord_job_run() on some thread, fl_coord_shell_done(), which
 * steps the coordinator with its result. No clock, thread or loop here; all calls on the thread of
 * the coordinator, and never from an operation of the same shell, except where this says so.
 */

#include "server/shell/coord_job.h"
#include "server/work/payloads.h"

#define FL_EFFECT_TYPES (FL_EFF_ANSWER + 1)

typedef void fl_effect_op(void *ctx, const struct fl_effect *effect);

struct fl_coord_ops {
    /* Milliseconds of a monotonic clock and of the wall clock, for events. */
    uint64_t (*now_ms)(void *ctx);
    uint64_t (*wall_ms)(void *ctx);
    /* Optional. What clients have sent and received over the network since the start. */
    struct fl_traffic_sums (*traffic)(void *ctx);
    /* Call fl_coord_shell_step() with FL_EV_TICK at this time of now_ms(); UINT64_MAX: never. */
    void (*timer)(void *ctx, uint64_t due_ms);
    /* Takes the job, and passes it to fl_coord_shell_done() after this step. An error: not taken.
     */
    int (*submit)(void *ctx, struct fl_coord_job *job);
    /* The job of this number could not be made or submitted: call fl_coord_shell_failed() with
       FL_ENOMEM after this step. */
    void (*unsubmitted)(void *ctx, uint64_t seq);
    /* Optional. The result of a job, before the coordinator steps with it. */
    void (*result)(void *ctx, const struct fl_coord_job *job);
    /* Optional. A job failed. */
    void (*failed)(void *ctx, int code, const char *reason);
    /* Out of memory in a step of the coordinator; its state is unchanged. */
    void (*no_memory)(void *ctx);
    /* Optional. After a step of the core, before its effects, and after them. */
    void (*stepped)(void *ctx, const struct fl_event *event, const struct fl_effects *effects);
    void (*settled)(void *ctx);
    /* By type: messages to clients, opening and closing a round, lines for the operator. NULL:
       nothing. Effects that are jobs are the shell's. */
    fl_effect_op *effects[FL_EFFECT_TYPES];
};

/* Set by the owner; all pointers are borrowed. */
struct fl_coord_shell {
    const struct fl_coord_ops *ops;
    void *ctx;
    struct fl_coord *coord;
    const struct fl_coord_conf *conf;
    const struct fl_federation *federation;
    struct fl_progress *progress;
    const struct fl_log *log; /* NULL: none */
    bool summaries_stale;     /* rebuilding the collection of data summaries failed */
    bool norms_logged;        /* the notice about differing batch-norms was logged */
    bool stopped;             /* no event or effect is carried out any more */
};

/* Step with an event, whose times are filled in here, and carry out the effects. An operation may
   set `stopped`, which ends this step, too. */
void fl_coord_shell_step(struct fl_coord_shell *shell, struct fl_event *event);
/* Move the results of a job that ran to `progress` and fill job->event. Once, before or in
   fl_coord_shell_done(). With job->code: nothing. */
void fl_coord_shell_take(struct fl_coord_shell *shell, struct fl_coord_job *job);
/* A job has ended: step with its result. Takes `job`. FL_ECANCELED: no step, as the server stops
   and the next start repeats the work. */
void fl_coord_shell_done(struct fl_coord_shell *shell, struct fl_coord_job *job);
/* The job with this number failed; `client` is at fault, or FL_NO_CLIENT. */
void fl_coord_shell_failed(struct fl_coord_shell *shell, uint64_t seq, int code, const char *reason,
                           uint32_t client);
/* The collection of data summaries after a change on the store's thread, and its code. Takes
   collection->file. */
void fl_coord_shell_summaries(struct fl_coord_shell *shell, struct fl_collection *collection,
                              int code);

#endif
