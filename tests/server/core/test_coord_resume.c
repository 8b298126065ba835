/* A server that comes back: what was on disk counts, everything else starts again. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/core/problems.h"
#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static const float moved[] = {1, 2, 3};
static uint8_t all[] = {1, 1, 1};
static uint8_t first[] = {1, 0, 0};
static uint8_t none[] = {0, 0, 0};
static float divergence_a[] = {9, 0, 0};
static float divergence_b[] = {1, 1, 1};

/* Clients in order of first contact: b, a, c. */
static struct fl_client_rec clients[] = {
    {.id = 0, .name = "b", .samples = 100, .n_accepted = 1},
    {.id = 1, .name = "a", .samples = 300, .n_accepted = 1},
    {.id = 2, .name = "c", .samples = 200, .n_accepted = 1},
};

static struct fl_coord_resume resume_of(const struct fl_participant_rec *parts, size_t n,
                                        bool planned)
{
    return (struct fl_coord_resume){
        .committed = 4,
        .clients = clients,
        .n_clients = 3,
        .open_round = 5,
        .open_attempt = 2,
        .planned = planned,
        .parts = parts,
        .n_parts = n,
    };
}

static struct script *restarted(const char *preset, const struct fl_coord_resume *resume)
{
    struct script *s = script_new(preset);

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->check.committed = resume->committed;
    s->conf.rounds = 5;
    script_create(s, resume);
    return s;
}

TEST(an_open_selection_waits_for_its_clients)
{
    const struct fl_participant_rec parts[] = {
        {.client = 0, .state = FL_PARTICIPANT_SELECTED, .samples = 100},
        {.client = 1, .state = FL_PARTICIPANT_SELECTED, .samples = 300},
    };
    struct fl_coord_resume resume = resume_of(parts, 2, false);
    struct script *s = restarted("fedldf", &resume);

    script_start(s);
    script_run_to(s, 500); /* Longer than the grace: nobody was seen to go. */
    script_join(s, "b", 100);
    script_join(s, "a", 300);
    script_report(s, "a", moved);
    script_report(s, "b", moved);
    script_expect(
        s, "[    0] - round 5 attempt 2: IDLE -> TRAINING, resumed with 0 of 2 updates accepted\n"
           "[    0] open 5.2\n"
           "[  500] - client 'b' is back, 100 samples\n"
           "[  500] b is client 0\n"
           "[  500] b TASK 5.2 within 500\n"
           "[  500] - client 'a' is back, 300 samples\n"
           "[  500] a is client 1\n"
           "[  500] a TASK 5.2 within 500\n"
           "[  500] - round 5 attempt 2: TRAINING -> PLANNING, 2 of 2 reports\n"
           "[  500] persist plan 5.2 a:planned:111 b:empty:000\n"
           "[  500] - round 5 attempt 2: PLANNING -> UPLOADING, 1 clients have 1000 ms to upload, "
           "1 have an empty upload mask\n"
           "[  500] a PLAN 5.2 units 111\n"
           "[  500] b ACCEPTED 5.2\n");
    script_free(s);
}

