#ifndef FL_CORE_COORD_IMPL_H
#define FL_CORE_COORD_IMPL_H

/*
 * Inside of the coordinator, shared by the coord_*.c files only.
 *
 * A step has two halves: fl__coord_reserve() takes all the memory that handling the event
 * can need, or fails with nothing changed; from then on nothing can fail. The one
 * allocation that depends on a decision, the table of a new round, is put off and tried
 * again when there is no memory.
 */

#include <stdarg.h>

#include "libfl/base/sm.h"
#include "server/core/client_order.h"
#include "server/core/coord.h"

#define FL__NONE      UINT32_MAX
#define FL__NEVER     UINT64_MAX
#define FL__TEXT_SIZE 576
/* As much of a reason from outside as we repeat. */
#define FL__CLEAN_SIZE FL_CLIENT_ERROR_SIZE
/* Trace lines and reasons of one step: a handful of moves and one line for the event. */
#define FL__TEXTS 32
/* Effects that a step can make for each client and beside them. */
#define FL__EFFECTS_PER_CLIENT 5
#define FL__EFFECTS_BASE       512
/* Clients that are forgotten for their age in one step: the rest in the next ones. */
#define FL__AGE_STEP 64
/* Records that one write removes. */
#define FL__DELETE 128
/* Records beside those of the round that a commit brings up to date. */
#define FL__DIRTY_STEP 64
/* Back-off doubles up to so many times its first value. */
#define FL__BACKOFF_MOST 64

/* Beside a client's record; not persisted. */
struct fl__client {
    bool used; /* somebody's number, if only until it is released */
    /*
     * Its name means nobody any more: the client was forgotten, or went without ever having
     * been selected. The number is free again when its part in the open round is over, its
     * record is off the disk, and the caller has released it.
     */
    bool gone;
    bool released;
    bool recorded; /* its record is on disk, or on its way there */
    bool marked;   /* gone, and the record on disk says so */
    bool awaited;  /* gone, and who asked for it waits until that is on disk */
    bool connected;
    bool dirty;       /* in `dirty`: the record on disk is older than what is known */
    bool asked;       /* its evaluation is awaited */
    uint32_t answer;  /* its place among the evaluations of the round that asked for it last */
    uint32_t part;    /* index in the open round, or FL__NONE */
    uint64_t lost_ms; /* when the connection went, FL__NEVER: not seen since the start */
    /* Test samples as announced; who announced none is held to what its first report tells. */
    uint64_t evaluation_samples;
    uint64_t withheld;       /* samples that count once its offer is in; 0: it is not waited for */
    bool unfit;              /* it has said that it does not fit, in this session */
    bool evaluates;          /* it announced some: it can be asked for an evaluation */
    uint64_t accepted_round; /* newest accepted update since the process began */
    uint32_t accepted_attempt;
    struct fl__list *list; /* the one of `away`, `strangers` or `free` that it is in, or NULL */
    uint32_t previous, next;
    uint32_t next_dirty, next_deletion;
};

/* What a client found of a round's new model; 0 samples: nothing, or not yet. */
struct fl__answer {
    struct fl_eval_rec result, adapted;
};

/* Client numbers in the order in which they were put in. */
struct fl__list {
    uint32_t first, last;
    size_t n;
};

struct fl__clients {
    struct fl_client_rec *recs;
    struct fl__client *live;
    size_t n; /* numbers below this have been given out */
    size_t cap;
    struct fl_order names; /* who is known */
    struct fl_order here;  /* who is connected */
    /* Known clients with a record that are not connected, the one that is away longest first. */
    struct fl__list away;
    struct fl__list strangers; /* those of them that no committed round has counted */
    struct fl__list free;
    uint32_t first_dirty, last_dirty;
    uint32_t first_deletion, last_deletion; /* gone, and the record is still on disk */
    size_t n_alive;                         /* connected and with samples */
    size_t n_members;     /* alive, or known from a committed round and with samples */
    size_t n_counted;     /* alive, or counted in a round of the epoch */
    uint64_t epoch;       /* of the next round's size */
    uint64_t deletion_ms; /* a write failed: when to try again */
    bool deleting;        /* one is under way */
    struct fl_client_rec buried[FL__DELETE]; /* what FORGET_CLIENTS points to */
    size_t n_buried;
    struct fl_score_sums sums; /* over all that have a score */
    double most_samples;       /* that a client counts with, as of the last draw; INFINITY: any */
    /* Scratch for the policies, [cap_scratch] each. */
    double *scores;
    double *samples;
    double *distance;
    uint32_t *index; /* position among the candidates -> client number */
    uint32_t *who;
    struct fl__answer *answers; /* of the open round, in client order: sums depend on the order */
    size_t cap_scratch;
};

