/*
 * Container files without memory, on a disk that fails, and with writing that a crash interrupts:
 * the path holds the old or the new contents, complete.
 */

#include <errno.h>
#include <stdbool.h>

#include "tests/lib/failmalloc.h"
#include "tests/lib/suites.h"
#include "tests/lib/wrap_files.h"
#include "tests/libfl/container/container_fixture.h"

TESTS_APART("a fault that a test arms stays armed");

#if SIZE_MAX <= UINT32_MAX
#define __wrap_pread __wrap_pread64
#define __real_pread __real_pread64
#endif

/* --- the disk --- */

static int calls;   /* of functions that change or sync files */
static int fail_at; /* this call of them fails with `fail_errno`; -1: none */
static int fail_errno;
static bool dead;    /* A call that fails is a crash: no later one does anything. */
static int pread_at; /* this read fails with EIO; -1: none */
static int preads;
static off_t last_write_at;
static char order[64]; /* a letter for each call: Write, Data and file sync, Rename, Unlink */

static void disk_works(void)
{
    calls = 0;
    preads = 0;
    fail_at = -1;
    pread_at = -1;
    fail_errno = EIO;
    dead = false;
    (void)memset(order, 0, sizeof(order));
}

static bool call_fails(char letter)
{
    size_t len = strlen(order);
    bool fails = calls == fail_at || (dead && fail_at >= 0 && calls > fail_at);

    calls++;
    if (len + 1 < sizeof(order)) {
        order[len] = letter;
    }
    errno = fail_errno;
    return fails;
}

ssize_t __real_pread(int fd, void *data, size_t len, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t len, off_t offset);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

ssize_t __wrap_pread(int fd, void *data, size_t len, off_t offset)
{
    if (preads++ == pread_at) {
        errno = EIO;
        return -1;
    }
    return __real_pread(fd, data, len, offset);
}

/* A crash in the middle of a write leaves half of it. */
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t offset)
{
    bool first = calls == fail_at;

    last_write_at = offset;
    if (call_fails('W')) {
        if (first && dead) {
            ck_assert_int_ge(__real_pwrite(fd, data, len / 2, offset), 0);
            errno = fail_errno;
        }
        return -1;
    }
    return __real_pwrite(fd, data, len, offset);
}

int __wrap_fsync(int fd)
{
    return call_fails('S') ? -1 : __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
    return call_fails('D') ? -1 : __real_fdatasync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    return call_fails('R') ? -1 : __real_rename(from, to);
}

int __wrap_unlink(const char *path)
{
    return call_fails('U') ? -1 : __real_unlink(path);
}

/* --- writing the new contents over the old, in both ways --- */

static struct fl_container_content changed; /* the new contents: other fields */

static void faults_setup(void)
{
    disk_works();
    sample_setup();
    changed = sample_content;
    changed.fields = "Fields!";
    sample_write();
    disk_works();
}

static void faults_teardown(void)
{
    disk_works();
    sample_teardown();
}

static int write_at_once(void)
{
    return fl_container_replace(sample_path, &sample_kind, &changed, true, &err);
}

static int write_in_pieces(void)
{
    struct fl_container_writer *w;
    size_t i;
    int rv = fl_container_writer_create(sample_path, &sample_kind, &changed, &w, &err);

    for (i = 0; rv == FL_OK && i < N_SECTIONS; i++) {
        rv = fl_container_writer_add(w, i, sample_parts[i].data, (size_t)sample_parts[i].bytes,
                                     &err);
        if (rv != FL_OK) {
            fl_container_writer_abandon(w);
            return rv;
        }
    }
    return rv != FL_OK ? rv : fl_container_writer_publish(w, true, &err);
}

static int (*const ways[])(void) = {write_at_once, write_in_pieces};

/* The file is complete; are its contents the new ones? */
static bool is_new(void)
{
    struct fl_container c;
    bool is;

    ck_assert_msg(sample_check(&sample_kind) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_container_open(sample_path, &sample_kind, &c, NULL), FL_OK);
    is = memcmp(c.head.fields, "Fields!", FIELDS_LEN) == 0;
    ck_assert(is || memcmp(c.head.fields, FIELDS, FIELDS_LEN) == 0);
    fl_container_close(&c);
    return is;
}

static bool has_temporary(void)
{
    char tmp[sizeof(sample_path) + 4];

    (void)snprintf(tmp, sizeof(tmp), "%s.tmp", sample_path);
    return fl_fs_exists(tmp);
}

TEST_CASE("interrupted", faults_setup, faults_teardown);

