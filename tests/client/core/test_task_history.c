/* What a client remembers of its tasks: which events make a record, what it measures, its bounds.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/task_history.h"
#include "tests/lib/suites.h"

static struct fl_task_history *h;
static struct fl_task_meter meter;
static enum fl_session_state before; /* state of the session */

static void history_setup(void)
{
    h = calloc(1, sizeof(*h));
    ck_assert_ptr_nonnull(h);
    meter = (struct fl_task_meter){.wall_ms = 1000};
    before = FL_SESSION_READY;
}

static void history_teardown(void)
{
    free(h);
}

/* A second later, after so many bytes and so much processor time more. */
static bool history_on(const struct fl_session_event *event, uint64_t down, uint64_t up,
                       uint64_t cpu)
{
    meter.wall_ms += 1000;
    meter.bytes_down += down;
    meter.bytes_up += up;
    meter.cpu_ms += cpu;
    return fl_task_history_event(h, before, event, &meter);
}

static bool history_key(enum fl_session_event_type type, uint64_t round)
{
    struct fl_session_event event = {.type = type};

    event.u.key = (struct fl_round_key){round, 1};
    return history_on(&event, 0, 0, 0);
}

static void history_new_task(uint64_t round)
{
    struct fl_session_event event = {.type = FL_CEV_TASK};

    event.u.task.key = (struct fl_round_key){round, 1};
    ck_assert(!history_on(&event, 0, 0, 0));
}

static bool history_fails(enum fl_session_event_type type, uint64_t round, const char *reason,
                          bool permanent)
{
    struct fl_session_event event = {.type = type};

    event.u.failed.key = (struct fl_round_key){round, 1};
    event.u.failed.reason = reason;
    event.u.failed.permanent = permanent;
    return history_on(&event, 0, 0, 0);
}

static bool history_asks(uint64_t round)
{
    struct fl_session_event event = {.type = FL_CEV_EVALUATE};

    event.u.evaluate.round = round;
    return history_on(&event, 0, 0, 0);
}

static const struct fl_task_record *history_newest(void)
{
    ck_assert_uint_gt(h->n_records, 0);
    return &h->records[h->n_records - 1];
}

TEST_CASE("history", history_setup, history_teardown);

TEST(a_task_has_what_was_transferred_and_computed_until_its_verdict)
{
    struct fl_session_event trained = {.type = FL_CEV_TRAINED};
    struct fl_session_event accepted = {.type = FL_CEV_ACCEPTED};

    trained.u.key = accepted.u.key = (struct fl_round_key){3, 1};
    meter.bytes_down = 50; /* before the task */
    history_new_task(3);
    ck_assert(!history_on(&trained, 1000, 10, 700));
    ck_assert(history_on(&accepted, 5, 400, 20));
    ck_assert_uint_eq(history_newest()->bytes_down, 1005);
    ck_assert_uint_eq(history_newest()->bytes_up, 410);
    ck_assert_uint_eq(history_newest()->cpu_ms, 720);
    ck_assert_uint_eq(history_newest()->began_ms, 2000);
    ck_assert_uint_eq(history_newest()->ended_ms, 4000);
    ck_assert_uint_eq(history_newest()->end, FL_TASK_ACCEPTED);
    ck_assert_uint_eq(h->totals.bytes_down, 1055);
    ck_assert_uint_eq(h->totals.trainings, 1);
    ck_assert_uint_eq(h->totals.accepted, 1);
    ck_assert(!history_key(FL_CEV_ACCEPTED, 3)); /* on the other stream, too */
    ck_assert_uint_eq(h->totals.accepted, 1);
}

TEST(the_same_task_after_a_reconnect_is_one_record)
{
    history_new_task(3);
    ck_assert(!history_fails(FL_CEV_DISCONNECTED, 0, "connection reset", false));
    history_new_task(3);
    ck_assert_uint_eq(h->n_records, 1);
    ck_assert_uint_eq(h->totals.trainings, 1);
}

TEST(a_task_of_another_round_replaces_an_open_one)
{
    history_new_task(3);
    history_new_task(4);
    ck_assert_uint_eq(h->n_records, 2);
    ck_assert_uint_eq(h->records[0].end, FL_TASK_REPLACED);
    ck_assert_uint_eq(h->records[1].end, FL_TASK_OPEN);
}

TEST(the_upload_plan_says_how_many_layers_are_wanted)
{
    static const uint8_t units[] = {1, 0, 1, 0, 0, 0, 0, 0}; /* of whole bytes on the wire */
    static const uint8_t all[] = {1, 1, 1, 1, 0, 0, 0, 0};
    struct fl_session_event plan = {.type = FL_CEV_PLAN};

    h->model_layers = 4;
    history_new_task(3);
    ck_assert_uint_eq(history_newest()->plan, FL_TASK_NO_PLAN);
    plan.u.plan.key = (struct fl_round_key){3, 1};
    plan.u.plan.units = units;
    plan.u.plan.n_units = 8;
    ck_assert(!history_on(&plan, 0, 0, 0));
    ck_assert_uint_eq(history_newest()->plan, FL_TASK_SOME_LAYERS);
    ck_assert_uint_eq(history_newest()->layers_asked, 2);
    ck_assert_uint_eq(history_newest()->layers, 4);
    plan.u.plan.units = all;
    ck_assert(!history_on(&plan, 0, 0, 0));
    ck_assert_uint_eq(history_newest()->plan, FL_TASK_ALL_LAYERS);
    plan.u.plan.units = NULL;
    ck_assert(!history_on(&plan, 0, 0, 0));
    ck_assert_uint_eq(history_newest()->plan, FL_TASK_ALL_LAYERS);
}

