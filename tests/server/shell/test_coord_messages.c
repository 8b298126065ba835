/*
 * Messages of clients as events of the coordinator, and its effects as commands: every type, every
 * field, and the rules that lie there.
 */
#include "server/shell/coord_messages.h"
#include "tests/lib/suites.h"
#include "tests/lib/wire_samples.h"

#define N_UNITS 2

static struct fl_layout *layout;
static const struct fl_strategy strategy = {.broadcast = &fl_broadcast_float16};
static struct fl_federation federation;
static const struct fl_coord_conf conf = {.learning_rate = 0.5, .learning_rate_decay = 0.5};
static struct fl_progress progress;
static const struct fl_coord_shell shell = {
    .conf = &conf, .federation = &federation, .progress = &progress};

static void set_up(void)
{
    layout = wire_sample_layout();
    federation = (struct fl_federation){
        .layout = layout, .strategy = &strategy, .generation = {.kept_since = 4}};
    ck_assert_uint_eq(fl_layout_units(layout), N_UNITS);
}

static void tear_down(void)
{
    fl_layout_free(layout);
}

TEST_CASE("all", set_up, tear_down);

/* --- events --- */

TEST(a_hello_joins_and_without_an_agent_it_has_an_empty_one)
{
    struct fl_wire_event w = {.type = FL_WIRE_HELLO};
    struct fl_event event;

    w.u.hello.client = fl_wire_lend("edge");
    w.u.hello.samples = 40;
    w.u.hello.evaluation_samples = 10;
    ck_assert(fl_coord_event_of(&w, FL_NO_CLIENT, &event));
    ck_assert_int_eq(event.type, FL_EV_CLIENT_JOINED);
    ck_assert_str_eq(event.u.joined.name, "edge");
    ck_assert_str_eq(event.u.joined.agent, "");
    ck_assert_uint_eq(event.u.joined.samples, 40);
    ck_assert_uint_eq(event.u.joined.evaluation_samples, 10);
    ck_assert(!event.u.joined.summary_missing);
    w.u.hello.agent = fl_wire_lend("agent 1");
    ck_assert(fl_coord_event_of(&w, FL_NO_CLIENT, &event));
    ck_assert_str_eq(event.u.joined.agent, "agent 1");
}

TEST(a_hello_joins_with_its_labels)
{
    struct fl_pair labels[] = {{fl_wire_lend("site"), fl_wire_lend("berlin")}};
    struct fl_wire_event w = {.type = FL_WIRE_HELLO};
    struct fl_event event;

    w.u.hello.client = fl_wire_lend("edge");
    w.u.hello.labels = labels;
    w.u.hello.n_labels = 1;
    ck_assert(fl_coord_event_of(&w, FL_NO_CLIENT, &event));
    ck_assert_ptr_eq(event.u.joined.labels, labels);
    ck_assert_uint_eq(event.u.joined.n_labels, 1);
}

TEST(a_report_has_all_its_fields_and_no_evaluation_that_was_not_sent)
{
    float divergence[N_UNITS] = {0.5F, 2};
    struct fl_wire_event w = {.type = FL_WIRE_REPORT};
    struct fl_event event;

    w.u.report = (struct fl_wire_report){.round = 7,
                                         .attempt = 2,
                                         .samples = 40,
                                         .steps = 8,
                                         .train_loss = 0.25,
                                         .divergence = divergence,
                                         .n_divergence = N_UNITS,
                                         .received = {9, 9, 9}, /* not sent */
                                         .has_trained = true,
                                         .trained = {5, 4, 1.5},
                                         .previous_dot = -2,
                                         .has_kept = true,
                                         .kept_round = 6,
                                         .kept_attempt = 1};
    ck_assert(fl_coord_event_of(&w, 3, &event));
    ck_assert_int_eq(event.type, FL_EV_REPORT);
    ck_assert_uint_eq(event.u.report.client, 3);
    ck_assert_uint_eq(event.u.report.round, 7);
    ck_assert_uint_eq(event.u.report.attempt, 2);
    ck_assert_uint_eq(event.u.report.samples, 40);
    ck_assert_uint_eq(event.u.report.steps, 8);
    ck_assert_double_eq(event.u.report.train_loss, 0.25);
    ck_assert_ptr_eq(event.u.report.divergence, divergence);
    ck_assert_uint_eq(event.u.report.n_divergence, N_UNITS);
    ck_assert_double_eq(event.u.report.previous_dot, -2);
    ck_assert(event.u.report.has_kept);
    ck_assert_uint_eq(event.u.report.kept_round, 6);
    ck_assert_uint_eq(event.u.report.kept_attempt, 1);
    ck_assert_uint_eq(event.u.report.received.samples, 0);
    ck_assert_double_eq(event.u.report.received.loss_sum, 0);
    ck_assert_uint_eq(event.u.report.trained.samples, 5);
    ck_assert_uint_eq(event.u.report.trained.correct, 4);
    ck_assert_double_eq(event.u.report.trained.loss_sum, 1.5);
}

