#ifndef FL_CLIENT_CORE_SESSION_H
#define FL_CLIENT_CORE_SESSION_H

/*
 * The client's side of a federation as a pure state machine: events in, effects out. No clock, no
 * I/O, no threads; random back-off comes from the given seed.
 *
 *                                          task      fetched     trained     plan
 *   OFFLINE -> CONNECTING -> GREETING -> READY -> FETCHING -> TRAINING -> REPORTED -> PUSHING
 *      ^          |             |        ^ | |                  ^           ^   |         |
 *      |          |             |        | | +- still training -+           |   |         |
 *      |          |             |        | +--- result still pending -------+   |         |
 *      |          |             |        +------ verdict, failure, other round -+---------+
 *      +----------+-------------+------- any of them: connection lost, server silent,
 *                                        refused, drained (back-off with jitter)
 *   DONE beside READY: all rounds are done (a Drain without a time), the session stays open; a
 *   task begins the next round as from READY.
 *   STOPPED beside them: SIGTERM, a permanent refusal, or all rounds done with exit_when_done.
 *
 * The state is that of the session with the server. Three things exist beside it: a training run (a
 * lost connection does not stop it; the task of another round does), a pending result, and an
 * evaluation. There is never a training run and a pending result at once, and never two of either.
 *
 * A finished result is on disk before FL_CEV_TRAINED, so it survives the process: after a reconnect
 * the server sends the same task again, and a client with the pending result of that (round,
 * attempt) reports at once instead of training.
 *
 * The client state of a solver does not depend on verdicts: an accepted update is not yet part of a
 * committed round. The caller commits or discards the pending client state when the task of another
 * (round, attempt) arrives (Task.counted of the wire). Until then it has to survive FL_CEFF_DROP,
 * and the same task sent again after a reconnect.
 *
 * Liveness: a heartbeat every interval of Welcome; a server that sends nothing for three intervals
 * counts as lost.
 *
 * A finished federation is no refusal. An open session costs next to nothing, and its loss is the
 * best sign of a restarted server, perhaps with more rounds: the client reconnects after the first
 * pauses of the usual series. Only while such a server keeps ending the sessions do these pauses
 * grow, up to `done_max_ms`.
 *
 * The contract: each command is allowed in certain states (fl_session_answer()); in any other state
 * it ends the session like a lost connection.
 *
 * Back-off: `backoff_ms`, doubled with each attempt up to `backoff_max_ms`, each time +-20 %; a
 * session that lasted longer than the pause before it resets the series. A pause that the server
 * requests is never shortened, but up to 20 % longer so that clients do not reconnect all at once
 * (a day at most).
 *
 * Refusals: a final one pauses `refused_ms`. One that an operator can resolve, and any of the
 * transport's (for a certificate, say), is retried within `backoff_max_ms`, without limit: a minute
 * by default, which costs the server one handshake. A client whose session was ended by another
 * session of its name begins with that pause and doubles it up to `refused_ms`, so that two hosts
 * with one name do not end each other's sessions all the time; a session of `refused_ms` resets the
 * series.
 *
 * Fetches and pushes that fail temporarily are retried after the same series of pauses while the
 * round lasts.
 *
 * For the caller: after a CANCEL effect, events of the canceled work may still arrive; their key
 * tells them apart. After DISCONNECT a late DISCONNECTED is ignored.
 *
 * Ownership: events are borrowed for the call; effects are valid until the next step.
 * Threading: one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/str.h"
#include "libfl/model/task.h"

enum fl_session_state {
    FL_SESSION_OFFLINE,
    FL_SESSION_CONNECTING,
    FL_SESSION_GREETING,
    FL_SESSION_READY,
    FL_SESSION_FETCHING,
    FL_SESSION_TRAINING,
    FL_SESSION_REPORTED,
    FL_SESSION_PUSHING,
    FL_SESSION_DONE,
    FL_SESSION_STOPPED,
    FL_SESSION_COUNT
};

struct fl_session_conf {
    uint64_t seed;           /* of the jitter */
    uint64_t backoff_ms;     /* first pause after a lost connection */
    uint64_t backoff_max_ms; /* doubled up to this, each time +-20 % */
    uint64_t refused_ms;     /* pause after a final refusal; 0: stop after any refusal */
    bool exit_when_done;     /* a Drain without reconnect ends the process */
    /* Longest pause while a server whose rounds are done ends our sessions; 0: backoff_max_ms. */
    uint64_t done_max_ms;
};

