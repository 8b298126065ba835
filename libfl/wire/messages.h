#ifndef FL_WIRE_MESSAGES_H
#define FL_WIRE_MESSAGES_H

/*
 * The messages of proto/fl/v1 as C structs, their encoding and their decoding with
 * limits and validation. The only user of the generated messages of fl/v1.
 *
 * Decoding: every field is checked (lengths, ranges, enums, UTF-8 of texts, finite
 * numbers in commands); FL_EPROTO names the message and the field. A message
 * that is longer than its FL_WIRE_MAX_* or would take far more memory than its length
 * is FL_ELIMIT. Unknown fields are ignored; unknown enum values and an unset oneof are
 * refused. A session that cannot be one, in a request, is FL_EPERM: it is unknown. What a
 * decode returns is bounded by FL_WIRE_MAX_* and freed by the matching done(), which also
 * takes a zeroed struct. On error `ret` is unchanged.
 * The rows of a message (libfl/wire/wire_row.h) are the members of its struct and their limits.
 * Encoding appends to a fl_buf; inputs are borrowed; on error `out` is unchanged. Free
 * texts (reasons, labels, agent) are cut at FL_WIRE_MAX_TEXT bytes and made UTF-8; all
 * else must satisfy what decoding checks, or the peer will refuse it. NULL is "".
 * Threading: pure functions.
 */

#include <stdbool.h>

#include "libfl/base/buf.h"
#include "libfl/base/hours.h"
#include "libfl/base/match.h"
#include "libfl/figures/eval_metrics.h"
#include "libfl/model/layout.h"
#include "libfl/model/task.h"
#include "libfl/wire/wire_row.h"

#define FL_WIRE_VERSION     1
#define FL_WIRE_VERSION_MIN 1
/* Control messages: a Welcome with FL_LAYOUT_MAX_TENSORS tensors fits. */
#define FL_WIRE_MAX_CONTROL (8u << 20)
/* Events: a Hello with FL_WIRE_MAX_PAIRS longest labels, or a Report of every unit. */
#define FL_WIRE_MAX_EVENT (256u << 10)
#define FL_WIRE_MAX_TEXT  1024
#define FL_WIRE_MAX_PAIRS 64
/*
 * Labels of one client, keys and values with their terminators: the maximum that a server stores.
 */
#define FL_WIRE_LABELS_BYTES 2048
#define FL_WIRE_MAX_PAYLOADS 16
#define FL_WIRE_MAX_LAYERS   4096
/* Four payloads of every unit. */
#define FL_WIRE_MAX_PARTS 16384
/*
 * Maximum counts of samples and steps: far above real ones, and a sum over a million clients fits
 * 64 bits.
 */
/* Per task: a larger number would keep a client busy forever. */
#define FL_WIRE_MAX_EPOCHS  1000000
#define FL_WIRE_MAX_STEPS   1000000000
#define FL_WIRE_MAX_SAMPLES (UINT64_C(1) << 40)
#define FL_WIRE_SESSION     16
/* An hour: a longer interval is useless as a heartbeat. */
#define FL_WIRE_MAX_HEARTBEAT 3600000
/* Maximum data of a chunk, and room for the fields around it. */
#define FL_WIRE_CHUNK      (1u << 20)
#define FL_WIRE_CHUNK_HEAD 64

/* Borrowed text for a struct that is only encoded: decoded structs own theirs. */
static inline char *fl_wire_lend(const char *text)
{
    return (char *)(uintptr_t)text;
}

struct fl_wire_session {
    uint8_t id[FL_WIRE_SESSION];
};

/* clang-format off */

#define FL_WIRE_ROWS_component(X)                                                                       \
    X(NAME, name, name)                                                                            \
    X(OPTIONS, options, options)

#define FL_WIRE_ROWS_evaluation(X)                                                                 \
    X(U64, samples, samples, .max = FL_WIRE_MAX_SAMPLES)                                           \
    X(U64, correct, correct)                                                                       \
    X(RULE, rule_correct) /* correct <= samples */                                                 \
    X(F64, loss_sum, loss_sum) /* NaN and infinity pass, see fl_wire_report */                      \
    X(METRICS, metrics, metrics) /* NULL or "": none; judged by the core, too */

