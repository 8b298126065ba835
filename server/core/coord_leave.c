/*
 * Clients disconnect, leave the known names and are released. On the thread of the coordinator;
 * which client is forgotten, and when its record is deleted, is decided in coord_forget.c.
 */
#include "server/core/coord_impl.h"

void fl__coord_forget_evaluation(struct fl_coord *c, uint32_t client)
{
    if (c->clients.live[client].asked) {
        c->clients.live[client].asked = false;
        c->round.n_asked--;
    }
}

static void leave_disconnect(struct fl_coord *c, uint32_t client)
{
    struct fl__client *live = &c->clients.live[client];

    fl__coord_forget_evaluation(c, client);
    fl__clients_uncount(&c->clients, client);
    live->connected = false;
    fl__clients_count(&c->clients, client);
    fl_order_remove(&c->clients.connected, c->clients.recs, client);
    live->lost_ms = c->now_ms;
}

void fl__coord_leave(struct fl_coord *c, uint32_t client)
{
    struct fl__clients *t = &c->clients;

    fl__list_remove(t, client);
    fl__clients_uncount(t, client);
    fl_order_remove(&t->names, t->recs, client);
    t->live[client].removed = true;
    fl__clients_count(t, client);
}

void fl__coord_drop(struct fl_coord *c, uint32_t client, const char *why)
{
    struct fl__clients *t = &c->clients;
    struct fl__client *live = &t->live[client];

    if (live->connected) {
        leave_disconnect(c, client);
    }
    fl__coord_leave(c, client);
    if (t->recs[client].scored) {
        t->sums.scores -= t->recs[client].score;
        t->sums.samples -= fl__coord_weight(c, client);
    }
    if (live->part != FL__NONE) {
        c->round.grace_ms = c->now_ms; /* Do not wait for it. */
    }
    fl__coord_effect_for(c, FL_EFF_RELEASE, client)->text = why;
}

void fl__coord_lost(struct fl_coord *c, uint32_t client, bool silent)
{
    struct fl__client *live;
    uint64_t give_up;

    if (!fl__clients_used(&c->clients, client) || !c->clients.live[client].connected) {
        return;
    }
    live = &c->clients.live[client];
    fl__clients_seen(c, client);
    leave_disconnect(c, client);
    live->silent = silent;
    fl__coord_trace(c, "client '%s' disconnected", fl__coord_name(c, client));
    if (!live->recorded && !fl__clients_quarantined(&c->clients, client)) {
        /* Never selected: its name is not kept. */
        fl__coord_drop(c, client, "");
        return;
    }
    fl__clients_disconnected(c, client);
    fl__clients_dirty(&c->clients, client);
    give_up = fl__coord_after(c, c->conf.lost_grace_ms);
    if (live->part != FL__NONE && give_up < c->round.grace_ms) {
        c->round.grace_ms = give_up;
    }
}
