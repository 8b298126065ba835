/*
 * Every check of a decoder, with the words that the peer's author gets to read. The messages are
 * made with protobuf-c itself, so that they can be wrong in every way.
 */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/admin.h"
#include "libfl/wire/messages.h"

static char text_ok[] = "ok";
static char text_slash[] = "a/b";
static char text_dot[] = ".hidden";
static char text_empty[] = "";
static char text_latin[] = "caf\xe9";
static char text_surrogate[] = "\xed\xa0\x80";
static char text_overlong[] = "\xc0\xaf";
static char text_long_name[FL_NAME_MAX + 1];
static char text_long[FL_WIRE_MAX_TEXT + 2];
static uint8_t bytes[1024];

static void setup(void)
{
    (void)memset(text_long_name, 'n', FL_NAME_MAX);
    (void)memset(text_long, 'x', FL_WIRE_MAX_TEXT + 1);
}

static ProtobufCBinaryData run_of(size_t len)
{
    return (ProtobufCBinaryData){len, bytes};
}

/* The encoding of any message, in memory that the test process takes with it. */
static uint8_t *packed(const ProtobufCMessage *msg, size_t *ret_len)
{
    uint8_t *data = malloc(protobuf_c_message_get_packed_size(msg) + 1);

    ck_assert_ptr_nonnull(data);
    *ret_len = protobuf_c_message_pack(msg, data);
    return data;
}

