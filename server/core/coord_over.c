/*
 * Over-selection (docs/algorithms.md#over-selection): more clients are selected than the K that the
 * fraction says, and K of them are enough. Pure, as all of the core; what it decides needs no
 * record of its own: after a restart the records of the parts lead to the same.
 */
#include <inttypes.h>

#include "server/core/coord_impl.h"

/* Of an over-selected round: is part `i` in? Its update counts then whatever the others do. */
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

/* K are in, and with them an update where a round needs one. */
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

/*
 * More were asked than are needed (over-selection) and enough are in: the others are told to stop.
 * A plan by feedback is over K clients, so after it there are none to stop.
 */
void fl__coord_stop_spares(struct fl_coord *c)
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
            r->live[i].blameless = true;
        }
    }
    if (names.total > 0) {
        fl__coord_trace(c, "round %" PRIu64 ": %" PRIu32 " are in as wanted, stopped: %s", r->round,
                        r->size.selected, fl__names_text(&names));
    }
}

/*
 * The same with over_grace: the others have the grace of a lost client left, no more. True when
 * that is nothing at all.
 */
bool fl__coord_shorten_deadline(struct fl_coord *c)
{
    struct fl__round *r = &c->round;
    size_t out = r->count[FL_PARTICIPANT_LOST] + r->count[FL_PARTICIPANT_REJECTED];
    size_t in = r->n - out - r->count[fl__coord_round_wanted(c)];
    uint64_t grace = fl__coord_after(c, c->conf.lost_grace_ms);

    if (!c->conf.over_grace || r->late || r->n <= r->size.selected || in < r->size.selected ||
        grace >= r->deadline_ms)
    {
        return false;
    }
    r->late = true;
    r->deadline_ms = grace;
    fl__coord_trace(c, "round %" PRIu64 ": %zu are in as wanted, the others have %" PRIu64 " ms",
                    r->round, in, c->conf.lost_grace_ms);
    return c->now_ms >= grace;
}
