#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"
#include "server/store/store.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

static const char *const names[] = {"momentum", "second"};

/* Check's own macro promotes to double, which the build forbids. */
static bool same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static struct fl_layout *layout;
static const char *dir;
static float *theta;
static float *state[2];
static const struct fl_models_tag tag = {.database = "00112233445566778899aabbccddeeff"};
static const struct fl_models_tag other_tag = {.database = "ffeeddccbbaa99887766554433221100"};
static struct fl_models_found found;

static void setup(void)
{
    size_t i;

    dir = rig_dir();
    layout = rig_layout();
    theta = calloc(fl_layout_count(layout), sizeof(*theta));
    ck_assert_ptr_nonnull(theta);
    for (i = 0; i < 2; i++) {
        state[i] = calloc(fl_layout_count(layout), sizeof(**state));
        ck_assert_ptr_nonnull(state[i]);
    }
}

static void teardown(void)
{
    free(theta);
    free(state[0]);
    free(state[1]);
    fl_layout_free(layout);
    rig_remove();
}

static void fill(float base)
{
    size_t i;

    for (i = 0; i < fl_layout_count(layout); i++) {
        theta[i] = base + (float)i;
        state[0][i] = base + 0.5f;
        state[1][i] = base + 0.25f;
    }
}

static void save(uint64_t round, size_t n_state)
{
    const float *const vectors[] = {state[0], state[1]};
    struct fl_err err = {0};

    fill((float)round);
    ck_assert_msg(
        fl_models_save(&(struct fl_models_checkpoint){dir, round, &tag, layout, names, n_state},
                       theta, vectors, true, &err) == FL_OK,
        "%s", err.msg);
}

static int load(uint64_t round, struct fl_err *err)
{
    fill(-1.0f);
    (void)memset(&found, 0, sizeof(found));
    return fl_models_load(&(struct fl_models_checkpoint){dir, round, &tag, layout, names, 2}, theta,
                          state, &found, err);
}

static bool there(uint64_t round, const char *name)
{
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(fl_models_path(dir, round, name, path, sizeof(path)), FL_OK);
    return fl_fs_exists(path);
}

TEST_CASE("models", setup, teardown);

TEST(a_checkpoint_comes_back_with_its_state)
{
    char path[RIG_PATH_MAX];
    char want[RIG_PATH_MAX];

    save(7, 2);
    ck_assert_int_eq(load(7, NULL), FL_OK);
    ck_assert(same_float(theta[100], 107.0f));
    ck_assert(same_float(state[0][100], 7.5f));
    ck_assert(same_float(state[1][100], 7.25f));
    ck_assert_int_eq(fl_models_path(dir, 7, NULL, path, sizeof(path)), FL_OK);
    ck_assert_str_eq(path, rig_path(want, "models/round-000007.safetensors"));
    ck_assert_int_eq(fl_models_path(dir, 7, "momentum", path, sizeof(path)), FL_OK);
    ck_assert_str_eq(path, rig_path(want, "models/round-000007.momentum.safetensors"));
    ck_assert_int_eq(fl_models_path(dir, 7, NULL, path, 8), FL_ELIMIT);
}

/* --- in parts --- */

static struct fl_models_draft *begin(uint64_t round)
{
    struct fl_models_draft *draft = NULL;
    struct fl_err err = {0};

    ck_assert_msg(
        fl_models_draft_begin(&(struct fl_models_checkpoint){dir, round, &tag, layout, names, 2},
                              true, &draft, &err) == FL_OK,
        "%s", err.msg);
    return draft;
}

/* All entries but the last `missing`, some at a time. */
static void write_parts(struct fl_models_draft *draft, size_t missing)
{
    const float *const vectors[] = {state[0], state[1]};
    size_t count = fl_layout_count(layout) - missing;
    size_t at;

    for (at = 0; at < count; at += 1000) {
        fl_models_draft_write(draft, theta, vectors, at, count - at < 1000 ? count - at : 1000);
    }
}

static int seal(struct fl_models_draft *draft, uint64_t round, struct fl_err *err)
{
    const float *const vectors[] = {state[0], state[1]};

    return fl_models_draft_seal(draft, round, &tag, theta, vectors, err);
}

