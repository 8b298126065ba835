#ifndef FL_CORE_COORD_H
#define FL_CORE_COORD_H

/*
 * The coordinator: the federation as a pure state machine. The caller steps it with events and
 * carries out the effects that it returns. It has no clock, no I/O, no threads and no randomness of
 * its own (random streams are keyed by the configured seed): the same events give the same effects,
 * byte for byte.
 *
 *   IDLE -> SELECTING -> TRAINING -> PLANNING -> UPLOADING -> AGGREGATING -> EVALUATING
 *     ^                     |  (PLANNING only when the upload policy needs feedback)  |
 *     +---- retry ----------+                                                         v
 *     +------------------------------------------------------------------------- COMMITTING
 *   PAUSED, DRAINING and STOPPED stand beside them. PAUSED is on disk with its reason and survives
 *   a restart, until RESUME.
 *
 * Persist before promise: an effect that sends ACCEPTED to a client, or that starts work which
 * depends on a decision, is emitted only after the PERSISTED event of the record it depends on.
 *
 * One timeout model: a deadline per phase. fl_coord_deadline() is the latest time at which the
 * caller must step FL_EV_TICK.
 *
 * Ownership: events are borrowed for the call. Effects and everything they point to
 * stay valid until the next step.
 * Threading: one thread.
 */

#include <math.h>

#include "libfl/base/log_events.h"
#include "libfl/model/task.h"
#include "libfl/strategy/plateau.h"
#include "libfl/strategy/strategy.h"
#include "server/core/eligible.h"
#include "server/core/loss_trend.h"
#include "server/core/records.h"

/*
 * Failures and their consequences:
 *
 *   client silent past the deadline, or past the     LOST: it leaves the responders, and is
 *   straggler timeout (no report, or no bytes of     DISMISSED when it is connected
 *   its upload, or too few), or disconnected for
 *   longer than the grace, or failed
 *   bad report or upload, or an upload that cannot   REJECTED for this round
 *   have the divergences of its report
 *   impossible evaluation in a report                ignored; the update counts
 *   too few responders left                          attempt aborted: a record of that is
 *                                                    persisted, then DISMISSED and
 *                                                    ROUND_CLOSED; attempt + 1 after retry_ms
 *   a record, a commit or the aggregation fails      retried after retry_ms, doubled up to 64
 *   (disk full, out of memory)                       times; fl_coord_why() says so
 *   the aggregation cannot use a client's update     its update is left out and counted as
 *                                                    rejected; ACCEPTED is not taken back
 *   an update is far larger than the median one      left out once all are in (norm_cap), counted
 *                                                    as rejected; ACCEPTED is not taken back
 *   a client is rejected or left out for what it     quarantined: not selected until it is
 *   uploaded, several times in the last rounds       released (quarantine_after)
 *   the new model is not finite                      attempt aborted, PAUSED with the reason;
 *                                                    RESUME starts attempt + 1 of the round
 *   a client's training diverged                     LOST, as failed; a client whose update is not
 *                                                    finite, or was left out, is REJECTED. If the
 *                                                    attempt is aborted only for want of such
 *                                                    clients: PAUSED as above, since the same model
 *                                                    and learning rates would diverge again
 *   evaluation fails                                 committed without accuracy
 *   server crashes                                   resumes at the last record: accepted
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

/* min_responders: half of the clients that the round selects, rounded up. */
#define FL_RESPONDERS_HALF UINT32_MAX

