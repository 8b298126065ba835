/*
 * Labels and hours of the clients that are selected (round.eligible): what the coordinator does
 * with the rule of eligible.c. On the thread of the coordinator. A client that is not eligible
 * stays connected, can be asked for evaluations, and finishes a round that it takes part in.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/core/coord_impl.h"

/* The wall clock can be set while the server waits, so it is read again. */
#define ELIGIBLE_CHECK_MS UINT64_C(600000)

void fl__eligible_take(struct fl_coord *c, uint32_t client, const struct fl_event *ev)
{
    c->clients.live[client].ineligible =
        !fl_eligible_labels(&c->conf.eligible, ev->u.joined.labels, ev->u.joined.n_labels);
}

void fl__eligible_joined(struct fl_coord *c, uint32_t client)
{
    char wanted[FL_ELIGIBLE_TEXT];
    char clean[FL_ELIGIBLE_TEXT];

    if (!c->clients.live[client].ineligible) {
        c->warned_ineligible = false;
        return;
    }
    if (c->clients.n_alive > 0 || c->warned_ineligible) {
        return;
    }
    c->warned_ineligible = true;
    fl__coord_warn(c,
                   "no connected client has the labels of round.eligible (%s): no round starts "
                   "until one connects",
                   fl__coord_clean(clean, sizeof(clean),
                                   fl_eligible_wanted(&c->conf.eligible, wanted, sizeof(wanted))));
}

bool fl__eligible_open(struct fl_coord *c)
{
    bool waits = fl_hours_wait_ms(&c->conf.eligible, c->wall_ms) > 0;
    char next[FL_ELIGIBLE_TEXT];

    if (waits && !c->waits_for_hours) {
        fl__coord_trace(c, "round %" PRIu64 " waits for round.eligible.hours: the next begin at %s",
                        c->committed + 1,
                        fl_hours_next(&c->conf.eligible, c->wall_ms, next, sizeof(next)));
    }
    c->waits_for_hours = waits;
    return !waits;
}

uint64_t fl__eligible_due(const struct fl_coord *c)
{
    uint64_t wait = fl_hours_wait_ms(&c->conf.eligible, c->wall_ms);

    return wait == 0 ? FL__NEVER
                     : fl__coord_after(c, wait < ELIGIBLE_CHECK_MS ? wait : ELIGIBLE_CHECK_MS);
}

static uint64_t eligible_wall_ms(const struct fl_coord *c, uint64_t now_ms)
{
    return c->wall_ms + (now_ms > c->now_ms ? now_ms - c->now_ms : 0);
}

bool fl__eligible_idle(const struct fl_coord *c, uint64_t now_ms, char *out, size_t size)
{
    uint64_t wall = eligible_wall_ms(c, now_ms);
    char next[FL_ELIGIBLE_TEXT];

    if (fl_hours_wait_ms(&c->conf.eligible, wall) == 0) {
        return false;
    }
    (void)snprintf(out, size,
                   "round %" PRIu64 " is IDLE: outside round.eligible.hours, the next begin at %s",
                   c->committed + 1, fl_hours_next(&c->conf.eligible, wall, next, sizeof(next)));
    return true;
}

void fl__eligible_why(const struct fl_coord *c, char *out, size_t size)
{
    struct fl_order_at at = {0};
    size_t used = strlen(out);
    size_t n = 0;
    char wanted[FL_ELIGIBLE_TEXT];
    uint32_t client;

    if (c->conf.eligible.n_labels == 0) {
        return;
    }
    while ((client = fl_order_next(&c->clients.connected, &at)) != FL__NONE) {
        n += c->clients.live[client].ineligible;
    }
    if (n > 0) {
        (void)snprintf(out + used, size - used,
                       "; %s%zu connected clients do not have the labels of round.eligible (%s) "
                       "and are not selected",
                       n == c->clients.connected.n ? "all " : "", n,
                       fl_eligible_wanted(&c->conf.eligible, wanted, sizeof(wanted)));
    }
}

const char *fl_coord_ineligible(const struct fl_coord *c, uint32_t client,
                                const struct fl_pair *labels, size_t n_labels, char *out,
                                size_t size)
{
    const struct fl_eligible *e = &c->conf.eligible;
    char text[FL_ELIGIBLE_TEXT];

    out[0] = '\0';
    if (!fl_coord_connected(c, client) || c->clients.live[client].removed) {
        return out;
    }
    if (c->clients.live[client].ineligible) {
        (void)fl_eligible_missing(e, labels, n_labels, text, sizeof(text));
        (void)snprintf(out, size, "its labels do not match round.eligible.labels%s%s",
                       text[0] != '\0' ? ": " : "", text);
    } else if (c->clients.live[client].withheld > 0) {
        (void)snprintf(out, size, "its data summary has not arrived");
    } else if (c->clients.recs[client].samples == 0) {
        (void)snprintf(out, size, "it announced no samples");
    } else if (fl_hours_wait_ms(e, c->wall_ms) > 0) {
        (void)snprintf(out, size, "outside round.eligible.hours: the next begin at %s",
                       fl_hours_next(e, c->wall_ms, text, sizeof(text)));
    }
    return out;
}