TEST(accepted_updates_stay_accepted)
{
    const struct fl_participant_rec parts[] = {
        {.client = 0,
         .state = FL_PARTICIPANT_ACCEPTED,
         .samples = 100,
         .train_loss = 1,
         .units = all,
         .upload_bytes = 56},
        {.client = 1, .state = FL_PARTICIPANT_SELECTED, .samples = 300, .units = all},
    };
    struct fl_coord_resume resume = resume_of(parts, 2, false);
    struct script *s = restarted("fedavg", &resume);

    script_start(s);
    script_join(s, "b", 100);
    script_join(s, "a", 300);
    script_report(s, "a", NULL);
    script_stored(s, "a");
    script_expect(
        s, "[    0] - round 5 attempt 2: IDLE -> TRAINING, resumed with 1 of 2 updates accepted\n"
           "[    0] open 5.2\n"
           "[    0] - client 'b' is back, 100 samples\n"
           "[    0] b is client 0\n"
           "[    0] b ACCEPTED 5.2\n"
           "[    0] - client 'a' is back, 300 samples\n"
           "[    0] a is client 1\n"
           "[    0] a TASK 5.2 units 111 within 1000\n"
           "[    0] - round 5 attempt 2: TRAINING -> UPLOADING, 2 of 2 reports, 1 accepted\n"
           "[    0] persist update 5.2 a:accepted:111\n"
           "[    0] a ACCEPTED 5.2\n"
           "[    0] - round 5 attempt 2: UPLOADING -> AGGREGATING, 2 updates of 2 responders\n"
           "[    0] aggregate 5.2 a:accepted:111 b:accepted:111\n"
           "[    0] - round 5 attempt 2: AGGREGATING -> COMMITTING, loss 1.7500, 112 of 112 bytes "
           "uploaded\n"
           "[    0] commit 5.2\n"
           "[    0] closed 5.2\n"
           "[    0] - round 5 attempt 2: COMMITTING -> IDLE, committed with 2 of 2 clients\n"
           "[    0] * DRAIN 6.1 (all rounds are done)\n"
           "[    0] - round 6 attempt 1: IDLE -> DRAINING, all rounds are done\n"
           "[    0] - round 6 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[    0] FINISHED\n");
    ck_assert_uint_eq(s->record.uplink_bytes, 112);
    ck_assert_double_eq_tol(s->record.train_loss, 1.75, 1e-12);
    script_free(s);
}

TEST(accuracies_of_clients_in_accepted_reports_are_in_the_record_after_a_restart)
{
    const struct fl_participant_rec parts[] = {
        {.client = 1,
         .state = FL_PARTICIPANT_ACCEPTED,
         .samples = 1,
         .units = all,
         .trained = {.samples = 10, .correct = 9, .loss_sum = 30.0}},
        {.client = 0,
         .state = FL_PARTICIPANT_ACCEPTED,
         .samples = 1,
         .units = all,
         .trained = {.samples = 20, .correct = 10, .loss_sum = 20.0}},
    };
    struct fl_coord_resume resume = resume_of(parts, 2, false);
    struct script *s = script_new("fedavg");

    script_set(s, FL_COMPONENT_PERSONAL, "trained");
    s->check.committed = resume.committed;
    s->conf.rounds = 5;
    script_create(s, &resume);
    script_start(s);
    ck_assert_uint_eq(s->record.round, 5);
    ck_assert_double_eq_tol(s->record.client_accuracy_mean, 0.7, 1e-12);
    ck_assert_double_eq_tol(s->record.client_accuracy_std, 0.2, 1e-12);
    ck_assert_double_eq_tol(s->record.client_accuracy_worst_tenth, 0.5, 1e-12);
    ck_assert_double_eq_tol(s->record.client_loss_mean, 2.0, 1e-12);
    script_free(s);
}

TEST(with_everything_accepted_nobody_is_waited_for)
{
    const struct fl_participant_rec parts[] = {
        {.client = 1,
         .state = FL_PARTICIPANT_ACCEPTED,
         .samples = 1,
         .units = all,
         .upload_bytes = 56},
        {.client = 0,
         .state = FL_PARTICIPANT_ACCEPTED,
         .samples = 1,
         .units = all,
         .upload_bytes = 56},
    };
    struct fl_coord_resume resume = resume_of(parts, 2, false);
    struct script *s = restarted("fedavg", &resume);

    s->manual = true;
    script_start(s);
    script_expect(
        s, "[    0] - round 5 attempt 2: IDLE -> TRAINING, resumed with 2 of 2 updates accepted\n"
           "[    0] open 5.2\n"
           "[    0] - round 5 attempt 2: TRAINING -> UPLOADING, 2 of 2 reports, 2 accepted\n"
           "[    0] - round 5 attempt 2: UPLOADING -> AGGREGATING, 2 updates of 2 responders\n"
           "[    0] aggregate 5.2 a:accepted:111 b:accepted:111\n");
    script_free(s);
}