struct fl_coord_conf {
    uint64_t seed;
    uint64_t rounds; /* 0: no limit */
    /*
     * The loss measures values, of which none is right or wrong (mse, mae): accuracies of
     * evaluations are FL_SHARE_NONE, their losses and metrics are known.
     */
    bool no_accuracy;
    /*
     * N that the fraction is taken of. 0: the connected clients with samples, and the disconnected
     * clients that were counted in a committed round and are not forgotten. A solver's means are
     * over all clients that were ever counted or are connected, and over at least this many.
     */
    uint32_t population;
    /* Limit of known client names; 0: a built-in limit. Disconnected clients that were never
       counted are forgotten first to make room. */
    uint32_t max_clients;
    /*
     * A client that was disconnected for this long is forgotten, as if by FL_EV_FORGET; 0: never.
     * This is time of the monotonic clock while the server was up: setting the wall clock ages no
     * client.
     */
    uint64_t forget_after_ms;
    uint32_t start_clients; /* connected with samples, before the first round starts */
    uint32_t min_clients;   /* connected with samples, before any round starts */
    /*
     * Least number of responders (accepted updates, and clients whose upload mask is empty). With
     * fewer, or without any update, the attempt is aborted and repeated after retry_ms. At least
     * this many clients are selected, whatever the fraction gives, and have to be connected. With 0
     * a round without any answer is committed with the model unchanged. Without uploads by design
     * (fl_upload_ops.never) no update is needed. FL_RESPONDERS_HALF depends on the size of the
     * round: it neither selects more clients nor waits for any before a round.
     */
    uint32_t min_responders;
    /*
     * Select ceil(K * this) clients; >= 1. The first K that are in are aggregated. The others are
     * then DISMISSED; with over_grace they have lost_grace_ms left, and are aggregated when they
     * arrive in time. A client is in once its report has arrived, when the plan needs feedback (K
     * of them are planned for); else once its update has, or its report when its upload mask is
     * empty.
     */
    double over_selection;
    bool over_grace;
    /*
     * The straggler timeout. Once half of the reports are in, the other clients have this factor
     * times as long as those took, longer in proportion to their samples, and at least
     * straggler_min_ms. Once half of the uploads are in, a planned client is lost when no byte of
     * its upload arrives for the factor times as long as those took, and for at least
     * straggler_min_ms; before that, only when no byte of any upload arrives for so long. 0: the
     * whole deadline.
     *
     * From then on an upload that makes progress also has a minimum rate: in each such span it has
     * to deliver as many bytes as at straggler_rate bytes a second, or as at 1/straggler_factor of
     * the lowest rate among the first half, whichever is less. 0: any byte is enough.
     */
    double straggler_factor;
    uint64_t straggler_min_ms, straggler_rate;
    /*
     * Upper bound of a client's weight: this many times the samples of the median client, of those
     * that are connected when a round is drawn; applies to the draw and to the aggregation, and
     * with the median of the evaluations to their sums. 0: no bound.
     */
    double weight_cap;
    /*
     * An accepted update whose norm is more than this many times the median norm of the round is
     * left out; needs at least three updates (docs/algorithms.md#the-norm-of-an-update). 0: no
     * limit.
     */
    double norm_cap;
    /*
     * Upper bound of one client's share of the draws by its score, of the layers of plans from
     * reports, and of the weight in an attention, relative to its fair share (coord_share.c). 1 or
     * more; 0: no bound.
     */
    double share_cap;
    /*
     * A client with this many offences in the last quarantine_window rounds is quarantined: not
     * selected until an operator releases it, or until quarantine_ms of the clock of seen_up_ms
     * have passed (0: only an operator does). At most FL_OFFENCES_MAX; 0: no client is, except by
     * an operator (docs/security.md#quarantine).
     */
    uint32_t quarantine_after;
    uint64_t quarantine_window, quarantine_ms;
    /*
     * Clients are selected only if the labels of their newest CLIENT_JOINED match, and rounds start
     * only within the hours, by the wall clock; an open round is finished. Borrows the labels.
     */
    struct fl_eligible eligible;
    uint64_t train_ms;    /* deadline from task to report */
    uint64_t upload_ms;   /* deadline from plan to accepted upload */
    uint64_t evaluate_ms; /* deadline of client evaluation */
    /*
     * A participant that disconnected is given up after this time (or at the deadline of the phase
     * if that is sooner); 0: at once. Customary: 10 s. After a restart of the server the
     * participants of the open round have the whole deadline; without an open round the known
     * clients have this time to reconnect before the next selection.
     */
    uint64_t lost_grace_ms;
    uint64_t restart_ms;     /* sent to clients when the server stops: reconnect after this time */
    uint64_t retry_ms;       /* first pause after an aborted attempt, doubled up to 64 times */
    uint32_t evaluate_every; /* 0: never; the last round is always evaluated otherwise */
    bool evaluate_server;    /* the server has a test set */
    /* Ask all connected clients that have test data; always so with personal `adapts`. */
    bool evaluate_clients;
    double learning_rate;
    double learning_rate_decay; /* every learning_rate_every rounds, 0: each */
    uint32_t learning_rate_every, learning_rate_warmup, learning_rate_rounds; /* 0: none */
    double learning_rate_end; /* share of the rate at the end of the cosine */
    bool backfill;            /* ldf: ask the next-ranked once when an uploader goes silent */
    const struct fl_strategy *strategy; /* keeps a reference to */
    const struct fl_layout *layout;     /* keeps a reference to */
};

