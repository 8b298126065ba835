/*
 * What one side puts into the fields for solvers, personal models and summaries is what the other
 * side reads, and what is not said reads as nothing.
 */

#include <check.h>
#include <string.h>

#include "libfl/wire/wire_admin.h"
#include "tests/lib/suites.h"
#include "tests/lib/wire_samples.h"

static void sample(const char *name, struct fl_buf *out)
{
    size_t i = 0;

    while (wire_samples[i].name != NULL && strcmp(wire_samples[i].name, name) != 0) {
        i++;
    }
    ck_assert_ptr_nonnull(wire_samples[i].name);
    fl_buf_init(out, 1u << 20);
    ck_assert_int_eq(wire_samples[i].encode(out), FL_OK);
}

static struct fl_wire_command command_of(const char *name)
{
    struct fl_wire_command command = {0};
    struct fl_buf buf;

    sample(name, &buf);
    ck_assert_int_eq(fl_wire_command_decode(buf.data, buf.len, &command, NULL), FL_OK);
    fl_buf_done(&buf);
    return command;
}

static struct fl_wire_event event_of(const char *name)
{
    struct fl_wire_event event = {0};
    struct fl_buf buf;

    sample(name, &buf);
    ck_assert_int_eq(fl_wire_event_decode(buf.data, buf.len, &event, NULL), FL_OK);
    fl_buf_done(&buf);
    return event;
}

TEST(a_failure_says_whether_training_diverged)
{
    struct fl_wire_event event = event_of("event_failed");

    ck_assert_uint_eq(event.u.failed.round, 7);
    ck_assert(event.u.failed.diverged);
    fl_wire_event_done(&event);
}

TEST(a_task_says_who_takes_part_and_what_was_counted)
{
    struct fl_wire_command command = command_of("command_task");
    const struct fl_wire_task *task = &command.u.task;

    ck_assert_uint_eq(task->task.n_selected, 10);
    ck_assert_uint_eq(task->task.population, 1000000);
    ck_assert_uint_eq(task->task.order_seed, UINT64_MAX - 2);
    ck_assert_uint_eq(task->task.counted.round, 5);
    ck_assert_uint_eq(task->task.counted.attempt, 3);
    ck_assert_uint_eq(task->task.epoch, 4);
    ck_assert_uint_eq(task->task.draw, 11);
    ck_assert_uint_eq(task->n_payloads, 2);
    ck_assert_str_eq(task->payloads[1].name, "control");
    ck_assert(!task->payloads[1].has_digest);
    fl_wire_command_done(&command);
}

TEST(a_task_that_never_counted_says_so)
{
    static char name[] = "model";
    struct fl_wire_payload payload = {.name = name, .bytes = 4};
    struct fl_wire_command command = {.type = FL_WIRE_TASK};
    struct fl_buf buf;

    command.u.task.task.key.round = 1;
    command.u.task.payloads = &payload;
    command.u.task.n_payloads = 1;
    command.u.task.task.counted.attempt = 9; /* of no round */
    fl_buf_init(&buf, 4096);
    ck_assert_int_eq(fl_wire_command_encode(&command, &buf), FL_OK);
    ck_assert_int_eq(fl_wire_command_decode(buf.data, buf.len, &command, NULL), FL_OK);
    ck_assert_uint_eq(command.u.task.task.counted.round, 0);
    ck_assert_uint_eq(command.u.task.task.counted.attempt, 0);
    ck_assert_uint_eq(command.u.task.task.n_selected, 0);
    ck_assert_uint_eq(command.u.task.task.population, 0);
    fl_wire_command_done(&command);
    fl_buf_done(&buf);
}

TEST(a_welcome_names_the_components_that_the_client_fills)
{
    struct fl_wire_command command = command_of("command_welcome");
    const struct fl_wire_welcome *w = &command.u.welcome;

    ck_assert_str_eq(w->upload.name, "fedadp");
    ck_assert_uint_eq(w->upload.n_options, 1);
    ck_assert_str_eq(w->upload.options[0].key, "mu");
    ck_assert_str_eq(w->personal.name, "own");
    ck_assert_uint_eq(w->personal.n_options, 0);
    ck_assert(w->wants_previous_dot);
    ck_assert(w->wants_summary);
    ck_assert_uint_eq(w->generation[2], 3);
    ck_assert_uint_eq(w->state_generation[2], 6);
    fl_wire_command_done(&command);
}

TEST(a_welcome_without_those_components_leaves_them_empty)
{
    static char name[] = "x";
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};
    struct fl_layout *layout = wire_sample_layout();
    struct fl_buf buf;

    command.u.welcome = (struct fl_wire_welcome){.version = 1,
                                                 .federation = name,
                                                 .layout = layout,
                                                 .solver = {name, NULL, 0},
                                                 .codec = {name, NULL, 0},
                                                 .heartbeat_ms = 1,
                                                 .limits = {1, 1, 1, 1},
                                                 .training = {1, 0, 1, 0.0, 0.0, 0.0}};
    fl_buf_init(&buf, 1u << 20);
    ck_assert_int_eq(fl_wire_command_encode(&command, &buf), FL_OK);
    ck_assert_int_eq(fl_wire_command_decode(buf.data, buf.len, &command, NULL), FL_OK);
    ck_assert_ptr_null(command.u.welcome.upload.name);
    ck_assert_ptr_null(command.u.welcome.personal.name);
    ck_assert(!command.u.welcome.wants_previous_dot);
    ck_assert(!command.u.welcome.wants_summary);
    fl_wire_command_done(&command);
    fl_layout_free(layout);
    fl_buf_done(&buf);
}