static void read_files(uint64_t round, struct fl_buf files[3])
{
    char path[RIG_PATH_MAX];
    size_t i;

    for (i = 0; i < 3; i++) {
        ck_assert_int_eq(
            fl_models_path(dir, round, i == 0 ? NULL : names[i - 1], path, sizeof(path)), FL_OK);
        ck_assert_int_eq(fl_fs_read(path, 1 << 28, &files[i], NULL), FL_OK);
    }
}

TEST(a_checkpoint_in_parts_is_the_one_that_is_saved_at_once_bit_for_bit)
{
    struct fl_models_draft *draft;
    struct fl_buf once[3];
    struct fl_buf parts[3];
    size_t i;

    save(7, 2);
    read_files(7, once);
    rig_remove();
    dir = rig_dir();
    draft = begin(7);
    write_parts(draft, 0);
    ck_assert(!there(7, NULL));
    ck_assert_int_eq(seal(draft, 7, NULL), FL_OK);
    fl_models_draft_free(draft);
    read_files(7, parts);
    for (i = 0; i < 3; i++) {
        ck_assert_uint_eq(parts[i].len, once[i].len);
        ck_assert_mem_eq(parts[i].data, once[i].data, once[i].len);
        fl_buf_done(&parts[i]);
        fl_buf_done(&once[i]);
    }
    ck_assert_int_eq(load(7, NULL), FL_OK);
}

static int count_file(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    unsigned *n = ctx;

    (void)folder;
    (void)err;
    *n += name[0] != '.'; /* "." and ".." */
    return FL_OK;
}

static unsigned files_of_models(void)
{
    char path[RIG_PATH_MAX];
    unsigned n = 0;

    ck_assert_int_eq(fl_fs_each(rig_path(path, "models"), count_file, &n, NULL), FL_OK);
    return n;
}

TEST(a_draft_that_is_not_whole_or_of_another_round_is_not_sealed_and_leaves_nothing)
{
    const float *const vectors[] = {state[0], state[1]};
    struct fl_models_draft *draft;

    fill(7);
    draft = begin(7);
    write_parts(draft, 1);
    ck_assert_int_eq(seal(draft, 7, NULL), FL_ESTATE);
    fl_models_draft_free(draft);
    draft = begin(7);
    write_parts(draft, 0);
    ck_assert_int_eq(seal(draft, 8, NULL), FL_ESTATE);
    fl_models_draft_free(draft);
    draft = begin(7);
    fl_models_draft_write(draft, theta, vectors, 1, fl_layout_count(layout) - 1);
    fl_models_draft_write(draft, theta, vectors, 0, 1);
    ck_assert_int_eq(seal(draft, 7, NULL), FL_ESTATE);
    fl_models_draft_free(draft);
    ck_assert(!there(7, NULL));
    ck_assert_uint_eq(files_of_models(), 0);
}

/* Somebody took its file away, say: what is saved in its place is whole. */
TEST(a_draft_whose_file_is_gone_is_not_sealed_and_the_checkpoint_can_be_saved)
{
    struct fl_models_draft *draft;
    char path[RIG_PATH_MAX];

    fill(7);
    draft = begin(7);
    write_parts(draft, 0);
    ck_assert_int_eq(fl_fs_remove(rig_path(path, "models/round-000007.safetensors.tmp")), FL_OK);
    ck_assert_int_ne(seal(draft, 7, NULL), FL_OK);
    ck_assert_int_eq(seal(draft, 7, NULL), FL_ESTATE);
    save(7, 2);
    fl_models_draft_free(draft);
    ck_assert_int_eq(load(7, NULL), FL_OK);
    ck_assert_uint_eq(files_of_models(), 3);
}

TEST(a_state_vector_that_was_never_saved_is_zero_and_said_to_lack)
{
    save(0, 1);
    ck_assert_int_eq(load(0, NULL), FL_OK);
    ck_assert(same_float(state[0][5], 0.5f));
    ck_assert(same_float(state[1][5], 0.0f));
    ck_assert_uint_eq(found.lacks, 2);
    save(1, 2);
    ck_assert_int_eq(load(1, NULL), FL_OK);
    ck_assert_uint_eq(found.lacks, 0);
}

