/* What a client keeps and the server adds up: what of it is dropped with a new sum, and known to be
   lost. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/store/client_state.h"
#include "tests/lib/client_kept.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

static char dir[64];
static char lines[4096];
static struct fl_layout *layout;
static struct fl_log log_;

static void sink(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    size_t len = strlen(lines);

    (void)ctx;
    (void)level;
    (void)component;
    (void)snprintf(lines + len, sizeof(lines) - len, "%s\n", text);
}

static void setup(void)
{
    size_t shape[] = {3};

    (void)snprintf(dir, sizeof(dir), "/tmp/fl-epoch-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "a", "a.w", shape, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    lines[0] = '\0';
    log_ = (struct fl_log){.level = FL_LOG_NOTICE, .sink = sink};
}

static void teardown(void)
{
    folder_remove(dir);
    fl_layout_free(layout);
}

static struct fl_client_state *start(void)
{
    static const uint8_t line[FL_DIGEST_SIZE] = {1};
    const struct fl_client_state_spec specs[] = {{"scaffold.control", true, true, 0},
                                                 {"own.personal", false, false, 0}};
    const struct fl_client_state_home home = {"fed", layout, line};
    struct fl_client_state *k = NULL;

    ck_assert_int_eq(fl_client_state_open(dir, &log_, &k, NULL), FL_OK);
    ck_assert_int_eq(fl_client_state_bind(k, &home, specs, 2, NULL), FL_OK);
    return k;
}

static struct fl_round_key at(uint64_t round)
{
    return (struct fl_round_key){round, 1};
}

static void settle(struct fl_client_state *k, uint64_t counted, uint64_t epoch)
{
    ck_assert_int_eq(fl_client_state_settle(k, at(9), at(counted), epoch, NULL), FL_OK);
}

/* A round trains, is granted, and is sent. */
static void train(struct fl_client_state *k, uint64_t round)
{
    const float block[] = {1, 2, 3};
    const struct fl_client_state_value values[] = {{"scaffold.control", block},
                                                   {"own.personal", block}};
    const uint8_t all[] = {1};

    ck_assert_int_eq(fl_client_state_put(k, at(round), values, 2, NULL), FL_OK);
    ck_assert_int_eq(fl_client_state_grant(k, at(round), all, NULL, NULL), FL_OK);
}

TEST_CASE("epochs", setup, teardown);

TEST(summed_values_of_an_older_epoch_are_dropped_and_others_stay)
{
    struct fl_client_state *k = start();

    train(k, 4);
    settle(k, 4, 4);
    ck_assert(client_kept(k, "scaffold.control") && client_kept(k, "own.personal"));
    settle(k, 4, 5);
    fl_client_state_free(k);
    k = start();
    ck_assert(!client_kept(k, "scaffold.control") && client_kept(k, "own.personal"));
    ck_assert_uint_eq(fl_client_state_of(k).round, 4); /* Nothing is lost. */
    fl_client_state_free(k);
}

TEST(a_lost_summed_value_is_known_until_another_round_counts)
{
    struct fl_client_state *k = start();

    settle(k, 4, 1); /* Round 4 counted this client, and its folder is gone. */
    ck_assert_uint_eq(fl_client_state_of(k).round, 0);
    train(k, 5);
    settle(k, 4, 1); /* Round 5 did not count. */
    fl_client_state_free(k);
    k = start();
    ck_assert_uint_eq(fl_client_state_of(k).round, 0);
    train(k, 6);
    settle(k, 6, 1);
    ck_assert_uint_eq(fl_client_state_of(k).round, 6);
    ck_assert(client_kept(k, "scaffold.control"));
    fl_client_state_free(k);
}

TEST(of_a_round_before_the_epoch_nothing_is_lost)
{
    struct fl_client_state *k = start();

    settle(k, 6, 8);
    ck_assert_uint_eq(fl_client_state_of(k).round, 6);
    ck_assert_str_eq(lines, "");
    fl_client_state_free(k);
}

TEST(a_server_that_went_back_is_told_that_its_control_is_lost)
{
    struct fl_client_state *k = start();

    train(k, 5);
    settle(k, 5, 1);
    settle(k, 3, 1);
    ck_assert_uint_eq(fl_client_state_of(k).round, 0);
    ck_assert_ptr_nonnull(strstr(lines, "round 5/1: the server rolled back"));
    ck_assert_ptr_null(strstr(lines, "lost"));
    fl_client_state_free(k);
}
