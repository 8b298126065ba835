/* Which checkpoints stay, what is said of them, and taking one out. */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "server/store/store_rollback.h"
#include "server/work/checkpoints.h"
#include "tests/lib/suites.h"
#include "tests/lib/work_rig.h"

static struct work_rig rig;
static char listed[4096];

static void setup(void)
{
    listed[0] = '\0';
    work_rig_init(&rig);
    work_rig_open(&rig, "fedavg");
}

static void teardown(void)
{
    work_rig_done(&rig);
}

static int note(void *ctx, const struct fl_checkpoint *c, const char *why)
{
    size_t used = strlen(listed);

    (void)snprintf(listed + used, sizeof(listed) - used, "%llu %s\n", (unsigned long long)c->round,
                   why);
    return *(int *)ctx;
}

static const char *list(uint64_t wall_ms)
{
    int code = FL_OK;

    listed[0] = '\0';
    ck_assert_int_eq(fl_checkpoints_each(&rig.fed, wall_ms, note, &code, NULL), FL_OK);
    return listed;
}

TEST_CASE("all", setup, teardown);

TEST(every_rule_keeps_its_own_and_says_so)
{
    rig.fed.retention =
        (struct fl_retention){.keep = 1, .best = 1, .every = 2, .span_ms = 1500, .parts = 1};
    work_rig_rounds(&rig, 1, 4);
    ck_assert_str_eq(list(4000), "0 every\n2 every\n4 newest, keep_for, best, every\n");
    ck_assert_str_eq(list(100000), "0 every\n2 every\n4 newest, best, every\n");
    rig.fed.retention = (struct fl_retention){.keep = 1};
    ck_assert_str_eq(list(4000),
                     "0 removed with the next round\n2 removed with the next round\n4 newest\n");
    ck_assert_int_eq(fl_checkpoints_prune(&rig.fed, 4, 4000, NULL), FL_OK);
    ck_assert_str_eq(list(4000), "4 newest\n");
}

TEST(the_first_model_has_no_record_and_so_no_accuracy)
{
    struct fl_round_rec rec = {.accuracy = -1.0};

    ck_assert_int_eq(fl_store_round(rig.fed.store, 0, &rec, NULL), FL_ENOENT);
    ck_assert_double_eq(rec.accuracy, -1.0);
}

TEST(a_checkpoint_of_a_round_that_is_not_over_stays)
{
    work_rig_rounds(&rig, 1, 3);
    ck_assert_int_eq(fl_checkpoints_prune(&rig.fed, 2, 0, NULL), FL_OK);
    ck_assert_str_eq(list(0), "2 newest\n3 newest\n");
}

TEST(a_held_checkpoint_stays_until_it_is_released)
{
    work_rig_rounds(&rig, 1, 1);
    ck_assert_int_eq(fl_checkpoints_pin(&rig.fed, 1, 5, NULL), FL_OK);
    work_rig_rounds(&rig, 2, 4);
    ck_assert_str_eq(list(0), "1 pinned: by the operator\n3 newest\n4 newest\n");
    ck_assert_int_eq(fl_checkpoints_unpin(&rig.fed, 1, NULL), FL_OK);
    ck_assert_str_eq(list(0), "1 removed with the next round\n3 newest\n4 newest\n");
    work_rig_rounds(&rig, 5, 5);
    ck_assert_str_eq(list(0), "4 newest\n5 newest\n");
}

TEST(only_what_is_there_is_held_or_released)
{
    struct fl_err err = {0};

    work_rig_rounds(&rig, 1, 1);
    ck_assert_int_eq(fl_checkpoints_pin(&rig.fed, 7, 5, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "round 7 has no checkpoint"));
    ck_assert_int_eq(fl_checkpoints_unpin(&rig.fed, 1, NULL), FL_ENOENT);
}

TEST(an_abandoned_checkpoint_is_listed_until_it_is_released)
{
    struct fl_rolled_back r;

    rig.fed.retention.keep = 9;
    work_rig_rounds(&rig, 1, 3);
    ck_assert_int_eq(fl_store_ask_rollback(rig.fed.store, 1, 5, NULL), FL_OK);
    ck_assert_int_eq(fl_store_roll_back(rig.fed.store, false, 5, &r, NULL), FL_OK);
    ck_assert_int_eq(fl_store_finish_rollback(rig.fed.store, NULL), FL_OK);
    ck_assert_ptr_nonnull(
        strstr(list(0), "\n3 abandoned: models/round-000003.safetensors.generation-"));
    ck_assert_int_eq(fl_checkpoints_unpin(&rig.fed, 3, NULL), FL_OK);
    ck_assert_str_eq(list(0), "0 newest\n1 newest\n");
    ck_assert_int_eq(fl_checkpoints_unpin(&rig.fed, 3, NULL), FL_ENOENT);
}

TEST(whoever_lists_them_may_end_it)
{
    int code = FL_ELIMIT;

    work_rig_rounds(&rig, 1, 2);
    ck_assert_int_eq(fl_checkpoints_each(&rig.fed, 0, note, &code, NULL), FL_ELIMIT);
    ck_assert_str_eq(listed, "1 newest\n");
}

TEST(the_model_of_a_kept_checkpoint_is_taken_out)
{
    struct fl_blob *blob = NULL;

    work_rig_rounds(&rig, 1, 3);
    ck_assert_int_eq(fl_checkpoints_read(&rig.fed, 2, &blob, NULL), FL_OK);
    ck_assert_double_eq_tol((double)fl_blob_floats(blob)[0], 2, 1e-9);
    fl_blob_unref(blob);
    ck_assert_int_eq(fl_checkpoints_read(&rig.fed, 1, &blob, NULL), FL_ENOENT);
}

TEST(personal_models_of_the_round_before_stay_as_long_as_its_checkpoint)
{
    static const char *const names[] = {"a"};
    char path[RIG_PATH_MAX];
    uint64_t round;

    for (round = 1; round <= 4; round++) {
        work_rig_mix(&rig, round, names, 1, 1);
    }
    ck_assert_int_eq(
        fl_fs_replace(rig_path(path, "models/round-000003.safetensors"), "", 0, false, NULL),
        FL_OK);
    ck_assert_int_eq(fl_checkpoints_prune_personal_models(&rig.fed, 4, NULL), FL_OK);
    ck_assert(!work_rig_there("personal_models/000001.mix") &&
              !work_rig_there("personal_models/000002.mix"));
    ck_assert(work_rig_there("personal_models/000003.mix") &&
              work_rig_there("personal_models/000004.mix"));
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(fl_checkpoints_prune_personal_models(&rig.fed, 4, NULL), FL_OK);
    ck_assert(!work_rig_there("personal_models/000003.mix") &&
              work_rig_there("personal_models/000004.mix"));
    ck_assert_int_eq(fl_checkpoints_prune_personal_models(&rig.fed, 0, NULL), FL_OK);
    ck_assert(!work_rig_there("personal_models/000004.mix"));
}
