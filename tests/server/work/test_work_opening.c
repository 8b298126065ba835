/* What a federation goes on from when its folder is opened: whatever became of the files. */

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/suites.h"
#include "tests/lib/work_rig.h"

static struct work_rig rig;

static void setup(void)
{
    work_rig_init(&rig);
    rig.retention.keep = 9;
}

static void teardown(void)
{
    work_rig_done(&rig);
}

/* A folder with that many rounds, closed. */
static void folder_of(const char *algorithm, uint64_t rounds)
{
    work_rig_open(&rig, algorithm);
    work_rig_rounds(&rig, 1, rounds);
    work_rig_close(&rig);
}

static void damage(uint64_t round)
{
    char name[64];
    char path[RIG_PATH_MAX];

    (void)snprintf(name, sizeof(name), "models/round-%06llu.safetensors",
                   (unsigned long long)round);
    (void)rig_path(path, name);
    rig_damage(path, rig_size(path) - 8, 8);
}

static void remove_file(const char *name)
{
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(unlink(rig_path(path, name)), 0);
}

static bool says(const char *text)
{
    return strstr(rig.logged, text) != NULL;
}

TEST_CASE("all", setup, teardown);

TEST(a_new_folder_begins_with_the_first_model_which_is_made_once)
{
    work_rig_open(&rig, "scaffold");
    ck_assert_uint_eq(rig.n_first, 1);
    ck_assert_uint_eq(rig.resume.committed, 0);
    ck_assert_double_eq_tol(work_rig_theta(&rig), 0.5, 1e-9);
    ck_assert_double_eq_tol(work_rig_state(&rig), 0, 1e-9);
    ck_assert(work_rig_there("models/round-000000.safetensors"));
    work_rig_close(&rig);
    work_rig_open(&rig, "scaffold");
    ck_assert_uint_eq(rig.n_first, 1);
    ck_assert_double_eq_tol(work_rig_theta(&rig), 0.5, 1e-9);
    ck_assert_str_eq(rig.logged, "");
}

static int no_model(void *ctx, float *theta, struct fl_err *err)
{
    (void)ctx;
    (void)theta;
    return fl_err_set(err, FL_ENOENT, "no such file");
}

TEST(without_a_first_model_nothing_begins)
{
    struct fl_settings settings = {.n = 0};
    const struct fl_opening opening = {
        .name = "fed", .settings = &settings, .first_model = no_model};
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(fl_strategy_create("fedavg", &rig.strategy, NULL), FL_OK);
    rig.fed = (struct fl_federation){
        .layout = rig.layout, .strategy = rig.strategy, .state_dir = rig_path(path, ".")};
    ck_assert_int_eq(fl_opening_run(&rig.fed, &opening, &rig.progress, &rig.resume, &err),
                     FL_ENOENT);
    ck_assert_str_eq(err.msg, "no such file");
    ck_assert(!work_rig_there("models/round-000000.safetensors"));
}

TEST(the_first_model_is_drawn_from_the_seed)
{
    const char *layers[] = {"dense 3", "relu", "dense 2"};
    const struct fl_net_spec spec = {.input = {2}, .n_input = 1, .layers = layers, .n_layers = 3};
    float a[17];
    float b[17];

    ck_assert_int_eq(fl_net_draw(&spec, 7, a, 17, NULL), FL_OK);
    ck_assert_int_eq(fl_net_draw(&spec, 7, b, 17, NULL), FL_OK);
    ck_assert_mem_eq(a, b, sizeof(a));
    ck_assert_int_eq(fl_net_draw(&spec, 8, b, 17, NULL), FL_OK);
    ck_assert_mem_ne(a, b, sizeof(a));
}

TEST(the_newest_round_is_gone_on_from_with_all_that_belongs_to_it)
{
    static const char *const names[] = {"a", "b"};

    work_rig_open(&rig, "fedmcsa");
    work_rig_rounds(&rig, 1, 2);
    work_rig_aggregate(&rig, 3);
    work_rig_mix(&rig, 3, names, 2, 7);
    ck_assert_int_eq(work_rig_commit(&rig, 3, NULL), FL_OK);
    work_rig_close(&rig);
    work_rig_open(&rig, "fedmcsa");
    ck_assert_uint_eq(rig.resume.committed, 3);
    ck_assert_uint_eq(rig.progress.totals.uplink_bytes, 60);
    ck_assert_double_eq_tol(work_rig_theta(&rig), 3, 1e-9);
    ck_assert_ptr_nonnull(rig.progress.committed.personal_models);
    ck_assert_str_eq(rig.logged, "");
}