/* Beside a part's record; not persisted. */
struct fl__participant {
    bool reported; /* its report is in */
    bool stored;   /* a valid upload is on disk, not yet recorded */
    /* To lose it is not counted against it: enough others were in, or what we stored went bad. */
    bool blameless;
    unsigned n_unread; /* times that its accepted update could not be read */
    bool measured;     /* fl__round.sent holds what its upload has */
    bool repeated;     /* a second report of it tells of another training */
    uint64_t asked_ms; /* when it could begin to upload */
    uint64_t moved_ms; /* when more of its upload arrived; 0: never */
    /* Since when, and from how many bytes on, its upload has to keep the least rate. */
    uint64_t paced_ms, paced_bytes;
    uint64_t arrived_bytes;
    uint64_t stored_bytes;
    uint64_t store_seq;      /* its record is being written */
    uint64_t store_retry_ms; /* writing failed: when to try again, 0: not */
};

/* How far a client's upload is from those of the others. */
struct fl__deviant {
    uint32_t client;
    size_t kind;                /* index of fl_norms.rms */
    double norm, median, ratio; /* ratio 0: not known */
};

/* Evaluations on clients, added up. */
struct fl__figures {
    uint32_t n;
    double samples, correct, loss;
    double accuracies; /* sum of the clients' own */
};

struct fl__round {
    uint64_t round; /* 0: none is open */
    uint32_t attempt;
    struct fl_round_size size;
    size_t n;
    struct fl_participant_rec *parts; /* in client order */
    struct fl__participant *live;
    float *divergence;                 /* [n][n_units], the memory of parts[].divergence */
    struct fl_unit_norm *sent;         /* [n][n_units], of the uploads that are `measured` */
    uint8_t *units;                    /* [n][n_units], the memory of parts[].units */
    uint8_t *grant;                    /* [n][n_units], scratch of the plan */
    float *feedback;                   /* [n][n_units], scratch of the plan */
    double *distance;                  /* [n], by index in `listed` */
    struct fl_participant_rec *listed; /* the accepted ones, for the aggregation */
    struct fl_participant_rec *saved;  /* [n], what PERSIST_UPDATE points to */
    bool stale; /* an update that is being added up does not count any more */
    /* [n + FL__DIRTY_STEP], what PERSIST_SELECTION (clients that are new on disk) and COMMIT
       (all whose records changed) point to. */
    struct fl_client_rec *records;
    size_t n_records;
    size_t n_listed;
    size_t count[FL_PARTICIPANT_LOST + 1]; /* parts by state */
    /* Of the lost and rejected ones: their training diverged, or their update is not finite or was
       left out for its size. With the same model and rates they would do it again. */
    size_t n_diverged;
    size_t n_unusable;   /* of those: for what they sent */
    uint32_t not_finite; /* the first whose update was not finite; FL__NONE: none */
    bool has_distance;
    bool planned;
    bool backfilled;
    bool late;                    /* enough are in, the others have only the grace left */
    bool hurried;                 /* half are in, the others have the patience of the round left */
    bool expired;                 /* the deadline of the phase has passed */
    char trouble[FL__CLEAN_SIZE]; /* why an upload could not be stored; "": since then one could */
    bool closing;                 /* over; waits until that is on disk */
    bool unusable;                /* what was resumed does not fit the configuration */
    uint64_t opened_ms;           /* when the tasks went out */
    uint64_t deadline_ms;
    bool half_uploaded;                 /* as many uploads are in as are missing */
    uint64_t moved_ms;                  /* when more of any upload arrived */
    uint64_t upload_span_ms;            /* the longest upload of the first half */
    double upload_rate;                 /* the lowest of the first half, bytes a ms; 0: none */
    uint64_t excused_ms;                /* no client is late for what was before: our own trouble */
    uint64_t quiet_ms;                  /* when to look for uploads that do not move */
    uint64_t grace_ms;                  /* first time at which a lost client is to be given up */
    uint64_t store_retry_ms;            /* first time at which a record is to be written again */
    size_t n_asked;                     /* client evaluations awaited */
    size_t n_answers;                   /* clients that were asked for one */
    struct fl__figures result, adapted; /* of the evaluations after the aggregation */
    uint64_t offered_bytes;             /* of the bundle `offered` */
    struct fl_round_rec rec;
};

