#ifndef FL_CORE_RECORDS_H
#define FL_CORE_RECORDS_H

/*
 * What a federation remembers: plain records that the core fills and the store
 * writes. Client numbers are places in the client table: a client has the same as long as it is
 * known, and another one may have it afterwards; client *order* is ascending name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/str.h"
#include "libfl/figures/client_figures.h"
#include "libfl/figures/round_figures.h"

/* What is written of a client beside its figures: X(type, member and SQL column, meaning). */
#define FL_FIGURE_C_BOOL bool
/* clang-format off */
#define FL_CLIENT_STATE(X)                                                                       \
    X(U64, counted_round, "the newest committed round with it in, ACCEPTED or EMPTY; 0: none")   \
    X(U32, counted_attempt, "the attempt of that round")                                         \
    X(BOOL, counted_update, "ACCEPTED: its upload was in the aggregation")                       \
    X(BOOL, scored, "its score was set")                                                         \
    X(U64, seen_up_ms, "as last_seen_ms, on a clock that runs only while the server does and"    \
                       " that nobody sets: what a client is aged by")                            \
    X(BOOL, forgotten, "it is known no more; the record stays for its part in the open round")
/* clang-format on */

struct fl_client_rec {
    uint32_t id;
    char name[FL_NAME_MAX];
    char agent[FL_NAME_MAX];
    FL_CLIENT_FIGURES(FL_FIGURE_MEMBER)
    FL_CLIENT_STATE(FL_FIGURE_MEMBER)
};

/* What is told of it. */
struct fl_client_figures fl_client_rec_figures(const struct fl_client_rec *rec);

/* Longest text of an error of a client; longer ones keep their beginning and their end. */
#define FL_CLIENT_ERROR_SIZE 320
/* The newest ones that are remembered, of so many clients. */
#define FL_ERRORS_MAX 4096

struct fl_client_error {
    char name[FL_NAME_MAX];
    uint64_t at_ms; /* wall clock */
    uint64_t up_ms; /* as fl_client_rec.seen_up_ms */
    char text[FL_CLIENT_ERROR_SIZE];
};

/* Model-shaped vectors that an upload holds at most, the update first. */
#define FL_NORMS_BUNDLES 4
/* Behind them: the buffers of the update. */
#define FL_NORMS_BUFFERS FL_NORMS_BUNDLES
#define FL_NORMS_N       (FL_NORMS_BUNDLES + 1)

/* Of one unit of an update: how large it is, and what its client can have reported of it
   (docs/formulas.md#a-reported-divergence-and-the-upload). */
struct fl_unit_norm {
    float norm; /* Euclidean, of the trainable entries as decoded; negative: not sent */
    float low, high;
};

/* How large an upload is (docs/formulas.md#the-norm-of-an-update). */
struct fl_norms {
    /* Root mean square of the entries that were sent, of the trainable ones of each bundle and of
       the update's buffers; 0: they are zero, or were not sent. */
    double rms[FL_NORMS_N];
    struct fl_unit_norm *unit; /* [n_units]; NULL: not known */
};

/* How far a selected client has come in a round. */
enum fl_participant_state {
    FL_PARTICIPANT_SELECTED = 1, /* task sent or to be sent */
    FL_PARTICIPANT_REPORTED,     /* trained, report is in */
    FL_PARTICIPANT_PLANNED,      /* asked to upload */
    FL_PARTICIPANT_ACCEPTED,     /* upload on disk and acknowledged */
    FL_PARTICIPANT_EMPTY,        /* the plan asks nothing of it: takes part without upload */
    FL_PARTICIPANT_REJECTED,
    FL_PARTICIPANT_LOST /* silent, failed or late */
};

struct fl_eval_rec {
    uint64_t samples, correct; /* samples 0: none */
    double loss_sum;
};

struct fl_participant_rec {
    uint32_t client;
    enum fl_participant_state state;
    uint64_t samples, steps;
    double train_loss;
    float *divergence; /* [n_units] or NULL */
    uint8_t *units;    /* [n_units] grant, or NULL before the plan */
    uint64_t upload_bytes;
    double previous_dot;
    double rms[FL_NORMS_N];      /* fl_norms of a valid upload; 0: not known */
    struct fl_eval_rec received; /* the model it was given, on its own test data */
    struct fl_eval_rec trained;  /* its personal model after training */
};

/*
 * How many clients a round is of. Fixed when its clients are drawn and written down with them:
 * who comes while it is open, and whoever restarts the server, changes nothing of it.
 */
struct fl_round_size {
    uint32_t selected;   /* K_t, what a share of the uploads is taken of; 0: not known */
    uint32_t population; /* N, what the fraction is taken of */
    uint32_t members; /* clients whose mean a solver's part keeps; all that are selected and more */
    /* First round whose kept values are in the sum that a solver's part keeps; 1: all are. */
    uint64_t epoch;
};

const char *fl_part_state_name(enum fl_participant_state state);

#endif
