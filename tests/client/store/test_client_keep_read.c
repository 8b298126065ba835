/* Reading what a client keeps beside the daemon that keeps it (client/store/client_state_read.h).
 */

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "client/store/client_state.h"
#include "client/store/client_state_read.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

#define N_FLOATS 9
#define ROUNDS   300

static char dir[FOLDER_PATH];
static struct fl_layout *layout;
static struct fl_client_state *keeps;

static const struct fl_client_state_request wishes[] = {{"own.personal", false},
                                                        {"model.local", true}};

static bool norms_stay(void *ctx, const struct fl_layout *of, const struct fl_tensor *tensor)
{
    (void)ctx;
    (void)of;
    return strcmp(tensor->name, "b.w") == 0;
}

static void setup(void)
{
    const size_t a[] = {3, 2};
    const size_t b[] = {3};
    struct fl_layout *all = NULL;

    ck_assert(folder_make("fl-keep-read", dir));
    ck_assert_int_eq(fl_layout_create(&all), FL_OK);
    ck_assert_int_eq(fl_layout_add(all, "a", "a.w", a, 2, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(all, "b", "b.w", b, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(all, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_copy(all, norms_stay, NULL, &layout, NULL), FL_OK);
    fl_layout_free(all);
    ck_assert_int_eq(fl_client_state_open(dir, NULL, &keeps, NULL), FL_OK);
}

static void teardown(void)
{
    fl_client_state_free(keeps);
    fl_layout_free(layout);
    folder_remove(dir);
}

static void bind(const char *name, size_t floats)
{
    static const uint8_t line[FL_DIGEST_SIZE];
    const struct fl_client_state_home home = {"f", layout, line};
    struct fl_client_state_spec spec = {.floats = floats};

    (void)snprintf(spec.name, sizeof(spec.name), "%s", name);
    ck_assert_int_eq(fl_client_state_bind(keeps, &home, &spec, 1, NULL), FL_OK);
}

/* What round `round` made: its number everywhere. */
static void put(const char *name, uint64_t round)
{
    float data[N_FLOATS];
    const struct fl_client_state_value value = {name, data};
    size_t i;

    for (i = 0; i < N_FLOATS; i++) {
        data[i] = (float)round;
    }
    ck_assert_int_eq(fl_client_state_put(keeps, (struct fl_round_key){round, 1}, &value, 1, NULL),
                     FL_OK);
}

static void settle(uint64_t task, uint64_t counted)
{
    ck_assert_int_eq(fl_client_state_settle(keeps, (struct fl_round_key){task, 1},
                                            (struct fl_round_key){counted, counted > 0}, 0, NULL),
                     FL_OK);
}

static int read_model(struct fl_client_state_found *ret, struct fl_err *err)
{
    return fl_client_state_read(dir, wishes, 2, ret, err);
}

static void expect(uint64_t round, bool pending)
{
    struct fl_client_state_found found;
    struct fl_err err = {0};

    ck_assert_msg(read_model(&found, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(found.request, 0);
    ck_assert_uint_eq(found.key.round, round);
    ck_assert(found.pending == pending);
    ck_assert_str_eq(found.federation, "f");
    ck_assert(fl_layout_equal(found.layout, layout));
    ck_assert_double_eq((double)found.data[0], (double)round);
    ck_assert_double_eq((double)found.data[N_FLOATS - 1], (double)round);
    fl_client_state_found_done(&found);
}

TEST_CASE("all", setup, teardown);

TEST(the_newest_model_is_read_with_its_layout_and_round)
{
    bind("own.personal", 0);
    put("own.personal", 1);
    expect(1, true);
    settle(2, 1);
    expect(1, false);
    put("own.personal", 2);
    expect(2, true);
    settle(3, 1); /* It was not aggregated. */
    expect(1, false);
}

TEST(of_local_tensors_only_those_are_read)
{
    struct fl_client_state_found found;

    bind("model.local", 3);
    put("model.local", 4);
    ck_assert_int_eq(read_model(&found, NULL), FL_OK);
    ck_assert_uint_eq(found.request, 1);
    ck_assert_double_eq((double)found.data[2], 4);
    fl_client_state_found_done(&found);
}

TEST(where_no_model_is_kept_there_is_none)
{
    struct fl_client_state_found found;
    struct fl_err err = {0};

    ck_assert_int_eq(read_model(&found, &err), FL_ENOENT);
    bind("scaffold.control", 0);
    put("scaffold.control", 1);
    ck_assert_int_eq(read_model(&found, &err), FL_ENOENT);
    ck_assert_int_eq(fl_client_state_read("/nonexistent", wishes, 2, &found, &err), FL_ENOENT);
}

TEST(without_its_layout_the_error_says_how_to_get_it)
{
    char path[FOLDER_PATH + 32];
    struct fl_client_state_found found;
    struct fl_err err = {0};

    bind("own.personal", 0);
    put("own.personal", 1);
    (void)snprintf(path, sizeof(path), "%s/keep/layout", dir);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(read_model(&found, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "the next round of the daemon writes it"));
    fl_client_state_found_done(&found);
    bind("own.personal", 0); /* As after a reconnect. */
    put("own.personal", 2);
    expect(2, true);
}

TEST(a_damaged_model_is_named)
{
    char path[FOLDER_PATH + 64];
    struct fl_client_state_found found;
    struct fl_err err = {0};
    FILE *f;

    bind("own.personal", 0);
    put("own.personal", 1);
    (void)snprintf(path, sizeof(path), "%s/keep/own.personal.1.keep", dir);
    f = fopen(path, "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, -1, SEEK_END), 0);
    ck_assert_int_eq(fputc(1, f), 1);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(read_model(&found, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "own.personal.1.keep"));
    fl_client_state_found_done(&found);
}

static atomic_bool ended;

static void *train(void *arg)
{
    uint64_t round;

    (void)arg;
    for (round = 2; round <= ROUNDS; round++) {
        settle(round, round - 1);
        put("own.personal", round);
    }
    atomic_store(&ended, true);
    return NULL;
}

TEST(beside_a_daemon_that_trains_each_reading_is_one_whole_round)
{
    pthread_t daemon;
    uint64_t last = 0;
    unsigned readings = 0;

    bind("own.personal", 0);
    put("own.personal", 1);
    ck_assert_int_eq(pthread_create(&daemon, NULL, train, NULL), 0);
    while (!atomic_load(&ended) || readings == 0) {
        struct fl_client_state_found found;
        struct fl_err err = {0};

        ck_assert_msg(read_model(&found, &err) == FL_OK, "%s", err.msg);
        ck_assert_uint_ge(found.key.round, last);
        ck_assert_double_eq((double)found.data[0], (double)found.key.round);
        ck_assert_double_eq((double)found.data[N_FLOATS - 1], (double)found.key.round);
        last = found.key.round;
        readings++;
        fl_client_state_found_done(&found);
    }
    ck_assert_int_eq(pthread_join(daemon, NULL), 0);
    expect(ROUNDS, true);
}
