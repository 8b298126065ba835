#ifndef FL_CLIENT_SHELL_SESSION_SHELL_H
#define FL_CLIENT_SHELL_SESSION_SHELL_H

/*
 * The shell around a client's session (client/core/session.h). It steps the session with an event,
 * carries out the effects through a table of operations, turns the end of work into the next event,
 * and keeps one timer. fl-clientd supplies operations on its loop and training thread, fl-sim in
 * virtual time, tests/sim on a disk and a network that fail: all three run this code.
 *
 * The shell decides what an effect means, and which message it is (session_messages.h). The
 * operations decide how it is done: they read the clock, start work, encode and send messages, and
 * keep the pending result. The shell has no clock, I/O, loop or thread.
 *
 * Events while effects are carried out: an operation may fail at once, or find that nothing is left
 * to do. Such an event (DISCONNECTED, FETCHED, or a failure) is queued, and stepped by the next
 * call or by the timer, which is set to 0 for it. The queue allocates nothing, so a failure for
 * lack of memory can be queued, too.
 *
 * Ownership: borrows the operations and their context; events, texts and messages are borrowed for
 * the call. An operation must not free the shell.
 * Threading: one thread, which also calls the operations.
 * Errors: only creation fails. Failed work is an event, and the session decides about a retry.
 */

#include "client/shell/session_messages.h"
#include "client/work/fault.h"
#include "libfl/base/log.h"

/* What the session starts, and what then goes on by itself. */
enum fl_activity {
    FL_ACTIVITY_CONNECTION = 1,
    FL_ACTIVITY_FETCH,     /* the payloads of the newest task */
    FL_ACTIVITY_TRAINING,  /* from them to a pending result */
    FL_ACTIVITY_PUSH,      /* of the pending result */
    FL_ACTIVITY_EVALUATION /* fetch the model, evaluate it */
};

/* All but `stepped` are required. `ctx` is the context of the shell. */
struct fl_session_ops {
    /* Time: milliseconds of a clock that never goes back. */
    uint64_t (*now_ms)(void *ctx);
    /* Timer: call fl_session_shell_tick() at `at_ms`, not at the previous time; UINT64_MAX: never.
     */
    void (*set_timer)(void *ctx, uint64_t at_ms);
    /*
     * Work: start it (CONNECTION: connect). `effect` has the key, for an evaluation its round, and
     * for a push the upload mask. Its end is reported by fl_session_shell_ended() or one of its
     * variants, also if it was cancelled: the key identifies it. An error: it did not start, and
     * the shell reports that.
     */
    int (*begin)(void *ctx, enum fl_activity activity, const struct fl_session_effect *effect,
                 struct fl_err *err);
    /*
     * Stop it; without it do nothing. CONNECTION: `why` is what the server failed to do, or NULL.
     * Never an evaluation: it ends by itself.
     */
    void (*cancel)(void *ctx, enum fl_activity activity, const char *why);
    /*
     * Send: does nothing without a connection. `message` is borrowed, and is completed here: a
     * Hello describes this client, a Heartbeat is numbered, a Report has the key of the pending
     * result and is replaced by fl_session_report().
     */
    void (*send)(void *ctx, struct fl_wire_event *message);
    /*
     * The session takes this command of the server, and a Task is a new one: store what work needs
     * of `message`, which fl_session_shell_command() got; may change the fields of `command`.
     * False: the command is dropped, because the client leaves this session.
     */
    bool (*take)(void *ctx, struct fl_session_event *command, void *message);
    /* Persistence: is the pending result that of `key`? */
    bool (*has_result)(void *ctx, struct fl_round_key key);
    /* Discard the pending result when it is that of `key`. */
    void (*drop_result)(void *ctx, struct fl_round_key key);
    /*
     * FL_LOG_DEBUG: a change of the state; FL_LOG_NOTICE: for the operator; FL_LOG_WARNING: why a
     * request of the server is not met, which it can cause at any rate.
     */
    void (*log)(void *ctx, enum fl_log_level level, const char *text);
    /* The client ends. `code`: enum fl_session_exit; `why` may be NULL. */
    void (*leave)(void *ctx, int code, const char *why);
    /* Optional. Before each step of the session, for figures. */
    void (*stepped)(void *ctx, const struct fl_session_event *event);
};

struct fl_session_shell;

/* Errors of fl_session_create(); FL_ENOMEM. */
FL_MUST_CHECK int fl_session_shell_create(const struct fl_session_conf *conf,
                                          const struct fl_session_ops *ops, void *ctx,
                                          struct fl_session_shell **ret);
void fl_session_shell_free(struct fl_session_shell *shell); /* NULL is allowed. */
/* Ignore all further events, and call no operation. NULL is allowed. */
void fl_session_shell_stop(struct fl_session_shell *shell);
bool fl_session_shell_stopped(const struct fl_session_shell *shell);
const struct fl_session *fl_session_shell_session(const struct fl_session_shell *shell);

/* Step the session with `event`, whose time is filled in. */
void fl_session_shell_step(struct fl_session_shell *shell, struct fl_session_event *event);
/* The same with an event that has only a key. */
void fl_session_shell_key(struct fl_session_shell *shell, enum fl_session_event_type type,
                          struct fl_round_key key);
/* The timer fired: steps the queued events, and what is due in the session. */
void fl_session_shell_tick(struct fl_session_shell *shell);
/*
 * Handle a command of the server (FL_CEV_WELCOME to FL_CEV_HEARTBEAT); `message` is passed to
 * take(). True: take() was called and accepted it.
 */
bool fl_session_shell_command(struct fl_session_shell *shell, struct fl_session_event *command,
                              void *message);

/*
 * Work has ended. FL_OK: connected, fetched, the result is kept, accepted by the server, evaluated.
 * Else `why` is the text of the error; a failed connection counts as temporary.
 */
void fl_session_shell_ended(struct fl_session_shell *shell, enum fl_activity activity,
                            struct fl_round_key key, int code, const char *why);
/* The same for a failure that is classified already. */
void fl_session_shell_failed(struct fl_session_shell *shell, enum fl_activity activity,
                             struct fl_round_key key, enum fl_fault fault, const char *why);
/* The same for an evaluation: FL_OK first sends `evaluation` (fl_session_evaluation()). */
void fl_session_shell_evaluated(struct fl_session_shell *shell, uint64_t round, int code,
                                const char *why, const struct fl_wire_event *evaluation);

#endif
