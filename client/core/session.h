#ifndef FL_CLIENT_CORE_SESSION_H
#define FL_CLIENT_CORE_SESSION_H

/*
 * The client's side of a federation as a pure state machine: events in, effects out.
 * No clock, no I/O, no threads; random back-off comes from the given seed.
 *
 *                                          task      fetched     trained     plan
 *   OFFLINE -> CONNECTING -> GREETING -> READY -> FETCHING -> TRAINING -> REPORTED -> PUSHING
 *      ^          |             |        ^ | |                  ^           ^   |         |
 *      |          |             |        | | +- training still -+           |   |         |
 *      |          |             |        | +--- result still kept ----------+   |         |
 *      |          |             |        +------ verdict, failure, other round -+---------+
 *      +----------+-------------+------- any of them: connection lost, server silent,
 *                                        refused, drained (back-off with jitter)
 *   DONE beside READY: all rounds are done (a Drain without a time), the session stands; a
 *   task begins the next round as from READY.
 *   STOPPED beside them: SIGTERM, refused for good, or done and told to exit then.
 *
 * The state is that of the conversation with the server; three things go on beside it:
 * a training run (not stopped by a lost connection; it is when another round's task
 * comes), a held result, and an evaluation. There is never a training run and a held
 * result at once, and never two of either.
 *
 * A finished result is on disk before FL_CEV_TRAINED, and so survives the process: after
 * a reconnect the server sends the same task again, and a client that still holds the
 * result of (round, attempt) reports at once instead of training.
 *
 * What a solver keeps between rounds does not hang on verdicts: accepted is not yet in a
 * committed round. The glue takes it over, or drops it, when the task of another (round,
 * attempt) comes (Task.counted of the wire); it has to outlive FL_CEFF_DROP until then, and
 * the same task that comes again after a reconnect.
 *
 * Sign of life: a heartbeat every interval of Welcome; a server that says nothing for
 * three intervals is taken for gone.
 *
 * A finished federation is no refusal. A session that stands costs next to nothing, and its loss is
 * the surest sign that the server was restarted, perhaps with more rounds: the client asks again
 * after the first waits of the usual series. Only while such a server ends our sessions over and
 * over do these waits go on growing, up to `done_max_ms`.
 *
 * The contract: each command has its places (fl_session_answer()); in any other it ends the
 * session like a lost connection.
 *
 * Back-off: `backoff_ms`, doubled with each attempt up to `backoff_max_ms`, each time
 * +-20 %; a session that outlived the wait before it starts the series anew. A wait that
 * the server asks for is never cut short, but up to 20 % longer so that clients do not
 * come back all at once (a day at most).
 *
 * Refusals: a final one waits `refused_ms`. One that an operator can cure, and any of the
 * transport's (of a certificate, say), asks again within `backoff_max_ms`, for as long as it takes:
 * a minute by default, which costs the server one handshake. A client that another session of its
 * name ended begins with that wait and doubles it up to `refused_ms`, so that two hosts with one
 * name do not end each other's sessions all the time; a session of `refused_ms` begins the series
 * again.
 *
 * Fetches and pushes that fail for a while are
 * tried again after the same series of waits as long as the round stands.
 *
 * The glue: after a CANCEL effect events of what was cancelled may still come, they are
 * told apart by their key; after DISCONNECT a late DISCONNECTED is ignored.
 *
 * Ownership: events are borrowed for the call; effects are valid until the next step.
 * Threading: one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/str.h"

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
    uint64_t backoff_ms;     /* first wait after a lost connection */
    uint64_t backoff_max_ms; /* doubled up to this, each time +-20 % */
    uint64_t refused_ms;     /* wait after a final refusal; 0: give up after any */
    bool exit_when_done;     /* a Drain without reconnect ends the process */
    /* Longest wait while a server whose rounds are done ends our sessions; 0: backoff_max_ms. */
    uint64_t done_max_ms;
};

struct fl_round_key {
    uint64_t round; /* 0: none */
    uint32_t attempt;
};

enum fl_session_event_type {
    FL_CEV_START = 1, /* u.held: result found on disk */
    FL_CEV_TICK,
    FL_CEV_CONNECTED,    /* channel is up, Attend is open: say hello */
    FL_CEV_DISCONNECTED, /* u.failed: connecting failed, or lost at any time; permanent: a refusal
                          */
    FL_CEV_WELCOME,      /* u.welcome */
    FL_CEV_REFUSED,      /* u.refused */
    FL_CEV_TASK,         /* u.task */
    FL_CEV_PLAN,         /* u.plan */
    FL_CEV_ACCEPTED,     /* u.key: verdict on the push, on either stream */
    FL_CEV_REJECTED,     /* u.failed */
    FL_CEV_DISMISSED,    /* u.key */
    FL_CEV_EVALUATE,     /* u.evaluate */
    FL_CEV_DRAIN,        /* u.drain */
    FL_CEV_HEARTBEAT,    /* the server's */
    FL_CEV_FETCHED,      /* u.key: all bundles are here */
    FL_CEV_FETCH_FAILED, /* u.failed; the session itself stands */
    FL_CEV_TRAINED,      /* u.key: result is in memory and on disk */
    FL_CEV_TRAIN_FAILED, /* u.failed */
    FL_CEV_EVALUATED,    /* u.key: the report went out */
    FL_CEV_EVALUATE_FAILED, /* u.failed: the server is told, so that it does not wait */
    FL_CEV_PUSH_FAILED,     /* u.failed; temporary: push goes on from PushStatus */
    FL_CEV_RETRY,           /* what kept it away may be over: a wait that is ours ends now */
    FL_CEV_STOP             /* SIGTERM */
};