TEST(a_plan_on_disk_is_the_plan)
{
    const struct fl_participant_rec parts[] = {
        {.client = 0,
         .state = FL_PARTICIPANT_PLANNED,
         .samples = 100,
         .divergence = divergence_b,
         .units = first}, /* not what the policy would grant: it is not asked again */
        {.client = 1,
         .state = FL_PARTICIPANT_EMPTY,
         .samples = 300,
         .divergence = divergence_a,
         .units = none},
        {.client = 2, .state = FL_PARTICIPANT_LOST, .samples = 200},
    };
    struct fl_coord_resume resume = resume_of(parts, 3, true);
    struct script *s = restarted("fedldf", &resume);

    script_start(s);
    script_join(s, "a", 300);
    script_join(s, "b", 100);
    script_join(s, "c", 200);
    script_report(s, "b", moved);
    script_stored(s, "b");
    script_expect(
        s, "[    0] - round 5 attempt 2: IDLE -> UPLOADING, resumed with 0 of 3 updates accepted\n"
           "[    0] open 5.2\n"
           "[    0] - client 'a' is back, 300 samples\n"
           "[    0] a is client 1\n"
           "[    0] a ACCEPTED 5.2\n"
           "[    0] - client 'b' is back, 100 samples\n"
           "[    0] b is client 0\n"
           "[    0] b TASK 5.2 within 1000\n"
           "[    0] - client 'c' is back, 200 samples\n"
           "[    0] c is client 2\n"
           "[    0] c DISMISSED 5.2\n"
           "[    0] - client 'b' trained again and reports other divergences\n"
           "[    0] b PLAN 5.2 units 100\n"
           "[    0] persist update 5.2 b:accepted:100\n"
           "[    0] b ACCEPTED 5.2\n"
           "[    0] - round 5 attempt 2: UPLOADING -> AGGREGATING, 1 updates of 2 responders\n"
           "[    0] aggregate 5.2 b:accepted:100\n"
           "[    0] - round 5 attempt 2: AGGREGATING -> COMMITTING, loss 0.0000, 40 of 112 bytes "
           "uploaded\n"
           "[    0] commit 5.2\n"
           "[    0] closed 5.2\n"
           "[    0] - round 5 attempt 2: COMMITTING -> IDLE, committed with 2 of 3 clients\n"
           "[    0] * DRAIN 6.1 (all rounds are done)\n"
           "[    0] - round 6 attempt 1: IDLE -> DRAINING, all rounds are done\n"
           "[    0] - round 6 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[    0] FINISHED\n");
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(s->record.feedback_bytes, 24);
    ck_assert_uint_eq(s->record.uplink_bytes, 24 + 16);
    script_free(s);
}

TEST(a_closed_attempt_is_not_taken_up_again)
{
    struct fl_coord_resume resume = resume_of(NULL, 0, false);
    struct script *s = restarted("fedavg", &resume);
    struct fl_problems problems = {0};

    s->conf.retry_ms = 10;
    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 300);
    script_run_to(s, 99);
    script_why(s, "round 5 is IDLE: the server restarted, waiting for known clients: b, c "
                  "(0.0 s more)");
    fl_coord_problems(s->coord, s->now, &problems);
    ck_assert_str_eq(problems.of[FL_PROBLEM_RESTARTED].text,
                     "the server restarted, waiting for known clients: b, c");
    script_run_to(s, 100); /* The known clients have the grace; then it begins without them. */
    script_expect(s, "[    0] - client 'a' is back, 300 samples\n"
                     "[    0] a is client 1\n"
                     "[  100] - round 5: 3 clients wanted, only 1 are connected\n"
                     "[  100] - round 5 attempt 2: IDLE -> SELECTING, 1 of 1 connected clients\n"
                     "[  100] persist selection 5.2 a:selected:111\n"
                     "[  100] - round 5 attempt 2: SELECTING -> TRAINING, 1 clients have 1000 ms\n"
                     "[  100] open 5.2\n"
                     "[  100] a TASK 5.2 units 111 within 1000\n");
    script_free(s);
}

