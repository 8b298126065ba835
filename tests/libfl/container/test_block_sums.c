/* Checksums of the blocks of a byte range. */

#include "tests/lib/suites.h"
#include "tests/libfl/container/container_fixture.h"

#define BYTES (3 * FL_SUM_BLOCK + 100)

static uint8_t data[BYTES];

static void data_setup(void)
{
    size_t i;

    for (i = 0; i < BYTES; i++) {
        data[i] = (uint8_t)(i * 13 + i / 256);
    }
}

TEST_CASE("block_sums", data_setup, NULL);

TEST(a_block_has_16_KiB_and_the_last_may_be_shorter)
{
    ck_assert_uint_eq(FL_SUM_BLOCK, 16384);
    ck_assert_uint_eq(fl_block_sums_count(0), 0);
    ck_assert_uint_eq(fl_block_sums_count(1), 1);
    ck_assert_uint_eq(fl_block_sums_count(FL_SUM_BLOCK), 1);
    ck_assert_uint_eq(fl_block_sums_count(FL_SUM_BLOCK + 1), 2);
    ck_assert_uint_eq(fl_block_sums_count(UINT64_C(1) << 40), 1 << 26);
}

static const size_t pieces[] = {1, 1000, FL_SUM_BLOCK - 1, FL_SUM_BLOCK, FL_SUM_BLOCK + 1, BYTES};

TEST_EACH(checksums_do_not_depend_on_the_pieces, ARRAY_LEN(pieces))
{
    struct fl_block_sums sums = {.n = 0};
    size_t i;

    for (i = 0; i < BYTES; i += pieces[_i]) {
        size_t len = BYTES - i < pieces[_i] ? BYTES - i : pieces[_i];

        ck_assert_int_eq(fl_block_sums_reserve(&sums, len), FL_OK);
        fl_block_sums_add(&sums, data + i, len);
    }
    ck_assert_uint_eq(sums.n, 3);
    fl_block_sums_end(&sums);
    fl_block_sums_end(&sums); /* Again: nothing is added. */
    ck_assert_uint_eq(sums.n, 4);
    ck_assert_uint_eq(sums.bytes, BYTES);
    for (i = 0; i < 4; i++) {
        ck_assert_uint_eq(sums.list[i],
                          fl_checksum(data + i * FL_SUM_BLOCK, i < 3 ? FL_SUM_BLOCK : 100));
    }
    fl_block_sums_done(&sums);
    ck_assert_ptr_null(sums.list);
}

TEST(an_end_at_a_boundary_adds_no_block)
{
    struct fl_block_sums sums = {.n = 0};

    fl_block_sums_end(&sums);
    ck_assert_uint_eq(sums.n, 0);
    ck_assert_int_eq(fl_block_sums_reserve(&sums, FL_SUM_BLOCK), FL_OK);
    fl_block_sums_add(&sums, data, 100);
    fl_block_sums_add(&sums, data + 100, FL_SUM_BLOCK - 100);
    fl_block_sums_end(&sums);
    ck_assert_uint_eq(sums.n, 1);
    fl_block_sums_done(&sums);
}

TEST(a_range_matches_only_its_own_checksums)
{
    struct fl_block_sums sums = {.n = 0};
    size_t at;

    ck_assert_int_eq(fl_block_sums_reserve(&sums, BYTES), FL_OK);
    fl_block_sums_add(&sums, data, BYTES);
    fl_block_sums_end(&sums);
    ck_assert(fl_block_sums_match(sums.list, 0, data, BYTES));
    ck_assert(fl_block_sums_match(sums.list, FL_SUM_BLOCK, data + FL_SUM_BLOCK, FL_SUM_BLOCK));
    ck_assert(fl_block_sums_match(sums.list, 3 * FL_SUM_BLOCK, data + 3 * FL_SUM_BLOCK, 100));
    ck_assert(fl_block_sums_match(sums.list, BYTES - 100, data, 0));
    ck_assert(!fl_block_sums_match(sums.list, 0, data + FL_SUM_BLOCK, FL_SUM_BLOCK));
    ck_assert(!fl_block_sums_match(sums.list, 3 * FL_SUM_BLOCK, data + 3 * FL_SUM_BLOCK, 99));
    for (at = 0; at < BYTES; at += 1009) {
        size_t block = at / FL_SUM_BLOCK * FL_SUM_BLOCK;

        data[at] ^= 4;
        ck_assert(!fl_block_sums_match(sums.list, 0, data, BYTES));
        ck_assert(!fl_block_sums_match(sums.list, block, data + block, BYTES - block));
        data[at] ^= 4;
    }
    fl_block_sums_done(&sums);
}
