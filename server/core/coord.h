#ifndef FL_CORE_COORD_H
#define FL_CORE_COORD_H

/*
 * The federation as a pure state machine: events in, effects out. No clock, no I/O,
 * no threads, no randomness of its own (streams are keyed by the configured seed).
 * The same events give the same effects, byte for byte.
 *
 *   IDLE -> SELECTING -> TRAINING -> PLANNING -> UPLOADING -> AGGREGATING -> EVALUATING
 *     ^                     |  (PLANNING only when the upload slot needs feedback)    |
 *     +---- retry ----------+                                                         v
 *     +------------------------------------------------------------------------- COMMITTING
 *   PAUSED, DRAINING, STOPPED beside them. PAUSED is on disk with its reason: whoever asked for it,
 *   it outlives the process, until RESUME.
 *
 * Persist before promise: an effect that tells a client "accepted", or that starts
 * work which depends on a decision, is sent only after the PERSISTED event of the
 * record it depends on.
 *
 * One timeout model: a deadline per phase. fl_coord_deadline() is when the caller
 * must step FL_EV_TICK at the latest.
 *
 * Ownership: events are borrowed for the call. Effects and everything they point to
 * stay valid until the next step.
 * Threading: one thread.
 */

#include <math.h>

#include "libfl/strategy/strategy.h"
#include "server/core/records.h"

/*
 * What goes wrong, and what follows:
 *
 *   client silent past the deadline, or past the
 *   straggler timeout (no report, or no bytes of
 *   its upload, or too few), or lost for longer than the         it is LOST: leaves the responders,
 *   grace, or failed                                 DISMISSED when it is connected
 *   bad report or upload, or an upload that cannot   REJECTED for this round
 *   have the divergences of its report
 *   evaluation that cannot be true in a report       left out; the update counts
 *   too few responders left                          attempt aborted: a record of that is
 *                                                    persisted, then DISMISSED and
 *                                                    ROUND_CLOSED; attempt + 1 after retry_ms
 *   a record, a commit or the aggregation fails      asked for again after retry_ms, doubled
 *   (disk full, no memory)                           up to 64 times; why() says so
 *   the aggregation blames a client                  its update is left out and counted as
 *                                                    rejected; ACCEPTED is not taken back
 *   an update is far larger than the median one      left out when all are in (norm_cap), counted
 *                                                    as rejected; ACCEPTED is not taken back
 *   the new model is not finite                      attempt aborted, PAUSED with the reason;
 *                                                    RESUME begins attempt + 1 of the round
 *   a client's training diverged                     it is LOST, as failed; one whose update is not
 *                                                    finite, or was left out, is REJECTED. An
 *                                                    attempt that is aborted and would not be if
 *                                                    such clients had answered: PAUSED as above,
 *                                                    for the same model and rates would do it again
 *   evaluation fails                                 committed without accuracy
 *   server dies                                      resumes at the last record: accepted
 *                                                    updates count, the others are asked again
 */

enum fl_phase {
    FL_PHASE_IDLE,
    FL_PHASE_SELECTING,
    FL_PHASE_TRAINING,
    FL_PHASE_PLANNING,
    FL_PHASE_UPLOADING,
    FL_PHASE_AGGREGATING,
    FL_PHASE_EVALUATING,
    FL_PHASE_COMMITTING,
    FL_PHASE_PAUSED,
    FL_PHASE_DRAINING,
    FL_PHASE_STOPPED,
    FL_PHASE_COUNT
};

/* min_responders: half of the clients that the round wants, rounded up. */
#define FL_RESPONDERS_HALF UINT32_MAX

