#ifndef FL_FIGURES_SHARE_H
#define FL_FIGURES_SHARE_H

/*
 * Values of FL_UNIT_SHARE that are no share. An accuracy is unknown when nothing was evaluated, and
 * so are the figures that it leads (the loss). Of a model whose loss measures values, of which none
 * is right or wrong, it is FL_SHARE_NONE: it is not known either, and the figures that it leads
 * are.
 */

#include <stdbool.h>

#define FL_SHARE_UNKNOWN (-1.0)
#define FL_SHARE_NONE    (-2.0)

static inline bool fl_share_is_none(double share)
{
    return share < (FL_SHARE_UNKNOWN + FL_SHARE_NONE) / 2.0;
}

/* Are the figures known that this share leads? */
static inline bool fl_share_measured(double share)
{
    return share >= 0.0 || fl_share_is_none(share);
}

#endif
