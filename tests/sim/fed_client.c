/* A scripted client: trains for a while, reports, uploads, forgets, and sometimes fails. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tests/sim/fed.h"

#define TAG_EVALUATED (UINT64_C(1) << 60)

static struct fed_client *self(void *ctx, uint32_t node)
{
    struct fed *fed = ctx;

    return &fed->clients[node - FED_CLIENT0];
}

void fed_client_send(struct fed_client *c, struct fed_msg *msg)
{
    msg->conn = c->conn;
    fed_send(c->fed, FED_CLIENT0 + c->index, FED_SERVER, msg);
}

bool fed_client_chance(struct fed_client *c, double rate)
{
    return !c->fed->calm && rate > 0 && fl_rng_unit(&c->rng) < rate;
}

void fed_client_hello(struct fed_client *c)
{
    struct fed_msg msg = {.type = FED_HELLO, .samples = c->samples};

    c->conn++;
    fed_client_send(c, &msg);
}

void fed_client_report(struct fed_client *c, uint64_t round, uint32_t attempt)
{
    struct fed_msg msg = {.type = FED_REPORT, .round = round, .attempt = attempt};
    unsigned l;

    msg.samples = c->samples;
    msg.loss = 1.0 + c->index;
    for (l = 0; l < FED_UNITS; l++) { /* Of the result, so that it is the same when repeated. */
        msg.divergence[l] = (float)((c->held.value >> (8 * l)) & 15);
    }
    if (fed_client_chance(c, c->fed->plan.bad_report_rate)) {
        if (fl_rng_below(&c->rng, 2) == 0) {
            msg.loss = (double)NAN;
        } else {
            msg.divergence[fl_rng_below(&c->rng, FED_UNITS)] = -INFINITY;
        }
    }
    fed_client_send(c, &msg);
}

void fed_client_push(struct fed_client *c)
{
    struct fed_msg msg = {.type = FED_PUSH, .round = c->held.round, .attempt = c->held.attempt};

    msg.theta = c->held.value;
    (void)memcpy(msg.control, c->held.change, sizeof(msg.control));
    (void)memcpy(msg.pull, c->held.pull, sizeof(msg.pull));
    (void)memcpy(msg.change, c->held.float_change, sizeof(msg.change));
    (void)memcpy(msg.units, c->held.units, FED_UNITS);
    msg.bad = fed_client_chance(c, c->fed->plan.bad_upload_rate);
    fed_client_send(c, &msg);
}

uint64_t fed_client_train_ms(struct fed_client *c)
{
    return 1 + fl_rng_below(&c->rng, c->fed->calm ? 200 : c->fed->plan.train_ms_max);
}

static bool is_held(const struct fed_client *c, const struct fed_msg *msg)
{
    return c->has_held && c->durable && c->held.round == msg->round &&
           c->held.attempt == msg->attempt;
}

/* The result is there: report it, and upload when the task said what. */
static void deliver(struct fed_client *c)
{
    fed_client_report(c, c->held.round, c->held.attempt);
    if (c->has_task && c->task.has_units &&
        (c->task.units[0] | c->task.units[1] | c->task.units[2]) != 0)
    {
        fed_keep_grant(c, c->task.units);
    }
}

static void take_task(struct fed_client *c, struct fl_sim *sim, const struct fed_msg *msg)
{
    fed_keep_task(c, msg);
    c->task = *msg;
    c->has_task = true;
    if (is_held(c, msg)) {
        deliver(c);
        return;
    }
    c->has_held = false;
    c->durable = false;
    c->training = ++c->generation;
    fl_sim_timer(sim, FED_CLIENT0 + c->index, fl_sim_now(sim) + fed_client_train_ms(c),
                 c->training);
}

static void trained(struct fed_client *c)
{
    struct fed_msg failed = {
        .type = FED_FAILED, .round = c->task.round, .attempt = c->task.attempt};

    c->training = 0;
    if (fed_client_chance(c, c->fed->plan.failed_training_rate)) {
        c->has_task = false;
        fed_client_send(c, &failed);
        return;
    }
    fed_keep_trained(c, c->task.round, c->task.attempt);
    fed_keep_write(c, c->generation);
}

/* A verdict: the result is of no use any more; what is kept of it waits for the next task. */
static void forget(struct fed_client *c, const struct fed_msg *msg)
{
    if (is_held(c, msg)) {
        c->has_held = false;
        c->durable = false;
        c->granting = 0;
    }
    if (c->has_task && c->task.round == msg->round && c->task.attempt == msg->attempt) {
        c->has_task = false;
        c->training = 0;
    }
}

static void on_message(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t from,
                       const void *data, size_t len)
{
    struct fed_client *c = self(ctx, node);
    struct fed_msg msg;

    (void)from;
    ck_assert_uint_eq(len, sizeof(msg));
    (void)memcpy(&msg, data, sizeof(msg));
    if (msg.conn != c->conn) {
        return; /* of a connection before this one */
    }
    switch (msg.type) {
    case FED_TASK:
        take_task(c, sim, &msg);
        break;
    case FED_PLAN:
        if (is_held(c, &msg)) {
            fed_keep_grant(c, msg.units);
        }
        break;
    case FED_ACCEPTED:
    case FED_REJECTED:
    case FED_DISMISSED:
        forget(c, &msg);
        break;
    case FED_EVALUATE:
        c->task.round = msg.round;
        fl_sim_timer(sim, node, fl_sim_now(sim) + 10, TAG_EVALUATED | msg.round);
        break;
    case FED_DRAIN:
        c->drained = true;
        break;
    case FED_HEARTBEAT:
    case FED_BYE:
    case FED_WELCOME:
    case FED_HELLO:
    case FED_REPORT:
    case FED_FAILED:
    case FED_PUSH:
    case FED_EVALUATION:
        break;
    }
}

static void on_timer(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag)
{
    struct fed_client *c = self(ctx, node);
    struct fed_msg msg = {.type = FED_EVALUATION, .round = tag & ~TAG_EVALUATED};

    (void)sim;
    if ((tag & TAG_EVALUATED) != 0) {
        msg.bad = fed_client_chance(c, c->fed->plan.failed_evaluation_rate);
        fed_client_send(c, &msg);
    } else if (tag == c->training) {
        trained(c);
    }
}

static void on_disk(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag)
{
    struct fed_client *c = self(ctx, node);

    (void)sim;
    if (fed_keep_granted(c, tag)) {
        fed_client_push(c);
    } else if (c->has_held && tag == c->generation) {
        c->durable = true;
        deliver(c);
    }
}

static void on_link(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t peer, bool up)
{
    (void)sim;
    (void)peer;
    if (up) {
        fed_client_hello(self(ctx, node));
    }
}

static void on_start(void *ctx, struct fl_sim *sim, uint32_t node)
{
    struct fed_client *c = self(ctx, node);

    (void)sim;
    c->has_task = false;
    c->training = 0;
    fed_keep_load(c);
}

static void on_crash(void *ctx, struct fl_sim *sim, uint32_t node)
{
    struct fed_client *c = self(ctx, node);

    (void)sim;
    c->generation++;
    fed_log(c->fed, "%s dies", c->name);
    fed_died(c->fed, node);
}

const struct fl_sim_node_cbs fed_client_cbs = {
    .on_start = on_start,
    .on_timer = on_timer,
    .on_disk = on_disk,
    .on_message = on_message,
    .on_link = on_link,
    .on_crash = on_crash,
};
