/* Personalized models: files that are there as a whole or not at all. */

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/store/store_files.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

#define MODEL  5000
#define FILE_3 "personal_models/000003.mix"

static const char *const names[] = {"ant", "bee", "cat"};
static struct fl_layout *layout;
static const char *dir;
static uint8_t model[3][MODEL];

static void setup(void)
{
    struct fl_store *s = NULL;
    struct fl_err err = {0};
    size_t i;

    dir = rig_dir();
    layout = rig_layout();
    for (i = 0; i < sizeof(model); i++) {
        model[i / MODEL][i % MODEL] = (uint8_t)(i * 7 + i / MODEL);
    }
    ck_assert_msg(fl_store_open(dir, "fed", layout, FL_DURABLE_PROCESS, &s, &err) == FL_OK, "%s",
                  err.msg); /* makes the folders */
    fl_store_close(s);
}

static void teardown(void)
{
    fl_layout_free(layout);
    rig_remove();
}

/* As the aggregation pass does: of each span all clients in turn. */
static struct fl_personal_models_writer *write_up_to(uint64_t round, size_t n, uint64_t end)
{
    struct fl_personal_models_writer *w = NULL;
    struct fl_err err = {0};
    uint64_t at;
    size_t i;

    ck_assert_msg(fl_personal_models_create(dir, round, names, n, MODEL, &w, &err) == FL_OK, "%s",
                  err.msg);
    for (at = 0; at < end; at += 500) {
        for (i = 0; i < n; i++) {
            ck_assert_int_eq(fl_personal_models_write(w, i, at, model[i] + at, 500, &err), FL_OK);
        }
    }
    return w;
}

static void publish(uint64_t round, size_t n)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_personal_models_publish(write_up_to(round, n, MODEL), &err) == FL_OK, "%s",
                  err.msg);
}

static struct fl_personal_models *open_round(uint64_t round)
{
    struct fl_personal_models *m = NULL;
    struct fl_err err = {0};

    ck_assert_msg(fl_personal_models_open(dir, round, MODEL, &m, &err) == FL_OK, "%s", err.msg);
    return m;
}

static int try_open(uint64_t round, uint64_t bytes)
{
    struct fl_personal_models *m = NULL;
    struct fl_err err = {0};
    int rv = fl_personal_models_open(dir, round, bytes, &m, &err);

    fl_personal_models_close(m);
    ck_assert(rv == FL_OK || err.msg[0] != '\0');
    return rv;
}

static bool exists(const char *name)
{
    char path[RIG_PATH_MAX];

    return fl_fs_exists(rig_path(path, name));
}

TEST_CASE("files", setup, teardown);

TEST(each_client_gets_its_own_personal_model)
{
    struct fl_personal_models *m;
    uint8_t got[MODEL];
    size_t i;

    publish(3, 3);
    m = open_round(3);
    ck_assert_uint_eq(fl_personal_models_count(m), 3);
    for (i = 0; i < 3; i++) {
        struct fl_file *f = fl_personal_models_file(m, fl_personal_models_find(m, names[i]));

        ck_assert_str_eq(fl_personal_models_name(m, i), names[i]);
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fl_file_size(f), MODEL);
        ck_assert_int_eq(fl_file_read(f, 0, got, MODEL), FL_OK);
        ck_assert_mem_eq(got, model[i], MODEL);
        ck_assert_int_eq(fl_file_read(f, MODEL - 10, got, 10), FL_OK);
        ck_assert_mem_eq(got, model[i] + MODEL - 10, 10);
        /* Not a byte of the neighbour's. */
        ck_assert_int_eq(fl_file_read(f, MODEL - 10, got, 11), FL_EFORMAT);
        ck_assert_int_eq(fl_file_read(f, MODEL + 1, got, 0), FL_EFORMAT);
        fl_file_unref(f);
    }
    ck_assert_uint_eq(fl_personal_models_find(m, "bea"), 3);
    ck_assert_uint_eq(fl_personal_models_find(m, ""), 3);
    ck_assert_uint_eq(fl_personal_models_find(m, "dog"), 3);
    fl_personal_models_close(m);
}

TEST(a_personal_model_outlives_its_removal_while_it_is_read)
{
    struct fl_personal_models *m;
    struct fl_file *f;
    uint8_t got[MODEL];

    publish(3, 2);
    m = open_round(3);
    f = fl_personal_models_file(m, 1);
    fl_personal_models_close(m);
    ck_assert_int_eq(fl_personal_models_clean(dir, 0, 0, NULL), FL_OK);
    ck_assert(!exists(FILE_3));
    ck_assert_int_eq(fl_file_read(f, 0, got, MODEL), FL_OK);
    ck_assert_mem_eq(got, model[1], MODEL);
    fl_file_unref(f);
    fl_file_unref(NULL);
    fl_personal_models_close(NULL);
}

TEST(a_round_without_personal_models_has_none)
{
    ck_assert_int_eq(try_open(3, MODEL), FL_ENOENT);
    publish(3, 0);
    ck_assert_int_eq(try_open(3, MODEL), FL_OK);
    ck_assert_int_eq(try_open(2, MODEL), FL_ENOENT);
}

