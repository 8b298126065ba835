#ifndef FL_FIGURES_CLIENT_H
#define FL_FIGURES_CLIENT_H

/*
 * The figures of a known client, in the order of JSON and columns. Wire: ClientInfo; SQL: table
 * `client`. Other data of a client is in server/core/records.h.
 */

#include "libfl/figures/figures.h"

/* clang-format off */
#define FL_CLIENT_FIGURES(X)                                                                       \
    X(U64, samples, samples, .unit = FL_UNIT_COUNT,                                                \
      .shown = FL_SHOWN_COLUMN, .label = "samples", .width = 9,                                    \
      .meaning = "Training samples that the client announced")                                     \
    X(F64, score, score, .unit = FL_UNIT_WEIGHT,                                                   \
      .shown = FL_SHOWN_COLUMN, .label = "score", .width = 9, .decimals = 6,                       \
      .meaning = "Attention, or the score of the selection policy: share of the sum")              \
    X(U64, n_selected, selected, .key = "selected", .unit = FL_UNIT_COUNT,                         \
      .shown = FL_SHOWN_COLUMN, .label = "selected", .width = 8,                                   \
      .meaning = "Round attempts that the client was selected for")                                \
    X(U64, n_accepted, accepted, .key = "accepted", .unit = FL_UNIT_COUNT,                         \
      .shown = FL_SHOWN_COLUMN, .label = "accepted", .width = 8,                                   \
      .meaning = "Of those, with an accepted update")                                              \
    X(U64, n_rejected, rejected, .key = "rejected", .unit = FL_UNIT_COUNT,                         \
      .shown = FL_SHOWN_COLUMN, .label = "rejected", .width = 8,                                   \
      .meaning = "Of those, with a rejected report or update")                                     \
    X(U64, n_lost, lost, .key = "lost", .unit = FL_UNIT_COUNT,                                     \
      .shown = FL_SHOWN_COLUMN, .label = "lost", .width = 5,                                       \
      .meaning = "Of those, in which it timed out, failed or disconnected")                        \
    X(U64, n_share_capped, share_capped, .key = "share_capped", .unit = FL_UNIT_COUNT,             \
      .meaning = "Rounds that it took part in with a share lowered by round.share_cap")            \
    X(U64, uplink_bytes, uplink_bytes, .unit = FL_UNIT_BYTES,                                      \
      .meaning = "Coded payloads of its accepted updates, in committed rounds")                    \
    X(U64, downlink_bytes, downlink_bytes, .unit = FL_UNIT_BYTES,                                  \
      .meaning = "Its share of downlink_bytes of these rounds")                                    \
    X(F64, last_loss, last_loss, .unit = FL_UNIT_LOSS,                                             \
      .meaning = "Training loss of its newest report")                                             \
    X(U64, last_seen_ms, last_seen_ms, .unit = FL_UNIT_MS,                                         \
      .meaning = "Time of its last message")
/* clang-format on */

struct fl_client_figures {
    FL_CLIENT_FIGURES(FL_FIGURE_MEMBER)
};

extern const struct fl_figures fl_client_rows;

#endif
