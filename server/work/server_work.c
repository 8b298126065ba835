#include "server/work/server_work.h"

#include <stdlib.h>

void fl_federation_name_states(struct fl_federation *federation)
{
    size_t i;

    federation->n_state = fl_strategy_states(federation->strategy);
    FL_REQUIRE(federation->n_state <= FL_AGG_MAX_STATE); /* limited by the built-in policies */
    for (i = 0; i < federation->n_state; i++) {
        federation->state_names[i] = fl_strategy_state_name(federation->strategy, i);
    }
}

int fl_model_state_new(const struct fl_federation *federation, struct fl_model_state *model)
{
    size_t bytes = fl_federation_floats(federation) * sizeof(float);
    size_t i;
    int rv = fl_blob_create(bytes, &model->theta);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < federation->n_state; i++) {
        rv = fl_blob_create(bytes, &model->state[i]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_model_state_code(const struct fl_federation *federation, struct fl_model_state *model)
{
    const struct fl_broadcast_ops *broadcast = federation->strategy->broadcast;
    const struct fl_layout *layout = federation->layout;
    struct fl_blob *coded = NULL;
    int rv;

    fl_blob_unref(model->coded);
    model->coded = NULL;
    if (!fl_broadcast_codes(broadcast)) {
        return FL_OK;
    }
    rv = fl_blob_create((size_t)fl_broadcast_bytes(broadcast, layout), &coded);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_broadcast_encode(broadcast, layout, fl_blob_floats(model->theta), fl_blob_fill(coded));
    if (rv != FL_OK) {
        fl_blob_unref(coded);
        return rv;
    }
    model->coded = coded;
    return FL_OK;
}

/* Of moves that are kept in memory: those of small models for thousands of rounds. */
#define MOVES_LEAST ((size_t)1 << 20)

/* Steps beyond `history`, and beyond the bytes of the model, become part of the first one. */
static int model_state_merge(const struct fl_federation *federation, int64_t history,
                             struct fl_versions **versions)
{
    size_t bytes = fl_federation_floats(federation) * sizeof(float);
    size_t n =
        fl_versions_surplus(*versions, (size_t)history, bytes > MOVES_LEAST ? bytes : MOVES_LEAST);
    struct fl_versions *fewer = NULL;
    int rv;

    if (n == 0) {
        return FL_OK;
    }
    rv = fl_versions_merge(*versions, federation->layout, n, &fewer);
    if (rv != FL_OK) {
        return rv;
    }
    fl_versions_unref(*versions);
    *versions = fewer;
    return FL_OK;
}

int fl_model_state_step(const struct fl_federation *federation, const struct fl_model_state *old,
                        uint64_t round, struct fl_step *made, struct fl_model_state *model,
                        struct fl_err *err)
{
    const struct fl_strategy *s = federation->strategy;
    const struct fl_options *o = s->options[FL_COMPONENT_BROADCAST];
    const struct fl_broadcast_versions *v;
    struct fl_versions *versions = NULL;
    int rv = FL_OK;

    if (!fl_broadcast_sends_moves(s->broadcast)) {
        return FL_OK;
    }
    v = fl_options_values(o);
    if (federation->space == NULL) {
        rv = fl_step_make(federation->layout, fl_blob_floats(old->theta),
                          fl_blob_floats(model->theta), made, err);
    }
    made->round = round;
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_versions_add(fl_differences_versions(old->differences), made, &versions);
    if (rv != FL_OK) {
        return rv;
    }
    rv = model_state_merge(federation, v->history, &versions);
    if (rv != FL_OK) {
        fl_versions_unref(versions);
        return rv;
    }
    return fl_differences_create(federation->layout, versions, model->theta, &model->differences);
}

void fl_model_state_done(struct fl_model_state *model)
{
    size_t i;

    fl_differences_unref(model->differences);
    fl_blob_unref(model->theta);
    fl_blob_unref(model->coded);
    fl_blob_unref(model->kept);
    for (i = 0; i < FL_AGG_MAX_STATE; i++) {
        fl_blob_unref(model->state[i]);
    }
    *model = (struct fl_model_state){0};
}

void fl_outcome_done(struct fl_outcome *outcome)
{
    fl_model_state_done(&outcome->model);
    fl_personal_models_close(outcome->personal_models);
    outcome->personal_models = NULL;
    fl_models_draft_free(outcome->draft);
    outcome->draft = NULL;
    free(outcome->mixing);
    outcome->mixing = NULL;
}
