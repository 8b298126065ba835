/*
 * Bounds of one client's share (share_cap.h): water-filling for shares that sum to 1, a factor for
 * each column of a matrix of weights, and a token bucket for layers.
 *
 * Cost: O(n log n); O(n^2) for a matrix; O(1) for layers.
 */
#include "libfl/strategy/share_cap.h"

#include <math.h>
#include <stdlib.h>

/* Rounding alone puts no share above its limit. */
#define SLACK 1e-9

static int order_of(double a, double b)
{
    return (a > b) - (a < b);
}

/* By rising ratio. Entries that compare equal are equal: the order of the clients does not matter.
 */
static int share_compare(const void *a, const void *b)
{
    const struct fl_share *x = a;
    const struct fl_share *y = b;
    int order = order_of(x->ratio, y->ratio);

    order = order != 0 ? order : order_of(x->share, y->share);
    return order != 0 ? order : order_of(x->fair, y->fair);
}

static double share_fair(const double *fair, size_t k)
{
    return fair != NULL ? fair[k] : 1;
}

static double share_usable(double x)
{
    return x > 0 && isfinite(x) ? x : 0;
}

struct sums {
    double largest; /* shares are divided by it before they are added: the sum is finite */
    double shares, fairs;
};

static struct fl_share share_of(const struct sums *sums, double x, double fair)
{
    struct fl_share s = {.share = share_usable(x) / sums->largest / sums->shares,
                         .fair = fair / sums->fairs};

    s.ratio = s.share / s.fair;
    return s;
}

/* Shares and fair shares with sum 1, by rising ratio. False: all shares are 0. */
static bool share_list(const double *x, const double *fair, size_t n, struct fl_share *list,
                       struct sums *ret)
{
    struct sums sums = {0, 1, 1};
    double shares = 0;
    double fairs = 0;
    double below = 0;
    size_t k;

    for (k = 0; k < n; k++) {
        sums.largest = fmax(sums.largest, share_usable(x[k]));
    }
    if (!(sums.largest > 0)) {
        return false;
    }
    for (k = 0; k < n; k++) {
        list[k] = share_of(&sums, x[k], share_fair(fair, k));
    }
    qsort(list, n, sizeof(*list), share_compare);
    for (k = 0; k < n; k++) { /* Smallest first, whatever the order of the clients. */
        shares += list[k].share;
        fairs += list[k].fair;
    }
    sums.shares = shares;
    sums.fairs = fairs;
    for (k = 0; k < n; k++) {
        list[k].share /= shares;
        list[k].fair /= fairs;
        list[k].ratio = list[k].share / list[k].fair;
        below += list[k].share;
        list[k].below = below;
    }
    *ret = sums;
    return true;
}

/* What shares become: those with a ratio above `above` are cap f_k, those of 0 filler f_k, and the
   others scale times as much. */
struct fill {
    double above, scale, filler;
};

/* Entries from the end of the list are put at their limits until those before them fit. */
static struct fill share_fill(const struct fl_share *list, size_t n, double cap)
{
    double full = 0; /* fair shares of those at their limits */
    double zeros = 0;
    size_t m;
    size_t k;

    for (m = n; m > 0 && list[m - 1].below > 0; m--) {
        double scale = m < n ? (1 - cap * full) / list[m - 1].below : 1;

        if (scale * list[m - 1].ratio <= cap * (1 + SLACK)) {
            return (struct fill){list[m - 1].ratio, scale, 0};
        }
        full += list[m - 1].fair;
    }
    for (k = 0; k < m; k++) {
        zeros += list[k].fair;
    }
    return (struct fill){0, 0, m > 0 ? fmax(1 - cap * full, 0) / zeros : 0};
}

size_t fl_share_cap(double *x, const double *fair, size_t n, double cap, struct fl_share *scratch,
                    uint8_t *capped)
{
    struct sums sums;
    struct fill fill;
    size_t lowered = 0;
    size_t k;

    for (k = 0; capped != NULL && k < n; k++) {
        capped[k] = 0;
    }
    if (!(cap > 0) || n < 2 || !share_list(x, fair, n, scratch, &sums) ||
        scratch[n - 1].ratio <= cap * (1 + SLACK))
    {
        return 0;
    }
    fill = share_fill(scratch, n, cap);
    for (k = 0; k < n; k++) {
        struct fl_share s = share_of(&sums, x[k], share_fair(fair, k));
        bool over = s.ratio > cap * (1 + SLACK);

        /* Of those at their limit some were raised to it. */
        x[k] = s.ratio > fill.above ? cap * s.fair
               : s.share > 0        ? fill.scale * s.share
                                    : fill.filler * s.fair;
        lowered += over;
        if (capped != NULL) {
            capped[k] = over;
        }
    }
    return lowered;
}

/* What client k has in the models of the others. */
static double share_influence(const double *q, size_t n, size_t k)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += i != k ? q[i * n + k] : 0;
    }
    return sum;
}

size_t fl_share_cap_columns(double *q, const double *fair, size_t n, double cap, double *factor)
{
    double fairs = 0;
    size_t lowered = 0;
    size_t i;
    size_t k;

    for (k = 0; k < n; k++) {
        fairs += share_fair(fair, k);
    }
    for (k = 0; k < n; k++) {
        double limit = cap * (double)(n - 1) * share_fair(fair, k) / fairs;
        double found = share_influence(q, n, k);
        bool over = cap > 0 && found > limit * (1 + SLACK);

        factor[k] = over ? limit / found : 1;
        lowered += over;
        for (i = 0; over && i < n; i++) {
            double lost = i != k ? q[i * n + k] * (1 - factor[k]) : 0;

            q[i * n + k] -= lost;
            q[i * n + i] += lost;
        }
    }
    return lowered;
}

double fl_share_layers(double credit, double fair, double cap)
{
    double most = fmax(FL_SHARE_WINDOW * cap * fair, 1);

    return fmin(credit + cap * fair, most);
}

bool fl_share_affords(double left)
{
    return left > SLACK;
}
