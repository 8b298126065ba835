/* Commands of the server as events of the session, its effects and results as messages
   (session_messages.h). Pure functions, on any thread; no encoding, and no decision. */
#include "client/shell/session_messages.h"

/* --- commands --- */

static enum fl_session_event_type messages_event_type(enum fl_wire_command_type type)
{
    static const enum fl_session_event_type events[] = {
        [FL_WIRE_WELCOME] = FL_CEV_WELCOME,     [FL_WIRE_REFUSED] = FL_CEV_REFUSED,
        [FL_WIRE_TASK] = FL_CEV_TASK,           [FL_WIRE_PLAN] = FL_CEV_PLAN,
        [FL_WIRE_ACCEPTED] = FL_CEV_ACCEPTED,   [FL_WIRE_REJECTED] = FL_CEV_REJECTED,
        [FL_WIRE_DISMISSED] = FL_CEV_DISMISSED, [FL_WIRE_EVALUATE] = FL_CEV_EVALUATE,
        [FL_WIRE_DRAIN] = FL_CEV_DRAIN,         [FL_WIRE_HEARTBEAT_COMMAND] = FL_CEV_HEARTBEAT,
    };

    return events[type];
}

static enum fl_session_refusal messages_refusal(enum fl_wire_reason reason)
{
    return reason == FL_WIRE_REASON_REVOKED     ? FL_SESSION_REFUSED_CURABLE
           : reason == FL_WIRE_REASON_DUPLICATE ? FL_SESSION_REFUSED_FENCED
                                                : FL_SESSION_REFUSED_FINAL;
}

struct fl_session_event fl_session_event_of(const struct fl_wire_command *w)
{
    struct fl_session_event event = {.type = messages_event_type(w->type)};

    switch (w->type) {
    case FL_WIRE_REFUSED:
        event.u.refused.retry_after_ms = w->u.refused.retry_after_ms;
        event.u.refused.kind = messages_refusal(w->u.refused.reason);
        event.u.refused.reason = w->u.refused.message;
        break;
    case FL_WIRE_TASK:
        event.u.task.key = w->u.task.task.key;
        event.u.task.has_plan = w->u.task.has_plan;
        event.u.task.units = w->u.task.plan.units;
        event.u.task.n_units = w->u.task.plan.n_units;
        break;
    case FL_WIRE_PLAN:
        event.u.plan.key = (struct fl_round_key){w->u.plan.round, w->u.plan.attempt};
        event.u.plan.units = w->u.plan.units;
        event.u.plan.n_units = w->u.plan.n_units;
        break;
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_DISMISSED:
        event.u.key = (struct fl_round_key){w->u.verdict.round, w->u.verdict.attempt};
        break;
    case FL_WIRE_REJECTED:
        event.u.failed.key = (struct fl_round_key){w->u.verdict.round, w->u.verdict.attempt};
        event.u.failed.reason = w->u.verdict.reason;
        break;
    case FL_WIRE_DRAIN:
        event.u.drain.reconnect_after_ms = w->u.drain.reconnect_after_ms;
        event.u.drain.reason = w->u.drain.reason;
        break;
    case FL_WIRE_EVALUATE:
        event.u.evaluate.round = w->u.evaluate.round;
        break;
    case FL_WIRE_WELCOME:
    case FL_WIRE_HEARTBEAT_COMMAND:
    case FL_WIRE_CENTRAL: /* Not for the session: the caller keeps it back. */
        break;
    }
    return event;
}

/* --- messages to the server --- */

static struct fl_wire_event messages_hello(const struct fl_session_effect *e)
{
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};

    event.u.hello.version_min = FL_WIRE_VERSION;
    event.u.hello.version_max = FL_WIRE_VERSION;
    event.u.hello.held = e->key.round != 0;
    event.u.hello.held_round = e->key.round;
    event.u.hello.held_attempt = e->key.attempt;
    event.u.hello.yields = e->yields;
    return event;
}

struct fl_wire_event fl_session_message_of(const struct fl_session_effect *e)
{
    struct fl_wire_event event = {.type = FL_WIRE_REPORT};

    switch (e->type) {
    case FL_CEFF_HELLO:
        return messages_hello(e);
    case FL_CEFF_FAILED:
        return fl_session_failed(e->key, e->text, e->diverged);
    case FL_CEFF_NO_EVALUATION:
        return fl_session_evaluation(e->key.round, NULL);
    case FL_CEFF_HEARTBEAT:
        event.type = FL_WIRE_HEARTBEAT_EVENT;
        return event;
    default: /* FL_CEFF_REPORT */
        event.u.report.round = e->key.round;
        event.u.report.attempt = e->key.attempt;
        return event;
    }
}

static struct fl_wire_evaluation messages_evaluation(const struct fl_evaluation *e)
{
    return (struct fl_wire_evaluation){.samples = e->samples,
                                       .correct = e->correct,
                                       .loss_sum = e->loss_sum,
                                       .metrics =
                                           e->metrics[0] != '\0' ? fl_wire_lend(e->metrics) : NULL};
}

struct fl_wire_event fl_session_report(const struct fl_result *r)
{
    struct fl_wire_event event = {.type = FL_WIRE_REPORT};
    struct fl_wire_report *w = &event.u.report;

    w->round = r->key.round;
    w->attempt = r->key.attempt;
    w->samples = r->samples;
    w->steps = r->steps;
    w->train_loss = r->train_loss;
    w->divergence = r->divergence;
    w->n_divergence = r->n_units;
    w->has_received = r->has_received;
    w->received = messages_evaluation(&r->received);
    w->has_trained = r->has_trained;
    w->trained = messages_evaluation(&r->trained);
    w->previous_dot = r->previous_dot;
    w->has_kept = r->has_kept;
    w->kept_round = r->kept.round;
    w->kept_attempt = r->kept.attempt;
    return event;
}

struct fl_wire_event fl_session_failed(struct fl_round_key key, const char *reason, bool diverged)
{
    struct fl_wire_event event = {.type = FL_WIRE_FAILED};

    event.u.failed.round = key.round;
    event.u.failed.attempt = key.attempt;
    event.u.failed.reason = fl_wire_lend(reason != NULL ? reason : "unknown");
    event.u.failed.diverged = diverged;
    return event;
}

struct fl_wire_event fl_session_evaluation(uint64_t round,
                                           const struct fl_evaluation_result *evaluation)
{
    struct fl_wire_event event = {.type = FL_WIRE_EVALUATION};

    event.u.evaluation.round = round;
    if (evaluation != NULL) {
        event.u.evaluation.result = messages_evaluation(&evaluation->received);
        event.u.evaluation.has_adapted = evaluation->adapted.samples > 0;
        event.u.evaluation.adapted = messages_evaluation(&evaluation->adapted);
    }
    return event;
}
