/* A program that stays, and does what it should. */
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "libfl/program/persistent_impl.h"
#include "tests/lib/persistent_rig.h"
#include "tests/lib/suites.h"

TEST(it_is_started_once_and_trains_task_after_task)
{
    struct fl_persistent_answer a;
    struct rig rig;
    size_t i;

    rig_open(&rig, "good");
    ck_assert(!fl_persistent_runs(rig.r));
    ck_assert_msg(rig_run(&rig, FL_PERSISTENT_TRAIN, &a) == FL_OK, "%s", rig.err.msg);
    ck_assert_uint_eq(a.samples, 270);
    ck_assert_uint_eq(a.steps, 14);
    ck_assert_double_eq(a.train_loss, 0.25);
    ck_assert(a.has_received && a.has_trained && !a.has_adapted);
    ck_assert_uint_eq(a.received.correct, 21);
    ck_assert_uint_eq(a.trained.correct, 25);
    ck_assert_uint_eq(rig.progressed, 7);
    ck_assert_int_eq(fl_persistent_result(rig.r, rig.out, &rig.err), FL_OK);
    for (i = 0; i < rig.count; i++) {
        ck_assert_double_eq((double)rig.out[i], (double)i + 0.5);
    }
    rig.given[0] = 100;
    ck_assert_msg(rig_run(&rig, FL_PERSISTENT_TRAIN, &a) == FL_OK, "%s", rig.err.msg);
    ck_assert_int_eq(fl_persistent_result(rig.r, rig.out, &rig.err), FL_OK);
    ck_assert_double_eq((double)rig.out[0], 100.5);
    fl_persistent_stop(rig.r);
    ck_assert(!fl_persistent_runs(rig.r));
    ck_assert_str_eq(rig_notes(&rig), "start edge-1 /srv/data train;model;train 1;train 2;bye;");
    rig_done(&rig);
}

TEST(what_it_says_of_itself_is_known_before_a_task)
{
    struct rig rig;

    rig_init(&rig, "good");
    rig_create(&rig);
    ck_assert_msg(fl_persistent_start(rig.r, &rig.err) == FL_OK, "%s", rig.err.msg);
    ck_assert(fl_persistent_can(rig.r, FL_PERSISTENT_TRAIN));
    ck_assert(fl_persistent_can(rig.r, FL_PERSISTENT_SUMMARY));
    ck_assert(fl_persistent_has_part(rig.r, "per_fedavg"));
    ck_assert(!fl_persistent_has_part(rig.r, "momentum"));
    ck_assert_uint_eq(fl_persistent_ready(rig.r)->samples, 270);
    ck_assert_uint_eq(fl_persistent_ready(rig.r)->test_samples, 30);
    ck_assert_str_eq(fl_persistent_ready(rig.r)->software, "fake trainer");
    rig_done(&rig);
    rig_init(&rig, "few");
    rig_create(&rig);
    ck_assert_int_eq(fl_persistent_start(rig.r, &rig.err), FL_OK);
    ck_assert(fl_persistent_can(rig.r, FL_PERSISTENT_TRAIN));
    ck_assert(!fl_persistent_can(rig.r, FL_PERSISTENT_EVALUATE));
    ck_assert(!fl_persistent_has_part(rig.r, "pull"));
    rig_done(&rig);
}

/* The following tasks are for client `number` of three. */
static void act_for(struct rig *rig, const char *name, uint64_t number, const uint32_t *train,
                    size_t n)
{
    const struct fl_persistent_client client = {
        .name = name, .number = number, .of = 3, .train = train, .n_train = n};

    ck_assert_int_eq(fl_persistent_act_for(rig->r, &client, &rig->err), FL_OK);
}

TEST(one_program_acts_for_many_clients_and_is_told_of_a_change_only)
{
    const uint32_t samples[] = {7, 5};
    struct fl_persistent_answer a;
    uint64_t train = 0;
    uint64_t test = 0;
    struct rig rig;

    rig_init(&rig, "many");
    rig_create(&rig);
    act_for(&rig, "a", 1, NULL, 0);
    ck_assert_int_eq(fl_persistent_count(rig.r, &train, &test, &rig.err), FL_OK);
    ck_assert_uint_eq(train, 101);
    ck_assert_uint_eq(test, 10);
    rig_describe(&rig);
    ck_assert_msg(rig_run(&rig, FL_PERSISTENT_TRAIN, &a) == FL_OK, "%s", rig.err.msg);
    act_for(&rig, "b", 2, samples, 2);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_OK);
    act_for(&rig, "b", 2, samples, 2);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_OK);
    act_for(&rig, NULL, 0, samples, 0);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_EVALUATE, &a), FL_OK);
    fl_persistent_stop(rig.r);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_EVALUATE, &a), FL_OK);
    fl_persistent_stop(rig.r);
    ck_assert_str_eq(rig_notes(&rig),
                     "start edge-1 /srv/data train;client a null;model;train 1;client b [7,5];"
                     "train 2;train 3;client null [];evaluate 4;bye;"
                     "start edge-1 /srv/data train;model;client null [];evaluate 5;bye;");
    rig_done(&rig);
}

