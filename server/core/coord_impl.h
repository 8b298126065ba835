#ifndef FL_CORE_COORD_IMPL_H
#define FL_CORE_COORD_IMPL_H

/*
 * Internals of the coordinator, shared by the coord_*.c files only.
 *
 * A step has two halves: fl__coord_reserve() allocates all the memory that handling the event can
 * need, or fails with nothing changed; from then on nothing can fail. The one allocation that
 * depends on a decision, the table of a new round, is retried later when there is no memory.
 */

#include <stdarg.h>

#include "libfl/base/sm.h"
#include "server/core/client_order.h"
#include "server/core/coord.h"

#define FL__NONE      UINT32_MAX
#define FL__NEVER     UINT64_MAX
#define FL__TEXT_SIZE 576
/* Size of a reason that came from a peer, after cleaning. */
#define FL__CLEAN_SIZE FL_CLIENT_ERROR_SIZE
/* Trace lines and reasons of one step: a handful of moves and one line for the event. */
#define FL__TEXTS 32
/* Upper bounds of the effects of one step: per client, and beside them. */
#define FL__EFFECTS_PER_CLIENT 5
#define FL__EFFECTS_BASE       512
/* Clients that one step forgets by age; the next steps forget the rest. */
#define FL__AGE_STEP 64
/* Records that one write deletes. */
#define FL__DELETE 128
/* Clients whose quarantine one write updates. */
#define FL__QUARANTINE_STEP 32
/* Records beside those of the round that one commit updates. */
#define FL__DIRTY_STEP 64
/* Back-off doubles up to so many times its first value. */
#define FL__BACKOFF_MOST 64

/* Beside a client's record; not persisted. */
struct fl__client {
    bool used; /* the number is assigned, possibly only until it is released */
    /*
     * The client is no longer known by its name: it was forgotten, or disconnected without ever
     * having been selected. The number is free again once its part in the open round has ended, its
     * record is off the disk, and the caller has released it.
     */
    bool removed;
    bool released;
    bool recorded; /* its record is on disk, or on its way there */
    bool marked;   /* removed, and the record on disk is marked forgotten */
    bool awaited;  /* removed, and FORGOTTEN is emitted once that is durable */
    bool connected;
    bool silent;      /* disconnected because its session timed out */
    bool dirty;       /* in `dirty`: the record on disk is older than what is known */
    bool asked;       /* its evaluation is awaited */
    uint32_t answer;  /* its index in `answers` of the round that asked for it last */
    uint32_t part;    /* index in the open round, or FL__NONE */
    uint64_t lost_ms; /* when it disconnected; FL__NEVER: not seen since the start */
    /* Test samples as announced; a client that announced none is held to its first report. */
    uint64_t evaluation_samples;
    /* samples that count once its data summary is in; 0: none is awaited */
    uint64_t withheld;
    bool unavailable;        /* by its owner's rules: it is not selected */
    bool unfit;              /* it reported in this session that it cannot take part */
    bool ineligible;         /* its labels are not those of conf.eligible */
    bool evaluates;          /* it announced test samples: it can be asked for an evaluation */
    uint64_t accepted_round; /* newest accepted update since the process began */
    uint32_t accepted_attempt;
    bool unwritten; /* in `unwritten`: its quarantine on disk is older than what is known */
    /* the list it is in: `disconnected`, `never_counted`, `quarantined`, `free`, or NULL */
    struct fl__list *list;
    uint32_t previous, next;
    uint32_t next_dirty, next_deletion, next_unwritten;
};

/* A client's evaluation of a round's new model; 0 samples: none, or not yet. */
struct fl__answer {
    uint32_t client;
    char *name; /* owned; NULL: out of memory, it counts without a record of its own */
    struct fl_eval_rec result, adapted;
};

/* A list of client numbers, in order of insertion. */
struct fl__list {
    uint32_t first, last;
    size_t n;
};

/* Writing of quarantines: a queue of clients, and the batch that PERSIST_QUARANTINE points to. */
struct fl__quarantine_writes {
    uint32_t first, last;
    uint64_t retry_ms; /* a write failed: when to try again */
    bool running;
    struct fl_client_rec batch[FL__QUARANTINE_STEP];
    bool fresh[FL__QUARANTINE_STEP]; /* had no record on disk before */
    size_t n;
};