/* --- ClientEvent --- */

/* Numbers as in fl.v1.ClientEvent. */
enum fl_wire_event_type {
    FL_WIRE_HELLO = 1,
    FL_WIRE_REPORT,
    FL_WIRE_HEARTBEAT_EVENT,
    FL_WIRE_FAILED,
    FL_WIRE_EVALUATION,
    FL_WIRE_DATA_SUMMARY
};

#define FL_WIRE_ROWS_hello(X)                                                                      \
    X(U32, version_min, version_min, .min = 1)                                                     \
    X(U32, version_max, version_max)                                                               \
    X(RULE, rule_version) /* version_max >= version_min */                                         \
    X(NAME, client, client)                                                                        \
    X(RULE, rule_client) /* does not begin with '-' */                                             \
    X(U64, samples, samples, .max = FL_WIRE_MAX_SAMPLES)                                           \
    X(U64, evaluation_samples, evaluation_samples, .max = FL_WIRE_MAX_SAMPLES)                     \
    X(PAIRS, labels, labels)                                                                       \
    X(TEXT, agent, agent)                                                                          \
    X(FLAT_IF, held, held, hello_held)                                                             \
    X(BOOL, yields, yields) /* refused while another session of the client is open */              \
    X(TEXT, unavailable, unavailable) /* NULL or "": available */                                  \
    X(BOOL, takes_central, takes_central) /* it knows CentralSettings */                           \
    X(U64, central_revision, central_revision)                                                     \
    X(TEXT, central_refused, central_refused) /* NULL or "": all of them are in force */           \
    X(DIGEST, digest, model_digest)
#define FL_WIRE_ROWS_hello_held(X)                                                                 \
    X(U64, held_round, round, .min = 1)                                                            \
    X(U32, held_attempt, attempt)

/*
 * Measurements of a client may be NaN or infinite: the core rejects such a client with a reason. If
 * decoding failed instead, the session would end and the client would reconnect forever.
 */
#define FL_WIRE_ROWS_report(X)                                                                     \
    X(U64, round, round, .min = 1)                                                                 \
    X(U32, attempt, attempt)                                                                       \
    X(U64, samples, samples, .max = FL_WIRE_MAX_SAMPLES)                                           \
    X(U64, steps, steps, .max = FL_WIRE_MAX_SAMPLES)                                               \
    X(F64, train_loss, train_loss)                                                                 \
    X(FLOATS, divergence, divergence, .most = FL_LAYOUT_MAX_UNITS)                                 \
    X(OPTIONAL, received, received, evaluation)                                                    \
    X(OPTIONAL, trained, trained, evaluation)                                                      \
    X(F64, previous_dot, previous_dot)                                                             \
    X(FLAT_IF, has_kept, kept, report_kept)
/* The client state used for training is of that round; round 0: there was none. */
#define FL_WIRE_ROWS_report_kept(X)                                                                \
    X(U64, kept_round, round)                                                                      \
    X(U32, kept_attempt, attempt)

#define FL_WIRE_ROWS_failed(X)                                                                     \
    X(U64, round, round) /* 0: no round, the client leaves */                                      \
    X(U32, attempt, attempt)                                                                       \
    X(TEXT, reason, reason)                                                                        \
    X(BOOL, diverged, diverged)                                                                    \
    X(BOOL, unavailable, unavailable) /* no fault of the client */

#define FL_WIRE_ROWS_evaluated(X)                                                                  \
    X(U64, round, round)                                                                           \
    X(SUB, result, result, evaluation)                                                             \
    X(OPTIONAL, adapted, adapted, evaluation)

/* A piece of a client's data summary, sent before the client can be selected. */
#define FL_WIRE_SUMMARY_PIECE (64u << 10)
#define FL_WIRE_SUMMARY_MAX   (UINT64_C(64) << 20)
#define FL_WIRE_ROWS_data_summary(X)                                                                      \
    X(U64, offset, offset)                                                                         \
    /* The same in every piece; 0: there is no summary, the only piece is empty. */                \
    X(U64, total, total, .max = FL_WIRE_SUMMARY_MAX)                                                 \
    X(DATA, data, data)                                                                            \
    X(RULE, rule_summary) /* len <= FL_WIRE_SUMMARY_PIECE, and not past total */

