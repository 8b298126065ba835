/*
 * Every check of the decoder of commands,
 * with the words that the peer's author gets to read. The messages are made with
 * protobuf-c itself, so that they can be wrong in every way.
 */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "tests/lib/suites.h"
#include "tests/lib/wire_bad.h"

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
    Fl__V1__Component solver, codec;
    Fl__V1__Component__OptionsEntry option;
    Fl__V1__Component__OptionsEntry *options[FL_WIRE_MAX_PAIRS + 1];
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
    fl__v1__component__init(&w->solver);
    fl__v1__component__init(&w->codec);
    fl__v1__component__options_entry__init(&w->option);
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
    case 20:
        m->upload = &w->solver;
        w->solver.name = text_slash;
        m->solver = &w->codec;
        return "ServerCommand.welcome.upload.name: 'a/b' is not a name (1 to 127 of "
               "[A-Za-z0-9._-], not starting with a dot)";
    case 21:
        m->personal = &w->solver;
        w->solver.n_options = FL_WIRE_MAX_PAIRS + 1;
        m->solver = &w->codec;
        return "ServerCommand.welcome.personal.options: 65 entries, at most 64 are taken";
    case 22:
        w->training.steps = UINT32_MAX;
        return "ServerCommand.welcome.training.steps: 4294967295 is out of range, expected 0 to "
               "1000000000";
    case 23:
        w->training.epochs = FL_WIRE_MAX_EPOCHS + 1;
        return "ServerCommand.welcome.training.epochs: 1000001 is out of range, expected 0 to "
               "1000000";
    case 24:
        w->training.client_momentum = 1;
        return "ServerCommand.welcome.training: client_momentum is 1, expected at least 0 and "
               "below 1";
    default:
        return NULL;
    }
}
#define N_WELCOME 25

TEST_CASE("checks", bad_setup, NULL);

TEST_EACH(a_bad_welcome_is_refused, N_WELCOME)
{
    struct welcome w;

    fill_welcome(&w);
    expect_command(&w.msg, spoil_welcome(_i, &w));
}

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

TEST_EACH(a_bad_model_is_refused, N_MODEL)
{
    struct welcome w;

    fill_welcome(&w);
    expect_command(&w.msg, spoil_model(_i, &w));
}

/* The words after the field are the layout's own. */
TEST_EACH(what_the_layout_refuses_names_the_field, 5)
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

TEST(a_welcome_without_a_digest_is_taken)
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

/* So a peer that does not know the mark finds another digest, and leaves. */
TEST(what_stays_on_clients_is_told_and_part_of_the_digest)
{
    struct fl_wire_command command = {0};
    uint8_t digest[FL_DIGEST_SIZE];
    struct fl_err err = {0};
    struct welcome w;
    size_t len = 0;
    uint8_t *data;

    fill_welcome(&w);
    w.tensor.local = 1;
    data = packed(&w.msg.base, &len);
    ck_assert_msg(fl_wire_command_decode(data, len, &command, &err) == FL_OK, "%s", err.msg);
    free(data);
    ck_assert(fl_layout_tensor(command.u.welcome.layout, 0)->local);
    ck_assert_uint_eq(fl_layout_local(command.u.welcome.layout),
                      fl_layout_tensor(command.u.welcome.layout, 0)->count);
    (void)memcpy(digest, fl_layout_shape_digest(command.u.welcome.layout), sizeof(digest));
    fl_wire_command_done(&command);
    w.model.digest = (ProtobufCBinaryData){sizeof(digest), digest};
    data = packed(&w.msg.base, &len);
    ck_assert_int_eq(fl_wire_command_decode(data, len, &command, &err), FL_EPROTO);
    ck_assert_ptr_nonnull(strstr(err.msg, "is not that of the units described"));
    free(data);
}

static const char *spoil_task(int row, Fl__V1__Task *m)
{
    switch (row) {
    case 0:
        m->round = 0;
        return "ServerCommand.task.round: 0 is out of range, expected 1 to 18446744073709551615";
    case 1:
        m->n_payloads = 0;
        return "ServerCommand.task.payloads: 0 is out of range, expected 1 to 16";
    case 2:
        m->n_payloads = 2;
        return "ServerCommand.task.payloads: 'ok' is there twice";
    case 3:
        m->n_payloads = FL_WIRE_MAX_PAYLOADS + 1;
        return "ServerCommand.task.payloads: 17 is out of range, expected 1 to 16";
    case 4:
        m->payloads[0]->name = text_slash;
        return "ServerCommand.task.payloads.name: 'a/b' is not a name (1 to 127 of [A-Za-z0-9._-], "
               "not starting with a dot)";
    case 5:
        m->payloads[0]->sha256 = run_of(33);
        return "ServerCommand.task.payloads.sha256: 33 bytes, a SHA-256 has 32";
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
    case 10:
        m->counted->round = 0;
        return "ServerCommand.task.counted.round: 0 is out of range, expected 1 to "
               "18446744073709551615";
    default:
        return NULL;
    }
}
#define N_TASK 11

TEST_EACH(a_bad_task_is_refused, N_TASK)
{
    Fl__V1__ServerCommand msg;
    Fl__V1__Task task;
    Fl__V1__Plan plan;
    Fl__V1__Held counted;
    Fl__V1__PayloadRef payload;
    Fl__V1__PayloadRef *payloads[FL_WIRE_MAX_PAYLOADS + 1];
    size_t i;

    fl__v1__server_command__init(&msg);
    fl__v1__task__init(&task);
    fl__v1__plan__init(&plan);
    fl__v1__payload_ref__init(&payload);
    payload.name = text_ok;
    for (i = 0; i <= FL_WIRE_MAX_PAYLOADS; i++) {
        payloads[i] = &payload;
    }
    plan.round = 1;
    fl__v1__held__init(&counted);
    counted.round = 1;
    task.round = 1;
    task.plan = &plan;
    task.counted = &counted;
    task.payloads = payloads;
    task.n_payloads = 1;
    msg.command_case = FL__V1__SERVER_COMMAND__COMMAND_TASK;
    msg.task = &task;
    expect_command(&msg, spoil_task(_i, &task));
}

TEST(an_unknown_reason_is_refused)
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

TEST(other_bad_commands_are_refused)
{
    Fl__V1__ServerCommand msg;
    Fl__V1__Plan plan;
    Fl__V1__Accepted accepted;
    Fl__V1__Rejected rejected;
    Fl__V1__Dismissed dismissed;
    Fl__V1__Drain drain;
    Fl__V1__Evaluate evaluate;
    Fl__V1__PayloadRef payload;

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
    expect_command(&msg, "ServerCommand.evaluate.payload: is missing");
    evaluate.learning_rate = (double)NAN;
    fl__v1__payload_ref__init(&payload);
    payload.name = text_ok;
    evaluate.payload = &payload;
    expect_command(&msg, "ServerCommand.evaluate.learning_rate: nan is not a finite number");
}
