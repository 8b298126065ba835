/* What clients download that hold an earlier model: shared, within a limit of memory. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "bench/counted.h"
#include "libfl/base/rng.h"
#include "libfl/strategy/broadcast/hashed_moves.h"
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

int __real_fl_versions_difference(const struct fl_versions *versions, struct fl_merger *merger,
                                  const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                                  const struct fl_difference *rest, struct fl_difference *ret);
int __wrap_fl_versions_difference(const struct fl_versions *versions, struct fl_merger *merger,
                                  const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                                  const struct fl_difference *rest, struct fl_difference *ret);

int __wrap_fl_versions_difference(const struct fl_versions *versions, struct fl_merger *merger,
                                  const float *newest, const uint8_t held[FL_DIGEST_SIZE],
                                  const struct fl_difference *rest, struct fl_difference *ret)
{
    n_made++;
    if (code != FL_OK) {
        return code;
    }
    return pretend > 0 ? fl_blob_create(pretend, &ret->bytes)
                       : __real_fl_versions_difference(versions, merger, newest, held, rest, ret);
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
    ck_assert_uint_eq(fl_differences_budget(d), FL_DIFFERENCES_LEAST);
    pretend = FL_DIFFERENCES_LEAST / 2 - 20000;
    fl_blob_unref(get(0));
    pretend = FL_DIFFERENCES_LEAST / 8;
    fl_blob_unref(get(1));
    fl_blob_unref(get(0));
    fl_blob_unref(get(2));
    ck_assert_uint_eq(n_made, 3);
    pretend = FL_DIFFERENCES_LEAST * 3 / 8;
    fl_blob_unref(get(3));
    fl_blob_unref(get(0));
    fl_blob_unref(get(2));
    ck_assert_uint_eq(n_made, 4);
    pretend = 1;
    fl_blob_unref(get(1)); /* It was dropped. */
    ck_assert_uint_eq(n_made, 5);
}

TEST(what_is_being_sent_stays_shared_and_takes_no_room)
{
    struct fl_blob *a;
    struct fl_blob *b;

    pretend = FL_DIFFERENCES_LEAST / 2;
    a = get(0);
    fl_blob_unref(get(1));
    fl_blob_unref(get(2));
    fl_blob_unref(get(3));
    b = get(0);
    ck_assert_ptr_eq(a, b);
    ck_assert_uint_eq(n_made, 4);
    ck_assert_uint_le(fl_differences_kept(d), FL_DIFFERENCES_LEAST);
    fl_blob_unref(a);
    fl_blob_unref(b);
}

TEST(what_is_being_sent_outlives_the_differences)
{
    struct fl_blob *bytes = get(1);

    fl_differences_unref(d);
    d = NULL;
    ck_assert_uint_gt(fl_blob_len(bytes), 0);
    fl_blob_unref(bytes);
}

/* --- many models --- */

enum { MODELS = 128, ENTRIES = 60000, NUMBERS = 6000, REDRAW = 4, ASKED = 400 };

struct many {
    struct fl_layout *layout;
    struct fl_blob *model;
    struct fl_versions *versions;
    struct fl_differences *d;
};

/* Models are only named here: by their number. */
static void digest_of(uint64_t model, uint8_t ret[FL_DIGEST_SIZE])
{
    (void)memset(ret, 0xd1, FL_DIGEST_SIZE);
    (void)memcpy(ret, &model, sizeof(model));
}

/* One in 16 entries moves by a step; or hashed numbers of a draw of REDRAW rounds move by -1 to 1.
 */
static struct fl_step step_of(struct fl_rng *rng, uint64_t round, bool hashed)
{
    const struct fl_hashed_head head = {77, (uint32_t)((round - 1) / REDRAW), NUMBERS};
    struct fl_step step = {.round = round};
    int32_t moves[ENTRIES] = {0};
    struct fl_buf bytes;
    size_t i;

    for (i = 0; i < ENTRIES; i++) {
        uint64_t x = fl_rng_below(rng, 32);

        moves[i] = hashed ? (int32_t)(x % 3) - 1 : x > 1 ? 0 : x == 0 ? 4096 : -4096;
    }
    fl_buf_init(&bytes, SIZE_MAX);
    ck_assert_int_eq(fl_buf_add(&bytes, (const uint8_t[]){1, 0}, 2), FL_OK);
    ck_assert_int_eq(hashed ? fl_hashed_encode(&head, moves, &bytes)
                            : moves_encode(moves, ENTRIES, &bytes),
                     FL_OK);
    ck_assert_int_eq(fl_blob_from_buf(&bytes, &step.moves), FL_OK);
    digest_of(round, step.to);
    return step;
}

