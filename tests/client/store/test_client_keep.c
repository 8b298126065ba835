/*
 * What a client keeps between rounds: when it is taken over, when it is dropped, and that a
 * process which is killed before any write finds the old state or the new one.
 */

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/store/client_state.h"
#include "libfl/base/fs.h"
#include "tests/lib/client_kept.h"
#include "tests/lib/container_file.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"
#include "tests/lib/wrap_files.h"

#define N_FLOATS 11
#define KILLED   77

/* --- a process that ends before its n-th write --- */

static long steps_left = -1; /* negative: none is counted */

static void step(void)
{
    if (steps_left == 0) {
        _exit(KILLED);
    }
    steps_left -= steps_left > 0;
}

static long syncs_left = -1; /* until the one that fails; negative: none does */

int __wrap_fsync(int fd)
{
    if (syncs_left >= 0 && syncs_left-- == 0) {
        errno = EIO;
        return -1;
    }
    return __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    step();
    return __real_rename(from, to);
}

int __wrap_unlink(const char *path)
{
    step();
    return __real_unlink(path);
}

/* In halves: a file may be there in part. */
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t offset)
{
    step();
    return __real_pwrite(fd, data, len > 1 ? len / 2 : len, offset);
}

/* --- a folder, a model of three units, and a log --- */

static char dir[64];
static struct fl_layout *layout;
static char lines[8192];
static struct fl_log log_;

static void sink(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    size_t len = strlen(lines);

    (void)ctx;
    (void)component;
    (void)snprintf(lines + len, sizeof(lines) - len, "%d %s\n", (int)level, text);
}

static struct fl_layout *make_layout(size_t last)
{
    size_t a[] = {3, 2}, b[] = {3}, c[] = {last};
    struct fl_layout *made = NULL;