#define FL_WIRE_ROWS_event(X)                                                                      \
    X(CASE, FL_WIRE_HELLO, u.hello, hello, hello)                                                  \
    X(CASE, FL_WIRE_REPORT, u.report, report, report)                                              \
    X(CASE, FL_WIRE_HEARTBEAT_EVENT, u.heartbeat, heartbeat, heartbeat)                            \
    X(CASE, FL_WIRE_FAILED, u.failed, failed, failed)                                              \
    X(CASE, FL_WIRE_EVALUATION, u.evaluation, evaluation, evaluated)                               \
    X(CASE, FL_WIRE_DATA_SUMMARY, u.summary, summary, data_summary)
/* Those of ClientEvent, which is none itself, and what is in them. */
#define FL_WIRE_EVENTS(X)                                                                          \
    X(TYPE, evaluation, Evaluation, evaluation, 0)                                                 \
    X(TYPE, hello, Hello, hello, 0)                                                                \
    X(TYPE, report, Report, report, 0)                                                             \
    X(TYPE, failed, Failed, failed, 0)                                                             \
    X(TYPE, evaluated, EvaluationReport, evaluation_report, 0)                                     \
    X(TYPE, data_summary, DataSummary, data_summary, 0)
FL_WIRE_EVENTS(FL_WIRE_DECLARE)

struct fl_wire_event {
    enum fl_wire_event_type type;
    union {
        struct fl_wire_hello hello;
        struct fl_wire_report report;
        uint64_t heartbeat;
        struct fl_wire_failed failed;
        struct fl_wire_evaluated evaluation;
        struct fl_wire_data_summary summary;
    } u;
};

FL_WIRE_OWNER(event)

/* --- ServerCommand --- */

/* Numbers as in fl.v1.ServerCommand. */
enum fl_wire_command_type {
    FL_WIRE_WELCOME = 1,
    FL_WIRE_REFUSED,
    FL_WIRE_TASK,
    FL_WIRE_PLAN,
    FL_WIRE_ACCEPTED,
    FL_WIRE_REJECTED,
    FL_WIRE_HEARTBEAT_COMMAND,
    FL_WIRE_DRAIN,
    FL_WIRE_EVALUATE,
    FL_WIRE_DISMISSED,
    FL_WIRE_CENTRAL
};

/* Numbers as in fl.v1.Refused.Reason. */
enum fl_wire_reason {
    FL_WIRE_REASON_UNSPECIFIED = 0,
    FL_WIRE_REASON_VERSION = 1,
    FL_WIRE_REASON_NAME = 2,
    FL_WIRE_REASON_MODEL = 3,
    FL_WIRE_REASON_FULL = 4,
    FL_WIRE_REASON_REVOKED = 5,
    FL_WIRE_REASON_DUPLICATE = 6,
    FL_WIRE_REASON_NO_DATA = 7
};

#define FL_WIRE_ROWS_limits(X)                                                                     \
    X(U32, chunk_bytes, chunk_bytes, .min = 1, .max = FL_WIRE_CHUNK)                               \
    X(U32, message_bytes, message_bytes)                                                           \
    X(RULE, rule_message_bytes) /* message_bytes >= chunk_bytes */                                 \
    X(U32, streams, streams, .min = 1)                                                             \
    X(U32, idle_ms, idle_ms)

#define FL_WIRE_ROWS_training(X)                                                                   \
    X(U32, epochs, epochs, .max = FL_WIRE_MAX_EPOCHS)                                              \
    X(U32, steps, steps, .max = FL_WIRE_MAX_STEPS)                                                 \
    X(U32, batch_size, batch_size, .min = 1)                                                       \
    X(FINITE, momentum, momentum)                                                                  \
    X(FINITE, weight_decay, weight_decay)                                                          \
    X(FINITE, client_momentum, client_momentum)                                                    \
    X(RULE, rule_training) /* epochs or steps */

