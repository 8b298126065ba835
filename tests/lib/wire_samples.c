#include "tests/lib/wire_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/wire_samples_identity.h"
#include "tests/lib/wire_samples_part.h"

static char text_client[] = "edge-04";
static char text_federation[] = "demo";
static char text_agent[] = "fl-clientd 0.1.0";
static char text_metrics[] = "macro_f1=0.75 errors+=3:900";
static char text_reason[] = "disk full: é";
static char text_site[] = "site";
static char text_empty[] = "";
static char text_solver[] = "prox";
static char text_mu[] = "mu";
static char text_value[] = "0.01";
static char text_codec[] = "float32";
static char text_fedadp[] = "fedadp";
static char text_own[] = "own";
static char text_model[] = "model";
static char text_control[] = "control";
static char text_dense[] = "dense 2";
static char text_relu[] = "relu";

static const struct fl_wire_session session = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}};

struct fl_layout *wire_sample_layout(void)
{
    static const size_t weight1[] = {3, 2};
    static const size_t bias1[] = {3};
    static const size_t weight2[] = {2, 3};
    struct fl_layout *layout = NULL;

    if (fl_layout_create(&layout) != FL_OK ||
        fl_layout_add(layout, "fc1", "fc1.weight", weight1, 2, false, NULL) != FL_OK ||
        fl_layout_add(layout, "fc1", "fc1.bias", bias1, 1, false, NULL) != FL_OK ||
        fl_layout_add(layout, "fc1", "fc1.running_mean", bias1, 1, true, NULL) != FL_OK ||
        fl_layout_add(layout, "fc2", "fc2.weight", weight2, 2, false, NULL) != FL_OK ||
        fl_layout_finish(layout, NULL) != FL_OK)
    {
        abort();
    }
    return layout;
}

/* --- events --- */

int wire_recode_event(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_event event = {0};
    int rv = fl_wire_event_decode(data, len, &event, err);

    if (rv == FL_OK) {
        rv = fl_wire_event_encode(&event, out);
    }
    fl_wire_event_done(&event);
    return rv;
}

static int hello(struct fl_buf *out)
{
    struct fl_pair labels[] = {{text_site, text_reason}, {text_agent, text_empty}};
    struct fl_wire_event event = {.type = FL_WIRE_HELLO};

    event.u.hello = (struct fl_wire_hello){.version_min = 1,
                                           .version_max = 3,
                                           .client = text_client,
                                           .samples = 6000,
                                           .evaluation_samples = 100,
                                           .labels = labels,
                                           .n_labels = 2,
                                           .agent = text_agent,
                                           .held = true,
                                           .held_round = 7,
                                           .held_attempt = 2,
                                           .yields = true,
                                           .unavailable = text_reason,
                                           .central_refused = text_reason,
                                           .has_digest = true,
                                           .digest = {9, 8, 7}};
    return fl_wire_event_encode(&event, out);
}

static int report(struct fl_buf *out)
{
    float divergence[] = {0.5f, 0.0f, NAN, INFINITY};
    struct fl_wire_event event = {.type = FL_WIRE_REPORT};

    event.u.report = (struct fl_wire_report){.round = 7,
                                             .attempt = 1,
                                             .samples = 6000,
                                             .steps = 600,
                                             .train_loss = 0.25,
                                             .divergence = divergence,
                                             .n_divergence = 4,
                                             .has_received = true,
                                             .received = {100, 93, 21.5}};
    return fl_wire_event_encode(&event, out);
}

static int report_personal(struct fl_buf *out)
{
    struct fl_wire_event event = {.type = FL_WIRE_REPORT};

    event.u.report = (struct fl_wire_report){.round = 8,
                                             .samples = 20,
                                             .steps = 1,
                                             .train_loss = 0.5,
                                             .has_trained = true,
                                             .trained = {10, 10, (double)NAN},
                                             .previous_dot = -0.125,
                                             .has_kept = true,
                                             .kept_round = 5,
                                             .kept_attempt = 2};
    return fl_wire_event_encode(&event, out);
}

static int heartbeat_event(struct fl_buf *out)
{
    struct fl_wire_event event = {.type = FL_WIRE_HEARTBEAT_EVENT, .u.heartbeat = 300};

    return fl_wire_event_encode(&event, out);
}

static int failed(struct fl_buf *out)
{
    struct fl_wire_event event = {.type = FL_WIRE_FAILED,
                                  .u.failed = {7, 1, text_reason, true, true}};

    return fl_wire_event_encode(&event, out);
}

