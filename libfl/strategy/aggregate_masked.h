#ifndef FL_STRATEGY_AGGREGATE_MASKED_H
#define FL_STRATEGY_AGGREGATE_MASKED_H

/*
 * The block pass where masks leave entries out (FedADP): the denominator is that of
 * each entry, and an entry that nobody sent is frozen with its state, as units are.
 * An entry that all senders of the unit sent is averaged as without masks, bit for bit.
 */

#include <stdbool.h>
#include <stddef.h>

/* Of the block at hand, in a unit of which some sender left entries out. */
struct fl__presence {
    bool on;         /* false: nobody did; the rest is not used */
    double all;      /* weights of all senders, summed in client order */
    double weight[]; /* [block] likewise of those that sent the entry; 0: nobody */
};

/* For blocks of at most `block` entries; free(). NULL: out of memory. */
struct fl__presence *fl__presence_create(size_t block);
void fl__presence_clear(struct fl__presence *p, size_t n);
/* sum[i] += w * x[i] where x[i] is there. */
void fl__presence_add(struct fl__presence *p, double *sum, double w, const float *x, size_t n);
/* From sums with weights of the unit to means over those that sent the entry. */
void fl__presence_divide(const struct fl__presence *p, double *sum, size_t n);
/* now[i] = 0 where nobody sent the entry. */
void fl__presence_zero(const struct fl__presence *p, float *now, size_t n);
/* now[i] = before[i] where nobody sent the entry. */
void fl__presence_freeze(const struct fl__presence *p, float *now, const float *before, size_t n);

#endif
