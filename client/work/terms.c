#include "client/work/terms.h"

#include <inttypes.h>

int fl_terms_check_model(const struct fl_worker_terms *terms, const struct fl_setup *setup,
                         struct fl_err *err)
{
    uint64_t bytes = (uint64_t)fl_layout_count(setup->layout) * sizeof(float);

    if (terms->largest_model == 0 || bytes <= terms->largest_model) {
        return FL_OK;
    }
    return fl_err_set(err, FL_EPERM,
                      "the server's model has %" PRIu64
                      " bytes, more than limits.largest_model of this client, %" PRIu64,
                      bytes, terms->largest_model);
}

/* Mini-batch steps of a round; `samples` 0: unknown. */
static uint64_t terms_steps(const struct fl_wire_training *t, uint64_t samples)
{
    uint64_t batch = t->batch_size > 0 ? t->batch_size : 1;
    uint64_t in_epoch = samples / batch + (samples % batch > 0);

    return t->epochs > 0 ? t->epochs * in_epoch : t->steps;
}

static int terms_count_unknown(const char *what, const char *limit, uint64_t least,
                               struct fl_err *err)
{
    return fl_err_set(
        err, FL_EPERM,
        "limits.%s of this client is %" PRIu64
        ", and its training program does not report how many %s an update has: set "
        "'command.samples' of this client to the number of its training samples, or 'limits.%s: 1'",
        limit, least, what, limit);
}

int fl_terms_check_training(const struct fl_worker *worker, struct fl_err *err)
{
    const struct fl_worker_terms *terms = &worker->terms;
    const struct fl_wire_training *t = &worker->setup->welcome.training;
    uint64_t has = worker->trainer != NULL ? fl_trainer_samples(worker->trainer) : 0;
    uint64_t steps = terms_steps(t, has);
    uint64_t used = t->epochs > 0 ? has : steps * t->batch_size;

    if (has == 0 && terms->least_samples > 1) {
        return terms_count_unknown("samples", "least_samples", terms->least_samples, err);
    }
    if (has == 0 && t->epochs > 0) {
        return terms->least_steps > 1 ? terms_count_unknown("steps of its epochs", "least_steps",
                                                            terms->least_steps, err)
                                      : FL_OK;
    }
    used = has > 0 && used > has ? has : used;
    if (used < terms->least_samples) {
        return fl_err_set(err, FL_EPERM,
                          "an update would use %" PRIu64 " samples (%" PRIu64 " here, %" PRIu64
                          " steps of %" PRIu32
                          "), fewer than limits.least_samples of this client, %" PRIu64,
                          used, has, steps, t->batch_size, terms->least_samples);
    }
    if (steps < terms->least_steps) {
        return fl_err_set(err, FL_EPERM,
                          "an update would take %" PRIu64
                          " steps, fewer than limits.least_steps of this client, %" PRIu64,
                          steps, terms->least_steps);
    }
    return FL_OK;
}

int fl_terms_check_result(const struct fl_worker_terms *terms, uint64_t samples, uint64_t steps,
                          struct fl_err *err)
{
    bool few = samples < terms->least_samples;

    /* 1 is the default: a program that counts no steps reports 0. */
    if (!few && (terms->least_steps <= 1 || steps >= terms->least_steps)) {
        return FL_OK;
    }
    return fl_err_set(
        err, FL_EPERM,
        "the training reports an update of %" PRIu64
        " %s, fewer than limits.%s of this client, %" PRIu64 ": the update is not sent",
        few ? samples : steps, few ? "samples" : "steps", few ? "least_samples" : "least_steps",
        few ? terms->least_samples : terms->least_steps);
}