static int evaluation(struct fl_buf *out)
{
    struct fl_wire_event event = {
        .type = FL_WIRE_EVALUATION,
        .u.evaluation = {.round = 7, .result = {1000, 970, 88.25, text_metrics}}};

    return fl_wire_event_encode(&event, out);
}

static int evaluation_adapted(struct fl_buf *out)
{
    struct fl_wire_event event = {.type = FL_WIRE_EVALUATION};

    event.u.evaluation.round = 7;
    event.u.evaluation.result = (struct fl_wire_evaluation){1000, 970, 88.25, text_metrics};
    event.u.evaluation.has_adapted = true;
    event.u.evaluation.adapted = (struct fl_wire_evaluation){1000, 1000, 0.5, NULL};
    return fl_wire_event_encode(&event, out);
}

static int data_summary(struct fl_buf *out)
{
    uint8_t data[] = {0, 0, 128, 63, 0, 0, 0, 64};
    struct fl_wire_event event = {.type = FL_WIRE_DATA_SUMMARY,
                                  .u.summary = {65536, 65544, data, 8}};

    return fl_wire_event_encode(&event, out);
}

static int data_summary_nothing(struct fl_buf *out)
{
    struct fl_wire_event event = {.type = FL_WIRE_DATA_SUMMARY, .u.summary = {0, 0, NULL, 0}};

    return fl_wire_event_encode(&event, out);
}

/* --- commands --- */

int wire_recode_command(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_command command = {0};
    int rv = fl_wire_command_decode(data, len, &command, err);

    if (rv == FL_OK) {
        rv = fl_wire_command_encode(&command, out);
    }
    fl_wire_command_done(&command);
    return rv;
}

static int welcome(struct fl_buf *out)
{
    struct fl_pair options[] = {{text_mu, text_value}};
    uint32_t input[] = {1, 28, 28};
    char *layers[] = {text_dense, text_relu};
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};
    struct fl_layout *layout = wire_sample_layout();
    int rv;

    command.u.welcome = (struct fl_wire_welcome){.version = 1,
                                                 .federation = text_federation,
                                                 .session = session,
                                                 .layout = layout,
                                                 .input = input,
                                                 .n_input = 3,
                                                 .layers = layers,
                                                 .n_layers = 2,
                                                 .metrics = layers,
                                                 .n_metrics = 2,
                                                 .classes = 10,
                                                 .solver = {text_solver, options, 1},
                                                 .codec = {text_codec, NULL, 0},
                                                 .upload = {text_fedadp, options, 1},
                                                 .personal = {text_own, NULL, 0},
                                                 .wants_previous_dot = true,
                                                 .wants_summary = true,
                                                 .generation = {1, 2, 3},
                                                 .state_generation = {4, 5, 6},
                                                 .heartbeat_ms = 5000,
                                                 .limits = {1u << 20, (1u << 20) + 64, 16, 30000},
                                                 .training = {1, 0, 10, 0.9, 0.0001, 0.5}};
    rv = fl_wire_command_encode(&command, out);
    fl_layout_free(layout);
    return rv;
}

static int refused(struct fl_buf *out)
{
    struct fl_wire_command command = {.type = FL_WIRE_REFUSED,
                                      .u.refused = {FL_WIRE_REASON_FULL, text_reason, 5000}};

    return fl_wire_command_encode(&command, out);
}

