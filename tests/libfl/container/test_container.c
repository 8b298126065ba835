/* Whole container files: their bytes, what is read back, and that damage at any byte is detected.
 */

#include "tests/lib/suites.h"
#include "tests/libfl/container/container_fixture.h"

TEST_CASE("container", sample_setup, sample_teardown);

static void add_u32(struct fl_buf *to, uint32_t value)
{
    ck_assert_int_eq(fl_buf_add(to, &value, sizeof(value)), FL_OK);
}

static void add_u64(struct fl_buf *to, uint64_t value)
{
    ck_assert_int_eq(fl_buf_add(to, &value, sizeof(value)), FL_OK);
}

static void add_text(struct fl_buf *to, const char *text)
{
    char name[FL_CONTAINER_NAME] = "";

    (void)memcpy(name, text, strlen(text));
    ck_assert_int_eq(fl_buf_add(to, name, sizeof(name)), FL_OK);
}

/* The head as the table in container.h describes it. */
static void add_head(struct fl_buf *to, uint32_t flags, uint64_t received)
{
    uint64_t hash;
    size_t i;

    fl_buf_init(to, SIZE_MAX);
    ck_assert_int_eq(fl_buf_add(to, "FL-FILE1", 8), FL_OK);
    add_text(to, "sample");
    add_u32(to, 3);
    add_u32(to, N_SECTIONS);
    add_u32(to, flags);
    add_u32(to, FIELDS_LEN);
    for (i = 0; i < N_SECTIONS; i++) {
        add_text(to, sample_parts[i].name);
        add_u64(to, sample_parts[i].bytes);
    }
    ck_assert_int_eq(fl_buf_add(to, FIELDS, FIELDS_LEN), FL_OK);
    hash = fl_checksum(to->data, to->len);
    add_u64(to, hash);
    add_u64(to, (flags & FL_CONTAINER_IN_PLACE) != 0 ? hash ^ received : 0);
    while (to->len % FL_CONTAINER_PAGE != 0) {
        ck_assert_int_eq(fl_buf_add(to, "", 1), FL_OK);
    }
}

static void add_block(uint64_t sums[N_BLOCKS + 1], size_t *n, const void *data, size_t len)
{
    sums[(*n)++] = fl_checksum(data, len);
}

static void add_contents(struct fl_buf *to, uint64_t hash)
{
    uint64_t sums[N_BLOCKS + 1];
    size_t n = 0;
    size_t i;

    for (i = 0; i < N_SECTIONS; i++) {
        const char *data = sample_parts[i].data;
        size_t len = (size_t)sample_parts[i].bytes;

        if (len > FL_SUM_BLOCK) {
            add_block(sums, &n, data, FL_SUM_BLOCK);
            add_block(sums, &n, data + FL_SUM_BLOCK, len - FL_SUM_BLOCK);
        } else if (len > 0) {
            add_block(sums, &n, data, len);
        }
        ck_assert_int_eq(fl_buf_add(to, data, len), FL_OK);
    }
    sums[n] = fl_checksum(sums, n * sizeof(*sums)) ^ hash;
    ck_assert_uint_eq(n, N_BLOCKS);
    ck_assert_int_eq(fl_buf_add(to, sums, sizeof(sums)), FL_OK);
}

static void check_equal(const struct fl_buf *found, const struct fl_buf *expected)
{
    ck_assert_uint_eq(found->len, expected->len);
    ck_assert_mem_eq(found->data, expected->data, expected->len);
}

/* --- the format --- */

TEST(a_file_has_the_bytes_of_the_format)
{
    struct fl_buf expected;
    struct fl_buf file;
    uint64_t hash;

    sample_write();
    file = sample_bytes();
    add_head(&expected, 0, 0);
    (void)memcpy(&hash, expected.data + AT_HASH, sizeof(hash));
    add_contents(&expected, hash);
    check_equal(&file, &expected);
    fl_buf_done(&expected);
    fl_buf_done(&file);
}

