#ifndef FL_SERVER_WORK_DIFFERENCES_H
#define FL_SERVER_WORK_DIFFERENCES_H

/*
 * Differences between the newest model and earlier ones, which clients download that hold those. A
 * difference is computed at the first request and cached while the newest model is served, so that
 * all clients that hold the same model share it. Cache and scratch take at most
 * fl_differences_budget(): what is dropped first is the least recently used difference that no
 * other continues (fl_versions_divide()), so that the others are made of a few steps each. One that
 * is being sent takes no room in the cache and stays shared.
 *
 * Threading: fl_differences_get() on one thread at a time, the rest from any.
 */

#include "libfl/strategy/broadcast/versions.h"

/* Least budget, in bytes; for larger models twice the bytes of the model. */
#define FL_DIFFERENCES_LEAST ((size_t)2000000)

struct fl_differences;

/*
 * The differences to the newest of `versions`, which is `model`; takes the reference to `versions`,
 * on error too, takes one of `model`, and borrows the layout.
 */
FL_MUST_CHECK int fl_differences_create(const struct fl_layout *layout,
                                        struct fl_versions *versions, struct fl_blob *model,
                                        struct fl_differences **ret);
struct fl_differences *fl_differences_ref(struct fl_differences *d); /* NULL is allowed. */
void fl_differences_unref(struct fl_differences *d);                 /* NULL is allowed. */
const struct fl_versions *fl_differences_versions(const struct fl_differences *d);
/* SHA-256 of the newest model; NULL without differences. */
const uint8_t *fl_differences_digest(const struct fl_differences *d);
/* The round of the oldest step. 0: there is none. */
uint64_t fl_differences_oldest(const struct fl_differences *d);
/*
 * The difference to the model `held`, a new reference. FL_ENOENT: that model is not known, or the
 * whole model is as short; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_differences_get(struct fl_differences *d, const uint8_t held[FL_DIGEST_SIZE],
                                     struct fl_blob **ret);
/* The bytes that are kept, scratch included, beside those that are being sent; and their limit. */
size_t fl_differences_kept(const struct fl_differences *d);
size_t fl_differences_budget(const struct fl_differences *d);

#endif
