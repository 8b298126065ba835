#ifndef FL_SIM_ACCOUNT_H
#define FL_SIM_ACCOUNT_H

/*
 * Where the time of a simulated round went, and its bytes. The wall time of a round is cut along
 * the chain of events that ended it: each instant belongs to the one part that everybody waited
 * for, so the parts sum up exactly. All times in microseconds of simulated time.
 */

#include "server/core/records.h"
#include "tools/fl_sim/results/result_columns.h"

/* Of one client in one attempt of a round. Times since the start of the run; 0: it did not come so
   far. */
struct fl_fed_part {
    uint64_t round;
    uint32_t attempt;
    size_t client;
    const char *name;
    enum fl_participant_state state; /* as the coordinator has it at the end of the attempt */
    bool committed;                  /* the attempt was */
    bool dropped, failed;            /* it lost its connection in it, or said that it cannot */
    bool stopped;                    /* enough others were in (over-selection) */
    uint64_t samples, steps;
    double train_loss;
    const uint8_t *units; /* [n_units] granted; NULL: there was no plan */
    size_t n_units;
    struct fl_eval_rec received, trained;
    uint64_t bytes_up, bytes_down;
    uint64_t latency_us;  /* one way, of its link */
    uint64_t selected_us; /* told by the server */
    uint64_t tasked_us;   /* it heard of it */
    uint64_t fetched_us, trained_us;
    uint64_t reported_us; /* at the server, as the next two */
    uint64_t planned_us;
    uint64_t sending_us; /* its upload began */
    uint64_t sent_us;
    uint64_t pushed_us;
};

/*
 * One round under way: what the federation tells of it as it happens. Parts are by their place
 * among the clients that were selected.
 */
struct fl_account {
    struct fl_sim_round sim;
    uint64_t ended_us;   /* the round before */
    uint64_t opened_us;  /* this attempt; 0: none is open */
    uint64_t first_us;   /* the first attempt's; 0: there was none */
    uint64_t uploads_us; /* the uploads' phase ended, and the evaluation began; 0: not yet */
    uint64_t planned_us; /* plans went out; 0: they came with the tasks */
    struct fl_fed_part *parts;
    size_t n_parts, cap_parts;
    size_t last_report, last_push; /* parts whose message came last; SIZE_MAX: nobody's did */
    char missing[FL_NAME_MAX];     /* who was waited for when a phase ended without it; "" */
    double *shares, *losses;       /* [n_evaluated] of the clients that evaluated */
    size_t n_evaluated, cap_evaluated;
};

/* Begin with the next round; nothing of the one before is left. */
void fl_account_begin(struct fl_account *account, uint64_t now_us);
/* An attempt has room for `n` parts, which are to be filled in. FL_ENOMEM. */
FL_MUST_CHECK int fl_account_select(struct fl_account *account, size_t n);
/* So many of them are, in any order. */
void fl_account_selected(struct fl_account *account, size_t n);
/* It is open: its tasks go out. */
void fl_account_open(struct fl_account *account, uint64_t now_us);
/* The part of a client in the open attempt; NULL: it has none. */
struct fl_fed_part *fl_account_part(struct fl_account *account, size_t client);
/* What a client found on its test data. FL_ENOMEM. */
FL_MUST_CHECK int fl_account_evaluated(struct fl_account *account, const struct fl_eval_rec *found);
/* The round was committed: the figures that are known now only. */
void fl_account_end(struct fl_account *account, uint64_t now_us);
void fl_account_done(struct fl_account *account);

#endif
