/*
 * Messages between clients and server: copies for the time that they are on their way, their
 * encoded length, and what the server does with those of clients beside the step of the coordinator
 * (server/shell/coord_messages.h). One thread, that of the federation.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/work/summary_work.h"
#include "tools/fl_sim/engine/sim_federation_impl.h"

/* --- new messages --- */

static struct fl__message *message_new(struct fl_fed *fed, enum fl__message_kind kind,
                                       uint32_t client)
{
    struct fl__message *m = calloc(1, sizeof(*m));

    if (m == NULL) {
        fl__fed_fail(fed, FL_ENOMEM, NULL, "a message");
        return NULL;
    }
    m->kind = kind;
    m->client = client;
    m->connection = fed->clients[client].connection;
    return m;
}

/* Replaces a borrowed list by a copy that the message owns; false: out of memory, and the message
   is freed. */
static bool message_copy_list(struct fl_fed *fed, struct fl__message *m, const void *data,
                              size_t len)
{
    m->list = malloc(len + 1);
    if (m->list == NULL) {
        fl__message_free(m);
        fl__fed_fail(fed, FL_ENOMEM, NULL, "a message");
        return false;
    }
    if (len > 0) {
        (void)memcpy(m->list, data, len);
    }
    return true;
}

/* The same for the metrics of an evaluation. */
static bool message_copy_metrics(struct fl_fed *fed, struct fl__message *m, size_t i,
                                 struct fl_wire_evaluation *evaluation)
{
    if (evaluation->metrics == NULL) {
        return true;
    }
    m->metrics[i] = fl_str_dup(evaluation->metrics);
    if (m->metrics[i] == NULL) {
        fl__message_free(m);
        fl__fed_fail(fed, FL_ENOMEM, NULL, "a message");
        return false;
    }
    evaluation->metrics = m->metrics[i];
    return true;
}

static char *message_copy_text(struct fl__message *m, const char *text)
{
    (void)snprintf(m->text, sizeof(m->text), "%s", text != NULL ? text : "");
    return m->text;
}

struct fl__message *fl__message_lost(struct fl_fed *fed, uint32_t client)
{
    return message_new(fed, FL__MSG_LOST, client);
}

struct fl__message *fl__message_event(struct fl_fed *fed, uint32_t client,
                                      const struct fl_wire_event *event)
{
    struct fl__message *m = message_new(fed, FL__MSG_EVENT, client);
    const struct fl_wire_report *report = &event->u.report;

    if (m == NULL) {
        return NULL;
    }
    m->u.event = *event;
    if (event->type == FL_WIRE_FAILED) {
        m->u.event.u.failed.reason = message_copy_text(m, event->u.failed.reason);
    } else if (event->type == FL_WIRE_REPORT) {
        if (!message_copy_metrics(fed, m, 0, &m->u.event.u.report.received) ||
            !message_copy_metrics(fed, m, 1, &m->u.event.u.report.trained) ||
            !message_copy_list(fed, m, report->divergence,
                               report->n_divergence * sizeof(*report->divergence)))
        {
            return NULL;
        }
        m->u.event.u.report.divergence = m->list;
    } else if (event->type == FL_WIRE_EVALUATION &&
               (!message_copy_metrics(fed, m, 0, &m->u.event.u.evaluation.result) ||
                !message_copy_metrics(fed, m, 1, &m->u.event.u.evaluation.adapted)))
    {
        return NULL;
    }
    return m;
}

struct fl__message *fl__message_command(struct fl_fed *fed, uint32_t client,
                                        const struct fl_wire_command *command)
{
    struct fl__message *m = message_new(fed, FL__MSG_COMMAND, client);
    struct fl_wire_plan *plan = NULL;

    if (m == NULL) {
        return NULL;
    }
    m->u.command = *command;
    switch (command->type) {
    case FL_WIRE_TASK:
        plan = &m->u.command.u.task.plan;
        break;
    case FL_WIRE_PLAN:
        plan = &m->u.command.u.plan;
        break;
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_REJECTED:
    case FL_WIRE_DISMISSED:
        m->u.command.u.verdict.reason = message_copy_text(m, command->u.verdict.reason);
        break;
    default: /* Borrows nothing that does not last. */
        break;
    }
    if (plan != NULL && plan->units != NULL) {
        if (!message_copy_list(fed, m, plan->units, plan->n_units)) {
            return NULL;
        }
        plan->units = m->list;
    }
    return m;
}

void fl__message_describe(const struct fl_fed *fed, uint32_t client, struct fl_wire_hello *hello)
{
    struct fl_sim_client sim_client;

    fed->conf.sim_clients->sim_client(fed->conf.sim_clients->ctx, client, &sim_client);
    hello->client = fl_wire_lend(sim_client.name);
    hello->samples = sim_client.attack != NULL
                         ? fl_attack_claimed_samples(sim_client.attack, sim_client.samples)
                         : sim_client.samples;
    hello->evaluation_samples = sim_client.evaluation_samples;
    hello->agent = fl_wire_lend("fl-sim");
}

/* --- message lengths --- */

static int message_encode_command(const struct fl_fed *fed, const struct fl__message *m,
                                  struct fl_buf *out)
{
    struct fl_wire_payload payloads[FL_PAYLOADS_MAX];
    struct fl_wire_command command = m->u.command;
    size_t n;
    size_t i;