#define FL_WIRE_ROWS_welcome(X)                                                                    \
    X(U32, version, version, .min = FL_WIRE_VERSION_MIN, .max = FL_WIRE_VERSION)                   \
    X(NAME, federation, federation)                                                                \
    X(SESSION, session, session)                                                                   \
    X(FLAT, model, welcome_model)                                                                  \
    X(SUB, solver, solver, component)                                                                   \
    X(SUB, codec, codec, component)                                                                     \
    X(COMPONENT, upload, upload) /* NULL name: "full" */                                                \
    X(COMPONENT, personal, personal) /* NULL name: "none" */                                            \
    X(COMPONENT, broadcast, broadcast) /* NULL name: "float32" */                                  \
    X(COMPONENT, space, space)         /* NULL name: "full" */                                     \
    X(U64, model_seed, model_seed)     /* of the first model; 0: none */                       \
    X(TEXTS, metrics, metrics, .most = FL_EVAL_METRICS_MAX)                                        \
    X(BOOL, wants_previous_dot, wants_previous_dot)                                                \
    X(BOOL, wants_summary, wants_summary)                                                              \
    X(U32, heartbeat_ms, heartbeat_interval_ms, .min = 1, .max = FL_WIRE_MAX_HEARTBEAT)            \
    /* Generations of the model and of client state: state of another generation is ignored. */    \
    X(GENERATION, generation, generation)                                                          \
    X(GENERATION, state_generation, state_generation)                                              \
    X(SUB, limits, limits, limits)                                                                 \
    X(SUB, training, training, training)
#define FL_WIRE_ROWS_welcome_model(X)                                                              \
    /* From the model description; the digest was checked. */                                      \
    X(OWN_CODE, fl__wire_layout_code, struct fl_layout *layout)                                    \
    X(DIMS, input, input, .most = FL_LAYOUT_MAX_DIMS)                                              \
    X(TEXTS, layers, layers, .most = FL_WIRE_MAX_LAYERS)                                           \
    X(U32, classes, classes)

#define FL_WIRE_ROWS_refused(X)                                                                    \
    X(ENUM, reason, reason, enum fl_wire_reason, .max = FL_WIRE_REASON_NO_DATA)                    \
    X(TEXT, message, message)                                                                      \
    X(U32, retry_after_ms, retry_after_ms)

#define FL_WIRE_ROWS_payload(X)                                                                    \
    X(NAME, name, name)                                                                            \
    X(U64, bytes, bytes)                                                                           \
    X(DIGEST, digest, sha256)

/* A bit mask as one byte per unit, or NULL for all units; n is what the wire had bits for
   (a multiple of 8), bits past the model's units must be zero. */
#define FL_WIRE_ROWS_plan(X)                                                                       \
    X(U64, round, round, .min = 1)                                                                 \
    X(U32, attempt, attempt)                                                                       \
    X(MASK, units, units, .max = FL_LAYOUT_MAX_UNITS / 8)

#define FL_WIRE_ROWS_task(X)                                                                       \
    X(U64, task.key.round, round, .min = 1)                                                        \
    X(U32, task.key.attempt, attempt)                                                              \
    X(FLAT_IF, task.counted.round, counted, task_counted)                                          \
    X(LIST, payloads, payloads, payload, .least = 1, .most = FL_WIRE_MAX_PAYLOADS)                 \
    X(RULE, rule_payloads) /* each name once */                                                    \
    X(RECORD, task, struct fl_task, FL_TASK_FIELDS)                                                \
    X(OPTIONAL, plan, plan, plan)                                                                  \
    X(RULE, rule_plan) /* the same round and attempt */
#define FL_WIRE_ROWS_task_counted(X)                                                               \
    X(U64, task.counted.round, round, .min = 1)                                                    \
    X(U32, task.counted.attempt, attempt)

/* Accepted, Rejected, Dismissed. */
#define FL_WIRE_ROWS_accepted(X)                                                                   \
    X(U64, round, round, .min = 1)                                                                 \
    X(U32, attempt, attempt)
#define FL_WIRE_ROWS_rejected(X)                                                                   \
    FL_WIRE_ROWS_accepted(X)                                                                       \
    X(TEXT, reason, reason) /* Rejected only */
