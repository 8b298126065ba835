/*
 * Dispatches the calls of a trainer to its kind, and computes what all kinds share: the checks, the
 * displacement and the divergence of a result. Runs on the training thread. Does not train.
 */
#include "client/train/trainer.h"

#include <math.h>
#include <stdlib.h>

#include "client/train/trainer_impl.h"
#include "libfl/num/vec.h"

void fl_train_result_done(struct fl_train_result *result)
{
    size_t i;

    free(result->delta);
    free(result->divergence);
    for (i = 0; i < result->n_kept; i++) {
        fl_buf_done(&result->kept[i]);
    }
    for (i = 0; i < result->n_sent; i++) {
        fl_buf_done(&result->sent[i]);
    }
    free(result->kept);
    free(result->sent);
    *result = (struct fl_train_result){0};
}

int fl__train_finish(const struct fl_layout *layout, const struct fl_train_task *task,
                     struct fl_train_result *ret, struct fl_err *err)
{
    const float *start = task->model;
    size_t count = fl_layout_count(layout);
    size_t units = fl_layout_units(layout);
    size_t l;
    int rv = fl_layout_check_trained(layout, ret->delta, err);

    if (rv != FL_OK) {
        return rv;
    }
    ret->divergence = calloc(units, sizeof(*ret->divergence));
    if (ret->divergence == NULL) {
        return fl_err_set(err, FL_ENOMEM, "divergence of %zu units: out of memory", units);
    }
    for (l = 0; l < units; l++) {
        ret->divergence[l] = (float)fl_unit_distance(layout, l, ret->delta, start);
    }
    if (!task->raw) {
        fl_vec_sub(ret->delta, ret->delta, start, count);
    }
    /* The difference of two finite floats can exceed the range of float. */
    if (!fl_vec_finite(ret->delta, count) || !fl_vec_finite(ret->divergence, units)) {
        return fl_err_set(err, FL_ENUMERIC,
                          "the update is not finite: training diverged; a smaller learning rate "
                          "helps");
    }
    return FL_OK;
}

int fl__train_extras(size_t n, struct fl_buf **ret, size_t *ret_n, struct fl_err *err)
{
    size_t i;

    if (n == 0) {
        return FL_OK;
    }
    *ret = calloc(n, sizeof(**ret));
    if (*ret == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver state: out of memory");
    }
    for (i = 0; i < n; i++) {
        /* Unlimited: only our own solver writes to it, no data of a peer. */
        fl_buf_init(&(*ret)[i], SIZE_MAX);
    }
    *ret_n = n;
    return FL_OK;
}

void fl_trainer_free(struct fl_trainer *trainer)
{
    if (trainer != NULL) {
        trainer->ops->free(trainer);
    }
}

int fl_trainer_set_data(struct fl_trainer *trainer, const struct fl_dataset *train,
                        const struct fl_dataset *test, struct fl_err *err)
{
    return trainer->ops->set_data != NULL
               ? trainer->ops->set_data(trainer, train, test, err)
               : fl_err_set(err, FL_EUNIMPL, "a program that trains has its own data");
}

int fl_trainer_act_for(struct fl_trainer *trainer, const struct fl_persistent_client *client,
                       struct fl_err *err)
{
    return trainer->ops->act_for != NULL
               ? trainer->ops->act_for(trainer, client, err)
               : fl_err_set(err, FL_EUNIMPL, "the built-in engine is given the data of a client");
}

int fl_trainer_prepare(struct fl_trainer *trainer, const struct fl_train_model *model,
                       struct fl_err *err)
{
    return trainer->ops->prepare(trainer, model, err);
}

int fl_trainer_run(struct fl_trainer *trainer, const struct fl_train_task *task,
                   struct fl_train_result *ret, struct fl_err *err)
{
    struct fl_train_result result = {0};
    int rv = trainer->ops->run(trainer, task, &result, err);

    if (rv != FL_OK) {
        fl_train_result_done(&result);
        return rv;
    }
    *ret = result;
    return FL_OK;
}

uint64_t fl_trainer_samples(const struct fl_trainer *trainer)
{
    return trainer->ops->samples != NULL ? trainer->ops->samples(trainer) : 0;
}

int fl_trainer_summary(struct fl_trainer *trainer, uint64_t seed, struct fl_buf *out,
                       struct fl_err *err)
{
    return trainer->ops->summary(trainer, seed, out, err);
}

int fl_trainer_adapt(struct fl_trainer *trainer, const struct fl_train_task *task,
                     struct fl_evaluation *ret_received, struct fl_evaluation *ret_adapted,
                     struct fl_err *err)
{
    *ret_received = (struct fl_evaluation){0};
    *ret_adapted = (struct fl_evaluation){0};
    return trainer->ops->adapt(trainer, task, ret_received, ret_adapted, err);
}

int fl_trainer_evaluate(struct fl_trainer *trainer, const float *model, atomic_bool *cancel,
                        struct fl_evaluation *ret, struct fl_err *err)
{
    return trainer->ops->evaluate(trainer, model, cancel, ret, err);
}

int fl_trainer_start(struct fl_trainer *trainer, uint64_t *ret_samples, uint64_t *ret_test_samples,
                     struct fl_err *err)
{
    FL_REQUIRE(trainer->ops->start != NULL);
    return trainer->ops->start(trainer, ret_samples, ret_test_samples, err);
}

uint64_t fl_trainer_rest(struct fl_trainer *trainer)
{
    return trainer->ops->rest != NULL ? trainer->ops->rest(trainer) : 0;
}

void fl_trainer_stop(struct fl_trainer *trainer)
{
    if (trainer->ops->stop != NULL) {
        trainer->ops->stop(trainer);
    }
}

void fl_trainer_interrupt(struct fl_trainer *trainer)
{
    if (trainer->ops->interrupt != NULL) {
        trainer->ops->interrupt(trainer);
    }
}
