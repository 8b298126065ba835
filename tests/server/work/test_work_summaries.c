/* What clients tell of their data: who is waited for, what is kept, and when it is fixed. */

#include <check.h>
#include <string.h>

#include "server/work/persist.h"
#include "tests/lib/suites.h"
#include "tests/lib/work_rig.h"
#include "tests/libfl/strategy/fedmix_fixture.h"

static struct work_rig rig;

static void setup(void)
{
    work_rig_init(&rig);
}

static void teardown(void)
{
    work_rig_done(&rig);
}

static void begin(const char *algorithm)
{
    work_rig_open(&rig, algorithm);
    rig.fed.inputs = INPUTS;
    rig.fed.classes = CLASSES;
}

/* One good summary of `n` pairs. */
static int take(const char *client, uint32_t n, struct fl_err *err)
{
    struct fl_solver_bytes bytes;
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, 1 << 20);
    bytes = put_summary(&buf, n, 1, n);
    rv = fl_collection_take(&rig.fed, client, bytes.data, bytes.len, err);
    fl_buf_done(&buf);
    return rv;
}

static int choose(uint64_t round, size_t n_parts, struct fl_collection *summaries,
                  struct fl_err *err)
{
    const struct fl_client_rec client = {.name = "a", .agent = "t", .samples = 5};
    const struct fl_participant_rec part = {.state = FL_PARTICIPANT_SELECTED};
    const struct fl_selection selection = {.round = round,
                                           .attempt = 1,
                                           .parts = &part,
                                           .n_parts = n_parts,
                                           .clients = &client,
                                           .n_clients = n_parts};

    return fl_collection_select(&rig.fed, &selection, summaries, err);
}

static bool round_is_open(uint64_t round)
{
    struct fl_coord_resume resume;
    bool open;

    ck_assert_int_eq(fl_store_load(rig.fed.store, &resume, NULL), FL_OK);
    open = resume.n_parts > 0 && resume.open_round == round;
    fl_store_resume_done(&resume);
    return open;
}

TEST_CASE("all", setup, teardown);

TEST(an_algorithm_without_summaries_waits_for_nobody)
{
    begin("fedavg");
    ck_assert(!fl_collection_wanted(&rig.fed, &rig.progress));
    ck_assert(!fl_collection_waits(&rig.fed, &rig.progress, "a"));
}

TEST(a_client_is_waited_for_until_its_summary_is_on_disk)
{
    begin("fedmix");
    ck_assert(fl_collection_wanted(&rig.fed, &rig.progress));
    ck_assert(fl_collection_waits(&rig.fed, &rig.progress, "a"));
    ck_assert_int_eq(take("a", 2, NULL), FL_OK);
    ck_assert(!fl_collection_waits(&rig.fed, &rig.progress, "a"));
    ck_assert(fl_collection_waits(&rig.fed, &rig.progress, "b"));
    /* Also one that has nothing to summary has said so. */
    ck_assert_int_eq(fl_collection_take(&rig.fed, "b", NULL, 0, NULL), FL_OK);
    ck_assert(!fl_collection_waits(&rig.fed, &rig.progress, "b"));
    work_rig_close(&rig);
    begin("fedmix");
    ck_assert(!fl_collection_waits(&rig.fed, &rig.progress, "a"));
}

TEST(a_summary_that_is_none_is_the_clients_fault_and_not_kept)
{
    struct fl_err err = {0};
    int rv;

    begin("fedmix");
    rv = fl_collection_take(&rig.fed, "a", "FLMXnonsense", 12, &err);
    ck_assert(fl_collection_is_theirs(rv));
    ck_assert_str_ne(err.msg, "");
    ck_assert(fl_collection_waits(&rig.fed, &rig.progress, "a"));
    rig_limit_files(4);
    rv = take("a", 2, &err);
    rig_limit_files(0);
    ck_assert(rv != FL_OK && !fl_collection_is_theirs(rv));
}