#define FL_WIRE_ROWS_dismissed(X) FL_WIRE_ROWS_accepted(X)

#define FL_WIRE_ROWS_drain(X)                                                                      \
    X(TEXT, reason, reason)                                                                        \
    X(U64, reconnect_after_ms, reconnect_after_ms)

#define FL_WIRE_ROWS_evaluate(X)                                                                   \
    X(U64, round, round)                                                                           \
    X(SUB, payload, payload, payload)                                                              \
    X(U64, deadline_ms, deadline_ms)                                                               \
    X(FINITE, learning_rate, learning_rate) /* 0: that of the last task */

/* CentralSettings: what an operator set for a client. */
#define FL_WIRE_ROWS_central(X)                                                                    \
    X(U64, revision, revision) /* 0: nothing is set */                                             \
    X(PAIRS, labels, labels)                                                                       \
    X(TEXTS, hours, hours, .most = FL_HOURS_MAX)                                                   \
    X(PAIRS, limits, limits)

#define FL_WIRE_ROWS_command(X)                                                                    \
    X(CASE, FL_WIRE_WELCOME, u.welcome, welcome, welcome)                                          \
    X(CASE, FL_WIRE_REFUSED, u.refused, refused, refused)                                          \
    X(CASE, FL_WIRE_TASK, u.task, task, task)                                                      \
    X(CASE, FL_WIRE_PLAN, u.plan, plan, plan)                                                      \
    X(CASE, FL_WIRE_ACCEPTED, u.verdict, accepted, accepted)                                       \
    X(CASE, FL_WIRE_REJECTED, u.verdict, rejected, rejected)                                       \
    X(CASE, FL_WIRE_HEARTBEAT_COMMAND, u.heartbeat, heartbeat, heartbeat)                          \
    X(CASE, FL_WIRE_DRAIN, u.drain, drain, drain)                                                  \
    X(CASE, FL_WIRE_EVALUATE, u.evaluate, evaluate, evaluate)                                      \
    X(CASE, FL_WIRE_DISMISSED, u.verdict, dismissed, dismissed)                                    \
    X(CASE, FL_WIRE_CENTRAL, u.central, central, central)
#define FL_WIRE_COMMANDS(X)                                                                        \
    X(TYPE, component, Component, component, 0)                                                    \
    X(TYPE, limits, Limits, limits, 0)                                                             \
    X(TYPE, training, TrainingOptions, training_options, 0)                                        \
    X(TYPE, welcome, Welcome, welcome, 0)                                                          \
    X(TYPE, refused, Refused, refused, 0)                                                          \
    X(TYPE, payload, PayloadRef, payload_ref, 0)                                                   \
    X(TYPE, plan, Plan, plan, 0)                                                                   \
    X(TYPE, drain, Drain, drain, 0)                                                                \
    X(TYPE, evaluate, Evaluate, evaluate, 0)                                                       \
    X(OWNER, central, CentralSettings, central_settings, FL_WIRE_MAX_EVENT)
FL_WIRE_COMMANDS(FL_WIRE_DECLARE)

/* Fields and units: libfl/model/task.h. */
struct fl_wire_task {
    struct fl_task task;
    struct fl_wire_payload *payloads;
    size_t n_payloads;
    bool has_plan;
    struct fl_wire_plan plan;
};
struct fl_wire_verdict {
    FL_WIRE_ROWS_rejected(FL_WIRE_MEMBER)
};
struct fl_wire_command {
    enum fl_wire_command_type type;
    union {
        struct fl_wire_welcome welcome;
        struct fl_wire_refused refused;
        struct fl_wire_task task;
        struct fl_wire_plan plan;
        struct fl_wire_verdict verdict; /* Accepted, Rejected, Dismissed */
        uint64_t heartbeat;
        struct fl_wire_drain drain;
        struct fl_wire_evaluate evaluate;
        struct fl_wire_central central;
    } u;
};

FL_WIRE_OWNER(command)

/* --- bulk --- */

#define FL_WIRE_ROWS_fetch(X)                                                                      \
    X(SESSION_TOKEN, session, session)                                                             \
    X(U64, round, round)                                                                           \
    X(NAME_BUF, payload, payload)                                                                  \
    X(U64, offset, offset)                                                                         \
    X(DIGEST, held, held)

