#ifndef FL_CORE_RETAIN_H
#define FL_CORE_RETAIN_H

/*
 * Which checkpoints stay. Pure: the caller says what there is and what time it is.
 *
 * A rule only ever names checkpoints that are there, and asked again later, of what it left,
 * it goes on to name the same ones until they are too old: nothing is kept for a moment that
 * is then gone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fl_retain_reason {
    FL_RETAIN_NEWEST = 1u << 0, /* one of the last `keep` */
    FL_RETAIN_SPAN = 1u << 1,   /* the last of its part of the last `span_ms` */
    FL_RETAIN_BEST = 1u << 2,   /* one of the `best` by accuracy */
    FL_RETAIN_EVERY = 1u << 3,  /* its round is a multiple of `every` */
    FL_RETAIN_HELD = 1u << 4    /* until it is released */
};

struct fl_checkpoint {
    uint64_t round;
    uint64_t made_ms; /* wall clock; 0: not known, counts as old */
    double accuracy;  /* negative or NaN: not known */
    bool held;
    unsigned reasons; /* enum fl_retain_reason, filled in; 0: it goes */
};

struct fl_retention {
    uint32_t keep;    /* at least 1 counts: without the newest there is no federation */
    uint32_t best;    /* 0: none */
    uint32_t every;   /* 0: none */
    uint64_t span_ms; /* 0: none */
    uint32_t parts;   /* of the span; 0: none */
};

/* Fill in `reasons` of list[n], which is in rising order of rounds. */
void fl_retain(const struct fl_retention *rule, uint64_t now_ms, struct fl_checkpoint *list,
               size_t n);

#endif
