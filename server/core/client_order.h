#ifndef FL_CORE_CLIENT_ORDER_H
#define FL_CORE_CLIENT_ORDER_H

/*
 * Client numbers by ascending name, in blocks of a few hundred: a name is found by two binary
 * searches, and one that comes or goes moves the numbers of one block, however many clients there
 * are. Going through all is going through arrays.
 *
 * The names lie with the caller, in records that are indexed by number.
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

/* A place in it; {0} is before the first. */
struct fl_order_at {
    size_t block, i;
};

/* Zeroed memory is an empty order. */
void fl_order_done(struct fl_order *order);
/* The next insertion will need no memory. FL_ENOMEM. */
FL_MUST_CHECK int fl_order_reserve(struct fl_order *order);
/* The number of a name, or FL_ORDER_NONE. */
uint32_t fl_order_find(const struct fl_order *order, const struct fl_client_rec *recs,
                       const char *name);
/* Room was reserved; the name of `id` is not in it. */
void fl_order_insert(struct fl_order *order, const struct fl_client_rec *recs, uint32_t id);
/* The name of `id` may be in it under another number, or not at all: that changes nothing. */
void fl_order_remove(struct fl_order *order, const struct fl_client_rec *recs, uint32_t id);
/* The next number, or FL_ORDER_NONE after the last. Nothing may come or go in between. */
uint32_t fl_order_next(const struct fl_order *order, struct fl_order_at *at);

#endif
