/* Spool files that are used again: nothing of the upload before counts, whatever happens when. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/store/recycled_files.h"
#include "tests/lib/container_file.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suites.h"

#define TOTAL (RIG_FC1 * sizeof(float))
#define BOOT  (32 + 16 + 8) /* behind one section and the id: where the boot id's hash stands */

static const struct fl_spool_part part = {.codec = FL_CODEC_FLOAT32, .bytes = TOTAL};
/* Smaller than that one: fc3. */
static const struct fl_spool_part small = {
    .unit = 2, .codec = FL_CODEC_FLOAT32, .bytes = RIG_FC3 * sizeof(float)};

static struct fl_layout *layout;
static struct fl_recycled *recycled;
static const char *dir;
static float before[RIG_FC1], after[RIG_FC1];

static void setup(void)
{
    size_t i;

    dir = rig_dir();
    layout = rig_layout();
    for (i = 0; i < RIG_FC1; i++) {
        before[i] = 1.0f + (float)i;
        after[i] = -0.5f * (float)i;
    }
    ck_assert_int_eq(fl_recycled_create(dir, &recycled, NULL), FL_OK);
}

static void teardown(void)
{
    fl_recycled_free(recycled);
    fl_layout_free(layout);
    rig_remove();
}

static const char *path_of(char out[RIG_PATH_MAX], const char *client)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "spool/%s.upload", client);
    return rig_path(out, name);
}

static ino_t inode_of(const char *client)
{
    char path[RIG_PATH_MAX];
    struct stat st;

    return stat(path_of(path, client), &st) == 0 ? st.st_ino : 0;
}

static struct fl_spool *begin(uint64_t round, const char *client, const struct fl_spool_part *of,
                              uint64_t want)
{
    struct fl_spool *s = NULL;
    struct fl_err err = {0};
    uint64_t received = 99;
    int rv = fl_spool_open(&(struct fl_spool_opening){dir, round, 1, client, of, 1, recycled}, &s,
                           &received, &err);

    ck_assert_msg(rv == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(received, want);
    return s;
}

static void send(struct fl_spool *s, const float *update, uint64_t from, uint64_t to)
{
    ck_assert_int_eq(
        fl_spool_write(s, from, (const char *)update + from, (size_t)(to - from), NULL), FL_OK);
}

static void finish(struct fl_spool *s)
{
    ck_assert_int_eq(fl_spool_finish(s, layout, 0.0, FL_DURABLE_PROCESS, NULL), FL_OK);
    fl_spool_close(s);
}

static void upload(uint64_t round, const char *client, const struct fl_spool_part *of,
                   const float *update)
{
    struct fl_spool *s = begin(round, client, of, 0);

    send(s, update, 0, of->bytes);
    finish(s);
}

static int read_back(uint64_t round, const char *client, const struct fl_spool_part *of, float *out)
{
    struct fl_spool_reader *r = NULL;
    struct fl_codec_decoder d;
    int rv = fl_spool_reader_open(dir, round, 1, client, layout, &r, NULL);

    if (rv == FL_OK) {
        rv = fl_spool_reader_unit(r, 0, of->unit, &d);
    }
    if (rv == FL_OK) {
        rv = d.ops->read(&d, out, (size_t)of->bytes / sizeof(float));
    }
    if (rv == FL_OK) {
        rv = d.ops->close(&d);
    }
    fl_spool_reader_close(r);
    return rv;
}

static void expect(uint64_t round, const char *client, const struct fl_spool_part *of,
                   const float *update)
{
    float *out = calloc(RIG_FC1, sizeof(*out));

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(read_back(round, client, of, out), FL_OK);
    ck_assert_mem_eq(out, update, of->bytes);
    free(out);
}

static void refused(uint64_t round, const char *client)
{
    float out[RIG_FC3];

    ck_assert(fl_spool_is_lost(read_back(round, client, &small, out)));
}

TEST_CASE("recycled", setup, teardown);

TEST(the_next_rounds_uploads_are_written_into_the_files_of_the_last)
{
    ino_t inode;

    upload(1, "a", &part, before);
    inode = inode_of("a");
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    ck_assert_uint_eq(fl_recycled_count(recycled), 1);
    upload(2, "b", &part, after);
    ck_assert_uint_eq(inode_of("b"), inode);
    ck_assert_uint_eq(inode_of("a"), 0);
    ck_assert_uint_eq(fl_recycled_count(recycled), 0);
    expect(2, "b", &part, after);
    upload(2, "c", &part, before); /* There is no other: it is made. */
    expect(2, "b", &part, after);
    expect(2, "c", &part, before);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    upload(3, "a", &small, after); /* Into a longer one. */
    expect(3, "a", &small, after);
}

TEST(a_client_of_the_last_round_writes_into_its_own_file)
{
    static const char *const names[] = {"c", "a", "b"};
    ino_t inodes[3];
    size_t i;

    for (i = 0; i < 3; i++) {
        upload(1, names[i], &small, before);
        inodes[i] = inode_of(names[i]);
    }
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    for (i = 0; i < 3; i++) {
        upload(2, names[i], &small, after);
        ck_assert_uint_eq(inode_of(names[i]), inodes[i]);
        ck_assert_uint_eq(fl_recycled_count(recycled), 2 - i);
    }
    fl_recycled_drop(recycled);
    for (i = 0; i < 3; i++) {
        expect(2, names[i], &small, after);
    }
}

TEST(a_file_that_this_round_wrote_is_given_to_nobody)
{
    upload(1, "a", &small, before);
    upload(1, "b", &small, before);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    upload(2, "a", &small, after);
    upload(2, "c", &small, before);
    upload(2, "d", &small, after);
    ck_assert_uint_eq(inode_of("b"), 0);
    expect(2, "a", &small, after);
    expect(2, "c", &small, before);
    expect(2, "d", &small, after);
}

TEST(a_new_attempt_takes_the_place_of_the_one_before)
{
    struct fl_spool *s = begin(1, "a", &small, 0);
    uint64_t received = 99;

    send(s, before, 0, small.bytes);
    finish(s);
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 1, 2, "a", &small, 1, recycled},
                                   &s, &received, NULL),
                     FL_OK);
    ck_assert_uint_eq(received, 0);
    send(s, after, 0, small.bytes);
    finish(s);
    refused(1, "a");
    ck_assert_uint_eq(fl_spool_peek(dir, 1, 1, "a"), 0);
    ck_assert_uint_eq(fl_spool_peek(dir, 1, 2, "a"), small.bytes);
}

