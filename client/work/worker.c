/*
 * Prepares a worker (trainer and client state) for a setup: lists the client state that the
 * components need, and describes the model to the trainer. Called on the loop while the training
 * thread is idle. It does not train.
 */

#include "client/work/worker.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/codec/codec_residual.h"

uint64_t fl_worker_seed(const char *name, uint64_t configured)
{
    return configured != 0 ? configured : fl_hash64(name, strlen(name));
}

void fl_worker_done(struct fl_worker *worker)
{
    fl_trainer_free(worker->trainer);
    fl_client_state_free(worker->keeps);
    fl_setup_unref(worker->setup);
    *worker = (struct fl_worker){.seed = 0};
}

int fl_kept_name(const struct fl_solver_ops *solver, const char *name, char ret[FL_NAME_MAX])
{
    int n = snprintf(ret, FL_NAME_MAX, "%s.%s", solver->policy.name, name);

    return n > 0 && n < FL_NAME_MAX ? FL_OK : FL_ELIMIT;
}

/* Lists the client state that the components of `s` keep between rounds. */
static int worker_wanted_state(const struct fl_setup *s,
                               struct fl_client_state_spec specs[FL_CLIENT_STATE_MAX],
                               size_t *ret_n)
{
    size_t local = fl_layout_local(s->layout);
    const struct {
        bool wanted;
        const char *name;
        bool per_unit;
        size_t floats;
    } own[] = {{s->welcome.wants_previous_dot, FL_KEEP_PREVIOUS, false, 0},
               {fl_codec_keeps_residual(s->codec, s->codec_options), FL_KEEP_RESIDUAL, true, 0},
               {s->welcome.training.client_momentum > 0, FL_KEEP_MOMENTUM, true, 0},
               {fl_personal_keeps_model(s->personal), FL_KEEP_PERSONAL, false, 0},
               {s->personal->own, FL_KEEP_ANCHOR, false, 0},
               {local > 0, FL_KEEP_LOCAL, false, local}};
    size_t n_solver = fl_solver_keeps(s->solver->keeps);
    size_t n = 0;
    size_t i;
    int rv;

    if (n_solver + 5 + (local > 0) > FL_CLIENT_STATE_MAX) {
        return FL_ELIMIT;
    }
    (void)memset(specs, 0, FL_CLIENT_STATE_MAX * sizeof(*specs));
    for (i = 0; i < n_solver; i++, n++) {
        const struct fl_keep *keep = &s->solver->keeps[i];

        specs[n].per_unit = keep->per_unit;
        specs[n].summed = fl_solver_sums_kept(s->solver);
        rv = fl_kept_name(s->solver, keep->name, specs[n].name);
        if (rv != FL_OK) {
            return rv;
        }
    }
    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (!own[i].wanted) {
            continue;
        }
        specs[n].per_unit = own[i].per_unit;
        specs[n].floats = own[i].floats;
        rv = fl_str_copy(specs[n++].name, FL_NAME_MAX, own[i].name);
        if (rv != FL_OK) {
            return rv;
        }
    }
    *ret_n = n;
    return FL_OK;
}

static int prepare_keeps(struct fl_client_state *keeps, const struct fl_setup *s,
                         struct fl_err *err)
{
    struct fl_client_state_spec specs[FL_CLIENT_STATE_MAX];
    const struct fl_client_state_home home = {s->welcome.federation, s->layout,
                                              s->welcome.state_generation};
    size_t n = 0;
    int rv = worker_wanted_state(s, specs, &n);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_client_state_bind(keeps, &home, specs, n, err);
}

int fl_worker_prepare_trainer(struct fl_trainer *trainer, const struct fl_setup *s,
                              struct fl_err *err)
{
    const struct fl_wire_welcome *w = &s->welcome;
    struct fl_train_model model = {.net = fl_setup_net(s),
                                   .solver = s->solver,
                                   .solver_options = s->solver_options,
                                   .epochs = w->training.epochs,
                                   .steps = w->training.steps,
                                   .batch_size = w->training.batch_size,
                                   .momentum = w->training.momentum,
                                   .weight_decay = w->training.weight_decay,
                                   .personal = s->personal,
                                   .personal_options = s->personal_options,
                                   .space = s->space,
                                   .metrics = s->metrics};
    struct fl_layout *plain = NULL;
    int rv = FL_OK;

    /* The trainer gets a layout without local marks: it trains the whole model in any case. */
    if (fl_layout_local(s->layout) > 0) {
        rv = fl_layout_copy(s->layout, NULL, NULL, &plain, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    model.layout = plain != NULL ? plain : s->layout;
    rv = fl_trainer_prepare(trainer, &model, err);
    fl_layout_free(plain);
    return rv;
}

int fl_worker_prepare(struct fl_worker *worker, struct fl_setup *setup, struct fl_err *err)
{
    int rv = prepare_keeps(worker->keeps, setup, err);

    (void)fl_setup_ref(setup); /* Before the other is released: both may be the same. */
    fl_setup_unref(worker->setup);
    worker->setup = setup;
    if (rv != FL_OK) {
        goto fail;
    }
    if (worker->trainer != NULL) {
        rv = fl_worker_prepare_trainer(worker->trainer, setup, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    return FL_OK;
fail:
    fl_worker_forget(worker);
    return rv;
}

void fl_worker_forget(struct fl_worker *worker)
{
    fl_client_state_unbind(worker->keeps);
    fl_setup_unref(worker->setup);
    worker->setup = NULL;
}

const char *fl_worker_unfit(const struct fl_worker *worker, const struct fl_result *result)
{
    const char *why = result != NULL ? fl_setup_unfit(worker->setup, result) : NULL;

    if (result != NULL && why == NULL &&
        (result->pending != fl_client_state_wanted(worker->keeps) ||
         (result->pending && !fl_client_state_pending(worker->keeps, result->key))))
    {
        why = "its client state is missing";
    }
    return why;
}
