/* Clients that are not selected for what they uploaded, or because an operator said so. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

#define DAY UINT64_C(86400000)

static const char *const of_round_1_to_3 =
    "3 offences in the last 20 rounds: round 1 (invalid update), round 2 (invalid update), "
    "round 3 (invalid update); last: NaN";

/* a, b and c, of which two have to be left: three offences in 20 rounds, for a day. */
static struct script *three_of(const char *preset)
{
    struct script *s = script_new(preset);

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.quarantine_after = 3;
    s->conf.quarantine_window = 20;
    s->conf.quarantine_ms = DAY;
    s->conf.norm_cap = 100;
    return s;
}

static struct script *three(void)
{
    struct script *s = three_of("fedavg");

    script_begin(s, 3);
    return s;
}

/* A round that b and c end; a uploads nonsense. */
static void bad_round(struct script *s)
{
    script_report(s, "a", NULL);
    script_invalid(s, "a", "NaN");
    script_respond(s, "b");
    script_respond(s, "c");
}

static void good_round(struct script *s)
{
    script_respond(s, "a");
    script_respond(s, "b");
    script_respond(s, "c");
}

static const struct fl_client_rec *rec_of(const struct script *s, const char *name)
{
    return fl_coord_client(s->coord, script_id(s, name));
}

static bool logged(struct script *s, const char *text)
{
    ck_assert_int_eq(fl_buf_add(&s->log, "", 1), FL_OK);
    s->log.len--;
    return strstr((const char *)s->log.data, text) != NULL;
}

static bool selected(const struct script *s, const char *name)
{
    return fl_coord_part(s->coord, script_id(s, name)) != NULL;
}

/* The state that is on disk: what the last commit and the last quarantine wrote. */
static void restart(struct script *s, const struct fl_coord_resume *more)
{
    struct fl_client_rec clients[3];
    struct fl_coord_resume resume = *more;
    uint32_t i;

    for (i = 0; i < 3; i++) {
        clients[i] = s->clients[i].name[0] != '\0' ? s->clients[i] : *fl_coord_client(s->coord, i);
        (void)memcpy(clients[i].offences, s->quarantines[i].offences, sizeof(clients[i].offences));
        (void)memcpy(clients[i].quarantine, s->quarantines[i].quarantine,
                     sizeof(clients[i].quarantine));
        clients[i].quarantined_up_ms = s->quarantines[i].quarantined_up_ms;
        clients[i].quarantined_ms = s->quarantines[i].quarantined_ms;
    }
    resume.committed =
        more->committed != UINT64_MAX ? more->committed : fl_coord_committed(s->coord);
    resume.clients = clients;
    resume.n_clients = 3;
    resume.epoch = 1;
    script_create(s, &resume);
    script_start(s);
}

static void restart_idle(struct script *s)
{
    const struct fl_coord_resume nothing = {.committed = UINT64_MAX};

    restart(s, &nothing);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_join(s, "c", 100);
}

TEST(three_offences_in_the_window_quarantine_a_client)
{
    struct script *s = three();

    bad_round(s);
    bad_round(s);
    ck_assert(selected(s, "a"));
    ck_assert_uint_eq(s->record.n_quarantined, 0);
    bad_round(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 3);
    ck_assert_str_eq(rec_of(s, "a")->quarantine, of_round_1_to_3);
    ck_assert(logged(s, "- client 'a' is quarantined until 'flctl clients release a' or for 24h: "
                        "3 offences in the last 20 rounds: round 1 (invalid update), round 2 "
                        "(invalid update), round 3 (invalid update); last: NaN\n"));
    ck_assert_uint_eq(s->record.n_quarantined, 1);
    ck_assert(!selected(s, "a") && selected(s, "b") && selected(s, "c"));
    ck_assert(fl_coord_connected(s->coord, script_id(s, "a")));
    script_free(s);
}

TEST(two_offences_do_not_quarantine_a_client)
{
    struct script *s = three();
    unsigned i;

    bad_round(s);
    bad_round(s);
    for (i = 0; i < 30; i++) {
        good_round(s);
    }
    ck_assert_uint_eq(fl_coord_committed(s->coord), 32);
    ck_assert_str_eq(rec_of(s, "a")->quarantine, "");
    ck_assert(selected(s, "a"));
    script_free(s);
}

/* The window has the open round and those before it: of 5 rounds, 1, 3 and 5 are in it, 1 and 6 are
   not. */