enum fl_session_event_type {
    FL_CEV_START = 1, /* u.held: key of a pending result found on disk */
    FL_CEV_TICK,
    FL_CEV_CONNECTED,       /* channel and control stream are open: send Hello */
    FL_CEV_DISCONNECTED,    /* u.failed: connecting failed or lost; permanent: refused */
    FL_CEV_WELCOME,         /* u.welcome */
    FL_CEV_REFUSED,         /* u.refused */
    FL_CEV_TASK,            /* u.task */
    FL_CEV_PLAN,            /* u.plan */
    FL_CEV_ACCEPTED,        /* u.key: verdict on the push, on either stream */
    FL_CEV_REJECTED,        /* u.failed */
    FL_CEV_DISMISSED,       /* u.key */
    FL_CEV_EVALUATE,        /* u.evaluate */
    FL_CEV_DRAIN,           /* u.drain */
    FL_CEV_HEARTBEAT,       /* of the server */
    FL_CEV_FETCHED,         /* u.key: all payloads are complete */
    FL_CEV_FETCH_FAILED,    /* u.failed; the session itself continues */
    FL_CEV_TRAINED,         /* u.key: result is in memory and on disk */
    FL_CEV_TRAIN_FAILED,    /* u.failed */
    FL_CEV_EVALUATED,       /* u.key: the report went out */
    FL_CEV_EVALUATE_FAILED, /* u.failed: reported to the server, which then does not wait */
    FL_CEV_PUSH_FAILED,     /* u.failed; temporary: the push resumes from PushStatus */
    FL_CEV_RETRY,           /* the cause of a pause may be resolved: end a pause of our own */
    FL_CEV_STOP             /* SIGTERM */
};

/* What has to change before a refused client is accepted. */
enum fl_session_refusal {
    FL_SESSION_REFUSED_FINAL,   /* the client: its configuration, version or certificate */
    FL_SESSION_REFUSED_CURABLE, /* an operator's decision, a clock, a certificate of either side */
    FL_SESSION_REFUSED_FENCED   /* another host with this client's name has to stop */
};

struct fl_session_event {
    enum fl_session_event_type type;
    uint64_t now_ms;
    union {
        struct fl_round_key held;
        struct fl_round_key key;
        struct {
            uint32_t heartbeat_ms;
            bool model_fits; /* the caller prepared the model */
            const char *reason;
            const char *held_unfit; /* why the pending result does not fit; NULL: it fits */
        } welcome;
        struct {
            uint32_t retry_after_ms; /* 0: as `kind` says */
            enum fl_session_refusal kind;
            bool own; /* not the server: this client left, for its owner's limits or its data */
            const char *reason;
        } refused;
        struct {
            struct fl_round_key key;
            bool has_plan;
            const uint8_t *units; /* NULL: all */
            size_t n_units;
        } task;
        struct {
            struct fl_round_key key;
            const uint8_t *units;
            size_t n_units;
        } plan;
        struct {
            struct fl_round_key key;
            const char *reason;
            bool permanent;
            bool diverged; /* not finite: the same task would fail again */
            bool keeps;    /* PUSH_FAILED, permanent: keep the pending result until a verdict */
        } failed;
        struct {
            uint64_t round;
        } evaluate;
        struct {
            uint64_t reconnect_after_ms; /* 0: all rounds are done */
            const char *reason;
        } drain;
    } u;
};

