/*
 * Training in a hashed space (libfl/strategy/space/space.h): after each step of the solver the
 * parameters go to the nearest point of the space that contains the received model. The solver
 * needs to know nothing of it. Runs on the thread that trains.
 */
#include "libfl/strategy/space/space_training.h"

#include <stdlib.h>
#include <string.h>

/* In the network's order, which the network alone knows. */
static int space_place(const struct fl_net *net, struct fl_space_training *s)
{
    float *exported = malloc(s->map.entries * sizeof(*exported));
    float *internal = malloc(s->steps.n * sizeof(*internal));
    int rv = FL_ENOMEM;
    size_t i;

    if (exported == NULL || internal == NULL) {
        goto done;
    }
    fl_space_places(&s->map, fl_net_layout(net), exported);
    fl_net_import(net, internal, exported);
    for (i = 0; i < s->steps.n; i++) {
        s->steps.place[i] = (uint32_t)internal[i]; /* Exact: FL_SPACE_MAX. */
    }
    rv = FL_OK;
done:
    free(exported);
    free(internal);
    return rv;
}

int fl_space_training_begin(struct fl_net *net, const struct fl_space *space, uint64_t draw,
                            struct fl_space_training *s)
{
    size_t n = fl_net_block(net);
    int rv = fl_space_map_make(space, draw, &s->map);

    if (rv != FL_OK) {
        return rv;
    }
    s->steps = (struct fl_space_steps){.map = &s->map, .n = n};
    s->steps.place = malloc(n * sizeof(*s->steps.place));
    s->steps.start = malloc(n * sizeof(*s->steps.start));
    s->steps.means = malloc((s->map.numbers + 1) * sizeof(*s->steps.means));
    if (s->steps.place == NULL || s->steps.start == NULL || s->steps.means == NULL) {
        rv = FL_ENOMEM;
        goto fail;
    }
    rv = space_place(net, s);
    if (rv != FL_OK) {
        goto fail;
    }
    (void)memcpy(s->steps.start, fl_net_params(net), n * sizeof(*s->steps.start));
    return FL_OK;
fail:
    fl_space_training_done(s);
    return rv;
}

void fl_space_training_done(struct fl_space_training *s)
{
    free(s->steps.place);
    free(s->steps.start);
    free(s->steps.means);
    fl_space_map_done(&s->map);
    *s = (struct fl_space_training){.steps = {.n = 0}};
}