    ck_assert_int_eq(fl_layout_create(&made), FL_OK);
    ck_assert_int_eq(fl_layout_add(made, "a", "a.w", a, 2, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(made, "b", "b.w", b, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(made, "c", "c.w", c, 1, true, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(made, NULL), FL_OK);
    return made;
}

static void setup(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/fl-keep-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    layout = make_layout(2);
    ck_assert_uint_eq(fl_layout_count(layout), N_FLOATS);
    lines[0] = '\0';
    log_ = (struct fl_log){.level = FL_LOG_NOTICE, .sink = sink};
}

static void teardown(void)
{
    folder_remove(dir);
    fl_layout_free(layout);
}

static const struct fl_client_state_spec specs[] = {{"scaffold.control", true, true, 0},
                                                    {"own.personal", false, false, 0},
                                                    {"codec.residual", true, false, 0}};
static const uint8_t all[] = {1, 1, 1}, first[] = {1, 0, 0}, last[] = {0, 0, 1};

static const uint8_t one_line[FL_DIGEST_SIZE] = {1}, other_line[FL_DIGEST_SIZE] = {2};

static struct fl_client_state_home home_of(const char *federation, const struct fl_layout *model)
{
    return (struct fl_client_state_home){federation, model, one_line};
}

static struct fl_client_state *bind_to(const char *federation, const struct fl_layout *model,
                                       size_t n)
{
    struct fl_client_state_home home = home_of(federation, model);
    struct fl_client_state *k = NULL;

    ck_assert_int_eq(fl_client_state_open(dir, &log_, &k, NULL), FL_OK);
    ck_assert_int_eq(fl_client_state_bind(k, &home, specs, n, NULL), FL_OK);
    return k;
}

static struct fl_client_state *reopen(struct fl_client_state *k)
{
    fl_client_state_free(k);
    return bind_to("fed", layout, 3);
}

static struct fl_round_key at(uint64_t round, uint32_t attempt)
{
    return (struct fl_round_key){round, attempt};
}

static void settle(struct fl_client_state *k, uint64_t task, uint64_t counted)
{
    ck_assert_int_eq(fl_client_state_settle(k, at(task, 1), at(counted, counted != 0), 0, NULL),
                     FL_OK);
}

static void fill(float *block, float value)
{
    size_t i;

    for (i = 0; i < N_FLOATS; i++) {
        block[i] = value + (float)i;
    }
}

/* What a training of round `round` leaves: control `round` hundreds, personal one more. */
static int try_put(struct fl_client_state *k, uint64_t round)
{
    float control[N_FLOATS];
    float personal[N_FLOATS];
    struct fl_client_state_value values[] = {{"scaffold.control", control},
                                             {"own.personal", personal}};

    fill(control, (float)(100 * round));
    fill(personal, (float)(100 * round + 50));
    return fl_client_state_put(k, at(round, 1), values, 2, NULL);
}

static void put(struct fl_client_state *k, uint64_t round)
{
    ck_assert_int_eq(try_put(k, round), FL_OK);
}

static void grant(struct fl_client_state *k, uint64_t round, const uint8_t *units)
{
    float residual[N_FLOATS];
    struct fl_client_state_value value = {"codec.residual", residual};

    fill(residual, (float)(100 * round + 20));
    ck_assert_int_eq(fl_client_state_grant(k, at(round, 1), units, &value, NULL), FL_OK);
}

/* Units a, b, c of the kept block are of these values; below 0: zeros. */
static void expect(struct fl_client_state *k, const char *name, float a, float b, float c)
{
    const float want[] = {a, b, c};
    float *have = NULL;
    size_t l;
    size_t i;

    ck_assert_msg(fl_client_state_load(k, name, &have, NULL) == FL_OK, "'%s' is not kept", name);
    for (l = 0; l < 3; l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);

        for (i = unit->offset; i < unit->offset + unit->count; i++) {
            ck_assert(have[i] == (want[l] < 0.0f ? 0.0f : want[l] + (float)i));
        }
    }
    free(have);
}

static void expect_none(struct fl_client_state *k, const char *name)
{
    float *have = NULL;

    ck_assert(!client_kept(k, name));
    ck_assert_int_eq(fl_client_state_load(k, name, &have, NULL), FL_ENOENT);
}

static size_t files(void) /* without the layout of the model */
{
    char path[128];
    struct dirent *file;
    size_t n = 0;
    DIR *d;

    (void)snprintf(path, sizeof(path), "%s/keep", dir);
    d = opendir(path);
    while (d != NULL && (file = readdir(d)) != NULL) {
        n += file->d_name[0] != '.' && strcmp(file->d_name, "layout") != 0;
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return n;
}

/* --- taking over and dropping --- */

TEST_CASE("rules", setup, teardown);

TEST(a_client_that_keeps_nothing_writes_nothing)
{
    struct fl_client_state *k = bind_to("fed", layout, 0);

    ck_assert(!fl_client_state_wanted(k));
    settle(k, 4, 3);
    ck_assert(!fl_client_state_pending(k, at(4, 1)));
    expect_none(k, "scaffold.control");
    ck_assert_uint_eq(files(), 0);
    ck_assert_str_eq(lines, "");
    fl_client_state_free(k);
    ck_assert_int_eq(rmdir(dir), 0);
}

TEST(pending_values_are_taken_over_when_their_round_is_counted)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    settle(k, 1, 0);
    put(k, 1);
    expect_none(k, "scaffold.control");
    grant(k, 1, all);
    expect_none(k, "scaffold.control");
    k = reopen(k);
    ck_assert(fl_client_state_pending(k, at(1, 1)));
    settle(k, 4, 1);
    expect(k, "scaffold.control", 100, 100, 100);
    expect(k, "own.personal", 150, 150, 150);
    expect(k, "codec.residual", 120, 120, 120);
    ck_assert(!fl_client_state_pending(k, at(1, 1)));
    k = reopen(k);
    expect(k, "scaffold.control", 100, 100, 100);
    ck_assert_uint_eq(files(), 4);
    ck_assert_str_eq(lines, "");
    fl_client_state_free(k);
}

TEST(only_granted_units_of_a_value_per_unit_are_taken_over)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 1);
    grant(k, 1, first);
    settle(k, 2, 1);
    expect(k, "scaffold.control", 100, -1, -1);
    expect(k, "own.personal", 150, 150, 150);
    put(k, 2);
    grant(k, 2, last);
    settle(k, 3, 2);
    expect(k, "scaffold.control", 100, -1, 200);
    expect(k, "codec.residual", 120, -1, 220);
    expect(k, "own.personal", 250, 250, 250);
    ck_assert_uint_eq(files(), 4);
    fl_client_state_free(k);
}

