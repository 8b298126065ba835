/* Events that do not fit, and what outsiders may ask and want. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static const float moved[] = {1, 2, 3};

struct odd {
    enum fl_event_type type;
    uint32_t client;
    uint64_t round;
    uint32_t attempt;
};

/* Wrong client, round, attempt or moment: answered or ignored, the phase stays. */
static const struct odd odds[] = {
    {FL_EV_START, 0, 0, 0},           {FL_EV_TICK, 0, 0, 0},
    {FL_EV_CLIENT_LOST, 77, 0, 0},    {FL_EV_REPORT, 77, 1, 1},
    {FL_EV_REPORT, 0, 2, 1},          {FL_EV_REPORT, 0, 1, 2},
    {FL_EV_REPORT, 0, 0, 0},          {FL_EV_CLIENT_FAILED, 77, 1, 1},
    {FL_EV_CLIENT_FAILED, 0, 9, 1},   {FL_EV_UPLOAD_STORED, 77, 1, 1},
    {FL_EV_UPLOAD_STORED, 0, 1, 9},   {FL_EV_UPLOAD_INVALID, 0, 9, 1},
    {FL_EV_UPLOAD_UNSTORED, 0, 9, 1}, {FL_EV_UPLOAD_UNSTORED, 77, 1, 1},
    {FL_EV_UPLOAD_PROGRESS, 0, 9, 1}, {FL_EV_UPLOAD_PROGRESS, 77, 1, 1},
    {FL_EV_MODEL_FETCHED, 0, 9, 1},   {FL_EV_MODEL_FETCHED, 77, 1, 1},
    {FL_EV_UPLOAD_INVALID, 77, 1, 1}, {FL_EV_EVAL_REPORT, 0, 1, 0},
    {FL_EV_EVAL_REPORT, 77, 1, 0},    {FL_EV_PERSISTED, 999, 0, 0},
    {FL_EV_PERSISTED, 0, 0, 0},       {FL_EV_AGGREGATED, 999, 0, 0},
    {FL_EV_AGGREGATED, 0, 0, 0},      {FL_EV_EVALUATED, 999, 0, 0},
    {FL_EV_COMMITTED, 999, 0, 0},     {FL_EV_COMMITTED, 0, 0, 0},
    {FL_EV_WORK_FAILED, 999, 0, 0},   {FL_EV_WORK_FAILED, 0, 0, 0},
    {FL_EV_RESUME, 0, 0, 0},          {FL_EV_CLIENT_HEARD, 77, 0, 0},
    {FL_EV_FORGET, 77, 0, 0},         {FL_EV_RELEASED, 77, 0, 0},
    {FL_EV_RELEASED, 0, 0, 0},        {FL_EV_EXCLUDE, 77, 0, 0},
    {FL_EV_NEW_EPOCH, 0, 0, 0},       {FL_EV_QUARANTINE, 0, 0, 0},
    {FL_EV_END_QUARANTINE, 0, 0, 0},
};

static void odd_event(const struct odd *odd, struct fl_event *ev)
{
    *ev = (struct fl_event){.type = odd->type};
    switch (odd->type) {
    case FL_EV_CLIENT_LOST:
    case FL_EV_CLIENT_HEARD:
    case FL_EV_FORGET:
    case FL_EV_RELEASED:
        ev->u.client = odd->client;
        break;
    case FL_EV_EXCLUDE:
        ev->u.excluded.client = odd->client;
        ev->u.excluded.reason = "odd";
        ev->u.excluded.leaves = true;
        break;
    case FL_EV_REPORT:
        ev->u.report.client = odd->client;
        ev->u.report.round = odd->round;
        ev->u.report.attempt = odd->attempt;
        break;
    case FL_EV_CLIENT_FAILED:
        ev->u.failed.client = odd->client;
        ev->u.failed.round = odd->round;
        ev->u.failed.attempt = odd->attempt;
        break;
    case FL_EV_UPLOAD_STORED:
    case FL_EV_UPLOAD_INVALID:
    case FL_EV_UPLOAD_UNSTORED:
    case FL_EV_UPLOAD_PROGRESS:
    case FL_EV_MODEL_FETCHED:
        ev->u.upload.client = odd->client;
        ev->u.upload.round = odd->round;
        ev->u.upload.attempt = odd->attempt;
        break;
    case FL_EV_EVAL_REPORT:
        ev->u.eval.client = odd->client;
        ev->u.eval.round = odd->round;
        break;
    case FL_EV_AGGREGATED:
        ev->u.aggregated.seq = odd->client;
        break;
    case FL_EV_EVALUATED:
        ev->u.evaluated.seq = odd->client;
        break;
    case FL_EV_PERSISTED:
    case FL_EV_COMMITTED:
        ev->u.seq = odd->client;
        break;
    case FL_EV_WORK_FAILED:
        ev->u.failed_work.seq = odd->client;
        ev->u.failed_work.client = UINT32_MAX;
        break;
    case FL_EV_QUARANTINE:
    case FL_EV_END_QUARANTINE:
        ev->u.of_client.name = "odd";
        break;
    case FL_EV_START:
    case FL_EV_TICK:
    case FL_EV_CLIENT_JOINED:
    case FL_EV_CLIENT_SUMMARY:
    case FL_EV_PAUSE:
    case FL_EV_RESUME:
    case FL_EV_DRAIN:
    case FL_EV_NEW_EPOCH:
    case FL_EV_ABORT_ROUND:
    case FL_EV_STOP:
        break;
    }
}

