/*
 * Builds the messages of the protocol between clients and server to measure their length, and the
 * coordinator's events from client messages. One thread, that of the federation. It sends nothing:
 * clients.c does.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/work/summary_work.h"
#include "tools/fl_sim/engine/sim_federation_impl.h"

struct fl__message *fl__fed_message(struct fl_fed *fed, enum fl__message_type type, uint32_t client)
{
    struct fl__message *m = calloc(1, sizeof(*m));

    if (m == NULL) {
        fl__fed_fail(fed, FL_ENOMEM, NULL, "a message");
        return NULL;
    }
    m->type = type;
    m->client = client;
    m->connection = fed->clients[client].connection;
    return m;
}

/* --- message lengths --- */

static struct fl_wire_evaluation message_evaluation(const struct fl_eval_rec *e)
{
    return (struct fl_wire_evaluation){e->samples, e->correct, e->loss_sum};
}

static int message_encode_event(const struct fl_fed *fed, const struct fl__message *m,
                                struct fl_buf *out)
{
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};
    struct fl_sim_client sim_client;

    switch (m->type) {
    case FL__MSG_REPORT:
        event.type = FL_WIRE_REPORT;
        event.u.report =
            (struct fl_wire_report){.round = m->key.round,
                                    .attempt = m->key.attempt,
                                    .samples = m->answer.samples,
                                    .steps = m->answer.steps,
                                    .train_loss = m->answer.train_loss,
                                    .divergence = m->answer.divergence,
                                    .n_divergence = m->answer.n_units,
                                    .has_received = m->answer.has_received,
                                    .received = message_evaluation(&m->answer.received),
                                    .has_trained = m->answer.has_trained,
                                    .trained = message_evaluation(&m->answer.trained),
                                    .previous_dot = m->answer.previous_dot};
        break;
    case FL__MSG_FAILED:
        event.type = FL_WIRE_FAILED;
        event.u.failed.round = m->key.round;
        event.u.failed.attempt = m->key.attempt;
        event.u.failed.reason = fl_wire_lend(m->reason);
        break;
    case FL__MSG_EVALUATION:
        event.type = FL_WIRE_EVALUATION;
        event.u.evaluation.round = m->key.round;
        event.u.evaluation.result = message_evaluation(&m->answer.received);
        event.u.evaluation.has_adapted = m->answer.has_trained;
        event.u.evaluation.adapted = message_evaluation(&m->answer.trained);
        break;
    default:
        fed->conf.sim_clients->sim_client(fed->conf.sim_clients->ctx, m->client, &sim_client);
        event.u.hello.client = fl_wire_lend(sim_client.name);
        event.u.hello.samples = sim_client.samples;
        event.u.hello.evaluation_samples = sim_client.evaluation_samples;
        event.u.hello.agent = fl_wire_lend("fl-sim");
        break;
    }
    return fl_wire_event_encode(&event, out);
}

/* All payloads that a task lists have the model's length, or that of the data summaries. */
static size_t message_list_payloads(const struct fl_fed *fed, bool personal_model,
                                    struct fl_wire_payload list[FL_PAYLOADS_MAX])
{
    uint64_t model = fl_layout_count(fed->federation.layout) * sizeof(float);
    struct fl_payload_name names[FL_PAYLOADS_MAX];
    size_t n = fl_payloads_of(fed->federation.strategy, names);
    size_t listed = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        if (names[i].kind != FL_PAYLOAD_IS_PERSONAL_MODEL || personal_model) {
            list[listed++] = (struct fl_wire_payload){
                .name = fl_wire_lend(names[i].name),
                .bytes = names[i].kind == FL_PAYLOAD_IS_SUMMARIES ? fed->collection_bytes : model,
                .has_digest = names[i].kind == FL_PAYLOAD_IS_SUMMARIES};
        }
    }
    return listed;
}

static struct fl_wire_plan message_plan(const struct fl_fed *fed, const struct fl__message *m)
{
    return (struct fl_wire_plan){m->key.round, m->key.attempt, m->units,
                                 m->units != NULL ? fl_layout_units(fed->federation.layout) : 0};
}

static int message_encode_command(const struct fl_fed *fed, const struct fl__message *m,
                                  struct fl_buf *out)
{
    struct fl_wire_payload payloads[FL_PAYLOADS_MAX];
    struct fl_wire_command command = {.type = FL_WIRE_DISMISSED};