static int task(struct fl_buf *out)
{
    uint8_t units[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    struct fl_wire_payload payloads[] = {{text_model, 60, true, {4, 5, 6}},
                                         {text_control, 0, false, {0}}};
    struct fl_wire_command command = {.type = FL_WIRE_TASK};

    command.u.task = (struct fl_wire_task){.task = {.key = {7, 1},
                                                    .counted = {5, 3},
                                                    .learning_rate = 0.05,
                                                    .seed = UINT64_MAX - 1,
                                                    .order_seed = UINT64_MAX - 2,
                                                    .deadline_ms = 60000,
                                                    .n_selected = 10,
                                                    .population = 1000000,
                                                    .epoch = 4,
                                                    .draw = 11},
                                           .payloads = payloads,
                                           .n_payloads = 2,
                                           .has_plan = true,
                                           .plan = {7, 1, units, 10}};
    return fl_wire_command_encode(&command, out);
}

static int plan(struct fl_buf *out)
{
    struct fl_wire_command command = {.type = FL_WIRE_PLAN, .u.plan = {7, 1, NULL, 0}};

    return fl_wire_command_encode(&command, out);
}

static int accepted(struct fl_buf *out)
{
    struct fl_wire_command command = {.type = FL_WIRE_ACCEPTED, .u.verdict = {7, 1, NULL}};

    return fl_wire_command_encode(&command, out);
}

static int rejected(struct fl_buf *out)
{
    struct fl_wire_command command = {.type = FL_WIRE_REJECTED, .u.verdict = {7, 1, text_reason}};

    return fl_wire_command_encode(&command, out);
}

static int dismissed(struct fl_buf *out)
{
    struct fl_wire_command command = {.type = FL_WIRE_DISMISSED, .u.verdict = {7, 0, NULL}};

    return fl_wire_command_encode(&command, out);
}

static int heartbeat_command(struct fl_buf *out)
{
    struct fl_wire_command command = {.type = FL_WIRE_HEARTBEAT_COMMAND, .u.heartbeat = 1};

    return fl_wire_command_encode(&command, out);
}

static int drain(struct fl_buf *out)
{
    struct fl_wire_command command = {.type = FL_WIRE_DRAIN, .u.drain = {text_reason, 1000}};

    return fl_wire_command_encode(&command, out);
}

static int evaluate(struct fl_buf *out)
{
    struct fl_wire_command command = {.type = FL_WIRE_EVALUATE,
                                      .u.evaluate = {7, {text_model, 60, false, {0}}, 9000, 0.02}};

    return fl_wire_command_encode(&command, out);
}

/* --- bulk --- */

static int fetch(struct fl_buf *out)
{
    struct fl_wire_fetch msg = {.session = session, .round = 7, .payload = "model", .offset = 1000};

    return fl_wire_fetch_encode(&msg, out);
}

static int recode_fetch(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_fetch msg;
    int rv = fl_wire_fetch_decode(data, len, &msg, err);

    return rv != FL_OK ? rv : fl_wire_fetch_encode(&msg, out);
}

static int add_chunk(const struct fl_wire_chunk *chunk, bool push, struct fl_buf *out)
{
    uint8_t head[FL_WIRE_CHUNK_HEAD];
    size_t n = push ? fl_wire_push_chunk_head(chunk->offset, chunk->len, head)
                    : fl_wire_chunk_head(chunk->offset, chunk->len, head);
    int rv = fl_buf_add(out, head, n);

    return rv != FL_OK ? rv : fl_buf_add(out, chunk->data, chunk->len);
}

static const uint8_t payload[] = {0, 0, 128, 63, 0, 0, 0, 64};

static int chunk(struct fl_buf *out)
{
    return add_chunk(&(struct fl_wire_chunk){4096, payload, sizeof(payload)}, false, out);
}

static int recode_chunk(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_chunk msg;
    int rv = fl_wire_chunk_decode(data, len, &msg, err);

    return rv != FL_OK ? rv : add_chunk(&msg, false, out);
}

static int push_chunk(struct fl_buf *out)
{
    return add_chunk(&(struct fl_wire_chunk){1u << 30, payload, sizeof(payload)}, true, out);
}

static int push_header(struct fl_buf *out)
{
    struct fl_wire_part parts[] = {
        {"update", 0, 1, 48, true}, {"update", 1, 99, 24, false}, {"control", 1, 1, 0, false}};
    struct fl_wire_push_header msg = {session, 7, 1, parts, 3, 72};

    return fl_wire_push_header_encode(&msg, out);
}

int wire_recode_push(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_push_header header = {0};
    struct fl_wire_chunk msg = {0};
    bool is_header = false;
    int rv = fl_wire_push_decode(data, len, &is_header, &header, &msg, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = is_header ? fl_wire_push_header_encode(&header, out) : add_chunk(&msg, true, out);
    fl_wire_push_header_done(&header);
    return rv;
}

static int push_reply(struct fl_buf *out)
{
    return fl_wire_push_reply_encode(&(struct fl_wire_push_reply){false, 24}, out);
}

static int recode_push_reply(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_push_reply msg;
    int rv = fl_wire_push_reply_decode(data, len, &msg, err);

    return rv != FL_OK ? rv : fl_wire_push_reply_encode(&msg, out);
}

static int status_request(struct fl_buf *out)
{
    struct fl_wire_push_status msg = {.session = session, .round = 7, .attempt = 1};

    return fl_wire_push_status_request_encode(&msg, out);
}

static int recode_status_request(const void *data, size_t len, struct fl_buf *out,
                                 struct fl_err *err)
{
    struct fl_wire_push_status msg;
    int rv = fl_wire_push_status_request_decode(data, len, &msg, err);

    return rv != FL_OK ? rv : fl_wire_push_status_request_encode(&msg, out);
}

static int status_reply(struct fl_buf *out)
{
    struct fl_wire_push_status msg = {.received = 24, .accepted = true};

    return fl_wire_push_status_reply_encode(&msg, out);
}

static int recode_status_reply(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_push_status msg;
    int rv = fl_wire_push_status_reply_decode(data, len, &msg, err);

    return rv != FL_OK ? rv : fl_wire_push_status_reply_encode(&msg, out);
}

/* --- admin --- */

static struct fl_round_rec round_rec(void)
{
    return (struct fl_round_rec){.round = 7,
                                 .attempt = 1,
                                 .n_selected = 10,
                                 .n_responders = 9,
                                 .accuracy = 0.5,
                                 .loss = 1.5,
                                 .train_loss = 1.25,
                                 .uplink_bytes = 100,
                                 .uplink_bytes_full = 200,
                                 .downlink_bytes = 300,
                                 .feedback_bytes = 40,
                                 .started_ms = 1000,
                                 .ended_ms = 2000,
                                 .personal_accuracy = 0.5,
                                 .personal_mean = 0.25,
                                 .n_personal = 3,
                                 .received_accuracy = 0.0,
                                 .received_mean = 0.125,
                                 .client_accuracy_mean = 0.75,
                                 .client_accuracy_std = 0.25,
                                 .client_accuracy_worst_tenth = 0.5,
                                 .client_accuracy_median = 0.875,
                                 .client_loss_mean = 1.25,
                                 .effective = 2.5,
                                 .self_weight = 0.75,
                                 .n_capped = 6,
                                 .norm_ratio = 3.5,
                                 .n_left_out = 2,
                                 .n_clipped = 4,
                                 .n_share_capped = 5,
                                 .influence = 1.5,
                                 .n_robust_out = 3,
                                 .robust_used = 0.75};
}

static int status(struct fl_buf *out)
{
    /* clang-format off */
    struct fl_wire_status msg = {
        .federation = text_federation, .phase = text_reason, .algorithm = text_solver,
        .version = text_agent, .round = 8, .rounds_committed = 7, .rounds_total = 30,
        .clients_known = 10, .clients_connected = 9, .uptime_ms = 5, .totals = round_rec(),
        .why = text_reason, .failed_attempts = 2, .disk_free_bytes = 3, .disk_bytes = 4,
        .certificate_ends_ms = 6};
    /* clang-format on */

    return fl_wire_status_encode(&msg, out);
}

static int recode_status(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_status msg = {0};
    int rv = fl_wire_status_decode(data, len, &msg, err);

    if (rv == FL_OK) {
        rv = fl_wire_status_encode(&msg, out);
    }
    fl_wire_status_done(&msg);
    return rv;
}

static int why(struct fl_buf *out)
{
    char *missing[] = {text_client, text_federation};

    return fl_wire_why_encode(&(struct fl_wire_why){text_reason, missing, 2}, out);
}

static int recode_why(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_why msg = {0};
    int rv = fl_wire_why_decode(data, len, &msg, err);

    if (rv == FL_OK) {
        rv = fl_wire_why_encode(&msg, out);
    }
    fl_wire_why_done(&msg);
    return rv;
}

static int round_info(struct fl_buf *out)
{
    char *changes[] = {text_reason, text_value};
    struct fl_wire_round msg = {.figures = round_rec(),
                                .changes = changes,
                                .n_changes = 2,
                                .generation = 1,
                                .abandoned_ms = 3000,
                                .abandoned_by = text_reason,
                                .robust_clients = text_agent,
                                .metrics = text_metrics};

    msg.figures.received_accuracy = -1.0; /* not measured */
    msg.figures.effective = 0.0;
    return fl_wire_round_encode(&msg, out);
}

static int recode_round(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_round msg;
    int rv = fl_wire_round_decode(data, len, &msg, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_wire_round_encode(&msg, out);
    fl_wire_round_done(&msg);
    return rv;
}

static int client_info(struct fl_buf *out)
{
    struct fl_pair labels[] = {{text_site, text_reason}, {text_agent, text_empty}};
    struct fl_wire_client msg = {.name = text_client,
                                 .agent = text_agent,
                                 .state = text_reason,
                                 .connected = true,
                                 .figures = {.samples = 6000,
                                             .n_selected = 1,
                                             .n_accepted = 2,
                                             .n_rejected = 3,
                                             .n_lost = 4,
                                             .n_share_capped = 2,
                                             .last_seen_ms = 5,
                                             .score = 0.75,
                                             .last_loss = (double)NAN},
                                 .last_error = text_reason,
                                 .last_error_ms = 6,
                                 .quarantine = text_reason,
                                 .quarantined_ms = 7,
                                 .ineligible = text_reason,
                                 .central = text_reason,
                                 .labels = labels,
                                 .n_labels = 2};

    return fl_wire_client_encode(&msg, out);
}

static int recode_client(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_client msg = {0};
    int rv = fl_wire_client_decode(data, len, &msg, err);

    if (rv == FL_OK) {
        rv = fl_wire_client_encode(&msg, out);
    }
    fl_wire_client_done(&msg);
    return rv;
}

static int export_chunk(struct fl_buf *out)
{
    return fl_wire_export_encode(&(struct fl_wire_export_chunk){7, payload, sizeof(payload)}, out);
}

static int recode_export(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_export_chunk msg;
    int rv = fl_wire_export_decode(data, len, &msg, err);

    return rv != FL_OK ? rv : fl_wire_export_encode(&msg, out);
}

static int checkpoint(struct fl_buf *out)
{
    return fl_wire_checkpoint_encode(&(struct fl_wire_checkpoint){7, 1000, 0.5, text_reason}, out);
}

static int recode_checkpoint(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_checkpoint msg;
    int rv = fl_wire_checkpoint_decode(data, len, &msg, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_wire_checkpoint_encode(&msg, out);
    fl_wire_checkpoint_done(&msg);
    return rv;
}

static int summary(struct fl_buf *out)
{
    return fl_wire_summary_encode(
        &(struct fl_wire_summary){text_reason, text_reason, 1016, 3e38, 15.0}, out);
}

static int recode_summary(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_summary msg;
    int rv = fl_wire_summary_decode(data, len, &msg, err);

    if (rv == FL_OK) {
        rv = fl_wire_summary_encode(&msg, out);
        fl_wire_summary_done(&msg);
    }
    return rv;
}

static int drop(struct fl_buf *out)
{
    return fl_wire_drop_summary_encode("edge-1", out);
}

static int recode_drop(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    char client[FL_NAME_MAX];
    int rv = fl_wire_drop_summary_decode(data, len, client, err);

    return rv != FL_OK ? rv : fl_wire_drop_summary_encode(client, out);
}

static int pin(struct fl_buf *out)
{
    return fl_wire_pin_encode(&(struct fl_wire_pin){7, true}, out);
}

static int recode_pin(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_pin msg;
    int rv = fl_wire_pin_decode(data, len, &msg, err);

    return rv != FL_OK ? rv : fl_wire_pin_encode(&msg, out);
}

static int export_request(struct fl_buf *out)
{
    return fl_wire_export_request_encode(7, out);
}

static int recode_export_request(const void *data, size_t len, struct fl_buf *out,
                                 struct fl_err *err)
{
    uint64_t round = 0;
    int rv = fl_wire_export_request_decode(data, len, &round, err);

    return rv != FL_OK ? rv : fl_wire_export_request_encode(round, out);
}

static int forget(struct fl_buf *out)
{
    const struct fl_wire_forget f = {.name = "edge-1"};

    return fl_wire_forget_encode(&f, out);
}

static int recode_forget(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_forget f;
    int rv = fl_wire_forget_decode(data, len, &f, err);

    return rv != FL_OK ? rv : fl_wire_forget_encode(&f, out);
}

static int forgotten(struct fl_buf *out)
{
    const struct fl_wire_forgotten r = {.forgotten = 7, .in_round = 2};

    return fl_wire_forgotten_encode(&r, out);
}

static int recode_forgotten(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_forgotten r;
    int rv = fl_wire_forgotten_decode(data, len, &r, err);

    return rv != FL_OK ? rv : fl_wire_forgotten_encode(&r, out);
}

#define RECODE_OWNER(name)                                                                         \
    static int recode_##name(const void *data, size_t len, struct fl_buf *out, struct fl_err *err) \
    {                                                                                              \
        struct fl_wire_##name msg;                                                                 \
        int rv = fl_wire_##name##_decode(data, len, &msg, err);                                    \
                                                                                                   \
        if (rv == FL_OK) {                                                                         \
            rv = fl_wire_##name##_encode(&msg, out);                                               \
            fl_wire_##name##_done(&msg);                                                           \
        }                                                                                          \
        return rv;                                                                                 \
    }

static int control(struct fl_buf *out)
{
    const struct fl_wire_control c = {.reason = text_reason};

    return fl_wire_control_encode(&c, out);
}

RECODE_OWNER(control)

static int client_control(struct fl_buf *out)
{
    const struct fl_wire_client_control c = {.client = text_client, .reason = text_reason};

    return fl_wire_client_control_encode(&c, out);
}

RECODE_OWNER(client_control)

static int controlled(struct fl_buf *out)
{
    char phase[] = "PAUSED";
    const struct fl_wire_controlled r = {.phase = phase, .text = text_reason, .round = 4};

    return fl_wire_controlled_encode(&r, out);
}

RECODE_OWNER(controlled)

static int rollback(struct fl_buf *out)
{
    const struct fl_wire_rollback r = {.round = 4, .force = true};

    return fl_wire_rollback_encode(&r, out);
}

static int recode_rollback(const void *data, size_t len, struct fl_buf *out, struct fl_err *err)
{
    struct fl_wire_rollback r;
    int rv = fl_wire_rollback_decode(data, len, &r, err);

    return rv != FL_OK ? rv : fl_wire_rollback_encode(&r, out);
}

const struct wire_sample wire_samples[] = {
    {"event_hello", hello, wire_recode_event},
    {"event_report", report, wire_recode_event},
    {"event_report_personal", report_personal, wire_recode_event},
    {"event_heartbeat", heartbeat_event, wire_recode_event},
    {"event_failed", failed, wire_recode_event},
    {"event_evaluation", evaluation, wire_recode_event},
    {"event_evaluation_adapted", evaluation_adapted, wire_recode_event},
    {"event_data_summary", data_summary, wire_recode_event},
    {"event_data_summary_nothing", data_summary_nothing, wire_recode_event},
    {"command_welcome", welcome, wire_recode_command},
    {"command_refused", refused, wire_recode_command},
    {"command_task", task, wire_recode_command},
    {"command_plan", plan, wire_recode_command},
    {"command_accepted", accepted, wire_recode_command},
    {"command_rejected", rejected, wire_recode_command},
    {"command_dismissed", dismissed, wire_recode_command},
    {"command_heartbeat", heartbeat_command, wire_recode_command},
    {"command_drain", drain, wire_recode_command},
    {"command_evaluate", evaluate, wire_recode_command},
    {"push_header", push_header, wire_recode_push},
    {"push_chunk", push_chunk, wire_recode_push},
    {"fetch", fetch, recode_fetch},
    {"chunk", chunk, recode_chunk},
    {"reply_push", push_reply, recode_push_reply},
    {"status_request", status_request, recode_status_request},
    {"status_reply", status_reply, recode_status_reply},
    {"admin_status", status, recode_status},
    {"admin_why", why, recode_why},
    {"admin_round", round_info, recode_round},
    {"admin_client", client_info, recode_client},
    {"admin_export", export_chunk, recode_export},
    {"admin_list_rounds", wire_sample_list_rounds, wire_recode_list_rounds},
    {"admin_list_participations", wire_sample_list_participations, wire_recode_list_participations},
    {"admin_participation", wire_sample_participation, wire_recode_participation},
    {"admin_checkpoint", checkpoint, recode_checkpoint},
    {"admin_pin", pin, recode_pin},
    {"admin_export_request", export_request, recode_export_request},
    {"admin_forget", forget, recode_forget},
    {"admin_summary", summary, recode_summary},
    {"admin_drop_summary", drop, recode_drop},
    {"admin_forgotten", forgotten, recode_forgotten},
    {"admin_rollback", rollback, recode_rollback},
    {"admin_control", control, recode_control},
    {"admin_client_control", client_control, recode_client_control},
    {"admin_controlled", controlled, recode_controlled},
#define X(name) {"identity_" #name, wire_sample_##name##_, wire_recode_##name##_},
    WIRE_IDENTITY_SAMPLES(X)
#undef X
        {NULL, NULL, NULL},
};
