#ifndef FL_SIM_ATTACK_IMPL_H
#define FL_SIM_ATTACK_IMPL_H

/* Shared by the files of this folder only. */

#include "tools/fl_sim/attack/attack.h"

/* The mean of the honest updates, and the direction p away from it, [n] each. */
struct fl__attack_push {
    double *mean, *p;
    double p_sq; /* |p|^2 */
};

/* FL_ENOMEM: call fl__attack_push_done() all the same. */
FL_MUST_CHECK int fl__attack_make_push(const struct fl_attack *attack,
                                       const struct fl_attack_view *view,
                                       struct fl__attack_push *ret);
void fl__attack_push_done(struct fl__attack_push *push);
/* mean + gamma p */
void fl__attack_push_along(const struct fl__attack_push *push, double gamma, size_t n, float *ret);
/* gamma of min_max. */
double fl__attack_gamma_min_max(const struct fl_attack_view *view,
                                const struct fl__attack_push *push);

/* The update of `tailored` (tailored.c). FL_ENOMEM. */
FL_MUST_CHECK int fl__attack_tailor(const struct fl_attack *attack,
                                    const struct fl_attack_view *view, float *ret);

#endif
