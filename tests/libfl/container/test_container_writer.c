/* Files that are written in pieces, published when complete, and files that are written in place.
 */

#include "tests/lib/suites.h"
#include "tests/libfl/container/container_fixture.h"

static char tmp_path[sizeof(sample_path) + 4];

static void writer_setup(void)
{
    sample_setup();
    (void)snprintf(tmp_path, sizeof(tmp_path), "%s.tmp", sample_path);
}

static struct fl_container_writer *writer(void)
{
    struct fl_container_writer *w = NULL;

    ck_assert_int_eq(
        fl_container_writer_create(sample_path, &sample_kind, &sample_content, &w, &err), FL_OK);
    return w;
}

static void add(struct fl_container_writer *w, size_t section, size_t from, size_t len)
{
    const uint8_t *data = sample_parts[section].data;

    ck_assert_uint_eq(fl_container_writer_at(w, section), from);
    ck_assert_int_eq(fl_container_writer_add(w, section, data + from, len, &err), FL_OK);
    ck_assert_uint_eq(fl_container_writer_at(w, section), from + len);
}

/* Its sections in turns. */
static void add_all(struct fl_container_writer *w)
{
    add(w, LONG_NAME, 0, 4);
    add(w, FIRST, 0, 3);
    add(w, SMALL, 0, 5);
    add(w, FIRST, 3, FL_SUM_BLOCK);
    add(w, LONG_NAME, 4, 6);
    add(w, FIRST, FL_SUM_BLOCK + 3, 2);
}

TEST_CASE("writer", writer_setup, sample_teardown);

TEST(a_file_in_pieces_is_the_same_as_one_from_memory)
{
    struct fl_container_writer *w;
    struct fl_buf at_once;
    struct fl_buf file;

    sample_write();
    at_once = sample_bytes();
    ck_assert_int_eq(fl_fs_remove(sample_path), FL_OK);
    w = writer();
    add_all(w);
    ck_assert(!fl_fs_exists(sample_path));
    ck_assert_int_eq(fl_container_writer_publish(w, true, &err), FL_OK);
    ck_assert(!fl_fs_exists(tmp_path));
    file = sample_bytes();
    ck_assert_uint_eq(file.len, at_once.len);
    ck_assert_mem_eq(file.data, at_once.data, file.len);
    fl_buf_done(&file);
    fl_buf_done(&at_once);
}

TEST(a_writer_copies_what_it_needs)
{
    char name[] = "first";
    char fields[] = FIELDS;
    char path[sizeof(sample_path)];
    struct fl_container_part part = {.name = name, .bytes = 3};
    struct fl_container_content content = {fields, FIELDS_LEN, &part, 1};
    struct fl_container_writer *w;
    struct fl_container c;

    (void)memcpy(path, sample_path, sizeof(path));
    ck_assert_int_eq(fl_container_writer_create(path, &sample_kind, &content, &w, NULL), FL_OK);
    (void)memset(path, 'x', sizeof(path) - 1);
    (void)memset(name, 'x', sizeof(name) - 1);
    (void)memset(fields, 'x', sizeof(fields) - 1);
    part.bytes = 9;
    ck_assert_int_eq(fl_container_writer_add(w, 0, "abc", 3, NULL), FL_OK);
    ck_assert_int_eq(fl_container_writer_publish(w, false, NULL), FL_OK);
    ck_assert_int_eq(fl_container_open(sample_path, &sample_kind, &c, NULL), FL_OK);
    ck_assert_str_eq(c.head.sections[0].name, "first");
    ck_assert_mem_eq(c.head.fields, FIELDS, FIELDS_LEN);
    fl_container_close(&c);
}

TEST(a_section_takes_no_more_than_its_bytes)
{
    struct fl_container_writer *w = writer();

    add(w, SMALL, 0, 3);
    ck_assert_int_eq(fl_container_writer_add(w, SMALL, "lll", 3, &err), FL_ERANGE);
    sample_says("section 2 of '");
    sample_says("has 5 bytes, not 6");
    ck_assert_uint_eq(fl_container_writer_at(w, SMALL), 3);
    ck_assert_int_eq(fl_container_writer_add(w, EMPTY, "", 1, &err), FL_ERANGE);
    ck_assert_int_eq(fl_container_writer_add(w, EMPTY, "", 0, &err), FL_OK);
    add(w, SMALL, 3, 2); /* What was refused has changed nothing. */
    add(w, FIRST, 0, FIRST_BYTES);
    add(w, LONG_NAME, 0, 10);
    ck_assert_int_eq(fl_container_writer_publish(w, false, &err), FL_OK);
    ck_assert_int_eq(sample_check(&sample_kind), FL_OK);
}