/*
 * eta_t of round t, which is 1 at least (docs/algorithms.md#learning-rate-over-rounds):
 *
 *     eta_t = eta decay^floor((t - 1) / every)
 *             times t / warmup while t < warmup
 *             times end + (1 - end) (1 + cos(pi min(1, (t - 1) / rounds))) / 2, with rounds > 0
 */
static inline double fl_coord_learning_rate(const struct fl_coord_conf *conf, uint64_t round)
{
    uint64_t every = conf->learning_rate_every > 0 ? conf->learning_rate_every : 1;
    double rate =
        conf->learning_rate * pow(conf->learning_rate_decay, (double)((round - 1) / every));
    double rounds = conf->learning_rate_rounds;
    double end = conf->learning_rate_end;

    if (round < conf->learning_rate_warmup) {
        rate *= (double)round / conf->learning_rate_warmup;
    }
    if (rounds > 0) {
        double x = (double)(round - 1) < rounds ? (double)(round - 1) / rounds : 1;

        rate *= x < 1 ? end + (1 - end) * (1 + cos(3.14159265358979324 * x)) / 2 : end;
    }
    return rate;
}

/* Size of the reason of a pause, terminator included. */
#define FL_PAUSE_SIZE 768

/* Client numbers are below this. */
#define FL_CLIENT_NUMBERS (1u << 24)

/* Bytes from and to all clients since the start, with framing and TLS; 0: not measured. */
struct fl_traffic_sums {
    uint64_t up, down;
};

/* Clients whose updates a bound changed in a committed round, for fl_coord_why(). */
struct fl_round_bounds {
    uint64_t round; /* 0: none */
    uint32_t n_capped, n_clipped, n_left_out, n_robust_out;
};
struct fl_round_bounds fl_round_bounds_of(const struct fl_round_rec *record);

/* State to continue from after a restart. */
struct fl_coord_resume {
    uint64_t committed;            /* last committed round, 0: none */
    struct fl_round_bounds bounds; /* of that round */
    /* Ordered by id; ids may have gaps, which are unused numbers. */
    const struct fl_client_rec *clients;
    size_t n_clients;
    /* [n_clients], borrowed: the labels that each announced last do not match `eligible`; NULL: all
       do, or are not known. A CLIENT_JOINED replaces it. */
    const bool *ineligible;
    uint64_t expected; /* as of the last PERSIST_SELECTION */
    uint64_t epoch;    /* as of the last effect that carried it; 0: none did */
    uint64_t up_ms;    /* newest value of the clock of seen_up_ms that is on disk */
    /*
     * The open round, when a selection was persisted and no commit: participants that are not
     * ACCEPTED start over, ACCEPTED ones count as they are. n_parts 0: none is open, the next
     * selection is open_attempt of open_round.
     */
    uint64_t open_round;
    uint32_t open_attempt;
    bool planned; /* a plan was persisted */
    struct fl_round_size size;
    const struct fl_participant_rec *parts;
    size_t n_parts;
    /* After a rollback the attempts of rounds up to used_round start after used_attempt, so that
       no client takes an attempt for an earlier one with the same number. 0: no rollback. */
    uint64_t used_round;
    uint32_t used_attempt;
    char pause[FL_PAUSE_SIZE]; /* as of the last PERSIST_PAUSE; "": none */
    struct fl_plateau plateau; /* of all committed rounds, as the next */
    struct fl_loss_trend trend;
};

