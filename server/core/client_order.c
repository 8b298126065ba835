/*
 * The sorted index of client names (client_order.h): blocks of client numbers, split when full and
 * freed when empty. On the thread of the coordinator. It does not own the names.
 */
#include "server/core/client_order.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/base/err.h"
#include "libfl/base/grow.h"

void fl_order_done(struct fl_order *order)
{
    size_t i;

    for (i = 0; i < order->n_blocks; i++) {
        free(order->blocks[i]);
    }
    free(order->blocks);
    free(order->spare);
    *order = (struct fl_order){.n = 0};
}

int fl_order_reserve(struct fl_order *order)
{
    int rv = fl_grow(&order->blocks, &order->cap_blocks, order->n_blocks,
                     sizeof(struct fl_order_block *));

    if (rv != FL_OK) {
        return rv;
    }
    if (order->spare == NULL) {
        order->spare = malloc(sizeof(*order->spare));
    }
    return order->spare != NULL ? FL_OK : FL_ENOMEM;
}

/* The last block whose first name is not greater than `name`; 0 when all are greater. */
static size_t order_block_of(const struct fl_order *order, const struct fl_client_rec *recs,
                             const char *name)
{
    size_t low = 0;
    size_t high = order->n_blocks;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (strcmp(recs[order->blocks[mid]->ids[0]].name, name) <= 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low > 0 ? low - 1 : 0;
}

/* Position of `name` in the block, or where it belongs. */
static size_t order_place_in(const struct fl_order_block *b, const struct fl_client_rec *recs,
                             const char *name)
{
    size_t low = 0;
    size_t high = b->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (strcmp(recs[b->ids[mid]].name, name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

struct fl_order_at fl_order_seek(const struct fl_order *order, const struct fl_client_rec *recs,
                                 const char *name)
{
    struct fl_order_at at = {0};
    const struct fl_order_block *b;

    if (order->n_blocks > 0) {
        at.block = order_block_of(order, recs, name);
        b = order->blocks[at.block];
        at.i = order_place_in(b, recs, name);
        at.i += at.i < b->n && strcmp(recs[b->ids[at.i]].name, name) == 0;
    }
    return at;
}

uint32_t fl_order_find(const struct fl_order *order, const struct fl_client_rec *recs,
                       const char *name)
{
    const struct fl_order_block *b;
    size_t at;

    if (order->n_blocks == 0) {
        return FL_ORDER_NONE;
    }
    b = order->blocks[order_block_of(order, recs, name)];
    at = order_place_in(b, recs, name);
    return at < b->n && strcmp(recs[b->ids[at]].name, name) == 0 ? b->ids[at] : FL_ORDER_NONE;
}

/* Insert the spare block after block `at`. */
static struct fl_order_block *order_add_block(struct fl_order *order, size_t at)
{
    struct fl_order_block *b = order->spare;

    FL_REQUIRE(b != NULL && order->n_blocks < order->cap_blocks);
    order->spare = NULL;
    b->n = 0;
    (void)memmove(&order->blocks[at + 1], &order->blocks[at],
                  (order->n_blocks - at) * sizeof(*order->blocks));
    order->blocks[at] = b;
    order->n_blocks++;
    return b;
}

void fl_order_insert(struct fl_order *order, const struct fl_client_rec *recs, uint32_t id)
{
    const char *name = recs[id].name;
    size_t block = order_block_of(order, recs, name);
    struct fl_order_block *b =
        order->n_blocks > 0 ? order->blocks[block] : order_add_block(order, /* at= */ 0);
    size_t at;

    if (b->n == FL_ORDER_BLOCK) {
        struct fl_order_block *upper = order_add_block(order, block + 1);
        size_t half = FL_ORDER_BLOCK / 2;

        (void)memcpy(upper->ids, b->ids + half, (b->n - half) * sizeof(*b->ids));
        upper->n = b->n - half;
        b->n = half;
        b = strcmp(recs[upper->ids[0]].name, name) <= 0 ? upper : b;
    }
    at = order_place_in(b, recs, name);
    (void)memmove(&b->ids[at + 1], &b->ids[at], (b->n - at) * sizeof(*b->ids));
    b->ids[at] = id;
    b->n++;
    order->n++;
}

void fl_order_remove(struct fl_order *order, const struct fl_client_rec *recs, uint32_t id)
{
    struct fl_order_block *b;
    size_t block;
    size_t at;

    if (order->n_blocks == 0) {
        return;
    }
    block = order_block_of(order, recs, recs[id].name);
    b = order->blocks[block];
    at = order_place_in(b, recs, recs[id].name);
    if (at == b->n || b->ids[at] != id) {
        return;
    }
    b->n--;
    order->n--;
    (void)memmove(&b->ids[at], &b->ids[at + 1], (b->n - at) * sizeof(*b->ids));
    if (b->n > 0) {
        return;
    }
    free(b);
    order->n_blocks--;
    (void)memmove(&order->blocks[block], &order->blocks[block + 1],
                  (order->n_blocks - block) * sizeof(*order->blocks));
}

uint32_t fl_order_next(const struct fl_order *order, struct fl_order_at *at)
{
    if (at->block >= order->n_blocks) {
        return FL_ORDER_NONE;
    }
    if (at->i == order->blocks[at->block]->n) {
        at->block++;
        at->i = 0;
    }
    return at->block < order->n_blocks ? order->blocks[at->block]->ids[at->i++] : FL_ORDER_NONE;
}
