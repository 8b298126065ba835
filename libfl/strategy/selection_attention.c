/*
 * selection: attention (AdaFL; ALGORITHMS 5)
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
 * the only one known under partial uploads (15.3.5).
 *
 * Options: alpha, floor, reference. State: one double a client.
 * Cost: O(n log n) a draw, O(responders) an update. Aggregation weights are untouched.
 */
#include <math.h>
#include <string.h>

#include "libfl/strategy/selection.h"
#include "libfl/strategy/selection_impl.h"

/* Rounds between corrections of what rounding adds to the sum (ALGORITHMS 5.4). */
#define RENORMALISE_EVERY 100
#define SUM_TOLERANCE     1e-12

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

static void scale(double *scores, size_t n, double factor)
{
    size_t i;

    for (i = 0; i < n; i++) {
        scores[i] *= factor;
    }
}

static void init(const struct fl_options *o, const double *samples, size_t n, double *scores)
{
    double total = sum_of(samples, n);
    size_t i;

    (void)o;
    for (i = 0; i < n; i++) {
        scores[i] = usable(total) ? samples[i] / total : 0;
    }
}

/*
 * The newcomer gets its share of the samples and the others give way in proportion, so
 * that joining one by one before the first update is the same as init().
 */
static void join(const struct fl_options *o, const double *samples, size_t n, size_t i,
                 double *scores)
{
    double total = sum_of(samples, n);
    double others;

    (void)o;
    FL_REQUIRE(i < n);
    scores[i] = 0;
    others = sum_of(scores, n);
    if (!usable(total) || !(samples[i] > 0)) {
        return;
    }
    if (!usable(others)) {
        scores[i] = 1;
        return;
    }
    scale(scores, n, (1 - samples[i] / total) / others);
    scores[i] = samples[i] / total;
}

static int pick(const struct fl_options *o, const struct fl_select_input *in, struct fl_rng *rng,
                uint32_t *chosen)
{
    (void)o;
    return fl__draw_weighted(chosen, in->scores, in->n, in->want, rng);
}

static void update(const struct fl_options *o, uint64_t round, double *scores, size_t n,
                   const uint32_t *who, const double *distance, size_t n_responders)
{
    double alpha = fl_options_float(o, "alpha");
    double lowest = fl_options_float(o, "floor");
    double attention = 0;
    double total = 0;
    bool raised = false;
    double sum;
    size_t r;

    for (r = 0; r < n_responders; r++) {
        FL_REQUIRE(who[r] < n);
        attention += scores[who[r]];
        total += distance[r];
    }
    /* A single responder is the new model: its distance says nothing (5.4). */
    if (n_responders >= 2 && usable(total)) {
        for (r = 0; r < n_responders; r++) {
            double *a = &scores[who[r]];

            *a = alpha * *a + (1 - alpha) * (distance[r] / total) * attention;
            if (*a < lowest) {
                *a = lowest;
                raised = true;
            }
        }
    }
    sum = sum_of(scores, n);
    if (usable(sum) &&
        (raised || (round % RENORMALISE_EVERY == 0 && fabs(sum - 1) > SUM_TOLERANCE))) {
        scale(scores, n, 1 / sum);
    }
}

static enum fl_distance distance(const struct fl_options *o, bool partial)
{
    const char *reference = fl_options_str(o, "reference");

    if (strcmp(reference, "new") == 0) {
        return FL_DISTANCE_NEW;
    }
    if (strcmp(reference, "old") == 0) {
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

static const char *const references[] = {"auto", "new", "old", NULL};

static const struct fl_opt_spec options[] = {
    {.name = "alpha",
     .type = FL_OPT_FLOAT,
     .def = "0.9",
     .min = 0,
     .max = 1,
     .help = "Share of its attention that a client keeps in an update; 1 never changes it."},
    {.name = "floor",
     .type = FL_OPT_FLOAT,
     .def = "0",
     .min = 0,
     .max = 0.5,
     .help = "Least attention of a client after an update, before the sum is made 1 again."},
    {.name = "reference",
     .type = FL_OPT_ENUM,
     .def = "auto",
     .choices = references,
     .help = "Model that distances are taken to: the new one (needs complete uploads), the old "
             "(broadcast) one, or auto: new with complete uploads, else old."},
    FL_OPT_END,
};

const struct fl_selection_ops fl_selection_attention = {
    .policy =
        {
            .name = "attention",
            .help = "clients whose models lie far from the global one are drawn more often",
            .source = "AdaFL",
            .options = options,
        },
    .init = init,
    .join = join,
    .pick = pick,
    .update = update,
    .distance = distance,
};
