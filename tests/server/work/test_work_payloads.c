/* Which payloads go down in a round: what may be fetched is what a task lists. */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "server/work/payloads.h"
#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"
#include "tests/lib/work_rig.h"

static struct work_rig rig;
static char opened[1024]; /* "name client bytes first value\n" each */

static void setup(void)
{
    work_rig_init(&rig);
}

static void teardown(void)
{
    work_rig_done(&rig);
}

static void note(void *ctx, const struct fl_payload *b)
{
    struct fl_bytes kept = fl_bytes_ref(&b->bytes);
    size_t used = strlen(opened);
    float first = 0;

    (void)ctx;
    ck_assert(fl_bytes_are(&kept));
    if (kept.blob != NULL) {
        first = fl_blob_floats(kept.blob)[0];
    } else {
        ck_assert_int_eq(fl_file_read(kept.file, 0, &first, sizeof(first)), FL_OK);
    }
    (void)snprintf(opened + used, sizeof(opened) - used, "%s %s %llu %g%s\n", b->name,
                   b->client != NULL ? b->client : "*", (unsigned long long)fl_bytes_len(&kept),
                   (double)first, b->digest != NULL ? " digest" : "");
    fl_bytes_done(&kept);
    ck_assert(!fl_bytes_are(&kept) && fl_bytes_len(&kept) == 0);
}

static const char *open_in(size_t members, uint64_t epoch)
{
    const struct fl_round_size size = {.members = (uint32_t)members, .epoch = epoch};

    opened[0] = '\0';
    ck_assert_int_eq(fl_payloads_open(&rig.fed, &rig.progress, 2, &size, note, NULL), FL_OK);
    return opened;
}

static const char *open_for(size_t members)
{
    return open_in(members, 1);
}

TEST_CASE("all", setup, teardown);

TEST(the_model_is_what_the_last_committed_round_left)
{
    work_rig_open(&rig, "fedavg");
    ck_assert_str_eq(open_for(3), "model * 35328 0.5\n");
    work_rig_rounds(&rig, 1, 2);
    work_rig_aggregate(&rig, 9); /* Not committed: nobody trains from it. */
    ck_assert_str_eq(open_for(3), "model * 35328 2\n");
}

TEST(a_vector_is_told_as_the_algorithm_says)
{
    work_rig_open(&rig, "scaffold");
    work_rig_rounds(&rig, 1, 1);
    /* The sum of all controls is 2; c is its mean over the members. */
    ck_assert_str_eq(open_for(4), "model * 35328 1\ncontrol * 35328 0.5\n");
    work_rig_close(&rig);
    work_rig_open(&rig, "igfl_c");
    work_rig_rounds(&rig, 2, 2);
    ck_assert_str_eq(open_for(4), "model * 35328 2\ndisplacement * 35328 4\n");
}

TEST(the_sum_of_controls_is_zero_where_an_epoch_begins)
{
    work_rig_open(&rig, "scaffold");
    work_rig_rounds(&rig, 1, 1);
    ck_assert_str_eq(open_in(4, 1), "model * 35328 1\ncontrol * 35328 0.5\n");
    ck_assert_str_eq(open_in(4, 2), "model * 35328 1\ncontrol * 35328 0\n");
    /* And what the round adds up begins with that. */
    ck_assert_double_eq(fl_blob_floats(rig.progress.committed.model.state[0])[7], 0);
    work_rig_close(&rig);
    work_rig_open(&rig, "igfl_c"); /* Nothing that clients keep is added up. */
    work_rig_rounds(&rig, 2, 2);
    ck_assert_str_eq(open_in(4, 2), "model * 35328 2\ndisplacement * 35328 4\n");
}

static void count(void *ctx, const struct fl_payload *b)
{
    (void)b;
    ++*(size_t *)ctx;
}

TEST(without_memory_for_what_is_told_nothing_is_told_of_it)
{
    const struct fl_round_size size = {.members = 4};
    size_t n = 0;
    int rv;

    work_rig_open(&rig, "scaffold");
    work_rig_rounds(&rig, 1, 1);
    failmalloc_start(0, true);
    rv = fl_payloads_open(&rig.fed, &rig.progress, 2, &size, count, &n);
    (void)failmalloc_stop();
    ck_assert_int_eq(rv, FL_ENOMEM);
    ck_assert_uint_eq(n, 1);
}

