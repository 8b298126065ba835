/*
 * Attacks of clients that know the honest updates of their round (attack.h): all attackers send the
 * same update. Pure functions; sums run in the order of the clients.
 */
#include <math.h>
#include <stdlib.h>

#include "libfl/num/principal.h"
#include "libfl/num/vec.h"
#include "tools/fl_sim/attack/attack_impl.h"

/* --- mean and deviation of the honest updates --- */

static double collusion_mean(const struct fl_attack_view *v, size_t i)
{
    double sum = 0;
    size_t k;

    for (k = 0; k < v->n_honest; k++) {
        sum += (double)v->honest[k][i];
    }
    return sum / (double)v->n_honest;
}

static double collusion_deviation(const struct fl_attack_view *v, size_t i, double mean)
{
    double squares = 0;
    size_t k;

    for (k = 0; k < v->n_honest; k++) {
        double d = (double)v->honest[k][i] - mean;

        squares += d * d;
    }
    return sqrt(squares / (double)v->n_honest);
}

/* --- A Little Is Enough, and inner product manipulation --- */

/* The inverse of the normal distribution function, by bisection: its error is below 1e-12. */
static double collusion_quantile(double share)
{
    double low = -40;
    double high = 40;
    int i;

    for (i = 0; i < 64; i++) {
        double z = (low + high) / 2;

        if (erfc(-z / sqrt(2)) / 2 < share) {
            low = z;
        } else {
            high = z;
        }
    }
    return low;
}

double fl_attack_alie_z(size_t clients, size_t attackers)
{
    double honest = (double)(clients - attackers);
    size_t majority = clients / 2 + 1;
    double supporters = majority > attackers ? (double)(majority - attackers) : 1;
    double share = (honest - supporters) / honest;

    return share > 0.5 ? collusion_quantile(share) : 0;
}

/* mean + z * deviation of each entry (Baruch, Baruch, Goldberg 2019, Algorithm 3). */
static void collusion_alie(const struct fl_attack *a, const struct fl_attack_view *v, float *ret)
{
    double z = isnan(a->z) ? fl_attack_alie_z(v->n_honest + v->n_attackers, v->n_attackers) : a->z;
    size_t i;

    for (i = 0; i < v->n; i++) {
        double mean = collusion_mean(v, i);

        ret[i] = (float)(mean + z * collusion_deviation(v, i, mean));
    }
}

/* ipm: -epsilon * mean (Xie, Koyejo, Gupta 2020); imitation: scale * mean. */
static void collusion_times_mean(double factor, const struct fl_attack_view *v, float *ret)
{
    size_t i;

    for (i = 0; i < v->n; i++) {
        ret[i] = (float)(factor * collusion_mean(v, i));
    }
}

/* --- Min-Max and Min-Sum (Shejwalkar and Houmansadr 2021) --- */

int fl__attack_make_push(const struct fl_attack *a, const struct fl_attack_view *v,
                         struct fl__attack_push *ret)
{
    double norm = 0;
    size_t i;

    ret->mean = malloc((v->n + 1) * sizeof(*ret->mean));
    ret->p = malloc((v->n + 1) * sizeof(*ret->p));
    if (ret->mean == NULL || ret->p == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < v->n; i++) {
        ret->mean[i] = collusion_mean(v, i);
        norm += ret->mean[i] * ret->mean[i];
    }
    norm = sqrt(norm);
    for (i = 0; i < v->n; i++) {
        double mean = ret->mean[i];
        double p = a->perturbation == FL_ATTACK_INVERSE_STD    ? collusion_deviation(v, i, mean)
                   : a->perturbation == FL_ATTACK_INVERSE_UNIT ? (norm > 0 ? mean / norm : 0)
                                                               : (double)((mean > 0) - (mean < 0));

        ret->p[i] = -p;
        ret->p_sq += p * p;
    }
    return FL_OK;
}

/* With c = |mean - honest update|^2 and b = p * (mean - honest update), the squared distance of
   mean + gamma p to that update is |p|^2 gamma^2 + 2 b gamma + c. */
static void collusion_distance(const struct fl__attack_push *m, const float *honest, size_t n,
                               double *ret_b, double *ret_c)
{
    double b = 0;
    double c = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        double d = m->mean[i] - (double)honest[i];

        b += m->p[i] * d;
        c += d * d;
    }
    *ret_b = b;
    *ret_c = c;
}

/* The largest root of a x^2 + 2 b x + c = most; 0 when there is none above 0. */
static double collusion_root(double a, double b, double c, double most)
{
    double inside = b * b + a * (most - c);
    double x = a > 0 && inside > 0 ? (-b + sqrt(inside)) / a : 0;

    return x > 0 ? x : 0;
}

