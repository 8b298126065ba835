/* The commit of a round: what is on disk then, what is not, and what the federation goes on from.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/suites.h"
#include "tests/lib/work_rig.h"

static struct work_rig rig;

static void setup(void)
{
    work_rig_init(&rig);
}

static void teardown(void)
{
    work_rig_done(&rig);
}

static int load(uint64_t round, float *theta, float *state, struct fl_models_found *found)
{
    const struct fl_models_tag tag = fl_federation_tag(&rig.fed);
    float *states[FL_AGG_MAX_STATE] = {state};

    return fl_models_load(&(struct fl_models_checkpoint){rig.fed.state_dir, round, &tag, rig.layout,
                                                         rig.fed.state_names, rig.fed.n_state},
                          theta, states, found, NULL);
}

static void expect_checkpoint(uint64_t round, double theta, double state)
{
    size_t n = fl_federation_floats(&rig.fed);
    struct fl_models_found found;
    float *a = calloc(n, sizeof(*a));
    float *b = calloc(n, sizeof(*b));

    ck_assert(a != NULL && b != NULL);
    ck_assert_int_eq(load(round, a, b, &found), FL_OK);
    ck_assert_double_eq_tol((double)a[0], theta, 1e-9);
    ck_assert_double_eq_tol((double)a[n - 1], theta, 1e-9);
    ck_assert_double_eq_tol((double)b[0], state, 1e-9);
    ck_assert_str_eq(found.made, rig.fed.generation.made);
    free(a);
    free(b);
}

static bool has_round(uint64_t round)
{
    bool known = false;

    ck_assert_int_eq(fl_store_has_round(rig.fed.store, round, &known, NULL), FL_OK);
    return known;
}

TEST_CASE("all", setup, teardown);

TEST(a_commit_leaves_the_model_its_vectors_and_its_record)
{
    work_rig_open(&rig, "scaffold");
    ck_assert_uint_eq(rig.fed.n_state, 1);
    work_rig_aggregate(&rig, 1.5f);
    ck_assert(!has_round(1));
    ck_assert_int_eq(work_rig_commit(&rig, 1, NULL), FL_OK);
    ck_assert(has_round(1));
    expect_checkpoint(1, 1.5, 3.0);
    ck_assert_uint_eq(rig.progress.totals.round, 1);
    ck_assert_ptr_null(rig.progress.next.model.theta);
    ck_assert_double_eq_tol(work_rig_theta(&rig), 1.5, 1e-9);
}

static ino_t file_of(const char *name)
{
    char path[RIG_PATH_MAX];
    struct stat st;

    ck_assert_int_eq(stat(rig_path(path, name), &st), 0);
    return st.st_ino;
}

/* As an aggregation leaves one, of the model that it made. */
static void draft_next(uint64_t round)
{
    const struct fl_models_tag tag = fl_federation_tag(&rig.fed);
    struct fl_outcome *next = &rig.progress.next;
    const float *const states[] = {fl_blob_floats(next->model.state[0])};

    ck_assert_int_eq(fl_models_draft_begin(
                         &(struct fl_models_checkpoint){rig.fed.state_dir, round, &tag, rig.layout,
                                                        rig.fed.state_names, rig.fed.n_state},
                         true, &next->draft, NULL),
                     FL_OK);
    fl_models_draft_write(next->draft, fl_blob_floats(next->model.theta), states, 0,
                          fl_federation_floats(&rig.fed));
}

TEST(a_checkpoint_that_was_drafted_beside_its_aggregation_is_what_is_committed)
{
    ino_t drafted;

    work_rig_open(&rig, "scaffold");
    work_rig_aggregate(&rig, 1.5f);
    draft_next(1);
    drafted = file_of("models/round-000001.safetensors.tmp");
    ck_assert_int_eq(work_rig_commit(&rig, 1, NULL), FL_OK);
    ck_assert_uint_eq(file_of("models/round-000001.safetensors"), drafted);
    ck_assert_ptr_null(rig.progress.next.draft);
    expect_checkpoint(1, 1.5, 3.0);
}

TEST(a_draft_of_another_round_is_not_what_is_committed)
{
    work_rig_open(&rig, "scaffold");
    work_rig_aggregate(&rig, 1.5f);
    draft_next(2);
    ck_assert_int_eq(work_rig_commit(&rig, 1, NULL), FL_OK);
    expect_checkpoint(1, 1.5, 3.0);
}

