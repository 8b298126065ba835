/* Only clients whose labels match are selected, and rounds start only within the hours. */
#include <check.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

#define HOUR UINT64_C(3600000)
/* The wall clock of a script is at 1000000 ms at its start: 00:16:40 of the first day of 1970. */
#define START_MS UINT64_C(1000000)

static char site[] = "site", berlin[] = "berlin", rome[] = "rome";
static const struct fl_pair in_berlin[] = {{site, berlin}}, in_rome[] = {{site, rome}};

static void join_with(struct script *s, const char *name, const struct fl_pair *label)
{
    struct fl_event ev = {.type = FL_EV_CLIENT_JOINED};

    ev.u.joined.name = name;
    ev.u.joined.agent = "script 1";
    ev.u.joined.samples = 100;
    ev.u.joined.labels = label;
    ev.u.joined.n_labels = label != NULL ? 1 : 0;
    script_step(s, &ev);
}

static struct script *of_berlin(void)
{
    struct script *s = script_fedavg();

    s->conf.eligible.labels = in_berlin;
    s->conf.eligible.n_labels = 1;
    s->conf.min_clients = 1;
    script_create(s, NULL);
    script_start(s);
    script_forget(s);
    return s;
}

static bool eligible_logged(struct script *s, const char *text)
{
    ck_assert_int_eq(fl_buf_add(&s->log, "", 1), FL_OK);
    s->log.len--;
    return strstr((const char *)s->log.data, text) != NULL;
}

static const char *ineligible(const struct script *s, const char *name, const struct fl_pair *label)
{
    static char text[2 * FL_ELIGIBLE_TEXT];

    return fl_coord_ineligible(s->coord, script_id(s, name), label, label != NULL ? 1 : 0, text,
                               sizeof(text));
}

TEST(a_client_with_other_labels_is_not_selected_and_a_reason_is_given)
{
    struct script *s = of_berlin();

    join_with(s, "a", in_rome);
    ck_assert(eligible_logged(s, "not selected with these labels (round.eligible)"));
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    ck_assert_str_eq(ineligible(s, "a", in_rome),
                     "its labels do not match round.eligible.labels: site is 'rome'");
    join_with(s, "b", in_berlin);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    ck_assert_ptr_null(fl_coord_part(s->coord, script_id(s, "a")));
    ck_assert_ptr_nonnull(fl_coord_part(s->coord, script_id(s, "b")));
    ck_assert_str_eq(ineligible(s, "b", in_berlin), "");
    script_free(s);
}

TEST(labels_that_no_client_has_are_a_warning_and_what_the_round_waits_for)
{
    struct script *s = of_berlin();

    join_with(s, "a", in_rome);
    ck_assert_msg(strstr(s->warning, "no connected client has the labels of round.eligible "
                                     "(site=berlin): no round starts until one connects") != NULL,
                  "%s", s->warning);
    s->warning[0] = '\0';
    join_with(s, "b", NULL);
    ck_assert_str_eq(s->warning, ""); /* Once, not for each of a thousand clients. */
    script_why(s, "round 1 is IDLE: 0 of 1 clients are connected, with the labels of "
                  "round.eligible; all 2 connected clients do not have the labels of "
                  "round.eligible (site=berlin) and are not selected");
    script_free(s);
}

TEST(a_client_that_reconnects_with_matching_labels_is_selected)
{
    struct script *s = of_berlin();

    join_with(s, "a", in_rome);
    join_with(s, "a", in_berlin);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_free(s);
}

TEST(a_participant_whose_labels_change_finishes_its_round_and_is_not_in_the_next)
{
    struct script *s = of_berlin();

    join_with(s, "a", in_berlin);
    join_with(s, "a", in_rome);
    script_respond(s, "a");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_free(s);
}

/* From 02:00 to 04:00, and from 22:00 to 01:00. */
static struct script *at_night(uint64_t wall_ms)
{
    struct script *s = script_fedavg();

    s->conf.eligible.hours[0] = (struct fl_hours){120, 240};
    s->conf.eligible.hours[1] = (struct fl_hours){1320, 60};
    s->conf.eligible.n_hours = 2;
    s->conf.rounds = 2;
    s->wall_ahead = wall_ms - START_MS;
    script_create(s, NULL);
    script_start(s);
    return s;
}

TEST(a_round_waits_for_the_hours_and_starts_with_their_first_minute)
{
    struct script *s = at_night(90 * HOUR / 60);

    script_join(s, "a", 100);
    ck_assert(eligible_logged(s, "round 1 waits for round.eligible.hours: the next begin at 02:00 "
                                 "(utc_offset +00:00), in 0 h 30 min"));
    script_why(s, "round 1 is IDLE: outside round.eligible.hours, the next begin at 02:00 "
                  "(utc_offset +00:00), in 0 h 30 min");
    ck_assert_str_eq(ineligible(s, "a", NULL), "outside round.eligible.hours: the next begin at "
                                               "02:00 (utc_offset +00:00), in 0 h 30 min");
    script_run_to(s, HOUR / 2 - 1);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_run_to(s, HOUR / 2);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_free(s);
}

TEST(a_wall_clock_that_is_set_is_noticed_within_ten_minutes)
{
    struct script *s = at_night(90 * HOUR / 60);

    script_join(s, "a", 100);
    s->wall_ahead += HOUR;
    ck_assert_uint_le(fl_coord_deadline(s->coord), 600000);
    script_run_to(s, 600000);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_free(s);
}

TEST(an_open_round_is_finished_after_the_hours_and_the_next_one_waits)
{
    struct script *s = at_night(4 * HOUR - 1000);

    s->conf.train_ms = HOUR;
    script_join(s, "a", 100);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    s->wall_ahead += 2000;
    script_respond(s, "a");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_why(s, "round 2 is IDLE: outside round.eligible.hours, the next begin at 22:00 "
                  "(utc_offset +00:00), in 18 h 00 min");
    script_free(s);
}

TEST(hours_over_midnight_let_rounds_start_on_both_sides_of_it)
{
    struct script *evening = at_night(23 * HOUR);
    struct script *morning = at_night(24 * HOUR + HOUR / 2);

    script_join(evening, "a", 100);
    ck_assert_int_eq(fl_coord_phase(evening->coord), FL_PHASE_TRAINING);
    script_join(morning, "a", 100);
    ck_assert_int_eq(fl_coord_phase(morning->coord), FL_PHASE_TRAINING);
    script_free(evening);
    script_free(morning);
}

TEST(after_a_restart_disconnected_clients_with_other_labels_are_not_waited_for)
{
    struct fl_client_rec clients[] = {{.id = 0, .samples = 100, .n_accepted = 1, .name = "a"},
                                      {.id = 1, .samples = 100, .n_accepted = 1, .name = "b"}};
    const bool others[] = {true, false};
    const struct fl_coord_resume resume = {
        .committed = 1, .clients = clients, .n_clients = 2, .ineligible = others};
    struct script *s = script_fedavg();
    const char *missing[4];
    char text[1024];
    size_t n = 0;

    s->conf.eligible.labels = in_berlin;
    s->conf.eligible.n_labels = 1;
    s->conf.min_clients = 2;
    script_create(s, &resume);
    script_start(s);
    script_run_to(s, s->now + HOUR);
    fl_coord_why(s->coord, s->now, text, sizeof(text), missing, 4, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(missing[0], "b");
    join_with(s, "a", in_berlin);
    fl_coord_why(s->coord, s->now, text, sizeof(text), missing, 4, &n);
    ck_assert_ptr_null(strstr(text, "do not have the labels"));
    script_free(s);
}