TEST(vectors_beside_the_model_come_back_with_it)
{
    folder_of("fedavgm", 2);
    work_rig_open(&rig, "fedavgm");
    ck_assert_double_eq_tol(work_rig_state(&rig), 4, 1e-9);
}

TEST(a_damaged_checkpoint_is_passed_over_and_its_rounds_are_run_again)
{
    folder_of("fedavg", 4);
    damage(4);
    remove_file("models/round-000003.safetensors");
    work_rig_open(&rig, "fedavg");
    ck_assert_uint_eq(rig.resume.committed, 2);
    ck_assert_uint_eq(rig.progress.totals.round, 2);
    ck_assert_double_eq_tol(work_rig_theta(&rig), 2, 1e-9);
    ck_assert(says("resuming from round 2, the newest with a record and a good checkpoint"));
    /* For a person to look at, and never in the way of the round that comes again. */
    ck_assert(work_rig_there("models/round-000004.safetensors.bad-1"));
    work_rig_rounds(&rig, 3, 4);
    work_rig_close(&rig);
    work_rig_open(&rig, "fedavg");
    ck_assert_uint_eq(rig.resume.committed, 4);
    ck_assert_str_eq(rig.logged, "");
}

TEST(an_error_of_reading_says_nothing_about_a_file_and_changes_nothing)
{
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];
    int rv;

    rig_drop_root();
    folder_of("fedavg", 2);
    ck_assert_int_eq(chmod(rig_path(path, "models/round-000002.safetensors"), 0), 0);
    rv = work_rig_try(&rig, "fedavg", &err);
    work_rig_close(&rig);
    ck_assert_int_eq(chmod(path, 0600), 0);
    rig_regain_root();
    ck_assert_int_eq(rv, FL_EPERM);
    ck_assert_ptr_nonnull(strstr(err.msg, "checkpoint of round 2: could not be read, leaving it"));
    work_rig_open(&rig, "fedavg");
    ck_assert_uint_eq(rig.resume.committed, 2);
}

TEST(without_any_good_checkpoint_the_way_out_is_named)
{
    struct fl_err err = {0};

    folder_of("fedavg", 1);
    damage(1);
    remove_file("models/round-000000.safetensors");
    ck_assert_int_eq(work_rig_try(&rig, "fedavg", &err), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "'fl-serverd --recover CONFIG' resumes from the newest"));
    ck_assert_ptr_nonnull(strstr(err.msg, "the newest file is of round 1"));
    work_rig_close(&rig);
    remove_file("models/round-000001.safetensors");
    ck_assert_int_eq(work_rig_try(&rig, "fedavg", &err), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "no checkpoint found in"));
}

TEST(a_first_model_that_is_damaged_is_made_again)
{
    folder_of("fedavg", 0);
    damage(0);
    work_rig_open(&rig, "fedavg");
    ck_assert_uint_eq(rig.n_first, 2);
    ck_assert(work_rig_there("models/round-000000.safetensors.bad-1"));
    ck_assert_double_eq_tol(work_rig_theta(&rig), 0.5, 1e-9);
}

TEST(an_older_database_in_its_place_is_told)
{
    folder_of("fedavg", 4);
    rig_sql("DELETE FROM round WHERE round > 2");
    work_rig_open(&rig, "fedavg");
    ck_assert_uint_eq(rig.resume.committed, 2);
    ck_assert_double_eq_tol(work_rig_theta(&rig), 2, 1e-9);
    ck_assert(says("checkpoints exist up to round 4, but the state database ends at round 2"));
}

TEST(a_checkpoint_without_its_record_is_left_until_its_round_comes_again)
{
    folder_of("fedavg", 3);
    rig_sql("DELETE FROM round WHERE round > 2");
    work_rig_open(&rig, "fedavg");
    ck_assert_uint_eq(rig.resume.committed, 2);
    ck_assert(work_rig_there("models/round-000003.safetensors"));
    ck_assert_str_eq(rig.logged, "");
}