TEST(with_the_first_selection_summaries_are_fixed_for_good)
{
    struct fl_collection collection = {.file = NULL};
    struct fl_collection later = {.file = NULL};
    uint64_t size;

    begin("fedmix");
    ck_assert_int_eq(take("a", 2, NULL), FL_OK);
    ck_assert_int_eq(take("b", 3, NULL), FL_OK);
    ck_assert_int_eq(choose(1, 1, &collection, NULL), FL_OK);
    ck_assert(round_is_open(1));
    ck_assert_ptr_nonnull(collection.file);
    size = fl_file_size(collection.file);
    ck_assert_uint_ge(size, 5 * (INPUTS + CLASSES) * sizeof(float));
    fl_progress_collection(&rig.progress, &collection);
    ck_assert_ptr_null(collection.file);
    ck_assert(!fl_collection_wanted(&rig.fed, &rig.progress));
    ck_assert(!fl_collection_waits(&rig.fed, &rig.progress, "late"));
    /* Fixed a second time they are the same. */
    ck_assert_int_eq(choose(2, 1, &later, NULL), FL_OK);
    ck_assert_uint_eq(fl_file_size(later.file), size);
    ck_assert_mem_eq(later.digest, rig.progress.collection.digest, sizeof(later.digest));
    fl_progress_collection(&rig.progress, &later);
    ck_assert_ptr_null(later.file);
    work_rig_close(&rig);
    begin("fedmix");
    ck_assert_ptr_nonnull(rig.progress.collection.file);
    ck_assert_uint_eq(fl_file_size(rig.progress.collection.file), size);
}

TEST(a_selection_of_nobody_fixes_nothing)
{
    struct fl_collection collection = {.file = NULL};

    begin("fedmix");
    ck_assert_int_eq(take("a", 2, NULL), FL_OK);
    ck_assert_int_eq(choose(1, 0, &collection, NULL), FL_OK);
    ck_assert_ptr_null(collection.file);
    ck_assert(fl_collection_wanted(&rig.fed, &rig.progress));
}

TEST(without_summaries_that_are_fixed_nobody_is_selected)
{
    struct fl_collection collection = {.file = NULL};
    struct fl_err err = {0};
    int rv;

    begin("fedmix");
    ck_assert_int_eq(take("a", 9, NULL), FL_OK);
    rig_limit_files(100);
    rv = choose(1, 1, &collection, &err);
    rig_limit_files(0);
    ck_assert_int_ne(rv, FL_OK);
    ck_assert(!round_is_open(1));
    ck_assert_int_eq(choose(1, 1, &collection, &err), FL_OK);
    fl_file_unref(collection.file);
}

TEST(summaries_that_do_not_fit_are_left_out_and_counted)
{
    struct fl_collection collection = {.file = NULL};

    begin("fedmix");
    ck_assert_int_eq(take("a", 2, NULL), FL_OK);
    ck_assert_int_eq(take("b", 2, NULL), FL_OK);
    rig.fed.classes = CLASSES + 1; /* Another configuration, between two starts. */
    ck_assert_int_eq(choose(1, 1, &collection, NULL), FL_OK);
    ck_assert_ptr_nonnull(strstr(rig.logged, "data summary of client 'b' left out"));
    fl_file_unref(collection.file);
}

TEST(fixed_summaries_that_are_damaged_are_put_together_again)
{
    struct fl_collection collection = {.file = NULL};
    char path[RIG_PATH_MAX];

    begin("fedmix");
    ck_assert_int_eq(take("a", 2, NULL), FL_OK);
    ck_assert_int_eq(choose(1, 1, &collection, NULL), FL_OK);
    fl_file_unref(collection.file);
    work_rig_close(&rig);
    (void)rig_path(path, "summaries/fixed");
    rig_damage(path, rig_size(path) - 2, 2);
    begin("fedmix");
    ck_assert_ptr_null(rig.progress.collection.file);
    ck_assert_ptr_nonnull(strstr(rig.logged, "rebuilding it before the next round"));
    ck_assert(fl_collection_wanted(&rig.fed, &rig.progress));
    ck_assert_int_eq(choose(2, 1, &collection, NULL), FL_OK);
    ck_assert_ptr_nonnull(collection.file);
    fl_file_unref(collection.file);
}

