/*
 * Every check of the decoders of events and admin messages,
 * with the words that the peer's author gets to read. The messages are made with
 * protobuf-c itself, so that they can be wrong in every way.
 */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fl/v1/admin.pb-c.h"
#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/wire_admin.h"
#include "tests/lib/suites.h"
#include "tests/lib/wire_bad.h"

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
    case 17:
        m->client = text_option;
        return "ClientEvent.hello.client: a name that begins with '-' is not taken, for programs "
               "take it for an option: choose another `name`";
    default:
        return NULL;
    }
}
#define N_HELLO 18

TEST_CASE("checks", bad_setup, NULL);

/* protobuf-c would hand out what stands before the NUL. */
TEST_EACH(a_text_with_a_nul_byte_is_refused_and_not_cut, 4)
{
    static const char *const parts[] = {"client-Z", "agent-Z", "key-Z", "value-Z"};
    struct fl_pair label = {.key = fl_wire_lend("key-Z"), .value = fl_wire_lend("value-Z")};
    struct fl_wire_event hello = {.type = FL_WIRE_HELLO};
    struct fl_wire_event event;
    struct fl_err err = {0};
    struct fl_buf buf;
    uint8_t *at;

    hello.u.hello = (struct fl_wire_hello){.version_min = 1,
                                           .version_max = 1,
                                           .client = fl_wire_lend("client-Z"),
                                           .agent = fl_wire_lend("agent-Z"),
                                           .labels = &label,
                                           .n_labels = 1};
    fl_buf_init(&buf, 1 << 16);
    ck_assert_int_eq(fl_wire_event_encode(&hello, &buf), FL_OK);
    ck_assert_int_eq(fl_wire_event_decode(buf.data, buf.len, &event, &err), FL_OK);
    fl_wire_event_done(&event);
    at = memmem(buf.data, buf.len, parts[_i], strlen(parts[_i]));
    ck_assert_ptr_nonnull(at);
    at[strlen(parts[_i]) - 1] = 0;
    ck_assert_int_eq(fl_wire_event_decode(buf.data, buf.len, &event, &err), FL_EPROTO);
    ck_assert_ptr_nonnull(strstr(err.msg, "a text with a NUL byte"));
    fl_buf_done(&buf);
}

TEST_EACH(a_bad_hello_is_refused, N_HELLO)
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

static const char *spoil_report(int row, Fl__V1__Report *m)
{
    switch (row) {
    case 0:
        m->round = 0;
        return "ClientEvent.report.round: 0 is out of range, expected 1 to 18446744073709551615";
    case 1:
        m->n_divergence = FL_LAYOUT_MAX_UNITS + 1;
        return "ClientEvent.report.divergence: 4097 entries, at most 4096 are taken";
    case 2:
        m->received->correct = 11;
        return "ClientEvent.report.received.correct: 11 is out of range, expected 0 to 10";
    case 3:
        m->steps = FL_WIRE_MAX_SAMPLES + 1;
        return "ClientEvent.report.steps: 1099511627777 is out of range, expected 0 to "
               "1099511627776";
    case 4:
        m->samples = FL_WIRE_MAX_SAMPLES + 1;
        return "ClientEvent.report.samples: 1099511627777 is out of range, expected 0 to "
               "1099511627776";
    case 5:
        m->trained->samples = 3;
        m->trained->correct = 4;
        return "ClientEvent.report.trained.correct: 4 is out of range, expected 0 to 3";
    case 6:
        m->trained->samples = FL_WIRE_MAX_SAMPLES + 1;
        return "ClientEvent.report.trained.samples: 1099511627777 is out of range, expected 0 to "
               "1099511627776";
    default:
        return NULL;
    }
}
#define N_REPORT 7

TEST_EACH(a_bad_report_is_refused, N_REPORT)
{
    static float divergence[FL_LAYOUT_MAX_UNITS + 1];
    Fl__V1__ClientEvent msg;
    Fl__V1__Report report;
    Fl__V1__Evaluation received;
    Fl__V1__Evaluation trained;

    fl__v1__client_event__init(&msg);
    fl__v1__report__init(&report);
    fl__v1__evaluation__init(&received);
    fl__v1__evaluation__init(&trained);
    report.trained = &trained;
    received.samples = 10;
    report.round = 1;
    report.divergence = divergence;
    report.received = &received;
    msg.event_case = FL__V1__CLIENT_EVENT__EVENT_REPORT;
    msg.report = &report;
    expect_event(&msg, spoil_report(_i, &report));
}