TEST(a_counted_round_without_a_grant_moves_only_whole_values)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 1);
    settle(k, 2, 1);
    expect_none(k, "scaffold.control");
    expect(k, "own.personal", 150, 150, 150);
    ck_assert_str_eq(lines, "");
    fl_client_state_free(k);
}

TEST(a_newer_plan_replaces_the_grant_before)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 1);
    grant(k, 1, all);
    grant(k, 1, first);
    settle(k, 2, 1);
    expect(k, "scaffold.control", 100, -1, -1);
    fl_client_state_free(k);
}

TEST(pending_values_are_dropped_when_another_round_is_counted)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 1);
    grant(k, 1, all);
    settle(k, 2, 1);
    put(k, 2);
    grant(k, 2, all);
    ck_assert_str_eq(lines, "");
    settle(k, 3, 1);
    expect(k, "scaffold.control", 100, 100, 100);
    ck_assert(!fl_client_state_pending(k, at(2, 1)));
    ck_assert_ptr_nonnull(
        strstr(lines, "2 discarding the pending client state of round 2/1: its update was sent, "
                      "but the last round that the server aggregated is 1/1\n"));
    ck_assert_uint_eq(files(), 4);
    fl_client_state_free(k);
}

TEST(another_attempt_of_the_round_is_another_round)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 1);
    grant(k, 1, all);
    ck_assert_int_eq(fl_client_state_settle(k, at(2, 1), at(1, 2), 0, NULL), FL_OK);
    expect_none(k, "scaffold.control");
    fl_client_state_free(k);
}

TEST(the_task_that_made_pending_values_leaves_them_when_it_comes_again)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    settle(k, 1, 0);
    put(k, 1);
    grant(k, 1, all);
    k = reopen(k);
    settle(k, 1, 0);
    ck_assert(fl_client_state_pending(k, at(1, 1)));
    settle(k, 2, 1);
    expect(k, "scaffold.control", 100, 100, 100);
    ck_assert_str_eq(lines, "");
    fl_client_state_free(k);
}

TEST(a_value_that_training_did_not_make_again_stays)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 1);
    grant(k, 1, all);
    settle(k, 2, 1);
    ck_assert_int_eq(fl_client_state_put(k, at(2, 1), NULL, 0, NULL), FL_OK);
    settle(k, 3, 2);
    expect(k, "own.personal", 150, 150, 150);
    fl_client_state_free(k);
}

TEST(a_grant_needs_the_pending_values_of_its_round)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);
    struct fl_err err = {0};

    put(k, 1);
    ck_assert_int_eq(fl_client_state_grant(k, at(1, 2), all, NULL, &err), FL_ESTATE);
    ck_assert_str_eq(err.msg, "no pending client state of round 1/2");
    fl_client_state_free(k);
}

/* --- what is lost --- */

TEST(a_lost_folder_is_told_with_the_names_of_what_was_in_it)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    settle(k, 9, 7);
    ck_assert_ptr_nonnull(strstr(
        lines,
        "1 the server aggregated round 7/1 of this client, but its client state 'scaffold.control' "
        "of that round is lost (none is on disk): training continues without it\n"));
    ck_assert_ptr_nonnull(strstr(lines, "'own.personal'"));
    ck_assert_ptr_nonnull(strstr(lines, "'codec.residual'"));
    expect_none(k, "scaffold.control");
    lines[0] = '\0';
    k = reopen(k);
    settle(k, 11, 7);
    ck_assert_str_eq(lines, ""); /* told once */
    put(k, 11);
    grant(k, 11, all);
    settle(k, 12, 11);
    expect(k, "scaffold.control", 1100, 1100, 1100);
    fl_client_state_free(k);
}

