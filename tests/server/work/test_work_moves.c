/*
 * broadcast: lattice over the state folder: which clients are sent what changed, after restarts,
 * rollbacks, damage and other settings. All others download the whole model.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/work/rollback.h"
#include "tests/lib/suites.h"
#include "tests/lib/work_rig.h"

static struct work_rig rig;

static void setup(void)
{
    work_rig_init(&rig);
    rig.retention.keep = 99;
    rig.broadcast = "lattice";
}

static void teardown(void)
{
    work_rig_done(&rig);
}

static void again(void)
{
    work_rig_close(&rig);
    work_rig_open(&rig, "fedavg");
}

/* Rounds 1 to `rounds`, whose models have their number in every entry. */
static void begin(uint64_t rounds)
{
    work_rig_open(&rig, "fedavg");
    work_rig_rounds(&rig, 1, rounds);
}

static bool reaches(double value)
{
    return work_rig_reaches(&rig, value);
}

static bool has_step(unsigned round)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "steps/%06u.step", round);
    return work_rig_there(name);
}

static void damage_step(unsigned round)
{
    char name[64];
    char path[RIG_PATH_MAX];

    (void)snprintf(name, sizeof(name), "steps/%06u.step", round);
    (void)rig_path(path, name);
    rig_damage(path, rig_size(path) - 4, 4);
}

TEST_CASE("all", setup, teardown);

TEST(a_restart_knows_all_models_since_the_first_one)
{
    begin(4);
    again();
    ck_assert(reaches(0.5) && reaches(1) && reaches(2) && reaches(3) && reaches(4));
    ck_assert(!reaches(5));
    work_rig_rounds(&rig, 5, 6);
    ck_assert(reaches(0.5) && reaches(4) && reaches(5));
    ck_assert_str_eq(rig.logged, "");
}

/* The server died between the step and the record of round 3. */
TEST(the_step_of_a_round_that_was_not_committed_is_removed)
{
    begin(3);
    rig_sql("DELETE FROM round WHERE round > 2");
    again();
    ck_assert_uint_eq(rig.resume.committed, 2);
    ck_assert(has_step(2) && !has_step(3));
    ck_assert(reaches(1) && !reaches(3));
    work_rig_aggregate(&rig, 7); /* Its next attempt. */
    ck_assert_int_eq(work_rig_commit(&rig, 3, NULL), FL_OK);
    again();
    ck_assert(reaches(0.5) && reaches(2) && !reaches(3));
}

TEST(a_rollback_forgets_the_models_of_abandoned_rounds)
{
    begin(4);
    ck_assert_int_eq(fl_rollback_ask(&rig.fed, 2, false, 5, NULL), FL_OK);
    again();
    ck_assert_uint_eq(rig.resume.committed, 2);
    ck_assert(reaches(0.5) && reaches(1) && reaches(2));
    ck_assert(!reaches(3) && !reaches(4));
    ck_assert(has_step(2) && !has_step(3) && !has_step(4));
    work_rig_aggregate(&rig, 9);
    ck_assert_int_eq(work_rig_commit(&rig, 3, NULL), FL_OK);
    again();
    ck_assert(reaches(2) && !reaches(3) && !reaches(4));
}

TEST(a_damaged_checkpoint_takes_the_steps_after_it_along)
{
    char path[RIG_PATH_MAX];

    begin(4);
    rig_damage(rig_path(path, "models/round-000004.safetensors"), 9000, 8);
    again();
    ck_assert_uint_eq(rig.resume.committed, 3);
    ck_assert(reaches(0.5) && reaches(2) && !reaches(4) && !has_step(4));
}

/* The steps before it lead nowhere any more, and are removed. */
TEST(a_damaged_step_is_logged_once_and_costs_whole_downloads_to_those_before_it)
{
    begin(5);
    damage_step(3);
    again();
    ck_assert_ptr_nonnull(strstr(rig.logged, "what changed up to round 3 cannot be read"));
    ck_assert(!reaches(0.5) && !reaches(2) && reaches(3) && reaches(4));
    ck_assert(!has_step(1) && !has_step(2) && !has_step(3) && has_step(4));
    again();
    ck_assert_str_eq(rig.logged, "");
    ck_assert(reaches(3));
}

TEST(what_cannot_be_removed_does_not_stop_the_start)
{
    char path[RIG_PATH_MAX];

    begin(2);
    ck_assert_int_eq(mkdir(rig_path(path, "steps/000009.step"), 0700), 0);
    again();
    ck_assert_ptr_nonnull(strstr(rig.logged, "cannot remove '000009.step'"));
    ck_assert(reaches(0.5) && reaches(1));
}

TEST(a_damaged_newest_step_leaves_the_newest_model_alone_and_the_list_begins_with_it)
{
    begin(5);
    damage_step(5);
    again();
    ck_assert(reaches(5) && !reaches(4));
    ck_assert(!has_step(4) && !has_step(5));
    work_rig_rounds(&rig, 6, 7);
    again();
    ck_assert(reaches(5) && reaches(6) && !reaches(4));
}