TEST_EACH(three_offences_in_more_rounds_than_the_window_do_not_quarantine_a_client, 2)
{
    struct script *s = three_of("fedavg");
    unsigned round;

    s->conf.quarantine_window = 5;
    script_begin(s, 3);
    for (round = 1; round <= 5 + (unsigned)_i; round++) {
        if (round == 1 || round == 3 || round == 5 + (unsigned)_i) {
            bad_round(s);
        } else {
            good_round(s);
        }
    }
    ck_assert_int_eq(rec_of(s, "a")->quarantine[0] != '\0', _i == 0);
    script_free(s);
}

TEST(without_quarantine_after_no_offence_quarantines_a_client)
{
    struct script *s = three_of("fedavg");
    unsigned i;

    s->conf.quarantine_after = 0;
    script_begin(s, 3);
    for (i = 0; i < 5; i++) {
        bad_round(s);
    }
    ck_assert(selected(s, "a"));
    ck_assert_uint_eq(s->quarantines[script_id(s, "a")].offences[0].kind, 0);
    script_free(s);
}

static void stored_with(struct script *s, const char *name, double rms, float norm)
{
    struct fl_unit_norm unit[SCRIPT_UNITS] = {{norm, norm * .9f, norm * 1.1f},
                                              {norm, norm * .9f, norm * 1.1f},
                                              {norm, norm * .9f, norm * 1.1f}};
    struct fl_norms norms = {.rms = {rms}, .unit = unit};

    script_stored_with(s, name, &norms);
}

TEST(a_false_claim_is_an_offence_that_says_what_was_claimed_and_found)
{
    static const float hostile[] = {9, 9, 9};
    static const float honest[] = {1, 1, 1};
    struct script *s = three_of("fedldf");

    script_option(s, FL_COMPONENT_UPLOAD, "n", "3");
    s->conf.quarantine_after = 1;
    script_begin(s, 3);
    script_report(s, "a", hostile);
    script_report(s, "b", honest);
    script_report(s, "c", honest);
    stored_with(s, "a", 1, 1);
    ck_assert_str_eq(rec_of(s, "a")->quarantine,
                     "1 offence in the last 20 rounds: round 1 (false claim); last: layer 'a' "
                     "contradicts its report: divergence 9 reported, norm 1 uploaded, 0.9 to 1.1 "
                     "expected; 2 more layers do, too");
    script_free(s);
}

TEST(an_update_beyond_the_norm_cap_is_an_offence_that_says_both_norms)
{
    struct script *s = three_of("fedavg");

    s->conf.quarantine_after = 1;
    script_begin(s, 3);
    script_report(s, "a", NULL);
    stored_with(s, "a", 300, 1);
    script_report(s, "b", NULL);
    stored_with(s, "b", 2, 1);
    script_report(s, "c", NULL);
    stored_with(s, "c", 1, 1);
    ck_assert_str_eq(rec_of(s, "a")->quarantine,
                     "1 offence in the last 20 rounds: round 1 (update left out); last: update "
                     "with RMS norm 300, median 2, 100 times it allowed");
    ck_assert_str_eq(rec_of(s, "b")->quarantine, "");
    ck_assert_uint_eq(s->record.n_left_out, 1);
    ck_assert_uint_eq(s->record.n_quarantined, 1);
    script_free(s);
}

/* 0: the aggregation finds a bad update. 1: the server lost it. 2: a report is invalid. 3: its
   training failed. 4: it reports more samples than it announced. 5: it timed out. */
TEST_EACH(only_what_was_uploaded_is_an_offence, 6)
{
    struct script *s = three_of("fedavg");
    uint32_t a;

    s->conf.quarantine_after = 1;
    script_begin(s, 3);
    a = script_id(s, "a");
    script_respond(s, "b");
    s->manual = _i < 2;
    if (_i < 2) {
        script_respond(s, "c");
        script_respond(s, "a");
        while (s->works[0].type != FL_EFF_AGGREGATE) {
            script_answer(s);
        }
        script_fail(s, _i == 0 ? FL_ENUMERIC : FL_EFORMAT, "as it is", a);
    } else if (_i == 2) {
        script_report_of(s, "a", 1, 1, 100, (double)NAN, NULL, 0);
    } else if (_i == 3) {
        script_diverged(s, "a", "NaN");
    } else if (_i == 4) {
        script_report_of(s, "a", 1, 1, 100000, 1, NULL, 0);
    } else {
        script_run_to(s, 1000);
    }
    ck_assert_int_eq(rec_of(s, "a")->quarantine[0] != '\0', _i == 0);
    script_free(s);
}

