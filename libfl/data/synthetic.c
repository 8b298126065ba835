/*
 * Generator of the federation Synthetic(alpha, beta) (synthetic.h), one client at a time, with
 * numpy's random stream. Runs on one thread; nothing is written.
 */
#include "libfl/data/synthetic.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/data/numpy_rng.h"

#define FEATURES FL_SYNTHETIC_FEATURES
#define CLASSES  FL_SYNTHETIC_CLASSES
/* Limit of clients: a hundred times the largest table of the papers. */
#define MAX_CLIENTS 10000

struct fl_synthetic {
    size_t n_clients;
    size_t next;
    struct fl_numpy_rng rng;
    double noise[FEATURES]; /* standard deviation of feature j: sqrt(j^-1.2) */
    size_t *sizes;          /* [n_clients] */
    double *u;              /* [n_clients]: mean of the model's entries */
    double *mu;             /* [n_clients][FEATURES]: mean of the features */
};

void fl_synthetic_conf_init(struct fl_synthetic_conf *conf)
{
    *conf = (struct fl_synthetic_conf){.alpha = 0.5, .beta = 0.5};
}

static double synthetic_draw(struct fl_synthetic *gen, double mean, double std)
{
    return mean + std * fl_numpy_rng_normal(&gen->rng);
}

/* n = (floor(exp(4 + 2 z)) + 50) * 5 */
static int draw_sizes(struct fl_synthetic *gen, struct fl_err *err)
{
    const double most = (double)(FL_DATA_MAX_BYTES / (FEATURES * sizeof(float)));
    size_t k;

    for (k = 0; k < gen->n_clients; k++) {
        double n = (floor(exp(synthetic_draw(gen, 4.0, 2.0))) + 50.0) * 5.0;

        if (!(n <= most)) {
            return fl_err_set(err, FL_ELIMIT,
                              "client %zu would have %.0f samples with this seed; take another", k,
                              n);
        }
        gen->sizes[k] = (size_t)n;
    }
    return FL_OK;
}

/* Sizes, then all u, all v and all mu: the order of the published program. */
static int draw_clients(struct fl_synthetic *gen, const struct fl_synthetic_conf *conf,
                        struct fl_err *err)
{
    double *v = calloc(gen->n_clients, sizeof(*v));
    size_t k;
    size_t j;
    int rv;

    if (v == NULL) {
        return fl_err_set(err, FL_ENOMEM, "synthetic data of %zu clients: out of memory",
                          gen->n_clients);
    }
    rv = draw_sizes(gen, err);
    if (rv != FL_OK) {
        free(v);
        return rv;
    }
    for (k = 0; k < gen->n_clients; k++) {
        gen->u[k] = synthetic_draw(gen, 0.0, conf->alpha);
    }
    for (k = 0; k < gen->n_clients; k++) {
        v[k] = synthetic_draw(gen, 0.0, conf->beta);
    }
    for (k = 0; k < gen->n_clients; k++) {
        for (j = 0; j < FEATURES; j++) {
            gen->mu[k * FEATURES + j] = synthetic_draw(gen, v[k], 1.0);
        }
    }
    free(v);
    return FL_OK;
}

int fl_synthetic_create(const struct fl_synthetic_conf *conf, struct fl_synthetic **ret,
                        struct fl_err *err)
{
    struct fl_synthetic *gen;
    size_t j;
    int rv;

