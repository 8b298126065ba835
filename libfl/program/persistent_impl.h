#ifndef FL_PROGRAM_RESIDENT_IMPL_H
#define FL_PROGRAM_RESIDENT_IMPL_H

/* Inside the room: the state of the conversation, and what moves it. */

#include "libfl/base/sm.h"
#include "libfl/program/message.h"
#include "libfl/program/program_frame.h"
#include "libfl/program/shared.h"

enum fl__persistent_state {
    FL__PERSISTENT_OFF,        /* no program */
    FL__PERSISTENT_STARTING,   /* `start` was said */
    FL__PERSISTENT_READY,      /* it knows no model */
    FL__PERSISTENT_DESCRIBING, /* `model` was said */
    FL__PERSISTENT_IDLE,
    FL__PERSISTENT_BUSY,      /* a task was handed over */
    FL__PERSISTENT_CANCELING, /* `cancel` was said about it */
    FL__PERSISTENT_LEAVING,   /* `bye` was said: nothing is heard any more */
    FL__PERSISTENT_STATES
};
extern const struct fl_sm_state fl__persistent_states[];
/* Set of 1u << enum fl_answer_type that the program may say in a state. */
extern const unsigned fl__persistent_hears[];

struct fl_persistent {
    struct fl_persistent_conf conf; /* its texts are the next ones */
    char **argv, **environment;
    char *client, *data, *purpose;
    struct fl_sm sm;
    struct fl_persistent_ready ready;
    atomic_bool interrupted;

    /* Of the running program. */
    struct fl_program *program;
    int sockets[2]; /* ours, theirs until it runs; -1: none */
    struct fl_framed framed;
    struct fl_shared weights, result;
    uint64_t idle_since_ms;

    /* What is described; layout NULL: nothing. */
    struct fl_layout *layout;
    json_t *description;
    struct fl_buf header; /* of a safetensors file */
    unsigned vectors;
    size_t mixup_bytes, offer_bytes;
    struct fl_slots slots;
    bool told; /* the running program has accepted it */

    /* The open task. */
    const struct fl_persistent_task *task;
    uint64_t id;

    unsigned failures; /* since a task succeeded last */
    uint64_t retry_ms; /* it is not started before */
};

static inline uint64_t fl__persistent_now(const struct fl_persistent *r)
{
    return r->conf.clock->now_ms(r->conf.clock->ctx);
}

/* r->slots for what is described. FL_ELIMIT: more than this machine can address. */
FL_MUST_CHECK int fl__persistent_place(struct fl_persistent *r, struct fl_err *err);
/* Do they fit the memory that the running program has, or has it none yet? */
bool fl__persistent_fits(const struct fl_persistent *r);
/* Size the memory when it has no size yet, and put the headers there. */
FL_MUST_CHECK int fl__persistent_lay_out(struct fl_persistent *r, struct fl_err *err);
/* What the task is given, to its slots. */
FL_MUST_CHECK int fl__persistent_hand_over(struct fl_persistent *r,
                                           const struct fl_persistent_task *task,
                                           struct fl_err *err);

/* --- talking (persistent_talk.c) --- */

/* Queue a message; takes `text`, NULL is out of memory. FL_ELIMIT: too long for one. */
FL_MUST_CHECK int fl__persistent_say(struct fl_persistent *r, char *text, const char *what,
                                     struct fl_err *err);
/*
 * Wait for what the program says in this state. FL_OK: an answer that is allowed here;
 * FL_ETIMEOUT: none by `until_ms` (UINT64_MAX: none of these); FL_ECANCELED: `cancel`, or
 * interrupted. Else the program is gone, and `err` says why.
 */
FL_MUST_CHECK int fl__persistent_await(struct fl_persistent *r, uint64_t until_ms,
                                       const atomic_bool *cancel, struct fl_answer *ret,
                                       struct fl_err *err);
/*
 * Nothing was asked. FL_OK: it waits for us; FL_ECLOSED: it is gone, and that cost nothing; else
 * it said something nevertheless, and is gone too.
 */
FL_MUST_CHECK int fl__persistent_check_quiet(struct fl_persistent *r, struct fl_err *err);
/* The same, but it may have ended: what it left can still be read. */
FL_MUST_CHECK int fl__persistent_check_silent(struct fl_persistent *r, struct fl_err *err);
/* End it, as it did what it may not; the message of `err` goes on with its stderr. */
void fl__persistent_end(struct fl_persistent *r, struct fl_err *err);
/* Wait for its end for so long, then end it; what it left is freed. Says nothing. */
void fl__persistent_shutdown(struct fl_persistent *r, uint64_t patience_ms);
/* It has failed: when it may be started again. */
void fl__persistent_back_off(struct fl_persistent *r);
bool fl__persistent_canceled(const struct fl_persistent *r, const atomic_bool *cancel);

#endif
