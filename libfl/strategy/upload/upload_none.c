/*
 * upload: none (local-only training)
 *
 * No client uploads: a baseline of local training. Options, state: none. Cost: 0 bytes.
 */
#include <string.h>

#include "libfl/strategy/upload/upload_impl.h"

static int upload_none_plan(const struct fl_options *o, const struct fl_upload_input *in,
                            struct fl_rng *rng, uint8_t *grant)
{
    (void)o;
    (void)rng;
    (void)memset(grant, 0, in->n_clients * in->n_units);
    return FL_OK;
}

const struct fl_upload_ops fl_upload_none = {
    .policy =
        {
            .name = "none",
            .help = "no uploads: local training",
            .source = "control",
            .options = fl_opt_none,
        },
    .partial = true,
    .whole = true,
    .never = true,
    .plan = upload_none_plan,
};