TEST(a_program_that_cannot_be_another_client_fails_its_task)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_open(&rig, "good");
    act_for(&rig, "a", 1, NULL, 0);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_EUNIMPL);
    ck_assert_msg(rig_says(&rig, "acts for one client only"), "%s", rig.err.msg);
    rig_done(&rig);
    rig_open(&rig, "no_client");
    act_for(&rig, "a", 1, NULL, 0);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_EIO);
    ck_assert_msg(rig_says(&rig, "failed at 'client': it has no folder"), "%s", rig.err.msg);
    ck_assert(fl_persistent_runs(rig.r));
    rig_done(&rig);
    rig_init(&rig, "silent_client");
    rig.conf.start_limit_ms = 2000;
    rig_create(&rig);
    rig_describe(&rig);
    act_for(&rig, "a", 1, NULL, 0);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_ETIMEOUT);
    ck_assert_msg(rig_says(&rig, "did not answer 'client' within"), "%s", rig.err.msg);
    ck_assert(!fl_persistent_runs(rig.r));
    rig_done(&rig);
}

TEST(a_task_before_a_model_is_refused)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_init(&rig, "good");
    rig_create(&rig);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_ESTATE);
    ck_assert(!fl_persistent_runs(rig.r));
    rig_done(&rig);
}

TEST(evaluating_fitting_and_making_summaries_are_tasks_too)
{
    struct fl_persistent_answer a;
    struct rig rig;
    char summary[5];

    rig_init(&rig, "good");
    rig.model.summary_bytes = 100;
    rig_create(&rig);
    rig_describe(&rig);
    ck_assert_msg(rig_run(&rig, FL_PERSISTENT_EVALUATE, &a) == FL_OK, "%s", rig.err.msg);
    ck_assert(a.has_received);
    ck_assert_double_eq(a.received.loss_sum, 24.0);
    ck_assert_msg(rig_run(&rig, FL_PERSISTENT_ADAPT, &a) == FL_OK, "%s", rig.err.msg);
    ck_assert(a.has_received && a.has_adapted);
    ck_assert_uint_eq(a.adapted.correct, 27);
    ck_assert_msg(rig_run(&rig, FL_PERSISTENT_SUMMARY, &a) == FL_OK, "%s", rig.err.msg);
    ck_assert_uint_eq(a.summary_bytes, 5);
    ck_assert_int_eq(fl_persistent_summary(rig.r, summary, 5, &rig.err), FL_OK);
    ck_assert_mem_eq(summary, "means", 5);
    rig_done(&rig);
}

TEST(a_model_that_is_not_its_own_is_known_when_it_is_described)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_init(&rig, "refuses");
    rig_create(&rig);
    ck_assert_int_eq(fl_persistent_start(rig.r, &rig.err), FL_OK);
    ck_assert_int_eq(fl_persistent_describe(rig.r, &rig.model, RIG_LONG, &rig.err), FL_ESHAPE);
    ck_assert_msg(rig_says(&rig, "fc1.weight is 60x784 and mine is 30x784"), "%s", rig.err.msg);
    ck_assert_msg(fl_persistent_runs(rig.r), "it has done nothing wrong");
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_ESTATE);
    rig_done(&rig);
}

TEST(one_that_is_slow_to_know_the_model_is_waited_for_by_the_task)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_init(&rig, "silent_model");
    rig_create(&rig);
    ck_assert_int_eq(fl_persistent_start(rig.r, &rig.err), FL_OK);
    rig.r->conf.start_limit_ms =
        100; /* Only for the model: a start takes what the machine gives it. */
    ck_assert_int_eq(fl_persistent_describe(rig.r, &rig.model, 0, &rig.err), FL_OK);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_ETIMEOUT);
    ck_assert_msg(rig_says(&rig, "did not answer 'model' within 100 ms and was ended"), "%s",
                  rig.err.msg);
    rig_done(&rig);
}

TEST(another_model_is_told_to_the_same_program)
{
    struct fl_persistent_answer a;
    struct rig rig;
    struct fl_layout *smaller = rig_layout(2);

    rig_open(&rig, "good");
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_OK);
    rig.model.layout = smaller;
    rig_describe(&rig);
    ck_assert_msg(rig_run(&rig, FL_PERSISTENT_TRAIN, &a) == FL_OK, "%s", rig.err.msg);
    ck_assert_int_eq(fl_persistent_result(rig.r, rig.out, &rig.err), FL_OK);
    ck_assert_double_eq((double)rig.out[8], 8.5);
    fl_persistent_stop(rig.r);
    ck_assert_str_eq(rig_notes(&rig),
                     "start edge-1 /srv/data train;model;train 1;model;train 2;bye;");
    rig_done(&rig);
    fl_layout_free(smaller);
}