/* One summary each of which all values are `value`, for a to d. */
static void take_values(const float value[4])
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct fl_solver_bytes bytes;
    struct fl_buf buf;
    size_t i, j;

    for (i = 0; i < 4; i++) {
        fl_buf_init(&buf, 1 << 20);
        bytes = put_summary(&buf, 1, 1, 1);
        for (j = 0; j < INPUTS; j++) {
            (void)memcpy(buf.data + 16 + j * sizeof(float), &value[i], sizeof(float));
        }
        ck_assert_int_eq(fl_collection_take(&rig.fed, names[i], bytes.data, bytes.len, NULL),
                         FL_OK);
        fl_buf_done(&buf);
    }
}

static void fix_all(void)
{
    struct fl_collection collection = {.file = NULL};

    ck_assert_int_eq(choose(1, 1, &collection, NULL), FL_OK);
    fl_progress_collection(&rig.progress, &collection);
    ck_assert_ptr_nonnull(rig.progress.collection.file);
}

/* Summaries in the collection. */
static uint64_t n_fixed(void)
{
    return fl_file_size(rig.progress.collection.file) / (16 + (INPUTS + CLASSES) * sizeof(float));
}

TEST(a_summary_with_an_enormous_value_is_left_out_by_name)
{
    const float value[] = {1.0f, -2.0f, -3e38f, 1.5f};

    begin("fedmix");
    rig.fed.summary_range = 10.0;
    take_values(value);
    fix_all();
    ck_assert_uint_eq(n_fixed(), 3);
    ck_assert_ptr_nonnull(strstr(rig.logged, "data summary of client 'c' left out: its largest "
                                             "value 3e+38 is above 15, 10 times the median"));
    ck_assert_ptr_null(strstr(rig.logged, "client 'b' left out"));
}

static int persist(enum fl_effect_type type, uint64_t round, const struct fl_client_rec *client,
                   const struct fl_participant_rec *part, struct fl_collection *summaries);

TEST_EACH(a_client_that_is_forgotten_takes_its_summary_jvp, 2)
{
    const float value[] = {1.0f, 2.0f, 3.0f, 4.0f};
    struct fl_client_rec client = {.id = 1, .name = "b", .agent = "t", .samples = 5};
    struct fl_collection collection = {.file = NULL};
    struct fl_file *old;

    begin("fedmix");
    take_values(value);
    fix_all();
    old = fl_file_ref(rig.progress.collection.file);
    client.forgotten = _i != 0; /* with a part in the open round, or not */
    ck_assert_int_eq(persist(FL_EFF_FORGET_CLIENTS, 1, &client, NULL, &collection), FL_OK);
    ck_assert_ptr_nonnull(
        strstr(rig.logged, "summary of client 'b' removed: the client was forgotten"));
    fl_progress_collection(&rig.progress, &collection);
    ck_assert_uint_eq(n_fixed(), 3);
    ck_assert_uint_gt(fl_file_size(old), fl_file_size(rig.progress.collection.file));
    fl_file_unref(old);
    /* It has none any more: nothing is made again. */
    client.forgotten = false;
    ck_assert_int_eq(persist(FL_EFF_FORGET_CLIENTS, 1, &client, NULL, &collection), FL_OK);
    ck_assert_ptr_null(collection.file);
    work_rig_close(&rig);
    begin("fedmix");
    ck_assert_uint_eq(n_fixed(), 3);
}

TEST(a_removal_that_was_cut_short_is_finished_when_the_folder_is_opened)
{
    const float value[] = {1.0f, 2.0f, 3.0f, 4.0f};

    begin("fedmix");
    take_values(value);
    fix_all();
    ck_assert_int_eq(fl_summaries_remove(rig.fed.state_dir, "d", false, NULL), FL_OK);
    work_rig_close(&rig);
    begin("fedmix");
    ck_assert_uint_eq(n_fixed(), 3);
    ck_assert_ptr_nonnull(strstr(rig.logged, "collection of data summaries rebuilt"));
}

