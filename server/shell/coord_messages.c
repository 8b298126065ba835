/* Messages of clients as events of the coordinator, and its effects as commands (coord_messages.h).
   Pure functions, on any thread; no encoding, and no decision about rounds. */
#include "server/shell/coord_messages.h"

#include <string.h>

/* --- events --- */

static struct fl_eval_rec messages_eval_rec(bool has, const struct fl_wire_evaluation *e)
{
    return has ? (struct fl_eval_rec){e->samples, e->correct, e->loss_sum, e->metrics}
               : (struct fl_eval_rec){0};
}

static void messages_set_report(struct fl_event *event, const struct fl_wire_report *r)
{
    event->type = FL_EV_REPORT;
    event->u.report.round = r->round;
    event->u.report.attempt = r->attempt;
    event->u.report.samples = r->samples;
    event->u.report.steps = r->steps;
    event->u.report.train_loss = r->train_loss;
    event->u.report.divergence = r->divergence;
    event->u.report.n_divergence = r->n_divergence;
    event->u.report.previous_dot = r->previous_dot;
    event->u.report.has_kept = r->has_kept;
    event->u.report.kept_round = r->kept_round;
    event->u.report.kept_attempt = r->kept_attempt;
    event->u.report.received = messages_eval_rec(r->has_received, &r->received);
    event->u.report.trained = messages_eval_rec(r->has_trained, &r->trained);
}

bool fl_coord_event_of(const struct fl_wire_event *message, uint32_t client, struct fl_event *ret)
{
    struct fl_event event = {0};

    switch (message->type) {
    case FL_WIRE_HELLO:
        event.type = FL_EV_CLIENT_JOINED;
        event.u.joined.name = message->u.hello.client;
        event.u.joined.agent = message->u.hello.agent != NULL ? message->u.hello.agent : "";
        event.u.joined.samples = message->u.hello.samples;
        event.u.joined.unavailable = message->u.hello.unavailable;
        event.u.joined.evaluation_samples = message->u.hello.evaluation_samples;
        event.u.joined.labels = message->u.hello.labels;
        event.u.joined.n_labels = message->u.hello.n_labels;
        break;
    case FL_WIRE_REPORT:
        messages_set_report(&event, &message->u.report);
        event.u.report.client = client;
        break;
    case FL_WIRE_FAILED:
        event.type = FL_EV_CLIENT_FAILED;
        event.u.failed.client = client;
        event.u.failed.round = message->u.failed.round;
        event.u.failed.attempt = message->u.failed.attempt;
        event.u.failed.reason = message->u.failed.reason;
        event.u.failed.diverged = message->u.failed.diverged;
        event.u.failed.unavailable = message->u.failed.unavailable;
        break;
    case FL_WIRE_EVALUATION:
        event.type = FL_EV_EVAL_REPORT;
        event.u.eval.client = client;
        event.u.eval.round = message->u.evaluation.round;
        event.u.eval.result = messages_eval_rec(/* has= */ true, &message->u.evaluation.result);
        event.u.eval.adapted =
            messages_eval_rec(message->u.evaluation.has_adapted, &message->u.evaluation.adapted);
        break;
    case FL_WIRE_DATA_SUMMARY: /* The front end assembles its pieces. */
    case FL_WIRE_HEARTBEAT_EVENT:
        return false;
    }
    *ret = event;
    return true;
}

/* Clients that hold this model already do not fetch it. */
static void coord_set_digest(const struct fl_model_state *model, struct fl_wire_payload *payload)
{
    const uint8_t *digest = fl_differences_digest(model->differences);

    payload->has_digest = digest != NULL;
    if (digest != NULL) {
        (void)memcpy(payload->digest, digest, sizeof(payload->digest));
    }
}

/* --- commands --- */

/* Clients that restarted their state since this round have nothing of it, and have lost nothing. */
static struct fl_task messages_task(const struct fl_coord_shell *shell, const struct fl_effect *e)
{
    struct fl_task task = e->task;

    if (task.counted.round <= shell->federation->generation.kept_since) {
        task.counted = (struct fl_round_key){.round = 0};
    }
    return task;
}

static struct fl_wire_plan messages_plan(const struct fl_coord_shell *shell,
                                         const struct fl_effect *e)
{
    return (struct fl_wire_plan){
        .round = e->round,
        .attempt = e->attempt,
        .units = (uint8_t *)(uintptr_t)e->units, /* Only read. */
        .n_units = e->units != NULL ? fl_layout_units(shell->federation->layout) : 0};
}

struct fl_wire_command fl_coord_command_of(const struct fl_coord_shell *shell,
                                           const struct fl_effect *e)
{
    struct fl_wire_command c = {.type = e->type == FL_EFF_ACCEPTED   ? FL_WIRE_ACCEPTED
                                        : e->type == FL_EFF_REJECTED ? FL_WIRE_REJECTED
                                                                     : FL_WIRE_DISMISSED};

    switch (e->type) {
    case FL_EFF_TASK:
        c.type = FL_WIRE_TASK;
        c.u.task.task = messages_task(shell, e);
        c.u.task.has_plan = e->units != NULL;
        c.u.task.plan = messages_plan(shell, e);
        break;
    case FL_EFF_PLAN:
        c.type = FL_WIRE_PLAN;
        c.u.plan = messages_plan(shell, e);
        break;
    case FL_EFF_EVALUATE_CLIENT:
        /* A client that adapts the model to its data before evaluation does so as in training. */
        c.type = FL_WIRE_EVALUATE;
        c.u.evaluate.round = e->round;
        c.u.evaluate.payload.name = fl_wire_lend(FL_PAYLOAD_CANDIDATE);
        c.u.evaluate.payload.bytes = fl_payload_bytes(
            shell->federation->strategy, shell->federation->layout, FL_PAYLOAD_IS_MODEL);
        coord_set_digest(&shell->progress->next.model, &c.u.evaluate.payload);
        c.u.evaluate.deadline_ms = e->task.deadline_ms;
        c.u.evaluate.learning_rate = fl_coord_learning_rate(shell->conf, e->round);
        break;
    case FL_EFF_DRAIN_CLIENTS:
        c.type = FL_WIRE_DRAIN;
        c.u.drain.reason = fl_wire_lend(e->text != NULL ? e->text : "the server drains");
        c.u.drain.reconnect_after_ms = e->task.deadline_ms;
        break;
    default:
        c.u.verdict.round = e->round;
        c.u.verdict.attempt = e->attempt;
        c.u.verdict.reason = fl_wire_lend(e->text);
        break;
    }
    return c;
}