TEST(a_head_of_a_file_that_is_written_in_place_has_its_received_bytes)
{
    const struct fl_container_kind kind = {"sample", 3, FL_CONTAINER_IN_PLACE, 4, FIELDS_LEN};
    struct fl_container_head head;
    struct fl_buf expected;
    uint8_t *raw;

    ck_assert_int_eq(fl_container_head_make(&kind, &sample_content, &head), FL_OK);
    ck_assert_uint_eq(head.hash, 0);
    head.received = 70;
    raw = fl_container_head_pack(&head);
    ck_assert_ptr_nonnull(raw);
    ck_assert_uint_ne(head.hash, 0);
    add_head(&expected, FL_CONTAINER_IN_PLACE, 70);
    ck_assert_uint_eq(head.start, expected.len);
    ck_assert_mem_eq(raw, expected.data, expected.len);
    fl_buf_done(&expected);
    free(raw);
    fl_container_head_done(&head);
}

/* --- what is read back --- */

TEST(fields_and_sections_are_read_back)
{
    char fields[FIELDS_LEN];
    struct fl_container c;
    size_t i;

    sample_write();
    ck_assert_int_eq(sample_check(&sample_kind), FL_OK);
    ck_assert_int_eq(sample_check(NULL), FL_OK); /* of any kind */
    ck_assert_int_eq(fl_container_open(sample_path, &sample_kind, &c, NULL), FL_OK);
    ck_assert_str_eq(c.head.kind, "sample");
    ck_assert_uint_eq(c.head.version, 3);
    ck_assert_uint_eq(c.head.flags, 0);
    ck_assert_uint_eq(c.head.received, 0);
    ck_assert_uint_eq(c.head.n, N_SECTIONS);
    ck_assert_uint_eq(c.head.n_blocks, N_BLOCKS);
    ck_assert_uint_eq(c.head.start, HEAD_BYTES);
    ck_assert_uint_eq(c.head.end, HEAD_BYTES + FIRST_BYTES + 15);
    ck_assert_int_eq(fl_container_fields(&c.head, fields, sizeof(fields)), FL_OK);
    ck_assert_mem_eq(fields, FIELDS, FIELDS_LEN);
    for (i = 0; i < N_SECTIONS; i++) {
        ck_assert_str_eq(c.head.sections[i].name, sample_parts[i].name);
        ck_assert_uint_eq(c.head.sections[i].bytes, sample_parts[i].bytes);
    }
    ck_assert_uint_eq(c.head.sections[LONG_NAME].start, HEAD_BYTES + FIRST_BYTES + 5);
    ck_assert_uint_eq(c.head.sections[LONG_NAME].block, 3);
    fl_container_close(&c);
}

TEST(sections_are_read_in_any_order_and_again)
{
    static const size_t order[] = {LONG_NAME, FIRST, EMPTY, SMALL, FIRST, LONG_NAME};
    uint8_t data[FIRST_BYTES];
    struct fl_container c;
    size_t i;

    sample_write();
    ck_assert_int_eq(fl_container_open(sample_path, &sample_kind, &c, NULL), FL_OK);
    for (i = 0; i < ARRAY_LEN(order); i++) {
        const struct fl_container_part *part = &sample_parts[order[i]];

        ck_assert_int_eq(fl_container_read(&c, order[i], data, NULL), FL_OK);
        ck_assert(part->bytes == 0 || memcmp(data, part->data, (size_t)part->bytes) == 0);
    }
    fl_container_close(&c);
}

TEST(a_file_without_fields_and_sections_is_read_back)
{
    const struct fl_container_content nothing = {.n = 0};
    struct fl_container c;

    ck_assert_int_eq(fl_container_replace(sample_path, &sample_kind, &nothing, false, NULL), FL_OK);
    ck_assert_int_eq(fl_container_open(sample_path, &sample_kind, &c, NULL), FL_OK);
    ck_assert_uint_eq(c.head.n + c.head.n_blocks + c.head.fields_len, 0);
    ck_assert_uint_eq(fl_container_size(&c.head), HEAD_BYTES + 8);
    fl_container_close(&c);
}

TEST(fields_are_copied_only_at_their_size)
{
    struct fl_container_head head;
    char out[FIELDS_LEN + 1] = "unset";

    ck_assert_int_eq(fl_container_head_make(&sample_kind, &sample_content, &head), FL_OK);
    ck_assert_int_eq(fl_container_fields(&head, out, FIELDS_LEN - 1), FL_EFORMAT);
    ck_assert_int_eq(fl_container_fields(&head, out, FIELDS_LEN + 1), FL_EFORMAT);
    ck_assert_str_eq(out, "unset");
    fl_container_head_done(&head);
}

