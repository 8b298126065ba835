/*
 * Measures how far the batch-norm statistics of the clients are apart, from a second pass over the
 * uploads of a round. Runs on the aggregation's worker thread; it only measures, the advice is
 * logged by its caller.
 */
#include "server/work/norms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Epsilon of the batch-norm layers. */
#define EPSILON 1e-5

struct sums {
    const struct fl_layout *layout;
    float *unit;          /* update of one client */
    double *sum, *square; /* over clients, one entry per channel of the running means */
    double apart;         /* sum over the channels so far */
    size_t channels;
};

/* The running variance of a running mean ("bn1.running_var" of "bn1.running_mean"); NULL: not
   shared, or no running mean. */
static const struct fl_tensor *variance_of(const struct fl_layout *layout,
                                           const struct fl_tensor *mean)
{
    const struct fl_tensor *var;
    char name[FL_NAME_MAX];

    if (mean->local || !mean->buffer || !fl_str_ends_with(mean->name, ".running_mean")) {
        return NULL;
    }
    (void)snprintf(name, sizeof(name), "%.*srunning_var",
                   (int)(strlen(mean->name) - strlen("running_mean")), mean->name);
    var = fl_layout_find(layout, name);
    return var != NULL && var->count == mean->count ? var : NULL;
}

static bool unit_has_norm(const struct fl_layout *layout, size_t l)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    size_t t;

    for (t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
        if (variance_of(layout, fl_layout_tensor(layout, t)) != NULL) {
            return true;
        }
    }
    return false;
}

static void norms_add_client(const struct sums *s, size_t l)
{
    const struct fl_unit *unit = fl_layout_unit(s->layout, l);
    size_t t;
    size_t i;

    for (t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
        const struct fl_tensor *mean = fl_layout_tensor(s->layout, t);
        size_t at = mean->offset - unit->offset;

        for (i = 0; variance_of(s->layout, mean) != NULL && i < mean->count; i++) {
            s->sum[at + i] += (double)s->unit[at + i];
            s->square[at + i] += (double)s->unit[at + i] * (double)s->unit[at + i];
        }
    }
}

/* Updates are as far apart as the running means that they lead to. */
static void take_unit(struct sums *s, size_t l, double n, const float *theta)
{
    const struct fl_unit *unit = fl_layout_unit(s->layout, l);
    size_t t;
    size_t i;

    for (t = unit->first_tensor; t < unit->first_tensor + unit->n_tensors; t++) {
        const struct fl_tensor *mean = fl_layout_tensor(s->layout, t);
        const struct fl_tensor *var = variance_of(s->layout, mean);
        size_t at = mean->offset - unit->offset;

        for (i = 0; var != NULL && i < mean->count; i++) {
            double within = (double)theta[var->offset + i] + EPSILON;
            double between = (s->square[at + i] - s->sum[at + i] * s->sum[at + i] / n) / (n - 1);

            s->apart += within > 0 && between > 0 ? between / within : 0;
            s->channels++;
        }
    }
}

static void measure_unit(struct sums *s, struct fl_spool_reader *const *readers, size_t n, size_t l,
                         const float *theta)
{
    size_t count = fl_layout_unit(s->layout, l)->count;
    size_t senders = 0;
    size_t k;

    (void)memset(s->sum, 0, count * sizeof(*s->sum));
    (void)memset(s->square, 0, count * sizeof(*s->square));
    for (k = 0; k < n; k++) {
        if (fl_spool_reader_floats(readers[k], l, s->unit)) {
            norms_add_client(s, l);
            senders++;
        }
    }
    if (senders >= 2) {
        take_unit(s, l, (double)senders, theta);
    }
}

/* Entries of the largest unit with a batch-norm; 0: none has one. */
static size_t norms_longest_unit(const struct fl_layout *layout)
{
    size_t most = 0;
    size_t l;

    for (l = 0; l < fl_layout_units(layout); l++) {
        size_t count = fl_layout_unit(layout, l)->count;

        most = count > most && unit_has_norm(layout, l) ? count : most;
    }
    return most;
}

int fl_norms_apart(const struct fl_layout *layout, struct fl_spool_reader *const *readers, size_t n,
                   const float *theta, double *ret)
{
    size_t most = norms_longest_unit(layout);
    struct sums s = {.layout = layout};
    bool memory;
    size_t l;

    *ret = 0;
    if (most == 0 || n < 2) {
        return FL_OK;
    }
    s.unit = malloc(most * sizeof(*s.unit));
    s.sum = malloc(most * sizeof(*s.sum));
    s.square = malloc(most * sizeof(*s.square));
    memory = s.unit != NULL && s.sum != NULL && s.square != NULL;
    for (l = 0; memory && l < fl_layout_units(layout); l++) {
        if (unit_has_norm(layout, l)) {
            measure_unit(&s, readers, n, l, theta);
        }
    }
    *ret = s.channels > 0 ? s.apart / (double)s.channels : 0;
    free(s.unit);
    free(s.sum);
    free(s.square);
    return memory ? FL_OK : FL_ENOMEM;
}