TEST(a_failure_has_its_reason_and_whether_it_diverged_or_the_owner_needs_the_device)
{
    const struct fl_wire_event w = {.type = FL_WIRE_FAILED,
                                    .u.failed = {7, 2, fl_wire_lend("no disk"), true, true}};
    struct fl_event event;

    ck_assert(fl_coord_event_of(&w, 3, &event));
    ck_assert_int_eq(event.type, FL_EV_CLIENT_FAILED);
    ck_assert_uint_eq(event.u.failed.client, 3);
    ck_assert_uint_eq(event.u.failed.round, 7);
    ck_assert_uint_eq(event.u.failed.attempt, 2);
    ck_assert_str_eq(event.u.failed.reason, "no disk");
    ck_assert(event.u.failed.diverged);
    ck_assert(event.u.failed.unavailable);
}

TEST_EACH(an_evaluation_has_an_adapted_one_only_when_it_was_sent, 2)
{
    struct fl_wire_event w = {.type = FL_WIRE_EVALUATION};
    struct fl_event event;

    w.u.evaluation = (struct fl_wire_evaluated){
        .round = 7, .result = {8, 6, 0.5}, .has_adapted = _i == 1, .adapted = {8, 7, 0.25}};
    ck_assert(fl_coord_event_of(&w, 3, &event));
    ck_assert_int_eq(event.type, FL_EV_EVAL_REPORT);
    ck_assert_uint_eq(event.u.eval.client, 3);
    ck_assert_uint_eq(event.u.eval.round, 7);
    ck_assert_uint_eq(event.u.eval.result.samples, 8);
    ck_assert_uint_eq(event.u.eval.result.correct, 6);
    ck_assert_double_eq(event.u.eval.result.loss_sum, 0.5);
    ck_assert_uint_eq(event.u.eval.adapted.samples, _i == 1 ? 8 : 0);
    ck_assert_uint_eq(event.u.eval.adapted.correct, _i == 1 ? 7 : 0);
}

TEST_EACH(heartbeats_and_pieces_of_data_summaries_are_no_events, 2)
{
    static const enum fl_wire_event_type types[] = {FL_WIRE_HEARTBEAT_EVENT, FL_WIRE_DATA_SUMMARY};
    const struct fl_wire_event w = {.type = types[_i]};
    struct fl_event event = {.type = FL_EV_STOP};

    ck_assert(!fl_coord_event_of(&w, 3, &event));
    ck_assert_int_eq(event.type, FL_EV_STOP);
}

/* --- commands --- */

static struct fl_effect effect_of(enum fl_effect_type type, const uint8_t *units)
{
    return (struct fl_effect){.type = type,
                              .client = 3,
                              .round = 7,
                              .attempt = 2,
                              .task = {.key = {7, 2},
                                       .counted = {5, 1},
                                       .learning_rate = 0.125,
                                       .seed = 11,
                                       .order_seed = 12,
                                       .deadline_ms = 60000,
                                       .n_selected = 4,
                                       .population = 9,
                                       .epoch = 6,
                                       .draw = 8},
                              .units = units,
                              .text = "why"};
}

TEST_EACH(a_task_is_the_coordinators_with_its_plan_where_there_is_one, 2)
{
    static const uint8_t units[N_UNITS] = {0, 1};
    const struct fl_effect e = effect_of(FL_EFF_TASK, _i == 1 ? units : NULL);
    const struct fl_wire_command c = fl_coord_command_of(&shell, &e);
    const struct fl_task *t = &c.u.task.task;

    ck_assert_int_eq(c.type, FL_WIRE_TASK);
    ck_assert_uint_eq(t->key.round, 7);
    ck_assert_uint_eq(t->key.attempt, 2);
    ck_assert_uint_eq(t->counted.round, 5);
    ck_assert_uint_eq(t->counted.attempt, 1);
    ck_assert_double_eq(t->learning_rate, 0.125);
    ck_assert_uint_eq(t->seed, 11);
    ck_assert_uint_eq(t->order_seed, 12);
    ck_assert_uint_eq(t->deadline_ms, 60000);
    ck_assert_uint_eq(t->n_selected, 4);
    ck_assert_uint_eq(t->population, 9);
    ck_assert_uint_eq(t->epoch, 6);
    ck_assert_uint_eq(t->draw, 8);
    ck_assert_uint_eq(c.u.task.n_payloads, 0);
    ck_assert(c.u.task.has_plan == (_i == 1));
    ck_assert_ptr_eq(c.u.task.plan.units, e.units);
    ck_assert_uint_eq(c.u.task.plan.n_units, _i == 1 ? N_UNITS : 0);
    ck_assert_uint_eq(c.u.task.plan.round, 7);
    ck_assert_uint_eq(c.u.task.plan.attempt, 2);
}

