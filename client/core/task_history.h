#ifndef FL_CLIENT_CORE_TASK_HISTORY_H
#define FL_CLIENT_CORE_TASK_HISTORY_H

/*
 * What a client was asked and what became of it, for its owner: the last tasks, totals, the last
 * errors, and the state of the link to the server. It follows the events of the session and decides
 * nothing. Plain values of fixed size, so what a server causes is bounded, and client/store writes
 * them as they are.
 *
 * Bytes are all bytes of the connections to the server, processor time is that of the client and
 * its training program. What is measured between two events counts for the task that was open, a
 * training before an evaluation, and in the totals without one, too.
 *
 * Threading: one thread.
 */

#include "client/core/session.h"

#define FL_TASK_RECORDS 50 /* tasks that are kept */
#define FL_TASK_ERRORS  10 /* errors that are kept */
#define FL_TASK_TEXT    200

enum fl_task_kind { FL_TASK_TRAINING, FL_TASK_EVALUATION, FL_TASK_KINDS };

enum fl_task_end {
    FL_TASK_OPEN,
    FL_TASK_ACCEPTED,
    FL_TASK_REJECTED,
    FL_TASK_DISMISSED, /* the server no longer wanted the result */
    FL_TASK_FAILED,
    FL_TASK_REPLACED, /* the server continued with another round */
    FL_TASK_MEASURED, /* an evaluation was sent */
    FL_TASK_ENDS
};

/* The layers that the server wants of an update. */
enum fl_task_layers { FL_TASK_NO_PLAN, FL_TASK_ALL_LAYERS, FL_TASK_SOME_LAYERS, FL_TASK_LAYERS_N };

struct fl_task_record {
    uint64_t round, attempt;
    uint64_t began_ms, ended_ms; /* since 1970; ended_ms 0: it is open */
    uint64_t bytes_down, bytes_up, cpu_ms;
    uint32_t kind, end, plan;      /* the enums above */
    uint32_t layers_asked, layers; /* FL_TASK_SOME_LAYERS: how many of how many */
    uint32_t trained;              /* 1: the training has ended */
    char reason[FL_TASK_TEXT];     /* of a failure or a rejection, else "" */
};

/* Since the state folder was created. */
struct fl_task_totals {
    uint64_t since_ms;
    uint64_t trainings, accepted, rejected, failed, evaluations;
    uint64_t bytes_down, bytes_up, cpu_ms;
};

struct fl_task_error {
    uint64_t at_ms; /* the last time */
    uint64_t n;     /* how often */
    char text[FL_TASK_TEXT];
};

/* Why there is no session with the server. */
enum fl_task_link {
    FL_TASK_LINK_OK,
    FL_TASK_LINK_LOST,
    FL_TASK_LINK_REFUSED, /* by the server */
    FL_TASK_LINK_LEFT     /* by this client: its owner's limits, its data */
};

/* Counters of the process, which only grow. */
struct fl_task_meter {
    uint64_t wall_ms; /* since 1970 */
    uint64_t bytes_down, bytes_up, cpu_ms;
};

/* Zero-initialize it. Its file has all but the members from `model_layers` on. */
struct fl_task_history {
    struct fl_task_totals totals;
    struct fl_task_record records[FL_TASK_RECORDS]; /* oldest first */
    struct fl_task_error errors[FL_TASK_ERRORS];    /* oldest first */
    char federation[FL_NAME_MAX];                   /* "": never joined one */
    uint32_t n_records, n_errors;
    uint32_t model_layers; /* set by the caller with a Welcome; 0: unknown */
    enum fl_task_link link;
    char trouble[FL_TASK_TEXT]; /* why, "": unknown */
    struct fl_task_meter seen;
};

/*
 * Before the session, which is in `state`, is stepped with `event`. True: a task ended, so the
 * history is to be saved.
 */
bool fl_task_history_event(struct fl_task_history *history, enum fl_session_state state,
                           const struct fl_session_event *event, const struct fl_task_meter *meter);
/* The newest record of this kind; NULL: none. */
const struct fl_task_record *fl_task_history_last(const struct fl_task_history *history,
                                                  enum fl_task_kind kind);

#endif
