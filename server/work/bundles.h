#ifndef FL_SERVER_WORK_BUNDLES_H
#define FL_SERVER_WORK_BUNDLES_H

/*
 * Which named byte strings go down in a round: one rule for what clients may fetch and for what a
 * task lists. What comes up is payload_sizes.h.
 */

#include "server/work/commit.h"

/* The model that a round began with. */
#define FL_BUNDLE_MODEL "model"
/* The aggregated model that clients are asked to evaluate. */
#define FL_BUNDLE_CANDIDATE "candidate"
/* The bundle that only its client may fetch: the personal model that was mixed for it. */
#define FL_BUNDLE_PERSONAL_MODEL "mixture"

/* Bytes that clients fetch: in memory or in a file. Neither: there are none. */
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

enum fl_bundle_kind {
    FL_BUNDLE_IS_MODEL,
    FL_BUNDLE_IS_STATE,         /* a vector beside the model, as clients are told of it */
    FL_BUNDLE_IS_OFFERS,        /* what all clients told of their data */
    FL_BUNDLE_IS_PERSONAL_MODEL /* of one client alone */
};

struct fl_bundle_name {
    enum fl_bundle_kind kind;
    const char *name;
    size_t state; /* IS_STATE: which vector */
};

/* Of a round, at most. */
#define FL_BUNDLES_MAX 16
/*
 * What goes down in a round of `strategy`, in the order in which a task lists it: the model, what
 * the solver takes, a mixture (last, for whom there is one). Returns how many they are.
 */
size_t fl_bundles_of(const struct fl_strategy *strategy,
                     struct fl_bundle_name list[FL_BUNDLES_MAX]);

/* One that may be fetched. Borrowed for the call; the bytes are shared with fl_bytes_ref(). */
struct fl_bundle {
    const char *name;
    const char *client; /* NULL: everybody */
    struct fl_bytes bytes;
    const uint8_t *digest; /* [FL_DIGEST_SIZE]; NULL: none */
};

typedef void (*fl_bundle_cb)(void *ctx, const struct fl_bundle *bundle);
/*
 * All that `round` offers, which begins with what `progress` committed, and for which a new epoch
 * may begin: then what a solver's part summed up before it goes. FL_ENOMEM, with some of them left
 * out.
 */
FL_MUST_CHECK int fl_bundles_open(const struct fl_federation *federation,
                                  struct fl_progress *progress, uint64_t round,
                                  const struct fl_round_size *size, fl_bundle_cb cb, void *ctx);
/* Is a mixture among them for this client? */
bool fl_bundles_has_personal_model(const struct fl_progress *progress, const char *client);

#endif