TEST(the_seal_stands_for_head_and_contents)
{
    struct fl_container_part parts[N_SECTIONS];
    struct fl_container_content content = sample_content;
    struct fl_container c;
    uint64_t seals[3] = {0};
    size_t i;

    (void)memcpy(parts, sample_parts, sizeof(parts));
    content.parts = parts;
    for (i = 0; i < 3; i++) {
        content.fields = i == 1 ? "Fields!" : FIELDS;
        parts[SMALL].data = i == 2 ? "smalL" : "small";
        ck_assert_int_eq(fl_container_replace(sample_path, &sample_kind, &content, false, NULL),
                         FL_OK);
        ck_assert_int_eq(fl_container_open(sample_path, &sample_kind, &c, NULL), FL_OK);
        ck_assert_int_eq(fl_container_seal_read(c.fd, &c.head, &seals[i]), FL_OK);
        ck_assert_uint_eq(seals[i], c.sums[c.head.n_blocks]);
        fl_container_close(&c);
    }
    ck_assert_uint_ne(seals[0], seals[1]);
    ck_assert_uint_ne(seals[0], seals[2]);
}

/* --- damage --- */

/* By whom a changed byte is detected. */
static const struct {
    uint64_t end;
    const char *message;
} regions[] = {{7, "begins with other bytes than \"FL-FILE\""},
               {AT_VERSION, ""}, /* version of the format, and kind: test_container_head */
               {AT_N, "its head has checksum"},
               {AT_FLAGS, ""}, /* the number of sections: a limit, or the checksum */
               {AT_F, "its head has checksum"},
               {AT_SECTIONS, ""}, /* the length of the fields: likewise */
               {AT_COUNT, "its head has checksum"},
               {AT_ZEROS, "bytes received, of"},
               {HEAD_BYTES, "behind its head, is not zero"},
               {HEAD_BYTES + FIRST_BYTES, "(first) have checksum"},
               {HEAD_BYTES + FIRST_BYTES + 5, "(small) have checksum"},
               {HEAD_BYTES + FIRST_BYTES + 15, "(8letters) have checksum"},
               {UINT64_MAX, "its checksums have the seal"}};

static const char *message_for(uint64_t at)
{
    size_t i = 0;

    while (at >= regions[i].end) {
        i++;
    }
    return regions[i].message;
}