/* Where the rename is among the calls that change a file. */
static int rename_of(void)
{
    const char *at = strchr(order, 'R');

    ck_assert_ptr_nonnull(at);
    return (int)(at - order);
}

TEST_EACH(contents_are_synced_before_the_rename_and_the_folder_after_it, ARRAY_LEN(ways))
{
    int at;

    ck_assert_int_eq(ways[_i](), FL_OK);
    at = rename_of();
    ck_assert_int_eq(order[at - 1], _i == 0 ? 'S' : 'D');
    ck_assert_str_eq(order + at, "RS");
    ck_assert(is_new());
}

/* With the head the file is complete: before it, all else has been written. */
TEST(the_head_is_written_last)
{
    ck_assert_int_eq(write_in_pieces(), FL_OK);
    ck_assert_int_eq(last_write_at, 0);
}

TEST_EACH(a_crash_at_any_call_keeps_the_old_or_the_new_contents, ARRAY_LEN(ways))
{
    int n_calls;
    int i;

    ck_assert_int_eq(ways[_i](), FL_OK);
    n_calls = calls;
    for (i = 0; i < n_calls; i++) {
        bool renamed;

        disk_works();
        sample_write();
        disk_works();
        fail_at = i;
        dead = true;
        ck_assert_int_ne(ways[_i](), FL_OK);
        renamed = strchr(order, 'R') != NULL && i > rename_of();
        disk_works();
        ck_assert_int_eq(is_new(), renamed);
        /* The next writer does not mind what the crash left. */
        ck_assert_int_eq(ways[_i](), FL_OK);
        ck_assert(is_new() && !has_temporary());
    }
}

TEST_EACH(a_failed_call_is_reported_and_leaves_no_temporary_file, ARRAY_LEN(ways))
{
    static const char *const said[] = {['W'] = "cannot write '",
                                       ['S'] = "cannot sync ",
                                       ['D'] = "cannot sync '",
                                       ['R'] = "cannot rename to '"};
    char sequence[sizeof(order)];
    int i;

    ck_assert_int_eq(ways[_i](), FL_OK);
    (void)memcpy(sequence, order, sizeof(sequence));
    for (i = 0; sequence[i] != '\0'; i++) {
        disk_works();
        fail_at = i;
        fail_errno = ENOSPC;
        ck_assert_int_eq(ways[_i](), FL_ENOSPC);
        sample_says(said[(int)sequence[i]]);
        disk_works();
        ck_assert(!has_temporary());
        ck_assert_int_eq(sample_check(&sample_kind), FL_OK);
    }
}

/* A head in several writes could be half of one and half of another. */
TEST(a_head_is_one_write)
{
    struct fl_container_head head;
    int fd = open(sample_path, O_RDWR | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fl_container_head_make(&sample_kind, &sample_content, &head), FL_OK);
    ck_assert_int_eq(fl_container_head_write(fd, &head), FL_OK);
    ck_assert_int_eq(fl_container_count_write(fd, &head), FL_OK);
    ck_assert_str_eq(order, "WW");
    fail_at = calls;
    ck_assert_int_eq(fl_container_head_write(fd, &head), FL_EIO);
    fail_at = calls;
    ck_assert_int_eq(fl_container_count_write(fd, &head), FL_EIO);
    fail_at = calls;
    ck_assert_int_eq(fl_container_tail_write(fd, &head, (uint64_t[N_BLOCKS]){0}), FL_EIO);
    fl_container_head_done(&head);
    (void)close(fd);
}

/* An error of the disk is no damage: the file may be fine. */
TEST(a_read_that_fails_is_no_damage)
{
    int n_reads;
    int i;

    ck_assert_int_eq(sample_check(&sample_kind), FL_OK);
    n_reads = preads;
    ck_assert_int_ge(n_reads, 2 + N_SECTIONS - 1); /* head, checksums, sections with bytes */
    for (i = 0; i < n_reads; i++) {
        disk_works();
        pread_at = i;
        sample_refused(FL_EIO, "cannot read '");
    }
}

/* --- memory --- */

TEST_CASE("memory", faults_setup, faults_teardown);

TEST(a_reader_without_memory_says_so_at_every_allocation)
{
    size_t n;
    size_t i;
    int rv;

    failmalloc_start(SIZE_MAX, false);
    rv = sample_check(&sample_kind);
    n = failmalloc_stop();
    ck_assert_int_eq(rv, FL_OK);
    ck_assert_uint_ge(n, 4); /* the head, its sections and fields; the checksums */
    for (i = 0; i < n; i++) {
        failmalloc_start(i, false);
        rv = sample_check(&sample_kind);
        (void)failmalloc_stop();
        ck_assert_int_eq(rv, FL_ENOMEM);
        sample_says("cannot read '");
    }
}

