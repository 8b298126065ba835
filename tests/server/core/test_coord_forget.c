/* Who is known, for how long, and what it costs. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "server/core/client_order.h"
#include "server/core/coord_impl.h"
#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

#define DAY UINT64_C(86400000)

/* Round 1 with a and b is committed and round 2 open. */
static void second_round(struct script *s)
{
    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 200);
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_forget(s);
}

TEST(a_name_that_was_never_selected_does_not_stay)
{
    struct script *s = script_fedavg();

    s->conf.start_clients = 9;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_lost(s, "a");
    script_join(s, "b", 100);
    script_expect(s, "[    0] - client 'a' is new, 100 samples\n"
                     "[    0] a is client 0\n"
                     "[    0] - client 'a' disconnected\n"
                     "[    0] client 0 is nobody's\n"
                     "[    0] - client 'b' is new, 100 samples\n"
                     "[    0] b is client 0\n");
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 1);
    ck_assert_uint_eq(script_id(s, "a"), UINT32_MAX);
    script_free(s);
}

TEST(a_flood_of_fresh_names_keeps_nobody_out)
{
    struct script *s = script_fedavg();
    char name[32];
    unsigned i;

    s->quiet = true;
    s->conf.start_clients = 9;
    s->conf.max_clients = 4;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "good", 1);
    for (i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        script_join(s, name, 1);
        script_lost(s, name);
    }
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 1);
    ck_assert_uint_le(fl_coord_numbers(s->coord), 2);
    script_join(s, "newcomer", 1);
    ck_assert_uint_ne(script_id(s, "newcomer"), UINT32_MAX);
    script_free(s);
}

TEST(who_was_never_counted_makes_room)
{
    struct script *s = script_fedavg();

    s->conf.max_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "idle", 1);
    script_failed(s, "idle", "no");
    script_lost(s, "idle");
    ck_assert_uint_ne(script_id(s, "idle"), UINT32_MAX); /* It was selected: it is on record. */
    script_join(s, "a", 1);
    script_join(s, "b", 1);
    ck_assert_uint_ne(script_id(s, "b"), UINT32_MAX);
    ck_assert_uint_eq(script_id(s, "idle"), UINT32_MAX);
    script_join(s, "c", 1); /* Those who are here do not. */
    ck_assert_uint_eq(script_id(s, "c"), UINT32_MAX);
    script_free(s);
}

TEST(a_forgotten_client_that_comes_back_is_new)
{
    struct script *s = script_fedavg();

    second_round(s);
    ck_assert_uint_eq(s->task.task.counted.round, 1);
    script_forget_client(s, "a");
    script_join(s, "a", 100);
    ck_assert_uint_ne(script_id(s, "a"), 0); /* Its old number is still in the round. */
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->n_selected, 0);
    ck_assert_ptr_null(fl_coord_part(s->coord, script_id(s, "a")));
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    script_lost(s, "b");
    script_lost(s, "a");
    script_join(s, "a", 100); /* It is told its task again, the last one of all. */
    ck_assert_uint_eq(s->task.round, 3);
    ck_assert_uint_eq(s->task.client, script_id(s, "a"));
    ck_assert_uint_eq(s->task.task.counted.round, 0);
    script_join(s, "b", 200);
    ck_assert_uint_eq(s->task.task.counted.round, 2);
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->counted_round, 3);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->n_selected, 1);
    script_free(s);
}

TEST(forgotten_in_the_open_round_it_leaves_it_and_its_record_goes_at_its_end)
{
    struct script *s = script_fedavg();

    second_round(s);
    script_forget_client(s, "a");
    script_expect(s, "[    0] - client 'a' is forgotten by the operator\n"
                     "[    0] client 0 is nobody's: forgotten by the operator\n"
                     "[    0] forget a (marked)\n"
                     "[    0] - round 2: disconnected, did not reconnect in time: a\n"
                     "[    0] client 0 is forgotten\n");
    s->conf.rounds = 2;
    s->manual = true;
    script_respond(s, "b");
    while (fl_coord_committed(s->coord) < 2) {
        script_answer(s);
    }
    ck_assert_uint_eq(s->record.n_responders, 1);
    ck_assert_int_eq(s->works[0].type, FL_EFF_FORGET_CLIENTS); /* before the next selection */
    ck_assert_uint_eq(fl__coord_population(s->coord), 1);
    script_free(s);
}