TEST(a_checkpoint_says_under_what_it_was_made_and_what_it_mixed)
{
    struct fl_models_tag more = tag;

    more.made = "3 of some meaning";
    more.personal_models = "2 00112233445566ff";
    fill(9.0f);
    ck_assert_int_eq(fl_models_save(&(struct fl_models_checkpoint){dir, 9, &more, layout, NULL, 0},
                                    theta, NULL, true, NULL),
                     FL_OK);
    ck_assert_int_eq(load(9, NULL), FL_OK);
    ck_assert_str_eq(found.made, more.made);
    ck_assert_str_eq(found.personal_models, more.personal_models);
    save(8, 2);
    ck_assert_int_eq(load(8, NULL), FL_OK);
    ck_assert_str_eq(found.made, "");
    ck_assert_str_eq(found.personal_models, "");
}

/* Saved at once or as a draft (_i 1): "abcdefg" beside the model of round 4. */
static void save_kept(bool draft)
{
    struct fl_models_tag keeping = tag;
    struct fl_models_checkpoint c = {dir, 4, &keeping, layout, NULL, 0};
    struct fl_models_draft *d = NULL;
    struct fl_blob *kept = NULL;

    keeping.keeps = true;
    fill(4.0f);
    if (draft) {
        ck_assert_int_eq(fl_models_draft_begin(&c, true, &d, NULL), FL_OK);
        fl_models_draft_write(d, theta, NULL, 0, fl_layout_count(layout));
    }
    ck_assert_int_eq(fl_blob_create(7, &kept), FL_OK);
    (void)memcpy(fl_blob_fill(kept), "abcdefg", 7);
    keeping.kept = kept;
    ck_assert_int_eq(draft ? fl_models_draft_seal(d, 4, &keeping, theta, NULL, NULL)
                           : fl_models_save(&c, theta, NULL, true, NULL),
                     FL_OK);
    fl_models_draft_free(d);
    fl_blob_unref(kept);
}

static int load_kept(uint64_t round, struct fl_blob **ret, struct fl_err *err)
{
    return fl_models_load_kept(&(struct fl_models_checkpoint){dir, round, &tag, layout, NULL, 0},
                               100, ret, err);
}

TEST_EACH(bytes_beside_the_vectors_come_back_with_their_checkpoint, 2)
{
    struct fl_blob *kept = NULL;

    save_kept(_i == 1);
    ck_assert_int_eq(load(4, NULL), FL_OK);
    ck_assert_int_eq(load_kept(4, &kept, NULL), FL_OK);
    ck_assert_uint_eq(fl_blob_len(kept), 7);
    ck_assert_mem_eq(fl_blob_data(kept), "abcdefg", 7);
    fl_blob_unref(kept);
    save(5, 2);
    ck_assert_int_eq(load_kept(5, &kept, NULL), FL_OK);
    ck_assert_ptr_null(kept);
}

/* Missing, damaged, of another save. */
TEST_EACH(bytes_that_do_not_belong_to_their_checkpoint_are_damage, 3)
{
    struct fl_blob *kept = NULL;
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    save_kept(false);
    ck_assert_int_eq(fl_models_path(dir, 4, "kept", path, sizeof(path)), FL_OK);
    if (_i == 0) {
        ck_assert_int_eq(unlink(path), 0);
    } else if (_i == 1) {
        rig_damage(path, rig_size(path) - 4, 3);
    } else {
        ck_assert_int_eq(fl_st_save_sealed(path, layout, theta, NULL, 0, false, NULL), FL_OK);
    }
    ck_assert_int_eq(load_kept(4, &kept, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "round-000004.kept.safetensors"));
}

TEST(bytes_are_pruned_with_their_checkpoint)
{
    char path[RIG_PATH_MAX];

    save_kept(false);
    ck_assert_int_eq(fl_models_path(dir, 4, "kept", path, sizeof(path)), FL_OK);
    save(5, 2);
    ck_assert(fl_fs_exists(path));
    ck_assert_int_eq(fl_models_prune(dir, &tag, 5, 1, 0, NULL), FL_OK);
    ck_assert(!fl_fs_exists(path));
}