/* A restarted server repeats the check of an upload that it rejected. */
TEST(an_offence_counts_once_in_an_attempt)
{
    struct script *s = three();
    struct fl_participant_rec parts[3] = {{.client = 0}, {.client = 1}, {.client = 2}};
    const struct fl_coord_resume open = {
        .committed = UINT64_MAX, .open_round = 1, .open_attempt = 1, .parts = parts, .n_parts = 3};
    uint8_t units[] = {1, 1, 1};
    unsigned i;

    for (i = 0; i < 3; i++) {
        parts[i].state = FL_PARTICIPANT_SELECTED;
        parts[i].units = units;
        parts[i].samples = 100;
    }
    for (i = 0; i < 4; i++) {
        script_report(s, "a", NULL);
        script_invalid(s, "a", "NaN");
        ck_assert_uint_eq(s->quarantines[0].offences[0].round, 1);
        ck_assert_uint_eq(s->quarantines[0].offences[1].kind, 0);
        restart(s, &open);
        script_join(s, "a", 100);
    }
    ck_assert_str_eq(rec_of(s, "a")->quarantine, "");
    script_free(s);
}

TEST(offences_in_attempts_of_one_round_all_count)
{
    struct script *s = three_of("fedavg");
    unsigned i;

    s->conf.min_responders = 3;
    script_begin(s, 3);
    for (i = 0; i < 3; i++) {
        script_report(s, "a", NULL);
        script_invalid(s, "a", "bad shape");
        script_run_to(s, s->now + 1000);
    }
    ck_assert_str_eq(
        rec_of(s, "a")->quarantine,
        "3 offences in the last 20 rounds: round 1 (invalid update), round 1 attempt 2 "
        "(invalid update), round 1 attempt 3 (invalid update); last: bad shape");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_free(s);
}

TEST(an_operator_releases_a_client_and_its_offences_count_from_zero)
{
    struct script *s = three();
    unsigned i;

    for (i = 0; i < 3; i++) {
        bad_round(s);
    }
    script_forget(s);
    script_of_client(s, FL_EV_END_QUARANTINE, "a", NULL);
    script_expect(s, "[    0] - client 'a' is released from quarantine by the operator\n"
                     "[    0] persist a:0\n"
                     "[    0] answer: client 'a' is released: it can be selected from the next "
                     "round on\n");
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert(selected(s, "a"));
    bad_round(s);
    bad_round(s);
    ck_assert(selected(s, "a"));
    bad_round(s);
    ck_assert(!selected(s, "a"));
    script_free(s);
}

TEST(a_quarantine_ends_after_its_time_independent_of_the_wall_clock)
{
    struct script *s = three();
    unsigned i;

    for (i = 0; i < 3; i++) {
        bad_round(s);
    }
    s->wall_ahead = 400 * DAY;
    script_simple(s, FL_EV_PAUSE);
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), DAY);
    script_run_to(s, DAY - 1);
    ck_assert_ptr_nonnull(strstr(rec_of(s, "a")->quarantine, "3 offences"));
    script_forget(s);
    script_run_to(s, DAY);
    ck_assert_str_eq(rec_of(s, "a")->quarantine, "");
    script_expect(s, "[86400000] - released from quarantine after round.quarantine_time: a\n"
                     "[86400000] persist a:0\n");
    script_simple(s, FL_EV_RESUME);
    ck_assert(selected(s, "a"));
    ck_assert_uint_gt(fl_coord_deadline(s->coord), DAY);
    script_free(s);
}

TEST(without_quarantine_time_only_an_operator_ends_it)
{
    struct script *s = three_of("fedavg");

    s->conf.quarantine_ms = 0;
    s->conf.quarantine_after = 1;
    script_begin(s, 3);
    bad_round(s);
    ck_assert(logged(s, "until 'flctl clients release a': 1 offence"));
    script_simple(s, FL_EV_PAUSE);
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), UINT64_MAX);
    s->now += 400 * DAY;
    script_simple(s, FL_EV_RESUME);
    ck_assert(!selected(s, "a"));
    script_free(s);
}

