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

/* --- messages --- */

static void send_msg(struct fed_client *c, struct fed_msg *msg)
{
    msg->conn = c->conn;
    fed_send(c->fed, FED_CLIENT0 + c->index, FED_SERVER, msg);
}

bool fed_client_chance(struct fed_client *c, double rate)
{
    return !c->fed->calm && rate > 0 && fl_rng_unit(&c->rng) < rate;
}

static void fill_hello(struct fed_client *c, struct fl_wire_hello *hello)
{
    c->conn++;
    hello->client = c->name;
    hello->agent = fl_wire_lend("sim");
    hello->samples = c->samples;
    hello->evaluation_samples = FED_EVALUATED;
}

/* It may claim what cannot be. */
static void fill_report(struct fed_client *c, struct fl_wire_report *report,
                        float divergence[FED_UNITS])
{
    *report = fl_session_report(c->member.held.result).u.report;
    report->samples = c->samples;
    ck_assert_uint_eq(report->n_divergence, FED_UNITS);
    (void)memcpy(divergence, report->divergence, FED_UNITS * sizeof(*divergence));
    report->divergence = divergence;
    if (fed_client_chance(c, c->fed->plan.bad_report_rate)) {
        if (fl_rng_below(&c->rng, 2) == 0) {
            report->train_loss = (double)NAN;
        } else {
            divergence[fl_rng_below(&c->rng, FED_UNITS)] = -INFINITY;
        }
    }
}

void fed_client_send(struct fed_client *c, struct fl_wire_event *event)
{
    struct fed_msg msg = {.kind = FED_EVENT};
    struct fl_wire_failed *failed = &event->u.failed;
    float divergence[FED_UNITS];
    struct fl_buf wire;

    if (event->type == FL_WIRE_HELLO) {
        fill_hello(c, &event->u.hello);
    } else if (event->type == FL_WIRE_REPORT) {
        fill_report(c, &event->u.report, divergence);
    } else if (event->type == FL_WIRE_FAILED) { /* A draw would change every other one. */
        failed->diverged = (failed->round + failed->attempt + c->index) % 2 == 0;
    }
    fl_buf_init(&wire, sizeof(msg.wire));
    ck_assert_int_eq(fl_wire_event_encode(event, &wire), FL_OK);
    fed_set_wire(&msg, &wire);
    send_msg(c, &msg);
}

void fed_client_bye(struct fed_client *c)
{
    send_msg(c, &(struct fed_msg){.kind = FED_BYE});
}

void fed_client_push(struct fed_client *c)
{
    c->push.bad = fed_client_chance(c, c->fed->plan.bad_upload_rate);
    send_msg(c, &(struct fed_msg){.kind = FED_PUSH, .u.push = c->push});
}

struct fl_wire_event fed_client_evaluation(uint64_t round, bool failed)
{
    const struct fl_evaluation_result found = {
        .received = {.samples = FED_EVALUATED, .correct = 5, .loss_sum = 10}};

    return fl_session_evaluation(round, failed ? NULL : &found);
}

struct fl_wire_command fed_client_command(const struct fed_msg *msg)
{
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};
    struct fl_err err = {0};

    if (msg->kind != FED_WELCOME) {
        ck_assert_msg(fl_wire_command_decode(msg->wire, msg->n_wire, &command, &err) == FL_OK, "%s",
                      err.msg);
    }
    return command;
}

void fed_client_take(struct fed_client *c, const struct fl_wire_task *task,
                     const struct fed_payloads *payloads)
{
    c->task = (struct fed_task){task->task, .has_plan = task->has_plan, .payloads = *payloads};
    if (task->has_plan) {
        (void)memcpy(c->task.units, task->plan.units, FED_UNITS);
    }
}

/* --- the script --- */

uint64_t fed_client_train_ms(struct fed_client *c)
{
    return 1 + fl_rng_below(&c->rng, c->fed->calm ? 200 : c->fed->plan.train_ms_max);
}

