/*
 * upload: ldf (FedLDF, eq. 3 and 4; docs/algorithms.md#uploads-by-divergence)
 *
 * Clients report D[k][l] = ||theta_{k,l} - theta_l|| after training; each unit is then sent by the
 * n responders whose unit changed most. Ties, and units that did not change, go to the smaller
 * client index. n at least the number of responders is FedAvg.
 *
 * Options: n, share. State: none. Cost: uplink n / K of full uploads plus 4 bytes per unit and
 * client; O(L K log K) time. Large clients are favoured twice: more steps mean more divergence, and
 * more weight.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/upload/upload_impl.h"

struct ranked {
    float divergence;
    uint32_t client;
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

static int upload_ldf_plan(const struct fl_options *o, const struct fl_upload_input *in,
                           struct fl_rng *rng, uint8_t *grant)
{
    size_t n = fl__upload_count(o, in);
    struct ranked *rank;
    size_t k;
    size_t l;

    (void)rng;
    FL_REQUIRE(in->divergence != NULL);
    (void)memset(grant, 0, in->n_clients * in->n_units);
    if (in->n_clients == 0) {
        return FL_OK;
    }
    rank = malloc(in->n_clients * sizeof(*rank));
    if (rank == NULL) {
        return FL_ENOMEM;
    }
    for (l = 0; l < in->n_units; l++) {
        for (k = 0; k < in->n_clients; k++) {
            float d = in->divergence[k * in->n_units + l];

            /*
             * The caller has rejected clients with NaN; a comparison broken by NaN would be
             * undefined behaviour in qsort.
             */
            rank[k].divergence = isnan(d) ? -1.0f : d;
            rank[k].client = (uint32_t)k;
        }
        qsort(rank, in->n_clients, sizeof(*rank), ldf_compare_rank);
        for (k = 0; k < n; k++) {
            grant[rank[k].client * in->n_units + l] = 1;
        }
    }
    free(rank);
    return FL_OK;
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