TEST(an_update_that_was_accepted_counts_though_its_client_is_forgotten)
{
    struct script *s = script_fedavg();

    second_round(s);
    script_respond(s, "a");
    script_forget_client(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 1);
    ck_assert_ptr_null(fl_coord_client(s->coord, 0));
    script_join(s, "c", 1); /* Its number is free now. */
    ck_assert_uint_eq(script_id(s, "c"), 0);
    script_free(s);
}

TEST(what_could_not_be_removed_is_removed_later)
{
    struct script *s = script_fedavg();

    second_round(s);
    script_lost(s, "a");
    script_respond(s, "b");
    script_run_to(s, 100); /* a is given up, round 2 is committed, 3 is b's */
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    s->manual = true;
    script_forget_client(s, "a");
    script_forget(s);
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    script_join(s, "x", 1);
    ck_assert_uint_ne(script_id(s, "x"), 0); /* The old record is still there. */
    script_run_to(s, 150);
    script_answer(s);
    script_join(s, "y", 1);
    ck_assert_uint_eq(script_id(s, "y"), 0);
    script_free(s);
}

TEST(the_population_is_who_is_here_and_who_took_part)
{
    struct script *s = script_fedavg();

    second_round(s);
    ck_assert_uint_eq(fl__coord_population(s->coord), 2);
    script_join(s, "c", 1);
    ck_assert_uint_eq(fl__coord_population(s->coord), 3);
    script_lost(s, "c");
    script_lost(s, "a");
    ck_assert_uint_eq(fl__coord_population(s->coord), 2);
    script_forget_client(s, "a");
    ck_assert_uint_eq(fl__coord_population(s->coord), 1);
    script_free(s);
}

TEST(who_is_away_for_too_long_is_forgotten)
{
    struct script *s = script_fedavg();

    s->conf.forget_after_ms = 30 * DAY;
    second_round(s);
    script_lost(s, "a");
    s->now += 30 * DAY - 1;
    script_simple(s, FL_EV_TICK);
    ck_assert_uint_ne(script_id(s, "a"), UINT32_MAX);
    s->now++;
    script_simple(s, FL_EV_TICK);
    ck_assert_uint_eq(script_id(s, "a"), UINT32_MAX);
    ck_assert_uint_ne(script_id(s, "b"), UINT32_MAX); /* It is here, if silent. */
    script_free(s);
}

TEST(while_the_server_is_down_nobody_ages)
{
    static const struct fl_client_rec clients[] = {
        {.id = 4, .name = "a", .samples = 1, .n_accepted = 1, .seen_up_ms = 5 * DAY},
        {.id = 9, .name = "b", .samples = 1, .n_accepted = 1, .seen_up_ms = 20 * DAY},
    };
    const struct fl_coord_resume resume = {
        .committed = 3, .clients = clients, .n_clients = 2, .up_ms = 30 * DAY};
    struct script *s = script_fedavg();

    s->conf.forget_after_ms = 30 * DAY;
    s->check.committed = 3;
    s->now = 200 * DAY; /* as long as the machine has been up */
    s->wall_ahead = 999 * DAY;
    script_create(s, &resume);
    script_start(s);
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 2);
    s->now += 5 * DAY; /* a was away for 25 days before */
    script_simple(s, FL_EV_TICK);
    ck_assert_uint_eq(script_id(s, "a"), UINT32_MAX);
    ck_assert_uint_eq(script_id(s, "b"), 9);
    s->now += 15 * DAY;
    script_simple(s, FL_EV_TICK);
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 0);
    script_free(s);
}