TEST(what_is_not_whole_is_not_there)
{
    struct fl_personal_models_writer *w = write_up_to(3, 2, MODEL - 500);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_personal_models_publish(w, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "personalized model 0 has 4500 of 5000 bytes");
    ck_assert_int_eq(try_open(3, MODEL), FL_ENOENT);
    ck_assert(!exists(FILE_3 ".tmp"));
    fl_personal_models_abandon(write_up_to(3, 2, 1000));
    fl_personal_models_abandon(NULL);
    ck_assert_int_eq(try_open(3, MODEL), FL_ENOENT);
    ck_assert(!exists(FILE_3 ".tmp"));
}

TEST(bytes_come_once_and_in_order)
{
    struct fl_personal_models_writer *w = write_up_to(3, 2, 1000);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_personal_models_write(w, 1, 1500, model[1], 500, &err), FL_ERANGE);
    ck_assert_int_eq(fl_personal_models_write(w, 1, 500, model[1], 500, &err), FL_ERANGE);
    ck_assert_int_eq(fl_personal_models_write(w, 1, 1000, model[1], MODEL, &err), FL_ERANGE);
    ck_assert_str_eq(err.msg, "personalized model 1 goes on at byte 1000 of 5000, not at 1000");
    fl_personal_models_abandon(w);
}

/* The old set stays the valid one until the new one is published; then both are there. */
TEST(a_new_set_does_not_touch_the_old_one)
{
    struct fl_personal_models_writer *w;
    struct fl_personal_models *m;

    publish(3, 3);
    w = write_up_to(4, 2, 2500);
    m = open_round(3);
    ck_assert_uint_eq(fl_personal_models_count(m), 3);
    fl_personal_models_close(m);
    ck_assert_int_eq(try_open(4, MODEL), FL_ENOENT);
    fl_personal_models_abandon(w);
    publish(4, 2);
    ck_assert_int_eq(try_open(3, MODEL), FL_OK);
    /* The commit says which of them counts. */
    ck_assert_int_eq(fl_personal_models_clean(dir, 4, 4, NULL), FL_OK);
    ck_assert_int_eq(try_open(3, MODEL), FL_ENOENT);
    ck_assert_int_eq(try_open(4, MODEL), FL_OK);
}

/* An aggregation that is repeated with other clients leaves nothing of its first try. */
TEST(beginning_again_removes_what_the_round_had)
{
    struct fl_personal_models *m;

    publish(3, 3);
    fl_personal_models_abandon(write_up_to(3, 1, 500));
    ck_assert_int_eq(try_open(3, MODEL), FL_ENOENT);
    publish(3, 1);
    m = open_round(3);
    ck_assert_uint_eq(fl_personal_models_count(m), 1);
    fl_personal_models_close(m);
}

TEST_EACH(a_writer_that_is_killed_leaves_the_old_set, 11)
{
    pid_t pid;
    int status = 0;

    publish(3, 2);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)write_up_to(4, 3, (uint64_t)_i * 500);
        _exit(7); /* without closing or removing anything */
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), 7);
    ck_assert_int_eq(try_open(3, MODEL), FL_OK);
    ck_assert_int_eq(try_open(4, MODEL), FL_ENOENT);
    ck_assert(exists("personal_models/000004.mix.tmp"));
    ck_assert_int_eq(fl_personal_models_clean(dir, 2, 3, NULL), FL_OK);
    ck_assert(!exists("personal_models/000004.mix.tmp"));
    ck_assert_int_eq(try_open(3, MODEL), FL_OK);
}

static const struct {
    uint64_t offset;
    size_t len;
} damages[] = {{0, 1},  {8, 1},  {12, 1},           {16, 1},
               {24, 1}, {33, 1}, {32 + 128 + 1, 2}, {32 + 2 * 128, 1}};

TEST_EACH(damage_is_found, ARRAY_LEN(damages))
{
    char path[RIG_PATH_MAX];

    publish(3, 2);
    ck_assert_int_eq(try_open(3, MODEL + 4), FL_EFORMAT);
    rig_damage(rig_path(path, FILE_3), damages[_i].offset, damages[_i].len);
    ck_assert_int_eq(try_open(3, MODEL), FL_EFORMAT);
}

TEST(a_short_file_is_found_at_once_and_while_it_is_read)
{
    struct fl_personal_models *m;
    struct fl_file *f;
    uint8_t got[MODEL];
    char path[RIG_PATH_MAX];

    publish(3, 2);
    m = open_round(3);
    f = fl_personal_models_file(m, 1);
    (void)rig_path(path, FILE_3);
    rig_cut(path, rig_size(path) - 1); /* in the checksums, which are read already */
    ck_assert_int_eq(fl_file_read(f, 0, got, MODEL), FL_OK);
    ck_assert_int_eq(try_open(3, MODEL), FL_EFORMAT);
    rig_cut(path, 4096 + 2 * MODEL - 1);
    ck_assert_int_eq(fl_file_read(f, 0, got, MODEL), FL_EFORMAT);
    ck_assert_int_eq(try_open(3, MODEL), FL_EFORMAT);
    rig_cut(path, 20);
    ck_assert_int_eq(try_open(3, MODEL), FL_EFORMAT);
    fl_file_unref(f);
    fl_personal_models_close(m);
}