TEST(there_are_never_more_than_the_uploads_of_the_last_round)
{
    char path[RIG_PATH_MAX];
    unsigned i;

    for (i = 0; i < 40; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "c%u", i);
        upload(1, name, &small, before);
    }
    ck_assert_int_eq(fl_fs_replace(rig_path(path, "spool/notes.txt"), "x", 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    ck_assert_uint_eq(fl_recycled_count(recycled), 40);
    upload(2, "a", &small, after);
    upload(2, "b", &small, after);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    ck_assert_uint_eq(fl_recycled_count(recycled), 2);
    fl_recycled_drop(recycled);
    ck_assert_uint_eq(fl_recycled_count(recycled), 0);
    ck_assert_uint_eq(inode_of("a") + inode_of("b") + inode_of("c1"), 0);
    ck_assert(fl_fs_exists(path));
}

/* As when the process ends between taking a file and writing its first bytes. */
TEST(a_file_with_another_uploads_head_counts_as_not_there)
{
    char from[RIG_PATH_MAX];
    char to[RIG_PATH_MAX];

    upload(2, "b", &small, before);
    ck_assert_int_eq(rename(path_of(from, "b"), path_of(to, "a")), 0);
    ck_assert_uint_eq(fl_spool_peek(dir, 2, 1, "a"), 0);
    refused(2, "a");
    upload(2, "a", &small, after);
    expect(2, "a", &small, after);
}

TEST(half_an_upload_over_a_whole_one_is_half_an_upload)
{
    struct fl_spool *s;
    ino_t inode;

    upload(1, "a", &part, before);
    inode = inode_of("a");
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    s = begin(2, "a", &part, 0);
    send(s, after, 0, 20001);
    fl_spool_close(s);
    ck_assert_uint_eq(inode_of("a"), inode);
    ck_assert_uint_eq(fl_spool_peek(dir, 2, 1, "a"), 20001);
    refused(2, "a");
    s = begin(2, "a", &part, 20001);
    send(s, after, 20001, TOTAL);
    refused(2, "a"); /* The checksums behind it are those of the other one. */
    finish(s);
    expect(2, "a", &part, after);
}

TEST(the_same_bytes_again_have_to_be_found_good_again)
{
    struct fl_spool *s;

    upload(1, "a", &small, before);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    s = begin(2, "a", &small, 0);
    send(s, before, 0, small.bytes);
    refused(2, "a");
    finish(s);
    expect(2, "a", &small, before);
}

/* 510 parts: the count stands alone on the last of four pages. */
TEST(a_head_of_which_only_the_first_pages_are_new_counts_as_not_there)
{
    struct fl_spool_part many[510];
    uint8_t old[4 * 4096];
    uint8_t new[4 * 4096];
    struct fl_spool *s = NULL;
    char path[RIG_PATH_MAX];
    uint64_t received = 99;
    size_t cut;
    int fd;
    size_t i;

    for (i = 0; i < 510; i++) {
        many[i] = (struct fl_spool_part){
            .unit = (uint32_t)i, .codec = FL_CODEC_FLOAT32, .bytes = sizeof(float)};
    }
    for (i = 1; i <= 2; i++) {
        ck_assert_int_eq(
            fl_spool_open(&(struct fl_spool_opening){dir, i, 1, "a", many, 510, recycled}, &s,
                          &received, NULL),
            FL_OK);
        ck_assert_uint_eq(received, 0);
        send(s, i == 1 ? before : after, 0, i == 1 ? sizeof(many[0].bytes) * 255 : 4);
        fl_spool_close(s);
        fd = open(path_of(path, "a"), O_RDONLY | O_CLOEXEC);
        ck_assert_int_eq(fl_fs_pread(fd, i == 1 ? old : new, sizeof(new), 0), FL_OK);
        (void)close(fd);
        ck_assert_int_eq(i == 1 ? fl_recycled_collect(recycled, NULL) : FL_OK, FL_OK);
    }
    ck_assert_uint_eq(fl_spool_peek(dir, 2, 1, "a"), 4);
    for (cut = 0; cut < sizeof(new); cut += 4096) {
        fd = open(path, O_RDWR | O_CLOEXEC);
        ck_assert_int_eq(fl_fs_pwrite(fd, old, sizeof(old), 0), FL_OK);
        ck_assert_int_eq(fl_fs_pwrite(fd, new, cut, 0), FL_OK);
        (void)close(fd);
        ck_assert_uint_eq(fl_spool_peek(dir, 2, 1, "a"), 0);
    }
}

TEST(a_file_that_is_longer_than_the_new_upload_needs_is_cut)
{
    char path[RIG_PATH_MAX];

    upload(1, "a", &part, before);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    upload(2, "a", &small, after);
    ck_assert_uint_eq(rig_size(path_of(path, "a")), 4096 + small.bytes + 16);
    expect(2, "a", &small, after);
}

/* Bytes of the new manifest must not be taken for those of the old one by whoever comes next. */
TEST(another_manifest_takes_away_what_was_counted_before_its_first_byte)
{
    struct fl_spool *s = begin(1, "a", &part, 0);

    send(s, before, 0, 1000);
    fl_spool_close(s);
    fl_spool_close(begin(1, "a", &small, 0));
    ck_assert_uint_eq(fl_spool_peek(dir, 1, 1, "a"), 0);
    fl_spool_close(begin(1, "a", &part, 0));
}

/* --- the machine went down --- */

/* As if the upload had been begun in an earlier run of the machine. */
static void reboot(const char *client)
{
    char path[RIG_PATH_MAX];
    struct fl_buf file;
    uint64_t before_hash;
    uint64_t hash;
    uint64_t seal;

    ck_assert_int_eq(fl_fs_read(path_of(path, client), 1 << 20, &file, NULL), FL_OK);
    (void)memcpy(&before_hash, file.data + container_covered(&file), sizeof(hash));
    file.data[BOOT] ^= 1;
    container_set_hash(&file);
    (void)memcpy(&hash, file.data + container_covered(&file), sizeof(hash));
    /* The seal of a finished upload depends on the head. */
    (void)memcpy(&seal, file.data + file.len - sizeof(seal), sizeof(seal));
    seal ^= before_hash ^ hash;
    (void)memcpy(file.data + file.len - sizeof(seal), &seal, sizeof(seal));
    ck_assert_int_eq(fl_fs_replace(path, file.data, file.len, false, NULL), FL_OK);
    fl_buf_done(&file);
}

TEST(what_was_not_finished_when_the_machine_went_down_begins_anew)
{
    struct fl_spool *s = begin(1, "a", &part, 0);

    send(s, before, 0, TOTAL);
    fl_spool_close(s);
    ck_assert_uint_eq(fl_spool_peek(dir, 1, 1, "a"), TOTAL);
    reboot("a");
    ck_assert_uint_eq(fl_spool_peek(dir, 1, 1, "a"), 0);
    s = begin(1, "a", &part, 0);
    send(s, after, 0, 5000);
    fl_spool_close(s);
    ck_assert_uint_eq(fl_spool_peek(dir, 1, 1, "a"), 5000);
    s = begin(1, "a", &part, 5000);
    send(s, after, 5000, TOTAL);
    finish(s);
    expect(1, "a", &part, after);
}

TEST(what_was_finished_is_there_after_a_boot_unless_the_disk_lost_some_of_it)
{
    char path[RIG_PATH_MAX];

    upload(1, "a", &part, before);
    reboot("a");
    ck_assert_uint_eq(fl_spool_peek(dir, 1, 1, "a"), TOTAL);
    expect(1, "a", &part, before);
    finish(begin(1, "a", &part, TOTAL));
    expect(1, "a", &part, before);
    reboot("a");
    rig_damage(path_of(path, "a"), 4096 + 777, 1);
    fl_spool_close(begin(1, "a", &part, 0));
}

/* --- somebody has it --- */

static void somebody_has_it(int lock)
{
    char path[RIG_PATH_MAX];
    uint8_t kept[4096];
    uint8_t now[4096];
    int fd;

    upload(1, "a", &part, before);
    fd = open(path_of(path, "a"), O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, lock), 0);
    ck_assert_int_eq(fl_fs_pread(fd, kept, sizeof(kept), 4096), FL_OK);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    upload(2, "b", &part, after);
    ck_assert_int_eq(fl_fs_pread(fd, now, sizeof(now), 4096), FL_OK);
    ck_assert_mem_eq(now, kept, sizeof(kept));
    expect(2, "b", &part, after);
    ck_assert_uint_eq(inode_of("a"), 0); /* Nobody else will find it. */
    (void)close(fd);
}