/* As when the time of the network comes to a machine without a clock of its own. */
TEST(who_sets_the_wall_clock_makes_nobody_older_or_younger)
{
    struct script *s = script_fedavg();
    struct fl_coord_resume resume = {.committed = 1, .n_clients = 2};

    s->conf.forget_after_ms = 30 * DAY;
    second_round(s);
    script_lost(s, "a");
    s->wall_ahead = 365 * DAY;
    script_simple(s, FL_EV_TICK);
    script_lost(s, "b"); /* seen in a year */
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 2);
    s->wall_ahead = 0;
    s->now += 29 * DAY;
    script_simple(s, FL_EV_TICK);
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 2);
    s->clients[0] = *fl_coord_client(s->coord, 0);
    s->clients[1] = *fl_coord_client(s->coord, 1);
    resume.clients = s->clients;
    resume.up_ms = fl_coord_up_ms(s->coord);
    script_create(s, &resume); /* Nor does what was written down meanwhile. */
    script_start(s);
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 2);
    s->wall_ahead = 365 * DAY;
    s->now += DAY - 1;
    script_simple(s, FL_EV_TICK);
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 2);
    s->wall_ahead = 0; /* They are older, all the same. */
    s->now++;
    script_simple(s, FL_EV_TICK);
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 0);
    script_free(s);
}

/* --- what is promised --- */

TEST(forgotten_is_said_when_the_record_is_off_the_disk)
{
    struct script *s = script_fedavg();

    second_round(s);
    script_lost(s, "a");
    script_respond(s, "b");
    script_run_to(s, 100); /* Round 3 is b's. */
    s->manual = true;
    script_forget(s);
    script_forget_client(s, "a");
    script_expect(s, "[  100] - client 'a' is forgotten by the operator\n"
                     "[  100] client 0 is nobody's: forgotten by the operator\n"
                     "[  100] forget a\n");
    script_answer(s);
    script_expect(s, "[  100] client 0 is forgotten\n");
    script_free(s);
}

TEST(forgotten_in_the_open_round_is_said_when_the_record_has_its_mark)
{
    struct script *s = script_fedavg();

    second_round(s);
    s->manual = true;
    script_forget_client(s, "a");
    script_expect(s, "[    0] - client 'a' is forgotten by the operator\n"
                     "[    0] client 0 is nobody's: forgotten by the operator\n"
                     "[    0] forget a (marked)\n"
                     "[    0] - round 2: disconnected, did not reconnect in time: a\n");
    script_answer(s);
    script_expect(s, "[    0] client 0 is forgotten\n");
    script_free(s);
}

TEST(who_was_never_on_disk_is_forgotten_at_once)
{
    struct script *s = script_fedavg();

    s->conf.start_clients = 9;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_forget(s);
    script_forget_client(s, "a");
    script_expect(s, "[    0] - client 'a' is forgotten by the operator\n"
                     "[    0] client 0 is nobody's: forgotten by the operator\n"
                     "[    0] client 0 is forgotten\n");
    script_free(s);
}

TEST(a_disk_that_is_full_is_told_instead)
{
    struct script *s = script_fedavg();

    second_round(s);
    s->manual = true;
    script_forget_client(s, "a");
    script_forget(s);
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    script_expect(
        s,
        "[    0] client 0 is forgotten, but: no space left\n"
        "[    0] - 1 forgotten clients could not be deleted from disk, retrying: no space left\n");
    script_run_to(s, 50);
    script_expect(s, "[   50] forget a (marked)\n"); /* once more, and nobody waits for it */
    script_answer(s);
    script_expect(s, "");
    script_free(s);
}