static void expect_event(Fl__V1__ClientEvent *msg, const char *expected)
{
    struct fl_wire_event event = {0};
    struct fl_err err = {0};
    size_t len = 0;
    uint8_t *data = packed(&msg->base, &len);

    ck_assert_int_eq(fl_wire_event_decode(data, len, &event, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, expected);
    ck_assert_int_eq((int)event.type, 0);
    ck_assert_int_eq(fl_wire_event_decode(data, len, &event, NULL), FL_EPROTO);
    free(data);
}

static void expect_command(Fl__V1__ServerCommand *msg, const char *expected)
{
    struct fl_wire_command command = {0};
    struct fl_err err = {0};
    size_t len = 0;
    uint8_t *data = packed(&msg->base, &len);

    ck_assert_int_eq(fl_wire_command_decode(data, len, &command, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, expected);
    ck_assert_int_eq((int)command.type, 0);
    free(data);
}

/* --- events --- */

static const char *spoil_hello(int row, Fl__V1__Hello *m)
{
    switch (row) {
    case 0:
        m->client = text_slash;
        return "ClientEvent.hello.client: 'a/b' is not a name (1 to 127 of [A-Za-z0-9._-], not "
               "starting with a dot)";
    case 1:
        m->client = text_dot;
        return "ClientEvent.hello.client: '.hidden' is not a name (1 to 127 of [A-Za-z0-9._-], not "
               "starting with a dot)";
    case 2:
        m->client = text_empty;
        return "ClientEvent.hello.client: '' is not a name (1 to 127 of [A-Za-z0-9._-], not "
               "starting with a dot)";
    case 3:
        m->version_min = 0;
        return "ClientEvent.hello.version_min: 0 is out of range, expected 1 to 4294967295";
    case 4:
        m->version_min = 3;
        m->version_max = 2;
        return "ClientEvent.hello.version_max: 2 is out of range, expected 3 to 4294967295";
    case 5:
        m->samples = UINT64_MAX;
        return "ClientEvent.hello.samples: 18446744073709551615 is out of range, expected 0 to "
               "1099511627776";
    case 6:
        m->evaluation_samples = FL_WIRE_MAX_SAMPLES + 1;
        return "ClientEvent.hello.evaluation_samples: 1099511627777 is out of range, expected 0 to "
               "1099511627776";
    case 7:
        m->agent = text_long;
        return "ClientEvent.hello.agent: 1025 bytes of text, at most 1024 are taken";
    case 8:
        m->agent = text_latin;
        return "ClientEvent.hello.agent: the text is not UTF-8";
    case 9:
        m->agent = text_surrogate;
        return "ClientEvent.hello.agent: the text is not UTF-8";
    case 10:
        m->agent = text_overlong;
        return "ClientEvent.hello.agent: the text is not UTF-8";
    case 11:
        m->held->round = 0;
        return "ClientEvent.hello.held.round: 0 is out of range, expected 1 to "
               "18446744073709551615";
    case 12:
        m->model_digest = run_of(31);
        return "ClientEvent.hello.model_digest: 31 bytes, a SHA-256 has 32";
    case 13:
        m->labels[0]->key = text_empty;
        return "ClientEvent.hello.labels: an entry has no key";
    case 14:
        m->labels[0]->value = text_latin;
        return "ClientEvent.hello.labels: the text is not UTF-8";
    case 15:
        m->n_labels = FL_WIRE_MAX_PAIRS + 1;
        return "ClientEvent.hello.labels: 65 entries, at most 64 are taken";
    case 16:
        m->client = text_long_name;
        return "ClientEvent.hello.client: "
               "'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...' is not a name (1 "
               "to 127 of [A-Za-z0-9._-], not starting with a dot)";
    default:
        return NULL;
    }
}
#define N_HELLO 17

START_TEST(a_bad_hello_is_refused)
{
    Fl__V1__ClientEvent msg;
    Fl__V1__Hello hello;
    Fl__V1__Held held;
    Fl__V1__Hello__LabelsEntry label;
    Fl__V1__Hello__LabelsEntry *labels[FL_WIRE_MAX_PAIRS + 1];
    size_t i;

    fl__v1__client_event__init(&msg);
    fl__v1__hello__init(&hello);
    fl__v1__held__init(&held);
    fl__v1__hello__labels_entry__init(&label);
    label.key = text_ok;
    label.value = text_ok;
    for (i = 0; i <= FL_WIRE_MAX_PAIRS; i++) {
        labels[i] = &label;
    }
    held.round = 1;
    hello.version_min = 1;
    hello.version_max = 1;
    hello.client = text_ok;
    hello.held = &held;
    hello.labels = labels;
    hello.n_labels = 1;
    msg.event_case = FL__V1__CLIENT_EVENT__EVENT_HELLO;
    msg.hello = &hello;
    expect_event(&msg, spoil_hello(_i, &hello));
}
END_TEST

static const char *spoil_report(int row, Fl__V1__Report *m)
{
    switch (row) {
    case 0:
        m->round = 0;
        return "ClientEvent.report.round: 0 is out of range, expected 1 to 18446744073709551615";
    case 1:
        m->train_loss = (double)NAN;
        return "ClientEvent.report.train_loss: nan is not a finite number";
    case 2:
        m->train_loss = -(double)INFINITY;
        return "ClientEvent.report.train_loss: -inf is not a finite number";
    case 3:
        m->n_divergence = FL_LAYOUT_MAX_UNITS + 1;
        return "ClientEvent.report.divergence: 4097 entries, at most 4096 are taken";
    case 4:
        m->received->loss_sum = (double)INFINITY;
        return "ClientEvent.report.received.loss_sum: inf is not a finite number";
    case 5:
        m->received->correct = 11;
        return "ClientEvent.report.received.correct: 11 is out of range, expected 0 to 10";
    case 6:
        m->steps = FL_WIRE_MAX_SAMPLES + 1;
        return "ClientEvent.report.steps: 1099511627777 is out of range, expected 0 to "
               "1099511627776";
    case 7:
        m->samples = FL_WIRE_MAX_SAMPLES + 1;
        return "ClientEvent.report.samples: 1099511627777 is out of range, expected 0 to "
               "1099511627776";
    default:
        return NULL;
    }
}
#define N_REPORT 8

START_TEST(a_bad_report_is_refused)
{
    static float divergence[FL_LAYOUT_MAX_UNITS + 1];
    Fl__V1__ClientEvent msg;
    Fl__V1__Report report;
    Fl__V1__Evaluation received;

    fl__v1__client_event__init(&msg);
    fl__v1__report__init(&report);
    fl__v1__evaluation__init(&received);
    received.samples = 10;
    report.round = 1;
    report.divergence = divergence;
    report.received = &received;
    msg.event_case = FL__V1__CLIENT_EVENT__EVENT_REPORT;
    msg.report = &report;
    expect_event(&msg, spoil_report(_i, &report));
}
END_TEST

START_TEST(other_bad_events_are_refused)
{
    Fl__V1__ClientEvent msg;
    Fl__V1__Failed failed;
    Fl__V1__EvaluationReport evaluation;

    fl__v1__client_event__init(&msg);
    expect_event(&msg, "ClientEvent.event: none is set that version 1 of the wire knows");
    fl__v1__failed__init(&failed);
    msg.event_case = FL__V1__CLIENT_EVENT__EVENT_FAILED;
    msg.failed = &failed;
    expect_event(&msg,
                 "ClientEvent.failed.round: 0 is out of range, expected 1 to 18446744073709551615");
    failed.round = 1;
    failed.reason = text_latin;
    expect_event(&msg, "ClientEvent.failed.reason: the text is not UTF-8");
    fl__v1__evaluation_report__init(&evaluation);
    msg.event_case = FL__V1__CLIENT_EVENT__EVENT_EVALUATION;
    msg.evaluation = &evaluation;
    expect_event(&msg, "ClientEvent.evaluation.result: is missing");
}
END_TEST

START_TEST(what_is_no_protobuf_is_refused)
{
    static const char junk[] = "GET / HTTP/1.1";
    struct fl_wire_event event;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_wire_event_decode(junk, sizeof(junk), &event, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "ClientEvent: 15 bytes are no protobuf message of this type");
    ck_assert_int_eq(fl_wire_event_decode(junk, FL_WIRE_MAX_EVENT + 1, &event, &err), FL_ELIMIT);
    ck_assert_str_eq(err.msg, "ClientEvent: 262145 bytes, at most 262144 are taken");
}
END_TEST

/* --- commands --- */

struct welcome {
    Fl__V1__ServerCommand msg;
    Fl__V1__Welcome welcome;
    Fl__V1__ModelDescription model;
    Fl__V1__Unit units[2];
    Fl__V1__Unit *unit_list[2];
    Fl__V1__Tensor tensor;
    Fl__V1__Tensor other;
    Fl__V1__Tensor *tensor_list[1];
    Fl__V1__Tensor *other_list[1];
    Fl__V1__Slot solver, codec;
    Fl__V1__Slot__OptionsEntry option;
    Fl__V1__Slot__OptionsEntry *options[FL_WIRE_MAX_PAIRS + 1];
    Fl__V1__Limits limits;
    Fl__V1__TrainingOptions training;
    uint32_t dims[FL_LAYOUT_MAX_DIMS + 1];
    char *layers[1];
};

static char text_fc1[] = "fc1";
static char text_fc2[] = "fc2";
static char text_weight1[] = "fc1.weight";
static char text_weight2[] = "fc2.weight";

static void fill_model(struct welcome *w)
{
    size_t i;

    for (i = 0; i <= FL_LAYOUT_MAX_DIMS; i++) {
        w->dims[i] = 2;
    }
    fl__v1__tensor__init(&w->tensor);
    fl__v1__tensor__init(&w->other);
    w->tensor.name = text_weight1;
    w->tensor.dims = w->dims;
    w->tensor.n_dims = 2;
    w->other.name = text_weight2;
    w->other.dims = w->dims;
    w->other.n_dims = 1;
    w->tensor_list[0] = &w->tensor;
    w->other_list[0] = &w->other;
    for (i = 0; i < 2; i++) {
        fl__v1__unit__init(&w->units[i]);
        w->units[i].name = i == 0 ? text_fc1 : text_fc2;
        w->units[i].tensors = i == 0 ? w->tensor_list : w->other_list;
        w->units[i].n_tensors = 1;
        w->unit_list[i] = &w->units[i];
    }
    fl__v1__model_description__init(&w->model);
    w->model.units = w->unit_list;
    w->model.n_units = 2;
    w->layers[0] = text_ok;
    w->model.layers = w->layers;
    w->model.n_layers = 1;
}

static void fill_welcome(struct welcome *w)
{
    size_t i;

    fill_model(w);
    fl__v1__slot__init(&w->solver);
    fl__v1__slot__init(&w->codec);
    fl__v1__slot__options_entry__init(&w->option);
    w->option.key = text_ok;
    for (i = 0; i <= FL_WIRE_MAX_PAIRS; i++) {
        w->options[i] = &w->option;
    }
    w->solver.name = text_ok;
    w->solver.options = w->options;
    w->solver.n_options = 1;
    w->codec.name = text_ok;
    fl__v1__limits__init(&w->limits);
    w->limits.chunk_bytes = 1000;
    w->limits.message_bytes = 2000;
    w->limits.streams = 1;
    fl__v1__training_options__init(&w->training);
    w->training.epochs = 1;
    w->training.batch_size = 10;
    fl__v1__welcome__init(&w->welcome);
    w->welcome.version = 1;
    w->welcome.federation = text_ok;
    w->welcome.session = run_of(FL_WIRE_SESSION);
    w->welcome.model = &w->model;
    w->welcome.solver = &w->solver;
    w->welcome.codec = &w->codec;
    w->welcome.heartbeat_interval_ms = 1000;
    w->welcome.limits = &w->limits;
    w->welcome.training = &w->training;
    fl__v1__server_command__init(&w->msg);
    w->msg.command_case = FL__V1__SERVER_COMMAND__COMMAND_WELCOME;
    w->msg.welcome = &w->welcome;
}

static const char *spoil_welcome(int row, struct welcome *w)
{
    Fl__V1__Welcome *m = &w->welcome;

    switch (row) {
    case 0:
        m->version = 2;
        return "ServerCommand.welcome.version: 2 is out of range, expected 1 to 1";
    case 1:
        m->federation = text_slash;
        return "ServerCommand.welcome.federation: 'a/b' is not a name (1 to 127 of "
               "[A-Za-z0-9._-], not starting with a dot)";
    case 2:
        m->session = run_of(15);
        return "ServerCommand.welcome.session: 15 bytes, a session has 16";
    case 3:
        m->session = run_of(17);
        return "ServerCommand.welcome.session: 17 bytes, a session has 16";
    case 4:
        m->model = NULL;
        return "ServerCommand.welcome.model: is missing";
    case 5:
        m->solver = NULL;
        return "ServerCommand.welcome.solver: is missing";
    case 6:
        m->codec = NULL;
        return "ServerCommand.welcome.codec: is missing";
    case 7:
        m->limits = NULL;
        return "ServerCommand.welcome.limits: is missing";
    case 8:
        m->training = NULL;
        return "ServerCommand.welcome.training: is missing";
    case 9:
        m->heartbeat_interval_ms = 0;
        return "ServerCommand.welcome.heartbeat_interval_ms: 0 is out of range, expected 1 to "
               "3600000";
    case 10:
        w->limits.chunk_bytes = FL_WIRE_CHUNK + 1;
        return "ServerCommand.welcome.limits.chunk_bytes: 1048577 is out of range, expected 1 to "
               "1048576";
    case 11:
        w->limits.message_bytes = 999;
        return "ServerCommand.welcome.limits.message_bytes: 999 is out of range, expected 1000 to "
               "4294967295";
    case 12:
        w->limits.streams = 0;
        return "ServerCommand.welcome.limits.streams: 0 is out of range, expected 1 to 4294967295";
    case 13:
        w->training.epochs = 0;
        return "ServerCommand.welcome.training: neither epochs nor steps are set";
    case 14:
        w->training.batch_size = 0;
        return "ServerCommand.welcome.training.batch_size: 0 is out of range, expected 1 to "
               "4294967295";
    case 15:
        w->training.momentum = (double)NAN;
        return "ServerCommand.welcome.training.momentum: nan is not a finite number";
    case 16:
        w->training.weight_decay = (double)INFINITY;
        return "ServerCommand.welcome.training.weight_decay: inf is not a finite number";
    case 17:
        w->solver.name = text_empty;
        return "ServerCommand.welcome.solver.name: '' is not a name (1 to 127 of [A-Za-z0-9._-], "
               "not starting with a dot)";
    case 18:
        w->solver.n_options = FL_WIRE_MAX_PAIRS + 1;
        return "ServerCommand.welcome.solver.options: 65 entries, at most 64 are taken";
    case 19:
        w->option.key = text_slash;
        return "ServerCommand.welcome.solver.options: 'a/b' is not a name (1 to 127 of "
               "[A-Za-z0-9._-], not starting with a dot)";
    default:
        return NULL;
    }
}
#define N_WELCOME 20

START_TEST(a_bad_welcome_is_refused)
{
    struct welcome w;

    fill_welcome(&w);
    expect_command(&w.msg, spoil_welcome(_i, &w));
}
END_TEST

static const char *spoil_model(int row, struct welcome *w)
{
    switch (row) {
    case 0:
        w->model.n_units = 0;
        return "ServerCommand.welcome.model.units: 0 is out of range, expected 1 to 4096";
    case 1:
        w->units[1].n_tensors = 0;
        return "ServerCommand.welcome.model.units[1]: has no tensors";
    case 2:
        w->units[1].name = text_fc1;
        return "ServerCommand.welcome.model.units[1]: has the name of the one before";
    case 3:
        w->model.digest = run_of(32);
        return "ServerCommand.welcome.model.digest: is not that of the units described";
    case 4:
        w->model.digest = run_of(16);
        return "ServerCommand.welcome.model.digest: 16 bytes, a SHA-256 has 32";
    case 5:
        w->tensor.n_dims = FL_LAYOUT_MAX_DIMS + 1;
        return "ServerCommand.welcome.model.units.tensors.dims: 9 entries, at most 8 are taken";
    case 6:
        w->model.input = w->dims;
        w->model.n_input = FL_LAYOUT_MAX_DIMS + 1;
        return "ServerCommand.welcome.model.input: 9 entries, at most 8 are taken";
    case 7:
        w->dims[0] = 0;
        w->tensor.n_dims = 0;
        w->other.n_dims = 0;
        w->model.input = w->dims;
        w->model.n_input = 1;
        return "ServerCommand.welcome.model.input: 0 is out of range, expected 1 to 4294967295";
    case 8:
        w->layers[0] = text_latin;
        return "ServerCommand.welcome.model.layers: the text is not UTF-8";
    default:
        return NULL;
    }
}
#define N_MODEL 9

START_TEST(a_bad_model_is_refused)
{
    struct welcome w;

    fill_welcome(&w);
    expect_command(&w.msg, spoil_model(_i, &w));
}
END_TEST

/* The words after the field are the layout's own. */
START_TEST(what_the_layout_refuses_names_the_field)
{
    static const char field[] = "ServerCommand.welcome.model.units: ";
    struct fl_wire_command command = {0};
    struct fl_err err = {0};
    struct welcome w;
    size_t len = 0;
    uint8_t *data;

    fill_welcome(&w);
    switch (_i) {
    case 0:
        w.dims[0] = 0;
        break;
    case 1:
        w.other.name = text_weight1;
        break;
    case 2:
        w.units[0].name = text_empty;
        break;
    case 3:
        w.dims[0] = UINT32_MAX;
        w.dims[1] = UINT32_MAX;
        break;
    default:
        w.tensor.name = text_latin;
        break;
    }
    data = packed(&w.msg.base, &len);
    ck_assert_int_eq(fl_wire_command_decode(data, len, &command, &err), FL_EPROTO);
    ck_assert_msg(strncmp(err.msg, field, sizeof(field) - 1) == 0, "%s", err.msg);
    free(data);
}
END_TEST

START_TEST(a_welcome_without_a_digest_is_taken)
{
    struct fl_wire_command command = {0};
    struct fl_err err = {0};
    struct welcome w;
    size_t len = 0;
    uint8_t *data;

    fill_welcome(&w);
    data = packed(&w.msg.base, &len);
    ck_assert_msg(fl_wire_command_decode(data, len, &command, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(fl_layout_count(command.u.welcome.layout), 6);
    fl_wire_command_done(&command);
    free(data);
}
END_TEST

static const char *spoil_task(int row, Fl__V1__Task *m)
{
    switch (row) {
    case 0:
        m->round = 0;
        return "ServerCommand.task.round: 0 is out of range, expected 1 to 18446744073709551615";
    case 1:
        m->n_bundles = 0;
        return "ServerCommand.task.bundles: 0 is out of range, expected 1 to 16";
    case 2:
        m->n_bundles = 2;
        return "ServerCommand.task.bundles: 'ok' is there twice";
    case 3:
        m->n_bundles = FL_WIRE_MAX_BUNDLES + 1;
        return "ServerCommand.task.bundles: 17 is out of range, expected 1 to 16";
    case 4:
        m->bundles[0]->name = text_slash;
        return "ServerCommand.task.bundles.name: 'a/b' is not a name (1 to 127 of [A-Za-z0-9._-], "
               "not starting with a dot)";
    case 5:
        m->bundles[0]->sha256 = run_of(33);
        return "ServerCommand.task.bundles.sha256: 33 bytes, a SHA-256 has 32";
    case 6:
        m->learning_rate = (double)NAN;
        return "ServerCommand.task.learning_rate: nan is not a finite number";
    case 7:
        m->plan->round = 2;
        return "ServerCommand.task.plan: is for another round or attempt than the task";
    case 8:
        m->plan->attempt = 2;
        return "ServerCommand.task.plan: is for another round or attempt than the task";
    case 9:
        m->plan->units = run_of(513);
        return "ServerCommand.task.plan.units: 513 entries, at most 512 are taken";
    default:
        return NULL;
    }
}
#define N_TASK 10

START_TEST(a_bad_task_is_refused)
{
    Fl__V1__ServerCommand msg;
    Fl__V1__Task task;
    Fl__V1__Plan plan;
    Fl__V1__BundleRef bundle;
    Fl__V1__BundleRef *bundles[FL_WIRE_MAX_BUNDLES + 1];
    size_t i;

    fl__v1__server_command__init(&msg);
    fl__v1__task__init(&task);
    fl__v1__plan__init(&plan);
    fl__v1__bundle_ref__init(&bundle);
    bundle.name = text_ok;
    for (i = 0; i <= FL_WIRE_MAX_BUNDLES; i++) {
        bundles[i] = &bundle;
    }
    plan.round = 1;
    task.round = 1;
    task.plan = &plan;
    task.bundles = bundles;
    task.n_bundles = 1;
    msg.command_case = FL__V1__SERVER_COMMAND__COMMAND_TASK;
    msg.task = &task;
    expect_command(&msg, spoil_task(_i, &task));
}
END_TEST

START_TEST(an_unknown_reason_is_refused)
{
    Fl__V1__ServerCommand msg;
    Fl__V1__Refused refused;

    fl__v1__server_command__init(&msg);
    fl__v1__refused__init(&refused);
    msg.command_case = FL__V1__SERVER_COMMAND__COMMAND_REFUSED;
    msg.refused = &refused;
    refused.reason = (Fl__V1__Refused__Reason)8;
    expect_command(&msg, "ServerCommand.refused.reason: 8 is out of range, expected 0 to 7");
    refused.reason = (Fl__V1__Refused__Reason)-1;
    expect_command(&msg,
                   "ServerCommand.refused.reason: 4294967295 is out of range, expected 0 to 7");
    refused.reason = FL__V1__REFUSED__REASON__REASON_FULL;
    refused.message = text_latin;
    expect_command(&msg, "ServerCommand.refused.message: the text is not UTF-8");
}
END_TEST

START_TEST(other_bad_commands_are_refused)
{
    Fl__V1__ServerCommand msg;
    Fl__V1__Plan plan;
    Fl__V1__Accepted accepted;
    Fl__V1__Rejected rejected;
    Fl__V1__Dismissed dismissed;
    Fl__V1__Drain drain;
    Fl__V1__Evaluate evaluate;

    fl__v1__server_command__init(&msg);
    expect_command(&msg, "ServerCommand.command: none is set that version 1 of the wire knows");
    fl__v1__plan__init(&plan);
    msg.command_case = FL__V1__SERVER_COMMAND__COMMAND_PLAN;
    msg.plan = &plan;
    expect_command(
        &msg, "ServerCommand.plan.round: 0 is out of range, expected 1 to 18446744073709551615");
    fl__v1__accepted__init(&accepted);
    msg.command_case = FL__V1__SERVER_COMMAND__COMMAND_ACCEPTED;
    msg.accepted = &accepted;
    expect_command(&msg, "ServerCommand.accepted.round: 0 is out of range, expected 1 to "
                         "18446744073709551615");
    fl__v1__rejected__init(&rejected);
    rejected.round = 1;
    rejected.reason = text_long;
    msg.command_case = FL__V1__SERVER_COMMAND__COMMAND_REJECTED;
    msg.rejected = &rejected;
    expect_command(&msg,
                   "ServerCommand.rejected.reason: 1025 bytes of text, at most 1024 are taken");
    fl__v1__dismissed__init(&dismissed);
    msg.command_case = FL__V1__SERVER_COMMAND__COMMAND_DISMISSED;
    msg.dismissed = &dismissed;
    expect_command(&msg, "ServerCommand.dismissed.round: 0 is out of range, expected 1 to "
                         "18446744073709551615");
    fl__v1__drain__init(&drain);
    drain.reason = text_latin;
    msg.command_case = FL__V1__SERVER_COMMAND__COMMAND_DRAIN;
    msg.drain = &drain;
    expect_command(&msg, "ServerCommand.drain.reason: the text is not UTF-8");
    fl__v1__evaluate__init(&evaluate);
    msg.command_case = FL__V1__SERVER_COMMAND__COMMAND_EVALUATE;
    msg.evaluate = &evaluate;
    expect_command(&msg, "ServerCommand.evaluate.bundle: is missing");
}
END_TEST

START_TEST(bad_names_in_admin_messages_are_refused)
{
    struct fl_wire_client client;
    struct fl_wire_why why;
    struct fl_wire_status status;
    struct fl_err err = {0};
    Fl__V1__ClientInfo info;
    Fl__V1__WhyReply reply;
    Fl__V1__StatusReply line;
    char *missing[] = {text_ok, text_slash};
    size_t len = 0;
    uint8_t *data;

    fl__v1__client_info__init(&info);
    data = packed(&info.base, &len);
    ck_assert_int_eq(fl_wire_client_decode(data, len, &client, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "ClientInfo.name: '' is not a name (1 to 127 of [A-Za-z0-9._-], not "
                              "starting with a dot)");
    free(data);
    fl__v1__why_reply__init(&reply);
    reply.missing = missing;
    reply.n_missing = 2;
    data = packed(&reply.base, &len);
    ck_assert_int_eq(fl_wire_why_decode(data, len, &why, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "WhyReply.missing: 'a/b' is not a name (1 to 127 of "
                              "[A-Za-z0-9._-], not starting with a dot)");
    free(data);
    fl__v1__status_reply__init(&line);
    line.version = text_latin;
    data = packed(&line.base, &len);
    ck_assert_int_eq(fl_wire_status_decode(data, len, &status, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "StatusReply.version: the text is not UTF-8");
    free(data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire_checks");
    TCase *tc = tcase_create("checks");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, a_bad_hello_is_refused, 0, N_HELLO);
    tcase_add_loop_test(tc, a_bad_report_is_refused, 0, N_REPORT);
    tcase_add_test(tc, other_bad_events_are_refused);
    tcase_add_test(tc, what_is_no_protobuf_is_refused);
    tcase_add_loop_test(tc, a_bad_welcome_is_refused, 0, N_WELCOME);
    tcase_add_loop_test(tc, a_bad_model_is_refused, 0, N_MODEL);
    tcase_add_loop_test(tc, what_the_layout_refuses_names_the_field, 0, 5);
    tcase_add_test(tc, a_welcome_without_a_digest_is_taken);
    tcase_add_loop_test(tc, a_bad_task_is_refused, 0, N_TASK);
    tcase_add_test(tc, an_unknown_reason_is_refused);
    tcase_add_test(tc, other_bad_commands_are_refused);
    tcase_add_test(tc, bad_names_in_admin_messages_are_refused);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