/* What has to change before a client that was refused is let in. */
enum fl_session_refusal {
    FL_SESSION_REFUSED_FINAL,   /* the client: its configuration, version or certificate */
    FL_SESSION_REFUSED_CURABLE, /* an operator's word, a clock, a certificate of either side */
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
            bool model_fits; /* the glue could build or match the model */
            const char *reason;
            const char *held_unfit; /* why the held result is of no use for it; NULL: it is */
        } welcome;
        struct {
            uint32_t retry_after_ms; /* 0: as `kind` says */
            enum fl_session_refusal kind;
            const char *reason;
        } refused;
        struct {
            struct fl_round_key key;
            bool has_plan;
            const uint8_t *units; /* NULL: all */
            size_t n_units;
            uint64_t deadline_ms; /* span */
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
            bool keeps;    /* PUSH_FAILED, permanent: the held result stays for a verdict */
        } failed;
        struct {
            uint64_t round;
            uint64_t deadline_ms;
        } evaluate;
        struct {
            uint64_t reconnect_after_ms; /* 0: over for good */
            const char *reason;
        } drain;
    } u;
};

enum fl_session_effect_type {
    FL_CEFF_CONNECT = 1,
    FL_CEFF_DISCONNECT, /* text: what the server did not do, or NULL */
    FL_CEFF_HELLO,      /* key: what is held, round 0: nothing */
    FL_CEFF_HEARTBEAT,
    FL_CEFF_FETCH, /* key: bundles of the newest task */
    FL_CEFF_TRAIN, /* key */
    FL_CEFF_CANCEL_TRAIN,
    FL_CEFF_REPORT, /* key: from the held result */
    FL_CEFF_FAILED, /* key, text, diverged: tell the server */
    FL_CEFF_PUSH,   /* key, units: PushStatus, then Push from there */
    FL_CEFF_CANCEL_PUSH,
    FL_CEFF_CANCEL_FETCH,
    FL_CEFF_DROP,          /* key: forget the held result, whatever the verdict */
    FL_CEFF_EVALUATE,      /* key.round: fetch the model, evaluate, send the report */
    FL_CEFF_NO_EVALUATION, /* key.round, text: tell the server that none comes */
    FL_CEFF_TRACE,         /* text */
    FL_CEFF_NOTICE,        /* text: what the operator should know, such as when it asks again */
    FL_CEFF_EXIT           /* code: enum fl_session_exit; text says why */
};

enum fl_session_exit {
    FL_SESSION_EXIT_DONE = 0,    /* stopped, or the federation is over */
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
    int code;
};

struct fl_session_effects {
    const struct fl_session_effect *list;
    size_t n;
};

struct fl_session;

/* What a command of the server (FL_CEV_WELCOME to FL_CEV_HEARTBEAT) means in a state. */
enum fl_session_answer {
    FL_SESSION_IGNORES,
    FL_SESSION_TAKES,
    FL_SESSION_BREACH /* of the contract: ends the session, with back-off */
};
/*
 * Asked before a command is looked at: only one that is taken may change anything of the
 * caller's. The others are stepped all the same, their contents are not read.
 */
enum fl_session_answer fl_session_answer(enum fl_session_state state,
                                         enum fl_session_event_type command);
/*
 * A Task of the round that the session is in already, or of none, is ignored: nothing of it is to
 * replace what the session works with.
 */
bool fl_session_task_is_new(const struct fl_session *session, struct fl_round_key key);
/* Whether a plan grants units of a model with `model_units` only; `units` NULL: all of them. */
bool fl_session_plan_fits(const uint8_t *units, size_t n_units, size_t model_units);
/* "Welcome", as in the contract. */
const char *fl_session_command_name(enum fl_session_event_type command);

/* FL_EINVAL: backoff_ms is 0 or above backoff_max_ms; FL_ENOMEM. */
FL_MUST_CHECK int fl_session_create(const struct fl_session_conf *conf, struct fl_session **ret);
void fl_session_free(struct fl_session *session);
/*
 * Events that do not fit the state are ignored or answered, never an error. A plan that finds no
 * memory ends the session like a lost connection: the server says it again in the next.
 */
void fl_session_step(struct fl_session *session, const struct fl_session_event *event,
                     struct fl_session_effects *ret);
/* When the next FL_CEV_TICK is due; UINT64_MAX: never. */
uint64_t fl_session_deadline(const struct fl_session *session);
enum fl_session_state fl_session_state(const struct fl_session *session);
/* Why there is no session, with the wait: valid in FL_SESSION_OFFLINE, else "". Until the next
 * step. */
const char *fl_session_offline_reason(const struct fl_session *session);
const char *fl_session_state_name(enum fl_session_state state);

#endif