/* As many units and tensors as a layout takes, with names of the longest. */
static struct fl_layout *largest_layout(void)
{
    const size_t dims[] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct fl_layout *layout = NULL;
    char unit[FL_NAME_MAX], name[FL_NAME_MAX];
    size_t i;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    for (i = 0; i < FL_LAYOUT_MAX_TENSORS; i++) {
        (void)snprintf(unit, sizeof(unit), "%0*zu", FL_NAME_MAX - 1,
                       i * FL_LAYOUT_MAX_UNITS / FL_LAYOUT_MAX_TENSORS);
        (void)snprintf(name, sizeof(name), "%0*zu", FL_NAME_MAX - 1, i);
        ck_assert_int_eq(
            fl_layout_add(layout, unit, name, dims, FL_LAYOUT_MAX_DIMS, i % 2 == 1, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    ck_assert_uint_eq(fl_layout_units(layout), FL_LAYOUT_MAX_UNITS);
    return layout;
}

TEST(the_largest_model_there_can_be_is_told)
{
    static float model[FL_LAYOUT_MAX_TENSORS];
    struct fl_persistent_answer a;
    struct fl_persistent_task task;
    struct rig rig;

    rig_init(&rig, "good");
    fl_layout_free(rig.layout);
    rig.layout = largest_layout();
    rig.model.layout = rig.layout;
    rig_create(&rig);
    rig_describe(&rig);
    task = rig_task(&rig, FL_PERSISTENT_TRAIN);
    model[FL_LAYOUT_MAX_TENSORS - 1] = 7;
    task.given[FL_PERSISTENT_MODEL] = model;
    ck_assert_msg(fl_persistent_run(rig.r, &task, &a, &rig.err) == FL_OK, "%s", rig.err.msg);
    ck_assert_int_eq(fl_persistent_result(rig.r, model, &rig.err), FL_OK);
    ck_assert_double_eq((double)model[FL_LAYOUT_MAX_TENSORS - 1], 7.5);
    rig_done(&rig);
}

TEST(memory_that_has_to_grow_takes_a_new_start)
{
    struct fl_persistent_answer a;
    struct fl_persistent_task task;
    struct rig rig;
    static char means[10000];

    rig_open(&rig, "good");
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_OK);
    task = rig_task(&rig, FL_PERSISTENT_TRAIN);
    task.mixup = means;
    task.mixup_len = sizeof(means);
    ck_assert_msg(fl_persistent_run(rig.r, &task, &a, &rig.err) == FL_OK, "%s", rig.err.msg);
    ck_assert_msg(fl_persistent_run(rig.r, &task, &a, &rig.err) == FL_OK, "%s", rig.err.msg);
    fl_persistent_stop(rig.r);
    ck_assert_str_eq(rig_notes(&rig), "start edge-1 /srv/data train;model;train 1;bye;"
                                      "start edge-1 /srv/data train;model;train 2;train 3;bye;");
    rig_done(&rig);
}

TEST(one_that_is_idle_is_sent_away_and_comes_back_with_the_next_task)
{
    struct fl_persistent_answer a;
    struct rig rig;
    uint64_t left;

    rig_open(&rig, "good");
    ck_assert_uint_eq(fl_persistent_rest(rig.r), 0); /* It does not run. */
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_OK);
    left = fl_persistent_rest(rig.r);
    ck_assert(left > 0 && left <= 60000);
    ck_assert(fl_persistent_runs(rig.r));
    rig.time.ahead_ms += left;
    ck_assert_uint_eq(fl_persistent_rest(rig.r), 0);
    ck_assert(!fl_persistent_runs(rig.r));
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_OK);
    ck_assert_uint_eq(rig.time.paused_ms, 0); /* It has done nothing wrong. */
    ck_assert_str_eq(rig_notes(&rig), "start edge-1 /srv/data train;model;train 1;bye;"
                                      "start edge-1 /srv/data train;model;train 2;");
    rig_done(&rig);
}

TEST(without_idle_exit_it_stays)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_init(&rig, "good");
    rig.conf.idle_exit_ms = 0;
    rig_create(&rig);
    rig_describe(&rig);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_OK);
    rig.time.ahead_ms += UINT64_C(1) << 40;
    ck_assert_uint_eq(fl_persistent_rest(rig.r), 0);
    ck_assert(fl_persistent_runs(rig.r));
    rig_done(&rig);
}

TEST(one_that_does_not_leave_is_ended)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_open(&rig, "stays");
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_OK);
    rig.time.step_ms = 100;
    fl_persistent_stop(rig.r);
    ck_assert(!fl_persistent_runs(rig.r));
    rig_done(&rig);
}