TEST(a_missing_checkpoint_is_not_found)
{
    struct fl_err err = {0};

    ck_assert_int_eq(load(3, &err), FL_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.msg, "round-000003.safetensors' is missing"));
}

TEST(a_damaged_checkpoint_is_refused_and_the_older_one_loads)
{
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    save(1, 2);
    save(2, 2);
    save(3, 2);
    ck_assert_int_eq(fl_models_path(dir, 3, NULL, path, sizeof(path)), FL_OK);
    rig_cut(path, rig_size(path) - 4);
    ck_assert_int_eq(load(3, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "round-000003.safetensors"));
    ck_assert_int_eq(fl_models_path(dir, 2, NULL, path, sizeof(path)), FL_OK);
    rig_damage(path, 0, 16);
    ck_assert_int_eq(load(2, &err), FL_EFORMAT);
    rig_cut(path, 0);
    ck_assert_int_eq(load(2, &err), FL_EFORMAT);
    ck_assert_int_eq(load(1, NULL), FL_OK);
    ck_assert(same_float(theta[0], 1.0f));
    /* A damaged state vector counts as much as a damaged model. */
    ck_assert_int_eq(fl_models_path(dir, 1, "momentum", path, sizeof(path)), FL_OK);
    rig_cut(path, 20);
    ck_assert_int_eq(load(1, NULL), FL_EFORMAT);
}

TEST(a_checkpoint_under_the_name_of_another_round_is_refused)
{
    struct fl_err err = {0};
    char from[RIG_PATH_MAX];
    char to[RIG_PATH_MAX];

    save(4, 0);
    ck_assert_int_eq(fl_models_path(dir, 4, NULL, from, sizeof(from)), FL_OK);
    ck_assert_int_eq(fl_models_path(dir, 5, NULL, to, sizeof(to)), FL_OK);
    ck_assert_int_eq(rename(from, to), 0);
    ck_assert_int_eq(load(5, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "is of round '4'"));
}

TEST(a_checkpoint_of_another_model_is_refused)
{
    struct fl_layout *mine = layout;
    const size_t dims[] = {7};
    float small[7] = {0};
    struct fl_err err = {0};

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "a", "a.w", dims, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    ck_assert_int_eq(fl_models_save(&(struct fl_models_checkpoint){dir, 1, &tag, layout, NULL, 0},
                                    small, NULL, false, NULL),
                     FL_OK);
    fl_layout_free(layout);
    layout = mine;
    ck_assert_int_eq(load(1, &err), FL_ESHAPE);
}

TEST(saving_on_a_full_disk_keeps_the_old_checkpoint)
{
    const float *const vectors[] = {state[0]};
    struct fl_err err = {0};

    save(1, 1);
    fill(50.0f);
    rig_limit_files(20000);
    ck_assert_int_ne(fl_models_save(&(struct fl_models_checkpoint){dir, 1, &tag, layout, names, 1},
                                    theta, vectors, true, &err),
                     FL_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "round-000001"));
    rig_limit_files(0);
    ck_assert_int_eq(load(1, NULL), FL_OK);
    ck_assert(same_float(theta[0], 1.0f));
    ck_assert(same_float(state[0][0], 1.5f));
}

TEST(pruning_keeps_the_newest_and_every_nth)
{
    uint64_t t;

    for (t = 0; t <= 12; t++) {
        save(t, t % 2);
    }
    ck_assert_int_eq(fl_models_prune(dir, &tag, 12, 3, 5, NULL), FL_OK);
    for (t = 0; t <= 12; t++) {
        ck_assert_msg(there(t, NULL) == (t >= 10 || t % 5 == 0), "round %d", (int)t);
    }
    ck_assert(there(11, "momentum") && !there(9, "momentum") && there(5, "momentum"));
    /* Rank counts, not distance; and the newest stays even with keep 0. */
    ck_assert_int_eq(fl_models_prune(dir, &tag, 12, 4, 0, NULL), FL_OK);
    ck_assert(there(5, NULL) && !there(0, NULL));
    ck_assert_int_eq(fl_models_prune(dir, &tag, 12, 0, 0, NULL), FL_OK);
    ck_assert(there(12, NULL) && !there(11, NULL) && !there(11, "momentum"));
}

