#include "server/work/aggregation_space.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/broadcast/versions.h"

static float *space_floats(const struct fl_space_map *map)
{
    return calloc(map->numbers + 1, sizeof(float));
}

/* Numbers are 0 where the round starts; entries that are not trained have the model's values. */
static void space_start(const struct fl_space_map *map, const struct fl_space *space,
                        const float *theta, float *z)
{
    size_t l;
    size_t i;

    fl_space_fold(map, theta, z);
    for (l = 0; l < fl_layout_units(space->updates); l++) {
        const struct fl_unit *unit = fl_layout_unit(space->updates, l);

        for (i = 0; i < unit->n_trainable; i++) {
            z[unit->offset + i] = 0;
        }
    }
}

int fl__agg_space_begin(const struct fl_federation *f, const struct fl_model_state *model,
                        uint64_t draw, bool fresh, struct fl__agg_space *ret)
{
    struct fl__agg_space s = {.n_state = f->n_state};
    size_t i;
    int rv = fl_space_map_make(f->space, draw, &s.map);

    if (rv != FL_OK) {
        return rv;
    }
    s.z = space_floats(&s.map);
    s.z_new = space_floats(&s.map);
    if (s.z == NULL || s.z_new == NULL) {
        goto nomem;
    }
    for (i = 0; i < f->n_state; i++) {
        s.state[i] = space_floats(&s.map);
        s.state_new[i] = space_floats(&s.map);
        if (s.state[i] == NULL || s.state_new[i] == NULL) {
            goto nomem;
        }
        if (!fresh) {
            fl_space_fold(&s.map, fl_blob_floats(model->state[i]), s.state[i]);
        }
    }
    space_start(&s.map, f->space, fl_blob_floats(model->theta), s.z);
    *ret = s;
    return FL_OK;
nomem:
    fl__agg_space_done(&s);
    return FL_ENOMEM;
}

int fl__agg_space_finish(const struct fl__agg_space *s, const struct fl_hashed_round *round,
                         const struct fl_model_state *model, struct fl_model_state *next,
                         struct fl_step *ret, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < s->n_state; i++) {
        fl_space_unfold(&s->map, s->state_new[i], fl_blob_fill_floats(next->state[i]));
    }
    return fl_step_make_hashed(round, s->z_new, fl_blob_floats(model->theta),
                               fl_blob_fill_floats(next->theta), ret, err);
}

void fl__agg_space_done(struct fl__agg_space *s)
{
    size_t i;

    for (i = 0; i < s->n_state; i++) {
        free(s->state[i]);
        free(s->state_new[i]);
    }
    free(s->z);
    free(s->z_new);
    fl_space_map_done(&s->map);
    *s = (struct fl__agg_space){.n_state = 0};
}