/* --- cancelling --- */

static void *cancel_when_it_waits(void *arg)
{
    struct rig *rig = arg;
    static const struct timespec tick = {.tv_nsec = 5000000};

    while (strstr(rig_notes(rig), "waits") == NULL) {
        (void)nanosleep(&tick, NULL);
    }
    atomic_store(&rig->cancel, true);
    return NULL;
}

static int run_cancelled(struct rig *rig, struct fl_persistent_answer *a)
{
    pthread_t thread;
    int rv;

    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_when_it_waits, rig), 0);
    rv = rig_run(rig, FL_PERSISTENT_TRAIN, a);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return rv;
}

TEST(a_cancelled_task_costs_the_program_nothing)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_open(&rig, "waits");
    ck_assert_int_eq(run_cancelled(&rig, &a), FL_ECANCELED);
    ck_assert(fl_persistent_runs(rig.r));
    atomic_store(&rig.cancel, false);
    ck_assert_int_eq(unlink(rig.notes), 0);
    ck_assert_int_eq(run_cancelled(&rig, &a), FL_ECANCELED);
    ck_assert_str_eq(rig_notes(&rig), "train 2;waits;cancel;");
    rig_done(&rig);
}

TEST(what_was_done_when_cancel_came_is_not_taken)
{
    struct fl_persistent_answer a;
    struct rig rig;

    rig_open(&rig, "done_late");
    ck_assert_int_eq(run_cancelled(&rig, &a), FL_ECANCELED);
    ck_assert(fl_persistent_runs(rig.r));
    rig_done(&rig);
}

TEST(a_task_over_its_time_is_cancelled_and_the_program_stays)
{
    struct fl_persistent_answer a;
    struct fl_persistent_task task;
    struct rig rig;

    rig_open(&rig, "waits");
    task = rig_task(&rig, FL_PERSISTENT_TRAIN);
    task.limit_ms = 50;
    task.limit_note = ": no longer";
    ck_assert_int_eq(fl_persistent_run(rig.r, &task, &a, &rig.err), FL_ETIMEOUT);
    ck_assert_msg(rig_says(&rig, "after its time limit of 50 ms: no longer"), "%s", rig.err.msg);
    ck_assert(fl_persistent_runs(rig.r));
    rig_done(&rig);
}

TEST(what_is_done_when_the_time_is_over_is_taken)
{
    struct fl_persistent_answer a;
    struct fl_persistent_task task;
    struct rig rig;

    rig_open(&rig, "done_late");
    task = rig_task(&rig, FL_PERSISTENT_TRAIN);
    task.limit_ms = 50;
    ck_assert_msg(fl_persistent_run(rig.r, &task, &a, &rig.err) == FL_OK, "%s", rig.err.msg);
    ck_assert_uint_eq(a.samples, 270);
    rig_done(&rig);
}

static void *interrupt(void *arg)
{
    struct rig *rig = arg;
    static const struct timespec tick = {.tv_nsec = 5000000};

    while (strstr(rig_notes(rig), "waits") == NULL) {
        (void)nanosleep(&tick, NULL);
    }
    fl_persistent_interrupt(rig->r);
    return NULL;
}

TEST(an_interrupted_one_does_nothing_more)
{
    struct fl_persistent_answer a;
    pthread_t thread;
    struct rig rig;

    rig_open(&rig, "waits");
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt, &rig), 0);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_TRAIN, &a), FL_ECANCELED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_msg(fl_persistent_runs(rig.r), "it had its time to say so: %s", rig.err.msg);
    ck_assert_int_eq(rig_run(&rig, FL_PERSISTENT_EVALUATE, &a), FL_ECANCELED);
    rig_done(&rig);
}

/* --- the table --- */

TEST(nothing_is_heard_where_nothing_was_asked)
{
    unsigned state;

    for (state = 0; state < FL__PERSISTENT_STATES; state++) {
        bool asked = state == FL__PERSISTENT_STARTING || state == FL__PERSISTENT_DESCRIBING ||
                     state == FL__PERSISTENT_SWITCHING || state == FL__PERSISTENT_BUSY ||
                     state == FL__PERSISTENT_CANCELING;

        ck_assert_msg((fl__persistent_allowed[state] != 0) == asked, "%s",
                      fl__persistent_states[state].name);
        ck_assert_msg(state == FL__PERSISTENT_OFF ||
                          (fl__persistent_states[state].next & FL_SM_TO(FL__PERSISTENT_OFF)) != 0,
                      "a program can end in %s", fl__persistent_states[state].name);
    }
    ck_assert_uint_eq(fl__persistent_allowed[FL__PERSISTENT_BUSY] & 1u << FL_ANSWER_CANCELED, 0);
}