TEST(a_restart_between_the_second_and_the_third_offence_loses_none)
{
    struct script *s = three();

    bad_round(s);
    bad_round(s);
    restart_idle(s);
    ck_assert(selected(s, "a"));
    bad_round(s);
    ck_assert_str_eq(rec_of(s, "a")->quarantine, of_round_1_to_3);
    ck_assert(!selected(s, "a"));
    script_free(s);
}

/* It has the rest of its time, and what was quarantined first is released first. */
TEST(a_client_is_quarantined_after_a_restart_too)
{
    struct script *s = three_of("fedavg");

    s->conf.quarantine_after = 1;
    script_begin(s, 3);
    bad_round(s);
    s->now = 1000;
    script_of_client(s, FL_EV_QUARANTINE, "b", "a test");
    script_respond(s, "c");
    s->now = 5000;
    restart_idle(s);
    ck_assert(!selected(s, "a") && !selected(s, "b") && selected(s, "c"));
    script_simple(s, FL_EV_PAUSE);
    script_respond(s, "c");
    script_run_to(s, 5000 + DAY - 1000 - 1); /* The clock continues at the time of b's. */
    ck_assert_ptr_nonnull(strstr(rec_of(s, "a")->quarantine, "1 offence"));
    script_run_to(s, 5000 + DAY - 1000);
    ck_assert_str_eq(rec_of(s, "a")->quarantine, "");
    ck_assert_str_eq(rec_of(s, "b")->quarantine, "quarantined by the operator: a test");
    script_run_to(s, 5000 + DAY);
    ck_assert_str_eq(rec_of(s, "b")->quarantine, "");
    script_free(s);
}

/* The record of its part in the round may be older than that of its quarantine. */
TEST_EACH(what_a_quarantined_client_sent_for_the_open_round_does_not_count_after_a_restart, 2)
{
    struct script *s = three();
    struct fl_participant_rec parts[3] = {{.client = 0}, {.client = 1}, {.client = 2}};
    const struct fl_coord_resume open = {
        .committed = UINT64_MAX, .open_round = 1, .open_attempt = 1, .parts = parts, .n_parts = 3};
    uint8_t units[] = {1, 1, 1};
    unsigned i;

    script_of_client(s, FL_EV_QUARANTINE, "a", NULL);
    for (i = 0; i < 3; i++) {
        parts[i].state = i == 0 && _i == 0 ? FL_PARTICIPANT_ACCEPTED : FL_PARTICIPANT_SELECTED;
        parts[i].units = units;
        parts[i].samples = 100;
        parts[i].rms[0] = 1;
    }
    restart(s, &open);
    ck_assert_int_eq(script_state(s, "a"), FL_PARTICIPANT_REJECTED);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_join(s, "c", 100);
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->aggregate.n_parts, 2);
    ck_assert_uint_eq(s->record.n_left_out, 0);
    script_free(s);
}

/* Back to round 1, from round 3: rounds 2 and 3 are run again. */
TEST(a_rollback_keeps_quarantines_and_offences_of_abandoned_rounds_count_as_of_the_next_one)
{
    const struct fl_coord_resume back = {.committed = 1, .used_round = 3, .used_attempt = 1};
    struct script *s = three_of("fedavg");
    unsigned i;

    s->conf.quarantine_window = 3;
    script_begin(s, 3);
    good_round(s);
    script_of_client(s, FL_EV_QUARANTINE, "b", NULL);
    for (i = 0; i < 2; i++) {
        script_report(s, "a", NULL);
        script_invalid(s, "a", "NaN");
        script_respond(s, "c");
    }
    s->check.committed = 1;
    restart(s, &back);
    ck_assert_str_eq(rec_of(s, "b")->quarantine, "quarantined by the operator");
    ck_assert_uint_eq(rec_of(s, "a")->offences[0].round, 2);
    ck_assert_uint_eq(rec_of(s, "a")->offences[1].round, 2);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_join(s, "c", 100);
    ck_assert(!selected(s, "b"));
    script_report(s, "a", NULL);
    script_invalid(s, "a", "NaN");
    ck_assert_ptr_nonnull(strstr(rec_of(s, "a")->quarantine, "3 offences in the last 3 rounds"));
    script_free(s);
}

