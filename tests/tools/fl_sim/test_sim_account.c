/* Where the time of a simulated round went: rules of tools/fl_sim/engine/account.h. */
#include <check.h>
#include <stdio.h>

#include "tests/lib/suites.h"
#include "tools/fl_sim/engine/account.h"

/* Two clients of latency 10, given in the wrong order; the attempt opens at 1000. */
static void open_attempt(struct fl_sim_account *a)
{
    ck_assert_int_eq(fl_sim_account_select(a, 2), FL_OK);
    a->parts[0] = (struct fl_fed_part){.client = 7, .name = "seven", .latency_us = 10};
    a->parts[1] = (struct fl_fed_part){.client = 3, .name = "three", .latency_us = 10};
    fl_sim_account_selected(a, 2);
    fl_sim_account_open(a, 1000);
}

/* Heard of its task at 1010, has the model 100 later, trains for 300: its report comes at 1420. */
static struct fl_fed_part *train(struct fl_sim_account *a, size_t client, uint64_t late_us)
{
    struct fl_fed_part *p = fl_sim_account_part(a, client);

    ck_assert_ptr_nonnull(p);
    p->tasked_us = 1010;
    p->fetched_us = 1010 + 20 + 100;
    p->trained_us = p->fetched_us + 300 + late_us;
    p->reported_us = p->trained_us + 10;
    a->last_report = (size_t)(p - a->parts);
    return p;
}

static void push(struct fl_sim_account *a, struct fl_fed_part *p, uint64_t begin_us)
{
    p->sending_us = begin_us;
    p->sent_us = begin_us + 200;
    p->pushed_us = p->sent_us + 10;
    a->last_push = (size_t)(p - a->parts);
}

static void adds_up(const struct fl_sim_account *a)
{
    ck_assert_uint_eq(fl_sim_round_parts(&a->sim), a->sim.wall_us);
}

TEST(parts_are_found_by_client_in_whatever_order_they_were_given)
{
    struct fl_sim_account a = {.n_parts = 0};

    fl_sim_account_begin(&a, 0);
    ck_assert_ptr_null(fl_sim_account_part(&a, 3));
    open_attempt(&a);
    ck_assert_str_eq(fl_sim_account_part(&a, 3)->name, "three");
    ck_assert_str_eq(fl_sim_account_part(&a, 7)->name, "seven");
    ck_assert_ptr_null(fl_sim_account_part(&a, 5));
    ck_assert_uint_eq(fl_sim_account_part(&a, 7)->selected_us, 1000);
    fl_sim_account_done(&a);
}

TEST(a_round_without_plan_is_cut_jvp_the_client_whose_upload_came_last)
{
    struct fl_sim_account a = {.n_parts = 0};

    fl_sim_account_begin(&a, 900);
    open_attempt(&a);
    push(&a, train(&a, 3, 0), 1430);
    push(&a, train(&a, 7, 50), 1490);
    a.uploads_us = 1700;
    fl_sim_account_end(&a, 1800);
    ck_assert_uint_eq(a.sim.time_us, 1800);
    ck_assert_uint_eq(a.sim.wait_clients_us, 100);
    ck_assert_uint_eq(a.sim.download_us, 100);
    ck_assert_uint_eq(a.sim.training_us, 350);
    ck_assert_uint_eq(a.sim.upload_us, 200);
    ck_assert_uint_eq(a.sim.message_us, 50);
    ck_assert_uint_eq(a.sim.late_us, 0);
    ck_assert_uint_eq(a.sim.evaluation_us, 100);
    ck_assert_str_eq(a.sim.waiting_for, "seven");
    adds_up(&a);
    fl_sim_account_done(&a);
}

TEST(a_round_with_a_plan_is_cut_jvp_the_last_report_and_then_the_last_upload)
{
    struct fl_sim_account a = {.n_parts = 0};
    struct fl_fed_part *three;

    fl_sim_account_begin(&a, 1000);
    open_attempt(&a);
    three = train(&a, 3, 0);
    (void)train(&a, 7, 50); /* 1490 */
    a.planned_us = 1500;
    push(&a, three, 1510);
    a.uploads_us = three->pushed_us + 40;
    fl_sim_account_end(&a, a.uploads_us);
    ck_assert_uint_eq(a.sim.training_us, 350); /* of the one */
    ck_assert_uint_eq(a.sim.upload_us, 200);   /* of the other */
    ck_assert_uint_eq(a.sim.late_us, 10 + 40); /* before the plan, and behind the upload */
    ck_assert_str_eq(a.sim.waiting_for, "three");
    adds_up(&a);
    fl_sim_account_done(&a);
}

TEST(time_of_which_nobody_had_use_is_late_and_has_the_name_of_who_was_missing)
{
    struct fl_sim_account a = {.n_parts = 0};

    fl_sim_account_begin(&a, 1000);
    open_attempt(&a);
    push(&a, train(&a, 3, 0), 1430); /* 1640 */
    a.uploads_us = 5000;
    (void)snprintf(a.missing, sizeof(a.missing), "seven");
    fl_sim_account_end(&a, 5000);
    ck_assert_uint_eq(a.sim.late_us, 5000 - 1640);
    ck_assert_str_eq(a.sim.waiting_for, "seven");
    adds_up(&a);
    /* And nobody at all. */
    fl_sim_account_begin(&a, 1000);
    open_attempt(&a);
    fl_sim_account_end(&a, 4000);
    ck_assert_uint_eq(a.sim.late_us, 3000);
    ck_assert_str_eq(a.sim.waiting_for, "");
    adds_up(&a);
    fl_sim_account_done(&a);
}

TEST(attempts_before_the_last_one_are_retries_and_their_messages_are_forgotten)
{
    struct fl_sim_account a = {.n_parts = 0};

    fl_sim_account_begin(&a, 400);
    ck_assert_int_eq(fl_sim_account_select(&a, 1), FL_OK);
    a.parts[0] = (struct fl_fed_part){.client = 3, .name = "three"};
    fl_sim_account_selected(&a, 1);
    fl_sim_account_open(&a, 500);
    push(&a, train(&a, 3, 0), 600);
    open_attempt(&a);
    fl_sim_account_end(&a, 2000);
    ck_assert_uint_eq(a.sim.n_attempts, 2);
    ck_assert_uint_eq(a.sim.wait_clients_us, 100);
    ck_assert_uint_eq(a.sim.retry_us, 500);
    ck_assert_uint_eq(a.sim.late_us, 1000);
    adds_up(&a);
    fl_sim_account_done(&a);
}

TEST(nothing_of_the_round_before_is_left)
{
    struct fl_sim_account a = {.n_parts = 0};

    fl_sim_account_begin(&a, 0);
    open_attempt(&a);
    push(&a, train(&a, 3, 0), 1430);
    fl_sim_account_end(&a, 2000);
    fl_sim_account_begin(&a, 2000);
    ck_assert_ptr_null(fl_sim_account_part(&a, 3));
    ck_assert_int_eq(fl_sim_account_select(&a, 0), FL_OK);
    fl_sim_account_selected(&a, 0);
    fl_sim_account_open(&a, 2500);
    fl_sim_account_end(&a, 2600);
    ck_assert_uint_eq(a.sim.wait_clients_us, 500);
    ck_assert_uint_eq(a.sim.late_us, 100);
    ck_assert_uint_eq(a.sim.upload_us, 0);
    ck_assert_uint_eq(a.sim.n_attempts, 1);
    adds_up(&a);
    fl_sim_account_done(&a);
}
