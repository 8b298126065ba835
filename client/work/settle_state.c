#include "client/work/settle_state.h"

#include <stdlib.h>

#include "client/store/cache.h"
#include "libfl/strategy/broadcast/versions.h"

/* Can what changed since an earlier model be fetched instead of this one? */
static bool settling_finds(const struct fl_worker *worker, const struct fl_setup *setup,
                           const struct fl_input *model)
{
    return fl_broadcast_sends_moves(setup->broadcast) && model->has_digest &&
           worker->state_dir != NULL;
}

bool fl_settling_begin(const struct fl_worker *worker, struct fl_setup *setup,
                       struct fl_inputs *listed, const struct fl_task *task,
                       struct fl_settling *ret)
{
    const char *name = setup->solver->collection;
    const struct fl_input *in = name != NULL ? fl_inputs_find(listed, name) : NULL;
    bool cached = in != NULL && in->has_digest && in->bytes > 0;

    *ret = (struct fl_settling){.setup = fl_setup_ref(setup),
                                .task = task->key,
                                .counted = task->counted,
                                .epoch = task->epoch};
    if (cached) {
        ret->cached = *in;
    }
    in = fl_inputs_find(listed, "model");
    ret->finds = in != NULL && settling_finds(worker, setup, in);
    return cached || ret->finds || fl_client_state_wanted(worker->keeps);
}

bool fl_settling_begin_model(const struct fl_worker *worker, struct fl_setup *setup,
                             const struct fl_input *payload, struct fl_settling *ret)
{
    *ret = (struct fl_settling){.setup = fl_setup_ref(setup),
                                .evaluation = true,
                                .finds = settling_finds(worker, setup, payload)};
    return ret->finds;
}

/* --- the model that this client holds --- */

/* The first model of the federation, which no client has to download. FL_ENOENT: it is not drawn.
 */
static int settling_draw(const struct fl_setup *setup, const char *state_dir,
                         uint8_t ret[FL_DIGEST_SIZE])
{
    const struct fl_wire_welcome *w = &setup->welcome;
    size_t n = fl_layout_count(setup->layout);
    const struct fl_net_spec spec = fl_setup_net(setup);
    float *model;
    int rv;

    if (w->model_seed == 0 || w->n_layers == 0) {
        return FL_ENOENT;
    }
    model = malloc(n * sizeof(*model) + 1);
    if (model == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_net_draw(&spec, w->model_seed, model, n, NULL); /* May differ from the layout. */
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_broadcast_place(setup->broadcast, setup->broadcast_options, setup->layout, model, NULL);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_versions_digest(setup->layout, model, ret);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_cache_save(state_dir, FL_CACHE_MODEL, model, n * sizeof(*model), NULL);
done:
    free(model);
    return rv;
}

static void settling_find(struct fl_settling *s, const char *state_dir)
{
    size_t bytes = fl_layout_count(s->setup->layout) * sizeof(float);

    s->has_held = fl_cache_find(state_dir, FL_CACHE_MODEL, bytes, s->held) == FL_OK ||
                  settling_draw(s->setup, state_dir, s->held) == FL_OK;
}

int fl_settling_run(struct fl_settling *s, const struct fl_worker *worker, struct fl_err *err)
{
    int rv;

    if (s->finds) {
        settling_find(s, worker->state_dir);
    }
    if (s->evaluation) {
        return FL_OK;
    }
    rv = fl_client_state_settle(worker->keeps, s->task, s->counted, s->epoch, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (s->setup->personal->own) {
        rv = fl_client_state_load(worker->keeps, FL_KEEP_PERSONAL, &s->own, err);
        if (rv != FL_OK && rv != FL_ENOENT) {
            return rv;
        }
    }
    if (s->cached.name[0] != '\0' && worker->state_dir != NULL) {
        /* Not found: it is fetched. */
        s->cached.cached = fl_cache_load(worker->state_dir, FL_CACHE_SUMMARIES, s->cached.digest,
                                         (size_t)s->cached.bytes, &s->cached.data) == FL_OK;
    }
    return FL_OK;
}

static void settling_hold(const struct fl_settling *s, struct fl_inputs *chosen)
{
    size_t i;

    for (i = 0; i < chosen->n; i++) {
        fl_input_hold(&chosen->list[i], s->has_held ? s->held : NULL);
    }
}

int fl_settling_choose_model(const struct fl_settling *s, const struct fl_input *payload,
                             struct fl_inputs *inputs, struct fl_err *err)
{
    int rv = fl_inputs_choose_model(s->setup, payload, inputs, err);

    if (rv != FL_OK) {
        return rv;
    }
    settling_hold(s, inputs);
    return FL_OK;
}

int fl_settling_choose(struct fl_settling *s, struct fl_inputs *listed, const struct fl_log *log,
                       struct fl_inputs *inputs, struct fl_err *err)
{
    struct fl_inputs chosen;
    int rv = fl_inputs_choose(s->setup, listed, s->own != NULL, log, &chosen, err);

    if (rv != FL_OK) {
        return rv;
    }
    settling_hold(s, &chosen);
    chosen.round = s->task.round;
    fl_inputs_reuse(&chosen, inputs);
    *inputs = chosen;
    if (s->cached.cached) {
        struct fl_input *in = fl_inputs_find(inputs, s->cached.name);

        if (in != NULL && in->data == NULL) {
            in->data = s->cached.data;
            in->have = in->bytes;
            in->cached = true;
            s->cached.data = NULL;
        }
    }
    if (!fl_inputs_find(inputs, "personal_model") && !fl_inputs_find(inputs, "model")) {
        inputs->own = s->own;
        s->own = NULL;
    }
    return FL_OK;
}

void fl_settling_done(struct fl_settling *settling)
{
    fl_setup_unref(settling->setup);
    free(settling->own);
    free(settling->cached.data);
    *settling = (struct fl_settling){.setup = NULL};
}
