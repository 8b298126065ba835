#ifndef FL_LIB_COORD_SCRIPT_H
#define FL_LIB_COORD_SCRIPT_H

/*
 * Drive a coordinator by hand and read what it does as text: one line per effect, virtual
 * time in front. Work items (persist, aggregate, …) are answered at once and in order unless
 * `manual` is set.
 *
 * The model has the units a (4 floats), b (6, and 2 buffers) and c (2): 14 floats, 56
 * bytes; the whole of a unit is 16, 32 and 8 bytes.
 */

#include "libfl/base/buf.h"
#include "tests/lib/coord_check.h"

#define SCRIPT_UNITS   3
#define SCRIPT_WORKS   4096
#define SCRIPT_CLIENTS 16

struct script_work {
    enum fl_effect_type type;
    uint64_t seq;
    size_t n_parts;
    uint64_t epoch;
};

struct script {
    struct fl_coord_conf conf;
    struct fl_strategy *strategy;
    struct fl_layout *layout;
    struct fl_coord *coord;
    uint64_t now;
    uint64_t wall_ahead;            /* of the wall clock, which is at 1000000 at the start */
    struct fl_traffic_sums traffic; /* of all events */
    bool manual;
    bool quiet; /* no text is recorded */
    /* Called instead of fl_coord_step(); NULL: fl_coord_step(). */
    int (*take)(struct fl_coord *coord, const struct fl_event *ev, struct fl_effects *ret);
    struct fl_buf log;
    struct script_work works[SCRIPT_WORKS];
    size_t n_works;
    double accuracy, loss;
    struct fl_round_rec record;                   /* of the last COMMIT */
    struct fl_client_rec clients[SCRIPT_CLIENTS]; /* by number, of the last COMMIT that had it */
    /* Evaluations of the last COMMIT: "a 10 received 0.400 0.900 f1=0.5 personal 0.800 0.500 -",
       a line for each client. */
    char evals[1024];
    /* The same of the last PERSIST_QUARANTINE, unless `quiet`: only its offences and quarantine. */
    struct fl_client_rec quarantines[SCRIPT_CLIENTS];
    char taken[4096];           /* the participants of the last COMMIT, unless `quiet` */
    char ended[4096];           /* those of the last attempt that ended without one */
    size_t n_written;           /* records in the last COMMIT */
    size_t n_selected_records;  /* and in the last PERSIST_SELECTION */
    char warning[512];          /* the last TRACE that is one */
    char error[512];            /* the last CLIENT_ERROR: "name: text" */
    struct fl_effect task;      /* the last TASK */
    struct fl_effect aggregate; /* the last AGGREGATE, without its participants */
    uint64_t collection_bytes;
    double effective, self_weight;
    const char *robust_clients;
    const char *metrics; /* of the evaluation of the server */
    struct coord_check check;
};

/* Defaults: seed 1, no end, all clients of a full fraction, deadlines of 1000 ms. */
struct script *script_new(const char *preset);
void script_free(struct script *s);
void script_option(struct script *s, enum fl_component component, const char *name,
                   const char *value);
/* Create the coordinator (after script_new(), so that `conf` can be changed before) and start it.
 */
void script_create(struct script *s, const struct fl_coord_resume *resume);
void script_start(struct script *s);

/* Apply one event with the current time, and check the invariants. */
void script_step(struct script *s, struct fl_event *ev);
uint32_t script_id(const struct script *s, const char *name);
void script_join(struct script *s, const char *name, uint64_t samples);
/* It is not available, for this reason. */
void script_join_unavailable(struct script *s, const char *name, uint64_t samples,
                             const char *reason);
/* Its data summary is missing; is present. */
void script_join_waiting(struct script *s, const char *name, uint64_t samples);
/* Under the number of `name`, as `said`. */
void script_summary(struct script *s, const char *name, const char *said);
void script_lost(struct script *s, const char *name);
/* The same, and its session timed out. */
void script_silent(struct script *s, const char *name);
/* Removal by the operator. Numbers are released at once. */
void script_forget_client(struct script *s, const char *name);
/* A report for the open round; d: [3] or NULL. */
/* Its certificate is revoked. */
void script_exclude(struct script *s, const char *name);
/* The same of an evicted client. */
void script_evict(struct script *s, const char *name);
void script_report(struct script *s, const char *name, const float *d);
void script_report_of(struct script *s, const char *name, uint64_t round, uint32_t attempt,
                      uint64_t samples, double loss, const float *d, size_t n);
/* The client's update is durable; its size follows from the upload mask. */
void script_stored(struct script *s, const char *name);
/* The same with what the server found in it. */
void script_stored_with(struct script *s, const char *name, const struct fl_norms *norms);
void script_invalid(struct script *s, const char *name, const char *reason);
/* The server cannot store it (local fault). */
void script_unstored(struct script *s, const char *name, int code, const char *reason);
/* More of its upload arrives. */
/* The number of received bytes of its upload. */
void script_progress(struct script *s, const char *name, uint64_t bytes);
void script_failed(struct script *s, const char *name, const char *reason);
/* It leaves the round because its owner does not lend it now. */
void script_unavailable(struct script *s, const char *name, const char *reason);
void script_diverged(struct script *s, const char *name, const char *reason);
void script_simple(struct script *s, enum fl_event_type type);
/* PAUSE or ABORT_ROUND, with a reason. */
void script_wish(struct script *s, enum fl_event_type type, const char *reason);
/* QUARANTINE or END_QUARANTINE of a client; reason: or NULL. */
void script_of_client(struct script *s, enum fl_event_type type, const char *name,
                      const char *reason);
/* Let time pass, with a TICK at every deadline. */
void script_run_to(struct script *s, uint64_t now);
/* Answer the oldest work item, or fail it. */
void script_answer(struct script *s);
void script_answer_all(struct script *s);
void script_fail(struct script *s, int code, const char *reason, uint32_t client);
/* Assert the text of all effects since the last call. */
void script_expect(struct script *s, const char *text);
void script_forget(struct script *s);
/* Assert the text of fl_coord_why(). */
void script_why(struct script *s, const char *text);
/* What a participant of the open round is. */
enum fl_participant_state script_state(const struct script *s, const char *name);

/* --- what many tests begin with --- */

/* FedAvg with all clients; FedLDF with all, where one client uploads each unit. To be created. */
struct script *script_fedavg(void);
struct script *script_fedldf(void);
/* Another policy for a component. */
void script_set(struct script *s, enum fl_component component, const char *name);
/* Create and start it, and let the first `n` of a, b and c join with 100 samples each. */
void script_begin(struct script *s, unsigned n);
/* A preset with all of its two clients, a with 300 samples and b with 100, started, its effects
 * forgotten. */
struct script *script_of_two(const char *preset);
/* The report of a client and then its update. */
void script_respond(struct script *s, const char *name);

#endif
