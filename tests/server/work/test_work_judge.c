/* What a start may go on from: which vectors begin as zero, and whose personalized models are
 * handed out. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/work/checkpoint_choice.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

#define MEANING "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER   "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

static struct fl_federation fed;
static struct fl_strategy *strategy;
static struct fl_layout *layout;
static struct fl_outcome committed;
static const char *dir;
static char logged[4096];

static void note(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    size_t used = strlen(logged);

    (void)ctx;
    (void)component;
    (void)snprintf(logged + used, sizeof(logged) - used, "%d %s\n", (int)level, text);
}

static struct fl_log log_kept = {.level = FL_LOG_DEBUG, .sink = note};

static void setup(void)
{
    struct fl_store *store = NULL;

    dir = rig_dir();
    layout = rig_layout();
    logged[0] = '\0';
    /* Makes the folders. */
    ck_assert_int_eq(fl_store_open(dir, "fed", layout, FL_DURABLE_PROCESS, &store, NULL), FL_OK);
    fl_store_close(store);
}

static void teardown(void)
{
    fl_outcome_done(&committed);
    fl_strategy_free(strategy);
    strategy = NULL;
    fl_layout_free(layout);
    rig_remove();
}

/* Of a federation that began anew behind round `since`. */
static void runs(const char *preset, uint64_t since)
{
    fl_strategy_free(strategy);
    strategy = NULL;
    ck_assert_int_eq(fl_strategy_create(preset, &strategy, NULL), FL_OK);
    fed = (struct fl_federation){.layout = layout,
                                 .strategy = strategy,
                                 .state_dir = dir,
                                 .log = &log_kept,
                                 .generation = {.number = 7, .kept_since = since}};
    fl_federation_name_states(&fed);
    (void)snprintf(fed.generation.made, sizeof(fed.generation.made), "7 %s", MEANING);
}

/* `lacks`: bit i, state vector i. `made`: NULL, it does not say. */
static struct fl_models_found file(uint32_t lacks, const char *made)
{
    struct fl_models_found found = {.lacks = lacks};

    if (made != NULL) {
        (void)snprintf(found.made, sizeof(found.made), "3 %s", made);
    }
    return found;
}

static int judge(uint64_t round, struct fl_models_found found, bool anew, struct fl_err *err)
{
    logged[0] = '\0';
    return fl_judge_checkpoint(&fed, round, &found, anew, err);
}

TEST_CASE("judge", setup, teardown);

TEST(a_vector_of_the_server_is_not_zero_under_the_settings_it_was_made_under)
{
    struct fl_err err = {0};

    runs("fedavgm", 0);
    ck_assert_int_eq(judge(4, file(0, MEANING), false, &err), FL_OK);
    ck_assert_str_eq(logged, "");
    ck_assert_int_eq(judge(4, file(1, MEANING), false, &err), FL_EVERSION);
    ck_assert_ptr_nonnull(strstr(err.msg, "checkpoint of round 4: vector 'velocity' is missing"));
    ck_assert_ptr_nonnull(strstr(err.msg, "another version of the server wrote it"));
    ck_assert_ptr_null(strstr(err.msg, "--recover"));
    ck_assert_str_eq(logged, "");
    /* Neither a new beginning of the clients nor going back makes it so. */
    ck_assert_int_eq(judge(4, file(1, MEANING), true, NULL), FL_EVERSION);
    fed.generation.kept_since = 4;
    ck_assert_int_eq(judge(4, file(1, MEANING), false, NULL), FL_EVERSION);
}

TEST(a_vector_of_the_server_begins_as_zero_behind_a_change)
{
    char want[16];

    runs("fedavgm", 0);
    ck_assert_int_eq(judge(4, file(1, OTHER), false, NULL), FL_OK);
    ck_assert_ptr_nonnull(
        strstr(logged, "is missing and starts at zero: it was made under other settings"));
    (void)snprintf(want, sizeof(want), "%d ", (int)FL_LOG_NOTICE);
    ck_assert_int_eq(strncmp(logged, want, strlen(want)), 0);
    /* Of a version that did not say it: nobody knows, so somebody should look. */
    ck_assert_int_eq(judge(4, file(1, NULL), false, NULL), FL_OK);
    ck_assert_ptr_nonnull(strstr(logged, "does not record the settings"));
    (void)snprintf(want, sizeof(want), "%d ", (int)FL_LOG_WARNING);
    ck_assert_int_eq(strncmp(logged, want, strlen(want)), 0);
}

TEST(any_vector_that_lacks_is_found)
{
    struct fl_err err = {0};

    runs("fedadam", 0);
    ck_assert_uint_eq(fed.n_state, 2);
    ck_assert_int_eq(judge(1, file(2, MEANING), false, &err), FL_EVERSION);
    ck_assert_ptr_nonnull(strstr(err.msg, fed.state_names[1]));
    ck_assert_int_eq(judge(1, file(0, MEANING), false, NULL), FL_OK);
}

