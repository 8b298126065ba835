#ifndef FL_FIGURES_PART_H
#define FL_FIGURES_PART_H

/*
 * The figures of a participation: of a client in an attempt of a round, in the order of
 * JSON and columns. Wire: ParticipationInfo; SQL: table `participation`. Other data of a
 * participation is in server/core/records.h.
 */

#include "libfl/figures/figures.h"

/* clang-format off */
#define FL_PART_FIGURES(X)                                                                         \
    X(U64, round, round, .unit = FL_UNIT_COUNT,                                                    \
      .shown = FL_SHOWN_COLUMN, .label = "round", .width = 6,                                      \
      .meaning = "Round number, from 1")                                                           \
    X(U32, attempt, attempt, .unit = FL_UNIT_COUNT,                                                \
      .shown = FL_SHOWN_COLUMN, .label = "attempt", .width = 7,                                    \
      .meaning = "Number of the attempt")                                                         \
    X(U64, samples, samples, .unit = FL_UNIT_COUNT,                                                \
      .shown = FL_SHOWN_COLUMN, .label = "samples", .width = 9,                                    \
      .meaning = "Training samples that it counted with")                                          \
    X(U64, steps, steps, .unit = FL_UNIT_COUNT,                                                    \
      .meaning = "Mini-batches of its report")                                                     \
    X(F64, train_loss, train_loss, .unit = FL_UNIT_LOSS,                                           \
      .meaning = "Training loss of its report; unknown: none arrived")                             \
    X(U64, uplink_bytes, uplink_bytes, .unit = FL_UNIT_BYTES,                                      \
      .shown = FL_SHOWN_COLUMN, .label = "uplink_bytes", .width = 12,                              \
      .meaning = "Coded payloads of its accepted update")                                          \
    X(U64, downlink_bytes, downlink_bytes, .unit = FL_UNIT_BYTES,                                  \
      .shown = FL_SHOWN_COLUMN, .label = "downlink_bytes", .width = 14,                            \
      .meaning = "Its share of downlink_bytes of the round")                                       \
    X(F64, attention, attention, .unit = FL_UNIT_WEIGHT, .lead = FL_PART_attention,                \
      .meaning = "Weight of its update in the attention of the aggregation; unknown: no attention")   \
    X(U64, evaluation_samples, evaluation_samples, .unit = FL_UNIT_COUNT,                          \
      .meaning = "Test samples of its evaluations in the round; 0: it made none")                  \
    X(F64, received_accuracy, received_accuracy, .unit = FL_UNIT_SHARE,                            \
      .lead = FL_PART_received_accuracy, .shown = FL_SHOWN_BEHIND, .label = "received",            \
      .decimals = 4,                                                                               \
      .meaning = "Accuracy on its own test data of the model that it received, or of the new one") \
    X(F64, received_loss, received_loss, .unit = FL_UNIT_LOSS, .lead = FL_PART_received_accuracy,  \
      .shown = FL_SHOWN_BEHIND, .label = "received_loss", .decimals = 4,                           \
      .meaning = "Loss of that model")                                                             \
    X(F64, personal_accuracy, personal_accuracy, .unit = FL_UNIT_SHARE,                            \
      .lead = FL_PART_personal_accuracy, .shown = FL_SHOWN_BEHIND, .label = "personal",            \
      .decimals = 4, .meaning = "Accuracy of its own model on its own test data")                  \
    X(F64, personal_loss, personal_loss, .unit = FL_UNIT_LOSS, .lead = FL_PART_personal_accuracy,  \
      .shown = FL_SHOWN_BEHIND, .label = "personal_loss", .decimals = 4,                           \
      .meaning = "Loss of its own model")
/* clang-format on */

struct fl_part_figures {
    FL_PART_FIGURES(FL_FIGURE_MEMBER)
};

/* Indices of the rows in fl_part_rows. */
enum fl_part_figure {
#define X(type, member, ...) FL_PART_##member,
    FL_PART_FIGURES(X)
#undef X
        FL_PART_N
};

extern const struct fl_figures fl_part_rows;

#endif
