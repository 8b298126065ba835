/* A scripted client: trains for a while, reports, uploads, forgets, and sometimes fails. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tests/sim/fed.h"

#define TAG_EVALUATED (UINT64_C(1) << 60)
#define TAG_STORED    (UINT64_C(2) << 60)
#define TAG_GRANTED   (UINT64_C(3) << 60)
#define TAG_KIND      (UINT64_C(15) << 60)

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
    msg.loss = c->member.held.result->train_loss;
    msg.kept = c->member.held.result->kept;
    for (l = 0; l < FED_UNITS; l++) {
        msg.divergence[l] = c->member.held.result->divergence[l];
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
    c->push.bad = fed_client_chance(c, c->fed->plan.bad_upload_rate);
    fed_client_send(c, &c->push);
}

uint64_t fed_client_train_ms(struct fed_client *c)
{
    return 1 + fl_rng_below(&c->rng, c->fed->calm ? 200 : c->fed->plan.train_ms_max);
}

static void timer_in(struct fed_client *c, uint64_t span_ms, uint64_t tag)
{
    fl_sim_timer(c->fed->sim, FED_CLIENT0 + c->index, fl_sim_now(c->fed->sim) + span_ms, tag);
}

static bool is_held(const struct fed_client *c, const struct fed_msg *msg)
{
    struct fl_round_key key = fl_pending_result_key(&c->member.held);

    return key.round != 0 && c->durable && key.round == msg->round && key.attempt == msg->attempt &&
           fl_worker_unfit(&c->member.worker, c->member.held.result) == NULL;
}

static void grant(struct fed_client *c, const uint8_t *units)
{
    if (fed_work_code(c, units)) {
        c->granting = ++c->generation;
        timer_in(c, c->fed->plan.disk_ms, TAG_GRANTED | c->granting);
    }
}

/* The result is there: report it, and upload when the task said what. */
static void deliver(struct fed_client *c)
{
    struct fl_round_key key = fl_pending_result_key(&c->member.held);

    fed_client_report(c, key.round, key.attempt);
    if (c->has_task && c->task.has_units &&
        (c->task.units[0] | c->task.units[1] | c->task.units[2]) != 0)
    {
        grant(c, c->task.units);
    }
}

static void take_task(struct fed_client *c, const struct fed_msg *msg)
{
    c->task = *msg;
    c->has_task = true;
    if (is_held(c, msg)) {
        deliver(c);
        return;
    }
    c->durable = false;
    c->granting = 0;
    if (fed_work_fetch(c)) {
        c->training = ++c->generation;
        timer_in(c, fed_client_train_ms(c), c->training);
    }
}

static void trained(struct fed_client *c)
{
    struct fed_msg failed = {
        .type = FED_FAILED, .round = c->task.round, .attempt = c->task.attempt};

    c->training = 0;
    if (fed_client_chance(c, c->fed->plan.failed_training_rate)) {
        c->has_task = false;
        fed_client_send(c, &failed);
    } else if (fed_work_train(c)) {
        timer_in(c, c->fed->plan.disk_ms, TAG_STORED | c->generation);
    }
}

/* A verdict: the result is of no use any more; what is kept of it waits for the next task. */
static void forget(struct fed_client *c, const struct fed_msg *msg)
{
    if (c->has_task && c->task.round == msg->round && c->task.attempt == msg->attempt) {
        c->has_task = false;
        c->training = 0;
    }
    if (is_held(c, msg)) {
        c->durable = false;
        c->granting = 0;
        fed_work_drop(c);
    }
}

static void on_message(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t from,
                       const void *data, size_t len)
{
    struct fed_client *c = self(ctx, node);
    struct fed_msg msg;

    (void)sim;
    (void)from;
    ck_assert_uint_eq(len, sizeof(msg));
    (void)memcpy(&msg, data, sizeof(msg));
    if (msg.conn != c->conn || c->writer.dead) {
        return; /* of a connection before this one */
    }
    switch (msg.type) {
    case FED_TASK:
        take_task(c, &msg);
        break;
    case FED_PLAN:
        if (is_held(c, &msg)) {
            grant(c, msg.units);
        }
        break;
    case FED_ACCEPTED:
    case FED_REJECTED:
    case FED_DISMISSED:
        forget(c, &msg);
        break;
    case FED_EVALUATE:
        c->task.round = msg.round;
        timer_in(c, 10, TAG_EVALUATED | msg.round);
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

static void evaluated(struct fed_client *c, uint64_t round)
{
    struct fed_msg msg = {.type = FED_EVALUATION, .round = round};

    msg.bad = fed_client_chance(c, c->fed->plan.failed_evaluation_rate);
    fed_client_send(c, &msg);
}

static void on_timer(void *ctx, struct fl_sim *sim, uint32_t node, uint64_t tag)
{
    struct fed_client *c = self(ctx, node);
    uint64_t number = tag & ~TAG_KIND;

    (void)sim;
    if (c->writer.dead) {
        return;
    }
    switch (tag & TAG_KIND) {
    case TAG_EVALUATED:
        evaluated(c, number);
        break;
    case TAG_STORED:
        if (fl_pending_result_key(&c->member.held).round != 0 && number == c->generation) {
            c->durable = true;
            deliver(c);
        }
        break;
    case TAG_GRANTED:
        if (number == c->granting) {
            c->granting = 0;
            fed_client_push(c);
        }
        break;
    default:
        if (number == c->training) {
            trained(c);
        }
        break;
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
    c->granting = 0;
    fed_work_open(c);
    c->durable = true;
}

static void on_crash(void *ctx, struct fl_sim *sim, uint32_t node)
{
    struct fed_client *c = self(ctx, node);

    (void)sim;
    c->generation++;
    fed_log(c->fed, "%s dies", c->name);
    fed_work_close(c);
    fed_died(c->fed, node);
}

const struct fl_sim_node_cbs fed_client_cbs = {
    .on_start = on_start,
    .on_timer = on_timer,
    .on_message = on_message,
    .on_link = on_link,
    .on_crash = on_crash,
};