TEST(every_client_that_has_one_is_offered_its_own_personal_model)
{
    static const char *const names[] = {"a", "b"};

    work_rig_open(&rig, "fedmcsa");
    work_rig_aggregate(&rig, 1);
    work_rig_mix(&rig, 1, names, 2, 7);
    ck_assert(!fl_payloads_has_personal_model(&rig.progress, "a"));
    ck_assert_int_eq(work_rig_commit(&rig, 1, NULL), FL_OK);
    ck_assert_str_eq(open_for(2),
                     "model * 35328 1\npersonal_model a 35328 7\npersonal_model b 35328 7\n");
    ck_assert(fl_payloads_has_personal_model(&rig.progress, "a"));
    ck_assert(fl_payloads_has_personal_model(&rig.progress, "b"));
    ck_assert(!fl_payloads_has_personal_model(&rig.progress, "c"));
}

TEST(summaries_are_there_once_they_are_fixed)
{
    char path[RIG_PATH_MAX];
    const float bytes[2] = {3, 4};

    work_rig_open(&rig, "fedmix");
    ck_assert_str_eq(open_for(2), "model * 35328 0.5\n");
    ck_assert_int_eq(fl_fs_replace(rig_path(path, "all"), bytes, sizeof(bytes), false, NULL),
                     FL_OK);
    ck_assert_int_eq(fl_file_open(path, &rig.progress.collection.file, NULL), FL_OK);
    ck_assert_str_eq(open_for(2), "model * 35328 0.5\nmixup * 8 3 digest\n");
}

/* What may be fetched by somebody is what a task can list, in its order. */
TEST_EACH(the_list_is_the_model_what_the_solver_takes_and_the_personal_model, 4)
{
    static const struct {
        const char *algorithm, *names;
    } want[] = {
        {"fedavg", "model personal_model "},
        {"scaffold", "model control personal_model "},
        {"igfl_c", "model displacement personal_model "},
        {"fedmix", "model mixup personal_model "},
    };
    struct fl_payload_name list[FL_PAYLOADS_MAX];
    char names[256] = "";
    size_t n;
    size_t i;

    work_rig_open(&rig, want[_i].algorithm);
    n = fl_payloads_of(rig.strategy, list);
    for (i = 0; i < n; i++) {
        size_t used = strlen(names);

        (void)snprintf(names + used, sizeof(names) - used, "%s ", list[i].name);
        ck_assert((list[i].kind == FL_PAYLOAD_IS_PERSONAL_MODEL) == (i == n - 1));
    }
    ck_assert_str_eq(names, want[_i].names);
}

/* As a Task lists them: the length of what is served replaces the 0 of the data summaries. */
TEST_EACH(a_task_lists_them_with_their_lengths_and_the_personal_model_for_whom_there_is_one, 2)
{
    static const char *const algorithms[] = {"scaffold", "fedmix"};
    struct fl_wire_payload list[FL_PAYLOADS_MAX];
    uint64_t model;

    work_rig_open(&rig, algorithms[_i]);
    model = fl_layout_count(rig.layout) * sizeof(float);
    ck_assert_uint_eq(fl_payloads_list(rig.strategy, rig.layout, /* personal_model= */ false, list),
                      2);
    ck_assert_str_eq(list[0].name, "model");
    ck_assert_uint_eq(list[0].bytes, model);
    ck_assert_str_eq(list[1].name, _i == 0 ? "control" : "mixup");
    ck_assert_uint_eq(list[1].bytes, _i == 0 ? model : 0);
    ck_assert(!list[1].has_digest);
    ck_assert_uint_eq(fl_payloads_list(rig.strategy, rig.layout, /* personal_model= */ true, list),
                      3);
    ck_assert_str_eq(list[2].name, "personal_model");
    ck_assert_uint_eq(list[2].bytes, model);
}