struct fl_coord_conf {
    uint64_t seed;
    uint64_t rounds; /* 0: without end */
    /*
     * N of the fraction; 0: the clients with samples that are connected, and those that are not but
     * were counted in a committed round and are not forgotten. A solver's means are over all that
     * were ever counted or are connected, and over at least so many.
     */
    uint32_t population;
    /* More names are not admitted; 0: a built-in limit. Names that were never counted and are
       away make room first. */
    uint32_t max_clients;
    /* A client that was away for so long is forgotten, as if by FL_EV_FORGET; 0: never. That is
       time of the monotonic clock while the server was up: whoever sets the wall clock makes nobody
       older. */
    uint64_t forget_after_ms;
    uint32_t start_clients; /* alive before the first round of a run begins */
    uint32_t min_clients;   /* alive before any round begins */
    /*
     * Fewer responders (accepted updates, and clients of whom the plan asks nothing), or no
     * update at all: the attempt is aborted and repeated after retry_ms. At least so many
     * are asked, whatever the fraction says, and have to be alive. With 0 a round that
     * nobody answers is committed with the model unchanged. Without uploads
     * by design (fl_upload_ops.never) no update is needed. FL_RESPONDERS_HALF depends on what
     * the round wants: it asks for no more clients and waits for none before a round.
     */
    uint32_t min_responders;
    /*
     * Select ceil(K * this); >= 1. The first K that are in are aggregated, the others are DISMISSED
     * then; with over_grace they have lost_grace_ms left, and are aggregated when they arrive.
     * In: reports where the plan needs feedback (K of them are planned for), else updates, and
     * reports of clients of whom nothing is asked.
     */
    double over_selection;
    bool over_grace;
    /*
     * The straggler timeout. Once half of the reports are in, the others have this many times as
     * long as those took, more by as much as they have more samples, and straggler_min_ms at
     * least. Once half of the uploads are in, a client that was asked for one and of which no byte
     * arrives for so many times as long as those took, and for straggler_min_ms at least, is lost;
     * before, only when no byte of any upload arrives for so long. 0: the whole deadline.
     *
     * An upload that moves is held to a least rate, too, from then on: in each such span as many
     * bytes arrive as at patience_rate bytes a second, or as at 1/patience of the lowest rate among
     * the first half, whichever is less. 0: any byte is enough.
     */
    double straggler_factor;
    uint64_t straggler_min_ms, patience_rate;
    /*
     * A client counts with this many times the samples of the median client at most, of those that
     * are connected when a round is drawn: in the draw and in the aggregation. 0: without a bound.
     */
    double weight_cap;
    /*
     * An accepted update whose norm is more than this many times the median one of the round is
     * left out, of three at least (docs/formulas.md#the-norm-of-an-update). 0: none is.
     */
    double norm_cap;
    uint64_t train_ms;    /* deadline from task to report */
    uint64_t upload_ms;   /* deadline from plan to accepted upload */
    uint64_t evaluate_ms; /* deadline of client evaluation */
    /*
     * A client of the round whose connection went is given up after this span (or at the
     * deadline of the phase if that is sooner); 0: at once. Customary: 10 s. After a
     * restart of the server the clients of the open round have the whole deadline, and
     * without an open round the known ones have this span before the next selection.
     */
    uint64_t lost_grace_ms;
    uint64_t restart_ms;     /* told to clients when the server stops: come back after that */
    uint64_t retry_ms;       /* first pause after an aborted attempt, doubled up to 64 times */
    uint32_t evaluate_every; /* 0: never; the last round is always evaluated otherwise */
    bool evaluate_server;    /* the server has a test set */
    /* Ask all connected clients that have test data; always so with personal `adapts`. */
    bool evaluate_clients;
    double learning_rate;
    double learning_rate_decay; /* eta_t = eta * decay^(t-1) */
    bool backfill;              /* ldf: ask the next-ranked once when an uploader goes silent */
    const struct fl_strategy *strategy; /* keeps a reference to */
    const struct fl_layout *layout;     /* keeps a reference to */
};

/* eta_t of round t, which is 1 at least. */
static inline double fl_coord_learning_rate(const struct fl_coord_conf *conf, uint64_t round)
{
    return conf->learning_rate * pow(conf->learning_rate_decay, (double)(round - 1));
}

/* Why the federation is paused, with its end. */
#define FL_PAUSE_SIZE 768

/* Numbers of clients are below this. */
#define FL_CLIENT_NUMBERS (1u << 24)

/* State to continue from after a restart. */
struct fl_coord_resume {
    uint64_t committed; /* last committed round, 0: none */
    /* By their ids, which may have gaps: numbers that nobody has now. */
    const struct fl_client_rec *clients;
    size_t n_clients;
    uint64_t expected; /* as of the last PERSIST_SELECTION */
    uint64_t epoch;    /* as of the last effect that told it; 0: none has */
    uint64_t up_ms;    /* newest of the clock of seen_up_ms that anything on disk tells */
    /* The open round, when a selection was persisted and no commit: parts that are not
       ACCEPTED start over, ACCEPTED ones count as they are. n_parts 0: none is open, the
       next selection is open_attempt of open_round. */
    uint64_t open_round;
    uint32_t open_attempt;
    bool planned; /* a plan was persisted */
    struct fl_round_size size;
    const struct fl_participant_rec *parts;
    size_t n_parts;
    /*
     * The owner went back to an older model: attempts of rounds up to used_round begin behind
     * used_attempt, so that no client takes one for another that had its number. 0: never.
     */
    uint64_t used_round;
    uint32_t used_attempt;
    char pause[FL_PAUSE_SIZE]; /* as of the last PERSIST_PAUSE; "": none */
};

