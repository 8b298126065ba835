#ifndef FL_WIRE_ADMIN_H
#define FL_WIRE_ADMIN_H

/*
 * Messages of fl.v1.Admin. As messages.h, but
 * measured numbers may be NaN or infinite: a run that diverged is shown as it is.
 */

#include "libfl/figures/client_figures.h"
#include "libfl/figures/part_figures.h"
#include "libfl/figures/round_figures.h"
#include "libfl/wire/messages.h"

/* Maximum size of a message of fl.v1.Admin, unless it says another one. */
#define FL_WIRE_MAX_LINE 65536

/* clang-format off */

#define FL_WIRE_ROWS_status(X)                                                                     \
    X(TEXT, federation, federation)                                                                \
    X(TEXT, phase, phase)                                                                          \
    X(TEXT, algorithm, algorithm)                                                                  \
    X(TEXT, version, version)                                                                      \
    X(U64, round, round)                                                                           \
    X(U64, rounds_committed, rounds_committed)                                                     \
    X(U64, rounds_total, rounds_total)                                                             \
    X(U32, clients_known, clients_known)                                                           \
    X(U32, clients_connected, clients_connected)                                                   \
    X(U64, uptime_ms, uptime_ms)                                                                   \
    /* Only the rows that are sent; the others are 0. */                                           \
    X(OWN_CODE, totals_code, struct fl_round_rec totals)                                           \
    X(TEXT, why, why) /* as fl_wire_why.text */                                                    \
    X(U32, failed_attempts, failed_attempts)                                                       \
    X(U64, disk_free_bytes, disk_free_bytes)                                                       \
    X(U64, disk_bytes, disk_bytes) /* 0: not known */                                              \
    X(U64, certificate_ends_ms, certificate_ends_ms) /* 0: no TLS */

#define FL_WIRE_MAX_MISSING 4096
#define FL_WIRE_ROWS_why(X)                                                                        \
    X(TEXT, text, text)                                                                            \
    /* The list is cut; the text has the total number of missing clients. */                       \
    X(NAMES, missing, missing, .cut = true, .most = FL_WIRE_MAX_MISSING)

#define FL_WIRE_MAX_CHANGES 64
#define FL_WIRE_ROWS_round(X)                                                                      \
    X(OWN_CODE, round_code, struct fl_round_rec figures)                                           \
    X(TEXTS, changes, changes, .cut = true, .most = FL_WIRE_MAX_CHANGES) /* from this round on */  \
    X(U64, generation, generation) /* of an abandoned round only */                                            \
    X(U64, abandoned_ms, abandoned_ms)                                                             \
    X(TEXT, abandoned_by, abandoned_by) /* "": not abandoned */                                    \
    /* As the members of fl_round_rec with these names, which are not sent. */                     \
    X(TEXT, robust_clients, robust_clients)                                                        \
    X(METRICS, metrics, metrics)

#define FL_WIRE_ROWS_client(X)                                                                     \
    X(NAME, name, name)                                                                            \
    X(TEXT, agent, agent)                                                                          \
    X(TEXT, state, state)                                                                          \
    X(BOOL, connected, connected)                                                                  \
    X(RECORD, figures, struct fl_client_figures, FL_CLIENT_FIGURES)                                     \
    X(TEXT, last_error, last_error) /* "": none */                                                 \
    X(U64, last_error_ms, last_error_ms)                                                           \
    X(U64, takeovers, takeovers)                                                                   \
    X(TEXT, quarantine, quarantine) /* "": it is not quarantined */                                \
    X(U64, quarantined_ms, quarantined_ms)                                                         \
    X(PAIRS, labels, labels)                                                                       \
    X(TEXT, ineligible, ineligible) /* "": it can be selected, as far as it is not quarantined */ \
    X(TEXT, central, central) /* "": nothing is set for it */

#define FL_WIRE_ROWS_checkpoint(X)                                                                 \
    X(U64, round, round)                                                                           \
    X(U64, made_ms, made_ms)                                                                       \
    X(F64, accuracy, accuracy)                                                                     \
    X(TEXT, why, why)

/* PinCheckpointRequest; its reply is an empty message. */
#define FL_WIRE_ROWS_pin(X)                                                                       \
    X(U64, round, round)                                                                           \
    X(BOOL, unpin, unpin)

/* RollbackRequest; its reply is an empty message. */
#define FL_WIRE_ROWS_rollback(X)                                                                   \
    X(U64, round, round)                                                                           \
    X(BOOL, force, force)

/* ListRoundsRequest. */
#define FL_WIRE_ROWS_list_rounds(X)                                                                \
    X(U32, last, last) /* 0: all */                                                                \
    X(BOOL, abandoned, abandoned)

/* ListParticipationsRequest. */
#define FL_WIRE_ROWS_list_participations(X)                                                        \
    X(OPTIONAL_NAME, client, client) /* "": any */                                                 \
    X(U64, round, round)             /* 0: any */                                                  \
    X(U64, before, before)           /* id; 0: any */                                              \
    X(U32, most, most)               /* 0: all */                                                  \
    X(BOOL, selected, selected)      /* without clients that only evaluated */

#define FL_WIRE_MAX_MIXED 64
#define FL_WIRE_ROWS_participation(X)                                                              \
    X(U64, id, id)                                                                                 \
    X(NAME, client, client)                                                                        \
    X(TEXT, state, state)                                                                          \
    X(TEXT, asked, asked)   /* "0110"; "": it got no upload mask */                                \
    X(TEXT, remark, remark) /* why it was left out; "": it was not */                              \
    X(TEXT, aborted, aborted) /* why the attempt was aborted; "": it was committed */              \
    X(RECORD, figures, struct fl_part_figures, FL_PART_FIGURES)                                \
    X(METRICS, metrics, metrics) /* keys as in RoundInfo.metrics */                            \
    X(FLOATS, mixing, mixing, .most = FL_WIRE_MAX_MIXED)

