/*
 * Flows over the links of a simulated federation: begin, change of rates, cancelling. One thread,
 * that of the federation. Rates come from the network and device model, sharing of links from
 * libfl/sim/flow.h; what is transferred is in transfer.c.
 */
#include "tools/fl_sim/engine/sim_federation_impl.h"

/* Layout of a flow's tag: its client, and its kind. */
#define TAG_OF_TASK 0 /* its update, or its payloads */
#define TAG_MODEL   1
#define TAG_KINDS   2

/* The client's participant in the open attempt, if that is the attempt of `key`. */
struct fl_fed_part *fl__transfer_participant(struct fl_fed *fed, const struct fl__active *a,
                                             struct fl_round_key key)
{
    struct fl_fed_part *p = fl_sim_account_part(&fed->account, a->client);

    return p != NULL && p->round == key.round && p->attempt == key.attempt ? p : NULL;
}

/* The lower of two rates; 0: unlimited. */
static double link_lower_rate(double link, double limit)
{
    return link > 0 && (link < limit || !(limit > 0)) ? link : limit;
}

/* Sets the rates that its link and its own limit allow now, and schedules the next query. */
static double link_rate(struct fl_fed *fed, uint32_t client, bool up)
{
    struct fl__fed_client *c = &fed->clients[client];
    uint64_t until = UINT64_MAX;
    double limit = up ? fed->conf.upload_rate : fed->conf.download_rate;
    double rate_up = 0;
    double rate_down = 0;

    if (fed->conf.world == NULL) {
        return limit;
    }
    fl_world_link(fed->conf.world, client, fed->now_us, &rate_up, &rate_down, &until);
    if (until != UINT64_MAX && (c->link_us <= fed->now_us || until < c->link_us)) {
        c->link_us = until;
        fl__fed_at(fed, until, FL__AT_LINK, client, 0, NULL);
    }
    return link_lower_rate(up ? rate_up : rate_down, limit);
}

/* Schedules the next event of a completed transfer (FL__AT_LOADED and the like). */
void fl__transfer_begin(struct fl_fed *fed, struct fl__active *a, struct fl__transfer *t,
                        uint64_t bytes, enum fl__fed_kind done)
{
    bool up = done == FL__AT_SENT;
    double rate = link_rate(fed, a->client, up);
    struct fl_flows *flows = up ? fed->up : fed->down;
    unsigned kind = done == FL__AT_MODEL_LOADED ? TAG_MODEL : TAG_OF_TASK;
    uint32_t stamp = done == FL__AT_SENT     ? a->awaits_push
                     : done == FL__AT_LOADED ? a->awaits_fetch
                                             : a->awaits_evaluation;

    t->on = true;
    t->bytes = bytes;
    t->at_once = !(rate > 0) && (up ? fed->unlimited_up : fed->unlimited_down);
    if (t->at_once) {
        fl__fed_at(fed, fed->now_us, done, a->client, stamp, NULL);
    } else if (fl_flows_add(flows, fed->now_us, bytes, rate, (uint64_t)a->client * TAG_KINDS + kind,
                            &t->flow) != FL_OK)
    {
        t->on = false;
        fl__fed_fail(fed, FL_ENOMEM, NULL, "a transfer");
    }
}

static void link_change_rate(struct fl_fed *fed, uint32_t client, struct fl__transfer *t, bool up)
{
    if (t->on && !t->at_once &&
        fl_flows_set_cap(up ? fed->up : fed->down, fed->now_us, t->flow,
                         link_rate(fed, client, up)) != FL_OK)
    {
        fl__fed_fail(fed, FL_ENOMEM, NULL, "a transfer");
    }
}

void fl__transfer_link(struct fl_fed *fed, uint32_t client)
{
    struct fl__active *a = fed->clients[client].active;

    if (a != NULL) {
        link_change_rate(fed, client, &a->down, /* up= */ false);
        link_change_rate(fed, client, &a->model_down, /* up= */ false);
        link_change_rate(fed, client, &a->up, /* up= */ true);
    }
}

/* Bytes transferred so far. */
static uint64_t link_stop_flow(struct fl_fed *fed, struct fl__transfer *t, bool up)
{
    uint64_t went = 0;

    if (t->on && t->at_once) {
        went = t->bytes;
    } else if (t->on) {
        fl_flows_stop(up ? fed->up : fed->down, fed->now_us, t->flow, &went);
    }
    t->on = false;
    return went;
}

void fl__fetch_cancel(struct fl_fed *fed, struct fl__active *a)
{
    struct fl_fed_part *p = fl__transfer_participant(fed, a, a->task.key);
    uint64_t went = link_stop_flow(fed, &a->down, /* up= */ false);

    a->awaits_fetch = 0;
    fed->account.sim.down_model_bytes += went;
    if (p != NULL) {
        p->bytes_down += went;
    }
}

/* Counts uploaded bytes: for the participant of the open attempt, or as wasted. */
void fl__transfer_count_up(struct fl_fed *fed, struct fl__active *a, uint64_t bytes)
{
    struct fl_fed_part *p = fl__transfer_participant(fed, a, a->pushing);

    *(p != NULL ? &p->bytes_up : &fed->account.sim.up_wasted_bytes) += bytes;
}

void fl__push_cancel(struct fl_fed *fed, struct fl__active *a)
{
    uint64_t went = link_stop_flow(fed, &a->up, /* up= */ true);

    a->awaits_push = 0;
    a->received += went;
    fl__transfer_count_up(fed, a, went);
}

void fl__push_cut(struct fl_fed *fed, struct fl__active *a)
{
    uint64_t bytes = a->up.bytes;
    uint64_t went;

    if (a->up.on) {
        went = link_stop_flow(fed, &a->up, /* up= */ true);
        a->received += went;
        fl__transfer_count_up(fed, a, went);
        fl__transfer_begin(fed, a, &a->up, bytes - went, FL__AT_SENT);
    }
}

void fl__model_cancel(struct fl_fed *fed, struct fl__active *a)
{
    fed->account.sim.down_evaluation_bytes += link_stop_flow(fed, &a->model_down, /* up= */ false);
    a->awaits_evaluation = 0;
}

struct fl__active *fl__transfer_next(struct fl_fed *fed, bool up, bool *ret_model)
{
    struct fl__active *a;
    uint64_t tag;

    if (!fl_flows_pop(up ? fed->up : fed->down, fed->now_us, &tag)) {
        return NULL;
    }
    a = fed->clients[tag / TAG_KINDS].active;
    FL_REQUIRE(a != NULL); /* A client that disconnects stops its transfers. */
    *ret_model = tag % TAG_KINDS == TAG_MODEL;
    return a;
}
