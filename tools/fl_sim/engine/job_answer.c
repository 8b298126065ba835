/* The answers of jobs (worker_pool.h): norms of an upload travel in the place of divergences. */
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/engine/worker_pool.h"

#define UNIT_FLOATS (sizeof(struct fl_unit_norm) / sizeof(float))

void fl_job_answer_done(struct fl_job_answer *answer)
{
    free(answer->divergence);
    answer->divergence = NULL;
    answer->n_units = 0;
}

void fl_job_answer_coded(struct fl_job_answer *answer, const struct fl_norms *norms, size_t n_units)
{
    answer->n_units = n_units * UNIT_FLOATS;
    answer->divergence = (float *)(void *)norms->unit;
    (void)memcpy(answer->rms, norms->rms, sizeof(answer->rms));
}

struct fl_norms fl_job_answer_norms(const struct fl_job_answer *answer, size_t n_units)
{
    struct fl_norms norms = {.unit = NULL};

    if (answer->n_units == n_units * UNIT_FLOATS) {
        norms.unit = (struct fl_unit_norm *)(void *)answer->divergence;
    }
    (void)memcpy(norms.rms, answer->rms, sizeof(norms.rms));
    return norms;
}