/* The bounds: the largest squared distance of two honest updates, and the largest sum of the
   squared distances of one to all others. */
static void collusion_bounds(const struct fl_attack_view *v, double *ret_max, double *ret_sum)
{
    size_t i;
    size_t k;

    *ret_max = *ret_sum = 0;
    for (i = 0; i < v->n_honest; i++) {
        double sum = 0;

        for (k = 0; k < v->n_honest; k++) {
            double d = i == k ? 0 : fl_vec_distance_sq(v->honest[i], v->honest[k], v->n);

            sum += d;
            *ret_max = d > *ret_max ? d : *ret_max;
        }
        *ret_sum = sum > *ret_sum ? sum : *ret_sum;
    }
}

/* The paper searches gamma by halving steps; here it is the exact root of a quadratic equation. */
static double collusion_gamma(enum fl_attack_kind kind, const struct fl_attack_view *v,
                              const struct fl__attack_push *m)
{
    double gamma = (double)INFINITY;
    double sum_b = 0;
    double sum_c = 0;
    double most;
    double most_sum;
    size_t k;

    collusion_bounds(v, &most, &most_sum);
    for (k = 0; k < v->n_honest; k++) {
        double b;
        double c;
        double root;

        collusion_distance(m, v->honest[k], v->n, &b, &c);
        root = collusion_root(m->p_sq, b, c, most);
        gamma = root < gamma ? root : gamma;
        sum_b += b;
        sum_c += c;
    }
    return kind == FL_ATTACK_KIND_MIN_MAX
               ? gamma
               : collusion_root((double)v->n_honest * m->p_sq, sum_b, sum_c, most_sum);
}

void fl__attack_push_along(const struct fl__attack_push *m, double gamma, size_t n, float *ret)
{
    size_t i;

    for (i = 0; i < n; i++) {
        ret[i] = (float)(m->mean[i] + gamma * m->p[i]);
    }
}

double fl__attack_gamma_min_max(const struct fl_attack_view *v, const struct fl__attack_push *m)
{
    return collusion_gamma(FL_ATTACK_KIND_MIN_MAX, v, m);
}

void fl__attack_push_done(struct fl__attack_push *m)
{
    free(m->mean);
    free(m->p);
}

static int collusion_push(const struct fl_attack *a, const struct fl_attack_view *v, float *ret)
{
    struct fl__attack_push m = {.mean = NULL};
    int rv = fl__attack_make_push(a, v, &m);

    if (rv != FL_OK) {
        goto done;
    }
    fl__attack_push_along(&m, collusion_gamma(a->kind, v, &m), v->n, ret);
done:
    fl__attack_push_done(&m);
    return rv;
}

/* --- Mimic (Karimireddy, He, Jaggi 2022) --- */

static int collusion_mimic(const struct fl_attack_view *v, float *ret)
{
    size_t n = v->n_honest;
    double *gram = malloc((n * n + 2 * n) * sizeof(*gram));
    double *projection;
    size_t best = 0;
    size_t i;
    size_t k;

    if (gram == NULL) {
        return FL_ENOMEM;
    }
    projection = gram + n * n;
    for (i = 0; i < n; i++) {
        for (k = 0; k <= i; k++) {
            gram[i * n + k] = gram[k * n + i] = fl_vec_dot(v->honest[i], v->honest[k], v->n);
        }
    }
    fl_principal_centre(gram, n, projection);
    fl_principal(gram, n, projection, projection + n);
    for (i = 1; i < n; i++) {
        best = fabs(projection[i]) > fabs(projection[best]) ? i : best;
    }
    fl_vec_scale(ret, 1, v->honest[best], v->n);
    free(gram);
    return FL_OK;
}

/* --- all of them --- */

int fl_attack_collude(const struct fl_attack *a, const struct fl_attack_view *v, float *ret)
{
    FL_REQUIRE(v->n_honest > 0 && v->n_attackers > 0);
    switch (a->kind) {
    case FL_ATTACK_KIND_ALIE:
        collusion_alie(a, v, ret);
        return FL_OK;
    case FL_ATTACK_KIND_IPM:
        collusion_times_mean(-a->epsilon, v, ret);
        return FL_OK;
    case FL_ATTACK_KIND_IMITATION:
        collusion_times_mean(a->scale, v, ret);
        return FL_OK;
    case FL_ATTACK_KIND_MIN_MAX:
    case FL_ATTACK_KIND_MIN_SUM:
        return collusion_push(a, v, ret);
    case FL_ATTACK_KIND_MIMIC:
        return collusion_mimic(v, ret);
    case FL_ATTACK_KIND_TAILORED:
        return fl__attack_tailor(a, v, ret);
    default:
        return FL_EUNIMPL;
    }
}
