#ifndef FL_SIM_MODEL_CACHE_H
#define FL_SIM_MODEL_CACHE_H

/*
 * The payloads that clients may fetch in an open round (server/work/payloads.h). Reference-counted,
 * as a training of one round may end after it.
 *
 * Threading: filled by one thread, then read by any number; references on any thread.
 */

#include <stdatomic.h>

#include "server/work/payloads.h"
#include "tools/fl_sim/engine/member.h"

struct fl_model_cache_item {
    char name[FL_NAME_MAX], client[FL_NAME_MAX]; /* client "": for all clients */
    struct fl_bytes bytes;                       /* owned */
};

struct fl_model_cache {
    atomic_uint refs;
    struct fl_model_cache_item *common, *own; /* own: sorted by `client` */
    size_t n_common, n_own, cap_common, cap_own;
};

/* From fl_payloads_open(), with one reference. FL_ENOMEM. */
FL_MUST_CHECK int fl_model_cache_open(const struct fl_federation *federation,
                                      struct fl_progress *progress, uint64_t round,
                                      const struct fl_round_size *size,
                                      struct fl_model_cache **ret);
/* Make a cache of shared items and one client's own item (NULL: none). Their bytes are shared. */
FL_MUST_CHECK int fl_model_cache_make(const struct fl_model_cache_item *common, size_t n_common,
                                      const struct fl_model_cache_item *own,
                                      struct fl_model_cache **ret);
struct fl_model_cache *fl_model_cache_ref(struct fl_model_cache *model_cache);
void fl_model_cache_unref(struct fl_model_cache *model_cache); /* NULL is allowed. */
/* The payloads that `client` may fetch; they live as long as the cache. Returns their number. */
size_t fl_model_cache_list(const struct fl_model_cache *model_cache, const char *client,
                           const struct fl_model_cache_item *list[FL_PAYLOADS_MAX]);

#endif
