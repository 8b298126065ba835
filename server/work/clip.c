#include "server/work/clip.h"

#include <math.h>
#include <stdlib.h>

#include "libfl/base/sorted.h"
#include "libfl/num/vec.h"

/* With fewer updates no one can be called too long. */
#define CLIP_LEAST 3

/* The limit of so many norms; those that are zero are no measure. `scratch` [n]. 0: none. */
static double clip_limit(const double *norms, size_t n, double clip, double *scratch)
{
    size_t n_norms = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        if (norms[i] > 0.0) {
            scratch[n_norms++] = norms[i];
        }
    }
    return clip > 0 && n_norms >= CLIP_LEAST ? clip * fl_lower_median(scratch, n_norms) : 0;
}

size_t fl_clip_factors(const struct fl_participant_rec *parts, size_t n, double clip,
                       double *factors)
{
    size_t n_norms = 0;
    size_t clipped = 0;
    double limit;
    size_t i;

    for (i = 0; i < n; i++) {
        if (parts[i].rms[0] > 0.0) {
            factors[n_norms++] = parts[i].rms[0];
        }
    }
    limit = clip_limit(factors, n_norms, clip, factors);
    for (i = 0; i < n; i++) {
        bool over = limit > 0 && parts[i].rms[0] > limit;

        factors[i] = over ? limit / parts[i].rms[0] : 1;
        clipped += over;
    }
    return clipped;
}

/* Of the trainable entries of a unit; -1: not sent whole. */
static double clip_unit_norm(const struct fl_layout *layout, struct fl_spool_reader *reader,
                             size_t l, float *values)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    double sum = 0;
    size_t t;

    if (!fl_spool_reader_floats(reader, l, values)) {
        return -1;
    }
    for (t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        if (fl_tensor_counts(tensor)) {
            const float *x = values + (tensor->offset - unit->offset);

            sum += fl_vec_dot(x, x, tensor->count);
        }
    }
    return sqrt(sum);
}

struct clip_units {
    const struct fl_layout *layout;
    struct fl_spool_reader *const *readers;
    size_t n;
    double clip;
    double *norms, *scratch; /* [n] */
    float *values;           /* of the largest unit */
    double *factors;
};

static void clip_unit(const struct clip_units *c, size_t l)
{
    size_t n_units = fl_layout_units(c->layout);
    double limit;
    size_t k;

    for (k = 0; k < c->n; k++) {
        c->norms[k] = clip_unit_norm(c->layout, c->readers[k], l, c->values);
    }
    limit = clip_limit(c->norms, c->n, c->clip, c->scratch);
    for (k = 0; limit > 0 && k < c->n; k++) {
        if (c->norms[k] >= 0) {
            c->factors[k * n_units + l] = c->norms[k] > limit ? limit / c->norms[k] : 1;
        }
    }
}

/* The smallest factor of what each client sent; returns how many are below 1. */
static size_t clip_least(const struct clip_units *c, double *least)
{
    size_t n_units = fl_layout_units(c->layout);
    size_t clipped = 0;
    size_t k;
    size_t l;

    for (k = 0; k < c->n; k++) {
        least[k] = 1;
        for (l = 0; l < n_units; l++) {
            if (fl_spool_reader_units(c->readers[k])[l] != 0) {
                least[k] = fmin(least[k], c->factors[k * n_units + l]);
            }
        }
        clipped += least[k] < 1;
    }
    return clipped;
}

int fl_clip_units(const struct fl_layout *layout, struct fl_spool_reader *const *readers, size_t n,
                  double clip, double *factors, double *least, size_t *ret_clipped)
{
    struct clip_units c = {
        .layout = layout, .readers = readers, .n = n, .clip = clip, .factors = factors};
    size_t n_units = fl_layout_units(layout);
    size_t longest = 0;
    bool memory;
    size_t l;

    for (l = 0; l < n_units; l++) {
        size_t count = fl_layout_unit(layout, l)->count;

        longest = count > longest ? count : longest;
    }
    c.norms = calloc(n + 1, sizeof(*c.norms));
    c.scratch = calloc(n + 1, sizeof(*c.scratch));
    c.values = calloc(longest + 1, sizeof(*c.values));
    memory = c.norms != NULL && c.scratch != NULL && c.values != NULL;
    for (l = 0; memory && l < n_units; l++) {
        clip_unit(&c, l);
    }
    free(c.norms);
    free(c.scratch);
    free(c.values);
    *ret_clipped = memory ? clip_least(&c, least) : 0;
    return memory ? FL_OK : FL_ENOMEM;
}
