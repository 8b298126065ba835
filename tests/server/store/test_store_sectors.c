/*
 * Spool files on a disk with bad sectors: a file that cannot be read, written, cut or synced is
 * quarantined, and its client's next upload gets a new one.
 */
#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/store/recycled_files.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"
#include "tests/lib/wrap_pwrite.h"

TESTS_APART("a bad sector stays bad");

#define TOTAL  (RIG_FC1 * sizeof(float))
#define HEADER 4096

#if SIZE_MAX <= UINT32_MAX
#define __wrap_pread     __wrap_pread64
#define __real_pread     __real_pread64
#define __wrap_ftruncate __wrap_ftruncate64
#define __real_ftruncate __real_ftruncate64
#endif

static const struct fl_spool_part part = {.codec = FL_CODEC_FLOAT32, .bytes = TOTAL};

static struct fl_layout *layout;
static struct fl_recycled *recycled;
static const char *dir;
static float update[RIG_FC1];

/* --- the disk --- */

/* One sector of one file; a rename takes it along. */
static ino_t bad_inode; /* 0: none */
static off_t bad_at;
static bool bad_reads, bad_writes, bad_cuts;
static int sync_error; /* of the next sync; those behind it say that all is well */

static bool is_bad(int fd, off_t offset, size_t len)
{
    struct stat st;

    if (bad_inode == 0 || fstat(fd, &st) != 0 || st.st_ino != bad_inode ||
        offset + (off_t)len <= bad_at || offset >= bad_at + 512)
    {
        return false;
    }
    errno = EIO;
    return true;
}

ssize_t __real_pread(int fd, void *data, size_t len, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t len, off_t offset);
ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t offset);
int __real_ftruncate(int fd, off_t len);
int __wrap_ftruncate(int fd, off_t len);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

ssize_t __wrap_pread(int fd, void *data, size_t len, off_t offset)
{
    return bad_reads && is_bad(fd, offset, len) ? -1 : __real_pread(fd, data, len, offset);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t offset)
{
    return bad_writes && is_bad(fd, offset, len) ? -1 : __real_pwrite(fd, data, len, offset);
}

int __wrap_ftruncate(int fd, off_t len)
{
    return bad_cuts && is_bad(fd, 0, SIZE_MAX / 2) ? -1 : __real_ftruncate(fd, len);
}

int __wrap_fdatasync(int fd)
{
    errno = sync_error;
    sync_error = 0;
    return errno != 0 ? -1 : __real_fdatasync(fd);
}

/* --- uploads --- */

static void setup(void)
{
    size_t i;

    dir = rig_dir();
    layout = rig_layout();
    for (i = 0; i < RIG_FC1; i++) {
        update[i] = 1.0f + (float)i;
    }
    ck_assert_int_eq(fl_recycled_create(dir, &recycled, NULL), FL_OK);
}

static void teardown(void)
{
    fl_recycled_free(recycled);
    fl_layout_free(layout);
    rig_remove();
}

static const char *path_of(char out[RIG_PATH_MAX], const char *client, const char *suffix)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "spool/%s.upload%s", client, suffix);
    return rig_path(out, name);
}

static ino_t inode_of(const char *client, const char *suffix)
{
    char path[RIG_PATH_MAX];
    struct stat st;

    return stat(path_of(path, client, suffix), &st) == 0 ? st.st_ino : 0;
}

static int try_open(uint64_t round, const char *client, struct fl_spool **ret, uint64_t want,
                    struct fl_err *err)
{
    uint64_t received = 99;
    int rv = fl_spool_open(&(struct fl_spool_opening){dir, round, 1, client, &part, 1, recycled},
                           ret, &received, err);

    if (rv == FL_OK) {
        ck_assert_uint_eq(received, want);
    }
    return rv;
}

