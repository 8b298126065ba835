/*
 * Commands of the server as events of the session, its effects and results as messages: every type,
 * every field, and the rules that lie there.
 */
#include "client/shell/session_messages.h"
#include "tests/lib/suites.h"

#define N_UNITS 2

/* --- commands --- */

TEST(every_command_has_an_event)
{
    static const struct {
        enum fl_wire_command_type command;
        enum fl_session_event_type event;
    } want[] = {
        {FL_WIRE_WELCOME, FL_CEV_WELCOME},     {FL_WIRE_REFUSED, FL_CEV_REFUSED},
        {FL_WIRE_TASK, FL_CEV_TASK},           {FL_WIRE_PLAN, FL_CEV_PLAN},
        {FL_WIRE_ACCEPTED, FL_CEV_ACCEPTED},   {FL_WIRE_REJECTED, FL_CEV_REJECTED},
        {FL_WIRE_DISMISSED, FL_CEV_DISMISSED}, {FL_WIRE_EVALUATE, FL_CEV_EVALUATE},
        {FL_WIRE_DRAIN, FL_CEV_DRAIN},         {FL_WIRE_HEARTBEAT_COMMAND, FL_CEV_HEARTBEAT}};
    size_t i;

    /* All but central settings, which are not for the session. */
    ck_assert_uint_eq(sizeof(want) / sizeof(want[0]), FL_WIRE_CENTRAL - 1);
    for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        const struct fl_wire_command command = {.type = want[i].command};

        ck_assert_int_eq(fl_session_event_of(&command).type, want[i].event);
    }
}

TEST_EACH(a_refusal_says_what_has_to_change, FL_WIRE_REASON_NO_DATA + 1)
{
    static const struct {
        enum fl_wire_reason reason;
        enum fl_session_refusal kind;
    } want[] = {{FL_WIRE_REASON_UNSPECIFIED, FL_SESSION_REFUSED_FINAL},
                {FL_WIRE_REASON_VERSION, FL_SESSION_REFUSED_FINAL},
                {FL_WIRE_REASON_NAME, FL_SESSION_REFUSED_FINAL},
                {FL_WIRE_REASON_MODEL, FL_SESSION_REFUSED_FINAL},
                {FL_WIRE_REASON_FULL, FL_SESSION_REFUSED_FINAL},
                {FL_WIRE_REASON_REVOKED, FL_SESSION_REFUSED_CURABLE},
                {FL_WIRE_REASON_DUPLICATE, FL_SESSION_REFUSED_FENCED},
                {FL_WIRE_REASON_NO_DATA, FL_SESSION_REFUSED_FINAL}};
    const struct fl_wire_command command = {
        .type = FL_WIRE_REFUSED, .u.refused = {want[_i].reason, fl_wire_lend("full"), 500}};
    const struct fl_session_event event = fl_session_event_of(&command);

    ck_assert_int_eq(event.u.refused.kind, want[_i].kind);
    ck_assert_str_eq(event.u.refused.reason, "full");
    ck_assert_uint_eq(event.u.refused.retry_after_ms, 500);
}

TEST(a_task_has_its_key_and_its_plan)
{
    uint8_t units[N_UNITS] = {0, 1};
    struct fl_wire_command command = {.type = FL_WIRE_TASK};
    struct fl_session_event event;

    command.u.task.task.key = (struct fl_round_key){7, 2};
    command.u.task.has_plan = true;
    command.u.task.plan = (struct fl_wire_plan){7, 2, units, N_UNITS};
    event = fl_session_event_of(&command);
    ck_assert_uint_eq(event.u.task.key.round, 7);
    ck_assert_uint_eq(event.u.task.key.attempt, 2);
    ck_assert(event.u.task.has_plan);
    ck_assert_ptr_eq(event.u.task.units, units);
    ck_assert_uint_eq(event.u.task.n_units, N_UNITS);
}

TEST(a_plan_has_its_key_and_its_units)
{
    uint8_t units[N_UNITS] = {1, 0};
    const struct fl_wire_command command = {.type = FL_WIRE_PLAN, .u.plan = {7, 2, units, N_UNITS}};
    const struct fl_session_event event = fl_session_event_of(&command);

    ck_assert_uint_eq(event.u.plan.key.round, 7);
    ck_assert_uint_eq(event.u.plan.key.attempt, 2);
    ck_assert_ptr_eq(event.u.plan.units, units);
    ck_assert_uint_eq(event.u.plan.n_units, N_UNITS);
}

TEST_EACH(a_verdict_has_its_key_and_a_rejection_its_reason, 3)
{
    static const enum fl_wire_command_type types[] = {FL_WIRE_ACCEPTED, FL_WIRE_DISMISSED,
                                                      FL_WIRE_REJECTED};
    const struct fl_wire_command command = {.type = types[_i],
                                            .u.verdict = {7, 2, fl_wire_lend("too large")}};
    const struct fl_session_event event = fl_session_event_of(&command);
    const struct fl_round_key key =
        types[_i] == FL_WIRE_REJECTED ? event.u.failed.key : event.u.key;

    ck_assert_uint_eq(key.round, 7);
    ck_assert_uint_eq(key.attempt, 2);
    if (types[_i] == FL_WIRE_REJECTED) {
        ck_assert_str_eq(event.u.failed.reason, "too large");
    }
}

TEST(a_drain_and_an_evaluation_have_their_fields)
{
    struct fl_wire_command command = {.type = FL_WIRE_DRAIN,
                                      .u.drain = {fl_wire_lend("restart"), 900}};
    struct fl_session_event event = fl_session_event_of(&command);

    ck_assert_str_eq(event.u.drain.reason, "restart");
    ck_assert_uint_eq(event.u.drain.reconnect_after_ms, 900);
    command = (struct fl_wire_command){.type = FL_WIRE_EVALUATE, .u.evaluate = {.round = 7}};
    event = fl_session_event_of(&command);
    ck_assert_uint_eq(event.u.evaluate.round, 7);
}