    switch (m->type) {
    case FL__MSG_TASK:
        command.type = FL_WIRE_TASK;
        command.u.task = (struct fl_wire_task){
            .task = m->task,
            .payloads = payloads,
            .n_payloads = message_list_payloads(fed, m->personal_model, payloads),
            .has_plan = m->units != NULL,
            .plan = message_plan(fed, m)};
        break;
    case FL__MSG_PLAN:
        command.type = FL_WIRE_PLAN;
        command.u.plan = message_plan(fed, m);
        break;
    case FL__MSG_EVALUATE:
        command.type = FL_WIRE_EVALUATE;
        command.u.evaluate.round = m->key.round;
        command.u.evaluate.payload.name = fl_wire_lend(FL_PAYLOAD_CANDIDATE);
        command.u.evaluate.learning_rate = m->rate;
        break;
    default:
        command.u.verdict.round = m->key.round;
        command.u.verdict.attempt = m->key.attempt;
        break;
    }
    return fl_wire_command_encode(&command, out);
}

uint64_t fl__message_bytes(struct fl_fed *fed, const struct fl__message *m)
{
    int rv;

    if (m->type == FL__MSG_LOST) {
        return 0;
    }
    if (m->type == FL__MSG_WELCOME) {
        return fed->welcome_bytes;
    }
    fl_buf_clear(&fed->scratch);
    rv = m->type > FL__MSG_WELCOME ? message_encode_command(fed, m, &fed->scratch)
                                   : message_encode_event(fed, m, &fed->scratch);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, NULL, "the length of a message");
    }
    return fed->scratch.len;
}

void fl__fed_send(struct fl_fed *fed, struct fl__message *m)
{
    struct fl_sim_round *sim = &fed->account.sim;

    *(m->type >= FL__MSG_WELCOME  ? &sim->down_control_bytes
      : m->type == FL__MSG_REPORT ? &sim->up_report_bytes
                                  : &sim->up_control_bytes) += fl__message_bytes(fed, m);
    fl__fed_at(fed, fed->now_us + fl__fed_latency(fed, m->client), FL__AT_MESSAGE, m->client, 0, m);
}

/* --- messages to the server --- */

/* As the server collects data summaries of joining clients, before the first round. */
static void message_take_summary(struct fl_fed *fed, uint32_t client)
{
    struct fl_job_answer answer;
    struct fl_err err = {0};
    const char *name = fl__fed_name(fed, client);
    struct fl_pool_job *job = NULL;
    const struct fl_buf *bytes;
    int rv;

    if (!fl__fed_replays(fed)) {
        job = fl_worker_pool_summary(fed->pool, client);
        if (job == NULL) {
            fl__fed_fail(fed, FL_ENOMEM, NULL, "a data summary");
            return;
        }
    }
    if (fl__fed_take(fed, job, FL_JOB_SUMMARY, client, (struct fl_round_key){0}, &answer) != FL_OK)
    {
        goto done;
    }
    fed->account.sim.up_summary_bytes += answer.bytes;
    fed->dry_collection_bytes += fed->conf.dry && !fed->summaries_fixed ? answer.bytes : 0;
    rv = answer.code;
    fl_job_answer_done(&answer);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, &err, name);
        goto done;
    }
    if (job != NULL && !fed->conf.dry &&
        fl_collection_waits(&fed->federation, &fed->progress, name)) {
        bytes = fl_job_bytes(job);
        rv = fl_collection_take(&fed->federation, name, bytes->data, bytes->len, &err);
        if (rv != FL_OK) {
            fl__fed_fail(fed, rv, &err, name);
        }
    }
done:
    fl_pool_job_free(job);
}

static void message_receive_hello(struct fl_fed *fed, const struct fl__message *m)
{
    struct fl__fed_client *c = &fed->clients[m->client];
    struct fl_event event = {.type = FL_EV_CLIENT_JOINED};
    struct fl_sim_client sim_client;

    if (c->connection != m->connection) {
        return; /* The client disconnected before the message arrived. */
    }
    if (!c->collection && fed->federation.strategy->solver->summary != NULL) {
        c->collection = true;
        message_take_summary(fed, m->client);
    }
    fed->conf.sim_clients->sim_client(fed->conf.sim_clients->ctx, m->client, &sim_client);
    c->joined = m->connection;
    event.u.joined.name = sim_client.name;
    event.u.joined.agent = "fl-sim";
    event.u.joined.samples = sim_client.samples;
    event.u.joined.evaluation_samples = sim_client.evaluation_samples;
    fed->joining = m->client;
    fl__fed_step(fed, &event);
    fed->joining = UINT32_MAX;
}