struct fl__clients {
    struct fl_client_rec *recs;
    struct fl__client *live;
    size_t n; /* numbers below this have been given out */
    size_t cap;
    struct fl_order names; /* known clients, by name */
    struct fl_order connected;
    /* Disconnected clients with a record, longest disconnected first. */
    struct fl__list disconnected;
    struct fl__list never_counted; /* the same, but never counted in a committed round */
    /* Connected or not, quarantined for the longest time first: none of them is forgotten by age.
     */
    struct fl__list quarantined;
    struct fl__quarantine_writes unwritten;
    struct fl__list free;
    uint32_t first_dirty, last_dirty;
    /* deletion queue: removed, and the record is still on disk */
    uint32_t first_deletion, last_deletion;
    size_t n_alive;       /* fl__clients_alive() */
    size_t n_unavailable; /* connected and not quarantined, and not lent by their owners now */
    /* alive, or known from a committed round: with samples, not quarantined, not ineligible */
    size_t n_members;
    size_t n_counted;                           /* alive, or counted in a round of the epoch */
    uint64_t epoch;                             /* of the next round's size */
    uint64_t deletion_ms;                       /* a write failed: when to try again */
    bool deleting;                              /* a deletion is being written */
    struct fl_client_rec deletions[FL__DELETE]; /* the batch that FORGET_CLIENTS points to */
    size_t n_deletions;
    struct fl_score_sums sums; /* over all that have a score */
    /* largest weight of a client as of the last draw; INFINITY: no bound */
    double most_samples;
    /* Scratch for the policies, [cap_scratch] each. */
    double *scores;
    double *samples;
    double *distance;
    uint32_t *index; /* position among the candidates -> client number */
    uint32_t *chosen;
    uint8_t *capped;              /* by round.share_cap */
    struct fl__answer *answers;   /* of the open round, in client order: sums depend on the order */
    struct fl_client_eval *evals; /* [2 * cap_scratch] of the COMMIT effect */
    size_t cap_scratch;
};

/* Beside the record of a participant; not persisted. */
struct fl__participant {
    bool reported;    /* its report is in */
    bool stored;      /* a valid upload is on disk, not yet recorded */
    uint64_t fetched; /* bytes of its last download of the model; 0: it held it */
    /* Losing it does not count against it: enough others were in, the server could not store or
       read its upload, or its owner does not lend it. */
    bool blameless;
    unsigned n_unread; /* failed attempts to read its accepted update */
    bool measured;     /* fl__round.sent holds the norms of its upload */
    bool repeated;     /* its second report came from another training */
    uint64_t asked_ms; /* when it was allowed to upload */
    uint64_t moved_ms; /* when bytes of its upload last arrived; 0: never */
    uint64_t held_ms;  /* when its upload last waited for the server; 0: it does not */
    /* Start of the current minimum-rate span: time and bytes received by then. */
    uint64_t paced_ms, paced_bytes;
    uint64_t arrived_bytes;
    uint64_t stored_bytes;
    uint64_t store_seq;      /* its record is being written */
    uint64_t store_retry_ms; /* writing failed: time of the retry, 0: none */
};

/* How far the norm of a client's upload is from the median. */
struct fl__deviant {
    uint32_t client;
    size_t kind;                /* index of fl_norms.rms */
    double norm, median, ratio; /* ratio 0: not known */
};

/* Evaluations on clients, added up. */
struct fl__figures {
    uint32_t n;
    double samples, correct, loss;
    double accuracies;                    /* sum of the clients' own */
    struct fl_eval_metrics_tally metrics; /* owned */
};

