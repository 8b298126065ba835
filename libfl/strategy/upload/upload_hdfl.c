/*
 * upload: hdfl (HDFL as used in the FedLDF paper)
 *
 * Of the clients that train, n drawn uniformly without replacement send the whole update, the
 * others nothing: random client dropout, the baseline of FedLDF at equal uplink. The upload plan
 * needs no reports, so it is sent with the task. n of all is FedAvg.
 *
 * Options: n, share. State: none. Cost: uplink n / K of full uploads, training of all K.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/selection/selection_impl.h"
#include "libfl/strategy/upload/upload_impl.h"

static int upload_hdfl_plan(const struct fl_options *o, const struct fl_upload_input *in,
                            struct fl_rng *rng, uint8_t *grant)
{
    size_t n = fl__upload_count(o, in);
    uint32_t *order;
    size_t i;

    (void)memset(grant, 0, in->n_clients * in->n_units);
    if (in->n_clients == 0) {
        return FL_OK;
    }
    order = malloc(in->n_clients * sizeof(*order));
    if (order == NULL) {
        return FL_ENOMEM;
    }
    fl__draw_uniform(order, order, in->n_clients, n, rng);
    for (i = 0; i < n; i++) {
        (void)memset(grant + order[i] * in->n_units, 1, in->n_units);
    }
    free(order);
    return FL_OK;
}

const struct fl_upload_ops fl_upload_hdfl = {
    .policy =
        {
            .name = "hdfl",
            .help = "some randomly drawn clients send their whole update",
            .source = "random client dropout, HDFL as used by FedLDF",
            .options = fl__upload_share_options,
        },
    .partial = true,
    .senders = fl__upload_senders,
    .whole = true,
    .plan = upload_hdfl_plan,
};