TEST(an_incomplete_file_is_not_published)
{
    struct fl_container_content content = sample_content;
    struct fl_container_writer *w;

    sample_write();
    content.fields = "Fields!";
    ck_assert_int_eq(fl_container_writer_create(sample_path, &sample_kind, &content, &w, NULL),
                     FL_OK);
    add(w, FIRST, 0, FIRST_BYTES);
    add(w, SMALL, 0, 5);
    add(w, LONG_NAME, 0, 9);
    ck_assert_int_eq(fl_container_writer_publish(w, false, &err), FL_ESTATE);
    sample_says("section 3 of '");
    sample_says("has 9 of 10 bytes");
    ck_assert(!fl_fs_exists(tmp_path));
    ck_assert_int_eq(sample_check(&sample_kind), FL_OK);
}

/* The head is written last: what a crash leaves is no file of this format. */
TEST(a_file_that_is_not_published_has_no_head)
{
    struct fl_container_writer *w = writer();
    int fd;

    add_all(w);
    fd = open(tmp_path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert(!fl_container_is(fd, NULL));
    (void)close(fd);
    fl_container_writer_abandon(w);
    ck_assert(!fl_fs_exists(tmp_path) && !fl_fs_exists(sample_path));
    fl_container_writer_abandon(NULL);
}

TEST(a_writer_replaces_what_an_earlier_one_did_not_complete)
{
    struct fl_buf junk = {.data = NULL};
    struct fl_container_writer *w;

    fl_buf_init(&junk, SIZE_MAX);
    ck_assert_int_eq(fl_buf_reserve(&junk, 100000), FL_OK);
    (void)memset(junk.data, 0xa5, 100000);
    ck_assert_int_eq(fl_fs_replace(tmp_path, junk.data, 100000, false, NULL), FL_OK);
    fl_buf_done(&junk);
    w = writer();
    add_all(w);
    ck_assert_int_eq(fl_container_writer_publish(w, false, &err), FL_OK);
    ck_assert_int_eq(sample_check(&sample_kind), FL_OK);
}

TEST(a_writer_that_cannot_be_created_says_why)
{
    static char path[5000];
    struct fl_container_kind kind = sample_kind;
    struct fl_container_writer *w = NULL;

    (void)memset(path, 'x', sizeof(path) - 1);
    ck_assert_int_eq(fl_container_writer_create(path, &sample_kind, &sample_content, &w, &err),
                     FL_ELIMIT);
    sample_says("path 'xxx"); /* The message itself has a limit. */
    path[4092] = '\0';        /* With ".tmp" it is one character too long. */
    ck_assert_int_eq(fl_container_writer_create(path, &sample_kind, &sample_content, &w, &err),
                     FL_ELIMIT);
    (void)snprintf(path, sizeof(path), "%s/none/file", sample_dir);
    ck_assert_int_eq(fl_container_writer_create(path, &sample_kind, &sample_content, &w, &err),
                     FL_ENOENT);
    sample_says("cannot create '");
    kind.max_fields = 0;
    ck_assert_int_eq(fl_container_writer_create(sample_path, &kind, &sample_content, &w, &err),
                     FL_EINVAL);
    sample_says("cannot write '");
    ck_assert(!fl_fs_exists(tmp_path));
    ck_assert_ptr_null(w);
}

/* --- written in place --- */

static const struct fl_container_kind place_kind = {.name = "place",
                                                    .version = 1,
                                                    .flags = FL_CONTAINER_IN_PLACE,
                                                    .max_sections = N_SECTIONS,
                                                    .max_fields = FIELDS_LEN};
static struct fl_container_head place;
static int place_fd;

/* Over the bytes of an older, longer file. */
static void place_setup(void)
{
    static uint8_t old[100000];

    writer_setup();
    (void)memset(old, 0xa5, sizeof(old));
    ck_assert_int_eq(fl_fs_replace(sample_path, old, sizeof(old), false, NULL), FL_OK);
    place_fd = open(sample_path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(place_fd, 0);
    ck_assert_int_eq(fl_container_head_make(&place_kind, &sample_content, &place), FL_OK);
    ck_assert_int_eq(fl_container_head_write(place_fd, &place), FL_OK);
}

static void place_teardown(void)
{
    fl_container_head_done(&place);
    (void)close(place_fd);
    sample_teardown();
}

/* What the file says now. */
static int read_place(uint64_t *ret_received)
{
    struct fl_container_head head = {.n = 0};
    int rv = fl_container_head_read(place_fd, sample_path, &place_kind, &head, &err);

    *ret_received = head.received;
    ck_assert(rv != FL_OK || head.hash == place.hash);
    fl_container_head_done(&head);
    return rv;
}

TEST_CASE("place", place_setup, place_teardown);

TEST(the_count_of_received_bytes_changes_alone)
{
    const uint64_t total = FIRST_BYTES + 15;
    struct fl_buf before = sample_bytes();
    struct fl_buf after;
    uint64_t received;

    ck_assert_int_eq(read_place(&received), FL_OK);
    ck_assert_uint_eq(received, 0);
    for (place.received = 1; place.received <= total; place.received += total - 1) {
        ck_assert_int_eq(fl_container_count_write(place_fd, &place), FL_OK);
        ck_assert_int_eq(read_place(&received), FL_OK);
        ck_assert_uint_eq(received, place.received);
        after = sample_bytes();
        ck_assert_mem_eq(before.data, after.data, AT_COUNT);
        ck_assert_mem_eq(before.data + AT_ZEROS, after.data + AT_ZEROS, before.len - AT_ZEROS);
        fl_buf_done(&after);
    }
    place.received = total + 1;
    ck_assert_int_eq(fl_container_count_write(place_fd, &place), FL_OK);
    ck_assert_int_eq(read_place(&received), FL_EFORMAT);
    sample_says("its head counts 16405 bytes received, of 16404");
    fl_buf_done(&before);
}

/* The count belongs to its head: that of an older file at the same place is refused. */
TEST(the_count_of_another_head_is_refused)
{
    uint64_t count = 5 ^ ~place.hash;
    uint64_t received;

    ck_assert_int_eq(fl_fs_pwrite(place_fd, &count, sizeof(count), AT_COUNT), FL_OK);
    ck_assert_int_eq(read_place(&received), FL_EFORMAT);
    sample_says("bytes received, of");
}

TEST(checksums_follow_the_sections_and_old_bytes_may_remain)
{
    static const uint64_t sums[N_BLOCKS] = {11, 22, 33, 44};
    uint64_t *read = NULL;
    uint64_t seal;

    ck_assert_int_eq(fl_container_tail_read(place_fd, sample_path, &place, &read, &err),
                     FL_EFORMAT);
    sample_says("is damaged: its checksums have the seal");
    ck_assert_ptr_null(read);
    ck_assert_int_eq(fl_container_tail_write(place_fd, &place, sums), FL_OK);
    ck_assert_int_eq(fl_container_tail_read(place_fd, sample_path, &place, &read, &err), FL_OK);
    ck_assert_mem_eq(read, sums, sizeof(sums));
    ck_assert_int_eq(fl_container_seal_read(place_fd, &place, &seal), FL_OK);
    ck_assert_uint_eq(read[N_BLOCKS], seal);
    ck_assert_uint_eq(seal, fl_checksum(sums, sizeof(sums)) ^ place.hash);
    free(read);
    read = NULL;
    place.hash++; /* They belong to one head. */
    ck_assert_int_eq(fl_container_tail_read(place_fd, sample_path, &place, &read, &err),
                     FL_EFORMAT);
    place.hash--;
    ck_assert_int_eq(ftruncate(place_fd, (off_t)fl_container_size(&place) - 1), 0);
    ck_assert_int_eq(fl_container_tail_read(place_fd, sample_path, &place, &read, &err),
                     FL_EFORMAT);
    sample_says("bytes, its head says");
    ck_assert_int_eq(fl_container_seal_read(place_fd, &place, &seal), FL_EFORMAT);
}
