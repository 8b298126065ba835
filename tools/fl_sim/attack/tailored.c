/*
 * An attacker that knows the rule of the server (Shejwalkar and Houmansadr 2021, section IV): it
 * computes what the rule makes of the honest updates and of its own, mean + gamma p, and looks for
 * the gamma with which the result moves farthest along p. Updates that the rule would leave out
 * move nothing, so it stays among those that it takes. Attackers do not know the update that the
 * server trains itself (fltrust): the mean of the honest ones stands for it. Pure functions; sums
 * run in the order of the clients, attackers last.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "tools/fl_sim/attack/attack_impl.h"

/* Columns that a rule by entries gets at once. */
#define BLOCK 4096
/* gamma is searched from 2^-FEWER to 2^MORE times that of min_max, then in halved steps: below
   2^(MORE + 1) times, so that the default norm_cap lets it pass. */
#define FEWER 3
#define MORE  4
#define STEPS 6

/* --- the rule --- */

struct rule_run {
    const struct fl_attack_view *view;
    const struct fl__attack_push *push;
    size_t n;            /* honest updates and attackers */
    const float **rows;  /* [n] */
    const float *centre; /* of the rule, as attackers know it; NULL: it has none */
    float *estimate;     /* of a centre that they do not know */
    /* [n + 1][n + 1]; [n] the weights of the mean; [n + 1] of the rule; [n] each */
    double *gram, *means, *weights, *scores, *positive, *zero;
    /* of a rule by entries: [n][BLOCK]; [fl_robust_scratch(n)]; [BLOCK]; [n] */
    float *block;
    double *scratch, *out, *used;
};

static void rule_done(struct rule_run *r)
{
    free(r->rows);
    free(r->estimate);
    free(r->gram);
    free(r->block);
    free(r->scratch);
}

/* The honest update that the server trains is not known, but is like the others. */
static int rule_estimate_centre(struct rule_run *r)
{
    size_t i;

    r->estimate = malloc((r->view->n + 1) * sizeof(*r->estimate));
    if (r->estimate == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < r->view->n; i++) {
        r->estimate[i] = (float)r->push->mean[i];
    }
    r->centre = r->estimate;
    return FL_OK;
}

static int rule_init(const struct fl_attack_view *v, const struct fl__attack_push *push,
                     struct rule_run *r)
{
    size_t n = v->n_honest + v->n_attackers;
    size_t i;

    *r = (struct rule_run){.view = v, .push = push, .n = n};
    r->rows = calloc(n, sizeof(*r->rows));
    r->gram = calloc((n + 1) * (n + 1) + 5 * (n + 1), sizeof(*r->gram));
    r->block = calloc(n * BLOCK, sizeof(*r->block));
    r->scratch = calloc(fl_robust_scratch(n) + BLOCK + 2 * n, sizeof(*r->scratch));
    if (r->rows == NULL || r->gram == NULL || r->block == NULL || r->scratch == NULL) {
        return FL_ENOMEM;
    }
    r->means = r->gram + (n + 1) * (n + 1);
    r->weights = r->means + n + 1;
    r->scores = r->weights + n + 1;
    r->positive = r->scores + n + 1;
    r->zero = r->positive + n + 1;
    r->out = r->scratch + fl_robust_scratch(n);
    r->used = r->out + BLOCK;
    for (i = 0; i < n; i++) {
        r->rows[i] = i < v->n_honest ? v->honest[i] : NULL;
        r->means[i] = 1 / (double)n;
    }
    r->centre = v->rule.centre;
    return fl_robust_trusts(v->rule.ops) ? rule_estimate_centre(r) : FL_OK;
}

/* What rules read of update i. */
static void rule_read(struct rule_run *r, size_t i)
{
    size_t n = r->view->n;
    size_t k;

    for (k = 0; k <= i; k++) {
        r->gram[i * (r->n + 1) + k] = fl_vec_dot(r->rows[i], r->rows[k], n);
        r->gram[k * (r->n + 1) + i] = r->gram[i * (r->n + 1) + k];
    }
    if (r->centre != NULL) {
        r->gram[i * (r->n + 1) + r->n] = fl_vec_dot(r->rows[i], r->centre, n);
        r->gram[r->n * (r->n + 1) + i] = r->gram[i * (r->n + 1) + r->n];
    }
    r->positive[i] = r->zero[i] = 0;
    for (k = 0; k < n; k++) {
        r->positive[i] += r->rows[i][k] > 0;
        r->zero[i] += !(r->rows[i][k] > 0) && !(r->rows[i][k] < 0);
    }
}

static void rule_read_honest(struct rule_run *r)
{
    size_t i;

    for (i = 0; i < r->view->n_honest; i++) {
        rule_read(r, i);
    }
    if (r->centre != NULL) {
        r->gram[r->n * (r->n + 1) + r->n] = fl_vec_dot(r->centre, r->centre, r->view->n);
    }
}

/* The mean. norm_clip would not change the choice of gamma, as it changes lengths only. */
static void rule_weigh_mean(struct rule_run *r)
{
    (void)memcpy(r->weights, r->means, r->n * sizeof(*r->weights));
    r->weights[r->n] = 0;
}

/* <p, x> in double. */
static double rule_along(const struct rule_run *r, const float *x)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < r->view->n; i++) {
        sum += r->push->p[i] * (double)x[i];
    }
    return sum;
}

static double rule_along_weighted(const struct rule_run *r)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < r->n; i++) {
        sum += r->weights[i] != 0 ? r->weights[i] * rule_along(r, r->rows[i]) : 0;
    }
    return r->centre != NULL ? sum + r->weights[r->n] * rule_along(r, r->centre) : sum;
}