/*
 * Operator commands, X(event, rule): FL_EV_event with u.reason, which may be NULL, is carried out
 * by fl__coord_rule(c, reason). Each has one ANSWER; the next command comes after that.
 *
 * PAUSE: no new round; PAUSED after the open one, until RESUME. DRAIN: no new round; after the open
 * one STOPPED. NEW_EPOCH: the server's sum of client state restarts at zero with the next round.
 * ABORT_ROUND: attempt + 1 at once, or PAUSED or STOPPED.
 */
#define FL_COORD_COMMANDS(X) \
    X(PAUSE, pause)          \
    X(RESUME, resume)        \
    X(DRAIN, drain)          \
    X(NEW_EPOCH, new_epoch)  \
    X(ABORT_ROUND, abort_round)
/*
 * Operator commands about one client: the same with u.of_client. ANSWER: durable; FL_ENOENT: no
 * such client is known.
 *
 * QUARANTINE: as if by its offences; what it sent for the open round does not count, as after
 * EXCLUDE. END_QUARANTINE: it can be selected again, and its offences count from zero.
 */
#define FL_COORD_CLIENT_COMMANDS(X)  \
    X(QUARANTINE, quarantine_client) \
    X(END_QUARANTINE, end_quarantine)
#define FL__COORD_COMMAND_EVENT(event, rule) FL_EV_##event,

enum fl_event_type {
    FL_EV_START = 1,
    FL_EV_TICK, /* a deadline has passed, or just time */
    /* u.joined; a second one for the same name replaces the first: a new session, or a client
       that became ready (0 samples before; a client with 0 samples is not selected). */
    FL_EV_CLIENT_JOINED,
    /* u.summary: its data summary is on disk, or came too late to count: the client can be
       selected. */
    FL_EV_CLIENT_SUMMARY,
    FL_EV_CLIENT_LOST,  /* u.lost */
    FL_EV_CLIENT_HEARD, /* u.client: it was seen alive, updates last_seen_ms */
    FL_EV_FORGET,       /* u.client: forget it, see RELEASE. Answer: FORGOTTEN */
    FL_EV_RELEASED,     /* u.client: answer to RELEASE */
    /* u.excluded: the client is revoked. What it sent for the open round does not count, not
       even an accepted update, unless the new model is already aggregated. */
    FL_EV_EXCLUDE,
    FL_EV_REPORT,         /* u.report */
    FL_EV_CLIENT_FAILED,  /* u.failed */
    FL_EV_UPLOAD_STORED,  /* u.upload: complete, valid, on disk */
    FL_EV_UPLOAD_INVALID, /* u.upload.reason */
    /*
     * u.upload.reason, code: the server cannot store the upload now. The client retries and is not
     * counted as late; with FL_EIO, which concerns its file alone, it gets no more time, and a
     * timeout does not count against it.
     */
    FL_EV_UPLOAD_UNSTORED,
    /* u.upload.client, round, attempt, bytes (received so far), held: more of the upload
       arrived, or it waits for the server. */
    FL_EV_UPLOAD_PROGRESS,
    /* u.upload.client, .round, .bytes: a client that held an earlier model downloads that of the
       round as so many bytes. Only with a broadcast that sends moves */
    FL_EV_MODEL_FETCHED,
    FL_EV_EVAL_REPORT, /* u.eval: a client's evaluation */
    FL_EV_PERSISTED,   /* u.seq */
    FL_EV_AGGREGATED,  /* u.aggregated */
    FL_EV_EVALUATED,   /* u.evaluated: server evaluation done */
    FL_EV_COMMITTED,   /* u.seq */
    FL_EV_WORK_FAILED, /* u.failed_work: aggregate, evaluate, persist or commit failed */
    FL_COORD_COMMANDS(FL__COORD_COMMAND_EVENT) FL_COORD_CLIENT_COMMANDS(FL__COORD_COMMAND_EVENT)
    /*
     * u.reason, sent to the clients: the process ends. What clients send no longer counts; they
     * send it again to the next process. STOPPED as soon as nothing is being written; the open
     * round stays open.
     */
    FL_EV_STOP
};

