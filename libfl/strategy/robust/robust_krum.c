/*
 * Robust rules that choose updates by the distances between them
 * (docs/algorithms.md#robust-aggregation):
 *
 *     krum         the update with the smallest sum of squared distances to its n - f - 1 nearest
 *                  others (Blanchard et al. 2017, with n - f - 2 there; n - f - 1 as in ByzFL)
 *     multi_krum   the mean of the n - f with the smallest sums
 *     mda          the mean of the n - f whose largest distance is smallest (El Mhamdi et al.
 * 2018); of several such sets the first one in client order
 *
 * Weights by samples have no effect. Cost: O(n^2 log n) after the distances; mda takes up to 2^f
 * steps for each of log n^2 distances.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/robust/robust_impl.h"

/* Of the search for a set of smallest diameter. */
#define MDA_MAX_F 16

struct options {
    struct fl_robust_common common;
};

static const struct fl_opt_spec options[] = {
    FL__ROBUST_OPTIONS(struct options),
    FL_OPT_END_OF(struct options),
};

/* --- Krum --- */

/* Updates in rising order of their sum of squared distances; owned. NULL: out of memory. */
static struct fl__robust_ranked *krum_ranking(const struct fl_options *o,
                                              const struct fl_robust_updates *in)
{
    size_t n = in->n;
    size_t near = n - fl__robust_bound_f(o, n) - 1;
    struct fl__robust_ranked *sums = calloc(2 * n, sizeof(*sums));
    struct fl__robust_ranked *others;
    size_t i;
    size_t j;

    if (sums == NULL) {
        return NULL;
    }
    others = sums + n;
    for (i = 0; i < n; i++) {
        sums[i] = (struct fl__robust_ranked){0, i};
        for (j = 0; j < n; j++) {
            others[j] =
                (struct fl__robust_ranked){j == i ? -1 : fl__robust_distance_sq(in, i, j), j};
        }
        fl__robust_rank(others, n);
        for (j = 1; j <= near; j++) {
            sums[i].value += others[j].value;
        }
    }
    fl__robust_rank(sums, n);
    return sums;
}

/* The mean of the first k of a ranking; scores are roots of the sums. */
static int krum_choose(const struct fl_options *o, const struct fl_robust_updates *in, size_t k,
                       double *w, double *score)
{
    struct fl__robust_ranked *ranking = krum_ranking(o, in);
    size_t i;

    if (ranking == NULL) {
        return FL_ENOMEM;
    }
    (void)memset(w, 0, (in->n + 1) * sizeof(*w));
    for (i = 0; i < k; i++) {
        w[ranking[i].at] = 1 / (double)k;
    }
    for (i = 0; i < in->n; i++) {
        score[ranking[i].at] = sqrt(ranking[i].value);
    }
    free(ranking);
    return FL_OK;
}

static int krum_weigh(const struct fl_options *o, const struct fl_robust_updates *in, double *w,
                      double *score)
{
    return krum_choose(o, in, 1, w, score);
}

static int multi_krum_weigh(const struct fl_options *o, const struct fl_robust_updates *in,
                            double *w, double *score)
{
    return krum_choose(o, in, in->n - fl__robust_bound_f(o, in->n), w, score);
}

static size_t krum_needs(const struct fl_options *o)
{
    return 2 * fl__robust_f(o) + 3;
}

/* --- minimum diameter averaging --- */

struct mda {
    const struct fl_robust_updates *in;
    double limit;   /* squared distance of two members, at most */
    uint8_t *state; /* [n] */
};
enum { MDA_OPEN, MDA_MEMBER, MDA_OUT };

/*
 * Can all pairs above the limit be resolved by leaving out at most `budget` of those that are
 * open? One of each such pair has to go. Pairs of members cannot be resolved.
 */
