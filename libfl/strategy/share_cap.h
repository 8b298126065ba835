#ifndef FL_STRATEGY_SHARE_CAP_H
#define FL_STRATEGY_SHARE_CAP_H

/*
 * Bounds of one client's share of draws, mixing weight and layers, `cap` times its fair share
 * (docs/algorithms.md#the-share-of-one-client). A cap is 1 or more; 0: no bound.
 *
 * Pure functions: results depend on neither threads nor the order of the clients, bit for bit.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Scratch of fl_share_cap(), one for each share. */
struct fl_share {
    double ratio, share, fair, below;
};

/*
 * Lowers the shares x[n] that are above cap times their fair share, and raises the others in
 * proportion (water-filling): x[k] = min(cap f_k, s x_k) with the one s for which they sum to 1, f
 * being fair[n] scaled to sum 1. Where all shares above 0 are at their limits, the rest is given to
 * the others in proportion to f.
 *
 * Shares that are not positive and finite count as 0; their sum does not matter. fair[n] is
 * positive and finite; NULL: all equal. Returns how many shares were lowered, with capped[k] 1 for
 * each of them and 0 for the others (capped may be NULL). 0: x is unchanged, bit for bit.
 */
size_t fl_share_cap(double *x, const double *fair, size_t n, double cap, struct fl_share *scratch,
                    uint8_t *capped);

/*
 * The same for rows q[n][n] of weights, each with sum 1, of which row i makes the model of client
 * i: what client k has in the models of the others together, sum over i != k of q[i][k], is at most
 * cap (n - 1) f_k. The column of a client above it is multiplied by factor[k] < 1 outside the
 * diagonal, and each row gives what it loses to its own client, q[i][i]. factor[k] is 1 for the
 * others; returns how many are below 1.
 */
size_t fl_share_cap_columns(double *q, const double *fair, size_t n, double cap, double *factor);

/* Rounds with a plan for a client whose unused layers it can send later. */
#define FL_SHARE_WINDOW 20

/*
 * Layers of an upload plan. Each client has a credit, 0 at first. In a round in which each of its
 * clients sends `fair` layers on average this is what is left to a client: cap fair more than its
 * credit, at most as much as FL_SHARE_WINDOW such rounds give, or 1 if that is more. Its credit
 * afterwards is the result minus the layers that it was asked for.
 */
double fl_share_layers(double credit, double fair, double cap);

/* May a client with that much left be asked for one more layer? With any part of a layer left: a
   client has less than one layer above its share, and needs to wait for none at first. */
bool fl_share_affords(double left);

#endif