TEST(no_mark_while_a_selection_may_write_the_record_without_it)
{
    struct script *s = script_fedavg();

    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    s->manual = true;
    script_join(s, "a", 100);
    script_join(s, "b", 200);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_SELECTING);
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    script_forget_client(s, "a");
    ck_assert_uint_eq(s->n_works, 0);
    script_run_to(s, 50);
    ck_assert_uint_eq(s->n_works, 1);
    ck_assert_int_eq(s->works[0].type, FL_EFF_PERSIST_SELECTION);
    script_forget(s);
    script_answer(s);
    ck_assert_int_eq(s->works[0].type, FL_EFF_FORGET_CLIENTS);
    script_answer(s);
    ck_assert_ptr_nonnull(strstr((const char *)s->log.data, "client 0 is forgotten\n"));
    script_free(s);
}

/* What a killed server finds: a record with its mark, and a part of it in the open round. */
static struct script *restarted(enum fl_participant_state state)
{
    static uint8_t units[SCRIPT_UNITS] = {1, 1, 1};
    static const struct fl_client_rec clients[] = {
        {.id = 0,
         .name = "a",
         .samples = 1,
         .n_accepted = 1,
         .counted_round = 1,
         .forgotten = true},
        {.id = 1, .name = "b", .samples = 1, .n_accepted = 1, .counted_round = 1},
    };
    const struct fl_participant_rec parts[] = {
        {.client = 0, .state = state, .samples = 1, .units = units, .upload_bytes = 56},
        {.client = 1, .state = FL_PARTICIPANT_SELECTED, .samples = 1, .units = units},
    };
    const struct fl_coord_resume resume = {.committed = 1,
                                           .clients = clients,
                                           .n_clients = 2,
                                           .open_round = 2,
                                           .open_attempt = 1,
                                           .size = {2, 2, 2},
                                           .parts = parts,
                                           .n_parts = 2};
    struct script *s = script_fedavg();

    s->conf.start_clients = 1;
    s->conf.min_responders = 1;
    s->conf.rounds = 2;
    coord_check_resume(&s->check, &resume);
    script_create(s, &resume);
    script_start(s);
    return s;
}

TEST(a_restart_knows_a_marked_client_for_its_part_only)
{
    struct script *s = restarted(FL_PARTICIPANT_SELECTED);

    ck_assert_uint_eq(fl_coord_n_known(s->coord), 1);
    ck_assert_uint_eq(script_id(s, "a"), UINT32_MAX);
    ck_assert_int_eq(fl_coord_part(s->coord, 0)->state,
                     FL_PARTICIPANT_LOST); /* Nobody waits for it. */
    script_join(s, "a", 100);
    ck_assert_uint_eq(script_id(s, "a"), 2);
    ck_assert_ptr_null(fl_coord_part(s->coord, 2));
    ck_assert_uint_eq(fl_coord_client(s->coord, 2)->counted_round, 0);
    script_join(s, "b", 200);
    script_forget(s);
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    ck_assert_uint_eq(s->record.n_responders, 1);
    ck_assert_ptr_nonnull(strstr((const char *)s->log.data, "forget a\n"));
    script_free(s);
}

TEST(what_a_marked_client_delivered_counts_after_a_restart)
{
    struct script *s = restarted(FL_PARTICIPANT_ACCEPTED);

    script_join(s, "b", 200);
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(fl_coord_n_known(s->coord), 1);
    script_free(s);
}

TEST(gaps_in_the_numbers_are_numbers_for_others)
{
    static const struct fl_client_rec clients[] = {{.id = 2, .name = "c", .samples = 1}};
    const struct fl_coord_resume resume = {.clients = clients, .n_clients = 1};
    struct script *s = script_fedavg();

    s->conf.start_clients = 9;
    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 1);
    script_join(s, "b", 1);
    script_join(s, "d", 1);
    ck_assert_uint_eq(script_id(s, "a") + script_id(s, "b"), 1);
    ck_assert_uint_eq(script_id(s, "c"), 2);
    ck_assert_uint_eq(script_id(s, "d"), 3);
    script_free(s);
}