TEST_EACH(a_writer_without_memory_keeps_the_old_contents, ARRAY_LEN(ways))
{
    size_t n;
    size_t i;
    int rv;

    failmalloc_start(SIZE_MAX, false);
    rv = ways[_i]();
    n = failmalloc_stop();
    ck_assert_int_eq(rv, FL_OK);
    ck_assert_uint_ge(n, 4);
    sample_write();
    for (i = 0; i < n; i++) {
        err = (struct fl_err){0};
        failmalloc_start(i, false);
        rv = ways[_i]();
        (void)failmalloc_stop();
        ck_assert_int_eq(rv, FL_ENOMEM);
        sample_says("cannot write '");
        ck_assert(!is_new() && !has_temporary());
    }
}

TEST(heads_and_checksums_without_memory_are_errors)
{
    struct fl_container_head head;
    int fd = open(sample_path, O_RDWR | O_CLOEXEC);
    int written;
    int tail;
    size_t i;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fl_container_head_make(&sample_kind, &sample_content, &head), FL_OK);
    failmalloc_start(0, true);
    written = fl_container_head_write(fd, &head);
    tail = fl_container_tail_write(fd, &head, (uint64_t[N_BLOCKS]){0});
    (void)failmalloc_stop();
    ck_assert_int_eq(written, FL_ENOMEM);
    ck_assert_int_eq(tail, FL_ENOMEM);
    fl_container_head_done(&head);
    for (i = 0; i < 2; i++) {
        failmalloc_start(i, false);
        written = fl_container_head_make(&sample_kind, &sample_content, &head);
        (void)failmalloc_stop();
        ck_assert_int_eq(written, FL_ENOMEM);
    }
    ck_assert_int_eq(sample_check(&sample_kind), FL_OK); /* Nothing was written. */
    (void)close(fd);
}

TEST(adding_within_reserved_memory_needs_none)
{
    struct fl_block_sums sums = {.n = 0};
    int rv;

    ck_assert_int_eq(fl_block_sums_reserve(&sums, FIRST_BYTES), FL_OK);
    failmalloc_start(0, true);
    fl_block_sums_add(&sums, sample_first, 100);
    fl_block_sums_add(&sums, sample_first + 100, FIRST_BYTES - 100);
    fl_block_sums_end(&sums);
    rv = fl_block_sums_reserve(&sums, 100 * FL_SUM_BLOCK);
    ck_assert_uint_eq(failmalloc_stop(), 1);
    ck_assert_int_eq(rv, FL_ENOMEM);
    ck_assert_uint_eq(sums.n, 2);
    fl_block_sums_done(&sums);
}

/* --- lengths are checked before memory is allocated --- */

static int read_with_allocations(size_t n)
{
    int rv;

    failmalloc_start(n, true);
    rv = sample_check(NULL);
    (void)failmalloc_stop();
    return rv;
}

TEST(a_head_that_is_longer_than_its_file_takes_no_memory)
{
    struct fl_buf file = sample_bytes();
    const uint32_t n = FL_CONTAINER_MAX_SECTIONS;
    const uint32_t fields = FL_CONTAINER_MAX_FIELDS;

    (void)memcpy(file.data + AT_N, &n, sizeof(n));
    (void)memcpy(file.data + AT_F, &fields, sizeof(fields));
    sample_put(&file);
    ck_assert_int_eq(read_with_allocations(0), FL_EFORMAT);
    sample_says("its head alone has");
    fl_buf_done(&file);
}

TEST(checksums_behind_the_end_of_the_file_take_no_memory)
{
    const uint64_t bytes = UINT64_C(1) << 55;
    struct fl_container_head head;
    struct fl_buf file = sample_bytes();
    uint64_t *sums = NULL;
    int rv;
    int fd;

    (void)memcpy(file.data + AT_SECTIONS + 8, &bytes, sizeof(bytes));
    container_set_hash(&file);
    sample_put(&file);
    fl_buf_done(&file);
    ck_assert_int_eq(read_with_allocations(3), FL_EFORMAT); /* three for the head */
    sample_says("bytes, its head says");
    fd = open(sample_path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(fl_container_head_read(fd, sample_path, &sample_kind, &head, NULL), FL_OK);
    failmalloc_start(0, true);
    rv = fl_container_tail_read(fd, sample_path, &head, &sums, &err);
    (void)failmalloc_stop();
    ck_assert_int_eq(rv, FL_EFORMAT);
    sample_says("bytes, its head says");
    fl_container_head_done(&head);
    (void)close(fd);
}