/* Every odd event in every phase of a round; the federation does not notice. */
TEST_EACH(events_that_do_not_fit_change_nothing, ARRAY_LEN(odds))
{
    struct script *s = script_new("fedldf");
    struct fl_event ev;
    bool done = false;

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.evaluate_every = 1;
    s->conf.evaluate_server = true;
    s->conf.rounds = 1;
    script_create(s, NULL);
    s->manual = true;
    script_start(s);
    script_join(s, "a", 10);
    while (!done) {
        enum fl_phase phase = fl_coord_phase(s->coord);

        odd_event(&odds[_i], &ev);
        script_step(s, &ev);
        ck_assert_int_eq(fl_coord_phase(s->coord), phase);
        if (phase == FL_PHASE_TRAINING) {
            script_report(s, "a", moved);
        } else if (phase == FL_PHASE_UPLOADING && s->n_works == 0) {
            script_stored(s, "a");
        } else if (s->n_works > 0) {
            script_answer(s);
        } else {
            done = true;
        }
    }
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_STOPPED);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 1);
    script_free(s);
}

TEST(repeated_reports_and_uploads_count_once)
{
    struct script *s = script_of_two("fedldf");

    script_report(s, "a", moved);
    script_report(s, "a", moved);
    script_expect(s, "");
    script_report(s, "b", (const float[]){2, 1, 1});
    script_stored(s, "a");
    script_forget(s);
    script_stored(s, "a");
    script_expect(s, "[    0] a ACCEPTED 1.1\n");
    script_report(s, "a", moved);
    script_expect(s, "[    0] a ACCEPTED 1.1\n");
    script_free(s);
}

TEST(an_accepted_update_is_confirmed_after_its_round_too)
{
    struct script *s = script_of_two("fedavg");
    struct fl_event ev = {.type = FL_EV_UPLOAD_STORED};

    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    script_stored(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_forget(s);
    ev.u.upload.client = script_id(s, "a");
    ev.u.upload.round = 1;
    ev.u.upload.attempt = 1;
    script_step(s, &ev);
    script_expect(s, "[    0] a ACCEPTED 1.1\n");
    script_free(s);
}

TEST(an_accepted_update_is_confirmed_to_who_comes_back_later)
{
    struct script *s = script_of_two("fedavg");

    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    script_stored(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_failed(s, "a", "no power"); /* out of round 2 */
    script_failed(s, "b", "no power");
    script_lost(s, "a");
    script_forget(s);
    script_join(s, "a", 300);
    script_expect(s, "[    0] - client 'a' is back, 300 samples\n"
                     "[    0] a is client 0\n"
                     "[    0] a ACCEPTED 1.1\n");
    script_free(s);
}

TEST(responders_without_any_update_do_not_make_a_round)
{
    struct script *s = script_of_two("fedldf");

    script_report(s, "a", moved);
    script_report(s, "b", (const float[]){0, 0, 0});
    script_forget(s);
    script_failed(s, "a", "no power"); /* All units were asked of it. */
    script_expect(s, "[    0] - client 'a' failed: no power\n"
                     "[    0] - round 1 attempt 1: UPLOADING -> IDLE, aborted (no update arrived), "
                     "retrying in 50 ms\n"
                     "[    0] persist selection 1.2\n"
                     "[    0] closed 1.1\n");
    script_free(s);
}

TEST(time_never_goes_back)
{
    struct script *s = script_of_two("fedavg");
    struct fl_event ev = {.type = FL_EV_TICK, .now_ms = 900};
    struct fl_effects effects;

    ck_assert_int_eq(fl_coord_step(s->coord, &ev, &effects), FL_OK);
    ev.type = FL_EV_CLIENT_LOST; /* at 900, whatever it says: the grace counts from there */
    ev.u.client = script_id(s, "a");
    ev.now_ms = 10;
    ck_assert_int_eq(fl_coord_step(s->coord, &ev, &effects), FL_OK);
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 1000);
    script_free(s);
}

TEST(the_last_round_is_evaluated_and_others_by_turns)
{
    struct script *s = script_new("fedavg");
    static const double accuracy[] = {-1, 0.5, 0.5};
    unsigned i;

    s->conf.evaluate_every = 2;
    s->conf.evaluate_server = true;
    s->conf.rounds = 3;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 1);
    for (i = 0; i < 3; i++) {
        script_report(s, "a", NULL);
        script_stored(s, "a");
        ck_assert_uint_eq(s->record.round, i + 1);
        ck_assert_double_eq(s->record.accuracy, accuracy[i]);
    }
    script_free(s);
}