TEST(a_failure_that_is_retried_does_not_end_the_task)
{
    history_new_task(3);
    ck_assert(!history_fails(FL_CEV_FETCH_FAILED, 3, "reset by peer", false));
    ck_assert_uint_eq(history_newest()->end, FL_TASK_OPEN);
    ck_assert(history_fails(FL_CEV_TRAIN_FAILED, 3, "exit code 1", true));
    ck_assert_uint_eq(history_newest()->end, FL_TASK_FAILED);
    ck_assert_str_eq(history_newest()->reason, "exit code 1");
    ck_assert_uint_eq(h->n_errors, 2);
}

TEST(a_rejection_keeps_its_reason_as_clean_text)
{
    history_new_task(3);
    ck_assert(history_fails(FL_CEV_REJECTED, 3, "not\nfinite \xff", true));
    ck_assert_uint_eq(history_newest()->end, FL_TASK_REJECTED);
    ck_assert_str_eq(history_newest()->reason, "not?finite ?");
}

TEST(an_evaluation_is_a_record_of_its_own)
{
    ck_assert(!history_asks(5));
    ck_assert(!history_asks(5));
    ck_assert_uint_eq(h->n_records, 1);
    ck_assert(history_key(FL_CEV_EVALUATED, 5));
    ck_assert_uint_eq(history_newest()->kind, FL_TASK_EVALUATION);
    ck_assert_uint_eq(history_newest()->end, FL_TASK_MEASURED);
    ck_assert_uint_eq(h->totals.evaluations, 1);
    ck_assert_uint_eq(h->totals.trainings, 0);
}

TEST(an_evaluation_during_training_is_declined_as_the_session_declines_it)
{
    history_new_task(3);
    ck_assert(history_asks(2));
    ck_assert_uint_eq(history_newest()->end, FL_TASK_FAILED);
    ck_assert_str_eq(history_newest()->reason, "this client is training");
}

TEST(at_most_50_records_and_10_errors_are_kept_the_newest)
{
    char reason[32];
    uint64_t i;

    for (i = 1; i <= 200; i++) {
        history_new_task(i);
        (void)snprintf(reason, sizeof(reason), "error %d", (int)i);
        ck_assert(history_fails(FL_CEV_TRAIN_FAILED, i, reason, true));
    }
    ck_assert_uint_eq(h->n_records, FL_TASK_RECORDS);
    ck_assert_uint_eq(h->records[0].round, 151);
    ck_assert_uint_eq(history_newest()->round, 200);
    ck_assert_uint_eq(h->n_errors, FL_TASK_ERRORS);
    ck_assert_str_eq(h->errors[FL_TASK_ERRORS - 1].text, "error 200");
    ck_assert_uint_eq(h->totals.failed, 200);
}

TEST(an_error_that_repeats_is_counted_and_moves_to_the_end)
{
    (void)history_fails(FL_CEV_DISCONNECTED, 0, "refused", false);
    (void)history_fails(FL_CEV_DISCONNECTED, 0, "timeout", false);
    (void)history_fails(FL_CEV_DISCONNECTED, 0, "refused", false);
    ck_assert_uint_eq(h->n_errors, 2);
    ck_assert_str_eq(h->errors[1].text, "refused");
    ck_assert_uint_eq(h->errors[1].n, 2);
    ck_assert_str_eq(h->errors[0].text, "timeout");
}

TEST(leaving_for_limits_of_the_owner_is_no_error)
{
    struct fl_session_event refused = {.type = FL_CEV_REFUSED};

    refused.u.refused.own = true;
    refused.u.refused.reason = "it trained in 2 rounds today";
    ck_assert(!history_on(&refused, 0, 0, 0));
    ck_assert_int_eq(h->link, FL_TASK_LINK_LEFT);
    ck_assert_uint_eq(h->n_errors, 0);
    refused.u.refused.own = false;
    ck_assert(!history_on(&refused, 0, 0, 0));
    ck_assert_int_eq(h->link, FL_TASK_LINK_REFUSED);
    ck_assert_uint_eq(h->n_errors, 1);
}

TEST(the_end_of_a_refused_connection_does_not_hide_the_refusal)
{
    struct fl_session_event refused = {.type = FL_CEV_REFUSED};

    refused.u.refused.reason = "the client is disabled";
    ck_assert(!history_on(&refused, 0, 0, 0));
    before = FL_SESSION_OFFLINE;
    (void)history_fails(FL_CEV_DISCONNECTED, 0, "closed", false);
    ck_assert_int_eq(h->link, FL_TASK_LINK_REFUSED);
    ck_assert_str_eq(h->trouble, "the client is disabled");
    before = FL_SESSION_CONNECTING;
    (void)history_fails(FL_CEV_DISCONNECTED, 0, "connection refused", false);
    ck_assert_int_eq(h->link, FL_TASK_LINK_LOST);
}

TEST(a_server_that_stops_is_a_lost_link_without_an_error)
{
    struct fl_session_event drain = {.type = FL_CEV_DRAIN};

    drain.u.drain.reason = "all rounds are done";
    ck_assert(!history_on(&drain, 0, 0, 0));
    ck_assert_int_eq(h->link, FL_TASK_LINK_OK);
    drain.u.drain.reconnect_after_ms = 1000;
    drain.u.drain.reason = "the server is stopping";
    ck_assert(!history_on(&drain, 0, 0, 0));
    ck_assert_int_eq(h->link, FL_TASK_LINK_LOST);
    ck_assert_str_eq(h->trouble, "the server is stopping");
    ck_assert_uint_eq(h->n_errors, 0);
}
