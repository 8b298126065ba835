#ifndef FL_STRATEGY_AGGREGATE_MASKED_H
#define FL_STRATEGY_AGGREGATE_MASKED_H

/*
 * The block pass with upload masks (FedADP): each entry has its own denominator, and an entry
 * that no client sent is frozen with its state, as units are. An entry that all senders of the
 * unit sent is averaged as without masks, bit for bit.
 */

#include <stdbool.h>
#include <stddef.h>

/* Presence of the entries of the current block, in a unit of which some sender left entries out. */
struct fl__presence {
    bool on;         /* false: no sender left entries out; the other members are not used */
    double all;      /* weights of all senders, summed in client order */
    double weight[]; /* [block] the same for the senders of the entry; 0: none */
};

/* For blocks of at most `block` entries; owned, free(). NULL: out of memory. */
struct fl__presence *fl__presence_create(size_t block);
void fl__presence_clear(struct fl__presence *p, size_t n);
/* sum[i] += w * x[i] where x[i] was sent (is not NaN). */
void fl__presence_add(struct fl__presence *p, double *sum, double w, const float *x, size_t n);
/* Turn sums with the weights of the unit into means over the senders of each entry. */
void fl__presence_divide(const struct fl__presence *p, double *sum, size_t n);
/* now[i] = 0 where no client sent the entry. */
void fl__presence_zero(const struct fl__presence *p, float *now, size_t n);
/* now[i] = before[i] where no client sent the entry. */
void fl__presence_freeze(const struct fl__presence *p, float *now, const float *before, size_t n);

#endif