TEST(an_attempt_draws_anew)
{
    struct script *s = script_new("fedavg");
    unsigned differ = 0;
    unsigned i;

    s->conf.start_clients = 4;
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "0.25");
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 1);
    script_join(s, "b", 1);
    script_join(s, "c", 1);
    script_join(s, "d", 1);
    for (i = 0; i < 8; i++) { /* A client that always fails must not be asked for ever. */
        uint32_t id = 0;

        while (fl_coord_part(s->coord, id) == NULL) {
            id++;
        }
        script_failed(s, fl_coord_client(s->coord, id)->name, "no power");
        script_run_to(s, fl_coord_deadline(s->coord));
        differ += fl_coord_part(s->coord, id) == NULL;
    }
    ck_assert_uint_gt(differ, 2);
    script_free(s);
}

TEST(names_that_cannot_be_and_too_many_are_not_admitted)
{
    struct script *s = script_new("fedavg");

    s->conf.max_clients = 1;
    script_create(s, NULL);
    script_join(s, "../etc", 1);
    script_join(s, "a", 1);
    script_join(s, "b", 1);
    script_join(s, "a", 2);
    script_expect(s,
                  "[    0] - client '../etc' is refused: bad name\n"
                  "[    0] * is client 4294967295\n"
                  "[    0] - client 'a' is new, 1 samples\n"
                  "[    0] a is client 0\n"
                  "[    0] - client 'b' is refused: too many known clients (limits.known_clients)\n"
                  "[    0] * is client 4294967295\n"
                  "[    0] - client 'a' has 2 samples, it had 1\n"
                  "[    0] - client 'a' is back, 2 samples\n"
                  "[    0] a is client 0\n");
    script_free(s);
}

TEST(a_client_without_samples_is_never_selected)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 0);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_why(s, "round 1 is IDLE: 0 of 1 clients are connected");
    script_join(s, "b", 1);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    ck_assert_ptr_null(fl_coord_part(s->coord, 0));
    ck_assert_ptr_nonnull(fl_coord_part(s->coord, 1));
    script_free(s);
}

