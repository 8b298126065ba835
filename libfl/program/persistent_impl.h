#ifndef FL_PROGRAM_PERSISTENT_IMPL_H
#define FL_PROGRAM_PERSISTENT_IMPL_H

/*
 * Shared by persistent.c, persistent_protocol.c, slots.c and task_files.c: the state of the
 * protocol and its transitions.
 */

#include <limits.h>

#include "libfl/base/sm.h"
#include "libfl/program/message.h"
#include "libfl/program/program_frame.h"
#include "libfl/program/shared.h"

enum fl__persistent_state {
    FL__PERSISTENT_OFF,        /* no program */
    FL__PERSISTENT_STARTING,   /* `start` was sent */
    FL__PERSISTENT_READY,      /* it has no model */
    FL__PERSISTENT_DESCRIBING, /* `model` was sent */
    FL__PERSISTENT_SWITCHING,  /* `client` was sent */
    FL__PERSISTENT_IDLE,
    FL__PERSISTENT_BUSY,      /* a task was sent */
    FL__PERSISTENT_CANCELING, /* `cancel` was sent */
    FL__PERSISTENT_LEAVING,   /* `bye` was sent: all messages are ignored */
    FL__PERSISTENT_STATES
};
extern const struct fl_sm_state fl__persistent_states[];
/* Set of 1u << enum fl_answer_type that the program may send in a state. */
extern const unsigned fl__persistent_allowed[];

struct fl_persistent {
    struct fl_persistent_conf conf; /* its strings are the next members */
    char **argv, **environment;
    char *client, *data, *purpose;
    char work_dir[PATH_MAX]; /* absolute; of a program per task only */
    char failed[PATH_MAX];   /* folder of its last failed task; "": none */
    struct fl_sm sm;
    struct fl_persistent_ready ready;
    atomic_bool interrupted;

    /* The running program. */
    struct fl_program *program;
    int sockets[2]; /* ours, and the program's until it runs; -1: none */
    struct fl_framed framed;
    struct fl_shared weights, result;
    uint64_t idle_since_ms;

    /* The model; layout NULL: none is set. */
    struct fl_layout *layout;
    json_t *description;
    struct fl_buf header; /* header of a safetensors file */
    unsigned vectors;
    size_t mixup_bytes, summary_bytes;
    size_t clients, state_bytes; /* of a program that aggregates */
    struct fl_slots slots;
    bool model_accepted; /* the running program has accepted the model */

    /* The client that it acts for, as the message; NULL: its own only. */
    char *client_message;
    bool client_told; /* to the running program */

    /* The open task. */
    const struct fl_persistent_task *task;
    uint64_t id;

    unsigned failures; /* since the last task that succeeded */
    uint64_t retry_ms; /* end of the backoff */
};

static inline uint64_t fl__persistent_now(const struct fl_persistent *r)
{
    return r->conf.clock->now_ms(r->conf.clock->ctx);
}

/* The program did not answer `what` within limit_ms, or its task was cancelled meanwhile (`rv`): it
   is killed. Returns `rv`. */
int fl__persistent_timed_out(struct fl_persistent *r, int rv, const char *what, uint64_t limit_ms,
                             struct fl_err *err);
/* Tell the program for which client it acts, unless it was told already. */
FL_MUST_CHECK int fl__persistent_switch(struct fl_persistent *r, const atomic_bool *cancel,
                                        struct fl_err *err);
/* r->slots for the model. FL_ELIMIT: larger than the address space. */
FL_MUST_CHECK int fl__persistent_place(struct fl_persistent *r, struct fl_err *err);
/* Does the memory of the running program have room for the slots, or has it none yet? */
bool fl__persistent_fits(const struct fl_persistent *r);
/* Size the memory if it has no size yet, and write the headers. */
FL_MUST_CHECK int fl__persistent_lay_out(struct fl_persistent *r, struct fl_err *err);
/* Copy the inputs of the task to their slots. */
FL_MUST_CHECK int fl__persistent_hand_over(struct fl_persistent *r,
                                           const struct fl_persistent_task *task,
                                           struct fl_err *err);