TEST(a_vector_that_goes_with_the_clients_is_zero_only_where_both_begin_anew)
{
    struct fl_err err = {0};

    runs("scaffold", 0);
    ck_assert_int_eq(judge(6, file(1, MEANING), false, &err), FL_EVERSION);
    ck_assert_ptr_nonnull(strstr(err.msg, "'fl-serverd --recover CONFIG' resumes from the model"));
    /* The way out is not cut off. */
    ck_assert_ptr_nonnull(strstr(err.msg, "another state_dir starts from scratch"));
    /* Other settings are no reason: clients keep their part through those. */
    ck_assert_int_eq(judge(6, file(1, OTHER), false, NULL), FL_EVERSION);
    ck_assert_int_eq(judge(6, file(1, NULL), false, NULL), FL_EVERSION);
    ck_assert_int_eq(judge(6, file(1, MEANING), true, NULL), FL_OK);
    fed.generation.kept_since = 5;
    ck_assert_int_eq(judge(6, file(1, MEANING), false, NULL), FL_EVERSION);
    fed.generation.kept_since = 6;
    ck_assert_int_eq(judge(6, file(1, MEANING), false, NULL), FL_OK);
    ck_assert_ptr_nonnull(strstr(logged, "the state of server and clients is reset there"));
}

TEST(the_first_model_has_no_vectors)
{
    runs("scaffold", 0);
    ck_assert_int_eq(judge(0, file(1, MEANING), false, NULL), FL_OK);
    runs("fedavgm", 0);
    ck_assert_int_eq(judge(0, file(1, MEANING), false, NULL), FL_OK);
    ck_assert_str_eq(logged, "");
}

static float first_of_state(size_t i)
{
    return fl_blob_floats(committed.model.state[i])[0];
}

TEST(what_the_server_had_of_clients_is_dropped_where_they_began_anew)
{
    runs("scaffold", 6);
    ck_assert_int_eq(
        fl_blob_create(fl_federation_floats(&fed) * sizeof(float), &committed.model.state[0]),
        FL_OK);
    fl_blob_fill_floats(committed.model.state[0])[0] = 1.0f;
    fl_judge_begin_anew(&fed, 7, &committed);
    ck_assert(first_of_state(0) > 0.5f);
    fl_judge_begin_anew(&fed, 6, &committed);
    ck_assert(first_of_state(0) < 0.5f);
}

/* --- personalized models --- */

static void save_personal_models(uint64_t round, char seal[FL_PERSONAL_MODELS_SEAL])
{
    static const char *const clients[] = {"a", "b"};
    size_t bytes = fl_federation_floats(&fed) * sizeof(float);
    float *values = calloc(1, bytes);
    struct fl_personal_models_writer *w = NULL;
    struct fl_personal_models *m = NULL;
    size_t i;

    ck_assert_ptr_nonnull(values);
    ck_assert_int_eq(fl_personal_models_create(dir, round, clients, 2, bytes, &w, NULL), FL_OK);
    for (i = 0; i < 2; i++) {
        ck_assert_int_eq(fl_personal_models_write(w, i, 0, values, bytes, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_personal_models_publish(w, NULL), FL_OK);
    ck_assert_int_eq(fl_personal_models_open(dir, round, bytes, &m, NULL), FL_OK);
    fl_personal_models_seal(m, seal);
    fl_personal_models_close(m);
    free(values);
}

static int join(uint64_t round, const char *seal)
{
    struct fl_models_found found = {.lacks = 0};

    (void)snprintf(found.personal_models, sizeof(found.personal_models), "%s", seal);
    fl_personal_models_close(committed.personal_models);
    committed.personal_models = NULL;
    return fl_judge_personal_models(&fed, round, &found, &committed.personal_models, NULL);
}

TEST(the_personal_models_that_a_checkpoint_names_have_to_be_there)
{
    char seal[FL_PERSONAL_MODELS_SEAL];
    char path[RIG_PATH_MAX];

    runs("fedmcsa", 0);
    save_personal_models(3, seal);
    ck_assert_int_eq(join(3, seal), FL_OK);
    ck_assert_ptr_nonnull(committed.personal_models);
    ck_assert_int_eq(join(3, "2 0011223344556677"), FL_EFORMAT);
    ck_assert_ptr_null(committed.personal_models);
    ck_assert_int_eq(unlink(rig_path(path, "personal_models/000003.mix")), 0);
    ck_assert_int_eq(join(3, seal), FL_ENOENT);
    /* Where clients began anew nobody asks for them, nor under an algorithm that mixes none. */
    fed.generation.kept_since = 3;
    ck_assert_int_eq(join(3, seal), FL_OK);
    ck_assert_ptr_null(committed.personal_models);
    runs("fedavg", 0);
    ck_assert_int_eq(join(3, seal), FL_OK);
    ck_assert_ptr_null(committed.personal_models);
}

TEST(where_a_checkpoint_names_no_personal_models_clients_go_on_from_their_own_models)
{
    runs("fedmcsa", 0);
    ck_assert_int_eq(join(3, ""), FL_OK);
    ck_assert_ptr_null(committed.personal_models);
    ck_assert_ptr_nonnull(strstr(logged, "clients resume from their own"));
    /* Where they began anew, nothing is missing. */
    logged[0] = '\0';
    fed.generation.kept_since = 3;
    ck_assert_int_eq(join(3, ""), FL_OK);
    ck_assert_ptr_null(committed.personal_models);
    ck_assert_str_eq(logged, "");
}
