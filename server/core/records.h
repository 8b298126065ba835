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

struct fl_client_rec {
    uint32_t id;
    char name[FL_NAME_MAX];
    char agent[FL_NAME_MAX];
    uint64_t samples;
    double score; /* of the selection policy; only its share of all scores means something */
    bool scored;  /* it was set */
    uint64_t n_selected, n_accepted, n_rejected, n_lost;
    double last_loss;
    /* The newest committed round with this client in it, ACCEPTED or EMPTY; round 0: none. */
    uint64_t counted_round;
    uint32_t counted_attempt;
    bool counted_update;   /* ACCEPTED: its upload was in the aggregation */
    uint64_t last_seen_ms; /* wall clock */
    /*
     * The same on a clock that runs only while the server does and that nobody sets: what a
     * client is aged by.
     */
    uint64_t seen_up_ms;
    /* It is known no more; the record stays for its part in the open round only. */
    bool forgotten;
};

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

/* How far a selected client has come in a round. */
enum fl_part_state {
    FL_PART_SELECTED = 1, /* task sent or to be sent */
    FL_PART_REPORTED,     /* trained, report is in */
    FL_PART_PLANNED,      /* asked to upload */
    FL_PART_ACCEPTED,     /* upload on disk and acknowledged */
    FL_PART_EMPTY,        /* the plan asks nothing of it: takes part without upload */
    FL_PART_REJECTED,
    FL_PART_LOST /* silent, failed or late */
};

struct fl_eval_rec {
    uint64_t samples, correct; /* samples 0: none */
    double loss_sum;
};

struct fl_part_rec {
    uint32_t client;
    enum fl_part_state state;
    uint64_t samples, steps;
    double train_loss;
    float *divergence; /* [n_units] or NULL */
    uint8_t *units;    /* [n_units] grant, or NULL before the plan */
    uint64_t upload_bytes;
    double previous_dot;
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
};

struct fl_round_rec {
    uint64_t round;
    uint32_t attempt;
    uint32_t n_selected, n_responders;
    double accuracy, loss; /* negative accuracy: not evaluated */
    double train_loss;
    /*
     * Personal models on the clients' own test data, over the responders or the evaluated
     * clients: all correct of all samples (the papers' figure), and the mean of the clients'
     * accuracies. Negative: not known. `received` is the global model in the same place.
     */
    double personal_accuracy, personal_mean;
    double received_accuracy, received_mean;
    uint32_t n_personal; /* clients in it */
    double effective;    /* fl_agg_info; 0: no attention */
    double self_weight;
    uint64_t uplink_bytes;   /* coded payload accepted, feedback and, in round 1, offers included */
    uint64_t feedback_bytes; /* 4 a unit and report, when divergences are asked for */
    uint64_t uplink_bytes_full; /* 4 (d + s) a responder */
    /* 4 (d + s) a selected client and model-shaped bundle; personal "own": only a mixture, or the
       model for one that was never counted; offers that a client is told for the first time. */
    uint64_t downlink_bytes;
    uint64_t started_ms, ended_ms; /* wall clock */
};

const char *fl_part_state_name(enum fl_part_state state);

#endif