struct fl__round {
    uint64_t round; /* 0: none is open */
    uint32_t attempt;
    struct fl_traffic_sums traffic; /* when its record was made */
    struct fl_round_size size;
    size_t n;
    struct fl_participant_rec *parts; /* in client order */
    char (*remarks)[FL_PART_REMARK];  /* [n], the memory of parts[].remark */
    struct fl__participant *live;
    float *divergence;                 /* [n][n_units], the memory of parts[].divergence */
    struct fl_unit_norm *sent;         /* [n][n_units], of the uploads that are `measured` */
    uint8_t *units;                    /* [n][n_units], the memory of parts[].units */
    uint8_t *grant;                    /* [n][n_units], scratch of the plan */
    float *feedback;                   /* [n][n_units], scratch of the plan */
    double *distance;                  /* [n], by index in `listed` */
    struct fl_participant_rec *listed; /* the accepted ones, for the aggregation */
    struct fl_participant_rec *saved;  /* [n], what PERSIST_UPDATE points to */
    bool stale;                        /* an update that is being aggregated no longer counts */
    /* [n + FL__DIRTY_STEP], what PERSIST_SELECTION (clients without a record on disk) and COMMIT
       (all whose records changed) point to. */
    struct fl_client_rec *records;
    size_t n_records;
    size_t n_listed;
    size_t count[FL_PARTICIPANT_LOST + 1]; /* parts by state */
    /* Of the lost and rejected: their training diverged, or their update is not finite or was
       left out for its norm. With the same model and learning rates that would happen again. */
    size_t n_diverged;
    size_t n_unusable;   /* of n_diverged: because of the upload */
    uint32_t not_finite; /* the first client whose update was not finite; FL__NONE: none */
    bool has_distance;
    bool planned;
    bool backfilled;
    bool grace_only;      /* enough are in, the others have only the grace left */
    bool straggler_timed; /* half of the reports are in: the straggler timeout is set */
    uint64_t trained_ms;  /* how long the first half took for that */
    bool expired;         /* the deadline of the phase has passed */
    /* why an upload could not be stored; "": the last one could */
    char store_error[FL__CLEAN_SIZE];
    bool closing;       /* has ended; waits until that is durable */
    bool unusable;      /* the resumed round does not fit the configuration */
    uint64_t opened_ms; /* when the tasks went out */
    uint64_t deadline_ms;
    bool half_uploaded;                 /* at least half of the uploads are in */
    uint64_t moved_ms;                  /* when bytes of any upload last arrived */
    uint64_t upload_span_ms;            /* longest upload of the first half */
    double upload_rate;                 /* lowest rate of the first half, bytes per ms; 0: none */
    uint64_t excused_ms;                /* end of the server's own trouble: timeouts start there */
    uint64_t held_until_ms;             /* last extension for uploads that wait for the server */
    uint64_t quiet_ms;                  /* next check for stalled uploads */
    uint64_t grace_ms;                  /* earliest time at which a lost client is given up */
    uint64_t store_retry_ms;            /* earliest retry of a record */
    uint64_t asked_ms;                  /* when evaluations were asked for */
    bool eval_timed;                    /* half of them are in: their straggler timeout is set */
    size_t n_asked;                     /* outstanding client evaluations */
    size_t n_answers;                   /* clients that were asked for one */
    struct fl__figures result, adapted; /* of the evaluations after the aggregation */
    bool evaluated; /* the clients' accuracies in its record are of these, not of reports */
    uint64_t collection_bytes; /* size of the payload `collection` */
    struct fl_round_rec rec;
};

enum fl__work_kind {
    FL__WORK_NONE,
    FL__WORK_SELECTION,
    FL__WORK_PLAN,
    FL__WORK_AGGREGATE,
    FL__WORK_EVALUATE,
    FL__WORK_COMMIT,
    FL__WORK_CLOSE /* the record that an attempt has ended */
};

/* The one piece of work that the phase waits for. */
struct fl__work {
    enum fl__work_kind kind;
    uint64_t seq;
    unsigned n_failed;
    uint64_t retry_ms; /* failed: time of the retry; 0: running */
    char reason[FL_NAME_MAX];
};

enum fl__pending_kind {
    FL__PENDING_FORGET,
    FL__PENDING_UPDATE,
    FL__PENDING_PAUSE,
    FL__PENDING_QUARANTINE
};

struct fl__pending {
    uint64_t seq;
    enum fl__pending_kind kind;
    uint32_t client;
};

/* The pause: no round starts. On disk, unless `dirty` or being written. */
struct fl__pause {
    bool on;
    bool dirty;        /* differs from the disk, and is not being written */
    uint64_t seq;      /* of the write that is running; 0: none */
    uint64_t retry_ms; /* a write failed: when to try again */
    char reason[FL_PAUSE_SIZE];
};

enum fl__command_kind {
    FL__COMMAND_NONE,
    FL__COMMAND_DURABLE,   /* answered when the pause is durable */
    FL__COMMAND_CLOSED,    /* answered when the end of the open attempt is durable */
    FL__COMMAND_QUARANTINE /* answered when all quarantines are durable */
};

/* The operator command that is not answered yet. */
struct fl__command {
    enum fl__command_kind awaited;
    char text[FL__TEXT_SIZE];
};

/* "edge-1, edge-2 and 3 more" */
struct fl__names {
    char text[FL__CLEAN_SIZE];
    size_t used, shown, total;
};

/* Where the time of a round went. */
struct fl__phase_times {
    uint64_t since_ms;  /* start of the current phase */
    uint64_t commit_ms; /* end of the last commit, or the first event */
    uint64_t previous_commit_ms;
    uint64_t waiting_ms;
    uint64_t in_ms[FL_PHASE_COUNT]; /* of the open attempt, in the phases that have ended */
};

