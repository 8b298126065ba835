#include "client/daemon/events.h"

void fl_event_hello(struct fl_connection *connection, const struct fl_client_conf *conf,
                    const char *name, const struct fl_local_data *data,
                    const struct fl_session_message *hello)
{
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};
    struct fl_wire_hello *h = &event.u.hello;
    const struct fl_opt_map *given = &conf->main->labels;
    struct fl_wire_pair labels[FL_WIRE_MAX_PAIRS];
    size_t i;

    for (i = 0; i < given->n && i < FL_WIRE_MAX_PAIRS; i++) { /* client_conf.c checked it. */
        labels[i].key = fl_wire_lend(given->list[i].key);
        labels[i].value = fl_wire_lend(given->list[i].value);
    }
    h->version_min = FL_WIRE_VERSION;
    h->version_max = FL_WIRE_VERSION;
    h->client = fl_wire_lend(name);
    h->samples = data->samples;
    h->evaluation_samples = data->evaluation_samples;
    h->labels = labels;
    h->n_labels = i;
    h->agent = fl_wire_lend("fl-clientd " PACKAGE_VERSION);
    h->held = hello->key.round != 0;
    h->held_round = hello->key.round;
    h->held_attempt = hello->key.attempt;
    h->yields = hello->yields;
    fl_connection_send(connection, &event);
}

void fl_event_heartbeat(struct fl_connection *connection, uint64_t number)
{
    struct fl_wire_event event = {.type = FL_WIRE_HEARTBEAT_EVENT};

    event.u.heartbeat = number;
    fl_connection_send(connection, &event);
}

static struct fl_wire_evaluation event_evaluation(const struct fl_evaluation *e)
{
    return (struct fl_wire_evaluation){e->samples, e->correct, e->loss_sum};
}

void fl_event_report(struct fl_connection *connection, const struct fl_result *r)
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
    w->received = event_evaluation(&r->received);
    w->has_trained = r->has_trained;
    w->trained = event_evaluation(&r->trained);
    w->previous_dot = r->previous_dot;
    w->has_kept = r->has_kept;
    w->kept_round = r->kept.round;
    w->kept_attempt = r->kept.attempt;
    fl_connection_send(connection, &event);
}

void fl_event_failed(struct fl_connection *connection, struct fl_round_key key, const char *reason,
                     bool diverged)
{
    struct fl_wire_event event = {.type = FL_WIRE_FAILED};

    event.u.failed.round = key.round;
    event.u.failed.attempt = key.attempt;
    event.u.failed.reason = fl_wire_lend(reason != NULL ? reason : "unknown");
    event.u.failed.diverged = diverged;
    fl_connection_send(connection, &event);
}

void fl_event_evaluation(struct fl_connection *connection, uint64_t round,
                         const struct fl_evaluation_result *evaluation)
{
    struct fl_wire_event event = {.type = FL_WIRE_EVALUATION};

    event.u.evaluation.round = round;
    event.u.evaluation.result = event_evaluation(&evaluation->received);
    if (evaluation->adapted.samples > 0) {
        event.u.evaluation.has_adapted = true;
        event.u.evaluation.adapted = event_evaluation(&evaluation->adapted);
    }
    fl_connection_send(connection, &event);
}
