/*
 * `round.norm_cap` (docs/algorithms.md#the-norm-of-an-update): an update whose norm is far above
 * the median is left out, and a pause names the client that deviates most.
 *
 * A pure function of the participants' records: a restarted server decides the same. An update that
 * was left out is a rejected participant that still has its norms, which still count for the
 * median.
 */
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/sorted.h"

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

/* With fewer updates no one can be called an outlier. */
#define LEAST 3

static const char *const kinds[FL_NORMS_N] = {"update", "vector beside the update",
                                              "vector beside the update",
                                              "vector beside the update", "buffers of the update"};

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

static bool participant_has_norm(const struct fl_participant_rec *part, size_t kind)
{
    return part->rms[kind] > 0.0 && (part->state == FL_PARTICIPANT_ACCEPTED || is_left_out(part));
}

static double ratio_of(double norm, double middle)
{
    return norm / middle < DBL_MAX ? norm / middle : DBL_MAX;
}

/* Medians by kind of norm; of two in the middle the smaller one. 0, not checked: fewer than
   `least` have such a norm. */
static void norm_medians(const struct fl_coord *c, size_t least, double out[FL_NORMS_N])
{
    const struct fl__round *r = &c->round;
    double *norms = c->clients.distance;
    size_t kind;
    size_t i;

    for (kind = 0; kind < FL_NORMS_N; kind++) {
        size_t n = 0;

        for (i = 0; i < r->n; i++) {
            if (participant_has_norm(&r->parts[i], kind)) {
                norms[n++] = r->parts[i].rms[kind];
            }
        }
        out[kind] = n >= least ? fl_lower_median(norms, n) : 0.0;
    }
}

/* Deviation of a participant, of the kind of norm that deviates most. */
static struct fl__deviant norm_deviation(const struct fl_participant_rec *part,
                                         const double middle[FL_NORMS_N])
{
    struct fl__deviant d = {.client = part->client};
    size_t kind;

    for (kind = 0; kind < FL_NORMS_N; kind++) {
        if (middle[kind] > 0.0 && participant_has_norm(part, kind) &&
            ratio_of(part->rms[kind], middle[kind]) > d.ratio)
        {
            d.kind = kind;
            d.norm = part->rms[kind];
            d.median = middle[kind];
            d.ratio = ratio_of(d.norm, d.median);
        }
    }
    return d;
}

/* The participant that deviates most; ratio 0: none. */
static struct fl__deviant norm_worst(const struct fl_coord *c, size_t least)
{
    struct fl__deviant most = {.client = FL__NONE};
    double middle[FL_NORMS_N];
    size_t i;

    norm_medians(c, least, middle);
    for (i = 0; i < c->round.n; i++) {
        struct fl__deviant d = norm_deviation(&c->round.parts[i], middle);

        most = d.ratio > most.ratio ? d : most;
    }
    return most;
}

static void norm_leave_out(struct fl_coord *c, size_t i, const struct fl__deviant *d)
{
    char found[FL__CLEAN_SIZE];

    /* The client was sent ACCEPTED, which is not taken back: it has discarded the result. */
    fl__participant_set(c, i, FL_PARTICIPANT_REJECTED);
    c->round.n_unusable++;
    /* With the same model, seeds and rates it would send the same update. */
    c->round.n_diverged++;
    fl__coord_client_error(
        c, d->client,
        "update left out: its norm is far above the median of the round (round.norm_cap)");
    fl__coord_persist_update(c, i);
    (void)snprintf(found, sizeof(found), "%s with RMS norm %.6g, median %.6g, %g times it allowed",
                   kinds[d->kind], d->norm, d->median, c->conf.norm_cap);
    fl__coord_offence(c, i, FL_OFFENCE_NORM, found);
}

void fl__coord_cap_norms(struct fl_coord *c)
{
    struct fl__names names = {.used = 0};
    struct fl__deviant most = norm_worst(c, LEAST);
    double middle[FL_NORMS_N];
    size_t i;

    if (!(c->conf.norm_cap > 0.0) || most.ratio <= c->conf.norm_cap) {
        return;
    }
    norm_medians(c, LEAST, middle); /* Computed before the first is left out. */
    for (i = 0; i < c->round.n; i++) {
        const struct fl_participant_rec *part = &c->round.parts[i];
        struct fl__deviant d = norm_deviation(part, middle);

        if (part->state == FL_PARTICIPANT_ACCEPTED && d.ratio > c->conf.norm_cap) {
            fl__names_add(&names, fl__coord_name(c, part->client));
            norm_leave_out(c, i, &d);
        }
    }
    if (names.total > 0) {
        fl__coord_warn(c,
                       "round %" PRIu64
                       ": updates left out, norm above %g times the median (round.norm_cap): %s; "
                       "largest '%s': %s, RMS norm %.6g, median %.6g",
                       c->round.round, c->conf.norm_cap, fl__names_text(&names),
                       fl__coord_name(c, most.client), kinds[most.kind], most.norm, most.median);
    }
}

void fl__coord_count_norms(const struct fl_coord *c, struct fl_round_rec *rec)
{
    size_t i;

    rec->norm_ratio = norm_worst(c, LEAST).ratio;
    for (i = 0; i < c->round.n; i++) {
        rec->n_left_out += is_left_out(&c->round.parts[i]);
    }
}

const char *fl__coord_deviant_text(struct fl_coord *c)
{
    const struct fl__round *r = &c->round;
    struct fl__deviant most = norm_worst(c, 2);

    if (r->not_finite != FL__NONE) {
        return fl__coord_text(c,
                              "; client '%s' deviates most: its update contains NaN or infinity "
                              "('flctl disable' excludes it)",
                              fl__coord_name(c, r->not_finite));
    }
    if (most.client == FL__NONE) {
        return "";
    }
    return fl__coord_text(
        c,
        "; client '%s' deviates most: %s, RMS norm %.6g, median %.6g ('flctl disable' excludes it)",
        fl__coord_name(c, most.client), kinds[most.kind], most.norm, most.median);
}
