#ifndef FL_CORE_CLIENT_ORDER_H
#define FL_CORE_CLIENT_ORDER_H

/*
 * Client numbers sorted by ascending name, in blocks of a few hundred: two binary searches find a
 * name, and an insertion or removal moves the numbers of one block only, however many clients there
 * are. Iteration walks through arrays.
 *
 * The caller keeps the names, in records that are indexed by number.
 */

#include "server/core/records.h"

#define FL_ORDER_BLOCK 512
#define FL_ORDER_NONE  UINT32_MAX

struct fl_order_block {
    size_t n;
    uint32_t ids[FL_ORDER_BLOCK];
};

struct fl_order {
    struct fl_order_block **blocks; /* none is empty */
    size_t n_blocks, cap_blocks;
    struct fl_order_block *spare; /* for the next split */
    size_t n;
};

/* An iterator; {0} is before the first. */
struct fl_order_at {
    size_t block, i;
};

/* Zeroed memory is an empty order. */
void fl_order_done(struct fl_order *order);
/* Make the next insertion need no memory. FL_ENOMEM. */
FL_MUST_CHECK int fl_order_reserve(struct fl_order *order);
/* The number of a name, or FL_ORDER_NONE. */
uint32_t fl_order_find(const struct fl_order *order, const struct fl_client_rec *recs,
                       const char *name);
/* Memory was reserved; the name of `id` is not in the order. */
void fl_order_insert(struct fl_order *order, const struct fl_client_rec *recs, uint32_t id);
/* Nothing happens when the name of `id` is absent or has another number. */
void fl_order_remove(struct fl_order *order, const struct fl_client_rec *recs, uint32_t id);
/* The next number, or FL_ORDER_NONE after the last. No insertion or removal in between. */
uint32_t fl_order_next(const struct fl_order *order, struct fl_order_at *at);
/* An iterator whose next number is the first with a greater name; "": the first of all. */
struct fl_order_at fl_order_seek(const struct fl_order *order, const struct fl_client_rec *recs,
                                 const char *name);

#endif