struct fl_coord {
    struct fl_coord_conf conf;
    size_t n_units;
    bool needs_divergence; /* reports hold one per unit */
    bool compares_claims;  /* fl__claims_compared() */
    bool needs_previous_dot;
    uint64_t full_bytes;     /* 4 (d + s) */
    uint64_t model_bytes;    /* the same in the form of the broadcast */
    uint64_t n_model_inputs; /* payloads of that size that the solver needs beside the model */
    struct fl_sm sm;
    struct fl__phase_times times;
    char reason[FL__TEXT_SIZE]; /* reason of the current transition */
    uint64_t now_ms;
    uint64_t wall_ms;
    struct fl_traffic_sums traffic;         /* now */
    struct fl_traffic_sums traffic_counted; /* in the records of committed rounds */
    bool clocked;                           /* an event has set the time */
    bool ticking;                           /* this step is a TICK */
    bool started;
    bool draining;
    bool stopping;
    bool finished;
    bool waits_for_hours;   /* the next round does, as was traced */
    bool warned_ineligible; /* no connected client has the labels of conf.eligible, as was traced */
    bool aborting;          /* abort the open attempt as soon as nothing of it is being written */
    struct fl__pause pause;
    struct fl__command command;
    char abort_command[FL__CLEAN_SIZE];
    char stop_reason[FL__CLEAN_SIZE];
    char abort_reason[FL__CLEAN_SIZE];
    /* The newest attempt that was aborted since the start: its round, and what clients did in it.
     */
    uint64_t ended_round;
    char ended[FL__CLEAN_SIZE];
    uint64_t committed;
    struct fl_plateau plateau;     /* of the committed rounds */
    struct fl_loss_trend trend;    /* of them */
    struct fl_round_bounds bounds; /* what acted in the newest round */
    uint32_t attempt;              /* of the next selection */
    unsigned n_aborts;
    uint64_t used_round; /* as the resume */
    uint32_t used_attempt;
    uint64_t not_before_ms;
    uint64_t settle_ms; /* restarted: until then known clients may reconnect */
    bool restarted;
    size_t expected; /* n_members before the restart */
    uint64_t up_ms;  /* as fl_client_rec.seen_up_ms */
    struct fl__clients clients;
    struct fl__round round;
    struct fl__work work;
    struct fl__pending *pending; /* by rising seq */
    size_t n_pending;
    size_t cap_pending;
    uint64_t seq;
    struct fl_effect *effects;
    size_t n_effects;
    size_t cap_effects;
    size_t n_texts;
    char texts[FL__TEXTS][FL__TEXT_SIZE];
};

/* --- coord_effects.c: effects, traces, work --- */

FL_MUST_CHECK int fl__coord_reserve(struct fl_coord *c);
struct fl_effect *fl__coord_emit(struct fl_coord *c, enum fl_effect_type type);
/* An effect about the open round to a client. */
struct fl_effect *fl__coord_effect_for(struct fl_coord *c, enum fl_effect_type type,
                                       uint32_t client);
FL_PRINTF(2, 3) const char *fl__coord_text(struct fl_coord *c, const char *fmt, ...);
FL_PRINTF(2, 0) const char *fl__coord_vtext(struct fl_coord *c, const char *fmt, va_list ap);
FL_PRINTF(2, 3) void fl__coord_trace(struct fl_coord *c, const char *fmt, ...);
/* A trace line for the operator's attention. */
FL_PRINTF(2, 3) void fl__coord_warn(struct fl_coord *c, const char *fmt, ...);
/* A trace line that each round has: log_level debug. */
FL_PRINTF(2, 3) void fl__coord_detail(struct fl_coord *c, const char *fmt, ...);
/* A trace line about an event. */
FL_PRINTF(4, 5)
void fl__coord_event(struct fl_coord *c, enum fl_log_event event, bool warning, const char *fmt,
                     ...);
/* Emit a piece of work, also to retry it after a failure. */
void fl__coord_work(struct fl_coord *c, enum fl__work_kind kind);
void fl__coord_work_done(struct fl_coord *c);
void fl__coord_work_failed(struct fl_coord *c, const char *reason);
/* now + span without wrapping. */
uint64_t fl__coord_after(const struct fl_coord *c, uint64_t span_ms);
uint64_t fl__coord_backoff(const struct fl_coord *c, unsigned n_failed);
/* Printable copy of text from a peer. */
const char *fl__coord_clean(char *out, size_t size, const char *text);

/* --- coord_phase.c: the phases --- */

void fl__coord_sm_init(struct fl_coord *c);
/* The first event has set the time. */
void fl__coord_times_begin(struct fl_coord *c);
/* The durations of the phases before the current one. */
void fl__coord_times(const struct fl_coord *c, struct fl_round_rec *rec);
FL_PRINTF(3, 4) void fl__coord_move(struct fl_coord *c, enum fl_phase to, const char *fmt, ...);

/* --- coord_pending.c: records that are being written beside the phase's work --- */