static void many_make(struct many *m, bool hashed)
{
    const size_t dims[] = {ENTRIES};
    uint8_t first[FL_DIGEST_SIZE];
    struct fl_rng rng;
    uint64_t round;

    ck_assert_int_eq(fl_layout_create(&m->layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(m->layout, "u", "u.weight", dims, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(m->layout, NULL), FL_OK);
    ck_assert_int_eq(fl_blob_create(ENTRIES * sizeof(float), &m->model), FL_OK);
    (void)memset(fl_blob_fill(m->model), 0, ENTRIES * sizeof(float));
    digest_of(0, first);
    fl_rng_seed(&rng, 5);
    ck_assert_int_eq(fl_versions_create(first, &m->versions), FL_OK);
    for (round = 1; round <= MODELS; round++) {
        struct fl_step step = step_of(&rng, round, hashed);
        struct fl_versions *longer = NULL;

        ck_assert_int_eq(fl_versions_add(m->versions, &step, &longer), FL_OK);
        fl_versions_unref(m->versions);
        m->versions = longer;
    }
}

static void many_done(struct many *m)
{
    fl_differences_unref(m->d); /* and the versions */
    fl_blob_unref(m->model);
    fl_layout_free(m->layout);
}

/* In random order, some several times; what is sent meanwhile is more than the budget. */
TEST_EACH(memory_stays_within_the_budget_and_bytes_are_those_made_without_a_cache, 2)
{
    struct many m = {.layout = NULL};
    struct fl_blob *alone[MODELS] = {NULL};
    struct fl_blob *sent[16] = {NULL};
    size_t total = 0;
    size_t before;
    struct fl_rng rng;
    size_t i;

    many_make(&m, _i == 1);
    for (i = 0; i < MODELS; i++) {
        uint8_t held[FL_DIGEST_SIZE];
        int rv;

        digest_of(i, held);
        rv = moves_difference(m.versions, m.layout,
                              (const float *)(const void *)fl_blob_data(m.model), held, &alone[i]);
        ck_assert_int_eq(rv, alone[i] != NULL ? FL_OK : FL_ELIMIT);
        total += alone[i] != NULL ? fl_blob_len(alone[i]) : 0;
    }
    ck_assert_uint_gt(total, FL_DIFFERENCES_LEAST * 5 / 4);
    before = counted;
    counted_peak = counted;
    ck_assert_int_eq(fl_differences_create(m.layout, m.versions, m.model, &m.d), FL_OK);
    fl_rng_seed(&rng, 6);
    n_made = 0;
    for (i = 0; i < ASKED; i++) {
        uint64_t k = fl_rng_below(&rng, MODELS);
        struct fl_blob **slot = &sent[fl_rng_below(&rng, 16)];
        struct fl_blob *bytes = NULL;
        uint8_t held[FL_DIGEST_SIZE];
        int rv;

        digest_of(k, held);
        rv = fl_differences_get(m.d, held, &bytes);
        ck_assert_int_eq(rv, alone[k] != NULL ? FL_OK : FL_ENOENT);
        ck_assert(bytes == NULL ||
                  (fl_blob_len(bytes) == fl_blob_len(alone[k]) &&
                   memcmp(fl_blob_data(bytes), fl_blob_data(alone[k]), fl_blob_len(bytes)) == 0));
        ck_assert_uint_le(fl_differences_kept(m.d), fl_differences_budget(m.d));
        if (i >= ASKED / 2) { /* Half of the time each one ends before the next begins. */
            fl_blob_unref(*slot);
            *slot = bytes;
        } else {
            fl_blob_unref(bytes);
            ck_assert_uint_le(counted - before, fl_differences_kept(m.d));
#ifndef __SANITIZE_ADDRESS__ /* There realloc() copies what it makes shorter. */
            ck_assert_uint_le(counted_peak - before, fl_differences_budget(m.d));
#endif
        }
    }
    ck_assert_uint_gt(n_made, MODELS); /* Some were dropped. */
    for (i = 0; i < 16; i++) {
        fl_blob_unref(sent[i]);
    }
    for (i = 0; i < MODELS; i++) {
        fl_blob_unref(alone[i]);
    }
    many_done(&m);
}
