/*
 * Training in a hashed space (libfl/strategy/space/space.h): after each step of the solver the
 * parameters go to the nearest point of the space that contains the received model. The solver
 * needs to know nothing of it. Runs on the training thread.
 */
#include <stdlib.h>
#include <string.h>

#include "client/train/builtin_impl.h"

/* Entries that are the only ones of their number stay as they are. */
static void space_export_places(const struct fl_space_map *map, const struct fl_layout *layout,
                                float *exported)
{
    size_t t;
    size_t i;

    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            int32_t place = map->place[i];
            bool shares = map->share[(place < 0 ? -place : place) - 1] < 1;

            exported[i] = fl_tensor_counts(tensor) && shares ? (float)place : 0;
        }
    }
}

int fl__builtin_space_begin(struct fl__builtin *b, const struct fl_train_task *task,
                            struct fl__builtin_space *ret)
{
    const struct fl_layout *layout = fl_net_layout(b->net);
    size_t n = fl_net_block(b->net);
    struct fl__builtin_space s = {.steps = {.n = n}};
    float *exported = NULL;
    float *internal = NULL;
    size_t i;
    int rv = FL_OK;

    *ret = s;
    if (task->space == NULL) {
        return FL_OK;
    }
    rv = fl_space_map_make(task->space, task->round, &s.map);
    if (rv != FL_OK) {
        return rv;
    }
    s.steps.numbers = s.map.numbers;
    s.steps.share = s.map.share;
    s.steps.place = malloc(n * sizeof(*s.steps.place));
    s.steps.start = malloc(n * sizeof(*s.steps.start));
    s.steps.means = malloc((s.map.numbers + 1) * sizeof(*s.steps.means));
    exported = malloc(s.map.entries * sizeof(*exported));
    internal = malloc(n * sizeof(*internal));
    if (s.steps.place == NULL || s.steps.start == NULL || s.steps.means == NULL ||
        exported == NULL || internal == NULL)
    {
        fl__builtin_space_done(&s);
        rv = FL_ENOMEM;
        goto done;
    }
    space_export_places(&s.map, layout, exported);
    fl_net_import(b->net, internal, exported);
    for (i = 0; i < n; i++) {
        /* Below 2^24: exact. */
        s.steps.place[i] =
            internal[i] < 0 ? (uint32_t)-internal[i] << 1 | 1 : (uint32_t)internal[i] << 1;
    }
    (void)memcpy(s.steps.start, fl_net_params(b->net), n * sizeof(*s.steps.start));
    s.used = true;
    *ret = s;
done:
    free(exported);
    free(internal);
    return rv;
}

void fl__builtin_space_done(struct fl__builtin_space *s)
{
    free(s->steps.place);
    free(s->steps.start);
    free(s->steps.means);
    fl_space_map_done(&s->map);
    *s = (struct fl__builtin_space){.used = false};
}
