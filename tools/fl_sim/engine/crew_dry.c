/*
 * What clients tell when nothing is computed: the numbers that time and bytes depend on are as
 * they would be, the others are drawn. How far a unit moved is uniform, so no plan prefers one.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/codec.h"
#include "libfl/strategy/codec_masked.h"
#include "tools/fl_sim/engine/crew_impl.h"

static int train(struct fl_job *job)
{
    const struct fl_crew *crew = job->crew;
    size_t n = fl_layout_units(crew->conf.setup->layout);
    struct fl_job_answer *a = &job->answer;
    struct fl_person person;
    struct fl_rng rng;
    size_t l;

    crew->conf.people->person(crew->conf.people->ctx, job->client, &person);
    fl_rng_key(&rng, crew->conf.seed, FL_RNG_SOLVER, job->task.key.round, job->client);
    a->samples = person.samples;
    a->steps = 1;
    a->train_loss = 1;
    a->n_units = n;
    a->divergence = malloc((n + 1) * sizeof(*a->divergence));
    if (a->divergence == NULL) {
        return FL_ENOMEM;
    }
    for (l = 0; l < n; l++) {
        a->divergence[l] = (float)(0.5 + fl_rng_unit(&rng));
    }
    return FL_OK;
}

/* The coded length of one unit whose entries are normal, and of what goes beside it. */
static int unit_bytes(const struct fl_setup *s, size_t l, uint64_t *ret)
{
    const struct fl_unit *unit = fl_layout_unit(s->layout, l);
    size_t n_sent = fl_solver_names(fl_solver_sends(s->solver, s->solver_options));
    float *delta = malloc((unit->count + 1) * sizeof(*delta));
    struct fl_unit_update in = {.delta = delta};
    struct fl_buf buf;
    struct fl_rng rng;
    size_t i;
    int rv;

    if (delta == NULL) {
        return FL_ENOMEM;
    }
    fl_rng_key(&rng, 1, FL_RNG_TEST, 0, l);
    for (i = 0; i < unit->count; i++) {
        delta[i] = (float)(1e-3 * fl_rng_normal(&rng));
    }
    fl_buf_init(&buf, SIZE_MAX / 2);
    rv = fl_unit_encode(s->codec, s->codec_options, s->layout, l, &in, &buf);
    *ret = buf.len + n_sent * unit->count * sizeof(float);
    fl_buf_done(&buf);
    free(delta);
    return rv;
}

int fl__crew_dry_sizes(struct fl_crew *crew)
{
    size_t n = fl_layout_units(crew->conf.setup->layout);
    size_t l;
    int rv = FL_OK;

    crew->unit_bytes = calloc(n + 1, sizeof(*crew->unit_bytes));
    if (crew->unit_bytes == NULL) {
        return FL_ENOMEM;
    }
    for (l = 0; rv == FL_OK && l < n; l++) {
        rv = unit_bytes(crew->conf.setup, l, &crew->unit_bytes[l]);
    }
    return rv;
}

static void code(struct fl_job *job)
{
    const struct fl_crew *crew = job->crew;
    size_t n = fl_layout_units(crew->conf.setup->layout);
    size_t l;

    for (l = 0; l < n; l++) {
        job->answer.bytes += job->units == NULL || job->units[l] != 0 ? crew->unit_bytes[l] : 0;
    }
}

void fl__crew_dry(struct fl_job *job)
{
    if (job->kind == FL_JOB_TRAIN) {
        job->answer.code = train(job);
    } else if (job->kind == FL_JOB_CODE) {
        code(job);
    }
}
