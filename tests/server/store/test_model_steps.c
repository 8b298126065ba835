/* The steps between models in their folder: what of them a server knows after a restart. */

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/store/model_steps.h"
#include "tests/lib/moves_rig.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

#define NEWEST 8

static struct fl_layout *layout;
static struct moves_rig server;
static const char *dir;
static char logged[2048];

static void note(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    (void)ctx;
    (void)level;
    (void)component;
    ck_assert_int_eq(fl_str_copy(logged, sizeof(logged), text), FL_OK);
}

static const struct fl_log steps_log = {.level = FL_LOG_DEBUG, .sink = note};

static void save(uint64_t from, uint64_t to)
{
    while (from < to) {
        struct fl_step step = moves_rig_step(&server, ++from);

        ck_assert_int_eq(fl_model_steps_save(dir, &step, true, NULL), FL_OK);
        fl_step_done(&step);
    }
}

static void setup(void)
{
    dir = rig_dir();
    layout = rig_layout();
    moves_rig_init(&server, layout, NULL, NEWEST + 2);
    save(0, NEWEST);
    logged[0] = '\0';
}

static void teardown(void)
{
    moves_rig_done(&server);
    fl_layout_free(layout);
    rig_remove();
}

static struct fl_versions *load(uint64_t round)
{
    struct fl_versions *v = NULL;

    ck_assert_int_eq(fl_model_steps_load(dir, layout, round, server.digests[round], &steps_log, &v),
                     FL_OK);
    ck_assert_mem_eq(fl_versions_newest(v), server.digests[round], FL_DIGEST_SIZE);
    return v;
}

/* After a start with the model of `round`, those of the rounds `oldest` to `round` are known. */
static void expect_known(uint64_t round, uint64_t oldest)
{
    struct fl_versions *v = load(round);
    uint64_t held;

    for (held = 0; held <= round; held++) {
        ck_assert_msg(moves_rig_reaches(&server, v, held, round) == (held >= oldest),
                      "model %d of %d", (int)held, (int)round);
    }
    fl_versions_unref(v);
}

static const char *path_of(uint64_t round)
{
    static char path[RIG_PATH_MAX];
    char name[32];

    (void)snprintf(name, sizeof(name), "steps/%06d.step", (int)round);
    return rig_path(path, name);
}

/* The rounds of the files, as bits; other names are an error. */
static unsigned files(void)
{
    char path[RIG_PATH_MAX];
    DIR *d = opendir(rig_path(path, "steps"));
    struct dirent *e;
    unsigned found = 0;

    ck_assert_ptr_nonnull(d);
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.') {
            ck_assert_str_eq(e->d_name + 6, ".step");
            found |= 1u << strtoul(e->d_name, NULL, 10);
        }
    }
    (void)closedir(d);
    return found;
}

TEST_CASE("steps", setup, teardown);

TEST(all_models_that_the_steps_lead_from_are_known_after_a_restart)
{
    expect_known(NEWEST, 0);
    ck_assert_str_eq(logged, "");
}

TEST(without_a_folder_only_the_newest_model_is_known)
{
    rig_remove();
    dir = rig_dir();
    expect_known(NEWEST, NEWEST);
    ck_assert_str_eq(logged, "");
    ck_assert_int_eq(fl_model_steps_clean(dir, 0, NEWEST, NULL), FL_OK);
}

TEST(a_missing_step_ends_what_is_known)
{
    ck_assert_int_eq(unlink(path_of(5)), 0);
    expect_known(NEWEST, 5);
    ck_assert_str_eq(logged, "");
}