TEST(which_bounds_acted_in_the_newest_round_is_known_after_a_restart)
{
    struct fl_coord_resume resume = resume_of(NULL, 0, false);
    struct script *s;

    resume.bounds = (struct fl_round_bounds){.round = 4, .n_clipped = 2, .n_robust_out = 1};
    s = restarted("fedavg", &resume);
    script_start(s);
    script_join(s, "a", 300);
    script_why(
        s,
        "round 5 is IDLE: the server restarted, waiting for known clients: b, c (0.1 s more); "
        "in round 4: 2 updates shortened (round.norm_clip); in round 4: 1 updates left out by the "
        "robust rule (strategy.robust)");
    script_free(s);
}

TEST(known_clients_that_are_back_need_no_grace)
{
    struct fl_coord_resume resume = resume_of(NULL, 0, false);
    struct script *s = restarted("fedavg", &resume);

    script_start(s);
    script_join(s, "a", 300);
    script_join(s, "b", 100);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_join(s, "c", 200);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_free(s);
}

/* Who was there and never counted has no say in who is known, but was there. */
TEST(clients_without_a_record_have_the_grace_too)
{
    struct fl_coord_resume resume = resume_of(NULL, 0, false);
    struct script *s;

    resume.expected = 4;
    s = restarted("fedavg", &resume);
    script_start(s);
    script_join(s, "a", 300);
    script_join(s, "b", 100);
    script_join(s, "c", 200);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_join(s, "d", 200);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_free(s);
}

TEST(a_round_of_other_options_is_closed)
{
    const struct fl_participant_rec parts[] = {
        {.client = 0, .state = FL_PARTICIPANT_SELECTED, .samples = 100},
        {.client = 1, .state = FL_PARTICIPANT_SELECTED, .samples = 300},
    };
    struct fl_coord_resume resume = resume_of(parts, 2, false);
    struct script *s = restarted("fedavg", &resume); /* It was of fedldf: no grants are there. */

    s->manual = true;
    script_start(s);
    script_expect(s, "[    0] - round 5 attempt 2: cannot be resumed, the configuration changed\n"
                     "[    0] persist selection 5.3\n");
    script_free(s);
}

TEST(a_finished_federation_stays_finished)
{
    struct fl_coord_resume resume = resume_of(NULL, 0, false);
    struct script *s;

    resume.committed = 5;
    resume.open_round = 0;
    s = restarted("fedavg", &resume);
    script_start(s);
    script_join(s, "a", 300);
    script_expect(s, "[    0] * DRAIN 6.1 (all rounds are done)\n"
                     "[    0] - round 6 attempt 1: IDLE -> DRAINING, all rounds are done\n"
                     "[    0] - round 6 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
                     "[    0] FINISHED\n"
                     "[    0] - client 'a' is back, 300 samples\n"
                     "[    0] a is client 1\n"
                     "[    0] a DRAIN 6.1 (all rounds are done)\n");
    script_why(s, "the federation is STOPPED: all 5 rounds are done");
    script_free(s);
}

TEST(what_is_left_of_a_committed_round_is_ignored)
{
    const struct fl_participant_rec parts[] = {
        {.client = 0, .state = FL_PARTICIPANT_ACCEPTED, .units = all}};
    struct fl_coord_resume resume = resume_of(parts, 1, false);
    struct script *s;

    resume.open_round = 4;
    s = restarted("fedavg", &resume);
    ck_assert_ptr_null(fl_coord_part(s->coord, 0));
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 1);
    script_free(s);
}