TEST(what_the_running_round_made_outlives_the_loss_of_what_was_kept)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 9);
    settle(k, 9, 7);
    ck_assert_ptr_nonnull(strstr(lines, "'own.personal' of that round is lost"));
    ck_assert(fl_client_state_pending(k, at(9, 1)));
    settle(k, 10, 9);
    expect(k, "own.personal", 950, 950, 950);
    fl_client_state_free(k);
}

TEST_EACH(values_of_another_round_than_the_counted_one_are_forgotten, 2)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 5);
    grant(k, 5, all);
    settle(k, 6, 5);
    settle(k, _i == 0 ? 8 : 4, _i == 0 ? 7 : 3);
    expect_none(k, "scaffold.control");
    ck_assert_ptr_nonnull(strstr(
        lines, _i == 0
                   ? "'scaffold.control' of that round is lost (only that of round 5/1 is on disk)"
                   : "dropping the client state of round 5/1: the server rolled back, "));
    ck_assert(_i == 0 || strstr(lines, "lost") == NULL);
    fl_client_state_free(k);
}

TEST(a_server_that_never_counted_us_starts_us_from_nothing)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 5);
    grant(k, 5, all);
    settle(k, 6, 5);
    settle(k, 1, 0);
    expect_none(k, "own.personal");
    ck_assert_ptr_nonnull(strstr(
        lines,
        "2 dropping the client state of round 5/1: the server has never aggregated this client\n"));
    fl_client_state_free(k);
}

static void spoil(const char *prefix, long offset)
{
    char path[512];
    struct dirent *file;
    int byte;
    FILE *f;
    DIR *d;

    (void)snprintf(path, sizeof(path), "%s/keep", dir);
    d = opendir(path);
    ck_assert_ptr_nonnull(d);
    while ((file = readdir(d)) != NULL) {
        if (strncmp(file->d_name, prefix, strlen(prefix)) == 0) {
            (void)snprintf(path, sizeof(path), "%s/keep/%s", dir, file->d_name);
            f = fopen(path, "r+b");
            ck_assert_ptr_nonnull(f);
            ck_assert_int_eq(fseek(f, offset, offset < 0 ? SEEK_END : SEEK_SET), 0);
            byte = fgetc(f);
            ck_assert_int_eq(fseek(f, -1, SEEK_CUR), 0);
            ck_assert_int_ne(fputc(byte ^ 1, f), EOF);
            ck_assert_int_eq(fclose(f), 0);
        }
    }
    (void)closedir(d);
}

static struct fl_client_state *one_round(void)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 1);
    grant(k, 1, first);
    settle(k, 2, 1);
    return k;
}

TEST_EACH(a_damaged_block_counts_as_none_and_is_named, 7)
{
    static const long offsets[] = {0, 9, 20, 40, 200, 300, -1};
    struct fl_client_state *k = one_round();

    spoil("scaffold.control", offsets[_i]);
    k = reopen(k);
    expect(k, "own.personal", 150, 150, 150);
    {
        float *have = NULL;

        ck_assert_int_eq(fl_client_state_load(k, "scaffold.control", &have, NULL), FL_ENOENT);
    }
    ck_assert_ptr_nonnull(
        strstr(lines, "1 client state 'scaffold.control' is lost, continuing without"));
    ck_assert(!client_kept(k, "scaffold.control"));
    fl_client_state_free(k);
}

TEST(a_damaged_block_of_an_older_round_leaves_the_new_units)
{
    struct fl_client_state *k = one_round();

    put(k, 2);
    spoil("scaffold.control.4", -1);
    grant(k, 2, last);
    k = reopen(k);
    settle(k, 3, 2);
    ck_assert_ptr_nonnull(
        strstr(lines, "1 client state 'scaffold.control' is lost, continuing without"));
    expect(k, "scaffold.control", -1, -1, 200);
    expect(k, "codec.residual", 120, -1, 220);
    fl_client_state_free(k);
}

