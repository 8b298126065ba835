/*
 * upload: ldf (FedLDF, eq. 3 and 4; docs/algorithms.md#uploads-by-divergence)
 *
 * Clients report D[k][l] = ||theta_{k,l} - theta_l|| after training; each unit is then sent by the
 * n responders whose unit changed most. Ties, and units that did not change, go to the smaller
 * client index. n at least the number of responders is FedAvg.
 *
 * With share_cap a client that was asked for its share of layers is passed over, and the next ones
 * by divergence are asked (docs/algorithms.md#the-share-of-one-client). As many clients send each
 * layer as without it.
 *
 * Options: n, share. State: the caller keeps a credit of each client. Cost: uplink n / K of full
 * uploads plus 4 bytes per unit and client; O(L K log K) time. Large clients are favoured twice:
 * more steps mean more divergence, and more weight.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/share_cap.h"
#include "libfl/strategy/upload/upload_impl.h"

struct ranked {
    float divergence;
    uint32_t client;
    double left; /* layers that it may be asked for, with share_cap */
};

size_t fl__upload_count(const struct fl_options *o, const struct fl_upload_input *in)
{
    const struct fl__upload_share *v = fl_options_values(o);
    size_t n = 1;

    if (v->n > 0) {
        n = (size_t)v->n;
    } else {
        long long k = llround(v->share * (double)in->n_selected);

        n = k < 1 ? 1 : (size_t)k;
    }
    return n < in->n_clients ? n : in->n_clients;
}

size_t fl__upload_senders(const struct fl_options *o)
{
    const struct fl__upload_share *v = fl_options_values(o);

    return (size_t)v->n;
}

static int ldf_compare_rank(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;

    if (x->divergence > y->divergence) {
        return -1;
    }
    if (x->divergence < y->divergence) {
        return 1;
    }
    return (x->client > y->client) - (x->client < y->client);
}

/* With share_cap: those that can be asked for one more layer come first; when there are too few,
   then those with the most left. */
static int ldf_compare_bounded(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    bool affords = fl_share_affords(x->left);

    if (affords != fl_share_affords(y->left)) {
        return affords ? -1 : 1;
    }
    if (!affords && (x->left > y->left || x->left < y->left)) {
        return x->left > y->left ? -1 : 1;
    }
    return ldf_compare_rank(a, b);
}

struct plan {
    const struct fl_upload_input *in;
    size_t n; /* clients that send each layer */
    struct ranked *rank;
    double *left; /* [n_clients] layers that each may be asked for; NULL: no bound */
    uint8_t *grant;
};

/* Of the first n, by divergence alone, those that are not asked are held back by the bound. */
static void ldf_note_capped(const struct plan *p, size_t l)
{
    size_t k;

    qsort(p->rank, p->in->n_clients, sizeof(*p->rank), ldf_compare_rank);
    for (k = 0; k < p->n; k++) {
        uint32_t client = p->rank[k].client;

        p->in->capped[client] = p->in->capped[client] || p->grant[client * p->in->n_units + l] == 0;
    }
}

static void ldf_plan_unit(const struct plan *p, size_t l)
{
    const struct fl_upload_input *in = p->in;
    size_t k;

    for (k = 0; k < in->n_clients; k++) {
        float d = in->divergence[k * in->n_units + l];

        /*
         * The caller has rejected clients with NaN; a comparison broken by NaN would be
         * undefined behaviour in qsort.
         */
        p->rank[k].divergence = isnan(d) ? -1.0f : d;
        p->rank[k].client = (uint32_t)k;
        p->rank[k].left = p->left != NULL ? p->left[k] : 0;
    }
    qsort(p->rank, in->n_clients, sizeof(*p->rank),
          p->left != NULL ? ldf_compare_bounded : ldf_compare_rank);
    for (k = 0; k < p->n; k++) {
        p->grant[p->rank[k].client * in->n_units + l] = 1;
        if (p->left != NULL) {
            p->left[p->rank[k].client] -= 1;
        }
    }
    if (p->left != NULL) {
        ldf_note_capped(p, l);
    }
}

/* The layers in an order of this round: what a client may send goes to no layer first in all
   rounds. */
static void ldf_shuffle(uint32_t *order, size_t n, struct fl_rng *rng)
{
    size_t i;

    for (i = 0; i < n; i++) {
        size_t j = (size_t)fl_rng_below(rng, i + 1);

        order[i] = order[j];
        order[j] = (uint32_t)i;
    }
}

static int ldf_plan_bounded(struct plan *p, struct fl_rng *rng)
{
    const struct fl_upload_input *in = p->in;
    double fair = (double)(p->n * in->n_units) / (double)in->n_clients;
    uint32_t *order = malloc(in->n_units * sizeof(*order));
    size_t k;
    size_t l;

    p->left = malloc(in->n_clients * sizeof(*p->left));
    if (order == NULL || p->left == NULL) {
        free(order);
        free(p->left);
        return FL_ENOMEM;
    }
    for (k = 0; k < in->n_clients; k++) {
        p->left[k] = fl_share_layers(in->credit[k], fair, in->share_cap);
        in->capped[k] = 0;
    }
    ldf_shuffle(order, in->n_units, rng);
    for (l = 0; l < in->n_units; l++) {
        ldf_plan_unit(p, order[l]);
    }
    free(order);
    free(p->left);
    return FL_OK;
}

static int upload_ldf_plan(const struct fl_options *o, const struct fl_upload_input *in,
                           struct fl_rng *rng, uint8_t *grant)
{
    struct plan p = {.in = in, .n = fl__upload_count(o, in), .grant = grant};
    int rv = FL_OK;
    size_t l;

    FL_REQUIRE(in->divergence != NULL);
    (void)memset(grant, 0, in->n_clients * in->n_units);
    if (in->n_clients == 0) {
        return FL_OK;
    }
    p.rank = malloc(in->n_clients * sizeof(*p.rank));
    if (p.rank == NULL) {
        return FL_ENOMEM;
    }
    if (in->share_cap > 0) {
        rv = ldf_plan_bounded(&p, rng);
    }
    for (l = 0; !(in->share_cap > 0) && l < in->n_units; l++) {
        ldf_plan_unit(&p, l);
    }
    free(p.rank);
    return rv;
}

const struct fl_opt_spec fl__upload_share_options[] = {
    {FL_OPT(struct fl__upload_share, INT, n), .def = "0", .min = 0, .max = 1e9,
     .help = "Number of clients that upload each unit; 0: see share."},
    {FL_OPT(struct fl__upload_share, FLOAT, share), .def = "0.2", .min = 0, .max = 1,
     .help = "Share of the selected clients that uploads each unit, at least one client."},
    FL_OPT_END_OF(struct fl__upload_share),
};

const struct fl_upload_ops fl_upload_ldf = {
    .policy =
        {
            .name = "ldf",
            .help = "each unit is sent by the clients whose unit changed most",
            .source = "FedLDF eqs. (3)-(6)",
            .options = fl__upload_share_options,
        },
    .needs_feedback = true,
    .partial = true,
    .senders = fl__upload_senders,
    .plan = upload_ldf_plan,
};