enum fl_event_type {
    FL_EV_START = 1,
    FL_EV_TICK, /* a deadline has passed, or just time */
    /* u.joined; a second one for the same name replaces the first: a new session, or a client
       that is ready only now (0 samples before; it is not selected with 0). */
    FL_EV_CLIENT_JOINED,
    /* u.offered: what it tells of its data is on disk, or too late to count: it can be selected. */
    FL_EV_CLIENT_OFFERED,
    FL_EV_CLIENT_LOST,  /* u.client */
    FL_EV_CLIENT_HEARD, /* u.client: a sign of life, for its last_seen_ms */
    FL_EV_FORGET,       /* u.client: see RELEASE; nothing is kept of it. Answer: FORGOTTEN */
    FL_EV_RELEASED,     /* u.client: answer to RELEASE */
    /*
     * u.excluded: it is not believed any more. What it sent for the open round does not count, also
     * what was accepted, unless the new model is made already.
     */
    FL_EV_EXCLUDE,
    FL_EV_REPORT,         /* u.report */
    FL_EV_CLIENT_FAILED,  /* u.failed */
    FL_EV_UPLOAD_STORED,  /* u.upload: complete, valid, on disk */
    FL_EV_UPLOAD_INVALID, /* u.upload.reason */
    /* u.upload.reason, code: the server cannot store it now. Its client tries again, and is not
       late; with FL_EIO, which concerns its file alone, it has no more time, and being late does
       not count against it. */
    FL_EV_UPLOAD_UNSTORED,
    /* u.upload.client, round, attempt, bytes (of the upload, as far as they have arrived), held:
       more of its upload arrived, or lies with the server. */
    FL_EV_UPLOAD_PROGRESS,
    FL_EV_EVAL_REPORT, /* u.eval: a client's evaluation */
    FL_EV_PERSISTED,   /* u.seq */
    FL_EV_AGGREGATED,  /* u.aggregated */
    FL_EV_EVALUATED,   /* u.evaluated: server evaluation done */
    FL_EV_COMMITTED,   /* u.seq */
    FL_EV_WORK_FAILED, /* u.failed_work: aggregate, evaluate, persist or commit failed */
    /* Wishes of the operator. Each has one ANSWER; the next one comes after that. */
    FL_EV_PAUSE, /* u.reason, may be NULL: no new round; PAUSED after the open one, until RESUME */
    FL_EV_RESUME,
    FL_EV_DRAIN,       /* no new round; after the open one: STOPPED */
    FL_EV_NEW_EPOCH,   /* what a solver's part sums up restarts at zero with the next round */
    FL_EV_ABORT_ROUND, /* u.reason, may be NULL: attempt + 1 at once, or PAUSED or STOPPED */
    /*
     * u.reason, for the clients: the process ends. What they say does not count any more, they say
     * it again to the next one. STOPPED as soon as nothing is being written; the open round stays
     * open.
     */
    FL_EV_STOP
};

struct fl_event {
    enum fl_event_type type;
    uint64_t now_ms;  /* monotonic */
    uint64_t wall_ms; /* for records */
    union {
        struct {
            const char *name;
            const char *agent;
            uint64_t samples;
            uint64_t evaluation_samples;
            bool offer_missing; /* what it tells of its data; it counts for no samples before */
        } joined;
        struct {
            uint32_t client;
            const char *name; /* the number may be another's by now */
        } offered;
        uint32_t client;
        struct {
            uint32_t client;
            const char *reason;
        } excluded;
        struct {
            uint32_t client;
            uint64_t round;
            uint32_t attempt;
            uint64_t samples, steps;
            double train_loss;
            const float *divergence; /* [n_divergence], checked by the core */
            size_t n_divergence;
            double previous_dot;
            struct fl_eval_rec received, trained;
            bool has_kept; /* what it trained with is of that round; 0: it had nothing */
            uint64_t kept_round;
            uint32_t kept_attempt;
        } report;
        struct {
            uint32_t client;
            uint64_t round;
            uint32_t attempt;
            const char *reason;
            bool diverged; /* training left the finite numbers */
        } failed;
        struct {
            uint32_t client;
            uint64_t round;
            uint32_t attempt;
            uint64_t bytes;
            bool held; /* PROGRESS: it waits for the server, whatever has arrived */
            int code;  /* INVALID, UNSTORED: of the error */
            const char *reason;
            const struct fl_norms *norms; /* STORED; NULL: not known */
        } upload;
        struct {
            uint32_t client;
            uint64_t round;
            struct fl_eval_rec result, adapted; /* adapted.samples 0: none */
        } eval;
        uint64_t seq;
        const char *reason;
        struct {
            uint64_t seq;
            const double *distance; /* [n_responders of the effect], NULL when not asked */
            double effective, self_weight;
            uint64_t offered_bytes; /* of the bundle `offered`; 0: none */
        } aggregated;
        struct {
            uint64_t seq;
            double accuracy, loss;
        } evaluated;
        struct {
            uint64_t seq;
            int code;
            const char *reason;
            uint32_t client; /* aggregate: whose update is bad; UINT32_MAX: none */
        } failed_work;
    } u;
};