TEST(without_parts_a_round_that_is_not_the_next_is_ignored)
{
    struct fl_coord_resume resume = resume_of(NULL, 0, false);
    struct script *s;

    resume.committed = 2; /* An older model had to be taken: round 5 was open, 3 is next. */
    s = restarted("fedavg", &resume);
    ck_assert_uint_eq(fl_coord_round(s->coord), 3);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 1);
    script_free(s);
}

TEST(the_same_clients_get_the_same_scores_after_a_crash)
{
    const struct fl_participant_rec parts[] = {
        {.client = 0, .state = FL_PARTICIPANT_ACCEPTED, .samples = 100, .units = all},
        {.client = 1, .state = FL_PARTICIPANT_ACCEPTED, .samples = 300, .units = all},
        {.client = 2, .state = FL_PARTICIPANT_ACCEPTED, .samples = 200, .units = all},
    };
    struct fl_coord_resume resume = resume_of(parts, 3, false);
    struct script *s = script_new("adafl");
    double a0 = 300.0 / 600;
    double sum = 0;
    uint32_t i;

    resume.committed = 0; /* The very first round: no score was ever committed. */
    resume.open_round = 1;
    script_create(s, &resume);
    script_start(s);
    /* The script's distances are 1, 2, 3 in client order: a, b, c. */
    ck_assert_double_eq_tol(fl_coord_score(s->coord, 1), 0.9 * a0 + 0.1 * (1.0 / 6), 1e-12);
    for (i = 0; i < 3; i++) {
        sum += fl_coord_score(s->coord, i);
    }
    ck_assert_double_eq_tol(sum, 1.0, 1e-12);
    script_free(s);
}

TEST(shares_of_the_attention_are_told_from_the_start_on)
{
    struct fl_client_rec recs[] = {
        {.id = 0, .name = "a", .samples = 10, .scored = true, .score = 3},
        {.id = 1, .name = "b", .samples = 10, .scored = true, .score = 1},
    };
    struct fl_coord_resume resume = {.committed = 4, .clients = recs, .n_clients = 2};
    struct script *s = script_new("adafl");

    script_create(s, &resume); /* Nobody has joined, nothing was drawn. */
    ck_assert_double_eq_tol(fl_coord_score(s->coord, 0), 0.75, 1e-12);
    ck_assert_double_eq_tol(fl_coord_score(s->coord, 1), 0.25, 1e-12);
    script_free(s);
}

static const struct fl_client_rec unnamed[] = {{.id = 0, .name = ""}};
static const struct fl_client_rec twice[] = {{.id = 0, .name = "a"}, {.id = 1, .name = "a"}};
static const struct fl_client_rec misnumbered[] = {{.id = FL_CLIENT_NUMBERS, .name = "a"}};
static const struct fl_participant_rec of_nobody[] = {
    {.client = 3, .state = FL_PARTICIPANT_SELECTED}};
static const struct fl_participant_rec in_no_state[] = {{.client = 0}};
static const struct fl_participant_rec doubled[] = {{.client = 0, .state = FL_PARTICIPANT_LOST},
                                                    {.client = 0, .state = FL_PARTICIPANT_LOST}};