/* From `from` to the end. */
static int finish(struct fl_spool *s, uint64_t from, enum fl_durability durability,
                  struct fl_err *err)
{
    int rv = from < TOTAL
                 ? fl_spool_write(s, from, (const char *)update + from, (size_t)(TOTAL - from), err)
                 : FL_OK;

    rv = rv == FL_OK ? fl_spool_finish(s, layout, 0.0, durability, err) : rv;
    fl_spool_close(s);
    return rv;
}

static int upload(uint64_t round, const char *client, struct fl_err *err)
{
    struct fl_spool *s = NULL;
    int rv = try_open(round, client, &s, 0, err);

    return rv == FL_OK ? finish(s, 0, FL_DURABLE_PROCESS, err) : rv;
}

static int read_back(uint64_t round, const char *client, struct fl_err *err)
{
    float *out = calloc(RIG_FC1, sizeof(*out));
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder d;
    int rv = fl_spool_reader_open(dir, round, 1, client, layout, &r, err);

    ck_assert_ptr_nonnull(out);
    if (rv == FL_OK) {
        ck_assert_int_eq(fl_spool_reader_unit(r, 0, 0, &d), FL_OK);
        rv = d.ops->read(&d, out, RIG_FC1);
        if (rv == FL_OK) {
            ck_assert_mem_eq(out, update, TOTAL);
        } else {
            fl_spool_reader_explain(r, rv, err);
        }
    }
    fl_spool_reader_close(r);
    free(out);
    return rv;
}

/* What was refused is quarantined, and the next try is made into another file. */
static void expect_quarantined(uint64_t round, const char *client, const struct fl_err *err)
{
    ck_assert_ptr_nonnull(strstr(err->msg, "nput/output error"));
    ck_assert_ptr_nonnull(strstr(err->msg, ".upload.bad'"));
    ck_assert_uint_eq(inode_of(client, ".bad"), bad_inode);
    ck_assert_uint_eq(inode_of(client, ""), 0);
    ck_assert_uint_eq(fl_spool_peek(dir, round, 1, client), 0);
    ck_assert_int_eq(upload(round, client, NULL), FL_OK);
    ck_assert_int_eq(read_back(round, client, NULL), FL_OK);
    ck_assert_uint_ne(inode_of(client, ""), bad_inode);
}

/* --- tests --- */

static const struct {
    off_t at;
    bool reads, writes, cuts;
} sectors[] = {
    {0, true, false, false},            /* its head */
    {0, true, true, false},             /* for reading and for writing */
    {HEADER + 512, false, true, false}, /* its middle, found when it is written over */
    {0, false, false, true},            /* it cannot be cut */
};

TEST_CASE("all", setup, teardown);

TEST_EACH(a_bad_sector_in_the_file_of_an_earlier_round_costs_one_try, ARRAY_LEN(sectors))
{
    struct fl_err err = {0};
    char path[RIG_PATH_MAX];

    ck_assert_int_eq(upload(1, "a", NULL), FL_OK);
    rig_cut(path_of(path, "a", ""), 1 << 20); /* Longer than it has to be. */
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    bad_inode = inode_of("a", "");
    bad_at = sectors[_i].at;
    bad_reads = sectors[_i].reads;
    bad_writes = sectors[_i].writes;
    bad_cuts = sectors[_i].cuts;
    ck_assert_int_eq(upload(2, "a", &err), FL_EIO);
    expect_quarantined(2, "a", &err);
}

TEST(a_bad_sector_in_what_was_received_costs_the_upload_and_no_more)
{
    struct fl_spool *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(try_open(1, "a", &s, 0, NULL), FL_OK);
    ck_assert_int_eq(fl_spool_write(s, 0, update, 20000, NULL), FL_OK);
    fl_spool_close(s);
    bad_inode = inode_of("a", "");
    bad_at = HEADER + 1024;
    bad_reads = true;
    ck_assert_int_eq(try_open(1, "a", &s, 20000, &err), FL_EIO);
    expect_quarantined(1, "a", &err);
}

