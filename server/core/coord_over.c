/*
 * Over-selection (docs/algorithms.md#over-selection): more clients are selected than the K that the
 * fraction gives, and K of them are enough. Pure, as all of the coordinator; its decisions need no
 * record of their own: after a restart the records of the participants lead to the same ones.
 */
#include <inttypes.h>

#include "server/core/coord_impl.h"

/* Is participant `i` in? In an over-selected round its update then counts, whatever the others
   do. */
static bool part_is_in(const struct fl_coord *c, size_t i)
{
    switch (c->round.parts[i].state) {
    case FL_PARTICIPANT_ACCEPTED:
    case FL_PARTICIPANT_EMPTY:
        return true;
    case FL_PARTICIPANT_REPORTED:
        return fl__coord_has_feedback(c) || fl__participant_stored(c, i);
    case FL_PARTICIPANT_SELECTED:
    case FL_PARTICIPANT_PLANNED:
    case FL_PARTICIPANT_REJECTED:
    case FL_PARTICIPANT_LOST:
        break;
    }
    return false;
}

/* K are in, and an update is among them where a round needs one. */
static bool enough_are_in(const struct fl_coord *c)
{
    const struct fl__round *r = &c->round;
    bool update = fl__coord_least(c) == 0 || c->conf.strategy->upload->never;
    size_t in = 0;
    size_t i;

    for (i = 0; i < r->n; i++) {
        if (part_is_in(c, i)) {
            in++;
            update = update || fl__coord_has_feedback(c) ||
                     !fl__units_empty(r->parts[i].units, c->n_units);
        }
    }
    return in >= r->size.selected && update;
}

/* Enough participants of an over-selected round are in: the others are DISMISSED. A plan from
   feedback is made for K clients, so after it there is none to dismiss. */
void fl__coord_stop_surplus(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    struct fl__names names = {.used = 0};
    size_t i;

    if (c->conf.over_grace || r->n <= r->size.selected ||
        (fl__coord_has_feedback(c) && c->sm.state != FL_PHASE_TRAINING) || !enough_are_in(c))
    {
        return;
    }
    for (i = 0; i < r->n; i++) {
        if (fl__participant_waiting(c, i) && !part_is_in(c, i)) {
            fl__names_add(&names, fl__coord_name(c, r->parts[i].client));
            fl__participant_lose(c, i);
            r->parts[i].remark = "enough others were in (round.over_selection)";
            r->live[i].blameless = true;
        }
    }
    if (names.total > 0) {
        fl__coord_trace(c,
                        "round %" PRIu64 ": %" PRIu32
                        " clients are in as selected by the fraction, dismissed: %s",
                        r->round, r->size.selected, fl__names_text(&names));
    }
}

/* The same with over_grace: the others have lost_grace_ms left at most. True when that is 0. */
bool fl__coord_shorten_deadline(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t out = r->count[FL_PARTICIPANT_LOST] + r->count[FL_PARTICIPANT_REJECTED];
    size_t in = r->n - out - r->count[fl__coord_round_wanted(c)];
    uint64_t grace = fl__coord_after(c, c->conf.lost_grace_ms);

    if (!c->conf.over_grace || r->grace_only || r->n <= r->size.selected || in < r->size.selected ||
        grace >= r->deadline_ms)
    {
        return false;
    }
    r->grace_only = true;
    r->deadline_ms = grace;
    fl__coord_trace(c,
                    "round %" PRIu64
                    ": %zu clients are in as selected by the fraction, the others have %" PRIu64
                    " ms",
                    r->round, in, c->conf.lost_grace_ms);
    return c->now_ms >= grace;
}
