/* Going back to a kept checkpoint: what is asked, what is refused, what the next opening does. */

#include <check.h>
#include <string.h>
#include <unistd.h>

#include "server/store/store_rollback.h"
#include "server/work/checkpoints.h"
#include "server/work/rollback.h"
#include "tests/lib/suites.h"
#include "tests/lib/work_rig.h"

static struct work_rig rig;
static struct fl_err err;

static void setup(void)
{
    err.msg[0] = '\0';
    work_rig_init(&rig);
    rig.retention.keep = 99;
}

static void teardown(void)
{
    work_rig_done(&rig);
}

static void begin(const char *algorithm, uint64_t rounds)
{
    work_rig_open(&rig, algorithm);
    work_rig_rounds(&rig, 1, rounds);
}

static void again(const char *algorithm)
{
    work_rig_close(&rig);
    work_rig_open(&rig, algorithm);
}

static int ask(uint64_t round, bool force)
{
    return fl_rollback_ask(&rig.fed, round, force, 5, &err);
}

static bool says(const char *text)
{
    return strstr(rig.logged, text) != NULL;
}

TEST_CASE("all", setup, teardown);

TEST(the_next_opening_goes_back_to_the_round_that_was_asked_for)
{
    uint64_t generation;

    begin("fedavg", 4);
    generation = rig.fed.generation.number;
    ck_assert_int_eq(ask(2, false), FL_OK);
    ck_assert(says("rollback to round 2 requested by the operator"));
    again("fedavg");
    ck_assert_uint_eq(rig.resume.committed, 2);
    ck_assert_double_eq_tol(work_rig_theta(&rig), 2, 1e-9);
    ck_assert_uint_gt(rig.fed.generation.number, generation);
    ck_assert(says("rolled back to round 2: rounds 3 to 4 are abandoned; the checkpoint of round 4 "
                   "is kept until 'flctl unpin --round 4'"));
    again("fedavg");
    ck_assert_uint_eq(rig.resume.committed, 2);
    ck_assert_str_eq(rig.logged, "");
}

TEST(only_a_round_behind_which_there_is_something_is_gone_back_to)
{
    begin("fedavg", 3);
    ck_assert_int_eq(ask(7, false), FL_ENOENT);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "no such round is committed; rounds with a checkpoint: 3, 2, 1, 0"));
    ck_assert_int_eq(ask(3, false), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "it is the last committed round"));
    again("fedavg");
    ck_assert_uint_eq(rig.resume.committed, 3);
}

TEST(of_many_kept_rounds_the_newest_are_named_and_the_others_counted)
{
    begin("fedavg", 20);
    ck_assert_int_eq(ask(99, false), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "rounds with a checkpoint: 20, 19, "));
    ck_assert_ptr_nonnull(strstr(err.msg, ", 5 and 5 more"));
}

TEST(a_checkpoint_that_is_not_kept_or_damaged_is_refused)
{
    char path[RIG_PATH_MAX];

    begin("fedavg", 3);
    rig.fed.retention.keep = 2;
    ck_assert_int_eq(fl_checkpoints_prune(&rig.fed, 3, 0, NULL), FL_OK);
    ck_assert_int_eq(ask(1, false), FL_ENOENT);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "its checkpoint was removed by retention; rounds with a checkpoint: 3, 2"));
    (void)rig_path(path, "models/round-000002.safetensors");
    rig_damage(path, rig_size(path) - 8, 8);
    ck_assert_int_eq(ask(2, false), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "rollback to round 2 refused"));
}

TEST(a_checkpoint_without_a_vector_that_is_needed_is_refused)
{
    struct fl_models_tag tag;

    begin("fedavgm", 3);
    tag = fl_federation_tag(&rig.fed);
    ck_assert_int_eq(fl_models_save(&(struct fl_models_checkpoint){rig.fed.state_dir, 2, &tag,
                                                                   rig.layout, NULL, 0},
                                    fl_blob_floats(rig.progress.committed.model.theta), NULL, true,
                                    NULL),
                     FL_OK);
    ck_assert_int_eq(ask(2, false), FL_ENOENT);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "its checkpoint lacks 'velocity', which 'fedavgm' resumes from"));
    ck_assert_int_eq(ask(1, false), FL_OK);
}

TEST(what_both_sides_keep_begins_anew_and_that_has_to_be_wanted)
{
    begin("scaffold", 3);
    ck_assert_int_eq(ask(1, false), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "clients and the server keep state between rounds"));
    ck_assert_ptr_nonnull(strstr(err.msg, "use --force to reset it on both sides"));
    ck_assert_int_eq(ask(1, true), FL_OK);
    again("scaffold");
    ck_assert_uint_eq(rig.resume.committed, 1);
    ck_assert_double_eq_tol(work_rig_state(&rig), 0, 1e-9);
    ck_assert(says("state of the solver on the server and on clients is reset"));
}

TEST(the_open_attempt_goes_with_the_rounds)
{
    const struct fl_client_rec client = {.name = "edge", .agent = "t", .samples = 5};
    const struct fl_participant_rec part = {.state = FL_PARTICIPANT_ACCEPTED};
    const struct fl_selection selection = {
        .round = 4, .attempt = 2, .parts = &part, .n_parts = 1, .clients = &client, .n_clients = 1};

    begin("fedavg", 3);
    ck_assert_int_eq(fl_store_put_selection(rig.fed.store, &selection, NULL), FL_OK);
    ck_assert_int_eq(ask(1, false), FL_OK);
    again("fedavg");
    ck_assert(says("round 4: attempt 2 discarded with 1 accepted updates"));
}

TEST(a_checkpoint_that_went_since_it_was_asked_for_leaves_the_federation_as_it_was)
{
    char path[RIG_PATH_MAX];

    begin("fedavg", 3);
    ck_assert_int_eq(ask(1, false), FL_OK);
    ck_assert_int_eq(unlink(rig_path(path, "models/round-000001.safetensors")), 0);
    again("fedavg");
    ck_assert_uint_eq(rig.resume.committed, 3);
    ck_assert(says("its checkpoint was removed by retention; rounds with a checkpoint: 3, 2, 0; "
                   "rollback cancelled, the federation is unchanged"));
    again("fedavg");
    ck_assert_str_eq(rig.logged, "");
}
