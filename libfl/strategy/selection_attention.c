/*
 * selection: attention (AdaFL, eq. 1 and 2; docs/formulas.md#selection-by-attention)
 *
 * The server keeps one attention per client and draws in proportion to it, without
 * replacement. After a round the attention inside the responders R_t moves towards
 * their share of the distance, their total stays:
 *
 *     A = sum_{k in R_t} a_k,  a_i <- alpha a_i + (1 - alpha) (d_i / sum d) A
 *
 * Clients outside R_t keep theirs, so a silent client is simply unselected. d_i is the
 * distance of the client's model to the new global model ("new"), or to the broadcast
 * one ("old"), which the reported divergences give without extra bytes and which is
 * the only one known under partial uploads.
 *
 * Options: alpha, floor, reference. State: one double a client.
 * Scores are attentions times a common factor, which nobody needs to know.
 * Cost: O(n log n) a draw, O(responders) an update. Aggregation weights are untouched.
 */
#include <math.h>
#include <string.h>

#include "libfl/strategy/selection.h"
#include "libfl/strategy/selection_impl.h"

enum reference { AUTO, NEW, OLD };

struct options {
    double alpha, floor;
    enum reference reference;
};

static double sum_of(const double *x, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum;
}

static bool usable(double sum)
{
    return sum > 0 && isfinite(sum);
}

/*
 * The newcomer gets its share of the samples and the others give way in
 * proportion: its attention is samples / (samples + others' samples). Attention is a share of the
 * scores, so the others' scores stay. Who comes first, or after nobody with a score, begins with
 * its samples as the unit.
 */
static double join(const struct fl_options *o, double samples, const struct fl_score_sums *others)
{
    (void)o;
    return usable(others->scores) && usable(others->samples)
               ? samples * (others->scores / others->samples)
               : samples;
}

static int pick(const struct fl_options *o, const struct fl_select_input *in, struct fl_rng *rng,
                uint32_t *chosen)
{
    (void)o;
    return fl__draw_weighted(chosen, in->scores, in->n, in->want, rng);
}

/*
 * Nobody falls below `lowest`; what that takes, the responders above it give in proportion, so
 * that the sum `total` stays.
 */
static void raise_to(double lowest, double total, double *scores, size_t n)
{
    double above;
    size_t n_low;
    size_t before = 0;
    size_t i;

    for (;;) {
        n_low = 0;
        above = 0;
        for (i = 0; i < n; i++) {
            n_low += scores[i] <= lowest;
            above += scores[i] > lowest ? scores[i] : 0;
        }
        if (n_low == before && before > 0) {
            return;
        }
        before = n_low;
        if (n_low == 0) {
            return;
        }
        if (n_low == n || total <= lowest * (double)n) {
            lowest = total / (double)n;
            for (i = 0; i < n; i++) {
                scores[i] = lowest;
            }
            return;
        }
        for (i = 0; i < n; i++) {
            scores[i] = scores[i] <= lowest
                            ? lowest
                            : scores[i] * ((total - lowest * (double)n_low) / above);
        }
    }
}

static void update(const struct fl_options *o, const struct fl_score_sums *all, double *scores,
                   const double *distance, size_t n)
{
    const struct options *v = fl_options_values(o);
    double alpha = v->alpha;
    double lowest = v->floor * all->scores;
    double attention = sum_of(scores, n);
    double total = sum_of(distance, n);
    size_t r;

    /* A single responder is the new model: its distance says nothing. */
    if (n < 2 || !usable(total) || !usable(attention)) {
        return;
    }
    for (r = 0; r < n; r++) {
        scores[r] = alpha * scores[r] + (1 - alpha) * (distance[r] / total) * attention;
    }
    if (lowest > 0 && isfinite(lowest)) {
        raise_to(lowest, attention, scores, n);
    }
}

static enum fl_distance distance(const struct fl_options *o, bool partial)
{
    const struct options *v = fl_options_values(o);

    if (v->reference == NEW) {
        return FL_DISTANCE_NEW;
    }
    if (v->reference == OLD) {
        return FL_DISTANCE_OLD;
    }
    return partial ? FL_DISTANCE_OLD : FL_DISTANCE_NEW;
}

double fl_distance_from_divergence(const float *divergence, size_t n_units)
{
    double sum = 0;
    size_t l;

    for (l = 0; l < n_units; l++) {
        sum += (double)divergence[l] * (double)divergence[l];
    }
    return sqrt(sum);
}

static const char *const references[] = {[AUTO] = "auto", [NEW] = "new", [OLD] = "old", NULL};

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, alpha), .def = "0.9", .min = 0, .max = 1,
     .help = "Share of its attention that a client keeps in an update; 1 never changes it."},
    {FL_OPT(struct options, FLOAT, floor), .def = "0", .min = 0, .max = 0.5,
     .help = "Least attention of a responder after an update, as far as what all of them have "
             "together allows; the others of them give it."},
    {FL_OPT(struct options, ENUM, reference), .def = "auto", .choices = references,
     .help = "Model that distances are taken to: the new one (needs complete uploads), the old "
             "(broadcast) one, or auto: new with complete uploads, else old."},
    FL_OPT_END_OF(struct options),
};

const struct fl_selection_ops fl_selection_attention = {
    .policy =
        {
            .name = "attention",
            .help = "clients whose models lie far from the global one are drawn more often",
            .source = "AdaFL",
            .options = options,
        },
    .join = join,
    .pick = pick,
    .update = update,
    .distance = distance,
};
