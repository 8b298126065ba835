/* What this client sends on the control stream. */

#include "client/daemon/client.h"

void fl_control_send(struct fl_clientd *cli, const struct fl_wire_event *event)
{
    struct fl_buf buf;
    struct fl_piece piece;
    int rv;

    if (cli->attend == NULL) {
        return;
    }
    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL);
    rv = fl_wire_event_encode(event, &buf);
    if (rv == FL_OK) {
        piece = (struct fl_piece){.data = buf.data, .len = buf.len};
        rv = fl_call_send(cli->attend, &piece, 1);
    }
    fl_buf_done(&buf);
    if (rv != FL_OK && rv != FL_ECLOSED) {
        fl_log_peer(cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "control stream is stuck (%s), reconnecting", fl_strerror(rv));
        fl_call_cancel(cli->attend);
    }
}

void fl_control_hello(struct fl_clientd *cli, struct fl_round_key held)
{
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};
    struct fl_wire_hello *h = &event.u.hello;
    size_t n = fl_options_count(cli->conf->main, "labels");
    struct fl_wire_pair labels[FL_WIRE_MAX_PAIRS];
    size_t i;

    for (i = 0; i < n && i < FL_WIRE_MAX_PAIRS; i++) { /* More are no configuration. */
        labels[i].key = fl_wire_lend(fl_options_key(cli->conf->main, "labels", i));
        labels[i].value = fl_wire_lend(fl_options_item(cli->conf->main, "labels", i));
    }
    h->version_min = FL_WIRE_VERSION;
    h->version_max = FL_WIRE_VERSION;
    h->client = fl_wire_lend(fl_options_str(cli->conf->main, "name"));
    h->samples = cli->samples;
    h->evaluation_samples = cli->evaluation_samples;
    h->labels = labels;
    h->n_labels = i;
    h->agent = fl_wire_lend("fl-clientd " PACKAGE_VERSION);
    h->held = held.round != 0;
    h->held_round = held.round;
    h->held_attempt = held.attempt;
    fl_control_send(cli, &event);
}

void fl_control_heartbeat(struct fl_clientd *cli)
{
    struct fl_wire_event event = {.type = FL_WIRE_HEARTBEAT_EVENT};

    event.u.heartbeat = ++cli->heartbeat;
    fl_control_send(cli, &event);
}

static struct fl_wire_evaluation figures(const struct fl_result_evaluation *e)
{
    return (struct fl_wire_evaluation){e->samples, e->correct, e->loss_sum};
}

void fl_control_report(struct fl_clientd *cli)
{
    const struct fl_result *r = cli->result;
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
    w->received = figures(&r->received);
    w->has_trained = r->has_trained;
    w->trained = figures(&r->trained);
    w->previous_dot = r->previous_dot;
    fl_control_send(cli, &event);
}

void fl_control_failed(struct fl_clientd *cli, struct fl_round_key key, const char *reason,
                       bool diverged)
{
    struct fl_wire_event event = {.type = FL_WIRE_FAILED};

    event.u.failed.round = key.round;
    event.u.failed.attempt = key.attempt;
    event.u.failed.reason = fl_wire_lend(reason != NULL ? reason : "unknown");
    event.u.failed.diverged = diverged;
    fl_control_send(cli, &event);
}

void fl_control_evaluation(struct fl_clientd *cli, uint64_t round,
                           const struct fl_wire_evaluation *result,
                           const struct fl_wire_evaluation *adapted)
{
    struct fl_wire_event event = {.type = FL_WIRE_EVALUATION};

    event.u.evaluation.round = round;
    event.u.evaluation.result = *result;
    if (adapted != NULL) {
        event.u.evaluation.has_adapted = true;
        event.u.evaluation.adapted = *adapted;
    }
    fl_control_send(cli, &event);
}
