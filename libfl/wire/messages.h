#ifndef FL_WIRE_MESSAGES_H
#define FL_WIRE_MESSAGES_H

/*
 * The messages of proto/fl/v1 as C structs, their encoding and their decoding with
 * limits and validation. The only user of the generated *.pb-c.h.
 *
 * Decoding: every field is checked (lengths, ranges, enums, UTF-8 of texts, finite
 * numbers in commands); FL_EPROTO names the message and the field. A message
 * that is longer than its FL_WIRE_MAX_* or would take far more memory than its length
 * is FL_ELIMIT. Unknown fields are ignored; unknown enum values and an unset oneof are
 * refused. A session that cannot be one, in a request, is FL_EPERM: it is unknown. What a
 * decode returns is bounded by FL_WIRE_MAX_* and freed by the matching done(), which also
 * takes a zeroed struct. On error `ret` is unchanged.
 * Encoding appends to a fl_buf; inputs are borrowed; on error `out` is unchanged. Free
 * texts (reasons, labels, agent) are cut at FL_WIRE_MAX_TEXT bytes and made UTF-8; all
 * else must satisfy what decoding checks, or the peer will refuse it. NULL is "".
 * Threading: pure functions.
 */

#include <stdbool.h>

#include "libfl/base/buf.h"
#include "libfl/model/layout.h"

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
/* Maximum data of a chunk, and room for the fields around it. */
#define FL_WIRE_CHUNK      (1u << 20)
#define FL_WIRE_CHUNK_HEAD 64

/* Borrowed text for a struct that is only encoded: decoded structs own theirs. */
static inline char *fl_wire_lend(const char *text)
{
    return (char *)(uintptr_t)text;
}

struct fl_wire_pair {
    char *key;
    char *value;
};

struct fl_wire_slot {
    char *name;
    struct fl_wire_pair *options;
    size_t n_options;
};

struct fl_wire_session {
    uint8_t id[FL_WIRE_SESSION];
};

struct fl_wire_evaluation {
    uint64_t samples, correct; /* correct <= samples */
    double loss_sum;           /* NaN and infinity pass, see fl_wire_report */
};

/* --- ClientEvent --- */

enum fl_wire_event_type {
    FL_WIRE_HELLO = 1,
    FL_WIRE_REPORT,
    FL_WIRE_HEARTBEAT_EVENT,
    FL_WIRE_FAILED,
    FL_WIRE_EVALUATION,
    FL_WIRE_OFFER
};

struct fl_wire_hello {
    uint32_t version_min, version_max;
    char *client; /* fl_name_valid() was checked */
    uint64_t samples, evaluation_samples;
    struct fl_wire_pair *labels;
    size_t n_labels;
    char *agent;
    bool held;
    uint64_t held_round;
    uint32_t held_attempt;
    bool yields; /* refused while another session of the client is open */
    bool has_digest;
    uint8_t digest[FL_DIGEST_SIZE];
};

/*
 * Measurements of a client may be NaN or infinite: the core rejects such a client with a reason. If
 * decoding failed instead, the session would end and the client would reconnect forever.
 */
struct fl_wire_report {
    uint64_t round;
    uint32_t attempt;
    uint64_t samples, steps;
    double train_loss;
    float *divergence;
    size_t n_divergence;
    bool has_received;
    struct fl_wire_evaluation received;
    bool has_trained;
    struct fl_wire_evaluation trained;
    double previous_dot;
    bool
        has_kept; /* the client state used for training is of that round; round 0: there was none */
    uint64_t kept_round;
    uint32_t kept_attempt;
};

/* A piece of a client's data summary, sent before the client can be selected. */
#define FL_WIRE_OFFER_PIECE (64u << 10)
#define FL_WIRE_OFFER_MAX   (UINT64_C(64) << 20)
struct fl_wire_offer {
    uint64_t offset;
    uint64_t total; /* the same in every piece; 0: there is no summary, the only piece is empty */
    uint8_t *data;  /* owned when decoded */
    size_t len;     /* at most FL_WIRE_OFFER_PIECE, and not past total: checked */
};

struct fl_wire_event {
    enum fl_wire_event_type type;
    union {
        struct fl_wire_hello hello;
        struct fl_wire_report report;
        uint64_t heartbeat;
        struct {
            uint64_t round;
            uint32_t attempt;
            char *reason;
            bool diverged;
        } failed;
        struct {
            uint64_t round;
            struct fl_wire_evaluation result;
            bool has_adapted;
            struct fl_wire_evaluation adapted;
        } evaluation;
        struct fl_wire_offer offer;
    } u;
};

FL_MUST_CHECK int fl_wire_event_encode(const struct fl_wire_event *event, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_event_decode(const void *data, size_t len, struct fl_wire_event *ret,
                                       struct fl_err *err);
void fl_wire_event_done(struct fl_wire_event *event);

/* --- ServerCommand --- */

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
    FL_WIRE_DISMISSED
};

/* Numbers as in fl.v1.Refused.Reason. */
enum fl_wire_reason {
    FL_WIRE_REASON_UNSPECIFIED = 0,
    FL_WIRE_REASON_VERSION = 1,
    FL_WIRE_REASON_NAME = 2,
    FL_WIRE_REASON_MODEL = 3,
    FL_WIRE_REASON_FULL = 4,
    FL_WIRE_REASON_DENIED = 5,
    FL_WIRE_REASON_DUPLICATE = 6,
    FL_WIRE_REASON_NO_DATA = 7
};

struct fl_wire_limits {
    uint32_t chunk_bytes, message_bytes, streams, idle_ms;
};

