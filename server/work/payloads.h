#ifndef FL_SERVER_WORK_PAYLOADS_H
#define FL_SERVER_WORK_PAYLOADS_H

/* Payloads that clients download in a round: one rule for what clients may fetch and for what a
   task lists. Uploads are in payload_sizes.h. */

#include "libfl/wire/messages.h"
#include "server/work/commit.h"

/* The model that a round started with. */
#define FL_PAYLOAD_MODEL "model"
/* The aggregated model that clients are asked to evaluate. */
#define FL_PAYLOAD_CANDIDATE "candidate"
/* The personal model of a client; only that client may fetch it. */
#define FL_PAYLOAD_PERSONAL_MODEL "personal_model"

/* Bytes of a payload, in memory or in a file. Neither: there are none. */
struct fl_bytes {
    struct fl_blob *blob;
    struct fl_file *file;
};

static inline bool fl_bytes_are(const struct fl_bytes *b)
{
    return b->blob != NULL || b->file != NULL;
}

static inline uint64_t fl_bytes_len(const struct fl_bytes *b)
{
    return b->blob != NULL ? fl_blob_len(b->blob) : b->file != NULL ? fl_file_size(b->file) : 0;
}

static inline struct fl_bytes fl_bytes_ref(const struct fl_bytes *b)
{
    return (struct fl_bytes){b->blob != NULL ? fl_blob_ref(b->blob) : NULL,
                             b->file != NULL ? fl_file_ref(b->file) : NULL};
}

static inline void fl_bytes_done(struct fl_bytes *b)
{
    fl_blob_unref(b->blob);
    fl_file_unref(b->file);
    *b = (struct fl_bytes){0};
}

enum fl_payload_kind {
    FL_PAYLOAD_IS_MODEL,         /* in the form of the broadcast */
    FL_PAYLOAD_IS_STATE,         /* a state vector beside the model, in the form for clients */
    FL_PAYLOAD_IS_SUMMARIES,     /* the collection of data summaries */
    FL_PAYLOAD_IS_PERSONAL_MODEL /* of one client only */
};

struct fl_payload_name {
    enum fl_payload_kind kind;
    const char *name;
    size_t state; /* IS_STATE: index of the state vector */
};

/* Largest number of payloads in a round. */
#define FL_PAYLOADS_MAX 16
/*
 * The payloads of a round of `strategy`, in the order in which a task lists them: the model, the
 * inputs of the solver, the personal model (last; only for clients that have one). Returns their
 * number.
 */
size_t fl_payloads_of(const struct fl_strategy *strategy,
                      struct fl_payload_name list[FL_PAYLOADS_MAX]);
/*
 * The same as a Task lists them; `personal_model`: to a client that has one. All have the bytes of
 * fl_payload_bytes(), except the collection of data summaries, whose 0 bytes are the caller's to
 * replace by what it serves. Names are borrowed from the strategy.
 */
size_t fl_payloads_list(const struct fl_strategy *strategy, const struct fl_layout *layout,
                        bool personal_model, struct fl_wire_payload list[FL_PAYLOADS_MAX]);

/* Bytes of a payload with the model's entries: the model, or the one of an evaluation, in the form
   of the broadcast; the others as float32. */
uint64_t fl_payload_bytes(const struct fl_strategy *strategy, const struct fl_layout *layout,
                          enum fl_payload_kind kind);

/* A payload that may be fetched. Borrowed for the call; share the bytes with fl_bytes_ref(). */
struct fl_payload {
    const char *name;
    const char *client; /* NULL: all clients */
    struct fl_bytes bytes;
    const uint8_t *digest;              /* [FL_DIGEST_SIZE]; NULL: none */
    struct fl_differences *differences; /* for clients that hold an earlier model; NULL: none */
};

/* A model with what clients need that hold an earlier one; borrows from `model`. */
struct fl_payload fl_payload_of_model(const char *name, const struct fl_model_state *model);

typedef void (*fl_payload_cb)(void *ctx, const struct fl_payload *payload);
/*
 * Calls `cb` with all payloads of `round`, which starts from what `progress` committed, and may
 * start a new epoch: then the server's sums of client state are reset first. FL_ENOMEM, with some
 * payloads left out.
 */
FL_MUST_CHECK int fl_payloads_open(const struct fl_federation *federation,
                                   struct fl_progress *progress, uint64_t round,
                                   const struct fl_round_size *size, fl_payload_cb cb, void *ctx);
/* Does this client have a personal model? */
bool fl_payloads_has_personal_model(const struct fl_progress *progress, const char *client);

#endif
