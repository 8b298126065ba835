/* What clients download that hold an earlier model: made once, within a limit. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "server/work/differences.h"
#include "tests/lib/moves_rig.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

#define NEWEST 5

static struct fl_layout *layout;
static struct moves_rig server;
static struct fl_differences *d;
static unsigned n_made; /* sums of steps */
static size_t pretend;  /* bytes of each difference; 0: as they are */
static int code;        /* of all of them; FL_OK: as they are */

int __real_fl_versions_difference(const struct fl_versions *versions, const struct fl_layout *of,
                                  const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                                  struct fl_blob **ret);
int __wrap_fl_versions_difference(const struct fl_versions *versions, const struct fl_layout *of,
                                  const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                                  struct fl_blob **ret);

int __wrap_fl_versions_difference(const struct fl_versions *versions, const struct fl_layout *of,
                                  const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                                  struct fl_blob **ret)
{
    n_made++;
    if (code != FL_OK) {
        return code;
    }
    return pretend > 0 ? fl_blob_create(pretend, ret)
                       : __real_fl_versions_difference(versions, of, newest, held, ret);
}

static void setup(void)
{
    struct fl_blob *model = NULL;

    layout = rig_layout();
    moves_rig_init(&server, layout, NULL, NEWEST + 1);
    ck_assert_int_eq(fl_blob_create(server.bytes, &model), FL_OK);
    (void)memcpy(fl_blob_fill(model), server.models[NEWEST], server.bytes);
    ck_assert_int_eq(
        fl_differences_create(layout, moves_rig_versions(&server, 0, NEWEST), model, &d), FL_OK);
    fl_blob_unref(model);
    n_made = 0;
    pretend = 0;
    code = FL_OK;
}

static void teardown(void)
{
    fl_differences_unref(d);
    moves_rig_done(&server);
    fl_layout_free(layout);
}

/* The bytes for a client with the model of that round; NULL: it downloads the whole one. */
static struct fl_blob *get(uint64_t held)
{
    struct fl_blob *bytes = NULL;
    int rv = fl_differences_get(d, server.digests[held], &bytes);

    ck_assert_int_eq(rv, bytes != NULL ? FL_OK : FL_ENOENT);
    return bytes;
}

TEST_CASE("differences", setup, teardown);

TEST(all_clients_that_hold_one_model_share_what_changed)
{
    struct fl_blob *a = get(1);
    struct fl_blob *b = get(2);
    struct fl_blob *c = get(1);

    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_eq(a, c);
    ck_assert_ptr_ne(a, b);
    ck_assert_uint_eq(n_made, 2);
    fl_blob_unref(a);
    fl_blob_unref(b);
    fl_blob_unref(c);
}

TEST(the_newest_model_itself_is_no_exception)
{
    struct fl_blob *a = get(NEWEST);

    ck_assert_ptr_nonnull(a);
    ck_assert_mem_eq(fl_differences_digest(d), server.digests[NEWEST], FL_DIGEST_SIZE);
    ck_assert_uint_eq(fl_differences_oldest(d), 1);
    ck_assert_ptr_null(fl_differences_digest(NULL));
    fl_blob_unref(a);
}

TEST(an_unknown_model_gets_nothing_and_is_not_remembered)
{
    struct fl_blob *bytes = NULL;
    uint8_t unknown[FL_DIGEST_SIZE] = {0};
    size_t i;

    for (i = 0; i < 100; i++) {
        unknown[0] = (uint8_t)i;
        ck_assert_int_eq(fl_differences_get(d, unknown, &bytes), FL_ENOENT);
    }
    bytes = get(0);
    ck_assert_ptr_nonnull(bytes);
    fl_blob_unref(bytes);
}

TEST(a_difference_as_long_as_the_model_is_summed_up_once)
{
    code = FL_ELIMIT;
    ck_assert_ptr_null(get(1));
    ck_assert_ptr_null(get(1));
    ck_assert_uint_eq(n_made, 1);
    code = FL_OK; /* It takes no room. */
    fl_blob_unref(get(2));
    ck_assert_uint_eq(n_made, 2);
}

TEST(out_of_memory_is_no_answer)
{
    struct fl_blob *bytes = NULL;

    code = FL_ENOMEM;
    ck_assert_int_eq(fl_differences_get(d, server.digests[1], &bytes), FL_ENOMEM);
    code = FL_OK;
    bytes = get(1);
    ck_assert_ptr_nonnull(bytes);
    fl_blob_unref(bytes);
}

/* The limit is that of small models: this one is shorter. */
TEST(beyond_the_limit_those_that_were_asked_for_the_longest_ago_are_dropped)
{
    struct fl_blob *kept;

    ck_assert_uint_lt(server.bytes, FL_DIFFERENCES_LEAST);
    pretend = FL_DIFFERENCES_LEAST / 2;
    kept = get(0);
    fl_blob_unref(get(1));
    fl_blob_unref(get(0));
    ck_assert_uint_eq(n_made, 2); /* Just within. */
    pretend = 1;
    fl_blob_unref(get(2));
    fl_blob_unref(get(0));
    ck_assert_uint_eq(n_made, 3);
    fl_blob_unref(get(1)); /* It was dropped. */
    ck_assert_uint_eq(n_made, 4);
    fl_blob_unref(kept);
}

TEST(what_is_being_sent_outlives_the_differences)
{
    struct fl_blob *bytes = get(1);

    fl_differences_unref(d);
    d = NULL;
    ck_assert_uint_gt(fl_blob_len(bytes), 0);
    fl_blob_unref(bytes);
}