TEST(checkpoints_newer_than_the_last_commit_are_left_alone)
{
    char path[RIG_PATH_MAX];

    save(1, 1);
    save(2, 1);
    save(3, 1);
    ck_assert_int_eq(
        fl_fs_replace(rig_path(path, "models/round-000003.safetensors.tmp"), "x", 1, false, NULL),
        FL_OK);
    ck_assert_int_eq(fl_fs_replace(rig_path(path, "models/README"), "x", 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_models_prune(dir, &tag, 2, 1, 0, NULL), FL_OK);
    ck_assert(!there(1, NULL) && there(2, "momentum"));
    ck_assert(there(3, NULL) && there(3, "momentum"));
    ck_assert(!fl_fs_exists(rig_path(path, "models/round-000003.safetensors.tmp")));
    /* What is not ours stays. */
    ck_assert(fl_fs_exists(rig_path(path, "models/README")));
}

TEST(what_another_database_wrote_is_neither_loaded_nor_removed)
{
    struct fl_err err = {0};

    fill(1.0f);
    ck_assert_int_eq(
        fl_models_save(&(struct fl_models_checkpoint){dir, 1, &other_tag, layout, NULL, 0}, theta,
                       NULL, true, NULL),
        FL_OK);
    save(2, 0);
    save(3, 0);
    ck_assert_int_eq(load(1, &err), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(err.msg, "written by another state database"));
    ck_assert(fl_models_is_bad(FL_ESTATE));
    ck_assert_int_eq(fl_models_prune(dir, &tag, 3, 1, 0, NULL), FL_OK);
    ck_assert(there(1, NULL) && !there(2, NULL) && there(3, NULL));
}

TEST(a_state_vector_that_was_saved_and_is_gone_is_damage)
{
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    save(4, 2);
    ck_assert_int_eq(load(4, NULL), FL_OK);
    ck_assert_int_eq(fl_models_path(dir, 4, "second", path, sizeof(path)), FL_OK);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(load(4, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "round-000004.second.safetensors' is missing"));
}

TEST(a_state_vector_of_another_save_is_damage)
{
    const float *const vectors[] = {state[0], state[1]};
    struct fl_err err = {0};
    char from[RIG_PATH_MAX];
    char to[RIG_PATH_MAX];

    save(4, 1);
    ck_assert_int_eq(fl_models_path(dir, 4, "momentum", from, sizeof(from)), FL_OK);
    ck_assert_int_eq(rename(from, rig_path(to, "models/kept")), 0);
    fill(9.0f);
    ck_assert_int_eq(fl_models_save(&(struct fl_models_checkpoint){dir, 4, &tag, layout, names, 1},
                                    theta, vectors, true, NULL),
                     FL_OK);
    ck_assert_int_eq(rename(to, from), 0);
    ck_assert_int_eq(load(4, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "does not belong to the model of that round"));
}

TEST_EACH(a_flipped_bit_of_any_file_is_damage, 3)
{
    const char *const which[] = {NULL, "momentum", "second"};
    char path[RIG_PATH_MAX];
    struct fl_buf file;
    size_t at;

    save(6, 2);
    ck_assert_int_eq(fl_models_path(dir, 6, which[_i], path, sizeof(path)), FL_OK);
    ck_assert_int_eq(fl_fs_read(path, 1 << 20, &file, NULL), FL_OK);
    /* All of the header, some of the data. */
    for (at = 0; at < file.len; at += at < 1000 ? 1 : 997) {
        int rv;

        file.data[at] ^= (uint8_t)(1u << (at % 8));
        ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
        rv = load(6, NULL);
        ck_assert_msg(fl_models_is_bad(rv), "byte %zu: %d", at, rv);
        file.data[at] ^= (uint8_t)(1u << (at % 8));
    }
    ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
    ck_assert_int_eq(load(6, NULL), FL_OK);
    fl_buf_done(&file);
}

TEST_EACH(a_value_that_is_not_finite_is_damage, 2)
{
    const float *const vectors[] = {state[0], state[1]};
    struct fl_err err = {0};

    fill(1.0f);
    if (_i == 0) {
        theta[77] = (float)NAN;
    } else {
        state[1][3] = (float)INFINITY;
    }
    ck_assert_int_eq(fl_models_save(&(struct fl_models_checkpoint){dir, 2, &tag, layout, names, 2},
                                    theta, vectors, true, NULL),
                     FL_OK);
    ck_assert_int_eq(load(2, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "not finite"));
}

/* Of another program, say: the tensors, and the round. */
TEST(a_checkpoint_without_its_metadata_is_damaged)
{
    const struct fl_st_meta meta[] = {{"fl.round", "3"}};
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];
    struct fl_buf file;

    save(1, 0); /* Makes the folder. */
    fill(3.0f);
    ck_assert_int_eq(fl_st_header(layout, meta, 1, &file), FL_OK);
    file.max = SIZE_MAX;
    ck_assert_int_eq(fl_buf_add(&file, theta, fl_layout_count(layout) * sizeof(*theta)), FL_OK);
    ck_assert_int_eq(fl_models_path(dir, 3, NULL, path, sizeof(path)), FL_OK);
    ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
    fl_buf_done(&file);
    ck_assert_int_eq(load(3, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "its checksum is missing"));
    ck_assert_int_eq(fl_st_save_sealed(path, layout, theta, meta, 1, false, NULL), FL_OK);
    ck_assert_int_eq(load(3, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "its database is missing"));
    ck_assert_int_eq(fl_models_prune(dir, &tag, 4, 1, 0, NULL), FL_OK);
    ck_assert(there(3, NULL)); /* It is not ours to remove. */
}

