/*
 * Compares the divergences of a report with the upload
 * (docs/algorithms.md#a-reported-divergence-and-the-upload): a client that reported a divergence
 * which its upload cannot have is rejected. A plan asks each layer of the clients with the largest
 * divergence, so a client that could report any value would be in every layer.
 *
 * The check precedes ACCEPTED, so there is nothing to take back and nothing to persist: the report
 * of a planned participant is on disk, and after a restart the comparison is repeated.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libfl/strategy/codec/codec_residual.h"
#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

/* Slack factor for a second report of another training, which need not repeat bit for bit: the
   plan was made from the first one. */
#define REPEATED 2.0f

bool fl__claims_compared(const struct fl_strategy *s)
{
    return fl_strategy_needs_divergence(s) &&
           !fl_codec_keeps_residual(s->codec, s->options[FL_COMPONENT_CODEC]);
}

void fl__claim_take(struct fl_coord *c, size_t i, const struct fl_norms *norms)
{
    struct fl__round *r = &c->round;

    if (c->compares_claims) {
        (void)memcpy(r->sent + i * c->n_units, norms->unit, c->n_units * sizeof(*r->sent));
        r->live[i].measured = true;
    }
}

void fl__claim_repeated(struct fl_coord *c, size_t i, const struct fl_event *ev)
{
    const struct fl_participant_rec *part = &c->round.parts[i];

    if (!c->compares_claims || part->divergence == NULL || c->round.live[i].repeated ||
        ev->u.report.n_divergence != c->n_units)
    {
        return;
    }
    if (memcmp(part->divergence, ev->u.report.divergence, c->n_units * sizeof(float)) != 0) {
        c->round.live[i].repeated = true;
        fl__coord_trace(c, "client '%s' trained again and reports other divergences",
                        fl__coord_name(c, part->client));
    }
}

static bool claim_fits(float claim, const struct fl_unit_norm *sent, float slack)
{
    return sent->norm < 0.0f || (claim >= sent->low / slack && claim / slack <= sent->high);
}

const char *fl__claim_bad(struct fl_coord *c, size_t i)
{
    const struct fl__round *r = &c->round;
    const float *claim = r->parts[i].divergence;
    const struct fl_unit_norm *sent = r->sent + i * c->n_units;
    float slack = r->live[i].repeated ? REPEATED : 1.0f;
    size_t first = c->n_units;
    char more[48] = "";
    size_t n = 0;
    size_t l;

    if (!r->live[i].measured || claim == NULL) {
        return NULL;
    }
    for (l = c->n_units; l-- > 0;) {
        if (!claim_fits(claim[l], &sent[l], slack)) {
            first = l;
            n++;
        }
    }
    if (n == 0) {
        return NULL;
    }
    if (n > 1) {
        (void)snprintf(more, sizeof(more), "; %zu more layers do, too", n - 1);
    }
    return fl__coord_text(c,
                          "layer '%s' contradicts its report: divergence %.6g reported, norm %.6g "
                          "uploaded, %.6g to %.6g expected%s",
                          fl_layout_unit(c->conf.layout, first)->name, (double)claim[first],
                          (double)sent[first].norm, (double)sent[first].low,
                          (double)sent[first].high, more);
}
