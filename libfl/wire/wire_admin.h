#ifndef FL_WIRE_ADMIN_H
#define FL_WIRE_ADMIN_H

/*
 * Messages of fl.v1.Admin, grpc.health.v1 and grpc.reflection.v1alpha. As messages.h, but
 * measured numbers may be NaN or infinite: a run that diverged is shown as it is.
 */

#include "libfl/figures/client_figures.h"
#include "libfl/figures/round_figures.h"
#include "libfl/wire/messages.h"

struct fl_wire_status {
    char *federation, *phase, *algorithm, *version;
    uint64_t round, rounds_committed, rounds_total;
    uint32_t clients_known, clients_connected;
    uint64_t uptime_ms;
    struct fl_round_rec totals; /* only the rows that are sent; the others are 0 */
    char *why;                  /* as fl_wire_why.text */
};

struct fl_wire_why {
    char *text;
    char **missing;
    size_t n_missing;
};

struct fl_wire_round {
    struct fl_round_rec figures;
    char **changes; /* from this round on; at most FL_WIRE_MAX_CHANGES */
    size_t n_changes;
    uint64_t line, abandoned_ms; /* of an abandoned round only */
    char *abandoned_by;          /* "": not abandoned */
};

#define FL_WIRE_MAX_CHANGES 64

struct fl_wire_client {
    char *name, *agent, *state;
    bool connected;
    struct fl_client_figures figures;
    char *last_error; /* "": none */
    uint64_t last_error_ms;
    uint64_t takeovers;
    struct fl_wire_pair *labels;
    size_t n_labels; /* at most FL_WIRE_MAX_PAIRS */
};

struct fl_wire_checkpoint {
    uint64_t round, made_ms;
    double accuracy;
    char *why;
};

struct fl_wire_hold {
    uint64_t round;
    bool release;
};

struct fl_wire_rollback {
    uint64_t round;
    bool force;
};

struct fl_wire_list_rounds {
    uint32_t last; /* 0: all */
    bool abandoned;
};

struct fl_wire_export_chunk {
    uint64_t round;
    const uint8_t *data; /* points into the decoded message */
    size_t len;
};