/* --- messages to the server --- */

TEST_EACH(a_hello_names_the_pending_result_if_there_is_one, 2)
{
    const struct fl_session_effect e = {
        .type = FL_CEFF_HELLO, .key = {_i == 1 ? 7 : 0, _i == 1 ? 2 : 0}, .yields = _i == 1};
    const struct fl_wire_event w = fl_session_message_of(&e);

    ck_assert_int_eq(w.type, FL_WIRE_HELLO);
    ck_assert_uint_eq(w.u.hello.version_min, FL_WIRE_VERSION);
    ck_assert_uint_eq(w.u.hello.version_max, FL_WIRE_VERSION);
    ck_assert(w.u.hello.held == (_i == 1));
    ck_assert_uint_eq(w.u.hello.held_round, e.key.round);
    ck_assert_uint_eq(w.u.hello.held_attempt, e.key.attempt);
    ck_assert(w.u.hello.yields == (_i == 1));
}

TEST(a_failure_always_has_a_reason)
{
    struct fl_session_effect e = {
        .type = FL_CEFF_FAILED, .key = {7, 2}, .text = "no disk", .diverged = true};
    struct fl_wire_event w = fl_session_message_of(&e);

    ck_assert_int_eq(w.type, FL_WIRE_FAILED);
    ck_assert_uint_eq(w.u.failed.round, 7);
    ck_assert_uint_eq(w.u.failed.attempt, 2);
    ck_assert_str_eq(w.u.failed.reason, "no disk");
    ck_assert(w.u.failed.diverged);
    w = fl_session_failed(e.key, NULL, /* diverged= */ false);
    ck_assert_str_eq(w.u.failed.reason, "unknown");
    ck_assert(!w.u.failed.diverged);
}

TEST(the_other_effects_have_their_type_and_key)
{
    struct fl_session_effect e = {.type = FL_CEFF_HEARTBEAT, .key = {7, 2}, .text = "no data"};
    struct fl_wire_event w = fl_session_message_of(&e);

    ck_assert_int_eq(w.type, FL_WIRE_HEARTBEAT_EVENT);
    e.type = FL_CEFF_REPORT;
    w = fl_session_message_of(&e);
    ck_assert_int_eq(w.type, FL_WIRE_REPORT);
    ck_assert_uint_eq(w.u.report.round, 7);
    ck_assert_uint_eq(w.u.report.attempt, 2);
    e.type = FL_CEFF_NO_EVALUATION;
    w = fl_session_message_of(&e);
    ck_assert_int_eq(w.type, FL_WIRE_EVALUATION);
    ck_assert_uint_eq(w.u.evaluation.round, 7);
    ck_assert_uint_eq(w.u.evaluation.result.samples, 0);
    ck_assert(!w.u.evaluation.has_adapted);
}

TEST(a_report_is_all_that_the_result_has)
{
    float divergence[N_UNITS] = {0.5F, 2};
    const struct fl_result r = {.key = {7, 2},
                                .samples = 40,
                                .steps = 8,
                                .train_loss = 0.25,
                                .has_received = true,
                                .received = {6, 5, 0.75},
                                .has_trained = true,
                                .trained = {5, 4, 1.5},
                                .previous_dot = -2,
                                .has_kept = true,
                                .kept = {6, 1},
                                .n_units = N_UNITS,
                                .divergence = divergence};
    const struct fl_wire_event w = fl_session_report(&r);
    const struct fl_wire_report *report = &w.u.report;

    ck_assert_int_eq(w.type, FL_WIRE_REPORT);
    ck_assert_uint_eq(report->round, 7);
    ck_assert_uint_eq(report->attempt, 2);
    ck_assert_uint_eq(report->samples, 40);
    ck_assert_uint_eq(report->steps, 8);
    ck_assert_double_eq(report->train_loss, 0.25);
    ck_assert_ptr_eq(report->divergence, divergence);
    ck_assert_uint_eq(report->n_divergence, N_UNITS);
    ck_assert(report->has_received && report->has_trained);
    ck_assert_uint_eq(report->received.samples, 6);
    ck_assert_uint_eq(report->received.correct, 5);
    ck_assert_double_eq(report->received.loss_sum, 0.75);
    ck_assert_uint_eq(report->trained.samples, 5);
    ck_assert_double_eq(report->previous_dot, -2);
    ck_assert(report->has_kept);
    ck_assert_uint_eq(report->kept_round, 6);
    ck_assert_uint_eq(report->kept_attempt, 1);
}

TEST_EACH(an_evaluation_has_an_adapted_one_only_where_the_model_was_fitted, 2)
{
    const struct fl_evaluation_result found = {.received = {8, 6, 0.5},
                                               .adapted = {_i == 1 ? 8 : 0, 0, 0.25}};
    const struct fl_wire_event w = fl_session_evaluation(7, &found);

    ck_assert_int_eq(w.type, FL_WIRE_EVALUATION);
    ck_assert_uint_eq(w.u.evaluation.round, 7);
    ck_assert_uint_eq(w.u.evaluation.result.samples, 8);
    ck_assert_uint_eq(w.u.evaluation.result.correct, 6);
    ck_assert_double_eq(w.u.evaluation.result.loss_sum, 0.5);
    ck_assert(w.u.evaluation.has_adapted == (_i == 1));
    ck_assert_uint_eq(w.u.evaluation.adapted.samples, _i == 1 ? 8 : 0);
}