TEST(a_bad_sector_that_is_found_when_an_upload_is_checked_costs_the_upload_and_no_more)
{
    struct fl_spool *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(try_open(1, "a", &s, 0, NULL), FL_OK);
    ck_assert_int_eq(fl_spool_write(s, 0, update, 20000, NULL), FL_OK);
    bad_inode = inode_of("a", "");
    bad_at = HEADER + 1024;
    bad_reads = true;
    ck_assert_int_eq(finish(s, 20000, FL_DURABLE_PROCESS, &err), FL_EIO);
    expect_quarantined(1, "a", &err);
}

TEST(another_clients_file_with_a_bad_sector_costs_one_try)
{
    struct fl_err err = {0};

    ck_assert_int_eq(upload(1, "b", NULL), FL_OK);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    bad_inode = inode_of("b", "");
    bad_at = 0;
    bad_writes = true;
    ck_assert_int_eq(upload(2, "a", &err), FL_EIO);
    expect_quarantined(2, "a", &err);
}

static const int sync_errors[] = {EIO, ENOSPC, EDQUOT};

/* The pages are clean after the error: a second sync says that they are on disk. */
TEST_EACH(after_a_failed_sync_nothing_of_the_file_counts, ARRAY_LEN(sync_errors))
{
    struct fl_spool *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(try_open(1, "a", &s, 0, NULL), FL_OK);
    bad_inode = inode_of("a", "");
    sync_error = sync_errors[_i];
    ck_assert_int_ne(finish(s, 0, FL_DURABLE_POWER, &err), FL_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "cannot sync"));
    ck_assert_uint_eq(fl_spool_peek(dir, 1, 1, "a"), 0);
    ck_assert_uint_eq(inode_of("a", ""), 0);
    ck_assert_int_eq(try_open(1, "a", &s, 0, NULL), FL_OK);
    ck_assert(_i != 0 || inode_of("a", "") != bad_inode);
    ck_assert_int_eq(finish(s, 0, FL_DURABLE_POWER, NULL), FL_OK);
    ck_assert_int_eq(read_back(1, "a", NULL), FL_OK);
}

TEST_EACH(an_accepted_update_that_cannot_be_read_stays_where_readers_find_it, 2)
{
    struct fl_err err = {0};

    ck_assert_int_eq(upload(1, "a", NULL), FL_OK);
    bad_inode = inode_of("a", "");
    bad_at = _i == 0 ? 0 : HEADER + 20000;
    bad_reads = true;
    ck_assert_int_eq(read_back(1, "a", &err), FL_EIO);
    ck_assert_ptr_nonnull(strstr(err.msg, ".upload.bad'"));
    ck_assert_int_eq(read_back(1, "a", NULL), FL_EIO);
    bad_reads = false; /* It was a cable. */
    ck_assert_int_eq(read_back(1, "a", NULL), FL_OK);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    ck_assert_uint_eq(fl_recycled_count(recycled), 0);
    ck_assert_int_eq(upload(2, "a", NULL), FL_OK);
    ck_assert_uint_ne(inode_of("a", ""), bad_inode);
}

TEST(no_more_than_16_quarantined_files_stay)
{
    char name[8];
    size_t n = 0;
    unsigned i;

    bad_at = HEADER;
    bad_writes = true;
    for (i = 0; i < 40; i++) {
        struct fl_spool *s = NULL;

        (void)snprintf(name, sizeof(name), "c%u", i);
        ck_assert_int_eq(try_open(1, name, &s, 0, NULL), FL_OK);
        bad_inode = inode_of(name, "");
        ck_assert_int_eq(finish(s, 0, FL_DURABLE_PROCESS, NULL), FL_EIO);
    }
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    for (i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof(name), "c%u", i);
        n += inode_of(name, ".bad") != 0;
    }
    ck_assert_uint_eq(n, 16);
}