static void timer_in(struct fed_client *c, uint64_t span_ms, uint64_t tag)
{
    fl_sim_timer(c->fed->sim, FED_CLIENT0 + c->index, fl_sim_now(c->fed->sim) + span_ms, tag);
}

static bool is_held(const struct fed_client *c, uint64_t round, uint32_t attempt)
{
    return c->durable &&
           fl_pending_result_is(&c->member.held, (struct fl_round_key){round, attempt}) &&
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
    struct fl_wire_event report = {.type = FL_WIRE_REPORT};

    fed_client_send(c, &report);
    if (c->has_task && c->task.has_plan &&
        (c->task.units[0] | c->task.units[1] | c->task.units[2]) != 0)
    {
        grant(c, c->task.units);
    }
}

static void take_task(struct fed_client *c, const struct fl_wire_task *task,
                      const struct fed_payloads *payloads)
{
    fed_client_take(c, task, payloads);
    c->has_task = true;
    if (is_held(c, task->task.key.round, task->task.key.attempt)) {
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
    struct fl_wire_event failed = fl_session_failed(c->task.task.key, "no power", false);

    c->training = 0;
    if (fed_client_chance(c, c->fed->plan.failed_training_rate)) {
        c->has_task = false;
        fed_client_send(c, &failed);
    } else if (fed_work_train(c)) {
        timer_in(c, c->fed->plan.disk_ms, TAG_STORED | c->generation);
    }
}

/* A verdict: the result is of no use any more; what is kept of it waits for the next task. */
static void forget(struct fed_client *c, const struct fl_wire_verdict *verdict)
{
    const struct fl_round_key *key = &c->task.task.key;

    if (c->has_task && key->round == verdict->round && key->attempt == verdict->attempt) {
        c->has_task = false;
        c->training = 0;
    }
    if (is_held(c, verdict->round, verdict->attempt)) {
        c->durable = false;
        c->granting = 0;
        fed_work_drop(c);
    }
}

static void obey(struct fed_client *c, const struct fl_wire_command *command,
                 const struct fed_payloads *payloads)
{
    switch (command->type) {
    case FL_WIRE_TASK:
        take_task(c, &command->u.task, payloads);
        break;
    case FL_WIRE_PLAN:
        if (is_held(c, command->u.plan.round, command->u.plan.attempt)) {
            grant(c, command->u.plan.units);
        }
        break;
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_REJECTED:
    case FL_WIRE_DISMISSED:
        forget(c, &command->u.verdict);
        break;
    case FL_WIRE_EVALUATE:
        timer_in(c, 10, TAG_EVALUATED | command->u.evaluate.round);
        break;
    case FL_WIRE_DRAIN:
        c->drained = true;
        break;
    case FL_WIRE_WELCOME:
    case FL_WIRE_REFUSED:
    case FL_WIRE_HEARTBEAT_COMMAND:
    case FL_WIRE_CENTRAL:
        break;
    }
}

static void on_message(void *ctx, struct fl_sim *sim, uint32_t node, uint32_t from,
                       const void *data, size_t len)
{
    struct fed_client *c = self(ctx, node);
    struct fl_wire_command command;
    struct fed_msg msg;

    (void)sim;
    (void)from;
    ck_assert_uint_eq(len, sizeof(msg));
    (void)memcpy(&msg, data, sizeof(msg));
    if (msg.conn != c->conn || c->writer.dead) {
        return; /* of a connection before this one */
    }
    command = fed_client_command(&msg);
    obey(c, &command, &msg.u.payloads);
    fl_wire_command_done(&command);
}

static void evaluated(struct fed_client *c, uint64_t round)
{
    struct fl_wire_event event =
        fed_client_evaluation(round, fed_client_chance(c, c->fed->plan.failed_evaluation_rate));

    fed_client_send(c, &event);
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
    struct fl_wire_event hello =
        fl_session_message_of(&(struct fl_session_effect){.type = FL_CEFF_HELLO});

    (void)sim;
    (void)peer;
    if (up) {
        fed_client_send(self(ctx, node), &hello);
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