TEST_EACH(a_change_of_any_byte_is_detected, 2)
{
    struct fl_buf file;
    size_t i;
    int fd;

    sample_write();
    file = sample_bytes();
    fd = open(sample_path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    for (i = 0; i < file.len; i++) {
        uint8_t byte = file.data[i] ^ (uint8_t)(1u << ((size_t)_i + i) % 8);
        int rv;

        ck_assert_int_eq(fl_fs_pwrite(fd, &byte, 1, i), FL_OK);
        rv = sample_check(&sample_kind);
        ck_assert_msg(rv == FL_EFORMAT || (rv == FL_EVERSION && i == 7), "byte %zu: %d", i, rv);
        sample_says(message_for(i));
        sample_says(rv == FL_EFORMAT ? "' is damaged: " : " of its format, ");
        ck_assert_int_eq(fl_fs_pwrite(fd, file.data + i, 1, i), FL_OK);
    }
    ck_assert_int_eq(sample_check(&sample_kind), FL_OK);
    (void)close(fd);
    fl_buf_done(&file);
}

TEST(a_file_that_is_cut_at_any_byte_is_refused)
{
    struct fl_buf file;
    size_t len;

    sample_write();
    file = sample_bytes();
    for (len = file.len; len-- > 0;) {
        ck_assert_int_eq(truncate(sample_path, (off_t)len), 0);
        sample_refused(FL_EFORMAT,
                       len < HEAD_BYTES ? "it is shorter than a head" : "its head says");
    }
    fl_buf_done(&file);
}

TEST(a_longer_file_is_refused)
{
    char said[64];
    struct fl_buf file;

    sample_write();
    file = sample_bytes();
    (void)snprintf(said, sizeof(said), "it has %zu bytes, its head says %zu", file.len + 1,
                   file.len);
    ck_assert_int_eq(fl_buf_add(&file, "", 1), FL_OK);
    sample_put(&file);
    sample_refused(FL_EFORMAT, said);
    fl_buf_done(&file);
}

TEST(a_damaged_block_is_named_and_the_other_sections_are_read)
{
    uint8_t data[FIRST_BYTES];
    struct fl_container c;
    struct fl_buf file;
    char said[64];
    size_t i;

    sample_write();
    file = sample_bytes();
    file.data[HEAD_BYTES + FL_SUM_BLOCK + 1] ^= 1;
    sample_put(&file);
    ck_assert_int_eq(fl_container_open(sample_path, &sample_kind, &c, &err), FL_OK);
    ck_assert_int_eq(fl_container_read(&c, FIRST, data, &err), FL_EFORMAT);
    (void)snprintf(said, sizeof(said), "bytes %zu to %zu (first)",
                   (size_t)HEAD_BYTES + FL_SUM_BLOCK, (size_t)HEAD_BYTES + FIRST_BYTES - 1);
    sample_says(said);
    for (i = 0; i < N_SECTIONS; i++) {
        ck_assert_int_eq(fl_container_read(&c, i, data, NULL), i == FIRST ? FL_EFORMAT : FL_OK);
    }
    fl_container_close(&c);
    fl_buf_done(&file);
}

TEST(checksums_of_another_head_are_refused)
{
    struct fl_container_content content = sample_content;
    struct fl_buf other;
    struct fl_buf file;

    content.fields = "Fields!";
    ck_assert_int_eq(fl_container_replace(sample_path, &sample_kind, &content, false, NULL), FL_OK);
    other = sample_bytes();
    sample_write();
    file = sample_bytes();
    (void)memcpy(file.data, other.data, HEAD_BYTES); /* as if only its head had reached the disk */
    sample_put(&file);
    sample_refused(FL_EFORMAT, "its checksums have the seal");
    fl_buf_done(&other);
    fl_buf_done(&file);
}

/* --- opening --- */

TEST(a_missing_file_is_not_found_and_can_be_closed)
{
    struct fl_container none = {.path = NULL};
    struct fl_container c;

    ck_assert_int_eq(fl_container_open(sample_path, &sample_kind, &c, &err), FL_ENOENT);
    sample_says("cannot open '");
    ck_assert_int_eq(c.fd, -1);
    ck_assert_int_eq(dup2(STDERR_FILENO, none.fd), none.fd);
    fl_container_close(&c);
    fl_container_close(&none);
    ck_assert_int_ne(fcntl(0, F_GETFD), -1); /* A zeroed one has not opened descriptor 0. */
}

TEST(a_refused_file_can_be_closed_and_leaves_no_descriptor_open)
{
    struct fl_container c;
    struct fl_buf file;
    int before;
    int fd;

    sample_write();
    file = sample_bytes();
    file.data[file.len - 1] ^= 1;
    sample_put(&file);
    before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(before);
    ck_assert_int_eq(fl_container_open(sample_path, &sample_kind, &c, NULL), FL_EFORMAT);
    fl_container_close(&c);
    ck_assert_int_eq(fl_container_open(sample_dir, &sample_kind, &c, &err), FL_EIO); /* a folder */
    sample_says("cannot read '");
    fl_container_close(&c);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(fd, before);
    (void)close(fd);
    fl_buf_done(&file);
}

/* --- records --- */

TEST(a_record_has_a_checksum_of_kind_and_bytes)
{
    uint64_t sum = fl_container_record_sum(2, "record", 6);

    ck_assert_uint_eq(sum, fl_checksum("record", 6) ^ (UINT64_C(2) << 32));
    ck_assert_uint_ne(sum, fl_container_record_sum(3, "record", 6));
    ck_assert_uint_ne(sum, fl_container_record_sum(2, "recorD", 6));
    ck_assert_uint_ne(sum, fl_container_record_sum(2, "record", 5));
    ck_assert_uint_eq(sizeof(struct fl_container_record), 16);
}
