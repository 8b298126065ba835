#ifndef FL_FIGURES_ROUND_H
#define FL_FIGURES_ROUND_H

/*
 * The figures of a committed round, in the order of JSON and columns. Wire: RoundInfo; those with
 * `totals` are in StatusReply too. SQL: tables `round` and `abandoned`.
 */

#include "libfl/figures/eval_metrics.h"
#include "libfl/figures/figures.h"
#include "libfl/figures/robust_clients.h"

/*
 * Rows as in figures.h, with one more argument: TOTALS: its totals are in StatusReply, under the
 * same name; OWN: they are not.
 */
/* clang-format off */
#define FL_ROUND_FIGURES(X)                                                                        \
    X(U64, round, round, OWN, .unit = FL_UNIT_COUNT,                                               \
      .shown = FL_SHOWN_COLUMN, .label = "round", .width = 6,                                      \
      .meaning = "Round number, from 1")                                                           \
    X(U32, attempt, attempt, OWN, .unit = FL_UNIT_COUNT, .over = FL_OVER_ROUNDS,                   \
      .meaning = "Number of the attempt that was committed")                                       \
    X(U32, n_selected, selected, OWN, .key = "selected", .unit = FL_UNIT_COUNT,                    \
      .over = FL_OVER_SUM, .shown = FL_SHOWN_COLUMN, .label = "selected", .width = 8,              \
      .meaning = "Selected clients")                                                               \
    X(U32, n_responders, responders, OWN, .key = "responders", .unit = FL_UNIT_COUNT,              \
      .over = FL_OVER_SUM, .shown = FL_SHOWN_COLUMN, .label = "responders", .width = 10,           \
      .meaning = "Clients whose report was accepted")                                              \
    X(F64, accuracy, accuracy, TOTALS, .unit = FL_UNIT_SHARE, .over = FL_OVER_KNOWN,               \
      .lead = FL_ROUND_accuracy, .shown = FL_SHOWN_COLUMN | FL_SHOWN_LOG, .label = "accuracy",     \
      .width = 9, .decimals = 4,                                                                   \
      .meaning = "Accuracy of the new global model; unknown: not evaluated")                       \
    X(F64, loss, loss, TOTALS, .unit = FL_UNIT_LOSS, .over = FL_OVER_KNOWN,                        \
      .lead = FL_ROUND_accuracy, .shown = FL_SHOWN_LOG, .label = "loss",                           \
      .meaning = "Loss of the new global model, mean over samples")                                \
    X(F64, train_loss, train_loss, OWN, .unit = FL_UNIT_LOSS,                                      \
      .shown = FL_SHOWN_COLUMN, .label = "train_loss", .width = 10, .decimals = 4,                 \
      .meaning = "Training loss of the responders, weighted by their samples")                     \
    X(U64, uplink_bytes, uplink_bytes, TOTALS, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,         \
      .shown = FL_SHOWN_COLUMN, .label = "uplink_bytes", .width = 14,                              \
      .meaning = "Accepted coded payloads, with feedback and, in round 1, data summaries")         \
    X(U64, uplink_bytes_full, uplink_bytes_full, TOTALS, .unit = FL_UNIT_BYTES,                    \
      .over = FL_OVER_SUM, .shown = FL_SHOWN_COLUMN, .label = "full_bytes", .width = 14,           \
      .meaning = "Size of full float32 uploads of the responders: 4 (d + s) each")                 \
    X(U64, feedback_bytes, feedback_bytes, TOTALS, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,     \
      .meaning = "Part of uplink_bytes for reports: 4 per unit where divergences are "             \
                 "requested, 8 for an inner product")                                              \
    /* Personal "own": only a personalized model, or the model before the first aggregation. */    \
    X(U64, downlink_bytes, downlink_bytes, TOTALS, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,     \
      .meaning = "Downloads of selected clients: 4 (d + s) for each model-shaped payload, or, of "    \
                 "what changed, what they fetched; data summaries once per client")                  \
    X(U64, wire_up_bytes, wire_up_bytes, TOTALS, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,       \
      .meaning = "All bytes from clients since the last round, with evaluations, control messages, framing, TLS; 0 in fl-sim")                \
    X(U64, wire_down_bytes, wire_down_bytes, TOTALS, .unit = FL_UNIT_BYTES, .over = FL_OVER_SUM,   \
      .meaning = "All bytes to clients, likewise")                                                 \
    X(U64, started_ms, started_ms, OWN, .unit = FL_UNIT_MS, .over = FL_OVER_FIRST,                 \
      .meaning = "When its clients were selected, or a restarted server resumed it")               \
    X(U64, ended_ms, ended_ms, OWN, .unit = FL_UNIT_MS,                                            \
      .meaning = "When it was committed")                                                          \
    X(U32, population, population, OWN, .unit = FL_UNIT_COUNT,                                     \
      .meaning = "Clients of which the fraction was taken")                                        \
    /* Of the committed attempt; of a round that a restart resumed, since the restart. */          \
    X(U64, waiting_ms, waiting_ms, OWN, .unit = FL_UNIT_SPAN, .over = FL_OVER_SUM,                 \
      .meaning = "From the commit of the round before, or the start of the server, to the "        \
                 "selection: waiting for clients, aborted attempts, pauses")                       \
    X(U64, selecting_ms, selecting_ms, OWN, .unit = FL_UNIT_SPAN, .over = FL_OVER_SUM, \
      .meaning = "Drawing its clients, until that is on disk") \
    X(U64, training_ms, training_ms, OWN, .unit = FL_UNIT_SPAN, .over = FL_OVER_SUM, \
      .meaning = "Until the reports of its clients are in; without feedback also uploads that came meanwhile") \
    X(U64, planning_ms, planning_ms, OWN, .unit = FL_UNIT_SPAN, .over = FL_OVER_SUM, \
      .meaning = "Making the upload plan, until it is on disk; 0: the upload policy needs no reports") \
    X(U64, uploading_ms, uploading_ms, OWN, .unit = FL_UNIT_SPAN, .over = FL_OVER_SUM, \
      .meaning = "Until the updates are in") \
    X(U64, aggregating_ms, aggregating_ms, OWN, .unit = FL_UNIT_SPAN, .over = FL_OVER_SUM, \
      .meaning = "Making the new model") \
    X(U64, evaluating_ms, evaluating_ms, OWN, .unit = FL_UNIT_SPAN, .over = FL_OVER_SUM, \
      .meaning = "Evaluating it, on the server and on clients; 0: it was not evaluated") \
    X(U64, previous_commit_ms, previous_commit_ms, OWN, .unit = FL_UNIT_SPAN,                      \
      .over = FL_OVER_SUM,                                                                         \
      .meaning = "Writing the commit of the round before; 0: the first since a start")             \
    /* Personalized models, and the global model instead, on the clients' own test data. */        \
    X(F64, personal_accuracy, personal->accuracy, TOTALS, .unit = FL_UNIT_SHARE,                   \
      .over = FL_OVER_KNOWN, .lead = FL_ROUND_personal_accuracy,                                   \
      .shown = FL_SHOWN_BEHIND | FL_SHOWN_LOG, .label = "personal", .decimals = 4,                 \
      .meaning = "Accuracy of the clients' personalized models on their own test data, "           \
                 "over all samples (as in the papers)")                                            \
    X(F64, personal_mean, personal->mean, TOTALS, .unit = FL_UNIT_SHARE, .over = FL_OVER_KNOWN,    \
      .lead = FL_ROUND_personal_accuracy, .shown = FL_SHOWN_BEHIND, .label = "mean",               \
      .decimals = 4, .meaning = "The same, as the mean of the clients' accuracies")                \
    X(U32, n_personal, personal->clients, TOTALS, .key = "personal_clients",                       \
      .unit = FL_UNIT_COUNT, .over = FL_OVER_KNOWN, .lead = FL_ROUND_personal_accuracy,            \
      .meaning = "Number of clients in personal_accuracy")                                         \
    X(F64, received_accuracy, received->accuracy, TOTALS, .unit = FL_UNIT_SHARE,                   \
      .over = FL_OVER_KNOWN, .lead = FL_ROUND_received_accuracy,                                   \
      .shown = FL_SHOWN_BEHIND | FL_SHOWN_LOG, .label = "received", .decimals = 4,                 \
      .meaning = "As personal_accuracy, for the global model that the clients received")           \
    X(F64, received_mean, received->mean, TOTALS, .unit = FL_UNIT_SHARE, .over = FL_OVER_KNOWN,    \
      .lead = FL_ROUND_received_accuracy,                                                          \
      .meaning = "The same, as the mean of the clients' accuracies")                               \
    /* Of the clients' own models where they have some, else of the new global one; none is weighted. */ \
    X(F64, client_accuracy_mean, client_accuracy->mean, TOTALS, .unit = FL_UNIT_SHARE,             \
      .over = FL_OVER_KNOWN, .lead = FL_ROUND_client_accuracy_mean,                                \
      .meaning = "Mean of the accuracies of the clients that evaluated in this round, each on "    \
                 "its own test data: after the aggregation, or of its personalized model")         \
    X(F64, client_accuracy_std, client_accuracy->std, TOTALS, .unit = FL_UNIT_SHARE,               \
      .over = FL_OVER_KNOWN, .lead = FL_ROUND_client_accuracy_mean,                                \
      .meaning = "Their standard deviation over these clients")                                    \
    X(F64, client_accuracy_worst_tenth, client_accuracy->worst_tenth, TOTALS,                      \
      .unit = FL_UNIT_SHARE, .over = FL_OVER_KNOWN, .lead = FL_ROUND_client_accuracy_mean,         \
      .shown = FL_SHOWN_BEHIND, .label = "worst_tenth", .decimals = 4,                             \
      .meaning = "Mean of the lowest tenth of them, rounded up to whole clients")                  \
    X(F64, client_accuracy_median, client_accuracy->median, TOTALS, .unit = FL_UNIT_SHARE,         \
      .over = FL_OVER_KNOWN, .lead = FL_ROUND_client_accuracy_mean,                                \
      .meaning = "Their median")                                                                   \
    X(F64, client_loss_mean, client_accuracy->loss_mean, TOTALS, .unit = FL_UNIT_LOSS,             \
      .over = FL_OVER_KNOWN, .lead = FL_ROUND_client_accuracy_mean,                                \
      .meaning = "Mean of the losses of these clients")                                            \
    X(F64, effective, effective_clients, TOTALS, .key = "effective_clients",                       \
      .unit = FL_UNIT_COUNT, .over = FL_OVER_KNOWN, .lead = FL_ROUND_effective,                    \
      .shown = FL_SHOWN_BEHIND | FL_SHOWN_LOG, .label = "effective", .decimals = 2,                \
      .meaning = "Effective number of clients in the attention; unknown: no attention")            \
    X(F64, self_weight, self_weight, TOTALS, .unit = FL_UNIT_WEIGHT, .over = FL_OVER_KNOWN,        \
      .lead = FL_ROUND_effective,                                                                  \
      .meaning = "Share of a client's own model in its personalized model, mean over clients")     \
    X(U32, n_capped, capped, OWN, .key = "capped", .unit = FL_UNIT_COUNT, .over = FL_OVER_SUM,     \
      .shown = FL_SHOWN_LOG, .label = "capped",                                                    \
      .meaning = "Responders weighted with fewer samples than reported: by the cap "               \
                 "(round.weight_cap), or because they announced fewer")                            \
    X(F64, norm_ratio, norm_ratio, OWN, .unit = FL_UNIT_COUNT, .over = FL_OVER_KNOWN,              \
      .lead = FL_ROUND_norm_ratio,                                                                 \
      .meaning = "Norm of the largest update relative to the median "                              \
                 "(round.norm_cap); unknown: fewer than 3 updates")                                \
    X(U32, n_left_out, left_out, OWN, .key = "left_out", .unit = FL_UNIT_COUNT,                    \
      .over = FL_OVER_SUM, .shown = FL_SHOWN_LOG, .label = "left_out",                             \
      .meaning = "Accepted updates that were left out because of their norm (round.norm_cap)")       \
    X(U32, n_clipped, clipped, OWN, .key = "clipped", .unit = FL_UNIT_COUNT, .over = FL_OVER_SUM,  \
      .shown = FL_SHOWN_LOG, .label = "clipped",                                                   \
      .meaning = "Updates that were shortened to round.norm_clip times the median norm")           \
    X(U32, n_share_capped, share_capped, OWN, .key = "share_capped", .unit = FL_UNIT_COUNT,        \
      .over = FL_OVER_SUM, .shown = FL_SHOWN_LOG, .label = "share_capped",                         \
      .meaning = "Clients with a lower share by round.share_cap: of the probability to be "          \
                 "selected, of the layers, of the weight; added up")                                \
    X(F64, influence, influence, OWN, .key = "influence", .unit = FL_UNIT_COUNT,                   \
      .over = FL_OVER_KNOWN, .lead = FL_ROUND_influence,                                           \
      .meaning = "Largest weight of an update in the attention, relative to its fair share "        \
                 "(round.share_cap); unknown: no attention")                                        \
    X(U32, n_robust_out, robust_out, OWN, .key = "robust_out", .unit = FL_UNIT_COUNT,              \
      .over = FL_OVER_SUM, .shown = FL_SHOWN_LOG, .label = "robust_out",                           \
      .meaning = "Updates of which the robust rule used less than 5 % of an equal share, or "      \
                 "would have with report")                                                         \
    X(F64, robust_used, robust_used, OWN, .unit = FL_UNIT_SHARE, .over = FL_OVER_KNOWN,            \
      .lead = FL_ROUND_robust_used,                                                                \
      .meaning = "Share of the updates that the robust rule used, mean over the updates; "         \
                 "unknown: no rule")  \
    X(U32, n_quarantined, quarantined, OWN, .key = "quarantined", .unit = FL_UNIT_COUNT,           \
      .shown = FL_SHOWN_LOG, .label = "quarantined",                                               \
      .meaning = "Clients that were quarantined at the end of the round "                          \
                 "(round.quarantine_after)")
/* clang-format on */

struct fl_round_rec {
    FL_ROUND_FIGURES(FL_FIGURE_MEMBER)
    /* Behind the figures, as texts: not in totals. "": none. */
    char robust_clients[FL_ROBUST_CLIENTS_TEXT];
    char metrics[FL_EVAL_METRICS_TEXT];
};

/* Indices of the rows in fl_round_rows. */
enum fl_round_figure {
#define X(type, member, ...) FL_ROUND_##member,
    FL_ROUND_FIGURES(X)
#undef X
        FL_ROUND_N
};

extern const struct fl_figures fl_round_rows;

/* Add the newest round to totals that began with fl_figures_init(). */
void fl_round_add(struct fl_round_rec *totals, const struct fl_round_rec *record);

#endif
