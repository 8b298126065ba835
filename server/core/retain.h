#ifndef FL_CORE_RETAIN_H
#define FL_CORE_RETAIN_H

/*
 * Retention: which checkpoints stay. Pure: the caller passes the checkpoints and the time.
 *
 * The rules are stable: applied later to what they left, they name the same checkpoints until these
 * are too old. A rule never keeps a checkpoint only to drop it at the next call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fl_retain_reason {
    FL_RETAIN_NEWEST = 1u << 0, /* one of the last `keep` */
    FL_RETAIN_SPAN = 1u << 1,   /* the last of its part of the last `span_ms` */
    FL_RETAIN_BEST = 1u << 2,   /* one of the `best` by accuracy */
    FL_RETAIN_EVERY = 1u << 3,  /* its round is a multiple of `every` */
    FL_RETAIN_PINNED = 1u << 4  /* pinned, until 'flctl unpin' */
};

struct fl_checkpoint {
    uint64_t round;
    uint64_t made_ms; /* wall clock; 0: not known, counts as old */
    double accuracy;  /* negative or NaN: not known */
    bool pinned;
    unsigned reasons; /* enum fl_retain_reason, output; 0: it is removed */
};

/* Parts of a span in every program. */
#define FL_RETENTION_PARTS 8

struct fl_retention {
    uint32_t keep;    /* at least 1: without the newest the federation cannot resume */
    uint32_t best;    /* 0: none */
    uint32_t every;   /* 0: none */
    uint64_t span_ms; /* 0: none */
    uint32_t parts;   /* of the span; 0: none */
};

/* Fill in `reasons` of list[n], which is in rising order of rounds. */
void fl_retain(const struct fl_retention *rule, uint64_t now_ms, struct fl_checkpoint *list,
               size_t n);

#endif
