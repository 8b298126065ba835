/*
 * `round.share_cap` (docs/algorithms.md#the-share-of-one-client): notes of the clients whose share
 * of draws, layers or weight was lowered, and their credit of layers. Which share a client gets is
 * decided in libfl/strategy; the weights are those of the aggregation.
 *
 * A function of records that are on disk before anything depends on them: draws are noted with the
 * selection and layers with the plan; the credit changes with the commit. A restarted server
 * decides the same. On the thread of the coordinator.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/strategy/share_cap.h"

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

/* Plans that choose clients by what they report. */
static bool share_of_layers(const struct fl_coord *c)
{
    return c->conf.share_cap > 0.0 && c->needs_divergence && fl__coord_has_feedback(c);
}

static uint32_t count_kind(const struct fl_coord *c, enum fl_share_kind kind)
{
    uint32_t n = 0;
    size_t i;

    for (i = 0; i < c->round.n; i++) {
        n += (c->round.parts[i].capped & (unsigned)kind) != 0;
    }
    return n;
}

static void clear_kind(struct fl_coord *c, enum fl_share_kind kind)
{
    size_t i;

    for (i = 0; i < c->round.n; i++) {
        c->round.parts[i].capped &= ~(unsigned)kind;
    }
}

/* --- draws --- */

uint32_t fl__share_note_draws(struct fl_coord *c, const struct fl_select_input *in)
{
    struct fl__names names = {.used = 0};
    size_t i;

    for (i = 0; i < in->n; i++) {
        uint32_t client = c->clients.index[i];

        if (in->capped[i] == 0) {
            continue;
        }
        fl__names_add(&names, fl__coord_name(c, client));
        if (c->clients.live[client].part != FL__NONE) {
            c->round.parts[c->clients.live[client].part].capped |= FL_SHARE_DRAWS;
        }
    }
    if (names.total > 0) {
        fl__coord_trace(
            c, "round %" PRIu64 ": probability of a draw limited to %g / %zu (round.share_cap): %s",
            c->round.round, c->conf.share_cap, in->n, fl__names_text(&names));
    }
    return (uint32_t)names.total;
}

/* --- layers --- */

/* Layers that a client of the plan sends on average. */
static double fair_layers(const struct fl_coord *c)
{
    const struct fl__round *r = &c->round;
    size_t planned = 0;
    size_t granted = 0;
    size_t i;
    size_t l;

    for (i = 0; i < r->n; i++) {
        planned += r->parts[i].units != NULL;
        for (l = 0; r->parts[i].units != NULL && l < c->n_units; l++) {
            granted += r->parts[i].units[l] != 0;
        }
    }
    return planned > 0 ? (double)granted / (double)planned : 0.0;
}

/* What a participant of the plan may be asked for beside what it was asked for. */
static double layers_left(const struct fl_coord *c, size_t i, double fair)
{
    const struct fl_participant_rec *part = &c->round.parts[i];
    double left =
        fl_share_layers(c->clients.recs[part->client].layer_credit, fair, c->conf.share_cap);
    size_t l;

    for (l = 0; l < c->n_units; l++) {
        left -= part->units[l] != 0 ? 1 : 0;
    }
    return left;
}

void fl__share_plan(struct fl_coord *c, const uint32_t *chosen, struct fl_upload_input *in)
{
    size_t i;

    if (!share_of_layers(c)) {
        return;
    }
    for (i = 0; i < in->n_clients; i++) {
        const struct fl_participant_rec *part = &c->round.parts[chosen[i]];

        c->clients.scores[i] = c->clients.recs[part->client].layer_credit;
    }
    in->share_cap = c->conf.share_cap;
    in->credit = c->clients.scores;
    in->capped = c->clients.capped;
}

void fl__share_note_layers(struct fl_coord *c, const uint32_t *chosen,
                           const struct fl_upload_input *in)
{
    struct fl__names names = {.used = 0};
    size_t i;

    if (in->capped == NULL) {
        return;
    }
    clear_kind(c, FL_SHARE_LAYERS);
    for (i = 0; i < in->n_clients; i++) {
        struct fl_participant_rec *part = &c->round.parts[chosen[i]];

        if (in->capped[i] != 0) {
            part->capped |= FL_SHARE_LAYERS;
            fl__names_add(&names, fl__coord_name(c, part->client));
        }
    }
    if (names.total > 0) {
        fl__coord_trace(c,
                        "round %" PRIu64
                        ": fewer layers than by divergence, other clients send them "
                        "(round.share_cap): %s",
                        c->round.round, fl__names_text(&names));
    }
}

void fl__share_backfill(struct fl_coord *c)
{
    double fair = fair_layers(c);
    size_t i;

    for (i = 0; i < c->round.n; i++) {
        c->clients.distance[i] = c->round.parts[i].units != NULL ? layers_left(c, i, fair) : 0.0;
    }
}

int fl__share_compare(const struct fl_coord *c, size_t a, size_t b)
{
    double x = c->clients.distance[a];
    double y = c->clients.distance[b];

    if (!share_of_layers(c) || (fl_share_affords(x) && fl_share_affords(y))) {
        return 0;
    }
    return (x > y) - (x < y);
}

/* --- weight --- */

void fl__share_note_weights(struct fl_coord *c, const double *left)
{
    struct fl__round *r = &c->round;
    size_t i;

    clear_kind(c, FL_SHARE_WEIGHT);
    for (i = 0; left != NULL && i < r->n_listed; i++) {
        if (left[i] < 1) {
            r->parts[c->clients.live[r->listed[i].client].part].capped |= FL_SHARE_WEIGHT;
        }
    }
}

/* --- the commit --- */

void fl__share_count(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    bool layers = share_of_layers(c);
    double fair = fair_layers(c);
    size_t i;

    r->rec.n_share_capped =
        r->size.capped + count_kind(c, FL_SHARE_LAYERS) + count_kind(c, FL_SHARE_WEIGHT);
    for (i = 0; i < r->n; i++) {
        const struct fl_participant_rec *part = &r->parts[i];
        struct fl_client_rec *rec = &c->clients.recs[part->client];

        if (layers && part->units != NULL) {
            rec->layer_credit = layers_left(c, i, fair);
        }
        if (part->capped != 0) {
            rec->n_share_capped++;
            rec->capped_round = r->round;
        }
    }
}

void fl__share_why(const struct fl_coord *c, char *out, size_t size)
{
    struct fl__names names = {.used = 0};
    struct fl_order_at at = {0};
    size_t used = strlen(out);
    uint32_t client;

    while (c->committed > 0 && (client = fl_order_next(&c->clients.names, &at)) != FL__NONE) {
        if (c->clients.recs[client].capped_round == c->committed) {
            fl__names_add(&names, fl__coord_name(c, client));
        }
    }
    if (names.total > 0 && used < size) {
        (void)snprintf(out + used, size - used,
                       "; in round %" PRIu64 " round.share_cap lowered the share of: %s",
                       c->committed, fl__names_text(&names));
    }
}