enum fl_session_effect_type {
    FL_CEFF_CONNECT = 1,
    FL_CEFF_DISCONNECT, /* text: what the server failed to do, or NULL */
    FL_CEFF_HELLO,      /* key: of the pending result, round 0: none; yields */
    FL_CEFF_HEARTBEAT,
    FL_CEFF_FETCH, /* key: payloads of the newest task */
    FL_CEFF_TRAIN, /* key */
    FL_CEFF_CANCEL_TRAIN,
    FL_CEFF_REPORT, /* key: of the pending result */
    FL_CEFF_FAILED, /* key, text, diverged: send Failed */
    FL_CEFF_PUSH,   /* key, units: PushStatus, then Push from there */
    FL_CEFF_CANCEL_PUSH,
    FL_CEFF_CANCEL_FETCH,
    FL_CEFF_DROP,          /* key: drop the pending result, whatever the verdict */
    FL_CEFF_EVALUATE,      /* key.round: fetch the model, evaluate, send the report */
    FL_CEFF_NO_EVALUATION, /* key.round, text: send an empty evaluation */
    FL_CEFF_TRACE,         /* text */
    FL_CEFF_NOTICE,        /* text: for the operator's log, such as the next reconnect */
    FL_CEFF_EXIT           /* code: enum fl_session_exit; text says why */
};

enum fl_session_exit {
    FL_SESSION_EXIT_DONE = 0,    /* stopped, or the federation has finished */
    FL_SESSION_EXIT_REFUSED = 1, /* permanently, and refused_ms is 0 */
    FL_SESSION_EXIT_MODEL = 2    /* the model does not fit, and refused_ms is 0 */
};

struct fl_session_effect {
    enum fl_session_effect_type type;
    struct fl_round_key key;
    const uint8_t *units; /* NULL: all */
    size_t n_units;
    const char *text;
    bool diverged;
    bool yields; /* ask only for a session that no other host has */
    int code;
};

struct fl_session_effects {
    const struct fl_session_effect *list;
    size_t n;
};

struct fl_session;

/* How a command of the server (FL_CEV_WELCOME to FL_CEV_HEARTBEAT) is handled in a state. */
enum fl_session_answer {
    FL_SESSION_IGNORES,
    FL_SESSION_TAKES,
    FL_SESSION_BREACH /* violates the contract: ends the session, with back-off */
};
/*
 * Call it before processing a command: only FL_SESSION_TAKES may change anything of the caller's.
 * The other commands are stepped all the same, their contents are not read.
 */
enum fl_session_answer fl_session_answer(enum fl_session_state state,
                                         enum fl_session_event_type command);
/*
 * False for a Task of the current round, or of none: it must not replace what the session works
 * with.
 */
bool fl_session_task_is_new(const struct fl_session *session, struct fl_round_key key);
/*
 * Does an upload mask select only layers of a model with `model_units`? `units` NULL: all of them.
 */
bool fl_session_plan_fits(const uint8_t *units, size_t n_units, size_t model_units);
/* The name of a command in the contract, such as "Welcome". */
const char *fl_session_command_name(enum fl_session_event_type command);

/* FL_EINVAL: backoff_ms is 0 or above backoff_max_ms; FL_ENOMEM. */
FL_MUST_CHECK int fl_session_create(const struct fl_session_conf *conf, struct fl_session **ret);
void fl_session_free(struct fl_session *session);
/*
 * Events that do not fit the state are ignored or answered, never an error. Out of memory for an
 * upload mask ends the session like a lost connection: the server sends it again in the next one.
 */
void fl_session_step(struct fl_session *session, const struct fl_session_event *event,
                     struct fl_session_effects *ret);
/* When the next FL_CEV_TICK is due; UINT64_MAX: never. */
uint64_t fl_session_deadline(const struct fl_session *session);
enum fl_session_state fl_session_state(const struct fl_session *session);
const char *fl_session_state_name(enum fl_session_state state);

#endif