TEST_EACH(a_damaged_index_loses_everything_and_says_so, 120)
{
    struct fl_client_state *k = one_round();

    fl_client_state_free(k);
    spoil("index", 3L * _i + 1);
    k = bind_to("fed", layout, 3);
    ck_assert_ptr_nonnull(strstr(lines, "keep/index' is damaged: "));
    ck_assert_ptr_nonnull(strstr(lines, ": all client state is lost, continuing without it"));
    expect_none(k, "scaffold.control");
    lines[0] = '\0';
    settle(k, 2, 1);
    ck_assert_ptr_nonnull(strstr(lines, "'scaffold.control' of that round is lost"));
    ck_assert_uint_eq(files(), 1);
    fl_client_state_free(k);
}

TEST(an_index_of_a_later_version_ends_the_start_and_stays)
{
    struct fl_client_state *k = one_round();
    struct fl_err err = {0};
    char path[128];
    struct fl_buf file;

    fl_client_state_free(k);
    (void)snprintf(path, sizeof(path), "%s/keep/index", dir);
    ck_assert_int_eq(fl_fs_read(path, 65536, &file, NULL), FL_OK);
    container_make_later(&file);
    ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
    ck_assert_int_eq(fl_client_state_open(dir, NULL, &k, &err), FL_EVERSION);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "keep/index' has version 2 of its format, this program supports up to 1"));
    ck_assert_uint_eq(files(), 4);
    fl_buf_done(&file);
}

TEST_EACH(what_is_kept_for_another_federation_or_model_is_not_used, 2)
{
    struct fl_layout *other = make_layout(3);
    struct fl_client_state *k = one_round();

    fl_client_state_free(k);
    k = _i == 0 ? bind_to("other", layout, 3) : bind_to("fed", other, 3);
    expect_none(k, "scaffold.control");
    ck_assert_ptr_nonnull(
        strstr(lines, _i == 0 ? "it is of another federation" : "it is for another model"));
    ck_assert_uint_eq(files(), 4); /* Nothing is removed before something is written. */
    ck_assert_int_eq(fl_client_state_put(k, at(1, 1), NULL, 0, NULL), FL_OK);
    ck_assert_uint_eq(files(), 1);
    fl_client_state_free(k);
    fl_layout_free(other);
}

TEST(what_was_kept_before_the_server_began_anew_is_not_used)
{
    struct fl_client_state_home home = home_of("fed", layout);
    struct fl_client_state *k = one_round();

    put(k, 2); /* Pending values were made from kept ones: they go too. */
    home.state_generation = other_line;
    ck_assert_int_eq(fl_client_state_bind(k, &home, specs, 3, NULL), FL_OK);
    expect_none(k, "scaffold.control");
    ck_assert(!fl_client_state_pending(k, at(2, 1)));
    ck_assert_ptr_nonnull(strstr(lines, "of an older generation of client state"));
    ck_assert_int_eq(fl_client_state_put(k, at(3, 1), NULL, 0, NULL), FL_OK);
    fl_client_state_free(k);
    /* The first line never comes again, but if it did nothing would be there. */
    k = bind_to("fed", layout, 3);
    expect_none(k, "scaffold.control");
    fl_client_state_free(k);
}

TEST(what_another_solver_kept_is_removed)
{
    struct fl_client_state_spec other = {"igfl_c.previous", false, false, 0};
    struct fl_client_state_home home = home_of("fed", layout);
    struct fl_client_state *k = one_round();

    ck_assert_int_eq(fl_client_state_bind(k, &home, &other, 1, NULL), FL_OK);
    expect_none(k, "igfl_c.previous");
    ck_assert_int_eq(fl_client_state_put(k, at(2, 1), NULL, 0, NULL), FL_OK);
    ck_assert_uint_eq(files(), 1);
    fl_client_state_free(k);
}