TEST(the_records_of_clients_come_with_the_round)
{
    const struct fl_client_rec client = {
        .id = 3, .name = "edge-3", .agent = "t", .counted_round = 1, .counted_attempt = 2};
    const struct fl_round_rec record = {.round = 1, .attempt = 2, .accuracy = -1};
    const struct fl_commit commit = {
        .progress = &rig.progress, .record = &record, .clients = &client, .n_clients = 1};
    struct fl_coord_resume resume;

    work_rig_open(&rig, "fedavg");
    work_rig_aggregate(&rig, 1);
    ck_assert_int_eq(fl_commit_run(&rig.fed, &commit, NULL), FL_OK);
    ck_assert_int_eq(fl_store_load(rig.fed.store, &resume, NULL), FL_OK);
    ck_assert_uint_eq(resume.committed, 1);
    ck_assert_uint_eq(resume.n_clients, 1);
    ck_assert_uint_eq(resume.clients[0].counted_attempt, 2);
    fl_store_resume_done(&resume);
}

TEST(a_round_for_which_nothing_was_aggregated_ends_with_the_model_it_began_with)
{
    work_rig_open(&rig, "scaffold");
    work_rig_rounds(&rig, 1, 1);
    ck_assert_ptr_eq(fl_progress_model(&rig.progress), &rig.progress.committed.model);
    ck_assert_int_eq(work_rig_commit(&rig, 2, NULL), FL_OK);
    expect_checkpoint(2, 1.0, 2.0);
    ck_assert_double_eq_tol(work_rig_theta(&rig), 1.0, 1e-9);
}

TEST(a_checkpoint_names_the_personal_models_of_its_round_and_only_those)
{
    static const char *const names[] = {"a", "b"};
    struct fl_models_found found;
    char seal[FL_PERSONAL_MODELS_SEAL];
    float *theta;

    work_rig_open(&rig, "fedmcsa");
    theta = calloc(fl_federation_floats(&rig.fed), sizeof(*theta));
    ck_assert_ptr_nonnull(theta);
    work_rig_aggregate(&rig, 1);
    work_rig_mix(&rig, 1, names, 2, 7);
    fl_personal_models_seal(rig.progress.next.personal_models, seal);
    ck_assert_int_eq(work_rig_commit(&rig, 1, NULL), FL_OK);
    ck_assert_int_eq(load(1, theta, NULL, &found), FL_OK);
    ck_assert_str_eq(found.personal_models, seal);
    ck_assert_ptr_nonnull(rig.progress.committed.personal_models);
    /* A round that mixed none leaves none to be handed out. */
    work_rig_rounds(&rig, 2, 2);
    ck_assert_int_eq(load(2, theta, NULL, &found), FL_OK);
    ck_assert_str_eq(found.personal_models, "");
    ck_assert_ptr_null(rig.progress.committed.personal_models);
    free(theta);
}

TEST(without_its_checkpoint_a_round_has_no_record)
{
    struct fl_err err = {0};

    work_rig_open(&rig, "fedavg");
    work_rig_rounds(&rig, 1, 1);
    work_rig_aggregate(&rig, 2);
    rig_limit_files(20000);
    ck_assert_int_ne(work_rig_commit(&rig, 2, &err), FL_OK);
    rig_limit_files(0);
    ck_assert(!has_round(2));
    ck_assert_uint_eq(rig.progress.totals.round, 1);
    /* The same again, when there is room. */
    ck_assert_int_eq(work_rig_commit(&rig, 2, &err), FL_OK);
    expect_checkpoint(2, 2, 0);
}

TEST(a_round_is_committed_once)
{
    work_rig_open(&rig, "fedavg");
    work_rig_rounds(&rig, 1, 1);
    work_rig_aggregate(&rig, 2);
    ck_assert_int_eq(work_rig_commit(&rig, 1, NULL), FL_ESTATE);
    ck_assert_uint_eq(rig.progress.totals.uplink_bytes, 10);
}

TEST(older_checkpoints_go_with_the_commit_by_the_rules_of_retention)
{
    work_rig_open(&rig, "fedavg");
    work_rig_rounds(&rig, 1, 4);
    ck_assert(!work_rig_there("models/round-000002.safetensors"));
    ck_assert(work_rig_there("models/round-000003.safetensors"));
    ck_assert(work_rig_there("models/round-000004.safetensors"));
}

TEST(an_old_file_that_cannot_be_removed_is_logged_and_the_round_stands)
{
    char path[RIG_PATH_MAX];

    work_rig_open(&rig, "fedavg");
    work_rig_rounds(&rig, 1, 1);
    /* Nobody unlinks a folder. */
    ck_assert_int_eq(mkdir(rig_path(path, "personal_models/000009.mix"), 0700), 0);
    work_rig_rounds(&rig, 2, 2);
    ck_assert(has_round(2));
    ck_assert_ptr_nonnull(strstr(rig.logged, "old checkpoints could not be removed, ignoring: "));
}

TEST(an_aggregation_replaces_the_one_of_an_attempt_before)
{
    work_rig_open(&rig, "fedavg");
    work_rig_aggregate(&rig, 1);
    work_rig_aggregate(&rig, 2);
    ck_assert_double_eq_tol((double)fl_blob_floats(fl_progress_model(&rig.progress)->theta)[0], 2,
                            1e-9);
}
