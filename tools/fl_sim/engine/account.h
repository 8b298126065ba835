#ifndef FL_SIM_ACCOUNT_H
#define FL_SIM_ACCOUNT_H

/*
 * Account of a simulated round: its time and its bytes. The wall time of a round is divided along
 * the critical path of events that ended it: each instant belongs to the one phase that delayed the
 * round, so the phases sum up exactly. All times in microseconds of simulated time.
 */

#include "server/core/records.h"
#include "tools/fl_sim/results/result_columns.h"

/* One client in one attempt of a round. Times since the start of the run; 0: not reached. */
struct fl_fed_part {
    uint64_t round;
    uint32_t attempt;
    size_t client;
    const char *name;
    enum fl_participant_state state; /* state in the coordinator at the end of the attempt */
    bool committed;                  /* the attempt was committed */
    /* it disconnected during the attempt, or reported that it cannot continue */
    bool dropped, failed;
    bool training_ended; /* well or not */
    bool stopped;        /* enough other clients had delivered (over-selection) */
    uint64_t samples, steps;
    double train_loss;
    const uint8_t *units; /* [n_units] upload mask; NULL: there was no upload plan */
    size_t n_units;
    const struct fl_client_eval *eval; /* its evaluations in a committed round; NULL: none */
    bool evaluated;                    /* it was not selected, and evaluated its model */
    uint64_t bytes_up, bytes_down;
    uint64_t latency_us;  /* one way, of its link */
    uint64_t selected_us; /* sent by the server */
    uint64_t tasked_us;   /* received by the client */
    uint64_t fetched_us, trained_us;
    uint64_t reported_us; /* arrival at the server, as the next two */
    uint64_t planned_us;
    uint64_t sending_us; /* its upload began */
    uint64_t sent_us;
    uint64_t pushed_us;
};

/*
 * The open round, as the federation reports it event by event. Participants are indexed in the
 * order of selection.
 */
struct fl_sim_account {
    struct fl_sim_round sim;
    uint64_t ended_us;   /* end of the previous round */
    uint64_t opened_us;  /* start of this attempt; 0: none is open */
    uint64_t first_us;   /* start of the first attempt; 0: there was none */
    uint64_t uploads_us; /* end of the upload phase and start of the evaluation; 0: not yet */
    uint64_t planned_us; /* plans were sent; 0: they came with the tasks */
    struct fl_fed_part *parts;
    size_t n_parts, cap_parts;
    size_t last_report, last_push; /* participants whose message came last; SIZE_MAX: none came */
    char missing[FL_NAME_MAX];     /* client that a phase waited for when its deadline passed; "" */
};

/* Begin the next round; clears everything of the previous one. */
void fl_sim_account_begin(struct fl_sim_account *account, uint64_t now_us);
/* Make room for `n` participants of an attempt, which the caller fills in. FL_ENOMEM. */
FL_MUST_CHECK int fl_sim_account_select(struct fl_sim_account *account, size_t n);
/* Set the number of participants, which may be in any order. */
void fl_sim_account_selected(struct fl_sim_account *account, size_t n);
/* Open the attempt: its tasks are sent. */
void fl_sim_account_open(struct fl_sim_account *account, uint64_t now_us);
/* The participant of a client in the open attempt; NULL: it has none. */
struct fl_fed_part *fl_sim_account_part(struct fl_sim_account *account, size_t client);
/* The round was committed: compute the figures that are known only now. */
void fl_sim_account_end(struct fl_sim_account *account, uint64_t now_us);
void fl_sim_account_done(struct fl_sim_account *account);

#endif