TEST(a_flipped_bit_of_a_personal_model_is_found_when_it_is_read)
{
    struct fl_personal_models *m;
    struct fl_file *f;
    uint8_t got[MODEL];
    char path[RIG_PATH_MAX];

    publish(3, 2);
    (void)rig_path(path, FILE_3);
    rig_damage(path, rig_size(path) - MODEL + 17, 1); /* in the second one's */
    m = open_round(3);
    ck_assert_int_eq(fl_personal_models_verify(m, NULL), FL_EFORMAT);
    f = fl_personal_models_file(m, 0);
    ck_assert_int_eq(fl_file_read(f, 0, got, MODEL), FL_OK);
    fl_file_unref(f);
    f = fl_personal_models_file(m, 1);
    ck_assert_int_eq(fl_file_read(f, 100, got, 10), FL_EFORMAT);
    fl_file_unref(f);
    fl_personal_models_close(m);
}

static int open_sealed(uint64_t round, const char *seal)
{
    struct fl_personal_models *m = NULL;
    struct fl_err err = {0};
    int rv = fl_personal_models_open_sealed(dir, round, MODEL, seal, &m, &err);

    /* Who is told of it has to find it. */
    ck_assert_msg(rv == FL_OK || strstr(err.msg, FILE_3) != NULL, "%s", err.msg);
    fl_personal_models_close(m);
    return rv;
}

TEST(a_seal_opens_the_personal_models_that_it_was_made_for_and_no_others)
{
    char seal[FL_PERSONAL_MODELS_SEAL];
    struct fl_personal_models *m;
    char path[RIG_PATH_MAX];

    publish(3, 3);
    m = open_round(3);
    fl_personal_models_seal(m, seal);
    fl_personal_models_close(m);
    ck_assert_int_eq(open_sealed(3, seal), FL_OK);
    publish(3, 2);
    ck_assert_int_eq(open_sealed(3, seal), FL_EFORMAT);
    model[0][0]++;
    publish(3, 3);
    model[0][0]--;
    ck_assert_int_eq(open_sealed(3, seal), FL_EFORMAT);
    publish(3, 3);
    ck_assert_int_eq(open_sealed(3, seal), FL_OK);
    rig_damage(rig_path(path, FILE_3), rig_size(rig_path(path, FILE_3)) - 1, 1);
    ck_assert_int_eq(open_sealed(3, seal), FL_EFORMAT);
    rig_cut(path, 10);
    ck_assert_int_eq(open_sealed(3, seal), FL_EFORMAT);
    rig_cut(path, 0);
    ck_assert_int_eq(open_sealed(3, seal), FL_EFORMAT);
    (void)unlink(path);
    ck_assert_int_eq(open_sealed(3, seal), FL_ENOENT);
}

TEST(bad_personal_models_are_kept_aside_one_at_a_time)
{
    publish(3, 2);
    publish(4, 2);
    ck_assert_int_eq(fl_personal_models_quarantine(dir, 4, NULL), FL_OK);
    ck_assert_int_eq(try_open(4, MODEL), FL_ENOENT);
    ck_assert_int_eq(fl_personal_models_clean(dir, 2, 3, NULL), FL_OK);
    ck_assert(exists("personal_models/000004.mix.bad"));
    ck_assert_int_eq(fl_personal_models_quarantine(dir, 7, NULL), FL_OK); /* There are none. */
    ck_assert(exists("personal_models/000004.mix.bad"));
    ck_assert_int_eq(fl_personal_models_quarantine(dir, 3, NULL), FL_OK);
    ck_assert(exists(FILE_3 ".bad"));
    ck_assert(!exists("personal_models/000004.mix.bad"));
}

TEST(cleaning_keeps_the_rounds_it_is_told)
{
    uint64_t round;

    for (round = 1; round <= 5; round++) {
        publish(round, 1);
    }
    ck_assert_int_eq(fl_personal_models_clean(dir, 3, 4, NULL), FL_OK);
    for (round = 1; round <= 5; round++) {
        ck_assert_int_eq(try_open(round, MODEL), round == 3 || round == 4 ? FL_OK : FL_ENOENT);
    }
}

TEST(a_full_disk_is_told)
{
    struct fl_personal_models_writer *w = NULL;
    struct fl_err err = {0};

    rig_limit_files(6000);
    ck_assert_int_eq(fl_personal_models_create(dir, 3, names, 2, MODEL, &w, &err), FL_OK);
    ck_assert_int_ne(fl_personal_models_write(w, 0, 0, model[0], MODEL, &err), FL_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "cannot write '"));
    fl_personal_models_abandon(w);
    rig_limit_files(0);
}
