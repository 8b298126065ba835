/*
 * upload: fedadp (FedADP as used in the FedLDF paper)
 *
 * Every client sends, of each unit, the neurons that changed most; the number is chosen per unit
 * from the size of the unit's displacement. A neuron j of unit l is one index of the first
 * dimension of its tensors: incoming weights, bias and batch-norm entries, f_l floats of O_l
 * neurons.
 *
 *     I_j = || Delta_{l,j} ||        over trainable entries, as all norms
 *     z_l = || Delta_l || / (|| theta_l || + 1e-12)
 *     r_l = clip(c z_l / mean z, r_min, 1), c by bisection such that
 *           sum_l r_l O_l f_l = rho (d + s)
 *     kept: the ceil(r_l O_l) neurons with the largest I_j, ties to the smaller index
 *
 * The last unit, the output layer, is sent whole and counts towards the budget. The budget is in
 * floats before rounding up to neurons: a client sends exactly sum_l [4 ceil(r_l O_l) f_l +
 * ceil(O_l / 8)] bytes in codec float32, so up to one neuron per unit and the masks are added to 4
 * rho (d + s). Where output layer and r_min alone exceed the budget, every other unit gets r_min.
 * Units that did not change get r_min, or are sent whole when no unit changed (0 / 0). A unit
 * without a common first dimension is one neuron, so sent whole. rho = 1 sends everything: FedAvg.
 *
 * Options: rho, r_min. State: none. Cost: the bytes above; on the client two passes over the update
 * and O(O log O) per unit. plan() runs on the server, mask() on the client's training thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/upload/upload_impl.h"

struct options {
    double rho, r_min;
};

/* Decimal fractions are inexact in binary: 0.07 of 100 is 7 neurons, not 8. */
#define SLACK     1e-12
#define DOUBLINGS 1000 /* more than the ratio of any two norms of floats, and finite */
#define HALVINGS  100

struct need {
    double z;    /* z, later z / mean z */
    double size; /* O_l f_l, floats */
    size_t neurons;
    bool whole; /* output layer */
};

struct ranked {
    double moved;
    size_t neuron;
};

static int fedadp_plan(const struct fl_options *o, const struct fl_upload_input *in,
                       struct fl_rng *rng, uint8_t *grant)
{
    (void)o;
    (void)rng;
    (void)memset(grant, 1, in->n_clients * in->n_units);
    return FL_OK;
}

static double unit_square(const struct fl_layout *layout, size_t l, const float *x)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    double sum = 0;
    size_t i;

    for (i = 0; i < unit->n_tensors; i++) {
        const struct fl_tensor *t = fl_layout_tensor(layout, unit->first_tensor + i);

        sum += !fl_tensor_counts(t) ? 0 : fl_vec_dot(x + t->offset, x + t->offset, t->count);
    }
    return sum;
}

/* FL_ENUMERIC for a model or an update that is not finite. */
static int take_needs(const struct fl_layout *layout, const float *theta, const float *delta,
                      struct need *need)
{
    size_t n = fl_layout_units(layout);
    double sum = 0;
    size_t l;

    for (l = 0; l < n; l++) {
        double moved = sqrt(unit_square(layout, l, delta));
        double length = sqrt(unit_square(layout, l, theta));

        need[l].z = moved / (length + 1e-12);
        need[l].neurons = fl_neurons(layout, l);
        need[l].size = (double)fl_layout_unit(layout, l)->count;
        need[l].whole = l + 1 == n;
        sum += need[l].z;
        if (!isfinite(length) || !isfinite(sum)) {
            return FL_ENUMERIC;
        }
    }
    for (l = 0; l < n; l++) {
        need[l].z = sum > 0 ? need[l].z / (sum / (double)n) : 1;
    }
    return FL_OK;
}

static double fedadp_ratio(const struct need *need, double c, double r_min)
{
    double r = c * need->z;

    if (need->whole || r > 1) {
        return 1;
    }
    return r < r_min ? r_min : r;
}

static double fedadp_count_floats(const struct need *need, size_t n, double c, double r_min)
{
    double sum = 0;
    size_t l;

    for (l = 0; l < n; l++) {
        sum += fedadp_ratio(&need[l], c, r_min) * need[l].size;
    }
    return sum;
}