static bool mda_feasible(struct mda *s, size_t budget)
{
    size_t n = s->in->n;
    size_t i;
    size_t j;
    size_t pair[2];
    size_t side;

    for (i = 0; i < n; i++) {
        for (j = 0; s->state[i] != MDA_OUT && j < i; j++) {
            if (s->state[j] != MDA_OUT && fl__robust_distance_sq(s->in, i, j) > s->limit) {
                goto found;
            }
        }
    }
    return true;
found:
    pair[0] = i;
    pair[1] = j;
    for (side = 0; budget > 0 && side < 2; side++) {
        bool feasible;

        if (s->state[pair[side]] != MDA_OPEN) {
            continue;
        }
        s->state[pair[side]] = MDA_OUT;
        feasible = mda_feasible(s, budget - 1);
        s->state[pair[side]] = MDA_OPEN;
        if (feasible) {
            return true;
        }
    }
    return false;
}

/* The smallest of the distances that admits n - f members, by bisection. */
static void mda_limit(struct mda *s, size_t f, struct fl__robust_ranked *all, size_t n_all)
{
    size_t low = 0; /* the answer is in low … high */
    size_t high = n_all > 0 ? n_all - 1 : 0;

    fl__robust_rank(all, n_all);
    while (low < high) {
        size_t middle = (low + high) / 2;

        s->limit = all[middle].value;
        if (mda_feasible(s, f)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    s->limit = n_all > 0 ? all[low].value : 0;
}

/* Of the sets within the limit the first one in client order: a client joins whenever it can. */
static void mda_members(struct mda *s, size_t f)
{
    size_t n = s->in->n;
    size_t members = 0;
    size_t out = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        s->state[i] = MDA_MEMBER;
        if (members == n - f || !mda_feasible(s, f - out)) {
            s->state[i] = MDA_OUT;
            out++;
        } else {
            members++;
        }
    }
}

static int mda_weigh(const struct fl_options *o, const struct fl_robust_updates *in, double *w,
                     double *score)
{
    size_t n = in->n;
    size_t f = fl__robust_bound_f(o, n);
    struct mda s = {.in = in, .state = calloc(n, 1)};
    struct fl__robust_ranked *all = calloc(n * n, sizeof(*all));
    size_t n_all = 0;
    size_t i;
    size_t j;

    if (s.state == NULL || all == NULL) {
        free(s.state);
        free(all);
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        for (j = 0; j < i; j++) {
            all[n_all++].value = fl__robust_distance_sq(in, i, j);
        }
    }
    mda_limit(&s, f, all, n_all);
    mda_members(&s, f);
    for (i = 0; i < n; i++) {
        w[i] = s.state[i] == MDA_MEMBER ? 1 / (double)(n - f) : 0;
    }
    w[n] = 0;
    fl__robust_score_distances(in, w, score);
    free(s.state);
    free(all);
    return FL_OK;
}

static int mda_check(const struct fl_options *o, struct fl_err *err)
{
    return fl__robust_f(o) <= MDA_MAX_F
               ? FL_OK
               : fl_err_set(err, FL_ECONF,
                            "f is %zu, expected at most %d: the search takes up to 2^f steps; "
                            "choose 'multi_krum'",
                            fl__robust_f(o), MDA_MAX_F);
}

const struct fl_robust_ops fl_robust_krum = {
    .policy = {.name = "krum",
               .help = "the update nearest to its n - f - 1 nearest others",
               .source = "Blanchard et al. 2017",
               .options = options},
    .needs = krum_needs,
    .wants = FL_ROBUST_PRODUCTS,
    .weigh = krum_weigh,
};

const struct fl_robust_ops fl_robust_multi_krum = {
    .policy = {.name = "multi_krum",
               .help = "mean of the n - f updates that krum ranks first",
               .source = "Blanchard et al. 2017",
               .options = options},
    .needs = krum_needs,
    .wants = FL_ROBUST_PRODUCTS,
    .weigh = multi_krum_weigh,
};

const struct fl_robust_ops fl_robust_mda = {
    .policy = {.name = "mda",
               .help = "mean of the n - f updates of the smallest diameter",
               .source = "El Mhamdi et al. 2018",
               .options = options,
               .check = mda_check},
    .needs = fl__robust_majority,
    .wants = FL_ROBUST_PRODUCTS,
    .weigh = mda_weigh,
};