static const struct {
    struct fl_coord_resume resume;
    const char *message;
} damaged[] = {
    {{.clients = unnamed, .n_clients = 1},
     "state database: client 0 (number 0) is invalid or duplicated"},
    {{.clients = twice, .n_clients = 2},
     "state database: client 1 (number 1) is invalid or duplicated"},
    {{.clients = misnumbered, .n_clients = 1},
     "state database: client 0 (number 16777216) is invalid or duplicated"},
    {{.committed = 4, .open_round = 6, .open_attempt = 1, .parts = of_nobody, .n_parts = 1},
     "state database: open round 6 attempt 1 does not follow the committed round 4"},
    {{.committed = 4, .open_round = 5, .open_attempt = 0},
     "state database: open round 5 attempt 0 does not follow the committed round 4"},
    {{.clients = clients,
      .n_clients = 3,
      .open_round = 1,
      .open_attempt = 1,
      .parts = of_nobody,
      .n_parts = 1},
     "state database: participant 0 of the open round is invalid or duplicated"},
    {{.clients = clients,
      .n_clients = 3,
      .open_round = 1,
      .open_attempt = 1,
      .parts = in_no_state,
      .n_parts = 1},
     "state database: participant 0 of the open round is invalid or duplicated"},
    {{.clients = clients,
      .n_clients = 3,
      .open_round = 1,
      .open_attempt = 1,
      .parts = doubled,
      .n_parts = 2},
     "state database: participant 1 of the open round is invalid or duplicated"},
};

TEST_EACH(damaged_state_is_refused_with_what_is_wrong, ARRAY_LEN(damaged))
{
    struct script *s = script_new("fedavg");
    struct fl_coord *c = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_coord_create(&s->conf, &damaged[_i].resume, &c, &err), FL_EFORMAT);
    ck_assert_str_eq(err.msg, damaged[_i].message);
    ck_assert_ptr_null(c);
    script_free(s);
}

/* The losses of reports are 0.5 in each round (script_report()). */
TEST(aggregation_is_told_of_a_plateau_before_and_after_a_restart)
{
    const struct fl_coord_resume nothing = {.committed = 0};
    struct fl_coord_resume resume = {.committed = 0};
    struct script *s = script_fedavg();
    uint64_t round;

    s->conf.rounds = 40;
    script_create(s, &nothing);
    script_start(s);
    script_join(s, "a", 100);
    for (round = 1; round <= 40; round++) {
        script_respond(s, "a");
        ck_assert_uint_eq(s->aggregate.round, round);
        ck_assert_uint_eq(s->aggregate.plateau, round <= 30 ? 0 : 30);
        ck_assert_uint_eq(s->aggregate.draw.number, 0);
        fl_plateau_add(&resume.plateau, round, s->record.train_loss);
    }
    ck_assert_uint_eq(resume.plateau.round, 30);
    s->conf.rounds = 41;
    resume.committed = 40;
    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 100);
    script_respond(s, "a");
    ck_assert_uint_eq(s->aggregate.round, 41);
    ck_assert_uint_eq(s->aggregate.plateau, 30);
    script_free(s);
}

/* The losses of reports stay: plateaus in rounds 30 and 60. */
TEST(tasks_and_aggregations_of_a_round_have_the_same_draw_before_and_after_a_restart)
{
    struct fl_coord_resume resume = {.committed = 0};
    struct script *s = script_fedavg();
    uint64_t round;

    ck_assert_int_eq(fl_strategy_set(s->strategy, FL_COMPONENT_SPACE, "hashed", NULL), FL_OK);
    ck_assert_int_eq(
        fl_options_set(s->strategy->options[FL_COMPONENT_SPACE], "redraw", "plateau", NULL), FL_OK);
    s->conf.rounds = 100;
    for (round = 1; round <= 65; round++) {
        if (round == 1 || round == 31 || round == 63) {
            script_create(s, &resume);
            script_start(s);
            script_join(s, "a", 100);
        }
        ck_assert_uint_eq(s->task.task.key.round, round);
        ck_assert_uint_eq(s->task.task.draw, (round - 1) / 30);
        script_respond(s, "a");
        ck_assert_uint_eq(s->aggregate.round, round);
        ck_assert_uint_eq(s->aggregate.draw.number, (round - 1) / 30);
        ck_assert_uint_eq(s->aggregate.draw.first, (round - 1) / 30 * 30 + 1);
        fl_plateau_add(&resume.plateau, round, s->record.train_loss);
        resume.committed = round;
    }
    script_free(s);
}
