/*
 * upload: full
 *
 * Every client sends every unit (FedAvg). Options: none. Cost: 4 (d + s) bytes per client.
 */
#include <string.h>

#include "libfl/strategy/upload/upload.h"

static int upload_full_plan(const struct fl_options *o, const struct fl_upload_input *in,
                            struct fl_rng *rng, uint8_t *grant)
{
    (void)o;
    (void)rng;
    (void)memset(grant, 1, in->n_clients * in->n_units);
    return FL_OK;
}

const struct fl_upload_ops fl_upload_full = {
    .policy =
        {
            .name = "full",
            .help = "every client sends its whole update",
            .source = "FedAvg",
            .options = fl_opt_none,
        },
    .plan = upload_full_plan,
};