/* Without arithmetic (dry run) a loss or an evaluation has only its wire length. */
static struct fl_job_answer message_known_answer(const struct fl_fed *fed,
                                                 const struct fl__message *m)
{
    struct fl_job_answer known = m->answer;

    if (fed->conf.dry) {
        known.train_loss = 0;
        known.has_received = known.has_trained = false;
        known.received = known.trained = (struct fl_eval_rec){0};
    }
    return known;
}

static void message_receive_report(struct fl_fed *fed, const struct fl__message *m)
{
    const struct fl_job_answer known = message_known_answer(fed, m);
    struct fl_fed_part *p = fl_sim_account_part(&fed->account, m->client);
    struct fl_event event = {.type = FL_EV_REPORT};

    event.u.report.client = fed->clients[m->client].number;
    event.u.report.round = m->key.round;
    event.u.report.attempt = m->key.attempt;
    event.u.report.samples = known.samples;
    event.u.report.steps = known.steps;
    event.u.report.train_loss = known.train_loss;
    event.u.report.divergence = known.divergence;
    event.u.report.n_divergence = known.n_units;
    event.u.report.previous_dot = known.previous_dot;
    event.u.report.received = known.received;
    event.u.report.trained = known.trained;
    if (p != NULL && p->round == m->key.round && p->attempt == m->key.attempt) {
        p->reported_us = fed->now_us;
        p->samples = known.samples;
        p->steps = known.steps;
        p->train_loss = fed->conf.dry ? (double)NAN : known.train_loss;
        p->received = known.received;
        p->trained = known.trained;
        fed->account.last_report = (size_t)(p - fed->account.parts);
        if (known.has_trained && fl_sim_account_evaluated(&fed->account, &known.trained) != FL_OK) {
            fl__fed_fail(fed, FL_ENOMEM, NULL, "the account of a round");
        }
    }
    fl__fed_step(fed, &event);
}

static void message_receive_failed(struct fl_fed *fed, const struct fl__message *m)
{
    struct fl_fed_part *p = fl_sim_account_part(&fed->account, m->client);
    struct fl_event event = {.type = FL_EV_CLIENT_FAILED};

    if (p != NULL && p->round == m->key.round && p->attempt == m->key.attempt) {
        p->failed = true;
    }
    event.u.failed.client = fed->clients[m->client].number;
    event.u.failed.round = m->key.round;
    event.u.failed.attempt = m->key.attempt;
    event.u.failed.reason = m->reason;
    event.u.failed.diverged = m->diverged;
    fl__fed_step(fed, &event);
}

static void message_receive_evaluation(struct fl_fed *fed, const struct fl__message *m)
{
    const struct fl_job_answer known = message_known_answer(fed, m);
    const struct fl_personal_ops *personal = fed->federation.strategy->personal;
    const struct fl_eval_rec *found = personal->adapts ? &known.trained : &known.received;
    struct fl_event event = {.type = FL_EV_EVAL_REPORT};

    event.u.eval.client = fed->clients[m->client].number;
    event.u.eval.round = m->key.round;
    event.u.eval.result = known.received;
    event.u.eval.adapted = known.trained;
    if (!personal->trained && fl_sim_account_evaluated(&fed->account, found) != FL_OK) {
        fl__fed_fail(fed, FL_ENOMEM, NULL, "the account of a round");
    }
    fl__fed_step(fed, &event);
}

static void message_receive_lost(struct fl_fed *fed, const struct fl__message *m)
{
    struct fl_event event = {.type = FL_EV_CLIENT_LOST};

    fed->clients[m->client].joined = 0;
    event.u.client = fed->clients[m->client].number;
    fl__fed_step(fed, &event);
}

void fl__fed_receive(struct fl_fed *fed, struct fl__message *m)
{
    if (m->type == FL__MSG_HELLO) {
        message_receive_hello(fed, m);
        return;
    }
    if (fed->clients[m->client].joined != m->connection ||
        fed->clients[m->client].number == UINT32_MAX) {
        return; /* The message belongs to a session that a newer one replaced. */
    }
    switch (m->type) {
    case FL__MSG_REPORT:
        message_receive_report(fed, m);
        break;
    case FL__MSG_FAILED:
        message_receive_failed(fed, m);
        break;
    case FL__MSG_EVALUATION:
        message_receive_evaluation(fed, m);
        break;
    default:
        message_receive_lost(fed, m);
        break;
    }
}