enum fl__work_kind {
    FL__WORK_NONE,
    FL__WORK_SELECTION,
    FL__WORK_PLAN,
    FL__WORK_AGGREGATE,
    FL__WORK_EVALUATE,
    FL__WORK_COMMIT,
    FL__WORK_CLOSE /* the record that an attempt is over */
};

/* The one piece of work that the phase waits for. */
struct fl__work {
    enum fl__work_kind kind;
    uint64_t seq;
    unsigned n_failed;
    uint64_t retry_ms; /* failed: when to ask again; 0: under way */
    char reason[FL_NAME_MAX];
};

enum fl__pending_kind { FL__PENDING_FORGET, FL__PENDING_UPDATE, FL__PENDING_PAUSE };

struct fl__pending {
    uint64_t seq;
    enum fl__pending_kind kind;
    uint32_t client;
};

/* No round begins; on disk, but for what is `dirty` or under way. */
struct fl__pause {
    bool on;
    bool dirty;        /* on disk is another, and that is not being written */
    uint64_t seq;      /* of the write under way; 0: none */
    uint64_t retry_ms; /* a write failed: when to try again */
    char reason[FL_PAUSE_SIZE];
};

enum fl__command_kind {
    FL__COMMAND_NONE,
    FL__COMMAND_KEPT,  /* answered when the pause is on disk as it is now */
    FL__COMMAND_CLOSED /* answered when the end of the open attempt is */
};

/* The operator's, that has no answer yet. */
struct fl__command {
    enum fl__command_kind awaited;
    char text[FL__TEXT_SIZE];
};

/* "edge-1, edge-2 and 3 more" */
struct fl__names {
    char text[FL__CLEAN_SIZE];
    size_t used, shown, total;
};