enum fl_effect_type {
    FL_EFF_TASK = 1,  /* to a client: train (plan included when `units` is set) */
    FL_EFF_PLAN,      /* to a client: upload these units */
    FL_EFF_ACCEPTED,  /* to a client */
    FL_EFF_REJECTED,  /* to a client, with reason */
    FL_EFF_DISMISSED, /* to a client: forget the round */
    FL_EFF_EVALUATE_CLIENT,
    /* To `client`, or to all (UINT32_MAX): the federation is over (deadline_ms 0) or the
       server stops (deadline_ms: come back after that); text. */
    FL_EFF_DRAIN_CLIENTS,
    /* Answer to CLIENT_JOINED: the client's number, or UINT32_MAX and the reason in text when
       it is not admitted. */
    FL_EFF_CLIENT_ID,
    /*
     * The client's number means nobody any more: it was forgotten (text says why), or it went
     * without ever having been selected (text ""). End its session if there is one, drop what is
     * held under the number, and answer RELEASED when no event of it can come any more: from
     * then on the number may be another client's. Who comes back under the name is new, and is
     * told so by a task that names no counted round. The N of the next round's size is without
     * it, and so are its members: a solver's part that sums up what clients keep restarts at zero
     * with the next round (fl_round_size.epoch).
     */
    FL_EFF_RELEASE,
    /* seq; clients: their records are to go, or with `forgotten` to stay with that mark for as
       long as the open round needs them. */
    FL_EFF_FORGET_CLIENTS,
    /* Answer to FORGET, of a client: it is nobody, also to a server that is killed now. With text:
       that could not be written, and a killed server knows it again; it is tried again. */
    FL_EFF_FORGOTTEN,
    /* seq; round, attempt, size and parts (with units when no feedback is needed), and the
       records of those of their clients that have none on disk yet: with their first selection
       they get one; expected. No parts: the attempts before this one are over and nothing of
       them counts any more. */
    FL_EFF_PERSIST_SELECTION,
    FL_EFF_PERSIST_PLAN,   /* seq; parts with divergence and units */
    FL_EFF_PERSIST_UPDATE, /* seq; one part that was accepted (EMPTY: nothing was asked), or
                              that is REJECTED after all */
    FL_EFF_PERSIST_PAUSE,  /* seq; text: why the federation is paused; NULL: it is not */
    FL_EFF_AGGREGATE,      /* seq; the accepted parts in client order, maybe none */
    FL_EFF_EVALUATE,       /* seq; the server evaluates the new model */
    FL_EFF_COMMIT,         /* seq; round record and the client records that changed */
    FL_EFF_ROUND_OPEN,     /* pushes for (round, attempt) are welcome from now on; size */
    FL_EFF_ROUND_CLOSED,   /* nobody reads the spool files of (round, attempt) any more */
    /* Of a client, text: what went wrong with it, for whoever looks for the reason. Clean, and at
       most FL_CLIENT_ERROR_SIZE with its end. */
    FL_EFF_CLIENT_ERROR,
    FL_EFF_TRACE,    /* one readable line, part of the tested behaviour */
    FL_EFF_FINISHED, /* all rounds done: STOPPED */
    FL_EFF_STOPPED,  /* STOPPED for DRAIN or STOP: nothing is being written, the process may end */
    /* To a wish: text says what follows. code FL_ESTATE: why nothing does; FL_EIO: it is so, and
       would not outlive a kill. */
    FL_EFF_ANSWER
};