TEST(measured_numbers_pass_as_they_are)
{
    struct fl_wire_event event;
    struct fl_err err = {0};
    Fl__V1__ClientEvent msg;
    Fl__V1__Report report;
    Fl__V1__Evaluation received;
    size_t len = 0;
    uint8_t *data;

    fl__v1__client_event__init(&msg);
    fl__v1__report__init(&report);
    fl__v1__evaluation__init(&received);
    report.round = 1;
    report.train_loss = (double)NAN;
    received.loss_sum = (double)INFINITY;
    report.received = &received;
    report.previous_dot = -(double)INFINITY;
    msg.event_case = FL__V1__CLIENT_EVENT__EVENT_REPORT;
    msg.report = &report;
    data = packed(&msg.base, &len);
    ck_assert_msg(fl_wire_event_decode(data, len, &event, &err) == FL_OK, "%s", err.msg);
    ck_assert(isnan(event.u.report.train_loss));
    ck_assert(isinf(event.u.report.received.loss_sum));
    ck_assert(isinf(event.u.report.previous_dot));
    fl_wire_event_done(&event);
    free(data);
}

static const char *spoil_summary(int row, Fl__V1__DataSummary *m)
{
    static uint8_t much[FL_WIRE_SUMMARY_PIECE + 1];

    switch (row) {
    case 0:
        m->total = FL_WIRE_SUMMARY_MAX + 1;
        return "ClientEvent.summary.total: 67108865 is out of range, expected 0 to 67108864";
    case 1:
        m->offset = 93;
        return "ClientEvent.summary.data: 8 bytes at 93 of 100, expected at most 65536 and not "
               "past "
               "the end";
    case 2:
        m->offset = UINT64_MAX;
        return "ClientEvent.summary.data: 8 bytes at 18446744073709551615 of 100, expected at most "
               "65536 and not past the end";
    case 3:
        m->total = FL_WIRE_SUMMARY_MAX;
        m->data = (ProtobufCBinaryData){sizeof(much), much};
        return "ClientEvent.summary.data: 65537 bytes at 0 of 67108864, expected at most 65536 and "
               "not past the end";
    case 4:
        m->total = 0;
        return "ClientEvent.summary.data: 8 bytes at 0 of 0, expected at most 65536 and not past "
               "the "
               "end";
    default:
        return NULL;
    }
}
#define N_SUMMARY 5

TEST_EACH(a_bad_summary_is_refused, N_SUMMARY)
{
    Fl__V1__ClientEvent msg;
    Fl__V1__DataSummary summary;

    fl__v1__client_event__init(&msg);
    fl__v1__data_summary__init(&summary);
    summary.total = 100;
    summary.data = run_of(8);
    msg.event_case = FL__V1__CLIENT_EVENT__EVENT_SUMMARY;
    msg.summary = &summary;
    expect_event(&msg, spoil_summary(_i, &summary));
}

TEST(other_bad_events_are_refused)
{
    Fl__V1__ClientEvent msg;
    Fl__V1__Failed failed;
    Fl__V1__EvaluationReport evaluation;
    Fl__V1__Evaluation result;
    Fl__V1__Evaluation adapted;

    fl__v1__client_event__init(&msg);
    expect_event(&msg, "ClientEvent.event: none is set that version 1 of the wire knows");
    fl__v1__failed__init(&failed);
    msg.event_case = FL__V1__CLIENT_EVENT__EVENT_FAILED;
    msg.failed = &failed;
    failed.round = 1;
    failed.reason = text_latin;
    expect_event(&msg, "ClientEvent.failed.reason: the text is not UTF-8");
    fl__v1__evaluation_report__init(&evaluation);
    msg.event_case = FL__V1__CLIENT_EVENT__EVENT_EVALUATION;
    msg.evaluation = &evaluation;
    expect_event(&msg, "ClientEvent.evaluation.result: is missing");
    fl__v1__evaluation__init(&result);
    fl__v1__evaluation__init(&adapted);
    evaluation.result = &result;
    evaluation.adapted = &adapted;
    adapted.correct = 1;
    expect_event(&msg,
                 "ClientEvent.evaluation.adapted.correct: 1 is out of range, expected 0 to 0");
}

TEST(what_is_no_protobuf_is_refused)
{
    static const char junk[] = "GET / HTTP/1.1";
    struct fl_wire_event event;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_wire_event_decode(junk, sizeof(junk), &event, &err), FL_EPROTO);
    ck_assert_str_eq(err.msg, "ClientEvent: 15 bytes are no protobuf message of this type");
    ck_assert_int_eq(fl_wire_event_decode(junk, FL_WIRE_MAX_EVENT + 1, &event, &err), FL_ELIMIT);
    ck_assert_str_eq(err.msg, "ClientEvent: 262145 bytes, at most 262144 are taken");
}

TEST(bad_names_in_admin_messages_are_refused)
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
