#ifndef FL_CORE_RECORDS_H
#define FL_CORE_RECORDS_H

/*
 * Records of a federation: plain structs that the coordinator fills and the store writes. A client
 * number is an index of the client table; a client keeps it as long as it is known, after that it
 * may be reassigned. Client *order* is ascending name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/str.h"
#include "libfl/figures/client_figures.h"
#include "libfl/figures/eval_metrics.h"
#include "libfl/figures/part_figures.h"
#include "libfl/figures/round_figures.h"

/* State of a client on disk beside its figures: X(type, member and SQL column, meaning). */
#define FL_FIGURE_C_BOOL bool
/* clang-format off */
#define FL_CLIENT_STATE(X)                                                                      \
    X(U64, counted_round, "newest committed round that counted it, ACCEPTED or EMPTY; 0: none") \
    X(U32, counted_attempt, "the attempt of that round")                                        \
    X(BOOL, counted_update, "ACCEPTED: its upload was in the aggregation")                      \
    X(BOOL, scored, "its score was set")                                                        \
    X(U64, seen_up_ms, "as last_seen_ms, on a monotonic clock that runs only while the server"  \
                       " does: the age of a client")                                            \
    X(F64, layer_credit, "layers that it may still be asked for by its share of earlier plans"  \
                         " (fl_share_layers())")                                                \
    X(U64, capped_round, "newest committed round of those in n_share_capped; 0: none")          \
    X(BOOL, forgotten, "forgotten; the record stays for its part in the open round")
/* clang-format on */

/* What counts towards the quarantine of a client (docs/security.md#quarantine). */
enum fl_offence_kind {
    FL_OFFENCE_CLAIM = 1, /* its upload cannot have the divergence of its report */
    FL_OFFENCE_NORM,      /* its update was left out by round.norm_cap */
    FL_OFFENCE_UPDATE     /* its update cannot be decoded, or is not finite, or too large */
};

/* One in an attempt at most. Stored as it lies. */
struct fl_offence {
    uint64_t round;
    uint32_t attempt;
    uint32_t kind; /* enum fl_offence_kind; 0: none */
};

/* The newest offences are stored, of each client. */
#define FL_OFFENCES_MAX 8
/* Size of the reason of a quarantine; longer texts keep their beginning and end. */
#define FL_QUARANTINE_SIZE 400

struct fl_client_rec {
    uint32_t id;
    char name[FL_NAME_MAX];
    char agent[FL_NAME_MAX];
    FL_CLIENT_FIGURES(FL_FIGURE_MEMBER)
    FL_CLIENT_STATE(FL_FIGURE_MEMBER)
    struct fl_offence offences[FL_OFFENCES_MAX]; /* since its last release; oldest first */
    char quarantine[FL_QUARANTINE_SIZE];         /* why it is quarantined; "": it is not */
    uint64_t quarantined_ms;                     /* since when, by the wall clock, for people */
    uint64_t quarantined_up_ms;                  /* the same, on the clock of seen_up_ms */
};

/* The figures of a record, for reports. */
struct fl_client_figures fl_client_rec_figures(const struct fl_client_rec *rec);

/* Size of the error text of a client; longer texts keep their beginning and end. */
#define FL_CLIENT_ERROR_SIZE 320
/* The newest errors are stored, of so many clients. */
#define FL_ERRORS_MAX 4096

struct fl_client_error {
    char name[FL_NAME_MAX];
    uint64_t at_ms; /* wall clock */
    uint64_t up_ms; /* as fl_client_rec.seen_up_ms */
    char text[FL_CLIENT_ERROR_SIZE];
};

/* Largest number of model-shaped vectors in an upload, the update first. */
#define FL_NORMS_PAYLOADS 4
/* After them: the buffers of the update. */
#define FL_NORMS_BUFFERS FL_NORMS_PAYLOADS
#define FL_NORMS_N       (FL_NORMS_PAYLOADS + 1)

/* Norm of one unit of an update, and the range of divergences that its client can have reported
   for it (docs/algorithms.md#a-reported-divergence-and-the-upload). */
struct fl_unit_norm {
    float norm; /* Euclidean, of the trainable entries as decoded; negative: not sent */
    float low, high;
};

/* The norms of an upload (docs/algorithms.md#the-norm-of-an-update). */
struct fl_norms {
    /* Root mean square of the entries that were sent: of the trainable entries of each vector,
       then of the update's buffers; 0: all zero, or not sent. */
    double rms[FL_NORMS_N];
    struct fl_unit_norm *unit; /* [n_units]; NULL: not known */
};

