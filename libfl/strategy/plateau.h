#ifndef FL_STRATEGY_PLATEAU_H
#define FL_STRATEGY_PLATEAU_H

/*
 * Does the training loss still fall (docs/algorithms.md#lattice)? It does while the mean of the
 * last FL_PLATEAU_WINDOW rounds is below (1 - FL_PLATEAU_GAIN) times the lowest such mean at some
 * point of the last FL_PLATEAU_PATIENCE rounds. After a plateau the search for the next one starts
 * again with the rounds that follow. Of losses that are not finite, and rounds without a client,
 * nothing is known: they are left out.
 *
 * Pure functions: no I/O, no globals. The same losses in the same order give the same answer, so
 * that a server that restarts takes it from the records of its rounds.
 */

#include <stdint.h>

#define FL_PLATEAU_WINDOW   10
#define FL_PLATEAU_PATIENCE 20
#define FL_PLATEAU_GAIN     0.01

/* Zero-initialized: no rounds. */
struct fl_plateau {
    double losses[FL_PLATEAU_WINDOW]; /* the last ones, by number of the round modulo the window */
    uint64_t n;                       /* rounds with a loss since the newest plateau */
    double best;                      /* the lowest mean that was a gain, of them */
    uint64_t best_at;                 /* n of that time */
    uint64_t round;  /* in which the loss had not fallen for the first time; 0: none */
    uint64_t newest; /* and for the last time */
    uint64_t count;  /* how many times */
};

/* The mean training loss of a committed round. */
void fl_plateau_add(struct fl_plateau *plateau, uint64_t round, double loss);

#endif