TEST(an_evaluate_says_how_fast_to_adapt)
{
    struct fl_wire_command command = command_of("command_evaluate");

    ck_assert_double_eq(command.u.evaluate.learning_rate, 0.02);
    ck_assert_uint_eq(command.u.evaluate.deadline_ms, 9000);
    fl_wire_command_done(&command);
}

TEST(a_report_tells_of_the_trained_model)
{
    struct fl_wire_event event = event_of("event_report_personal");
    const struct fl_wire_report *report = &event.u.report;

    ck_assert(report->has_trained);
    ck_assert(!report->has_received);
    ck_assert_uint_eq(report->trained.samples, 10);
    ck_assert_uint_eq(report->trained.correct, 10);
    ck_assert_double_eq(report->previous_dot, -0.125);
    ck_assert(report->has_kept);
    ck_assert_uint_eq(report->kept_round, 5);
    ck_assert_uint_eq(report->kept_attempt, 2);
    fl_wire_event_done(&event);
    event = event_of("event_report");
    ck_assert(!event.u.report.has_trained);
    ck_assert(!event.u.report.has_kept);
    ck_assert_double_eq(event.u.report.previous_dot, 0.0);
    fl_wire_event_done(&event);
}

TEST(an_evaluation_tells_of_the_adapted_model)
{
    struct fl_wire_event event = event_of("event_evaluation_adapted");

    ck_assert(event.u.evaluation.has_adapted);
    ck_assert_uint_eq(event.u.evaluation.adapted.correct, 1000);
    ck_assert_uint_eq(event.u.evaluation.result.correct, 970);
    fl_wire_event_done(&event);
    event = event_of("event_evaluation");
    ck_assert(!event.u.evaluation.has_adapted);
    fl_wire_event_done(&event);
}

TEST(a_summary_arrives_in_pieces)
{
    static const uint8_t data[] = {0, 0, 128, 63, 0, 0, 0, 64};
    struct fl_wire_event event = event_of("event_data_summary");

    ck_assert_uint_eq(event.u.summary.offset, 65536);
    ck_assert_uint_eq(event.u.summary.total, 65544);
    ck_assert_uint_eq(event.u.summary.len, sizeof(data));
    ck_assert_mem_eq(event.u.summary.data, data, sizeof(data));
    fl_wire_event_done(&event);
    event = event_of("event_data_summary_nothing");
    ck_assert_uint_eq(event.u.summary.total, 0);
    ck_assert_uint_eq(event.u.summary.len, 0);
    fl_wire_event_done(&event);
}

TEST(the_largest_piece_of_the_largest_summary_is_taken)
{
    static uint8_t data[FL_WIRE_SUMMARY_PIECE];
    struct fl_wire_event event = {.type = FL_WIRE_DATA_SUMMARY};
    struct fl_buf buf;

    event.u.summary = (struct fl_wire_data_summary){FL_WIRE_SUMMARY_MAX - sizeof(data),
                                                    FL_WIRE_SUMMARY_MAX, data, sizeof(data)};
    fl_buf_init(&buf, FL_WIRE_MAX_EVENT);
    ck_assert_int_eq(fl_wire_event_encode(&event, &buf), FL_OK);
    ck_assert_int_eq(fl_wire_event_decode(buf.data, buf.len, &event, NULL), FL_OK);
    ck_assert_uint_eq(event.u.summary.len, sizeof(data));
    fl_wire_event_done(&event);
    fl_buf_done(&buf);
}

TEST(an_abandoned_round_says_its_line_and_what_gave_it_up)
{
    struct fl_wire_list_rounds list = {0, false};
    struct fl_wire_round round;
    struct fl_buf buf;

    sample("admin_list_rounds", &buf);
    ck_assert_int_eq(fl_wire_list_rounds_decode(buf.data, buf.len, &list, NULL), FL_OK);
    ck_assert_uint_eq(list.last, 5);
    ck_assert(list.abandoned);
    fl_buf_done(&buf);
    sample("admin_round", &buf);
    ck_assert_int_eq(fl_wire_round_decode(buf.data, buf.len, &round, NULL), FL_OK);
    ck_assert_uint_eq(round.generation, 1);
    ck_assert_uint_eq(round.abandoned_ms, 3000);
    ck_assert_str_eq(round.abandoned_by, "disk full: é");
    fl_wire_round_done(&round);
    fl_buf_done(&buf);
    ck_assert_int_eq(fl_wire_round_decode("", 0, &round, NULL), FL_OK); /* It was not abandoned. */
    ck_assert_str_eq(round.abandoned_by, "");
    fl_wire_round_done(&round);
}