TEST(with_too_few_clients_left_the_federation_waits_and_names_the_quarantined_ones)
{
    struct script *s = three_of("fedavg");

    s->conf.quarantine_after = 1;
    s->conf.min_responders = 2;
    script_begin(s, 3);
    bad_round(s);
    script_forget(s);
    script_of_client(s, FL_EV_QUARANTINE, "b", "noise");
    ck_assert(logged(s, "- client 'b' rejected: quarantined by the operator\n"));
    script_run_to(s, 5000);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_why(s,
               "round 2 is IDLE: 1 of 2 clients are connected and not quarantined; attempt 1 asked "
               "2 clients, "
               "without a result of: b, c; client 'a' "
               "is quarantined until 'flctl clients release a' or for 24h: 1 offence in the last "
               "20 rounds: round 1 (invalid update); last: NaN; client 'b' is quarantined until "
               "'flctl clients release b' or for 24h: quarantined by the operator: noise");
    script_of_client(s, FL_EV_END_QUARANTINE, "b", NULL);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    ck_assert(selected(s, "b") && selected(s, "c") && !selected(s, "a"));
    script_free(s);
}

TEST(when_all_are_quarantined_the_log_says_that_no_round_starts_and_one_release_continues)
{
    struct script *s = three_of("fedavg");

    s->conf.min_responders = 0;
    script_begin(s, 3);
    good_round(s);
    script_of_client(s, FL_EV_QUARANTINE, "a", NULL);
    script_of_client(s, FL_EV_QUARANTINE, "b", NULL);
    script_forget(s);
    script_of_client(s, FL_EV_QUARANTINE, "c", NULL);
    ck_assert(logged(s,
                     "0 connected clients are not quarantined, but 1 are needed: no round starts "
                     "until one more connects or is released\n"));
    script_run_to(s, 10000);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    {
        char text[1024];
        size_t n = 0;

        fl_coord_why(s->coord, s->now, text, sizeof(text), NULL, 0, &n);
        ck_assert_ptr_nonnull(
            strstr(text, "; 1 more clients are quarantined, see 'flctl clients'"));
    }
    script_of_client(s, FL_EV_END_QUARANTINE, "c", NULL);
    ck_assert(selected(s, "c") && !selected(s, "a"));
    script_free(s);
}

/* 0: accepted, 1: training. */
TEST_EACH(an_operator_quarantines_a_client_and_its_open_update_is_not_aggregated, 2)
{
    struct script *s = three();

    good_round(s);
    if (_i == 0) {
        script_respond(s, "a");
    }
    s->manual = true;
    script_forget(s);
    script_of_client(s, FL_EV_QUARANTINE, "a", "looks odd");
    script_expect(s, _i == 0
                         ? "[    0] - client 'a' is quarantined until 'flctl clients release a' "
                           "or for 24h: quarantined by the operator: looks odd\n"
                           "[    0] - client 'a' is excluded, its update does not count: "
                           "quarantined by the operator\n"
                           "[    0] persist update 2.1 a:rejected:111\n"
                           "[    0] persist a:0:quarantined\n"
                         : "[    0] - client 'a' is quarantined until 'flctl clients release a' "
                           "or for 24h: quarantined by the operator: looks odd\n"
                           "[    0] - client 'a' rejected: quarantined by the operator\n"
                           "[    0] a REJECTED 2.1 (quarantined by the operator)\n"
                           "[    0] persist a:0:quarantined\n");
    s->manual = false;
    script_answer_all(s);
    script_expect(s,
                  "[    0] answer: client 'a' is not selected until 'flctl clients release a' or "
                  "for 24h: quarantined by the operator: looks odd\n");
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    ck_assert_uint_eq(s->aggregate.n_parts, 2);
    ck_assert(!selected(s, "a"));
    script_free(s);
}

TEST(a_client_that_is_quarantined_while_its_selection_is_written_gets_no_task)
{
    struct script *s = three_of("fedavg");

    s->manual = true;
    script_begin(s, 3);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_SELECTING);
    script_of_client(s, FL_EV_QUARANTINE, "a", NULL);
    script_forget(s);
    script_answer_all(s);
    ck_assert(logged(s, "b TASK 1.1") && logged(s, "c TASK 1.1"));
    ck_assert(!logged(s, "a TASK"));
    script_free(s);
}

