/* Clients connect and announce their data. On the thread of the coordinator; sessions and
   authentication belong to the daemon, disconnecting to coord_leave.c. */
#include <inttypes.h>
#include <string.h>

#include "server/core/coord_impl.h"

/* Limit of known names where the operator set none: each costs memory. */
#define FL__CLIENTS_LIMIT 100000

/* A number for a new name, or FL__NONE with the reason. */
static uint32_t join_admit(struct fl_coord *c, const char *name, const char **ret_reason)
{
    struct fl__clients *t = &c->clients;
    size_t limit = c->conf.max_clients != 0 ? c->conf.max_clients : FL__CLIENTS_LIMIT;

    *ret_reason = "bad name";
    if (!fl_name_valid(name)) {
        return FL__NONE;
    }
    /* A client that never took part makes room for a new one. */
    if (t->names.n >= limit && t->never_counted.n > 0) {
        fl__coord_forget(
            c, t->never_counted.first,
            "forgotten to make room: it never took part, and limits.known_clients is reached");
    }
    *ret_reason = "too many known clients (limits.known_clients)";
    return t->names.n < limit ? fl__clients_add(t, name, FL__NONE) : FL__NONE;
}

static void take_hello(struct fl_coord *c, uint32_t id, const struct fl_event *ev)
{
    struct fl_client_rec *rec = &c->clients.recs[id];
    struct fl__client *live = &c->clients.live[id];
    /* A client counts with no samples while its data summary is missing. */
    uint64_t samples = ev->u.joined.summary_missing ? 0 : ev->u.joined.samples;
    char agent[FL_NAME_MAX];

    live->withheld = ev->u.joined.samples - samples;
    fl__clients_uncount(&c->clients, id);
    if (!live->connected) {
        live->connected = true;
        fl_order_insert(&c->clients.connected, c->clients.recs, id);
        if (!fl__clients_quarantined(&c->clients, id)) {
            fl__list_remove(&c->clients, id);
        }
    }
    if (rec->samples != samples) {
        if (rec->samples != 0 && samples != 0) {
            fl__coord_trace(c, "client '%s' has %" PRIu64 " samples, it had %" PRIu64 "", rec->name,
                            samples, rec->samples);
        }
        rec->samples = samples;
        fl__clients_dirty(&c->clients, id);
    }
    live->evaluation_samples = ev->u.joined.evaluation_samples;
    live->unavailable = ev->u.joined.unavailable != NULL && ev->u.joined.unavailable[0] != '\0';
    live->evaluates = ev->u.joined.evaluation_samples > 0 && !live->unavailable;
    live->unfit = false;
    fl__eligible_take(c, id, ev);
    if (ev->u.joined.agent != NULL) {
        (void)fl__coord_clean(agent, sizeof(agent), ev->u.joined.agent);
        if (strcmp(agent, rec->agent) != 0) {
            (void)memcpy(rec->agent, agent, sizeof(agent));
            fl__clients_dirty(&c->clients, id);
        }
    }
    fl__clients_seen(c, id);
    fl__clients_count(&c->clients, id);
}

/* Operators read the reason in the log and in `flctl clients`. */
static void note_unavailable(struct fl_coord *c, uint32_t id, const struct fl_event *ev)
{
    char clean[FL__CLEAN_SIZE];

    if (!c->clients.live[id].unavailable) {
        return;
    }
    (void)fl__coord_clean(clean, sizeof(clean), ev->u.joined.unavailable);
    fl__coord_trace(c, "client '%s' is not available: %s; not selected until it is",
                    fl__coord_name(c, id), clean);
    fl__coord_client_error(c, id, fl__coord_text(c, "not available: %s", clean));
}

void fl__coord_joined(struct fl_coord *c, const struct fl_event *ev)
{
    const char *name = ev->u.joined.name;
    uint32_t id = fl__clients_find(&c->clients, name);
    bool known = id != FL__NONE;
    const char *reason = NULL;
    char clean[FL_NAME_MAX];

    if (!known) {
        id = join_admit(c, name, &reason);
        if (id == FL__NONE) {
            fl__coord_trace(c, "client '%s' is refused: %s",
                            fl__coord_clean(clean, sizeof(clean), name), reason);
            fl__coord_emit(c, FL_EFF_CLIENT_ID)->text = reason;
            return;
        }
    }
    fl__coord_forget_evaluation(c, id);
    take_hello(c, id, ev);
    fl__coord_trace(
        c, "client '%s' %s, %" PRIu64 " samples%s", name, known ? "is back" : "is new",
        ev->u.joined.samples,
        fl__clients_quarantined(&c->clients, id) ? "; not selected while it is quarantined"
        : c->clients.live[id].ineligible   ? "; not selected with these labels (round.eligible)"
        : c->clients.live[id].withheld > 0 ? "; not selected until its data summary arrives"
                                           : "");
    fl__eligible_joined(c, id);
    if (c->conf.evaluate_clients && c->conf.evaluate_every != 0 &&
        c->clients.recs[id].samples > 0 && !c->clients.live[id].evaluates &&
        !c->clients.live[id].unavailable)
    {
        fl__coord_trace(c,
                        "client '%s' announced no test samples: it is not asked to evaluate; "
                        "evaluations in its reports are shown as 'received'",
                        name);
    }
    (void)fl__coord_effect_for(c, FL_EFF_CLIENT_ID, id);
    note_unavailable(c, id, ev);
    fl__coord_rejoin(c, id);
}

void fl__coord_summary(struct fl_coord *c, const struct fl_event *ev)
{
    const struct fl_client_rec *rec = fl_coord_client(c, ev->u.summary.client);
    uint32_t id = ev->u.summary.client;
    struct fl__client *live;

    if (rec == NULL || strcmp(rec->name, ev->u.summary.name) != 0) {
        return;
    }
    live = &c->clients.live[id];
    if (!live->connected || live->withheld == 0) {
        return; /* At its next connection the summary is there. */
    }
    fl__clients_uncount(&c->clients, id);
    c->clients.recs[id].samples = live->withheld;
    live->withheld = 0;
    fl__clients_dirty(&c->clients, id);
    fl__clients_seen(c, id);
    fl__clients_count(&c->clients, id);
    fl__coord_trace(c, "client '%s' has sent its data summary", rec->name);
}