/* `data` points into the decoded message: valid as long as that. */
struct fl_wire_chunk {
    uint64_t offset;
    const uint8_t *data;
    size_t len;
};

#define FL_WIRE_ROWS_part(X)                                                                       \
    X(NAME_BUF, payload, payload)                                                                  \
    X(U32, unit, unit, .max = FL_LAYOUT_MAX_UNITS - 1)                                             \
    X(ENUM, codec, codec, uint32_t) /* any number: the strategy rejects unknown values */          \
    X(U64, bytes, bytes)                                                                           \
    X(BOOL, masked, masked) /* starts with the mask of neurons */

#define FL_WIRE_ROWS_push_header(X)                                                                \
    X(SESSION_TOKEN, session, session)                                                             \
    X(U64, round, round, .min = 1)                                                                 \
    X(U32, attempt, attempt)                                                                       \
    X(LIST, parts, parts, part, .most = FL_WIRE_MAX_PARTS)                                         \
    X(U64, bytes, bytes)                                                                           \
    X(RULE, rule_bytes) /* equals the sum of the parts, without overflow */                        \
    X(RULE, rule_parts) /* no unit of a payload twice */

#define FL_WIRE_ROWS_push_reply(X)                                                                 \
    /* Else incomplete: the values of fl.v1.PushReply.Result. */                                   \
    X(YES, accepted, result, .min = 1, .max = 2)                                                   \
    X(U64, received, received)

#define FL_WIRE_ROWS_push_status_request(X)                                                        \
    X(SESSION_TOKEN, session, session)                                                             \
    X(U64, round, round, .min = 1)                                                                 \
    X(U32, attempt, attempt)
#define FL_WIRE_ROWS_push_status_reply(X)                                                          \
    X(U64, received, received)                                                                     \
    X(BOOL, accepted, accepted)
/* Maximum size of these requests and replies: a few numbers and a name. */
#define FL_WIRE_MAX_SMALL 4096
#define FL_WIRE_BULK(X)                                                                            \
    X(CODEC, fetch, FetchRequest, fetch_request, FL_WIRE_MAX_SMALL)                                \
    X(TYPE, part, Part, part, 0)                                                                   \
    X(TYPE, push_header, PushHeader, push_header, 0)                                               \
    X(CODEC, push_reply, PushReply, push_reply, FL_WIRE_MAX_SMALL)
FL_WIRE_BULK(FL_WIRE_DECLARE)

struct fl_wire_push_status {
    FL_WIRE_ROWS_push_status_request(FL_WIRE_MEMBER)
    FL_WIRE_ROWS_push_status_reply(FL_WIRE_MEMBER)
};

/* clang-format on */

/*
 * Encodes a Chunk message up to its data, so that the data can follow from shared memory without a
 * copy. `head` has FL_WIRE_CHUNK_HEAD bytes. Returns its length.
 */
size_t fl_wire_chunk_head(uint64_t offset, size_t len, uint8_t *head);
/* The same for a PushMessage that holds a chunk. */
size_t fl_wire_push_chunk_head(uint64_t offset, size_t len, uint8_t *head);
/* Without copying the data. */
FL_MUST_CHECK int fl_wire_chunk_decode(const void *data, size_t len, struct fl_wire_chunk *ret,
                                       struct fl_err *err);
FL_MUST_CHECK int fl_wire_push_header_encode(const struct fl_wire_push_header *header,
                                             struct fl_buf *out);
/* One PushMessage: a header (owned, done() it) or a chunk (borrowed). */
FL_MUST_CHECK int fl_wire_push_decode(const void *data, size_t len, bool *ret_is_header,
                                      struct fl_wire_push_header *ret_header,
                                      struct fl_wire_chunk *ret_chunk, struct fl_err *err);
FL_WIRE_DONE(push_header)
/* The two messages of PushStatus; the members of the other one are zeros once decoded. */
FL_WIRE_CODEC_OF(push_status_request, push_status)
FL_WIRE_CODEC_OF(push_status_reply, push_status)

#endif