TEST(a_task_does_not_name_a_round_whose_client_state_was_reset_since)
{
    struct fl_effect e = effect_of(FL_EFF_TASK, NULL);
    struct fl_wire_command c;

    e.task.counted.round = 4; /* kept_since */
    c = fl_coord_command_of(&shell, &e);
    ck_assert_uint_eq(c.u.task.task.counted.round, 0);
    ck_assert_uint_eq(c.u.task.task.counted.attempt, 0);
    ck_assert_uint_eq(c.u.task.task.key.round, 7);
}

TEST(a_plan_has_a_byte_for_each_layer)
{
    static const uint8_t units[N_UNITS] = {1, 0};
    const struct fl_effect e = effect_of(FL_EFF_PLAN, units);
    const struct fl_wire_command c = fl_coord_command_of(&shell, &e);

    ck_assert_int_eq(c.type, FL_WIRE_PLAN);
    ck_assert_uint_eq(c.u.plan.round, 7);
    ck_assert_uint_eq(c.u.plan.attempt, 2);
    ck_assert_ptr_eq(c.u.plan.units, units);
    ck_assert_uint_eq(c.u.plan.n_units, N_UNITS);
}

TEST_EACH(a_verdict_has_its_round_and_reason, 3)
{
    static const struct {
        enum fl_effect_type effect;
        enum fl_wire_command_type command;
    } verdicts[] = {{FL_EFF_ACCEPTED, FL_WIRE_ACCEPTED},
                    {FL_EFF_REJECTED, FL_WIRE_REJECTED},
                    {FL_EFF_DISMISSED, FL_WIRE_DISMISSED}};
    const struct fl_effect e = effect_of(verdicts[_i].effect, NULL);
    const struct fl_wire_command c = fl_coord_command_of(&shell, &e);

    ck_assert_int_eq(c.type, verdicts[_i].command);
    ck_assert_uint_eq(c.u.verdict.round, 7);
    ck_assert_uint_eq(c.u.verdict.attempt, 2);
    ck_assert_str_eq(c.u.verdict.reason, "why");
}

TEST(an_evaluation_is_of_the_new_model_at_the_learning_rate_of_its_round)
{
    const struct fl_effect e = effect_of(FL_EFF_EVALUATE_CLIENT, NULL);
    const struct fl_wire_command c = fl_coord_command_of(&shell, &e);

    ck_assert_int_eq(c.type, FL_WIRE_EVALUATE);
    ck_assert_uint_eq(c.u.evaluate.round, 7);
    ck_assert_str_eq(c.u.evaluate.payload.name, FL_PAYLOAD_CANDIDATE);
    ck_assert_uint_eq(c.u.evaluate.payload.bytes, fl_broadcast_bytes(strategy.broadcast, layout));
    ck_assert(!c.u.evaluate.payload.has_digest);
    ck_assert_uint_eq(c.u.evaluate.deadline_ms, 60000);
    ck_assert_double_eq(c.u.evaluate.learning_rate, 0.5 / 64);
}

TEST(an_evaluation_names_a_model_of_which_clients_may_hold_earlier_ones)
{
    const struct fl_effect e = effect_of(FL_EFF_EVALUATE_CLIENT, NULL);
    const uint8_t digest[FL_DIGEST_SIZE] = {1, 2, 3};
    struct fl_versions *versions = NULL;
    struct fl_wire_command c;

    ck_assert_int_eq(fl_blob_create(1, &progress.next.model.theta), FL_OK);
    ck_assert_int_eq(fl_versions_create(digest, &versions), FL_OK);
    ck_assert_int_eq(fl_differences_create(layout, versions, progress.next.model.theta,
                                           &progress.next.model.differences),
                     FL_OK);
    c = fl_coord_command_of(&shell, &e);
    ck_assert(c.u.evaluate.payload.has_digest);
    ck_assert_mem_eq(c.u.evaluate.payload.digest, digest, sizeof(digest));
    fl_model_state_done(&progress.next.model);
}

TEST(a_drain_has_a_reason_always)
{
    struct fl_effect e = effect_of(FL_EFF_DRAIN_CLIENTS, NULL);
    struct fl_wire_command c = fl_coord_command_of(&shell, &e);

    ck_assert_int_eq(c.type, FL_WIRE_DRAIN);
    ck_assert_str_eq(c.u.drain.reason, "why");
    ck_assert_uint_eq(c.u.drain.reconnect_after_ms, 60000);
    e.text = NULL;
    c = fl_coord_command_of(&shell, &e);
    ck_assert_str_eq(c.u.drain.reason, "the server drains");
}