struct fl_effect {
    enum fl_effect_type type;
    uint64_t seq;
    uint32_t client;
    uint64_t round;
    uint32_t attempt;
    double learning_rate;
    uint64_t client_seed;
    uint64_t order_seed;  /* the client's, the same in every round */
    uint64_t deadline_ms; /* span from now */
    const uint8_t *units; /* [n_units] or NULL */
    const char *text;     /* reason or trace line */
    bool warning;         /* TRACE: an operator should know of it */
    int code;             /* ANSWER */
    const struct fl_participant_rec *parts;
    size_t n_parts;
    const struct fl_client_rec *clients;
    size_t n_clients;
    const struct fl_round_rec *record;
    bool want_distance;
    /* TASK: the client's newest counted round (its record), and, with personal "own", whether
       the last commit made a mixture for it. */
    uint64_t counted_round;
    uint32_t counted_attempt;
    struct fl_round_size size; /* of the open round, in every effect about it */
    bool mixture;
    uint64_t expected; /* PERSIST_SELECTION: clients that the next selection can count on */
    uint64_t epoch;    /* of the next round's size; on disk before what the effect asks for */
};

struct fl_effects {
    const struct fl_effect *list;
    size_t n;
};

struct fl_coord;

FL_MUST_CHECK int fl_coord_create(const struct fl_coord_conf *conf,
                                  const struct fl_coord_resume *resume, struct fl_coord **ret,
                                  struct fl_err *err);
void fl_coord_free(struct fl_coord *coord);

/*
 * Take one event. Events that do not fit (wrong round, unknown client, repeated) are
 * answered or ignored, never an error. FL_ENOMEM leaves the state as it was.
 */
FL_MUST_CHECK int fl_coord_step(struct fl_coord *coord, const struct fl_event *event,
                                struct fl_effects *ret);
/* When the next FL_EV_TICK is due; UINT64_MAX: never. */
uint64_t fl_coord_deadline(const struct fl_coord *coord);

/* --- questions; answers are valid until the next step --- */

enum fl_phase fl_coord_phase(const struct fl_coord *coord);
const char *fl_phase_name(enum fl_phase phase);
/* Open round, or the next one when none is open. */
uint64_t fl_coord_round(const struct fl_coord *coord);
uint32_t fl_coord_attempt(const struct fl_coord *coord);
uint64_t fl_coord_committed(const struct fl_coord *coord);
/* Numbers of clients are below this; not each of them is anybody's. */
size_t fl_coord_numbers(const struct fl_coord *coord);
/* The number of a name that is known, or UINT32_MAX. */
uint32_t fl_coord_find(const struct fl_coord *coord, const char *name);
size_t fl_coord_n_known(const struct fl_coord *coord);
size_t fl_coord_n_connected(const struct fl_coord *coord);
/* The clock of fl_client_rec.seen_up_ms now. */
uint64_t fl_coord_up_ms(const struct fl_coord *coord);
/* N of the next round's fraction. */
size_t fl_coord_population(const struct fl_coord *coord);
/* The record of a known client, NULL for any other number. */
const struct fl_client_rec *fl_coord_client(const struct fl_coord *coord, uint32_t client);
/* The same, also of one that is forgotten and still has a part in the open round. */
const struct fl_client_rec *fl_coord_part_client(const struct fl_coord *coord, uint32_t client);
/* Its share of all scores: the attention it has. */
double fl_coord_score(const struct fl_coord *coord, uint32_t client);
bool fl_coord_connected(const struct fl_coord *coord, uint32_t client);
/* The client's part in the open round, or NULL. */
const struct fl_participant_rec *fl_coord_part(const struct fl_coord *coord, uint32_t client);
/* Its part is LOST for no fault of its own: enough others were in (over_selection), or the server
   lost its update. */
bool fl_coord_blameless(const struct fl_coord *coord, uint32_t client);
/*
 * May `client` push for (round, attempt) now? FL_OK, FL_EEXIST when it was accepted
 * already, FL_ESTATE with the reason in `err`. On FL_OK `*ret_units` is its grant.
 */
FL_MUST_CHECK int fl_coord_may_push(const struct fl_coord *coord, uint32_t client, uint64_t round,
                                    uint32_t attempt, const uint8_t **ret_units,
                                    struct fl_err *err);
/*
 * One line: what the round waits for and until when ("round 7 is UPLOADING: 3 of 4
 * uploads are in, waiting 12.3 s more for: edge-04"). Names of the missing go to
 * missing[max]; `*ret_missing` counts them all.
 */
void fl_coord_why(const struct fl_coord *coord, uint64_t now_ms, char *out, size_t size,
                  const char **missing, size_t max, size_t *ret_missing);

#endif