static double rule_along_entries(struct rule_run *r, const struct fl_robust_mixtures *mixtures)
{
    double sum = 0;
    size_t from;
    size_t i;

    for (from = 0; from < r->view->n; from += BLOCK) {
        size_t n = r->view->n - from < BLOCK ? r->view->n - from : BLOCK;

        for (i = 0; i < r->n; i++) {
            (void)memcpy(r->block + i * BLOCK, r->rows[i] + from, n * sizeof(*r->block));
        }
        fl_robust_combine(r->view->rule.ops, r->view->rule.options, mixtures,
                          &(struct fl_robust_values){.rows = r->block,
                                                     .n_rows = r->n,
                                                     .stride = BLOCK,
                                                     .n = n,
                                                     .scratch = r->scratch,
                                                     .out = r->out,
                                                     .used = r->used,
                                                     .apart = r->used + r->n});
        for (i = 0; i < n; i++) {
            sum += r->push->p[from + i] * r->out[i];
        }
    }
    return sum;
}

/* <p, the result of a robust rule>. Attackers do not know the server's seed, and so not its
   buckets: theirs are others, the same for all gamma. */
static int rule_along_robust(struct rule_run *r, uint64_t seed, double *ret)
{
    const struct fl_attack_rule *rule = &r->view->rule;
    const struct fl_robust_updates in = {.n = r->n,
                                         .gram = r->gram,
                                         .weights = r->means,
                                         .positive = r->positive,
                                         .zero = r->zero,
                                         .entries = (double)r->view->n};
    struct fl_robust_mixtures mixtures = {.m = 0};
    struct fl_rng rng;
    int rv;

    fl_rng_key(&rng, seed, FL_RNG_ATTACK, 0, 1);
    rv = fl_robust_mix_updates(rule->options, &in, &rng, &mixtures);
    if (rv != FL_OK) {
        goto done;
    }
    if (rule->ops->weigh == NULL) {
        *ret = rule_along_entries(r, &mixtures);
        goto done;
    }
    rv = fl_robust_weigh(rule->ops, rule->options, &in, &mixtures, r->weights, r->scores);
    if (rv != FL_OK) {
        goto done;
    }
    *ret = rule_along_weighted(r);
done:
    fl_robust_mixtures_done(&mixtures);
    return rv;
}

/* Too few updates for the rule: the layer keeps its value, so nothing moves. */
static bool rule_lacks(const struct rule_run *r)
{
    return r->n < fl_robust_needs(r->view->rule.ops, r->view->rule.options);
}

/* How far the result moves along p from the mean of the honest updates, in multiples of |p|; after
   rule_read_honest(). */
static int rule_shift(struct rule_run *r, uint64_t seed, const float *malicious, double *ret)
{
    const struct fl_attack_rule *rule = &r->view->rule;
    double result = 0;
    double mean = 0;
    size_t i;
    int rv;

    *ret = 0;
    for (i = r->view->n_honest; i < r->n; i++) {
        r->rows[i] = malicious;
        rule_read(r, i);
    }
    if (!(r->push->p_sq > 0) || rule_lacks(r)) {
        return FL_OK;
    }
    if (fl_robust_on(rule->ops) && !fl_robust_reports(rule->ops, rule->options)) {
        rv = rule_along_robust(r, seed, &result);
        if (rv != FL_OK) {
            return rv;
        }
    } else {
        rule_weigh_mean(r);
        result = rule_along_weighted(r);
    }
    for (i = 0; i < r->view->n; i++) {
        mean += r->push->p[i] * r->push->mean[i];
    }
    *ret = (result - mean) / r->push->p_sq;
    return FL_OK;
}

/* --- the search --- */

struct search {
    struct rule_run *run;
    uint64_t seed;
    float *candidate;    /* [n] */
    double gamma, shift; /* the best ones */
};

/* Of equal shifts the first is kept. */
static int search_try(struct search *s, double gamma)
{
    double shift;
    int rv;

    fl__attack_push_along(s->run->push, gamma, s->run->view->n, s->candidate);
    rv = rule_shift(s->run, s->seed, s->candidate, &shift);
    if (rv != FL_OK) {
        return rv;
    }
    if (shift > s->shift) {
        s->gamma = gamma;
        s->shift = shift;
    }
    return FL_OK;
}

/* `start`: a first gamma; the result is never worse than with it. */
static int search_run(struct search *s, double start)
{
    double step;
    int rv;
    int k;

    for (k = -FEWER; k <= MORE; k++) {
        rv = search_try(s, ldexp(start, k));
        if (rv != FL_OK) {
            return rv;
        }
    }
    step = s->gamma / 2;
    for (k = 0; k < STEPS; k++) {
        double best = s->gamma;

        rv = search_try(s, best + step);
        if (rv != FL_OK) {
            return rv;
        }
        rv = search_try(s, best - step);
        if (rv != FL_OK) {
            return rv;
        }
        step /= 2;
    }
    return FL_OK;
}

int fl__attack_tailor(const struct fl_attack *a, const struct fl_attack_view *v, float *ret)
{
    struct fl__attack_push push = {.mean = NULL};
    struct rule_run r = {.view = NULL};
    struct search s = {.run = &r, .seed = a->seed, .candidate = ret};
    int rv = fl__attack_make_push(a, v, &push);

    if (rv != FL_OK) {
        goto done;
    }
    rv = rule_init(v, &push, &r);
    if (rv != FL_OK) {
        goto done;
    }
    rule_read_honest(&r);
    rv = search_run(&s, fl__attack_gamma_min_max(v, &push));
    if (rv != FL_OK) {
        goto done;
    }
    fl__attack_push_along(&push, s.gamma, v->n, ret);
done:
    rule_done(&r);
    fl__attack_push_done(&push);
    return rv;
}