uint64_t fl__coord_pend(struct fl_coord *c, enum fl__pending_kind kind, uint32_t client);
/* Take the entry out; false when there is none. */
bool fl__coord_unpend(struct fl_coord *c, uint64_t seq, struct fl__pending *ret);
/* Drop the pending updates of a round that has ended. */
void fl__coord_unpend_updates(struct fl_coord *c);

/* --- coord_clients.c: the table of clients --- */

/* Memory for one more client, with `n_parts` participants in the open round. */
FL_MUST_CHECK int fl__clients_reserve(struct fl__clients *clients, size_t n_parts);
/* Room for the numbers below `n`. */
FL_MUST_CHECK int fl__clients_reserve_numbers(struct fl__clients *clients, size_t n);
void fl__clients_done(struct fl__clients *clients);
/* The number of a name, or FL__NONE. */
uint32_t fl__clients_find(const struct fl__clients *clients, const char *name);
/* The number is assigned, possibly to a removed client. */
bool fl__clients_used(const struct fl__clients *clients, uint32_t client);
/* Memory was reserved, the name is valid and new. `id` FL__NONE: any free number. */
uint32_t fl__clients_add(struct fl__clients *clients, const char *name, uint32_t id);
/* The server's sum of client state no longer matches what clients keep, for this reason: it
   restarts at zero with the next round. */
FL_PRINTF(2, 3) void fl__coord_begin_epoch(struct fl_coord *c, const char *fmt, ...);
/* Is the client's state in that sum? */
bool fl__coord_is_summed(const struct fl_coord *c, uint32_t client);
/* Call uncount before something about the client changes, and count after it: they maintain
   n_alive, n_members and n_counted. */
void fl__clients_uncount(struct fl__clients *clients, uint32_t client);
void fl__clients_count(struct fl__clients *clients, uint32_t client);
/* Free the number if nothing uses it. */
void fl__clients_recycle(struct fl__clients *clients, uint32_t client);

void fl__list_add(struct fl__clients *clients, struct fl__list *list, uint32_t client);
void fl__list_remove(struct fl__clients *clients, uint32_t client);
bool fl__clients_quarantined(const struct fl__clients *clients, uint32_t client);
/* It can be selected: connected, with samples, not quarantined, and not ineligible. */
bool fl__clients_alive(const struct fl__clients *clients, uint32_t client);
/* Connected and not quarantined, but not lent now. */
bool fl__clients_unavailable(const struct fl__clients *clients, uint32_t client);
/* It disconnected: append it to the list that it belongs to. */
void fl__clients_disconnected(struct fl_coord *c, uint32_t client);
/* It was counted while disconnected: move it to the right list. */
void fl__clients_relist(struct fl_coord *c, uint32_t client);
/* The client was seen alive: update last_seen_ms. */
void fl__clients_seen(struct fl_coord *c, uint32_t client);
/* Write its record with the next commit. */
void fl__clients_dirty(struct fl__clients *clients, uint32_t client);
/* Copy the records of the participants, and some dirty ones, to r->records. */
void fl__coord_list_records(struct fl_coord *c);
/* Its update of (round, attempt) was accepted, as far as this process knows. */
bool fl__coord_was_accepted(const struct fl_coord *c, uint32_t client, uint64_t round,
                            uint32_t attempt);
/* The last commit made a personal model for it (personal "own"). */
bool fl__coord_has_personal_model(const struct fl_coord *c, uint32_t client);
const char *fl__coord_name(const struct fl_coord *c, uint32_t client);

/* --- coord_join.c: clients connect --- */

