#ifndef FL_CLIENT_CORE_SESSION_IMPL_H
#define FL_CLIENT_CORE_SESSION_IMPL_H

/* Private to client/core: session.c has the connection, session_round.c the rounds. */

#include "client/core/session.h"
#include "libfl/base/rng.h"
#include "libfl/base/sm.h"

#define FL__NEVER UINT64_MAX
/* More effects than any event causes: a new task that replaces everything causes nine. */
#define FL__EFFECTS_MAX 24
#define FL__LINES_MAX   8
#define FL__LINE_SIZE   384

struct fl_session {
    struct fl_session_conf conf;
    struct fl_sm sm;
    struct fl_rng rng;
    bool started;

    /* The connection. */
    unsigned lost;   /* consecutive failures, as the next two: length of the next pause */
    unsigned done;   /* sessions that a finished server ended */
    unsigned fenced; /* sessions that another one of the same name ended */
    /*
     * Fenced: until then this client asks only for a session that no other host has; 0: it is not.
     */
    uint64_t fence_until;
    bool yields;           /* the Hello of this connection said so */
    uint64_t last_wait_ms; /* the pause before this session */
    uint64_t wake_at;      /* OFFLINE: reconnect time */
    bool server_pause;     /* OFFLINE: the server requested this pause */
    uint64_t greet_until;  /* GREETING: timeout of Welcome */
    uint64_t welcomed_at;
    uint64_t done_at; /* DONE since */
    uint64_t heartbeat_ms;
    uint64_t heartbeat_at;
    uint64_t heard_at;

    /* The current round: set from FETCHING to PUSHING. */
    struct fl_round_key task;
    bool has_plan;
    uint8_t *units; /* [n_units], NULL: all */
    size_t n_units;
    unsigned transfer;    /* failed fetches or pushes */
    uint64_t transfer_at; /* retry time of a failed fetch or push */

    /* Work beside the current round; round 0: none. */
    struct fl_round_key training;
    struct fl_round_key held;
    uint64_t evaluating; /* round, 0: none */

    /* Effects of the last step and the texts they point to. */
    struct fl_session_effect effects[FL__EFFECTS_MAX];
    size_t n_effects;
    char lines[FL__LINES_MAX][FL__LINE_SIZE];
    size_t n_lines;
    const char *why; /* reason of the current transition */
};

static const struct fl_round_key fl__no_round = {0, 0};

bool fl__key_equal(struct fl_round_key a, struct fl_round_key b);
bool fl__session_connected(const struct fl_session *s); /* welcomed */
struct fl_session_effect *fl__session_emit(struct fl_session *s, enum fl_session_effect_type type,
                                           struct fl_round_key key);
/* Format a text that is valid until the next step. */
FL_PRINTF(2, 3) const char *fl__session_text(struct fl_session *s, const char *fmt, ...);
/* Move to another state; `why` is the reason in the trace line. */
void fl__session_move(struct fl_session *s, enum fl_session_state state, const char *why);
/* The pause after one more failure, with jitter; the series grows to `max_ms`. */
uint64_t fl__session_wait(struct fl_session *s, unsigned *failures, uint64_t max_ms);
uint64_t fl__later(uint64_t now_ms, uint64_t span_ms);

/* Leave the current round: cancel everything for it except training. */
void fl__round_leave(struct fl_session *s);
/* As above, and READY when connected. */
void fl__round_end(struct fl_session *s, const char *why);
/* End a training run, if there is one. */
void fl__round_cancel_training(struct fl_session *s);
/* Events of the rounds, in connected states unless noted. */
FL_MUST_CHECK int fl__round_task(struct fl_session *s, const struct fl_session_event *event);
FL_MUST_CHECK int fl__round_plan(struct fl_session *s, const struct fl_session_event *event);
void fl__round_fetched(struct fl_session *s, struct fl_round_key key);
void fl__round_fetch_failed(struct fl_session *s, const struct fl_session_event *event);
void fl__round_trained(struct fl_session *s, struct fl_round_key key); /* in any state */
void fl__round_train_failed(struct fl_session *s, const struct fl_session_event *event);
void fl__round_push_failed(struct fl_session *s, const struct fl_session_event *event);
/* The round was accepted, rejected, or dismissed. */
void fl__round_over(struct fl_session *s, struct fl_round_key key, const char *why);
void fl__round_evaluate(struct fl_session *s, uint64_t round);
void fl__round_evaluate_failed(struct fl_session *s, const struct fl_session_event *event);
/* Retry a fetch or push that is due. */
void fl__round_tick(struct fl_session *s, uint64_t now_ms);

#endif