/* The largest c that bisection finds within the budget. */
static double fedadp_find_scale(const struct need *need, size_t n, double budget, double r_min)
{
    double low = 0;
    double high = 1;
    unsigned i;

    for (i = 0; i < DOUBLINGS && fedadp_count_floats(need, n, high, r_min) <= budget; i++) {
        low = high;
        high *= 2;
    }
    for (i = 0; i < HALVINGS; i++) {
        double c = low + (high - low) / 2;

        if (fedadp_count_floats(need, n, c, r_min) <= budget) {
            low = c;
        } else {
            high = c;
        }
    }
    return low;
}

static int fedadp_compare_rank(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;

    if (x->moved > y->moved) {
        return -1;
    }
    if (x->moved < y->moved) {
        return 1;
    }
    return (x->neuron > y->neuron) - (x->neuron < y->neuron);
}

/* Mark the `n` neurons that changed most; `rank` is scratch of O_l entries. */
static void keep_most(const struct fl_layout *layout, size_t l, const float *delta, size_t n,
                      struct ranked *rank, uint8_t *keep)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    size_t rows = fl_neurons(layout, l);
    size_t i;
    size_t j;

    for (j = 0; j < rows; j++) {
        rank[j] = (struct ranked){.neuron = j};
    }
    for (i = 0; i < unit->n_tensors; i++) {
        const struct fl_tensor *t = fl_layout_tensor(layout, unit->first_tensor + i);
        size_t width = t->count / rows;

        for (j = 0; fl_tensor_counts(t) && j < rows; j++) {
            const float *row = delta + t->offset + j * width;

            rank[j].moved += fl_vec_dot(row, row, width);
        }
    }
    qsort(rank, rows, sizeof(*rank), fedadp_compare_rank);
    for (j = 0; j < n; j++) {
        keep[rank[j].neuron] = 1;
    }
}

static size_t kept_neurons(const struct need *need, double r)
{
    double n = ceil(r * (double)need->neurons * (1 - SLACK));

    return n < 1 ? 1 : n < (double)need->neurons ? (size_t)n : need->neurons;
}

static int fedadp_mask(const struct fl_options *o, const struct fl_layout *layout,
                       const float *theta, const float *delta, uint8_t *keep)
{
    const struct options *v = fl_options_values(o);
    size_t n_units = fl_layout_units(layout);
    size_t total = fl_neurons_total(layout);
    double budget = v->rho * (double)fl_layout_count(layout);
    bool all = budget >= (double)fl_layout_count(layout);
    double r_min = v->r_min;
    struct need *need = calloc(n_units, sizeof(*need));
    struct ranked *rank = calloc(total, sizeof(*rank));
    double c;
    size_t l;
    int rv = need != NULL && rank != NULL ? take_needs(layout, theta, delta, need) : FL_ENOMEM;

    if (rv != FL_OK) {
        goto done;
    }
    c = all ? 0 : fedadp_find_scale(need, n_units, budget, r_min);
    (void)memset(keep, 0, total);
    for (l = 0; l < n_units; l++) {
        double r = all ? 1 : fedadp_ratio(&need[l], c, r_min);

        keep_most(layout, l, delta, kept_neurons(&need[l], r), rank, keep);
        keep += need[l].neurons;
    }
done:
    free(need);
    free(rank);
    return rv;
}

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, rho), .def = "0.2", .min = 0, .max = 1,
     .help = "Share of the model's numbers that each client sends, output layer included."},
    {FL_OPT(struct options, FLOAT, r_min), .def = "0.05", .min = 0, .max = 1,
     .help = "Smallest share of a unit's neurons that is sent, at least one neuron."},
    FL_OPT_END_OF(struct options),
};

const struct fl_upload_ops fl_upload_fedadp = {
    .policy =
        {
            .name = "fedadp",
            .help = "each client sends the neurons that changed most",
            .source = "adaptive neuron pruning, FedADP as used by FedLDF",
            .options = options,
        },
    .partial = true,
    .plan = fedadp_plan,
    .mask = fedadp_mask,
};