    if (command.type == FL_WIRE_EVALUATE) { /* The digest itself is not known in a replay. */
        command.u.evaluate.payload.has_digest =
            fl_broadcast_sends_moves(fed->federation.strategy->broadcast);
    }
    if (command.type != FL_WIRE_TASK) {
        return fl_wire_command_encode(&command, out);
    }
    n = fl_payloads_list(fed->federation.strategy, fed->federation.layout, m->personal_model,
                         payloads);
    for (i = 0; i < n; i++) {
        if (payloads[i].bytes == 0) { /* The collection of data summaries. */
            payloads[i].bytes = fed->collection_bytes;
            payloads[i].has_digest = true;
        }
        payloads[i].has_digest |= strcmp(payloads[i].name, FL_PAYLOAD_MODEL) == 0 &&
                                  fl_broadcast_sends_moves(fed->federation.strategy->broadcast);
    }
    command.u.task.payloads = payloads;
    command.u.task.n_payloads = n;
    return fl_wire_command_encode(&command, out);
}

uint64_t fl__message_bytes(struct fl_fed *fed, const struct fl__message *m)
{
    int rv;

    if (m->kind == FL__MSG_LOST) {
        return 0;
    }
    if (m->kind == FL__MSG_COMMAND && m->u.command.type == FL_WIRE_WELCOME) {
        return fed->welcome_bytes;
    }
    fl_buf_clear(&fed->scratch);
    rv = m->kind == FL__MSG_COMMAND ? message_encode_command(fed, m, &fed->scratch)
                                    : fl_wire_event_encode(&m->u.event, &fed->scratch);
    if (rv != FL_OK) {
        fl__fed_fail(fed, rv, NULL, "the length of a message");
    }
    return fed->scratch.len;
}

void fl__fed_send(struct fl_fed *fed, struct fl__message *m)
{
    struct fl_sim_round *sim = &fed->account.sim;
    bool report = m->kind == FL__MSG_EVENT && m->u.event.type == FL_WIRE_REPORT;

    *(m->kind == FL__MSG_COMMAND ? &sim->down_control_bytes
      : report                   ? &sim->up_report_bytes
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

static void message_take_hello(struct fl_fed *fed, const struct fl__message *m)
{
    struct fl__fed_client *c = &fed->clients[m->client];

    if (!c->collection && fed->federation.strategy->solver->summary != NULL) {
        c->collection = true;
        message_take_summary(fed, m->client);
    }
    c->joined = m->connection;
}

/* Without arithmetic (dry run) a loss or an evaluation has only its wire length. */
static struct fl_wire_event message_known(const struct fl_fed *fed,
                                          const struct fl_wire_event *event)
{
    struct fl_wire_event known = *event;

    if (fed->conf.dry && event->type == FL_WIRE_REPORT) {
        known.u.report.train_loss = 0;
        known.u.report.has_received = known.u.report.has_trained = false;
    } else if (fed->conf.dry && event->type == FL_WIRE_EVALUATION) {
        known.u.evaluation.result = (struct fl_wire_evaluation){0};
        known.u.evaluation.has_adapted = false;
    }
    return known;
}

static void message_account_report(struct fl_fed *fed, uint32_t client,
                                   const struct fl_event *event)
{
    struct fl_fed_part *p = fl_sim_account_part(&fed->account, client);

    if (p == NULL || p->round != event->u.report.round || p->attempt != event->u.report.attempt) {
        return;
    }
    p->reported_us = fed->now_us;
    p->samples = event->u.report.samples;
    p->steps = event->u.report.steps;
    p->train_loss = fed->conf.dry ? (double)NAN : event->u.report.train_loss;
    fed->account.last_report = (size_t)(p - fed->account.parts);
}

static void message_account_failed(struct fl_fed *fed, uint32_t client,
                                   const struct fl_event *event)
{
    struct fl_fed_part *p = fl_sim_account_part(&fed->account, client);

    if (p != NULL && p->round == event->u.failed.round && p->attempt == event->u.failed.attempt) {
        p->failed = true;
    }
}

static void message_receive_event(struct fl_fed *fed, const struct fl__message *m)
{
    const struct fl_wire_event known = message_known(fed, &m->u.event);
    struct fl_event event;

    FL_REQUIRE(fl_coord_event_of(&known, fed->clients[m->client].number, &event));
    if (known.type == FL_WIRE_HELLO) {
        message_take_hello(fed, m);
        fed->joining = m->client;
    } else if (known.type == FL_WIRE_REPORT) {
        message_account_report(fed, m->client, &event);
    } else if (known.type == FL_WIRE_FAILED) {
        message_account_failed(fed, m->client, &event);
    }
    fl__fed_step(fed, &event);
    fed->joining = UINT32_MAX;
}

void fl__fed_receive(struct fl_fed *fed, const struct fl__message *m)
{
    struct fl__fed_client *c = &fed->clients[m->client];
    bool hello = m->kind == FL__MSG_EVENT && m->u.event.type == FL_WIRE_HELLO;
    struct fl_event lost = {.type = FL_EV_CLIENT_LOST, .u.client = c->number};

    if (hello ? c->connection != m->connection
              : c->joined != m->connection || c->number == UINT32_MAX) {
        return; /* It disconnected in the meantime, or a newer session replaced this one. */
    }
    if (m->kind == FL__MSG_EVENT) {
        message_receive_event(fed, m);
    } else {
        c->joined = 0;
        fl__fed_step(fed, &lost);
    }
}