struct fl_event {
    enum fl_event_type type;
    uint64_t now_ms;  /* monotonic */
    uint64_t wall_ms; /* for records */
    struct fl_traffic_sums traffic;
    union {
        struct {
            const char *name;
            const char *agent;
            uint64_t samples;
            uint64_t evaluation_samples;
            const char *unavailable;      /* why it is not to be selected now; NULL or "": it is */
            const struct fl_pair *labels; /* [n_labels] */
            size_t n_labels;
            /* its data summary is missing; until it arrives the client counts with no samples */
            bool summary_missing;
        } joined;
        struct {
            uint32_t client;
            const char *name; /* the number may have been reassigned */
        } summary;
        uint32_t client;
        struct {
            uint32_t client;
            bool silent; /* its session timed out; else its host ended the connection */
        } lost;
        struct {
            uint32_t client;
            const char *reason;
            bool leaves; /* evicted: its client state also leaves the server's sum */
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
            bool has_kept; /* generation of client state that it trained with; round 0: none */
            uint64_t kept_round;
            uint32_t kept_attempt;
        } report;
        struct {
            uint32_t client;
            uint64_t round;
            uint32_t attempt;
            const char *reason;
            bool diverged; /* a loss or parameter became NaN or infinite */
            /* its owner does not lend it now: LOST, which does not count against it */
            bool unavailable;
        } failed;
        struct {
            uint32_t client;
            uint64_t round;
            uint32_t attempt;
            uint64_t bytes;
            bool held; /* PROGRESS: the upload waits for the server, whatever has arrived */
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
            const char *name;
            const char *reason; /* may be NULL */
        } of_client;
        struct {
            uint64_t seq;
            const double *distance; /* [n_responders of the effect], NULL when not asked */
            double effective, self_weight;
            double robust_used; /* as fl_agg_info */
            uint32_t robust_out;
            double influence;           /* as fl_agg_info */
            const double *left;         /* as distance: fl_agg_job.influence; NULL: 1 for all */
            const char *robust_clients; /* as fl_round_rec.robust_clients; NULL: none */
            uint32_t clipped;           /* updates that were shortened (round.norm_clip) */
            uint64_t collection_bytes;  /* size of the payload `collection`; 0: none */
        } aggregated;
        struct {
            uint64_t seq;
            double accuracy, loss;
            const char *metrics; /* libfl/figures/eval_metrics.h; NULL: none */
        } evaluated;
        struct {
            uint64_t seq;
            int code;
            const char *reason;
            uint32_t client; /* aggregate: the client whose update is bad; UINT32_MAX: none */
        } failed_work;
    } u;
};