TEST(an_error_of_reading_is_not_damage)
{
    struct rlimit limit = {0};
    struct rlimit none;
    char path[RIG_PATH_MAX];
    int rv;

    save(5, 2);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    rv = load(5, NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_msg(rv != FL_OK && rv != FL_ENOENT && !fl_models_is_bad(rv), "%d", rv);
    ck_assert_int_eq(fl_models_path(dir, 5, "momentum", path, sizeof(path)), FL_OK);
    ck_assert_int_eq(chmod(path, 0), 0);
    rig_drop_root();
    rv = load(5, NULL);
    rig_regain_root();
    ck_assert_int_eq(rv, FL_EPERM);
    ck_assert(!fl_models_is_bad(rv));
}

TEST(bad_files_are_kept_aside_and_their_number_is_bounded)
{
    uint64_t *rounds = NULL;
    char path[RIG_PATH_MAX];
    char name[64];
    size_t n = 0;
    uint64_t t;

    for (t = 1; t <= FL_MODELS_QUARANTINED / 2 + 1; t++) {
        save(t, 1);
        ck_assert_int_eq(fl_models_quarantine(dir, t, NULL), FL_OK);
        ck_assert(!there(t, NULL) && !there(t, "momentum"));
    }
    ck_assert_int_eq(fl_models_prune(dir, &tag, 100, 1, 0, NULL), FL_OK);
    for (t = 1, n = 0; t <= FL_MODELS_QUARANTINED + 2; t++) {
        (void)snprintf(name, sizeof(name), "models/round-%06u.safetensors.bad-%u",
                       (unsigned)((t + 1) / 2), (unsigned)t);
        n += fl_fs_exists(rig_path(path, name));
        (void)snprintf(name, sizeof(name), "models/round-%06u.momentum.safetensors.bad-%u",
                       (unsigned)((t + 1) / 2), (unsigned)t);
        n += fl_fs_exists(rig_path(path, name));
    }
    ck_assert_uint_eq(n, FL_MODELS_QUARANTINED);
    save(3, 0);
    save(30, 0);
    ck_assert_int_eq(fl_models_list(dir, &rounds, &n, NULL), FL_OK);
    ck_assert(n == 2 && rounds[0] == 30 && rounds[1] == 3);
    free(rounds);
}

TEST(pruning_a_folder_that_is_not_there_is_fine)
{
    ck_assert_int_eq(fl_models_prune(dir, &tag, 2, 10, 0, NULL), FL_OK);
}
