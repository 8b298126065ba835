/*
 * ClientEvent: the messages of a client to the server on its control stream. Pure functions, any
 * thread. The rows are in messages.h; here are the checks that are no range.
 */
#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/row_impl.h"

static int rule_correct(const struct fl__wire_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_evaluation *evaluation = own;
    const struct fl__wire_at field = {at, "correct"};

    return fl__wire_check_range(&field, evaluation->correct, 0, evaluation->samples, err);
}

static int rule_version(const struct fl__wire_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_hello *hello = own;
    const struct fl__wire_at field = {at, "version_max"};

    return fl__wire_check_range(&field, hello->version_max, hello->version_min, UINT32_MAX, err);
}

static int rule_client(const struct fl__wire_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_hello *hello = own;
    const struct fl__wire_at field = {at, "client"};

    return hello->client[0] != '-'
               ? FL_OK
               : fl__wire_refuse(&field, err,
                                 "a name that begins with '-' is not taken, for programs take it "
                                 "for an option: choose another `name`");
}

static int rule_summary(const struct fl__wire_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_data_summary *summary = own;
    const struct fl__wire_at field = {at, "data"};

    if (summary->len > FL_WIRE_SUMMARY_PIECE || summary->offset > summary->total ||
        summary->len > summary->total - summary->offset)
    {
        return fl__wire_refuse(&field, err,
                               "%zu bytes at %llu of %llu, expected at most %u and not past the "
                               "end",
                               summary->len, (unsigned long long)summary->offset,
                               (unsigned long long)summary->total, FL_WIRE_SUMMARY_PIECE);
    }
    return FL_OK;
}

FL__WIRE_TYPE(evaluation, Evaluation, evaluation)
FL__WIRE_TABLE(hello_held, hello, Held, held, .max = 0)
FL__WIRE_TYPE(hello, Hello, hello)
FL__WIRE_TABLE(report_kept, report, Held, held, .max = 0)
FL__WIRE_TYPE(report, Report, report)
FL__WIRE_TYPE(heartbeat, Heartbeat, heartbeat)
FL__WIRE_TYPE(failed, Failed, failed)
FL__WIRE_TYPE(evaluated, EvaluationReport, evaluation_report)
FL__WIRE_TYPE(data_summary, DataSummary, data_summary)

FL__WIRE_TABLE(event, event, ClientEvent, client_event, .max = FL_WIRE_MAX_EVENT,
               .unset = FL__WIRE_UNSET, .oneof = "event", .own_case = offsetof(S, type),
               .msg_case = offsetof(M, event_case))
FL__WIRE_FUNCTIONS(event, event)
FL__WIRE_DONE(event)