TEST_EACH(of_a_client_whose_summary_was_dropped_no_other_is_taken, 2)
{
    const float value[] = {1.0f, 2.0f, 3.0f, 4.0f};
    struct fl_collection collection = {.file = NULL};
    struct fl_err err = {0};

    begin("fedmix");
    take_values(value);
    if (_i != 0) {
        fix_all();
    }
    ck_assert_int_eq(fl_collection_drop(&rig.fed, "b", &collection, &err), FL_OK);
    ck_assert((collection.file != NULL) == (_i != 0));
    fl_file_unref(collection.file);
    ck_assert_int_eq(fl_collection_drop(&rig.fed, "b", &collection, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "no data summary of client 'b'"));
    ck_assert_int_eq(take("b", 1, &err), FL_OK);
    ck_assert(!fl_collection_waits(&rig.fed, &rig.progress, "b"));
    ck_assert(fl_summaries_dropped(rig.fed.state_dir, "b"));
    if (_i == 0) {
        ck_assert_ptr_nonnull(strstr(rig.logged, "ignored: an operator dropped it"));
    }
    fix_all();
    ck_assert_uint_eq(n_fixed(), 3);
}

TEST(an_algorithm_without_summaries_has_none_to_drop)
{
    struct fl_collection collection = {.file = NULL};
    struct fl_err err = {0};

    begin("fedavg");
    ck_assert_int_eq(fl_collection_drop(&rig.fed, "a", &collection, &err), FL_ESTATE);
    ck_assert_int_eq(fl_collection_list(&rig.fed, NULL, NULL, &err), FL_ESTATE);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "data summaries: the configured algorithm does not use them"));
}

/* What the core asks for, as it comes. */
static int persist(enum fl_effect_type type, uint64_t round, const struct fl_client_rec *client,
                   const struct fl_participant_rec *part, struct fl_collection *summaries)
{
    const struct fl_effect effect = {.type = type,
                                     .round = round,
                                     .attempt = 1,
                                     .clients = client,
                                     .n_clients = client != NULL,
                                     .parts = part,
                                     .n_parts = part != NULL,
                                     .epoch = 4};

    return fl_persist_run(&rig.fed, &effect, summaries, NULL);
}

TEST(every_record_that_the_core_asks_for_is_on_disk)
{
    const struct fl_client_rec client = {.name = "a", .agent = "t", .samples = 5};
    uint8_t units[RIG_UNITS] = {1, 0, 1};
    struct fl_participant_rec part = {.state = FL_PARTICIPANT_SELECTED};
    struct fl_collection collection = {.file = NULL};
    struct fl_coord_resume resume;

    begin("fedmix");
    ck_assert_int_eq(persist(FL_EFF_PERSIST_SELECTION, 1, &client, &part, &collection), FL_OK);
    ck_assert_ptr_nonnull(collection.file);
    fl_file_unref(collection.file);
    part.state = FL_PARTICIPANT_PLANNED;
    part.units = units;
    ck_assert_int_eq(persist(FL_EFF_PERSIST_PLAN, 1, NULL, &part, NULL), FL_OK);
    part.state = FL_PARTICIPANT_ACCEPTED;
    ck_assert_int_eq(persist(FL_EFF_PERSIST_UPDATE, 1, NULL, &part, NULL), FL_OK);
    ck_assert_int_eq(fl_store_load(rig.fed.store, &resume, NULL), FL_OK);
    ck_assert(resume.open_round == 1 && resume.planned && resume.n_parts == 1);
    ck_assert_int_eq(resume.parts[0].state, FL_PARTICIPANT_ACCEPTED);
    ck_assert_mem_eq(resume.parts[0].units, units, sizeof(units));
    fl_store_resume_done(&resume);
    /* Behind its round it may go. */
    ck_assert_int_eq(persist(FL_EFF_PERSIST_SELECTION, 2, NULL, NULL, NULL), FL_OK);
    ck_assert_int_eq(persist(FL_EFF_FORGET_CLIENTS, 2, &client, NULL, NULL), FL_OK);
    ck_assert_int_eq(fl_store_load(rig.fed.store, &resume, NULL), FL_OK);
    ck_assert_uint_eq(resume.n_clients, 0);
    ck_assert_uint_eq(resume.epoch, 4);
    fl_store_resume_done(&resume);
    ck_assert_int_eq(persist(FL_EFF_TRACE, 2, NULL, NULL, NULL), FL_EINVAL);
}