/* Three rounds back; more are merged when there are eight too many. */
TEST(steps_beyond_the_history_are_merged_into_the_first_one)
{
    uint64_t round;

    rig.history = "3";
    begin(12);
    ck_assert(reaches(0.5) && reaches(9) && reaches(10) && reaches(11));
    ck_assert(!reaches(8) && !has_step(8) && has_step(9) && has_step(10));
    again();
    ck_assert(reaches(0.5) && reaches(9) && !reaches(8));
    for (round = 13; round <= 40; round++) { /* Below 16, as the lattice is. */
        work_rig_aggregate(&rig, (float)(round % 15));
        ck_assert_int_eq(work_rig_commit(&rig, round, NULL), FL_OK);
        ck_assert(reaches((double)((round - 3) % 15)));
        ck_assert(reaches(0.5));
        ck_assert(round < 12 || !has_step((unsigned)round - 12));
    }
    again();
    ck_assert(reaches(0.5) && reaches(37 % 15) && reaches(39 % 15));
    ck_assert_str_eq(rig.logged, "");
}

TEST(a_history_of_one_round_knows_the_model_of_the_round_before)
{
    uint64_t round;

    rig.history = "1";
    begin(1);
    for (round = 2; round <= 15; round++) {
        work_rig_aggregate(&rig, (float)round);
        ck_assert_int_eq(work_rig_commit(&rig, round, NULL), FL_OK);
        ck_assert(reaches((double)round - 1));
    }
}

/* As after the crash of a server between the merged step and the removal of the others. */
TEST(steps_that_a_merged_one_took_the_place_of_are_removed_at_the_start)
{
    char from[RIG_PATH_MAX];
    char to[RIG_PATH_MAX];

    rig.history = "3";
    begin(11);
    (void)rig_path(from, "steps/000008.step");
    ck_assert_int_eq(link(from, rig_path(to, "saved")), 0);
    work_rig_rounds(&rig, 12, 12);
    ck_assert_int_eq(rename(to, from), 0);
    again();
    ck_assert(!has_step(8));
    ck_assert(reaches(0.5) && reaches(9) && reaches(11));
}

/* --- other settings --- */

TEST(with_another_step_all_models_of_before_are_known)
{
    begin(2);
    rig.step = "0.375";
    again();
    work_rig_aggregate(&rig, 2.375f);
    ck_assert_int_eq(work_rig_commit(&rig, 3, NULL), FL_OK);
    again();
    ck_assert(reaches(0.5) && reaches(1) && reaches(2) && reaches(2.375));
    ck_assert_str_eq(rig.logged, "");
}

TEST_EACH(with_another_broadcast_no_steps_are_kept_and_lattice_begins_anew, 2)
{
    begin(3);
    rig.broadcast = _i == 0 ? NULL : "float16";
    again();
    ck_assert_ptr_null(rig.progress.committed.model.differences);
    ck_assert(!has_step(1) && !has_step(3));
    work_rig_rounds(&rig, 4, 4);
    rig.broadcast = "lattice";
    again();
    ck_assert(reaches(4) && !reaches(3) && !reaches(0.5));
    work_rig_rounds(&rig, 5, 5);
    again();
    ck_assert(reaches(4) && reaches(5) && !reaches(3));
}

/* --- the range --- */

TEST(a_model_that_leaves_the_range_is_no_step_and_names_tensor_and_ways_out)
{
    struct fl_model_state next = {.theta = NULL};
    struct fl_step made = {.round = 0};
    struct fl_err err = {0};

    begin(2);
    ck_assert_int_eq(fl_model_state_new(&rig.fed, &next), FL_OK);
    (void)memcpy(fl_blob_fill(next.theta), fl_blob_data(rig.progress.committed.model.theta),
                 fl_blob_len(next.theta));
    fl_blob_fill_floats(next.theta)[RIG_FC1 + 3] = -16.5f;
    ck_assert_int_eq(
        fl_model_state_step(&rig.fed, &rig.progress.committed.model, 3, &made, &next, &err),
        FL_ENUMERIC);
    ck_assert_str_eq(err.msg, "an entry of 'fc2.weight' is -16.5: this broadcast has multiples of "
                              "2^-20 below 16, unlike 'float16' and 'float32'");
    ck_assert_ptr_null(next.differences);
    fl_model_state_done(&next);
}

TEST(a_model_out_of_range_is_refused_when_the_broadcast_is_changed)
{
    struct fl_err err = {0};

    rig.broadcast = NULL;
    begin(1);
    work_rig_aggregate(&rig, 20);
    ck_assert_int_eq(work_rig_commit(&rig, 2, NULL), FL_OK);
    work_rig_close(&rig);
    rig.broadcast = "lattice";
    ck_assert_int_eq(work_rig_try(&rig, "fedavg", &err), FL_ENUMERIC);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "the model of round 2 cannot be broadcast, select 'float32'"));
    work_rig_close(&rig);
    rig.broadcast = "float16";
    work_rig_open(&rig, "fedavg");
    ck_assert_uint_eq(rig.resume.committed, 2);
}