struct fl_coord {
    struct fl_coord_conf conf;
    size_t n_units;
    bool needs_divergence; /* reports hold one per unit */
    bool compares_claims;  /* fl__claims_compared() */
    bool needs_previous_dot;
    uint64_t full_bytes;     /* 4 (d + s) */
    uint64_t n_model_inputs; /* bundles of that size that the solver needs beside the model */
    struct fl_sm sm;
    char reason[FL__TEXT_SIZE]; /* of the move that is being made */
    uint64_t now_ms;
    uint64_t wall_ms;
    bool clocked; /* an event told the time */
    bool ticking; /* this step is a TICK */
    bool started;
    bool draining;
    bool stopping;
    bool finished;
    bool aborting; /* the open attempt is to end as soon as nothing of it is being written */
    struct fl__pause pause;
    struct fl__command wish;
    char abort_command[FL__CLEAN_SIZE];
    char stop_reason[FL__CLEAN_SIZE];
    char abort_reason[FL__CLEAN_SIZE];
    uint64_t committed;
    uint32_t attempt; /* of the next selection */
    unsigned n_aborts;
    uint64_t used_round; /* as the resume */
    uint32_t used_attempt;
    uint64_t not_before_ms;
    uint64_t settle_ms; /* restarted: the known clients have until then to come back */
    bool restarted;
    size_t expected; /* n_members when the server died */
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

/* The number that the attempts of a round begin with. */
uint32_t fl__coord_first_attempt(const struct fl_coord *c, uint64_t round);

/* --- coord_effects.c: effects, traces, moves, work --- */

FL_MUST_CHECK int fl__coord_reserve(struct fl_coord *c);
struct fl_effect *fl__coord_emit(struct fl_coord *c, enum fl_effect_type type);
/* An effect about the open round to a client. */
struct fl_effect *fl__coord_effect_for(struct fl_coord *c, enum fl_effect_type type,
                                       uint32_t client);
FL_PRINTF(2, 3) const char *fl__coord_text(struct fl_coord *c, const char *fmt, ...);
FL_PRINTF(2, 0) const char *fl__coord_vtext(struct fl_coord *c, const char *fmt, va_list ap);
FL_PRINTF(2, 3) void fl__coord_trace(struct fl_coord *c, const char *fmt, ...);
/* A line that asks for somebody's attention. */
FL_PRINTF(2, 3) void fl__coord_warn(struct fl_coord *c, const char *fmt, ...);
void fl__coord_sm_init(struct fl_coord *c);
FL_PRINTF(3, 4) void fl__coord_move(struct fl_coord *c, enum fl_phase to, const char *fmt, ...);
/* Ask for a piece of work; again after a failure. */
void fl__coord_work(struct fl_coord *c, enum fl__work_kind kind);
void fl__coord_work_done(struct fl_coord *c);
void fl__coord_work_failed(struct fl_coord *c, const char *reason);
/* now + span without wrapping. */
uint64_t fl__coord_after(const struct fl_coord *c, uint64_t span_ms);
uint64_t fl__coord_backoff(const struct fl_coord *c, unsigned n_failed);
/* Printable copy of text that a peer may have written. */
const char *fl__coord_clean(char *out, size_t size, const char *text);

/* --- coord_pending.c: records that are being written beside the phase's work --- */

uint64_t fl__coord_pend(struct fl_coord *c, enum fl__pending_kind kind, uint32_t client);
/* Take the entry out; false when there is none. */
bool fl__coord_unpend(struct fl_coord *c, uint64_t seq, struct fl__pending *ret);
/* Forget the updates of a round that is over. */
void fl__coord_unpend_updates(struct fl_coord *c);

/* --- coord_clients.c: the table of clients --- */

/* Room for one more client, with `n_parts` parts in the open round. */
FL_MUST_CHECK int fl__clients_reserve(struct fl__clients *clients, size_t n_parts);
/* Room for the numbers below `n`. */
FL_MUST_CHECK int fl__clients_reserve_numbers(struct fl__clients *clients, size_t n);
void fl__clients_done(struct fl__clients *clients);
/* The number of a name, or FL__NONE. */
uint32_t fl__clients_find(const struct fl__clients *clients, const char *name);
/* Somebody's number, who may be gone. */
bool fl__clients_used(const struct fl__clients *clients, uint32_t client);
/* Room was reserved, the name is valid and new. `id` FL__NONE: any free number. */
uint32_t fl__clients_add(struct fl__clients *clients, const char *name, uint32_t id);
/*
 * What a solver's part sums up is not the sum of what clients keep any more, for this reason: it
 * restarts at zero with the next round.
 */
FL_PRINTF(2, 3) void fl__coord_begin_epoch(struct fl_coord *c, const char *fmt, ...);
/* Is what the client keeps in that sum? */
bool fl__coord_is_summed(const struct fl_coord *c, uint32_t client);
/* Take it out of what is counted before something about it changes, and put it back after. */
void fl__clients_uncount(struct fl__clients *clients, uint32_t client);
void fl__clients_count(struct fl__clients *clients, uint32_t client);
/* The number is free again if nothing holds it. */
void fl__clients_recycle(struct fl__clients *clients, uint32_t client);
void fl__list_add(struct fl__clients *clients, struct fl__list *list, uint32_t client);
void fl__list_remove(struct fl__clients *clients, uint32_t client);
/* It is away: into the list that it belongs to, at the end of it. */
void fl__clients_disconnected(struct fl_coord *c, uint32_t client);
/* It was counted while it is away. */
void fl__clients_settle(struct fl_coord *c, uint32_t client);
/* Something was heard of the client. */
void fl__clients_heard(struct fl_coord *c, uint32_t client);
/* Its record is to be brought up to date with a commit. */
void fl__clients_dirty(struct fl__clients *clients, uint32_t client);
/* Put the records of the open round's clients, and some that are dirty, into r->records. */
void fl__coord_list_records(struct fl_coord *c);
/* Its update of (round, attempt) was accepted, as far as this process knows. */
bool fl__coord_was_accepted(const struct fl_coord *c, uint32_t client, uint64_t round,
                            uint32_t attempt);
const char *fl__coord_name(const struct fl_coord *c, uint32_t client);

/* --- coord_join.c: who comes and goes --- */

void fl__coord_joined(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_offered(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_lost(struct fl_coord *c, uint32_t client);
/* The name means nobody any more. */
void fl__coord_leave(struct fl_coord *c, uint32_t client);
/* The same; `why` ends its session. */
void fl__coord_drop(struct fl_coord *c, uint32_t client, const char *why);

/* --- coord_forget.c: who is not known any more --- */

void fl__coord_forget(struct fl_coord *c, uint32_t client, const char *why);
/* As fl__coord_forget(), for somebody who waits for FORGOTTEN. */
void fl__coord_forget_for(struct fl_coord *c, uint32_t client, const char *why);
/* It was, in a life before: its record is there for its part in the open round. */
void fl__coord_resume_forgotten(struct fl_coord *c, uint32_t client);
void fl__coord_released(struct fl_coord *c, uint32_t client);
/* Clients that are away for too long, or too many of those that never took part. */
void fl__coord_age(struct fl_coord *c);
/* Take records of those that are gone off the disk. */
void fl__coord_delete_queued(struct fl_coord *c);
void fl__coord_buried(struct fl_coord *c);
void fl__coord_deletion_failed(struct fl_coord *c, const char *reason);

/* --- coord_pause.c: what the operator wishes of the rounds, and the end --- */

void fl__coord_pause(struct fl_coord *c, const char *reason);
/* The core's own pause. */
FL_PRINTF(2, 3) void fl__coord_pause_for(struct fl_coord *c, const char *fmt, ...);
void fl__coord_resume(struct fl_coord *c);
void fl__coord_drain(struct fl_coord *c);
void fl__coord_new_epoch(struct fl_coord *c);
void fl__coord_abort_round(struct fl_coord *c, const char *reason);
/* Write down what has changed of the pause. */
void fl__coord_keep_pause(struct fl_coord *c);
/* It is on disk as it is now. */
bool fl__coord_pause_kept(const struct fl_coord *c);
void fl__coord_pause_persisted(struct fl_coord *c);
void fl__coord_pause_failed(struct fl_coord *c, const char *reason);
/* The operator wished it, and it can be now: the attempt is aborted. */
bool fl__coord_aborting(struct fl_coord *c);
/* The end of the attempt is on disk; else `trouble`. */
void fl__coord_abort_closed(struct fl_coord *c, const char *trouble);
/* A client, or all of them (FL__NONE), are told that rounds or server are at their end. */
struct fl_effect *fl__coord_disconnect(struct fl_coord *c, uint32_t client);
void fl__coord_begin_drain(struct fl_coord *c);
bool fl__coord_draining(struct fl_coord *c);
bool fl__coord_paused(struct fl_coord *c);
void fl__coord_stop(struct fl_coord *c, const char *reason);
/* In place of all else, once it was told to stop. */
void fl__coord_stopping(struct fl_coord *c);

/* --- coord_select.c --- */

/* N and the members of a round that begins now with `selected` clients. */
struct fl_round_size fl__coord_size(const struct fl_coord *c, size_t selected);
/* What a fraction is taken of. */
size_t fl__coord_population(const struct fl_coord *c);
/* K_t of the next round out of `population`, whoever is alive; never fewer than have to respond. */
size_t fl__coord_count(const struct fl_coord *c, size_t population);
uint32_t fl__coord_need(const struct fl_coord *c);
/* min_responders of the open round. */
uint32_t fl__coord_least(const struct fl_coord *c);
void fl__coord_ensure_scores(struct fl_coord *c);
/* The samples that a client counts with. */
double fl__coord_weight(const struct fl_coord *c, uint32_t client);
/* What records that were read have together: shares are told before the first draw. */
void fl__coord_add_scores(struct fl_coord *c);
bool fl__coord_select(struct fl_coord *c);

/* --- coord_part.c: the table of the open round --- */

FL_MUST_CHECK int fl__coord_round_create(struct fl__round *r, size_t n, size_t n_units);
void fl__coord_round_done(struct fl_coord *c);
void fl__participant_set(struct fl_coord *c, size_t i, enum fl_participant_state state);
bool fl__participant_waiting(const struct fl_coord *c, size_t i);
bool fl__units_empty(const uint8_t *units, size_t n);
size_t fl__coord_round_waiting(const struct fl_coord *c);
size_t fl__coord_round_responders(const struct fl_coord *c);
/* What plan() grants to the `n` parts who[]; `feedback` when reports are there. False
   without memory, nothing changed. */
bool fl__coord_round_plan(struct fl_coord *c, const uint32_t *who, size_t n, bool feedback);
/* The client leaves the round; DISMISSED when it is connected. */
void fl__participant_lose(struct fl_coord *c, size_t i);
void fl__participant_reject(struct fl_coord *c, size_t i, const char *reason);
/* Tell what went wrong with a client. `text` lives until the next step. */
void fl__coord_client_error(struct fl_coord *c, uint32_t client, const char *text);
/* Nothing more is needed of the client: its upload is on disk and only its record is not. */
bool fl__participant_stored(const struct fl_coord *c, size_t i);
/* The state of the parts that TRAINING or UPLOADING waits for. */
enum fl_participant_state fl__coord_round_wanted(const struct fl_coord *c);
/* Participation counters of the records, once an attempt is over. */
void fl__coord_round_account(struct fl_coord *c);

/* ", 2 diverged", or "" */
const char *fl__diverged_text(const struct fl_coord *c, char *out, size_t size);
void fl__names_add(struct fl__names *names, const char *name);
const char *fl__names_text(struct fl__names *names);

/* --- coord_round.c: from the selection to the last upload --- */

void fl__coord_task(struct fl_coord *c, size_t i);
void fl__coord_selected(struct fl_coord *c);
void fl__coord_resume_round(struct fl_coord *c);
void fl__coord_planned(struct fl_coord *c);
bool fl__coord_training(struct fl_coord *c);
bool fl__coord_uploading(struct fl_coord *c);
FL_PRINTF(2, 3) void fl__coord_abort(struct fl_coord *c, const char *fmt, ...);
/* The same, without a wait before the next attempt. */
FL_PRINTF(2, 3) void fl__coord_abort_now(struct fl_coord *c, const char *fmt, ...);
/* The open attempt is over, and that is to be written down. */
void fl__coord_close(struct fl_coord *c);
/* It is, but not before the pause that follows from it. */
void fl__coord_write_close(struct fl_coord *c);
void fl__coord_closed(struct fl_coord *c);
/* Too few are left, say why; a pause follows when it is for want of diverged clients. */
FL_PRINTF(2, 3) void fl__coord_abort_few(struct fl_coord *c, const char *fmt, ...);
/* An attempt that would only be repeated: PAUSED once its end is on disk. */
FL_PRINTF(2, 3) void fl__coord_pause_diverged(struct fl_coord *c, const char *fmt, ...);
bool fl__coord_too_few(const struct fl_coord *c);
/* Nobody's update is there, and one is needed. */
bool fl__coord_no_update(const struct fl_coord *c);
bool fl__coord_has_feedback(const struct fl_coord *c);
/* The client knows (or is to know) that its empty part is done. */
bool fl__coord_empty_told(const struct fl_coord *c);
void fl__coord_accepted(struct fl_coord *c, size_t i);

/* --- coord_straggler.c: clients that are much slower than the others, or silent --- */

/* Training: the others' reports shorten the deadline. True when it has passed by that. */
bool fl__straggler_training(struct fl_coord *c);
/* The part may upload from now on. */
void fl__straggler_asked(struct fl_coord *c, size_t i);
/* The phase of uploads begins, or goes on in another process. */
void fl__straggler_begin_uploads(struct fl_coord *c);
/* Its upload is complete, with that many bytes. */
void fl__straggler_stored(struct fl_coord *c, size_t i, uint64_t bytes);
void fl__straggler_progress(struct fl_coord *c, const struct fl_event *ev);
/* The server's own trouble: no client was late until now. */
void fl__straggler_excuse(struct fl_coord *c);
/* Uploading: clients of which nothing arrives, or too little, are lost. */
void fl__straggler_uploading(struct fl_coord *c);
/* When a part whose upload is awaited is lost if nothing more of it arrives (less than the least
   rate, once half are in); FL__NEVER: not
   before the deadline. */
uint64_t fl__straggler_due(const struct fl_coord *c, size_t i);

/* --- coord_over.c --- */

/* More were asked than are needed and K are in: the others leave the round, and are told so. */
void fl__coord_stop_spares(struct fl_coord *c);
/* The same with over_grace: they have the grace of a lost client left. True: that is over now. */
bool fl__coord_shorten_deadline(struct fl_coord *c);

/* --- coord_norm.c --- */

/* Leave out the accepted updates that are larger than norm_cap times the median. */
void fl__coord_cap_norms(struct fl_coord *c);
/* It is not compared with others any more. */
void fl__coord_forget_norms(struct fl_participant_rec *part);
void fl__coord_count_norms(const struct fl_coord *c, struct fl_round_rec *rec);
/* "; client 'x' deviates most, ...", or "" when none is known to. */
const char *fl__coord_deviant_text(struct fl_coord *c);

/* --- coord_claim.c --- */

/* Reported divergences are compared with uploads: they matter, and no residual hides them. */
bool fl__claims_compared(const struct fl_strategy *s);
/* What the part's upload has. */
void fl__claim_take(struct fl_coord *c, size_t i, const struct fl_norms *norms);
/* One more report of a part whose first one counts. */
void fl__claim_repeated(struct fl_coord *c, size_t i, const struct fl_event *ev);
/* Why its report and upload do not go together; NULL: they do, or one of them is not there yet. */
const char *fl__claim_bad(struct fl_coord *c, size_t i);

/* --- coord_backfill.c --- */

/* Ask the next-ranked for the units of uploaders that failed; true when somebody is asked. */
bool fl__coord_backfill(struct fl_coord *c);

/* --- coord_count.c: what a committed round leaves behind --- */

/* The last commit made a mixture for it (personal "own"). */
bool fl__coord_has_personal_model(const struct fl_coord *c, uint32_t client);
/* Nothing, or an evaluation that can be true: why it is not, or NULL. */
const char *fl__eval_bad(const struct fl_coord *c, uint32_t client, const struct fl_eval_rec *eval);
void fl__figures_add(struct fl__figures *figures, const struct fl_eval_rec *eval);
/* Add up what the clients that were asked found, whoever was first. */
void fl__coord_count_answers(struct fl_coord *c);
/* The figures of the round's record. */
void fl__coord_count_round(struct fl_coord *c);
/*
 * Every responder was counted in this round. Only for the records of COMMIT: with any other
 * write a client could take over what it kept of a round that is never committed.
 */
void fl__coord_mark_counted(struct fl_coord *c);

/* --- coord_report.c: what clients say within a round --- */

/* Bring a client that came (back) to where it left the round. */
void fl__coord_welcome(struct fl_coord *c, uint32_t client);
void fl__coord_report(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_client_failed(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_upload_stored(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_upload_invalid(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_upload_unstored(struct fl_coord *c, const struct fl_event *ev);
/* Write the part's record, as accepted, empty or rejected. */
void fl__coord_persist_update(struct fl_coord *c, size_t i);
/* Nothing that it sent for the open round counts. */
void fl__coord_exclude(struct fl_coord *c, uint32_t client, const char *reason);
void fl__coord_update_persisted(struct fl_coord *c, uint32_t client, uint64_t seq);
void fl__coord_update_failed(struct fl_coord *c, uint32_t client, uint64_t seq, const char *reason);
void fl__coord_store_retry(struct fl_coord *c);

/* --- coord_finish.c: from the aggregation to the commit --- */

void fl__coord_list_accepted(struct fl_coord *c);
void fl__coord_aggregated(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_aggregate_failed(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_evaluated(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_eval_report(struct fl_coord *c, const struct fl_event *ev);
void fl__coord_eval_failed(struct fl_coord *c, const char *reason);
bool fl__coord_evaluating(struct fl_coord *c);
void fl__coord_committed(struct fl_coord *c);

#endif
