/*
 * A program that makes the server's step from the updates of a round
 * (docs/trainers.md#a-strategy-in-python): the memory that the caller fills before the task, and
 * the checks of what comes back. Same thread as persistent.c.
 */
#include <inttypes.h>
#include <math.h>

#include "libfl/program/persistent_impl.h"

int fl_persistent_prepare(struct fl_persistent *r, const atomic_bool *cancel,
                          struct fl_persistent_room *ret, struct fl_err *err)
{
    int rv;

    if (r->layout == NULL || r->clients == 0) {
        return fl_err_set(err, FL_ESTATE, "a task before the server described its model");
    }
    rv = fl__persistent_get_ready(r, NULL, cancel, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = (struct fl_persistent_room){
        .updates = (float *)(void *)(r->weights.map + r->slots.updates.offset),
        .mean = (double *)(void *)(r->weights.map + r->slots.mean.offset),
        .weights = (double *)(void *)(r->weights.map + r->slots.shares.offset)};
    return FL_OK;
}

int fl__persistent_check_prepared(struct fl_persistent *r, struct fl_err *err)
{
    int rv =
        r->program != NULL && r->model_accepted ? fl__persistent_check_quiet(r, err) : FL_ECLOSED;

    return rv != FL_ECLOSED
               ? rv
               : fl_err_set(err, FL_EIO,
                            "'%.100s' ended before it had got the updates of the round; it is "
                            "started again for the next attempt",
                            r->argv[0]);
}

/* The entry in which a step is not finite, for people. */
static int aggregate_not_finite(const struct fl_persistent *r, size_t entry, double value,
                                struct fl_err *err)
{
    size_t l = 0;

    while (l + 1 < fl_layout_units(r->layout) && fl_layout_unit(r->layout, l + 1)->offset <= entry)
    {
        l++;
    }
    return fl_err_set(err, FL_ENUMERIC,
                      "'%.100s' returned a step that is not finite: %g at entry %zu of layer '%s', "
                      "expected finite numbers",
                      r->argv[0], value, entry - fl_layout_unit(r->layout, l)->offset,
                      fl_layout_unit(r->layout, l)->name);
}

int fl__persistent_take_step(struct fl_persistent *r, const struct fl_persistent_answer *answer,
                             struct fl_err *err)
{
    const struct fl_persistent_round *round = r->task->aggregate;
    size_t entries = fl_layout_count(r->layout);
    size_t i;
    int rv = fl_shared_read(&r->result, r->slots.step.offset, round->step, entries * sizeof(double),
                            err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < entries; i++) {
        if (!isfinite(round->step[i])) {
            return aggregate_not_finite(r, i, round->step[i], err);
        }
    }
    if (!answer->has_scores) {
        return FL_OK;
    }
    rv = fl_shared_read(&r->result, r->slots.scores.offset, round->scores,
                        round->n * sizeof(double), err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < round->n; i++) {
        if (!(round->scores[i] >= 0) || !isfinite(round->scores[i])) {
            return fl_err_set(err, FL_EFORMAT,
                              "'%.100s' returned the score %g for client '%.100s', expected a "
                              "finite number of at least 0",
                              r->argv[0], round->scores[i], round->updates[i].client);
        }
    }
    return FL_OK;
}

int fl_persistent_state(const struct fl_persistent *r, void *out, size_t len, struct fl_err *err)
{
    if (r->result.bytes == 0 || r->layout == NULL) {
        return fl_err_set(err, FL_ESTATE, "'%.100s' is not running any more", r->argv[0]);
    }
    FL_REQUIRE(len <= r->slots.state_new.bytes);
    return fl_shared_read(&r->result, r->slots.state_new.offset, out, len, err);
}