enum fl_effect_type {
    FL_EFF_TASK = 1,  /* to a client: train (plan included when `units` is set) */
    FL_EFF_PLAN,      /* to a client: upload these units (its upload mask) */
    FL_EFF_ACCEPTED,  /* to a client */
    FL_EFF_REJECTED,  /* to a client, with reason */
    FL_EFF_DISMISSED, /* to a client: discard its result of the round */
    FL_EFF_EVALUATE_CLIENT,
    /* To `client`, or to all (UINT32_MAX): the federation has finished (deadline_ms 0) or the
       server stops (deadline_ms: reconnect after that); text. */
    FL_EFF_DRAIN_CLIENTS,
    /* Answer to CLIENT_JOINED: the client's number, or UINT32_MAX and the reason in text when
       it is not admitted. */
    FL_EFF_CLIENT_ID,
    /*
     * The client is removed: it was forgotten (text says why), or it disconnected without ever
     * having been selected (text ""). End its session if there is one, drop all that is stored
     * under the number, and answer RELEASED once no event of it can follow: from then on the number
     * may be reassigned. A client that reconnects under the name is new; its next task names no
     * counted round. The N of the next round's size is without it, and so are its members: a server
     * sum of client state restarts at zero with the next round (fl_round_size.epoch).
     */
    FL_EFF_RELEASE,
    /* seq; clients: delete their records, or with `forgotten` keep each with that mark for as
       long as the open round needs it. */
    FL_EFF_FORGET_CLIENTS,
    /* Answer to FORGET, of a client: the deletion is durable. With text: it could not be
       written, and a crash before the retry loses it. */
    FL_EFF_FORGOTTEN,
    /*
     * seq; round, attempt, size, participants (with units when no feedback is needed), `expected`,
     * and the records of those clients that have none on disk yet: a client gets one with its first
     * selection. No participants: the attempts before this one have ended and nothing of them
     * counts any more; `ended` are those of the attempt before this one, text says why it ended.
     */
    FL_EFF_PERSIST_SELECTION,
    FL_EFF_PERSIST_PLAN, /* seq; parts with divergence and units */
    /* seq; one participant that was accepted (EMPTY: its upload mask is empty), or is REJECTED
       after all */
    FL_EFF_PERSIST_UPDATE,
    /* seq; clients: write their offences and quarantine, and nothing else of them; of a client
       without a record on disk the whole record. */
    FL_EFF_PERSIST_QUARANTINE,
    FL_EFF_PERSIST_PAUSE, /* seq; text: why the federation is paused; NULL: it is not paused */
    FL_EFF_AGGREGATE,     /* seq; the accepted participants in client order, maybe none */
    FL_EFF_EVALUATE,      /* seq; the server evaluates the new model */
    /* seq; round record, participants, and the client records that changed: first those of the
       participants, in their order; evals: those of clients, of participants first, in their order
     */
    FL_EFF_COMMIT,
    FL_EFF_ROUND_OPEN,   /* uploads for (round, attempt) are allowed from now on; size */
    FL_EFF_ROUND_CLOSED, /* the spool files of (round, attempt) are not read any more */
    /* Of a client, text: its error, for the operator. Printable, and at most
       FL_CLIENT_ERROR_SIZE with its terminator. */
    FL_EFF_CLIENT_ERROR,
    FL_EFF_TRACE,    /* one readable line, part of the tested behaviour */
    FL_EFF_FINISHED, /* all rounds done: STOPPED */
    FL_EFF_STOPPED,  /* STOPPED for DRAIN or STOP: nothing is being written, the process may exit */
    /* To an operator command: text says what follows. code FL_ESTATE, FL_ENOENT: why it was
       refused; FL_EIO: it was carried out, but is not durable. */
    FL_EFF_ANSWER
};