TEST(a_checkpoint_that_lacks_a_vector_of_these_settings_ends_it)
{
    struct fl_err err = {0};
    struct fl_models_tag tag;

    work_rig_open(&rig, "fedavgm");
    work_rig_rounds(&rig, 1, 2);
    tag = fl_federation_tag(&rig.fed);
    ck_assert_int_eq(fl_models_save(&(struct fl_models_checkpoint){rig.fed.state_dir, 2, &tag,
                                                                   rig.layout, NULL, 0},
                                    fl_blob_floats(rig.progress.committed.model.theta), NULL, true,
                                    NULL),
                     FL_OK);
    work_rig_close(&rig);
    ck_assert_int_eq(work_rig_try(&rig, "fedavgm", &err), FL_EVERSION);
    ck_assert_ptr_nonnull(strstr(err.msg, "checkpoint of round 2: vector 'velocity' is missing"));
    work_rig_close(&rig);
    /* Another algorithm goes on from the model alone. */
    work_rig_open(&rig, "fedavg");
    ck_assert_uint_eq(rig.resume.committed, 2);
}

TEST(personal_models_that_a_checkpoint_names_and_that_are_gone_make_it_a_bad_one)
{
    static const char *const names[] = {"a"};

    work_rig_open(&rig, "fedmcsa");
    work_rig_rounds(&rig, 1, 1);
    work_rig_aggregate(&rig, 2);
    work_rig_mix(&rig, 2, names, 1, 7);
    ck_assert_int_eq(work_rig_commit(&rig, 2, NULL), FL_OK);
    work_rig_close(&rig);
    remove_file("personal_models/000002.mix");
    work_rig_open(&rig, "fedmcsa");
    ck_assert_uint_eq(rig.resume.committed, 1);
    ck_assert(says("resuming from round 1, the newest"));
}

TEST(personal_models_of_a_round_that_was_not_committed_are_removed)
{
    static const char *const names[] = {"a"};

    work_rig_open(&rig, "fedmcsa");
    work_rig_rounds(&rig, 1, 1);
    work_rig_aggregate(&rig, 2);
    work_rig_mix(&rig, 2, names, 1, 7);
    work_rig_close(&rig);
    work_rig_open(&rig, "fedmcsa");
    ck_assert(!work_rig_there("personal_models/000002.mix"));
    ck_assert_ptr_null(rig.progress.committed.personal_models);
}

TEST(behind_an_older_round_what_goes_with_the_clients_begins_anew)
{
    uint64_t kept;

    work_rig_open(&rig, "scaffold");
    work_rig_rounds(&rig, 1, 3);
    kept = rig.fed.generation.kept_number;
    work_rig_close(&rig);
    damage(3);
    work_rig_open(&rig, "scaffold");
    ck_assert_double_eq_tol(work_rig_theta(&rig), 2, 1e-9);
    ck_assert_double_eq_tol(work_rig_state(&rig), 0, 1e-9);
    ck_assert_uint_gt(rig.fed.generation.kept_number, kept);
    ck_assert(says("solver 'scaffold': the state of server and clients is reset"));
    ck_assert(says("client state is up to 1 rounds newer"));
}

TEST(of_the_aggregate_a_vector_stays_behind_an_older_round)
{
    folder_of("fedavgm", 3);
    damage(3);
    work_rig_open(&rig, "fedavgm");
    ck_assert_double_eq_tol(work_rig_state(&rig), 4, 1e-9);
}

/* --- other settings --- */

static void select_client(uint64_t round)
{
    const struct fl_client_rec client = {.name = "edge", .agent = "t", .samples = 5};
    const struct fl_participant_rec part = {.state = FL_PARTICIPANT_SELECTED};
    const struct fl_selection selection = {.round = round,
                                           .attempt = 1,
                                           .parts = &part,
                                           .n_parts = 1,
                                           .clients = &client,
                                           .n_clients = 1};

    ck_assert_int_eq(fl_store_put_selection(rig.fed.store, &selection, NULL), FL_OK);
}