TEST(a_file_that_an_old_upload_still_writes_is_left_to_it)
{
    somebody_has_it(LOCK_EX | LOCK_NB);
}

TEST(a_file_that_a_backup_copies_is_left_to_it)
{
    somebody_has_it(LOCK_SH | LOCK_NB);
}

TEST(a_client_need_not_wait_for_a_backup_of_its_last_upload)
{
    char path[RIG_PATH_MAX];
    float copied[RIG_FC3];
    int fd;

    upload(1, "a", &small, before);
    fd = open(path_of(path, "a"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), 0);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    upload(2, "a", &small, after);
    expect(2, "a", &small, after);
    ck_assert_int_eq(fl_fs_pread(fd, copied, sizeof(copied), 4096), FL_OK);
    ck_assert_mem_eq(copied, before, sizeof(copied));
    (void)close(fd);
}

TEST(an_accepted_upload_that_a_backup_copies_keeps_its_name)
{
    struct fl_spool *s = NULL;
    char path[RIG_PATH_MAX];
    uint64_t received;
    ino_t inode;
    int fd;

    upload(1, "a", &small, before);
    inode = inode_of("a");
    fd = open(path_of(path, "a"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), 0);
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 1, 1, "a", &small, 1, recycled},
                                   &s, &received, NULL),
                     FL_EINUSE);
    ck_assert_uint_eq(inode_of("a"), inode);
    expect(1, "a", &small, before);
    (void)close(fd);
}

TEST(a_file_that_another_push_writes_is_not_taken_from_it)
{
    struct fl_spool *first;
    struct fl_spool *s = NULL;
    uint64_t received;

    upload(1, "a", &small, before);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    first = begin(2, "a", &small, 0); /* Its head is still that of the upload before. */
    ck_assert_int_eq(fl_spool_open(&(struct fl_spool_opening){dir, 2, 1, "a", &small, 1, recycled},
                                   &s, &received, NULL),
                     FL_EINUSE);
    send(first, after, 0, small.bytes);
    finish(first);
    expect(2, "a", &small, after);
}

TEST(a_spare_file_that_is_gone_is_made)
{
    char path[RIG_PATH_MAX];

    upload(1, "a", &small, before);
    ck_assert_int_eq(fl_recycled_collect(recycled, NULL), FL_OK);
    ck_assert_int_eq(unlink(path_of(path, "a")), 0);
    upload(2, "a", &small, after);
    expect(2, "a", &small, after);
    fl_recycled_free(NULL);
}
