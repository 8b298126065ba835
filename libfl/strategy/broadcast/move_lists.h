#ifndef FL_STRATEGY_MOVE_LISTS_H
#define FL_STRATEGY_MOVE_LISTS_H

/*
 * The lists of moves of one unit in a difference (versions.h): reading them, and adding up those of
 * many rounds. For versions.c.
 */

#include "libfl/model/layout.h"
#include "libfl/strategy/broadcast/hashed_moves.h"

/* Lists of hashed numbers in a unit: reading each takes a pass over the unit. */
#define FL__LISTS_HASHED_MAX 1024
#define FL__LISTS_MAX        65535
/* Bytes of the number of lists. */
#define FL__LISTS_HEAD 2

/*
 * Scratch for the moves of any unit: 4 bytes and a bit for each entry of the largest one, taken
 * with the first list of moves, and room for hashed numbers, taken with the first of them.
 */
struct fl__scratch {
    struct fl_moves moves;
    int32_t *numbers, *decoded; /* [n_numbers] each */
    size_t n_moves, n_numbers;
};

void fl__scratch_done(struct fl__scratch *s);
/* All moves are 0 then. */
void fl__scratch_clear(struct fl__scratch *s);
size_t fl__scratch_bytes(const struct fl__scratch *s);
/* Makes room for moves of n entries, all of which are 0 then. FL_ENOMEM. */
FL_MUST_CHECK int fl__scratch_moves(struct fl__scratch *s, size_t n);

/* The coded lists of a unit, of which some were read. */
struct fl__lists {
    const uint8_t *data;
    size_t len, at, left;
    size_t unit, n; /* its index, and its trainable entries */
    size_t hashed;  /* lists of hashed numbers that were read */
};

FL_MUST_CHECK int fl__lists_open(struct fl__lists *l, const struct fl_layout *layout, size_t unit,
                                 const uint8_t *data, size_t len, struct fl_err *err);
/* Sets the scratch's moves to the sums of all lists. FL_EFORMAT, FL_ENOMEM. */
FL_MUST_CHECK int fl__lists_add_all(struct fl__lists *l, struct fl__scratch *scratch,
                                    struct fl_err *err);

/* --- adding up --- */

/*
 * What is added up until it is written as one list. Hashed numbers of one draw are one list, moves
 * are one list as far as their steps have a common one that is worth it.
 */
struct fl__sum {
    struct fl__scratch *scratch; /* all 0 but for what was added up; on error undefined */
    struct fl_hashed_head of;    /* n 0: moves, multiples of `step`, which is 0 when all are 0 */
    bool back;                   /* moves are written with the other sign */
    struct fl_buf *out;          /* the unit begins at `head` */
    size_t head, lists, hashed;
};

/* A unit begins. FL_ENOMEM. */
FL_MUST_CHECK int fl__sum_begin(struct fl__sum *s);
/* Add the lists of the unit at the front of data[len]; `*ret_used` bytes were read. FL_EFORMAT. */
FL_MUST_CHECK int fl__sum_add(struct fl__sum *s, const struct fl_layout *layout, size_t unit,
                              const uint8_t *data, size_t len, size_t *ret_used);
/* Writes the last list. */
FL_MUST_CHECK int fl__sum_end(struct fl__sum *s);
/*
 * After fl__sum_end(): `lists` coded lists follow, data[len], of which `hashed` are of hashed
 * numbers. FL_ELIMIT: there are too many.
 */
FL_MUST_CHECK int fl__sum_follow(struct fl__sum *s, const uint8_t *data, size_t len, size_t lists,
                                 size_t hashed);

#endif