TEST(a_change_is_told_with_what_follows_from_it)
{
    work_rig_open(&rig, "scaffold");
    work_rig_rounds(&rig, 1, 2);
    select_client(3);
    work_rig_close(&rig);
    work_rig_open(&rig, "fedavgm");
    ck_assert(
        says("configuration changed: algorithm 'scaffold' -> 'fedavgm', effective from round 3"));
    ck_assert(says("round 3: attempt 1 discarded with 0 accepted updates, which were made under "
                   "other settings; attempt 2 is next"));
    ck_assert(says("the checkpoint of round 2, from before the change, is pinned until 'flctl "
                   "unpin --round 2'"));
    ck_assert(says("state of the solver on the server and on clients is reset"));
    ck_assert(
        says("vector 'velocity' is missing and starts at zero: it was made under other settings"));
    work_rig_close(&rig);
    work_rig_open(&rig, "fedavgm");
    ck_assert_str_eq(strstr(rig.logged, "changed") != NULL ? rig.logged : "", "");
}

TEST(summaries_are_asked_for_again_when_they_would_be_others)
{
    work_rig_open(&rig, "fedmix");
    work_rig_rounds(&rig, 1, 1);
    work_rig_close(&rig);
    work_rig_open(&rig, "fedavg");
    ck_assert(says("data summaries of the clients are removed, they are requested again"));
}

static void open_with_file(const char *file)
{
    struct fl_settings settings = {.n = 0};
    const struct fl_opening opening = {.name = "fed", .settings = &settings};

    fl_store_close(rig.fed.store);
    rig.fed.store = NULL;
    fl_progress_done(&rig.progress);
    fl_store_resume_done(&rig.resume);
    ck_assert_int_eq(fl_settings_add_strategy(&settings, rig.strategy), FL_OK);
    ck_assert_int_eq(fl_settings_add(&settings, FL_SETTING_FIGURE, "model.file", file), FL_OK);
    ck_assert_int_eq(fl_opening_run(&rig.fed, &opening, &rig.progress, &rig.resume, NULL), FL_OK);
    fl_settings_done(&settings);
}

TEST(a_model_file_is_ignored_once_there_is_a_model)
{
    folder_of("fedavg", 1);
    work_rig_open(&rig, "fedavg");
    open_with_file("");
    ck_assert_str_eq(rig.logged, "");
    open_with_file("/models/a.safetensors");
    ck_assert(
        says("model.file '/models/a.safetensors' is ignored: the state folder already has a model, "
             "of round 1"));
}

TEST(a_rebuilt_database_that_does_not_know_its_settings_is_told)
{
    folder_of("fedavg", 1);
    rig_sql("DELETE FROM setting; UPDATE federation SET meaning = NULL");
    work_rig_open(&rig, "fedavg");
    ck_assert(says("the settings that the model was made under are unknown"));
}

/* --- a database that is lost --- */

TEST(a_lost_database_is_made_anew_behind_the_newest_good_checkpoint)
{
    struct fl_store_rebuild r;
    struct fl_err err = {0};
    struct fl_federation fed;

    folder_of("scaffold", 3);
    remove_file("federation.db");
    ck_assert_int_eq(work_rig_try(&rig, "scaffold", &err), FL_ESTATE);
    fed = rig.fed;
    ck_assert_msg(fl_opening_rebuild(&fed, "fed", &r, &err) == FL_OK, "%s", err.msg);
    ck_assert(r.fresh && !r.unchanged);
    ck_assert_uint_eq(r.round, 3);
    work_rig_close(&rig);
    work_rig_open(&rig, "scaffold");
    ck_assert_uint_eq(rig.resume.committed, 3);
    ck_assert_double_eq_tol(work_rig_theta(&rig), 3, 1e-9);
    ck_assert_double_eq_tol(work_rig_state(&rig), 0, 1e-9);
    /* Nobody has it open now, and there is nothing to do. */
    fl_store_close(rig.fed.store);
    rig.fed.store = NULL;
    ck_assert_int_eq(fl_opening_rebuild(&rig.fed, "fed", &r, &err), FL_OK);
    ck_assert(r.unchanged);
}
