#ifndef FL_RESULTS_COLUMNS_H
#define FL_RESULTS_COLUMNS_H

/*
 * Figures of a simulation beside the server's record (libfl/figures/round_figures.h): of a round,
 * and of a client in an attempt at a round. One row per figure, as described in
 * libfl/figures/figures.h, without the wire number: X(type, member, …). The rows define the keys of
 * JSON and the columns of CSV; none has the name of one of the server's.
 *
 * Times are simulated: microseconds since the start of the trial.
 */

#include "libfl/base/str.h"
#include "libfl/figures/round_figures.h"

/*
 * The phases from wait_clients_us to evaluation_us sum up to wall_us, and time_us is that of the
 * previous round plus wall_us: the writer rejects a row that violates this.
 *
 * Traffic is counted when it is sent, in all attempts at the round, whereas the server's
 * uplink_bytes are the accepted bytes.
 */
/* clang-format off */
#define FL_SIM_ROUND_FIGURES(X)                                                                    \
    X(U64, time_us, .unit = FL_UNIT_US,                                                            \
      .meaning = "End of the round, since the start of the trial")                                 \
    X(U64, wall_us, .unit = FL_UNIT_US, .over = FL_OVER_SUM,                                       \
      .meaning = "Duration, since the end of the previous round: the sum of the eight below")\
    X(U64, wait_clients_us, .unit = FL_UNIT_US, .over = FL_OVER_SUM,                               \
      .meaning = "Waiting for enough clients, before the selection")                               \
    X(U64, download_us, .unit = FL_UNIT_US, .over = FL_OVER_SUM,                                   \
      .meaning = "Download of the client that the round waited for")                               \
    X(U64, training_us, .unit = FL_UNIT_US, .over = FL_OVER_SUM,                                   \
      .meaning = "Training of that client")                                                                   \
    X(U64, upload_us, .unit = FL_UNIT_US, .over = FL_OVER_SUM,                                     \
      .meaning = "Upload of the client that the round waited for")                                 \
    X(U64, message_us, .unit = FL_UNIT_US, .over = FL_OVER_SUM,                                    \
      .meaning = "Latency of commands and reports on that path")                                   \
    X(U64, late_us, .unit = FL_UNIT_US, .over = FL_OVER_SUM,                                       \
      .meaning = "Waiting for stragglers, until a deadline passed")                    \
    X(U64, retry_us, .unit = FL_UNIT_US, .over = FL_OVER_SUM,                                      \
      .meaning = "Aborted attempts, and the pauses after them")                          \
    X(U64, evaluation_us, .unit = FL_UNIT_US, .over = FL_OVER_SUM,                                 \
      .meaning = "Evaluation that the round waited for")                                           \
    X(U32, n_late, .key = "late", .unit = FL_UNIT_COUNT, .over = FL_OVER_SUM,                      \
      .meaning = "Clients that missed a deadline")                                              \
    X(U32, n_dropped, .key = "dropped", .unit = FL_UNIT_COUNT, .over = FL_OVER_SUM,                \
      .meaning = "Clients that disconnected during the round")                                           \
    X(U32, n_failed, .key = "failed", .unit = FL_UNIT_COUNT, .over = FL_OVER_SUM,                  \
      .meaning = "Clients that reported an error, or whose upload was rejected")                       \
    X(U32, n_attempts, .key = "attempts", .unit = FL_UNIT_COUNT, .over = FL_OVER_SUM,              \
      .meaning = "Attempts at the round, the committed one included")                              \
    X(U64, up_update_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                            \
      .meaning = "Bytes of updates that clients sent")                                                      \
    X(U64, up_report_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                            \
      .meaning = "Bytes of reports that they sent")                                                         \
    X(U64, up_summary_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                             \
      .meaning = "Bytes of data summaries that they sent")                                                          \
    X(U64, up_control_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                           \
      .meaning = "All other bytes that they sent: hellos, heartbeats, requests")                          \
    X(U64, up_wasted_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                            \
      .meaning = "Sent by clients that were not aggregated, and in none of the four above")              \
    X(U64, down_model_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                           \
      .meaning = "Bytes of models sent to clients")                                                  \
    X(U64, down_state_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                           \
      .meaning = "Bytes of vectors of the algorithm beside the model")                                      \
    X(U64, down_personal_model_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                         \
      .meaning = "Bytes of personalized models, each for one client")                                                  \
    X(U64, down_summary_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                           \
      .meaning = "Bytes of data summaries of other clients")                                                            \
    X(U64, down_evaluation_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                      \
      .meaning = "Bytes of models sent for evaluation only")                                      \
    X(U64, down_control_bytes, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,                         \
      .meaning = "All other bytes sent to clients: commands, upload masks, answers")                     \
    X(F64, backdoor_success, .unit = FL_UNIT_SHARE, .over = FL_OVER_KNOWN,                         \
      .lead = FL_SIM_ROUND_backdoor_success,                                                       \
      .meaning = "With the attack backdoor: of the test samples of other classes, with the trigger, those that the server's model takes for class 0")\
    X(F64, full_models, .unit = FL_UNIT_COUNT, .over = FL_OVER_SUM,                                \
      .meaning = "Communication units of the papers: uplink_bytes over the bytes of a full model")
/* clang-format on */

struct fl_sim_round {
    FL_SIM_ROUND_FIGURES(FL_FIGURE_MEMBER)
    char waiting_for[FL_NAME_MAX]; /* the client that determined the end of the round; "": none */
};