TEST(a_name_is_wanted_once_and_fits_a_file)
{
    struct fl_client_state_spec bad[] = {
        {.name = "a/b"}, {.name = "x"}, {.name = "x", .per_unit = true}};
    struct fl_client_state_home home = home_of("fed", layout);
    struct fl_client_state *k = bind_to("fed", layout, 0);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_client_state_bind(k, &home, bad, 1, &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "'a/b' is no valid name of client state");
    ck_assert_int_eq(fl_client_state_bind(k, &home, bad + 1, 2, &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "'x' is a repeated name of client state");
    fl_client_state_free(k);
}

/* --- killed anywhere --- */

typedef void (*story_part)(struct fl_client_state *k);

static void train_again(struct fl_client_state *k)
{
    put(k, 2);
}

static void begin_push(struct fl_client_state *k)
{
    grant(k, 2, last);
}

static void next_task(struct fl_client_state *k)
{
    settle(k, 3, 2);
}

static void next_task_that_drops(struct fl_client_state *k)
{
    settle(k, 3, 1);
}

/* Run `part` in a process that ends before its n-th write. True: it came to its end. */
static bool killed_after(story_part part, long n)
{
    int status = 0;
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct fl_client_state *k = bind_to("fed", layout, 3);

        steps_left = n;
        part(k);
        steps_left = -1;
        fl_client_state_free(k);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLED);
    return WEXITSTATUS(status) == 0;
}

/* The same story up to `part`, in a fresh folder; killed in it, done again, told to the end. */
static bool survives(const story_part *story, size_t n_parts, size_t killed, long n, bool taken)
{
    struct fl_client_state *k;
    bool whole;
    size_t i;

    folder_remove(dir);
    ck_assert_int_eq(mkdir(dir, 0750), 0);
    k = one_round();
    for (i = 0; i < killed; i++) {
        story[i](k);
    }
    fl_client_state_free(k);
    whole = killed_after(story[killed], n);
    k = bind_to("fed", layout, 3);
    for (i = killed; i < n_parts; i++) {
        story[i](k);
    }
    expect(k, "scaffold.control", 100, -1, taken ? 200 : -1);
    expect(k, "codec.residual", 120, -1, taken ? 220 : -1);
    expect(k, "own.personal", taken ? 250 : 150, taken ? 250 : 150, taken ? 250 : 150);
    ck_assert_uint_eq(files(), 4);
    ck_assert_ptr_null(strstr(lines, " is lost"));
    fl_client_state_free(k);
    return whole;
}

TEST_CASE("kills", setup, teardown);

TEST_EACH(a_kill_before_any_write_is_made_good_by_doing_the_step_again, 6)
{
    static const story_part taken[] = {train_again, begin_push, next_task};
    static const story_part dropped[] = {train_again, begin_push, next_task_that_drops};
    const story_part *story = _i < 3 ? taken : dropped;
    size_t part = (size_t)_i % 3;
    long n = 0;

    while (!survives(story, 3, part, n, _i < 3)) {
        n++;
    }
    ck_assert_int_ge(n, 4); /* there were writes to be killed before */
}

TEST_EACH(no_file_changes_that_an_index_names_which_may_be_on_the_disk, 5)
{
    struct fl_client_state *k = bind_to("fed", layout, 3);

    put(k, 1);
    syncs_left = 5; /* Of two blocks and their folder, then of the index: it has its name. */
    ck_assert_int_ne(try_put(k, 2), FL_OK);
    syncs_left = _i;
    ck_assert_int_ne(try_put(k, 3), FL_OK);
    k = reopen(k);
    ck_assert(fl_client_state_pending(k, at(2, 1)));
    ck_assert_int_eq(fl_client_state_grant(k, at(2, 1), all, NULL, NULL), FL_OK);
    settle(k, 4, 2);
    expect(k, "scaffold.control", 200, 200, 200);
    expect(k, "own.personal", 250, 250, 250);
    fl_client_state_free(k);
}