struct fl_wire_export_chunk {
    uint64_t round;
    const uint8_t *data; /* points into the decoded message */
    size_t len;
};

/* ForgetClientsRequest: a name, or "" and an age; neither or both is FL_EPROTO. */
#define FL_WIRE_ROWS_forget(X)                                                                     \
    X(OPTIONAL_NAME, name, name)                                                                   \
    X(U64, unseen_for_ms, unseen_for_ms)                                                           \
    X(RULE, rule_forget)

#define FL_WIRE_ROWS_forgotten(X)                                                                  \
    X(U64, forgotten, forgotten)                                                                   \
    X(U64, in_round, in_round)

/* SummaryInfo. */
#define FL_WIRE_ROWS_summary(X)                                                                    \
    X(TEXT, client, client)                                                                        \
    X(TEXT, state, state)                                                                          \
    X(U64, bytes, bytes)                                                                           \
    X(F64, largest, largest)                                                                       \
    X(F64, bound, bound) /* 0: none */

#define FL_WIRE_MAX_REASON 300
/* ControlRequest: verbs that are events of the core. */
#define FL_WIRE_ROWS_control(X)                                                                    \
    X(REASON, reason, reason) /* "": none */

/* ClientControlRequest: such verbs about one client. */
#define FL_WIRE_ROWS_client_control(X)                                                             \
    X(NAME, client, client)                                                                        \
    X(REASON, reason, reason) /* "": none */

/* LabelClientRequest. */
#define FL_WIRE_ROWS_label_client(X)                                                               \
    X(NAME, client, client)                                                                        \
    X(PAIRS, set, set)                                                                             \
    X(TEXTS, removed, removed, .most = FL_WIRE_MAX_PAIRS)

/* ScheduleClientRequest. */
#define FL_WIRE_ROWS_schedule_client(X)                                                            \
    X(NAME, client, client)                                                                        \
    X(TEXTS, hours, hours, .most = FL_HOURS_MAX)

/* LimitClientRequest. */
#define FL_WIRE_ROWS_limit_client(X)                                                               \
    X(NAME, client, client)                                                                        \
    X(PAIRS, set, set)                                                                             \
    X(TEXTS, removed, removed, .most = FL_WIRE_MAX_PAIRS)

#define FL_WIRE_ROWS_controlled(X)                                                                 \
    X(TEXT, phase, phase)                                                                          \
    X(TEXT, text, text)                                                                            \
    X(U64, round, round)

/* Of a WhyReply with the names of many missing clients, and of a round with its changes. */
#define FL_WIRE_MAX_WHY (1u << 20)
#define FL_WIRE_ADMIN(X)                                                                            \
    X(OWNER, status, StatusReply, status_reply, FL_WIRE_MAX_LINE)                                   \
    X(OWNER, why, WhyReply, why_reply, FL_WIRE_MAX_WHY)                                               \
    X(OWNER, round, RoundInfo, round_info, FL_WIRE_MAX_WHY)                                           \
    X(OWNER, client, ClientInfo, client_info, FL_WIRE_MAX_LINE)                                     \
    X(OWNER, checkpoint, CheckpointInfo, checkpoint_info, FL_WIRE_MAX_LINE)                         \
    X(CODEC, pin, PinCheckpointRequest, pin_checkpoint_request, FL_WIRE_MAX_LINE)                   \
    X(CODEC, rollback, RollbackRequest, rollback_request, FL_WIRE_MAX_LINE)                         \
    X(CODEC, list_rounds, ListRoundsRequest, list_rounds_request, FL_WIRE_MAX_LINE)                 \
    X(CODEC, list_participations, ListParticipationsRequest, list_participations_request, FL_WIRE_MAX_SMALL) \
    X(OWNER, participation, ParticipationInfo, participation_info, FL_WIRE_MAX_SMALL)                       \
    X(CODEC, forget, ForgetClientsRequest, forget_clients_request, FL_WIRE_MAX_SMALL)                       \
    X(CODEC, forgotten, ForgetClientsReply, forget_clients_reply, FL_WIRE_MAX_SMALL)                        \
    X(OWNER, summary, SummaryInfo, summary_info, FL_WIRE_MAX_SMALL)                                         \
    X(OWNER, control, ControlRequest, control_request, FL_WIRE_MAX_SMALL)                                   \
    X(OWNER, client_control, ClientControlRequest, client_control_request, FL_WIRE_MAX_SMALL)               \
    X(OWNER, label_client, LabelClientRequest, label_client_request, FL_WIRE_MAX_LINE)              \
    X(OWNER, schedule_client, ScheduleClientRequest, schedule_client_request, FL_WIRE_MAX_SMALL)            \
    X(OWNER, limit_client, LimitClientRequest, limit_client_request, FL_WIRE_MAX_SMALL)                     \
    X(OWNER, controlled, ControlReply, control_reply, FL_WIRE_MAX_SMALL)
FL_WIRE_ADMIN(FL_WIRE_DECLARE)

/* clang-format on */

FL_MUST_CHECK int fl_wire_export_encode(const struct fl_wire_export_chunk *chunk,
                                        struct fl_buf *out);
FL_MUST_CHECK int fl_wire_export_decode(const void *data, size_t len,
                                        struct fl_wire_export_chunk *ret, struct fl_err *err);
/* ExportModelRequest: the round. */
FL_WIRE_VALUE(export_request, uint64_t, uint64_t *)
/* DropSummaryRequest: the name of a client, char[FL_NAME_MAX]; its reply is an empty message. */
FL_WIRE_VALUE(drop_summary, const char *, char *)

#endif