    if (conf->n_clients < 1 || conf->n_clients > MAX_CLIENTS) {
        return fl_err_set(err, FL_ERANGE, "expected 1 to %d clients, found %zu", MAX_CLIENTS,
                          conf->n_clients);
    }
    if (!(conf->alpha >= 0.0 && conf->alpha <= 1e6 && conf->beta >= 0.0 && conf->beta <= 1e6)) {
        return fl_err_set(err, FL_ERANGE, "expected alpha and beta from 0 to 1e6, found %g and %g",
                          conf->alpha, conf->beta);
    }
    if (conf->seed > UINT32_MAX) {
        return fl_err_set(err, FL_ERANGE, "expected a seed below 2^32, found %" PRIu64, conf->seed);
    }
    gen = calloc(1, sizeof(*gen));
    if (gen == NULL) {
        return fl_err_set(err, FL_ENOMEM, "synthetic data: out of memory");
    }
    gen->n_clients = conf->n_clients;
    gen->sizes = calloc(conf->n_clients, sizeof(*gen->sizes));
    gen->u = calloc(conf->n_clients, sizeof(*gen->u));
    gen->mu = calloc(conf->n_clients, FEATURES * sizeof(*gen->mu));
    if (gen->sizes == NULL || gen->u == NULL || gen->mu == NULL) {
        fl_synthetic_free(gen);
        return fl_err_set(err, FL_ENOMEM, "synthetic data of %zu clients: out of memory",
                          conf->n_clients);
    }
    for (j = 0; j < FEATURES; j++) {
        gen->noise[j] = sqrt(pow((double)(j + 1), -1.2));
    }
    fl_numpy_rng_seed(&gen->rng, (uint32_t)conf->seed);
    rv = draw_clients(gen, conf, err);
    if (rv != FL_OK) {
        fl_synthetic_free(gen);
        return rv;
    }
    *ret = gen;
    return FL_OK;
}

void fl_synthetic_free(struct fl_synthetic *gen)
{
    if (gen == NULL) {
        return;
    }
    free(gen->sizes);
    free(gen->u);
    free(gen->mu);
    free(gen);
}

size_t fl_synthetic_size(const struct fl_synthetic *gen, size_t k)
{
    FL_REQUIRE(k < gen->n_clients);
    return gen->sizes[k];
}

/* y = argmax(x W + b), W is [FEATURES][CLASSES]. */
static int32_t synthetic_classify(const double *x, const double *w, const double *b)
{
    double score[CLASSES] = {0};
    int32_t best = 0;
    int32_t c;
    size_t j;

    for (j = 0; j < FEATURES; j++) {
        for (c = 0; c < CLASSES; c++) {
            score[c] += x[j] * w[j * CLASSES + (size_t)c];
        }
    }
    for (c = 0; c < CLASSES; c++) {
        score[c] += b[c];
        best = score[c] > score[best] ? c : best;
    }
    return best;
}

int fl_synthetic_next(struct fl_synthetic *gen, struct fl_dataset **ret, struct fl_err *err)
{
    const size_t dim = FEATURES;
    struct fl_dataset *ds = NULL;
    double w[FEATURES * CLASSES];
    double b[CLASSES];
    double x[FEATURES];
    const double *mu;
    float *out;
    size_t i;
    size_t j;
    int rv;

    if (gen->next == gen->n_clients) {
        return fl_err_set(err, FL_ENOENT, "all %zu clients have been made", gen->n_clients);
    }
    rv = fl_dataset_create(FL_DATA_F32, gen->sizes[gen->next], &dim, 1, &ds, err);
    if (rv != FL_OK) {
        return rv;
    }
    mu = gen->mu + gen->next * FEATURES;
    for (j = 0; j < FEATURES * CLASSES; j++) {
        w[j] = synthetic_draw(gen, gen->u[gen->next], 1.0);
    }
    for (j = 0; j < CLASSES; j++) {
        b[j] = synthetic_draw(gen, gen->u[gen->next], 1.0);
    }
    out = ds->x;
    for (i = 0; i < ds->n; i++) {
        for (j = 0; j < FEATURES; j++) {
            x[j] = synthetic_draw(gen, mu[j], gen->noise[j]);
            *out++ = (float)x[j];
        }
        ds->y[i] = synthetic_classify(x, w, b);
    }
    ds->classes = CLASSES;
    gen->next++;
    *ret = ds;
    return FL_OK;
}
