/*
 * `round.backfill` (docs/algorithms.md#uploads-by-divergence): when an uploader is lost, the
 * next-ranked responder of each of its units is asked to upload that unit, once in a round, those
 * above their share of layers (coord_share.c) after all others. Only
 * clients with an empty upload mask can be asked: the others have sent their upload and discarded
 * the rest.
 */
#include <inttypes.h>

#include "server/core/coord_impl.h"
#include "server/core/coord_untrusted.h"

/* The connected client with an empty mask and the largest divergence in unit `l`; at equal
   divergence the first in client order. */
static size_t next_ranked(const struct fl_coord *c, size_t l)
{
    const struct fl__round *r = &c->round;
    size_t best = r->n;
    int before;
    size_t i;

    for (i = 0; i < r->n; i++) {
        const struct fl_participant_rec *part = &r->parts[i];

        if (part->state != FL_PARTICIPANT_EMPTY || part->divergence == NULL ||
            part->units[l] != 0 || !c->clients.live[part->client].connected)
        {
            continue;
        }
        before = best == r->n ? 1 : fl__share_compare(c, i, best);
        if (before > 0 || (before == 0 && part->divergence[l] > r->parts[best].divergence[l])) {
            best = i;
        }
    }
    return best;
}

bool fl__coord_backfill(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t n_asked = 0;
    size_t i;
    size_t l;

    if (!c->conf.backfill || r->backfilled || !c->conf.strategy->upload->needs_feedback) {
        return false;
    }
    r->backfilled = true;
    fl__share_backfill(c);
    for (i = 0; i < r->n; i++) {
        bool failed = r->parts[i].state == FL_PARTICIPANT_LOST ||
                      r->parts[i].state == FL_PARTICIPANT_REJECTED;

        if (!failed || r->parts[i].units == NULL) {
            continue;
        }
        for (l = 0; l < c->n_units; l++) {
            size_t next = r->parts[i].units[l] != 0 ? next_ranked(c, l) : r->n;

            if (next < r->n) {
                r->parts[next].units[l] = 1;
                c->clients.distance[next] -= 1.0;
            }
        }
    }
    for (i = 0; i < r->n; i++) {
        if (r->parts[i].state == FL_PARTICIPANT_EMPTY &&
            !fl__units_empty(r->parts[i].units, c->n_units)) {
            fl__participant_set(c, i, FL_PARTICIPANT_PLANNED);
            n_asked++;
        }
    }
    if (n_asked == 0) {
        return false;
    }
    r->deadline_ms = FL__NEVER;
    fl__coord_trace(
        c, "round %" PRIu64 ": backfill: %zu clients are asked for the units of lost uploaders",
        r->round, n_asked);
    fl__coord_work(c, FL__WORK_PLAN);
    return true;
}
