#include "client/work/settle_state.h"

#include <stdlib.h>

#include "client/store/cache.h"

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
    return cached || fl_client_state_wanted(worker->keeps);
}

int fl_settling_run(struct fl_settling *s, const struct fl_worker *worker, struct fl_err *err)
{
    int rv = fl_client_state_settle(worker->keeps, s->task, s->counted, s->epoch, err);

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
        s->cached.cached = fl_cache_load(worker->state_dir, s->cached.digest,
                                         (size_t)s->cached.bytes, &s->cached.data) == FL_OK;
    }
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