TEST(may_push_says_why_not)
{
    struct script *s = script_of_two("fedldf");
    struct fl_err err = {0};
    const uint8_t *units = NULL;

    ck_assert_int_eq(fl_coord_may_push(s->coord, 9, 1, 1, &units, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "upload refused: unknown client");
    ck_assert_int_eq(fl_coord_may_push(s->coord, 0, 1, 2, &units, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "upload refused: round 1 attempt 2 is not open");
    ck_assert_int_eq(fl_coord_may_push(s->coord, 0, 1, 1, &units, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "upload refused: the upload plan does not exist yet");
    script_join(s, "c", 5);
    ck_assert_int_eq(fl_coord_may_push(s->coord, 2, 1, 1, &units, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "upload refused: the client was not selected in round 1");
    script_report(s, "a", moved);
    s->manual = true;
    script_report(s, "b", (const float[]){0, 0, 0});
    ck_assert_int_eq(fl_coord_may_push(s->coord, 0, 1, 1, &units, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "upload refused: the round is PLANNING");
    s->manual = false;
    script_answer_all(s);
    ck_assert_int_eq(fl_coord_may_push(s->coord, 0, 1, 1, &units, &err), FL_OK);
    ck_assert_int_eq(units[0] + units[1] + units[2], 3);
    ck_assert_int_eq(fl_coord_may_push(s->coord, 1, 1, 1, &units, &err), FL_EEXIST);
    script_stored(s, "a");
    ck_assert_int_eq(fl_coord_may_push(s->coord, 0, 1, 1, &units, &err), FL_EEXIST);
    ck_assert_str_eq(err.msg, "round 1 attempt 1 was already accepted");
    script_free(s);
}

static size_t missing(const struct script *s, const char *first)
{
    const char *names[1] = {NULL};
    char out[512];
    size_t n = 0;

    fl_coord_why(s->coord, s->now, out, sizeof(out), names, 1, &n);
    if (first != NULL) {
        ck_assert_str_eq(names[0], first);
    }
    return n;
}

TEST(why_says_in_every_phase_what_is_waited_for)
{
    struct script *s = script_new("fedldf");
    unsigned i;

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 3;
    s->conf.min_responders = 3;
    s->conf.evaluate_every = 1;
    s->conf.evaluate_clients = true;
    s->conf.train_ms = 12300;
    script_create(s, NULL);
    script_why(s, "round 1 is IDLE: the federation is not started");
    script_start(s);
    script_join(s, "b", 100);
    script_join(s, "a", 300);
    script_lost(s, "a");
    script_why(s, "round 1 is IDLE: 1 of 3 clients are connected");
    ck_assert_uint_eq(missing(s, NULL), 0); /* It was never selected: its name does not stay. */
    script_join(s, "a", 300);
    s->manual = true;
    script_join(s, "c", 100);
    script_why(s, "round 1 is SELECTING: writing the selection to disk");
    script_answer(s);
    script_why(s, "round 1 is TRAINING: 0 of 3 reports are in, waiting 12.3 s more for: a, b, c");
    script_answer_all(s);
    script_report(s, "c", moved);
    script_why(s, "round 1 is TRAINING: 1 of 3 reports are in, waiting 12.3 s more for: a, b");
    ck_assert_uint_eq(missing(s, "a"), 2);
    script_report(s, "a", (const float[]){9, 1, 1});
    script_report(s, "b", (const float[]){0, 0, 0});
    script_why(s, "round 1 is PLANNING: writing the upload plan to disk");
    script_answer_all(s);
    script_run_to(s, 600);
    script_why(s, "round 1 is UPLOADING: 0 of 2 uploads are in, waiting 0.4 s more for: a, c");
    script_stored(s, "a");
    script_answer(s);
    script_stored(s, "c");
    script_answer(s);
    script_why(s, "round 1 is AGGREGATING: aggregating the updates");
    script_answer(s);
    script_why(s, "round 1 is EVALUATING: waiting 1.0 s more for: a, b, c");
    ck_assert_uint_eq(missing(s, "a"), 3);
    script_run_to(s, 1600);
    script_why(s, "round 1 is COMMITTING: writing the new model to disk");
    script_answer(s);
    script_answer(s);
    for (i = 0; i < 2; i++) {
        script_failed(s, "a", "no power");
        script_why(s, i == 0 ? "round 2 attempt 1 has ended (fewer than 3 can still respond), "
                               "writing that to disk"
                             : "round 2 is IDLE: attempt 2 begins after 0.1 s more (fewer than 3 "
                               "can still respond); attempt 1 asked 3 clients, without a result "
                               "of: a, b, c");
        script_answer_all(s);
    }
    script_free(s);
}

TEST(a_bad_configuration_is_refused)
{
    struct script *s = script_new("fedavg");
    struct fl_err err = {0};
    struct fl_coord *c = NULL;

    s->conf.over_selection = 0.5;
    ck_assert_int_eq(fl_coord_create(&s->conf, NULL, &c, &err), FL_ECONF);
    ck_assert_str_eq(err.msg, "round.over_selection: expected a number of at least 1, found 0.5");
    s->conf.over_selection = 1;
    s->conf.learning_rate = (double)NAN;
    ck_assert_int_eq(fl_coord_create(&s->conf, NULL, &c, &err), FL_ECONF);
    ck_assert_ptr_null(c);
    script_free(s);
}