/*
 * Start the program as `conf` says, whose limits and log are filled in here; its additions to the
 * environment come before the configured ones.
 */
FL_MUST_CHECK int fl__persistent_spawn(struct fl_persistent *r, struct fl_program_conf conf,
                                       struct fl_err *err);
/* Sets the message of a task that timed out or was cancelled; returns `why`. */
int fl__persistent_canceled_error(const struct fl_persistent *r, int why, struct fl_err *err);
/* The program still has the updates of an AGGREGATE task. FL_EIO: it has exited. */
FL_MUST_CHECK int fl__persistent_check_prepared(struct fl_persistent *r, struct fl_err *err);
/* The result of an AGGREGATE task, from the shared memory (persistent_aggregate.c). */
FL_MUST_CHECK int fl__persistent_take_step(struct fl_persistent *r,
                                           const struct fl_persistent_answer *answer,
                                           struct fl_err *err);
/* The program runs and has accepted the model; `task` may be NULL. */
FL_MUST_CHECK int fl__persistent_get_ready(struct fl_persistent *r,
                                           const struct fl_persistent_task *task,
                                           const atomic_bool *cancel, struct fl_err *err);
/* A program per task: start it for the open task, wait for its end, and read its files. */
FL_MUST_CHECK int fl__task_files_run(struct fl_persistent *r, struct fl_persistent_answer *ret,
                                     struct fl_err *err);
/* Creates the folder of the tasks. */
FL_MUST_CHECK int fl__task_files_open(struct fl_persistent *r, struct fl_err *err);

/* --- messages (persistent_protocol.c) --- */

/* Queue a message; takes `text`, NULL means out of memory. FL_ELIMIT: longer than a message may
   be. */
FL_MUST_CHECK int fl__persistent_send(struct fl_persistent *r, char *text, const char *what,
                                      struct fl_err *err);
/*
 * Wait for a message that the program may send in this state. FL_OK: an allowed answer;
 * FL_ETIMEOUT: none before `until_ms` (UINT64_MAX: no limit); FL_ECANCELED: `cancel`, or
 * interrupted. On any other error the program has been killed, and `err` says why.
 */
FL_MUST_CHECK int fl__persistent_await(struct fl_persistent *r, uint64_t until_ms,
                                       const atomic_bool *cancel, struct fl_answer *ret,
                                       struct fl_err *err);
/*
 * Read without a pending request. FL_OK: the program waits; FL_ECLOSED: it has exited, without a
 * failed task; any other error: it sent an unexpected message and has been killed.
 */
FL_MUST_CHECK int fl__persistent_check_quiet(struct fl_persistent *r, struct fl_err *err);
/* The same, but the program may have exited: its last messages can still be read. */
FL_MUST_CHECK int fl__persistent_check_silent(struct fl_persistent *r, struct fl_err *err);
/* Kill the program after a violation; appends its stderr to the message of `err`. */
void fl__persistent_end(struct fl_persistent *r, struct fl_err *err);
/*
 * Wait until the program has exited. FL_OK: by itself, or for its memory limit; FL_ETIMEOUT: it was
 * ended at `until_ms`; FL_ECANCELED: `task`, NULL for none, was cancelled.
 */
FL_MUST_CHECK int fl__persistent_wait_exit(struct fl_persistent *r, uint64_t until_ms,
                                           const struct fl_persistent_task *task);
/* Wait for its exit for so long, then kill it; frees its resources. Reports nothing. */
void fl__persistent_shutdown(struct fl_persistent *r, uint64_t patience_ms);
/* The program failed: start the backoff. */
void fl__persistent_back_off(struct fl_persistent *r);
bool fl__persistent_canceled(const struct fl_persistent *r, const atomic_bool *cancel);

#endif
