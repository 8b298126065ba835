/*
 * upload: random_layer (baseline of FedLDF)
 *
 * Each unit is sent by n clients drawn uniformly without replacement, independently for each unit.
 * The upload plan needs no reports, so it is sent with the task.
 *
 * Options: n, share. State: none. Cost: uplink n / K of full uploads.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/selection/selection_impl.h"
#include "libfl/strategy/upload/upload_impl.h"

static int upload_random_layer_plan(const struct fl_options *o, const struct fl_upload_input *in,
                                    struct fl_rng *rng, uint8_t *grant)
{
    size_t n = fl__upload_count(o, in);
    uint32_t *order;
    size_t i;
    size_t l;

    (void)memset(grant, 0, in->n_clients * in->n_units);
    if (in->n_clients == 0) {
        return FL_OK;
    }
    order = malloc(in->n_clients * sizeof(*order));
    if (order == NULL) {
        return FL_ENOMEM;
    }
    for (l = 0; l < in->n_units; l++) {
        fl__draw_uniform(order, order, in->n_clients, n, rng);
        for (i = 0; i < n; i++) {
            grant[order[i] * in->n_units + l] = 1;
        }
    }
    free(order);
    return FL_OK;
}

const struct fl_upload_ops fl_upload_random_layer = {
    .policy =
        {
            .name = "random_layer",
            .help = "each unit is sent by randomly drawn clients",
            .source = "baseline of FedLDF",
            .options = fl__upload_share_options,
        },
    .partial = true,
    .senders = fl__upload_senders,
    .plan = upload_random_layer_plan,
};