struct fl_wire_training {
    uint32_t epochs, steps, batch_size;
    double momentum, weight_decay;
};

struct fl_wire_welcome {
    uint32_t version;
    char *federation;
    struct fl_wire_session session;
    struct fl_layout *layout; /* from the model description; the digest was checked */
    uint32_t *input;
    size_t n_input;
    char **layers;
    size_t n_layers;
    uint32_t classes;
    struct fl_wire_slot solver, codec;
    struct fl_wire_slot upload, personal; /* NULL name: "full", "none" */
    bool wants_previous_dot;
    bool wants_offer;
    /*
     * Generations of the model and of client state: state of another generation is ignored; zeros:
     * not sent.
     */
    uint8_t line[FL_DIGEST_SIZE], kept_line[FL_DIGEST_SIZE];
    uint32_t heartbeat_ms;
    struct fl_wire_limits limits;
    struct fl_wire_training training;
};

struct fl_wire_payload {
    char *name;
    uint64_t bytes;
    bool has_digest;
    uint8_t digest[FL_DIGEST_SIZE];
};

/* A bit mask as one byte per unit, or NULL for all units; n is what the wire had bits for
   (a multiple of 8), bits past the model's units must be zero. */
struct fl_wire_plan {
    uint64_t round;
    uint32_t attempt;
    uint8_t *units;
    size_t n_units;
};

struct fl_wire_task {
    uint64_t round;
    uint32_t attempt;
    struct fl_wire_payload *payloads;
    size_t n_payloads;
    double learning_rate;
    uint64_t seed;
    uint64_t order_seed; /* 0: not sent */
    bool has_plan;
    struct fl_wire_plan plan;
    uint64_t deadline_ms;
    uint32_t selected, population; /* K_t and N; 0: not sent */
    uint64_t counted_round;        /* 0: none */
    uint32_t counted_attempt;
    uint64_t epoch; /* first round whose client state is in the server's sum; 0: not sent */
};

struct fl_wire_command {
    enum fl_wire_command_type type;
    union {
        struct fl_wire_welcome welcome;
        struct {
            enum fl_wire_reason reason;
            char *message;
            uint32_t retry_after_ms;
        } refused;
        struct fl_wire_task task;
        struct fl_wire_plan plan;
        struct {
            uint64_t round;
            uint32_t attempt;
            char *reason; /* Rejected only */
        } verdict;        /* Accepted, Rejected, Dismissed */
        uint64_t heartbeat;
        struct {
            char *reason;
            uint64_t reconnect_after_ms;
        } drain;
        struct {
            uint64_t round;
            struct fl_wire_payload payload;
            uint64_t deadline_ms;
            double learning_rate; /* 0: that of the last task */
        } evaluate;
    } u;
};

FL_MUST_CHECK int fl_wire_command_encode(const struct fl_wire_command *command, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_command_decode(const void *data, size_t len, struct fl_wire_command *ret,
                                         struct fl_err *err);
void fl_wire_command_done(struct fl_wire_command *command);

/* --- bulk --- */

struct fl_wire_fetch {
    struct fl_wire_session session;
    uint64_t round;
    char payload[FL_NAME_MAX];
    uint64_t offset;
};

/* `data` points into the decoded message: valid as long as that. */
struct fl_wire_chunk {
    uint64_t offset;
    const uint8_t *data;
    size_t len;
};

struct fl_wire_part {
    char payload[FL_NAME_MAX];
    uint32_t unit;
    uint32_t codec; /* any number: the strategy rejects unknown values */
    uint64_t bytes;
    bool masked; /* starts with the mask of neurons */
};

struct fl_wire_push_header {
    struct fl_wire_session session;
    uint64_t round;
    uint32_t attempt;
    struct fl_wire_part *parts;
    size_t n_parts;
    uint64_t bytes; /* equals the sum of the parts, without overflow: checked */
};

struct fl_wire_push_reply {
    bool accepted; /* else incomplete */
    uint64_t received;
};

FL_MUST_CHECK int fl_wire_fetch_encode(const struct fl_wire_fetch *fetch, struct fl_buf *out);
FL_MUST_CHECK int fl_wire_fetch_decode(const void *data, size_t len, struct fl_wire_fetch *ret,
                                       struct fl_err *err);
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
void fl_wire_push_header_done(struct fl_wire_push_header *header);
FL_MUST_CHECK int fl_wire_push_reply_encode(const struct fl_wire_push_reply *reply,
                                            struct fl_buf *out);
FL_MUST_CHECK int fl_wire_push_reply_decode(const void *data, size_t len,
                                            struct fl_wire_push_reply *ret, struct fl_err *err);

struct fl_wire_push_status {
    struct fl_wire_session session; /* request */
    uint64_t round;
    uint32_t attempt;
    uint64_t received; /* reply */
    bool accepted;
};
FL_MUST_CHECK int fl_wire_push_status_request_encode(const struct fl_wire_push_status *status,
                                                     struct fl_buf *out);
FL_MUST_CHECK int fl_wire_push_status_request_decode(const void *data, size_t len,
                                                     struct fl_wire_push_status *ret,
                                                     struct fl_err *err);
FL_MUST_CHECK int fl_wire_push_status_reply_encode(const struct fl_wire_push_status *status,
                                                   struct fl_buf *out);
FL_MUST_CHECK int fl_wire_push_status_reply_decode(const void *data, size_t len,
                                                   struct fl_wire_push_status *ret,
                                                   struct fl_err *err);

#endif