/* Indices of the rows in fl_sim_round_rows. */
enum fl_sim_round_figure {
#define X(type, member, ...) FL_SIM_ROUND_##member,
    FL_SIM_ROUND_FIGURES(X)
#undef X
        FL_SIM_ROUND_N
};

/* Has the size of the figures only, without the members behind them. */
extern const struct fl_figures fl_sim_round_rows;

/* A record without known figures. */
void fl_sim_round_init(struct fl_sim_round *sim);
/* The sum of the phases of wall_us. */
uint64_t fl_sim_round_parts(const struct fl_sim_round *sim);
/* All bytes that clients sent, and that were sent to them. */
uint64_t fl_sim_round_up(const struct fl_sim_round *sim);
uint64_t fl_sim_round_down(const struct fl_sim_round *sim);

/* --- a client in an attempt at a round --- */

/* clang-format off */
#define FL_SIM_CLIENT_FIGURES(X)                                                                   \
    X(U64, round, .unit = FL_UNIT_COUNT,                                                           \
      .meaning = "Number of the round")                                                            \
    X(U32, attempt, .unit = FL_UNIT_COUNT,                                                         \
      .meaning = "Number of the attempt")                                                                \
    X(U64, samples, .unit = FL_UNIT_COUNT,                                                         \
      .meaning = "Training samples of the client")                                                 \
    X(U64, steps, .unit = FL_UNIT_COUNT,                                                           \
      .meaning = "Mini-batches that it trained on")                                                \
    X(F64, train_loss, .unit = FL_UNIT_LOSS,                                                       \
      .meaning = "Its training loss")                                                      \
    X(U64, selected_us, .unit = FL_UNIT_INSTANT,                                                   \
      .meaning = "When it was selected")                                                              \
    X(U64, fetched_us, .unit = FL_UNIT_INSTANT,                                                    \
      .meaning = "When it had the model and the vectors beside it")                                    \
    X(U64, trained_us, .unit = FL_UNIT_INSTANT,                                                    \
      .meaning = "When its training ended")                                                        \
    X(U64, reported_us, .unit = FL_UNIT_INSTANT,                                                   \
      .meaning = "When the server had its report")                                                 \
    X(U64, planned_us, .unit = FL_UNIT_INSTANT,                                                    \
      .meaning = "When it received its upload mask")                                                 \
    X(U64, pushed_us, .unit = FL_UNIT_INSTANT,                                                     \
      .meaning = "When the server had its update")                                                 \
    X(U64, bytes_up, .unit = FL_UNIT_BYTES,                                                        \
      .meaning = "Bytes that it sent")                                                                   \
    X(U64, bytes_down, .unit = FL_UNIT_BYTES,                                                      \
      .meaning = "Bytes sent to it")                                                               \
    /* The next five as in part_figures.h. */                                                      \
    X(U64, evaluation_samples, .unit = FL_UNIT_COUNT,                                              \
      .meaning = "Test samples of its evaluations in the round; 0: it made none, or the attempt was aborted") \
    X(F64, received_accuracy, .unit = FL_UNIT_SHARE, .lead = FL_SIM_CLIENT_received_accuracy,      \
      .meaning = "Accuracy on its own test data of the model that it received, or of the new one") \
    X(F64, received_loss, .unit = FL_UNIT_LOSS, .lead = FL_SIM_CLIENT_received_accuracy,           \
      .meaning = "Loss of that model")                                                             \
    X(F64, personal_accuracy, .unit = FL_UNIT_SHARE, .lead = FL_SIM_CLIENT_personal_accuracy,      \
      .meaning = "Accuracy of its own model on its own test data")                                 \
    X(F64, personal_loss, .unit = FL_UNIT_LOSS, .lead = FL_SIM_CLIENT_personal_accuracy,           \
      .meaning = "Loss of its own model")
/* clang-format on */

/* Outcome of its participation, as X(NAME, text). */
#define FL_SIM_FATE_MAP(X) \
    X(ACCEPTED, accepted)  \
    X(EMPTY, empty)        \
    X(LATE, late)          \
    X(STOPPED, stopped)    \
    X(DROPPED, dropped)    \
    X(FAILED, failed)      \
    X(REJECTED, rejected)  \
    X(ABORTED, aborted)    \
    X(EVALUATED, evaluated)

enum fl_sim_fate {
#define X(name, text) FL_SIM_FATE_##name,
    FL_SIM_FATE_MAP(X)
#undef X
};

struct fl_sim_client_round {
    FL_SIM_CLIENT_FIGURES(FL_FIGURE_MEMBER)
    enum fl_sim_fate fate;
    const char *name;    /* borrowed */
    const char *asked;   /* "0110": its upload mask; borrowed; NULL: no plan */
    const char *metrics; /* of its evaluations, as in fl_round_rec; borrowed; "": none */
    bool attacker;
};

/* Indices of the rows in fl_sim_client_rows. */
enum fl_sim_client_figure {
#define X(type, member, ...) FL_SIM_CLIENT_##member,
    FL_SIM_CLIENT_FIGURES(X)
#undef X
        FL_SIM_CLIENT_N
};

extern const struct fl_figures fl_sim_client_rows;

/* No figure is known, and all times are FL_FIGURE_NEVER. */
void fl_sim_client_init(struct fl_sim_client_round *client);
const char *fl_sim_fate_text(enum fl_sim_fate fate);

/* Print the rows as tables for docs/simulation.md on standard output. */
void fl_sim_print_reference(void);

#endif
