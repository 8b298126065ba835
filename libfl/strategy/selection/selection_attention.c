/*
 * selection: attention (AdaFL, eq. 1 and 2; docs/algorithms.md#selection-by-attention)
 *
 * The server keeps one attention per client and selects in proportion to it, without replacement.
 * After a round the attention of the responders R_t moves towards their share of the distance;
 * their total stays:
 *
 *     A = sum_{k in R_t} a_k,  a_i <- alpha a_i + (1 - alpha) (d_i / sum d) A
 *
 * Clients outside R_t keep their attention: a client that did not respond is treated as not
 * selected. d_i is the distance of the client's model to the new global model ("new"), or to the
 * broadcast one ("old"), which the reported divergences give without extra bytes and which is the
 * only one available under partial uploads.
 *
 * In a draw no client has more than share_cap / N of the probability
 * (docs/algorithms.md#the-share-of-one-client); its score stays.
 *
 * Options: alpha, floor, reference. State: one double per client. Scores are attentions times a
 * common factor, which is never needed. Cost: O(n log n) per selection, O(responders) per update.
 * Aggregation weights are not changed. Pure functions; the caller persists the scores.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/selection/selection.h"
#include "libfl/strategy/selection/selection_impl.h"
#include "libfl/strategy/share_cap.h"

enum reference { AUTO, NEW, OLD };

struct options {
    double alpha, floor;
    enum reference reference;
};

static double attention_sum(const double *x, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum;
}

static bool attention_usable(double sum)
{
    return sum > 0 && isfinite(sum);
}

/*
 * A new client gets its share of the samples and the attention of all others shrinks in
 * proportion: its attention is samples / (samples + others' samples). Attention is a share of
 * the scores, so the others' scores stay. Without usable scores of others the score is the
 * number of samples.
 */
static double attention_join_score(const struct fl_options *o, double samples,
                                   const struct fl_score_sums *others)
{
    (void)o;
    return attention_usable(others->scores) && attention_usable(others->samples)
               ? samples * (others->scores / others->samples)
               : samples;
}

static int attention_pick(const struct fl_options *o, const struct fl_select_input *in,
                          struct fl_rng *rng, uint32_t *chosen)
{
    double *p = malloc(in->n * sizeof(*p));
    struct fl_share *scratch = malloc(in->n * sizeof(*scratch));
    int rv = FL_ENOMEM;

    (void)o;
    if (p != NULL && scratch != NULL) {
        (void)memcpy(p, in->scores, in->n * sizeof(*p));
        (void)fl_share_cap(p, NULL, in->n, in->share_cap, scratch, in->capped);
        rv = fl__draw_weighted(chosen, p, in->n, in->want, rng);
    }
    free(scratch);
    free(p);
    return rv;
}

/*
 * Raise scores below `lowest` to it; the responders above it lose the same amount in proportion,
 * so that the sum `total` stays.
 */
static void attention_raise_to(double lowest, double total, double *scores, size_t n)
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

static void attention_update(const struct fl_options *o, const struct fl_score_sums *all,
                             double *scores, const double *distance, size_t n)
{
    const struct options *v = fl_options_values(o);
    double alpha = v->alpha;
    double lowest = v->floor * all->scores;
    double attention = attention_sum(scores, n);
    double total = attention_sum(distance, n);
    size_t r;

    /* A single responder defines the new model: its distance carries no information. */
    if (n < 2 || !attention_usable(total) || !attention_usable(attention)) {
        return;
    }
    for (r = 0; r < n; r++) {
        scores[r] = alpha * scores[r] + (1 - alpha) * (distance[r] / total) * attention;
    }
    if (lowest > 0 && isfinite(lowest)) {
        attention_raise_to(lowest, attention, scores, n);
    }
}

static enum fl_distance attention_distance(const struct fl_options *o, bool partial)
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
     .help = "Share of its attention that a client keeps in an update; with 1 it never changes."},
    {FL_OPT(struct options, FLOAT, floor), .def = "0", .min = 0, .max = 0.5,
     .help = "Lowest attention of a responder after an update, within the responders' total; the "
             "other responders give it up."},
    {FL_OPT(struct options, ENUM, reference), .def = "auto", .choices = references,
     .help = "Model that distances are measured to: the new one (needs complete uploads), the old "
             "(broadcast) one, or auto: new with complete uploads, else old."},
    FL_OPT_END_OF(struct options),
};

const struct fl_selection_ops fl_selection_attention = {
    .policy =
        {
            .name = "attention",
            .help = "clients whose models are far from the global one are selected more often",
            .source = "AdaFL",
            .options = options,
        },
    .join = attention_join_score,
    .pick = attention_pick,
    .update = attention_update,
    .distance = attention_distance,
};