void fl__coord_joined(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_summary(struct fl_coord *c, const struct fl_event *ev);

/* --- coord_leave.c: clients disconnect and leave --- */

/* Stop waiting for the evaluation of a client that disconnected. */
void fl__coord_forget_evaluation(struct fl_coord *c, uint32_t client);
/* Remove the client from the known names. */
void fl__coord_leave(struct fl_coord *c, uint32_t client);
/* The same, and RELEASE it; `why` ends its session. */
void fl__coord_drop(struct fl_coord *c, uint32_t client, const char *why);
void fl__coord_lost(struct fl_coord *c, uint32_t client, bool silent);

/* --- coord_forget.c: forgotten clients and the deletion queue --- */

void fl__coord_forget(struct fl_coord *c, uint32_t client, const char *why);
/* The client was evicted: if its state is in the server's sum, a new epoch begins. */
void fl__coord_leave_sum(struct fl_coord *c, uint32_t client);
/* As fl__coord_forget(), for an operator command that waits for FORGOTTEN. */
void fl__coord_forget_for(struct fl_coord *c, uint32_t client, const char *why);
/* It was forgotten before the restart: its record stays for its part in the open round. */
void fl__coord_resume_forgotten(struct fl_coord *c, uint32_t client);
void fl__coord_released(struct fl_coord *c, uint32_t client);
/* Forget clients that were disconnected for too long, and surplus ones that never took part. */
void fl__coord_age(struct fl_coord *c);
/* Delete the records in the deletion queue from the disk. */
void fl__coord_delete_queued(struct fl_coord *c);
void fl__coord_deletion_done(struct fl_coord *c);
void fl__coord_deletion_failed(struct fl_coord *c, const char *reason);

/* --- coord_pause.c: operator commands and the end of the process --- */

/* The rules of FL_COORD_COMMANDS. */
#define FL__COORD_COMMAND_RULE(event, rule) \
    void fl__coord_##rule(struct fl_coord *c, const char *reason);
FL_COORD_COMMANDS(FL__COORD_COMMAND_RULE)
#undef FL__COORD_COMMAND_RULE
/* Answer the command that was given. */
FL_PRINTF(3, 4) void fl__command_answer(struct fl_coord *c, int code, const char *fmt, ...);
/* Answer it with this text once `what` is durable. */
FL_PRINTF(3, 4)
void fl__command_await(struct fl_coord *c, enum fl__command_kind what, const char *fmt, ...);
/* That is durable, or could not be written (`trouble`). */
void fl__command_awaited(struct fl_coord *c, enum fl__command_kind what, const char *trouble);
/* A pause by the coordinator itself. */
FL_PRINTF(2, 3) void fl__coord_pause_for(struct fl_coord *c, const char *fmt, ...);
/* Persist the pause if it changed. */
void fl__coord_write_pause(struct fl_coord *c);
/* The pause is on disk as it is now. */
bool fl__coord_pause_is_durable(const struct fl_coord *c);
void fl__coord_pause_persisted(struct fl_coord *c);
void fl__coord_pause_failed(struct fl_coord *c, const char *reason);
/* The end of the attempt is durable; else `trouble`, an error text. */
void fl__coord_abort_closed(struct fl_coord *c, const char *trouble);
/* Send a client, or all (FL__NONE), that the federation has finished or the server stops. */
struct fl_effect *fl__coord_disconnect(struct fl_coord *c, uint32_t client);
void fl__coord_begin_drain(struct fl_coord *c);
bool fl__coord_draining(struct fl_coord *c);
bool fl__coord_paused(struct fl_coord *c);
void fl__coord_stop(struct fl_coord *c, const char *reason);
/* Replaces all other work once the process is to stop. */
void fl__coord_stopping(struct fl_coord *c);

/* --- coord_select.c --- */

/* What a fraction is taken of. */
size_t fl__coord_population(const struct fl_coord *c);

uint32_t fl__coord_need(const struct fl_coord *c);
/* min_responders of the open round. */
uint32_t fl__coord_least(const struct fl_coord *c);
void fl__coord_ensure_scores(struct fl_coord *c);
/* The samples that a client counts with. */
double fl__coord_weight(const struct fl_coord *c, uint32_t client);
/* Sum the scores of the records that were read: shares are shown before the first draw. */
void fl__coord_add_scores(struct fl_coord *c);
bool fl__coord_select(struct fl_coord *c);

/* Of the open round, in a hashed space. */
static inline struct fl_draw fl__coord_draw(const struct fl_coord *c)
{
    const struct fl_strategy *s = c->conf.strategy;

    return fl_space_draw(s->space, s->options[FL_COMPONENT_SPACE], &c->plateau, c->round.round);
}

/* --- coord_part.c: the table of the open round --- */

FL_MUST_CHECK int fl__coord_round_create(struct fl__round *r, size_t n, size_t n_units);
/* Its participants are known: a draw that failed for lack of memory has none. */
bool fl__coord_round_drawn(const struct fl_coord *c);
void fl__coord_round_done(struct fl_coord *c);
void fl__participant_set(struct fl_coord *c, size_t i, enum fl_participant_state state);
bool fl__participant_waiting(const struct fl_coord *c, size_t i);
bool fl__units_empty(const uint8_t *units, size_t n);
/* Do upload plans need the reports of the participants? */
static inline bool fl__coord_has_feedback(const struct fl_coord *c)
{
    return c->conf.strategy->upload->needs_feedback;
}
size_t fl__coord_round_waiting(const struct fl_coord *c);
size_t fl__coord_round_responders(const struct fl_coord *c);
/* The upload masks that plan() gives the `n` participants chosen[]; `feedback` when reports are
   there. False without memory, nothing changed. */
bool fl__coord_round_plan(struct fl_coord *c, const uint32_t *chosen, size_t n, bool feedback);
/* Exclude it from the comparison of norms. */
void fl__coord_forget_norms(struct fl_participant_rec *part);
/* List the accepted participants, which are aggregated. */
void fl__coord_list_accepted(struct fl_coord *c);
/* The client leaves the round; DISMISSED when it is connected. */
void fl__participant_lose(struct fl_coord *c, size_t i);
void fl__participant_reject(struct fl_coord *c, size_t i, const char *reason);
/* Emit the error of a client, which may also be why it is left out of the open round. `text` lives
   until the next step. */
void fl__coord_client_error(struct fl_coord *c, uint32_t client, const char *text);
/* Its upload is on disk; only its record is missing. */
bool fl__participant_stored(const struct fl_coord *c, size_t i);
/* The state of the participants that TRAINING or UPLOADING waits for. */
enum fl_participant_state fl__coord_round_wanted(const struct fl_coord *c);
/* Update the participation counters of the records, once an attempt has ended. */
void fl__coord_round_account(struct fl_coord *c);

/* ", 2 diverged", or "" */
const char *fl__diverged_text(const struct fl_coord *c, char *out, size_t size);
void fl__names_add(struct fl__names *names, const char *name);
const char *fl__names_text(struct fl__names *names);

/* --- coord_problems.c --- */

/* In the reason of a pause after a round that diverged. */
#define FL__DIVERGED " diverged: "
/* Of a restarted server. */
#define FL__RESTARTED "the server restarted, waiting for known clients"

/* --- coord_round.c: from the selection to the last upload --- */

void fl__coord_selected(struct fl_coord *c);
void fl__coord_resume_round(struct fl_coord *c);
void fl__coord_planned(struct fl_coord *c);
bool fl__coord_training(struct fl_coord *c);
bool fl__coord_uploading(struct fl_coord *c);

/* The operator commanded an abort and it is possible now: the attempt is aborted. */
bool fl__coord_aborting(struct fl_coord *c);
/* Persist that the open attempt has ended. */
void fl__coord_close(struct fl_coord *c);
/* The write of it, which waits for the pause that follows from it. */
void fl__coord_write_close(struct fl_coord *c);
void fl__coord_closed(struct fl_coord *c);
/* Abort for too few responders; with a pause when only diverged clients are missing. */
FL_PRINTF(2, 3) void fl__coord_abort_few(struct fl_coord *c, const char *fmt, ...);
/* Abort an attempt whose repetition would diverge again: PAUSED once its end is durable. */
FL_PRINTF(2, 3) void fl__coord_pause_diverged(struct fl_coord *c, const char *fmt, ...);
bool fl__coord_too_few(const struct fl_coord *c);
/* No update is accepted, and one is needed. */
bool fl__coord_no_update(const struct fl_coord *c);

/* --- coord_send.c: what the clients of a round are sent --- */

void fl__coord_task(struct fl_coord *c, size_t i);
void fl__coord_accepted(struct fl_coord *c, size_t i);
/* A client with an empty upload mask has been (or can be) sent ACCEPTED. */
bool fl__coord_empty_confirmed(const struct fl_coord *c);
/* The client's index among the participants of (round, attempt). When it is none, the client is
   sent what became of that round and FL__NONE is returned. */
uint32_t fl__coord_participant(struct fl_coord *c, uint32_t client, uint64_t round,
                               uint32_t attempt);
/* Send a client that (re)connected to its place in the round. */
void fl__coord_rejoin(struct fl_coord *c, uint32_t client);

/* --- coord_update.c: the record of an update --- */

/* Write the participant's record, as accepted, empty or rejected. */
void fl__coord_persist_update(struct fl_coord *c, size_t i);
void fl__coord_update_persisted(struct fl_coord *c, uint32_t client, uint64_t seq);
void fl__coord_update_failed(struct fl_coord *c, uint32_t client, uint64_t seq, const char *reason);
/* Write again the records whose time has come. */
void fl__coord_store_retry(struct fl_coord *c);

/* --- coord_straggler.c: clients that are much slower than the others, or silent --- */

/* Training: the reports that are in shorten the deadline of the others. True when it has passed
   by that. */
bool fl__straggler_training(struct fl_coord *c);
/* Once half of the evaluations are in, the deadline of the others. */
void fl__straggler_evaluating(struct fl_coord *c);
/* The participant may upload from now on. */
void fl__straggler_asked(struct fl_coord *c, size_t i);
/* UPLOADING starts, or resumes after a restart. */
void fl__straggler_begin_uploads(struct fl_coord *c);
/* Its upload is complete, with that many bytes. */
void fl__straggler_stored(struct fl_coord *c, size_t i, uint64_t bytes);
void fl__straggler_progress(struct fl_coord *c, const struct fl_event *ev);
/* The server itself had trouble: timeouts start from now. */
void fl__straggler_excuse(struct fl_coord *c);
/* Does its upload wait for the server, as its newest report of progress says? */
bool fl__straggler_is_held(const struct fl_coord *c, size_t i);
/* Sets the deadline for uploads that are held. false: they had their time. */
bool fl__straggler_extend(struct fl_coord *c);
/* UPLOADING: participants whose upload stalled, or is too slow, are lost. */
void fl__straggler_uploading(struct fl_coord *c);
/* When a participant whose upload is awaited is lost if nothing more of it arrives (or less than
   the minimum rate, once half are in); FL__NEVER: not before the deadline. */
uint64_t fl__straggler_due(const struct fl_coord *c, size_t i);

/* --- coord_over.c --- */

/* Over-selection, and K are in: the others leave the round and are DISMISSED. */
void fl__coord_stop_surplus(struct fl_coord *c);
/* The same with over_grace: the others have lost_grace_ms left. True: that has passed. */
bool fl__coord_shorten_deadline(struct fl_coord *c);

/* --- coord_eligible.c: labels and hours --- */

/* Compare the labels of a client that joined; the caller counts. */
void fl__eligible_take(struct fl_coord *c, uint32_t client, const struct fl_event *ev);
/* A client joined: warn when it and all others have other labels. */
void fl__eligible_joined(struct fl_coord *c, uint32_t client);
/* A round may start now; traces when that changes. */
bool fl__eligible_open(struct fl_coord *c);
/* When to look again; FL__NEVER: it may start now. */
uint64_t fl__eligible_due(const struct fl_coord *c);
/* IDLE because of the hours: the text of that, and true. */
bool fl__eligible_idle(const struct fl_coord *c, uint64_t now_ms, char *out, size_t size);
/* "; 2 connected clients have other labels …", or nothing. */
void fl__eligible_why(const struct fl_coord *c, char *out, size_t size);

/* --- coord_backfill.c --- */

/* Ask the next-ranked clients for the units of uploaders that failed; true when any is asked. */
bool fl__coord_backfill(struct fl_coord *c);

/* --- coord_count.c: what a committed round leaves behind --- */

/* Its update counts in the round, or no layer was asked of it. */
bool fl__coord_responder(const struct fl_participant_rec *part);

/* Why an evaluation is impossible; NULL: it is plausible or empty. */
const char *fl__eval_bad(const struct fl_coord *c, uint32_t client, const struct fl_eval_rec *eval);

/* The evaluation of a client's `what` model that fl__eval_bad() accepts, with a copy of its
   metrics; unusable ones are left out, with an error of the client. fl__eval_done() frees them. */
struct fl_eval_rec fl__eval_take(struct fl_coord *c, uint32_t client, const char *what,
                                 const struct fl_eval_rec *eval);
void fl__eval_done(struct fl_eval_rec *eval);
void fl__coord_forget_answers(struct fl_coord *c);
/* Fill in clients.evals, and return how many there are (coord_evals.c). */
size_t fl__coord_list_evals(struct fl_coord *c);
/* Free the metrics of the evaluations after the aggregation. */
void fl__coord_forget_figures(struct fl__round *r);

/* Sum the evaluations of the clients that were asked, in client order; they are those of the new
   global model when the server has not evaluated it. */
void fl__coord_count_global(struct fl_coord *c);
/* Fill in the figures of the round's record, and what the records of its participants have. */
void fl__coord_count_round(struct fl_coord *c);
/* Of an attempt that ends without a commit: why participants were left out. */
void fl__coord_count_ended(struct fl_coord *c);
void fl__coord_count_download(struct fl_coord *c, const struct fl_event *ev);
/* Mark every responder as counted in this round. Only for the records of COMMIT: with any other
   write a client could commit its state of a round that is never committed. */
void fl__coord_mark_counted(struct fl_coord *c);

/* --- coord_report.c: reports and uploads of clients --- */

void fl__coord_report(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_client_failed(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_upload_stored(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_upload_invalid(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_upload_unstored(struct fl_coord *c, const struct fl_event *ev);
/* Nothing that it sent for the open round counts any more. */
void fl__coord_exclude(struct fl_coord *c, uint32_t client, const char *reason);

/* --- coord_finish.c: from the aggregation to the commit --- */

void fl__coord_aggregated(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_aggregate_failed(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_evaluated(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_eval_report(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_eval_failed(struct fl_coord *c, const char *reason);
bool fl__coord_evaluating(struct fl_coord *c);
void fl__coord_committed(struct fl_coord *c);
/* The number that the attempts of a round begin with. */
uint32_t fl__coord_first_attempt(const struct fl_coord *c, uint64_t round);

#endif