FL_MUST_CHECK int fl_wire_status_encode(const struct fl_wire_status *status, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_status_decode(const void *data, size_t len, struct fl_wire_status *ret,
                                        struct fl_err *err);
void fl_wire_status_done(struct fl_wire_status *status);
FL_MUST_CHECK int fl_wire_why_encode(const struct fl_wire_why *why, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_why_decode(const void *data, size_t len, struct fl_wire_why *ret,
                                     struct fl_err *err);
void fl_wire_why_done(struct fl_wire_why *why);
FL_MUST_CHECK int fl_wire_round_encode(const struct fl_wire_round *round, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_round_decode(const void *data, size_t len, struct fl_wire_round *ret,
                                       struct fl_err *err);
void fl_wire_round_done(struct fl_wire_round *round);
FL_MUST_CHECK int fl_wire_client_encode(const struct fl_wire_client *client, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_client_decode(const void *data, size_t len, struct fl_wire_client *ret,
                                        struct fl_err *err);
void fl_wire_client_done(struct fl_wire_client *client);
FL_MUST_CHECK int fl_wire_export_encode(const struct fl_wire_export_chunk *chunk,
                                        struct fl_buf *out);
FL_MUST_CHECK int fl_wire_export_decode(const void *data, size_t len,
                                        struct fl_wire_export_chunk *ret, struct fl_err *err);
FL_MUST_CHECK int fl_wire_checkpoint_encode(const struct fl_wire_checkpoint *checkpoint,
                                            struct fl_buf *out);
FL_MUST_CHECK int fl_wire_checkpoint_decode(const void *data, size_t len,
                                            struct fl_wire_checkpoint *ret, struct fl_err *err);
void fl_wire_checkpoint_done(struct fl_wire_checkpoint *checkpoint);
/* HoldCheckpointRequest; its reply is an empty message. */
FL_MUST_CHECK int fl_wire_hold_encode(const struct fl_wire_hold *hold, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_hold_decode(const void *data, size_t len, struct fl_wire_hold *ret,
                                      struct fl_err *err);
/* RollbackRequest; its reply is an empty message. */
FL_MUST_CHECK int fl_wire_rollback_encode(const struct fl_wire_rollback *rollback,
                                          struct fl_buf *out);
FL_MUST_CHECK int fl_wire_rollback_decode(const void *data, size_t len,
                                          struct fl_wire_rollback *ret, struct fl_err *err);
/* ExportModelRequest. */
FL_MUST_CHECK int fl_wire_export_request_encode(uint64_t round, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_export_request_decode(const void *data, size_t len, uint64_t *ret_round,
                                                struct fl_err *err);
/* ListRoundsRequest. The other requests of Admin are empty messages. */
FL_MUST_CHECK int fl_wire_list_rounds_encode(const struct fl_wire_list_rounds *list,
                                             struct fl_buf *out);
FL_MUST_CHECK int fl_wire_list_rounds_decode(const void *data, size_t len,
                                             struct fl_wire_list_rounds *ret, struct fl_err *err);

/* ForgetClientsRequest: a name, or "" and an age. */
struct fl_wire_forget {
    char name[FL_NAME_MAX];
    uint64_t unseen_for_ms;
};

struct fl_wire_forgotten {
    uint64_t forgotten, in_round;
};

FL_MUST_CHECK int fl_wire_forget_encode(const struct fl_wire_forget *forget, struct fl_buf *out);
/* Neither a name nor an age is FL_EPROTO. */
FL_MUST_CHECK int fl_wire_forget_decode(const void *data, size_t len, struct fl_wire_forget *ret,
                                        struct fl_err *err);
FL_MUST_CHECK int fl_wire_forgotten_encode(const struct fl_wire_forgotten *reply,
                                           struct fl_buf *out);
FL_MUST_CHECK int fl_wire_forgotten_decode(const void *data, size_t len,
                                           struct fl_wire_forgotten *ret, struct fl_err *err);

/* SummaryInfo: texts are owned where it was decoded. */
struct fl_wire_summary {
    char *client, *state;
    uint64_t bytes;
    double largest, bound; /* bound 0: none */
};
FL_MUST_CHECK int fl_wire_summary_encode(const struct fl_wire_summary *summary, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_summary_decode(const void *data, size_t len, struct fl_wire_summary *ret,
                                         struct fl_err *err);
void fl_wire_summary_done(struct fl_wire_summary *summary);
/* DropSummaryRequest: the name of a client; its reply is an empty message. */
FL_MUST_CHECK int fl_wire_drop_summary_encode(const char *client, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_drop_summary_decode(const void *data, size_t len,
                                              char ret_client[FL_NAME_MAX], struct fl_err *err);

/* ControlRequest: Pause, Resume, Drain, AbortRound and ResetControls. */
struct fl_wire_control {
    char *reason; /* "": none; at most FL_WIRE_MAX_REASON bytes */
};

#define FL_WIRE_MAX_REASON 300

struct fl_wire_controlled {
    char *phase, *text;
    uint64_t round;
};

FL_MUST_CHECK int fl_wire_control_encode(const struct fl_wire_control *control, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_control_decode(const void *data, size_t len, struct fl_wire_control *ret,
                                         struct fl_err *err);
void fl_wire_control_done(struct fl_wire_control *control);
FL_MUST_CHECK int fl_wire_controlled_encode(const struct fl_wire_controlled *reply,
                                            struct fl_buf *out);
FL_MUST_CHECK int fl_wire_controlled_decode(const void *data, size_t len,
                                            struct fl_wire_controlled *ret, struct fl_err *err);
void fl_wire_controlled_done(struct fl_wire_controlled *reply);

/* grpc.health.v1: numbers as in HealthCheckResponse.ServingStatus. */
enum fl_wire_health {
    FL_WIRE_HEALTH_UNKNOWN,
    FL_WIRE_SERVING,
    FL_WIRE_NOT_SERVING,
    FL_WIRE_SERVICE_UNKNOWN
};
FL_MUST_CHECK int fl_wire_health_request_decode(const void *data, size_t len,
                                                char service[FL_NAME_MAX], struct fl_err *err);
FL_MUST_CHECK int fl_wire_health_reply_encode(int status, struct fl_buf *out);

/*
 * Answer one ServerReflectionRequest from the descriptors that were built in; every
 * valid request has an answer (possibly an ErrorResponse). `services` (NULL-terminated)
 * are the full names that this server offers.
 */
FL_MUST_CHECK int fl_wire_reflect(const void *data, size_t len, const char *const *services,
                                  struct fl_buf *out, struct fl_err *err);

#endif