TEST(commands_about_unknown_clients_and_without_effect_are_answered)
{
    struct script *s = three();

    script_forget(s);
    script_of_client(s, FL_EV_QUARANTINE, "x", NULL);
    script_of_client(s, FL_EV_END_QUARANTINE, "x", NULL);
    script_of_client(s, FL_EV_END_QUARANTINE, "a", NULL);
    script_expect(s, "[    0] answer (no): no client 'x' is known\n"
                     "[    0] answer (no): no client 'x' is known\n"
                     "[    0] answer: nothing to release: client 'a' is not quarantined\n");
    script_of_client(s, FL_EV_QUARANTINE, "a", "the first reason");
    script_forget(s);
    script_of_client(s, FL_EV_QUARANTINE, "a", "another one");
    script_expect(s, "[    0] answer: already so: client 'a' is not selected until 'flctl clients "
                     "release a' or for 24h: quarantined by the operator: the first reason\n");
    script_free(s);
}

TEST(a_quarantine_that_cannot_be_written_is_in_force_and_written_again)
{
    struct script *s = three();

    s->manual = true;
    script_of_client(s, FL_EV_QUARANTINE, "a", NULL);
    script_forget(s);
    script_fail(s, FL_EIO, "disk full", UINT32_MAX);
    script_expect(
        s, "[    0] - offences and quarantines of 1 clients could not be written: disk full, "
           "retrying in 50 ms\n"
           "[    0] answer (but): done, but not yet durable: disk full; free some space, the write "
           "is retried. A crash before that loses the change\n");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 50);
    script_run_to(s, 50);
    script_expect(s, "[   50] persist a:0:quarantined\n");
    script_answer_all(s);
    script_expect(s, "");
    ck_assert_str_eq(rec_of(s, "a")->quarantine, "quarantined by the operator");
    script_free(s);
}

/* Of a client that was never selected there is no record yet, and its name would be dropped. */
TEST(a_client_that_disconnects_before_its_quarantine_is_written_stays_known)
{
    struct script *s = three();

    script_join(s, "d", 100);
    s->manual = true;
    script_of_client(s, FL_EV_QUARANTINE, "d", NULL);
    script_fail(s, FL_EIO, "disk full", UINT32_MAX);
    script_lost(s, "d");
    ck_assert_ptr_nonnull(rec_of(s, "d"));
    script_forget(s);
    script_run_to(s, 50);
    ck_assert(logged(s, "persist d:0:quarantined\n"));
    script_free(s);
}

/* Of a client that was never selected there is no record yet. */
TEST(a_quarantined_client_is_known_while_it_is_away_however_long)
{
    struct script *s = three_of("fedavg");

    s->conf.quarantine_ms = 0;
    s->conf.forget_after_ms = 30 * DAY;
    script_begin(s, 3);
    script_join(s, "d", 100);
    script_of_client(s, FL_EV_QUARANTINE, "a", NULL);
    script_of_client(s, FL_EV_QUARANTINE, "d", NULL);
    script_lost(s, "a");
    script_lost(s, "b");
    script_lost(s, "d");
    s->quiet = true;
    script_run_to(s, 31 * DAY);
    script_simple(s, FL_EV_TICK);
    ck_assert_uint_eq(script_id(s, "b"), UINT32_MAX);
    script_join(s, "a", 100);
    script_join(s, "d", 100);
    ck_assert_str_eq(rec_of(s, "a")->quarantine, "quarantined by the operator");
    ck_assert_str_eq(rec_of(s, "d")->quarantine, "quarantined by the operator");
    /* Released while it is away it ages again; forgotten by the operator it is gone. */
    script_lost(s, "a");
    script_of_client(s, FL_EV_END_QUARANTINE, "a", NULL);
    script_forget_client(s, "d");
    script_run_to(s, 62 * DAY);
    script_simple(s, FL_EV_TICK);
    ck_assert_uint_eq(script_id(s, "a"), UINT32_MAX);
    ck_assert_uint_eq(script_id(s, "d"), UINT32_MAX);
    script_free(s);
}

TEST(a_quarantined_client_is_not_asked_to_evaluate_and_no_longer_awaited)
{
    struct script *s = three_of("fedavg");

    s->conf.evaluate_every = 1;
    s->conf.evaluate_clients = true;
    script_begin(s, 3);
    script_of_client(s, FL_EV_QUARANTINE, "a", NULL);
    script_respond(s, "b");
    script_forget(s);
    script_respond(s, "c");
    ck_assert(logged(s, "b EVALUATE"));
    ck_assert(!logged(s, "a EVALUATE"));
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_EVALUATING);
    script_of_client(s, FL_EV_QUARANTINE, "b", NULL);
    script_of_client(s, FL_EV_QUARANTINE, "c", NULL);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_free(s);
}