struct fl_effect {
    enum fl_effect_type type;
    uint64_t seq;
    uint32_t client;
    uint64_t round;
    uint32_t attempt;
    struct fl_task task;     /* TASK; EVALUATE_CLIENT and DRAIN: its deadline_ms, a span from now */
    const uint8_t *units;    /* [n_units] or NULL */
    const char *text;        /* reason or trace line */
    bool warning;            /* TRACE: for the operator's attention */
    bool detail;             /* TRACE: of every round, and no news */
    enum fl_log_event event; /* TRACE */
    enum fl_phase phase;     /* in which it was made */
    int code;                /* ANSWER */
    const struct fl_participant_rec *parts;
    size_t n_parts;
    const struct fl_participant_rec *ended; /* with remarks; not of a commit */
    size_t n_ended;
    const struct fl_client_rec *clients;
    size_t n_clients;
    const struct fl_client_eval *evals;
    size_t n_evals;
    const struct fl_round_rec *record;
    uint64_t plateau;    /* AGGREGATE: fl_plateau.round of the committed rounds */
    struct fl_draw draw; /* AGGREGATE: of the round, in a hashed space */
    bool want_distance;
    struct fl_round_size size; /* of the open round, in every effect about it */
    bool personal_model; /* TASK, with personal "own": the last commit made one for the client */
    uint64_t expected; /* PERSIST_SELECTION: number of known clients, waited for after a restart */
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

/* Step with one event. Events that do not fit (wrong round, unknown client, repeated) are
   answered or ignored, never an error. FL_ENOMEM leaves the state as it was. */
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
/* Aborted attempts of that round so far. */
uint32_t fl_coord_aborts(const struct fl_coord *coord);
uint64_t fl_coord_committed(const struct fl_coord *coord);
/* Known clients by what they do; each is counted once. */
struct fl_client_counts {
    size_t quarantined;
    size_t parts[FL_PARTICIPANT_LOST + 1];  /* of the open round, by enum fl_participant_state */
    size_t idle, unavailable, disconnected; /* the others; unavailable: connected, and not lent */
};
/* Looks at the participants of the open round and at quarantined clients only. */
void fl_coord_count(const struct fl_coord *coord, struct fl_client_counts *ret);
/* Client numbers are below this; some of them may be unused. */
size_t fl_coord_numbers(const struct fl_coord *coord);
/* The number of a known name, or UINT32_MAX. */
uint32_t fl_coord_find(const struct fl_coord *coord, const char *name);
/* The numbers of the first `max` known clients whose name is greater than `after`, by name. */
size_t fl_coord_after_name(const struct fl_coord *coord, const char *after, uint32_t *out,
                           size_t max);
size_t fl_coord_n_known(const struct fl_coord *coord);
size_t fl_coord_n_connected(const struct fl_coord *coord);
/* The clock of fl_client_rec.seen_up_ms now. */
uint64_t fl_coord_up_ms(const struct fl_coord *coord);
/* The record of a known client, NULL for any other number. */
const struct fl_client_rec *fl_coord_client(const struct fl_coord *coord, uint32_t client);
/* False: connected, and not available by its owner's rules. */
bool fl_coord_available(const struct fl_coord *coord, uint32_t client);
/* It reported in its newest session that it cannot take part. */
bool fl_coord_unfit(const struct fl_coord *coord, uint32_t client);
/* The same, also of a forgotten client that still has a part in the open round. */
const struct fl_client_rec *fl_coord_part_client(const struct fl_coord *coord, uint32_t client);
/* Its share of all scores (AdaFL: its attention). */
double fl_coord_score(const struct fl_coord *coord, uint32_t client);
bool fl_coord_connected(const struct fl_coord *coord, uint32_t client);
/* The client's part in the open round, or NULL. */
const struct fl_participant_rec *fl_coord_part(const struct fl_coord *coord, uint32_t client);
/* It is LOST without a fault of its own: enough others were in (over_selection), the server lost
   its update, or its owner does not lend it. */
bool fl_coord_blameless(const struct fl_coord *coord, uint32_t client);
/*
 * Why a connected client cannot be selected now, beside a quarantine: "" when it can. `labels`:
 * what it announced. Returns `out`.
 */
const char *fl_coord_ineligible(const struct fl_coord *coord, uint32_t client,
                                const struct fl_pair *labels, size_t n_labels, char *out,
                                size_t size);
/* May `client` upload for (round, attempt) now? FL_OK, FL_EEXIST when it was already accepted,
   FL_ESTATE with the reason in `err`. On FL_OK `*ret_units` is its upload mask. */
FL_MUST_CHECK int fl_coord_may_push(const struct fl_coord *coord, uint32_t client, uint64_t round,
                                    uint32_t attempt, const uint8_t **ret_units,
                                    struct fl_err *err);
/*
 * One line: what the round waits for and until when ("round 7 is UPLOADING: 3 of 4 uploads are in,
 * waiting 12.3 s more for: edge-04"). The names of the missing clients go to missing[max];
 * `*ret_missing` counts them all.
 */
void fl_coord_why(const struct fl_coord *coord, uint64_t now_ms, char *out, size_t size,
                  const char **missing, size_t max, size_t *ret_missing);
/* Fills in the problems that the coordinator finds (problems.h); `ret` is empty before. Looks at
   all known clients when some of them hold up the federation. */
struct fl_problems;
void fl_coord_problems(const struct fl_coord *coord, uint64_t now_ms, struct fl_problems *ret);

#endif