/* In its fields, and in its moves; cut; empty; one that cannot be read. */
TEST_EACH(a_damaged_step_ends_what_is_known_and_is_logged, 5)
{
    const char *path = path_of(5);

    if (_i == 0) {
        rig_damage(path, 20, 4);
    } else if (_i == 1) {
        rig_damage(path, rig_size(path) - 9, 4);
    } else if (_i == 2) {
        rig_cut(path, rig_size(path) - 1);
    } else if (_i == 3) {
        rig_cut(path, 0);
    } else {
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    expect_known(NEWEST, 5);
    ck_assert_ptr_nonnull(strstr(logged, "what changed up to round 5 cannot be read"));
}

TEST(steps_of_another_layout_are_none)
{
    struct fl_versions *v = NULL;
    struct fl_layout *other = NULL;
    const size_t dims[] = {3};

    ck_assert_int_eq(fl_layout_create(&other), FL_OK);
    ck_assert_int_eq(fl_layout_add(other, "u", "u.w", dims, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(other, NULL), FL_OK);
    ck_assert_int_eq(
        fl_model_steps_load(dir, other, NEWEST, server.digests[NEWEST], &steps_log, &v), FL_OK);
    ck_assert_uint_eq(fl_versions_steps(v), 0);
    ck_assert_ptr_nonnull(strstr(logged, "what changed up to round 8 cannot be read"));
    fl_versions_unref(v);
    fl_layout_free(other);
}

/* A crash before the commit, or a rollback to that round. */
TEST(steps_of_rounds_after_the_committed_one_are_ignored)
{
    expect_known(5, 0);
    ck_assert_str_eq(logged, "");
}

/* The checkpoint of the last rounds was bad: they were made again, with other updates. */
TEST(steps_of_abandoned_rounds_are_not_part_of_it)
{
    struct fl_step step = moves_rig_step(&server, 7);

    /* Round 6 now ends with what was the model of round 7. */
    (void)memcpy(step.from, server.digests[6], sizeof(step.from));
    step.round = 6;
    ck_assert_int_eq(fl_model_steps_save(dir, &step, true, NULL), FL_OK);
    fl_step_done(&step);
    expect_known(NEWEST, 6);
    ck_assert_str_eq(logged, "");
}

TEST(a_round_that_moved_nothing_is_a_step_too)
{
    struct fl_versions *v;
    struct fl_step step;

    ck_assert_int_eq(
        fl_step_make(layout, server.models[NEWEST], server.models[NEWEST], &step, NULL), FL_OK);
    (void)memcpy(step.from, step.to, sizeof(step.from));
    step.round = NEWEST + 1;
    ck_assert_int_eq(fl_model_steps_save(dir, &step, true, NULL), FL_OK);
    fl_step_done(&step);
    ck_assert_int_eq(
        fl_model_steps_load(dir, layout, NEWEST + 1, server.digests[NEWEST], &steps_log, &v),
        FL_OK);
    ck_assert_uint_eq(fl_versions_steps(v), NEWEST + 1);
    ck_assert(moves_rig_reaches(&server, v, 0, NEWEST));
    fl_versions_unref(v);
}

/* The first four as one, of which the server died before it removed them, and afterwards. */
TEST_EACH(merged_steps_take_the_place_of_the_first_ones, 2)
{
    struct fl_versions *all = moves_rig_versions(&server, 0, NEWEST);
    struct fl_versions *fewer = NULL;
    const struct fl_step *first;
    struct fl_versions *v;
    uint64_t held;

    ck_assert_int_eq(fl_versions_merge(all, layout, 4, &fewer), FL_OK);
    first = fl_versions_step(fewer, 0);
    ck_assert_uint_eq(first->round, 4);
    ck_assert_int_eq(fl_model_steps_save(dir, first, true, NULL), FL_OK);
    if (_i == 1) {
        ck_assert_int_eq(fl_model_steps_clean(dir, first->round, NEWEST, NULL), FL_OK);
        ck_assert_uint_eq(files(), 0x1f0);
    }
    v = load(NEWEST);
    for (held = 0; held <= NEWEST; held++) {
        ck_assert(moves_rig_reaches(&server, v, held, NEWEST) == (held == 0 || held >= 4));
    }
    ck_assert_str_eq(logged, "");
    fl_versions_unref(v);
    fl_versions_unref(fewer);
    fl_versions_unref(all);
}

TEST(files_with_other_names_are_left_out_and_removed)
{
    static const char *const names[] = {"steps/notes",
                                        "steps/.step",
                                        "steps/5.step.tmp",
                                        "steps/8.step",
                                        "steps/0000008.step",
                                        "steps/99999999999999999999999999.step",
                                        "steps/18446744073709551617.step"};
    char path[RIG_PATH_MAX];
    size_t i;

    for (i = 0; i < ARRAY_LEN(names); i++) {
        ck_assert_int_eq(fl_fs_replace(rig_path(path, names[i]), "x", 1, false, NULL), FL_OK);
    }
    expect_known(NEWEST, 0);
    ck_assert_str_eq(logged, "");
    ck_assert_int_eq(fl_model_steps_clean(dir, 1, NEWEST, NULL), FL_OK);
    ck_assert_uint_eq(files(), 0x1fe);
}

TEST(only_the_steps_of_the_given_rounds_stay)
{
    ck_assert_int_eq(fl_model_steps_clean(dir, 3, 6, NULL), FL_OK);
    ck_assert_uint_eq(files(), 0x78);
    expect_known(6, 2);
    ck_assert_int_eq(fl_model_steps_clean(dir, 7, 6, NULL), FL_OK);
    ck_assert_uint_eq(files(), 0);
}