/* How far a selected client has come in a round. */
enum fl_participant_state {
    FL_PARTICIPANT_SELECTED = 1, /* task sent or to be sent */
    FL_PARTICIPANT_REPORTED,     /* trained, report is in */
    FL_PARTICIPANT_PLANNED,      /* planned: has an upload mask */
    FL_PARTICIPANT_ACCEPTED,     /* upload on disk and acknowledged */
    FL_PARTICIPANT_EMPTY,        /* its upload mask is empty: takes part without an upload */
    FL_PARTICIPANT_REJECTED,
    FL_PARTICIPANT_LOST /* disconnected, failed or timed out */
};

struct fl_eval_rec {
    uint64_t samples, correct; /* samples 0: none */
    double loss_sum;
    const char
        *metrics; /* libfl/figures/eval_metrics.h; owned by the holder of the record; NULL: none */
};

/*
 * What the evaluations of one client found in a round, on its own test data: of the model that it
 * received (or the new global one), and of its own. Their sums are the accuracies and metrics of
 * the round's record. Borrows the texts.
 */
struct fl_client_eval {
    uint32_t client;
    const char *name;
    uint64_t samples;         /* test samples */
    double received_accuracy; /* FL_SHARE_UNKNOWN: that model was not evaluated (share.h) */
    double received_loss;
    double personal_accuracy, personal_loss;         /* likewise */
    const char *received_metrics, *personal_metrics; /* eval_metrics.h; NULL: none */
};

/* Its metrics as one text with keys as in the record of a round, as far as they have a place. */
void fl_client_eval_metrics(const struct fl_client_eval *eval, char out[FL_EVAL_METRICS_TEXT]);

/* Which shares of a participant round.share_cap lowered; flags. */
enum fl_share_kind {
    FL_SHARE_DRAWS = 1u << 0,
    FL_SHARE_LAYERS = 1u << 1,
    FL_SHARE_WEIGHT = 1u << 2
};

struct fl_participant_rec {
    uint32_t client;
    enum fl_participant_state state;
    uint32_t capped; /* enum fl_share_kind */
    uint64_t samples, steps;
    double train_loss;
    float *divergence; /* [n_units] or NULL */
    uint8_t *units;    /* [n_units] upload mask, or NULL before the plan */
    uint64_t upload_bytes;
    double previous_dot;
    double rms[FL_NORMS_N];      /* fl_norms of a valid upload; 0: not known */
    struct fl_eval_rec received; /* the received model, on its own test data */
    struct fl_eval_rec trained;  /* its personal model after training */
    /* With the commit or the end of an attempt only, and not in the record of the open round: */
    uint64_t download_bytes;
    const char *remark; /* why it was left out, below FL_PART_REMARK bytes; NULL: it was not */
};

/* Size of the reason why a participant was left out; longer texts keep their beginning and end. */
#define FL_PART_REMARK 200
/* Layers of an upload mask that the record of a participation has. */
#define FL_PART_LAYERS 256
/* Of the first so many accepted participants, in client order, it has the mixing weights or the
   scores of the attention. */
#define FL_PART_MIXED 64

/* State of a participation beside enum fl_participant_state: the client was not selected in the
   round, and evaluated its model. */
#define FL_PARTICIPATION_EVALUATED (FL_PARTICIPANT_LOST + 1)

/*
 * The record of a client in an attempt of a round. A reader borrows it for the call.
 */
struct fl_participation {
    uint64_t id; /* grows from round to round; within a round in descending client order */
    struct fl_part_figures figures;
    const char *client;
    int state;           /* enum fl_participant_state, or FL_PARTICIPATION_EVALUATED */
    const char *asked;   /* a digit for each layer, "0110"; "": it got no upload mask */
    const char *remark;  /* why it was left out; "": it was not */
    const char *aborted; /* why the attempt was aborted; "": it was committed */
    const char *metrics; /* of its evaluations, with keys as in the record of a round; "": none */
    /* float32 [at most FL_PART_MIXED]: weights of the models of the accepted participants, in
       client order, in its personalized model, or the scores that its update gives to theirs */
    const void *mixing;
    size_t mixing_len; /* bytes; 0: it has none */
};

/* Size of a round. Fixed and persisted when its clients are drawn: clients that connect later,
   or a restart, do not change it. */
struct fl_round_size {
    uint32_t selected;   /* K_t, of which shares of the uploads are taken; 0: not known */
    uint32_t population; /* N, of which the fraction is taken */
    /* clients in the server's mean of client state; at least all that are selected */
    uint32_t members;
    /* First round whose client state is in the server's sum of it; 1: all rounds are. */
    uint64_t epoch;
    uint32_t capped; /* candidates with a lower probability by round.share_cap */
};

/* Of a fl_participation.state. */
const char *fl_part_state_name(int state);

#endif
