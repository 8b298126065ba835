/*
 * `round.norm_cap` (docs/formulas.md#the-norm-of-an-update): an update that is far larger than the
 * median one is left out, and a pause names the client that deviates most.
 *
 * A pure function of the parts' records: a server that comes back decides the same. An update that
 * was left out is a rejected part that still has its norms, and goes on counting for the median.
 */
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/core/coord_impl.h"

/* With fewer there is no telling which one is far from the others. */
#define LEAST 3

static const char *const kinds[FL_NORMS_N] = {
    "the update", "what is sent beside the update", "what is sent beside the update",
    "what is sent beside the update", "the buffers of the update"};

static bool is_left_out(const struct fl_participant_rec *part)
{
    size_t kind;

    for (kind = 0; part->state == FL_PARTICIPANT_REJECTED && kind < FL_NORMS_N; kind++) {
        if (part->rms[kind] > 0.0) {
            return true;
        }
    }
    return false;
}

static bool has_norm(const struct fl_participant_rec *part, size_t kind)
{
    return part->rms[kind] > 0.0 && (part->state == FL_PARTICIPANT_ACCEPTED || is_left_out(part));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of two in the middle the smaller one. 0: fewer than `least` have a norm of that kind. */
static double median(const struct fl_coord *c, size_t kind, size_t least)
{
    const struct fl__round *r = &c->round;
    double *norms = c->clients.distance;
    size_t n = 0;
    size_t i;

    for (i = 0; i < r->n; i++) {
        if (has_norm(&r->parts[i], kind)) {
            norms[n++] = r->parts[i].rms[kind];
        }
    }
    if (n < least) {
        return 0.0;
    }
    qsort(norms, n, sizeof(*norms), compare);
    return norms[(n - 1) / 2];
}

static double ratio_of(double norm, double middle)
{
    return norm / middle < DBL_MAX ? norm / middle : DBL_MAX;
}

/* By kind; 0: no rule. */
static void medians(const struct fl_coord *c, size_t least, double out[FL_NORMS_N])
{
    size_t kind;

    for (kind = 0; kind < FL_NORMS_N; kind++) {
        out[kind] = median(c, kind, least);
    }
}

/* How far the part is from the others, in the kind where it is furthest. */
static struct fl__deviant deviation(const struct fl_participant_rec *part,
                                    const double middle[FL_NORMS_N])
{
    struct fl__deviant d = {.client = part->client};
    size_t kind;

    for (kind = 0; kind < FL_NORMS_N; kind++) {
        if (middle[kind] > 0.0 && has_norm(part, kind) &&
            ratio_of(part->rms[kind], middle[kind]) > d.ratio) {
            d.kind = kind;
            d.norm = part->rms[kind];
            d.median = middle[kind];
            d.ratio = ratio_of(d.norm, d.median);
        }
    }
    return d;
}

/* The one that is furthest; its ratio is 0 when there is none. */
static struct fl__deviant worst(const struct fl_coord *c, size_t least)
{
    struct fl__deviant most = {.client = FL__NONE};
    double middle[FL_NORMS_N];
    size_t i;

    medians(c, least, middle);
    for (i = 0; i < c->round.n; i++) {
        struct fl__deviant d = deviation(&c->round.parts[i], middle);

        most = d.ratio > most.ratio ? d : most;
    }
    return most;
}

/* It was told ACCEPTED, and that is not taken back: it has forgotten the result. */
static void leave_out(struct fl_coord *c, size_t i)
{
    fl__participant_set(c, i, FL_PARTICIPANT_REJECTED);
    c->round.n_unusable++;
    c->round.n_diverged++; /* With the same model, seeds and rates it would send the same again. */
    fl__coord_client_error(c, c->round.parts[i].client,
                           "its update is left out: it is much larger than those of the other "
                           "clients (round.norm_cap)");
    fl__coord_persist_update(c, i);
}

void fl__coord_cap_norms(struct fl_coord *c)
{
    struct fl__names names = {.used = 0};
    struct fl__deviant most = worst(c, LEAST);
    double middle[FL_NORMS_N];
    size_t i;

    if (!(c->conf.norm_cap > 0.0) || most.ratio <= c->conf.norm_cap) {
        return;
    }
    medians(c, LEAST, middle); /* Before the first is left out. */
    for (i = 0; i < c->round.n; i++) {
        const struct fl_participant_rec *part = &c->round.parts[i];

        if (part->state == FL_PARTICIPANT_ACCEPTED &&
            deviation(part, middle).ratio > c->conf.norm_cap) {
            fl__names_add(&names, fl__coord_name(c, part->client));
            leave_out(c, i);
        }
    }
    if (names.total > 0) {
        fl__coord_warn(c,
                       "round %" PRIu64 ": left out for more than %g times the median norm "
                       "(round.norm_cap): %s; most of all '%s', %s of norm %.6g an entry, the "
                       "median is %.6g",
                       c->round.round, c->conf.norm_cap, fl__names_text(&names),
                       fl__coord_name(c, most.client), kinds[most.kind], most.norm, most.median);
    }
}

void fl__coord_forget_norms(struct fl_participant_rec *part)
{
    size_t kind;

    for (kind = 0; kind < FL_NORMS_N; kind++) {
        part->rms[kind] = 0.0;
    }
}

void fl__coord_count_norms(const struct fl_coord *c, struct fl_round_rec *rec)
{
    size_t i;

    rec->norm_ratio = worst(c, LEAST).ratio;
    for (i = 0; i < c->round.n; i++) {
        rec->n_left_out += is_left_out(&c->round.parts[i]);
    }
}

const char *fl__coord_deviant_text(struct fl_coord *c)
{
    const struct fl__round *r = &c->round;
    struct fl__deviant most = worst(c, 2);

    if (r->not_finite != FL__NONE) {
        return fl__coord_text(c,
                              "; client '%s' deviates most ('flctl disable' keeps it out): its "
                              "update holds a value that is not finite",
                              fl__coord_name(c, r->not_finite));
    }
    if (most.client == FL__NONE) {
        return "";
    }
    return fl__coord_text(c,
                          "; client '%s' deviates most ('flctl disable' keeps it out): %s has norm "
                          "%.6g an entry, the median is %.6g",
                          fl__coord_name(c, most.client), kinds[most.kind], most.norm, most.median);
}
