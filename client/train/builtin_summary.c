/*
 * The data summary of the built-in engine: made once, and made again so that the client recognises
 * its own part in the summary of all clients.
 */
#include "client/train/builtin_impl.h"

static int32_t summary_sample(void *ctx, size_t i, float *x)
{
    const struct fl__builtin *b = ctx;
    uint32_t idx = (uint32_t)i;
    int32_t y = 0;

    fl_dataset_gather(b->train, &idx, 1, x, &y);
    return y;
}

int fl__summary_make(struct fl__builtin *b, uint64_t seed, struct fl_buf *out, struct fl_err *err)
{
    const struct fl_solver_data data = {
        .n = b->train->n,
        .dim = b->train->dim,
        /* The server's class count: the same on all clients, whatever labels their data has. */
        .classes = fl_net_classes(b->net),
        .sample = summary_sample,
        .ctx = b,
    };

    if (b->train->n_targets > 0) {
        return fl_err_set(err, FL_ESHAPE,
                          "expected data with classes for a data summary, found %zu values to be "
                          "predicted",
                          b->train->n_targets);
    }
    return b->solver->summary(b->options, &data, seed, out, err);
}

int fl__summary_own(struct fl__builtin *b, uint64_t seed, struct fl_err *err)
{
    struct fl_err why = {0};
    int rv;

    if (b->solver->summary == NULL || b->own_summary.len > 0) {
        return FL_OK;
    }
    fl_buf_init(&b->own_summary, FL_SUMMARY_MAX);
    rv = fl__summary_make(b, seed, &b->own_summary, &why);
    if (rv != FL_OK) {
        fl_buf_done(&b->own_summary);
    }
    /* No summary of this data was sent if none can be made, so there is none to recognise. */
    return rv == FL_ENOMEM ? fl_err_set(err, rv, "%s", why.msg) : FL_OK;
}