TEST(what_is_heard_of_a_client_is_on_its_record)
{
    struct script *s = script_fedavg();
    struct fl_event ev = {.type = FL_EV_CLIENT_HEARD};

    second_round(s);
    s->now = 5000;
    ev.u.client = script_id(s, "a");
    script_step(s, &ev);
    ck_assert_uint_eq(fl_coord_client(s->coord, 0)->last_seen_ms, 1005000);
    s->now = 6000;
    script_report_of(s, "b", 2, 1, 777, 1.0, NULL, 0); /* late or not, it is there */
    ck_assert_uint_eq(fl_coord_client(s->coord, 1)->last_seen_ms, 1006000);
    script_free(s);
}

TEST(a_report_tells_how_many_samples_a_client_has_by_now)
{
    struct script *s = script_fedavg();

    second_round(s);
    script_report_of(s, "b", 2, 1, 777, 1.0, NULL, 0);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "b"))->samples, 777);
    script_free(s);
}

TEST(a_commit_writes_those_of_its_round_and_a_bounded_number_of_others)
{
    struct script *s = script_new("adafl");
    char name[32];
    unsigned i;
    int round;

    script_option(s, FL_COMPONENT_FRACTION, "start", "0.01");
    script_option(s, FL_COMPONENT_FRACTION, "end", "0.01");
    s->quiet = true;
    s->conf.start_clients = 2000;
    script_create(s, NULL);
    script_start(s);
    for (i = 0; i < 2000; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        script_join(s, name, 1 + i % 7);
    }
    for (round = 1; round <= 5; round++) {
        for (i = 0; i < 2000; i++) {
            (void)snprintf(name, sizeof(name), "n%u", i);
            if (fl_coord_round(s->coord) == (uint64_t)round &&
                fl_coord_part(s->coord, script_id(s, name)) != NULL)
            {
                script_respond(s, name);
            }
        }
        ck_assert_uint_eq(fl_coord_committed(s->coord), round);
        ck_assert_uint_eq(s->record.n_responders, 20);
        ck_assert_uint_ge(s->n_written, 20);
        ck_assert_uint_le(s->n_written, 20 + 64);
    }
    script_free(s);
}

/* --- the order of names --- */

static void check_order(const struct fl_order *order, const struct fl_client_rec *recs, size_t n)
{
    struct fl_order_at at = {0};
    const char *last = "";
    size_t found = 0;
    uint32_t id;

    while ((id = fl_order_next(order, &at)) != FL_ORDER_NONE) {
        struct fl_order_at behind = fl_order_seek(order, recs, last);

        ck_assert_uint_eq(fl_order_next(order, &behind), id);
        ck_assert_int_lt(strcmp(last, recs[id].name), 0);
        last = recs[id].name;
        ck_assert_uint_eq(fl_order_find(order, recs, last), id);
        found++;
    }
    ck_assert_uint_eq(found, n);
    ck_assert_uint_eq(order->n, n);
}

TEST(names_stay_in_order_whatever_comes_and_goes)
{
    static struct fl_client_rec recs[5000];
    struct fl_order order = {0};
    size_t n = 0;
    uint32_t i;

    for (i = 0; i < 5000; i++) {
        uint32_t k = (uint32_t)((uint64_t)i * 2654435761u % 5000);

        (void)snprintf(recs[i].name, sizeof(recs[i].name), "c%05u", (unsigned)k);
    }
    check_order(&order, recs, 0);
    for (i = 0; i < 5000; i++) {
        if (fl_order_find(&order, recs, recs[i].name) == FL_ORDER_NONE) {
            ck_assert_int_eq(fl_order_reserve(&order), FL_OK);
            fl_order_insert(&order, recs, i);
            n++;
        }
    }
    check_order(&order, recs, n);
    for (i = 0; i < 5000; i++) {
        if (i % 3 != 0) {
            bool there = fl_order_find(&order, recs, recs[i].name) == i;

            fl_order_remove(&order, recs, i);
            fl_order_remove(&order, recs, i);
            n -= there;
        }
    }
    check_order(&order, recs, n);
    for (i = 0; i < 5000; i++) {
        fl_order_remove(&order, recs, i);
    }
    check_order(&order, recs, 0);
    fl_order_done(&order);
}
