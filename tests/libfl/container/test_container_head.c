/*
 * Heads of container files: limits, kinds, versions and flags; what is refused, in which order and
 * with which message.
 */

#include "tests/lib/suites.h"
#include "tests/libfl/container/container_fixture.h"

static struct fl_buf file; /* the sample, to be changed */

static void head_setup(void)
{
    sample_setup();
    sample_write();
    file = sample_bytes();
}

static void head_teardown(void)
{
    fl_buf_done(&file);
    sample_teardown();
}

static void set_u32(size_t at, uint32_t value)
{
    (void)memcpy(file.data + at, &value, sizeof(value));
}

static void set_u64(size_t at, uint64_t value)
{
    (void)memcpy(file.data + at, &value, sizeof(value));
}

/* Read the head of the changed file; the checksum is computed again. */
static int read_changed(const struct fl_container_kind *kind)
{
    struct fl_container_head head = {.n = 0};
    int rv;
    int fd;

    container_set_hash(&file);
    sample_put(&file);
    fd = open(sample_path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    err = (struct fl_err){0};
    rv = fl_container_head_read(fd, sample_path, kind, &head, &err);
    fl_container_head_done(&head);
    ck_assert_int_eq(fl_container_head_read(fd, sample_path, kind, &head, NULL), rv);
    (void)close(fd);
    fl_container_head_done(&head);
    return rv;
}

static void refused(const struct fl_container_kind *kind, int code, const char *text)
{
    ck_assert_int_eq(read_changed(kind), code);
    sample_says(text);
    sample_says(sample_path);
}

TEST_CASE("head", head_setup, head_teardown);

/* --- limits of a writer --- */

TEST(a_head_over_the_limits_of_its_kind_is_not_made)
{
    struct fl_container_kind kind = sample_kind;
    struct fl_container_head head = {.n = 0};

    kind.max_sections--;
    ck_assert_int_eq(fl_container_head_make(&kind, &sample_content, &head), FL_EINVAL);
    ck_assert_int_eq(fl_container_replace(sample_path, &kind, &sample_content, false, &err),
                     FL_EINVAL);
    sample_says("cannot write '");
    kind.max_sections++;
    kind.max_fields--;
    ck_assert_int_eq(fl_container_head_make(&kind, &sample_content, &head), FL_EINVAL);
    ck_assert_ptr_null(head.sections);
    ck_assert_int_eq(sample_check(&sample_kind), FL_OK); /* The file is as before. */
}

TEST(sections_that_no_file_can_hold_are_not_made)
{
    struct fl_container_part parts[2] = {{.name = "a", .bytes = UINT64_C(1) << 55},
                                         {.name = "b", .bytes = UINT64_C(1) << 55}};
    const struct fl_container_content content = {.parts = parts, .n = 2};
    struct fl_container_head head = {.n = 0};

    ck_assert_int_eq(fl_container_head_make(&sample_kind, &content, &head), FL_EINVAL);
    parts[1].bytes = UINT64_MAX;
    ck_assert_int_eq(fl_container_head_make(&sample_kind, &content, &head), FL_EINVAL);
    parts[1].bytes = UINT64_C(1) << 54;
    ck_assert_int_eq(fl_container_head_make(&sample_kind, &content, &head), FL_OK);
    fl_container_head_done(&head);
    ck_assert_ptr_null(head.sections);
}

/* As many sections and fields as a kind can allow: 18 MiB of head, read with their limits. */
TEST(a_head_at_the_limits_of_the_format_is_read_back)
{
    const struct fl_container_kind kind = {.name = "8letters",
                                           .version = UINT32_MAX,
                                           .max_sections = FL_CONTAINER_MAX_SECTIONS,
                                           .max_fields = FL_CONTAINER_MAX_FIELDS};
    struct fl_container_part *parts = calloc(FL_CONTAINER_MAX_SECTIONS, sizeof(*parts));
    uint8_t *fields = calloc(1, FL_CONTAINER_MAX_FIELDS);
    struct fl_container_content content = {fields, FL_CONTAINER_MAX_FIELDS, parts,
                                           FL_CONTAINER_MAX_SECTIONS};
    struct fl_container_head made;
    struct fl_container_head head;
    size_t i;
    int fd = open(sample_path, O_RDWR | O_TRUNC | O_CLOEXEC);

    ck_assert(parts != NULL && fields != NULL && fd >= 0);
    for (i = 0; i < content.n; i++) {
        parts[i] = (struct fl_container_part){.name = "section", .bytes = i % 3};
    }
    fields[FL_CONTAINER_MAX_FIELDS - 1] = 7;
    ck_assert_int_eq(fl_container_head_make(&kind, &content, &made), FL_OK);
    ck_assert_int_eq(fl_container_head_write(fd, &made), FL_OK);
    ck_assert_int_eq(fl_container_head_read(fd, sample_path, &kind, &head, NULL), FL_OK);
    ck_assert_uint_eq(head.hash, made.hash);
    ck_assert_uint_eq(head.start, made.start);
    ck_assert_uint_eq(head.end, made.end);
    ck_assert_uint_eq(head.n_blocks, made.n_blocks);
    ck_assert_uint_eq(head.sections[head.n - 1].start, made.end - (head.n - 1) % 3);
    ck_assert_mem_eq(head.fields, fields, FL_CONTAINER_MAX_FIELDS);
    ck_assert_str_eq(head.kind, "8letters");
    fl_container_head_done(&head);
    fl_container_head_done(&made);
    (void)close(fd);
    free(fields);
    free(parts);
}

TEST(sections_and_fields_decide_where_the_first_section_starts)
{
    const struct fl_container_kind kind = {.name = "k", .max_fields = 2 * FL_CONTAINER_PAGE};
    static const size_t lens[][2] = {{0, 1}, {4096 - 48, 1}, {4096 - 47, 2}, {8192 - 48, 2}};
    static uint8_t fields[2 * FL_CONTAINER_PAGE];
    size_t i;

    for (i = 0; i < ARRAY_LEN(lens); i++) {
        const struct fl_container_content content = {.fields = fields, .fields_len = lens[i][0]};
        struct fl_container_head head;

        ck_assert_int_eq(fl_container_head_make(&kind, &content, &head), FL_OK);
        ck_assert_uint_eq(head.start, lens[i][1] * FL_CONTAINER_PAGE);
        fl_container_head_done(&head);
    }
}

TEST(only_files_with_sections_have_a_seal)
{
    struct fl_container_kind kind = sample_kind;
    struct fl_container_head head;

    ck_assert_int_eq(fl_container_head_make(&kind, &sample_content, &head), FL_OK);
    ck_assert_uint_eq(fl_container_size(&head), file.len);
    fl_container_head_done(&head);
    kind.flags = FL_CONTAINER_RECORDS;
    ck_assert_int_eq(fl_container_head_make(&kind, &(struct fl_container_content){.n = 0}, &head),
                     FL_OK);
    ck_assert_uint_eq(fl_container_size(&head), head.start);
    fl_container_head_done(&head);
}

/* --- what a reader refuses --- */

TEST(other_bytes_are_no_head)
{
    file.data[0] = 'f';
    refused(&sample_kind, FL_EFORMAT, "is damaged: it begins with other bytes than \"FL-FILE\"");
    refused(NULL, FL_EFORMAT, "is damaged: it begins with other bytes than \"FL-FILE\"");
}

TEST(a_later_format_is_a_version_that_is_not_supported)
{
    file.data[7] = '2';
    refused(&sample_kind, FL_EVERSION,
            "has version 2 of its format, this program supports up to 1: use the newer program");
    file.data[7] = '9';
    refused(NULL, FL_EVERSION, "has version 9 of its format");
    file.data[7] = '9' + 1;
    refused(NULL, FL_EFORMAT, "its first bytes are those of no head");
    file.data[7] = '0';
    refused(&sample_kind, FL_EFORMAT, "its first bytes are those of no head");
}

TEST(a_kind_that_is_no_text_is_no_head)
{
    static const uint8_t bad[] = {'\0', ' ', '\n', 0x7f, 0xff};
    size_t i;

    for (i = 0; i < sizeof(bad); i++) {
        file.data[AT_KIND] = bad[i];
        refused(NULL, FL_EFORMAT, "its first bytes are those of no head");
        refused(&sample_kind, FL_EFORMAT, "its first bytes are those of no head");
    }
}

TEST(a_file_of_another_kind_is_refused)
{
    struct fl_container_kind kind = sample_kind;

    file.data[AT_KIND + 5] = 'a';
    refused(&sample_kind, FL_EFORMAT, "expected a file of kind sample, found sampla");
    ck_assert_int_eq(read_changed(NULL), FL_OK);
    file.data[AT_KIND + 5] = '\0';
    refused(&sample_kind, FL_EFORMAT, "expected a file of kind sample, found sampl");
    (void)memcpy(file.data + AT_KIND, "sample12", 8);
    refused(&sample_kind, FL_EFORMAT, "expected a file of kind sample, found sample12");
    kind.name = "sample12";
    ck_assert_int_eq(read_changed(&kind), FL_OK);
}

TEST(another_version_of_the_kind_is_refused)
{
    set_u32(AT_VERSION, 4);
    refused(&sample_kind, FL_EVERSION,
            "has version 4 of its format, this program supports up to 3: use the newer program, or "
            "another state folder");
    ck_assert_int_eq(read_changed(NULL), FL_OK);
    set_u32(AT_VERSION, 2);
    refused(&sample_kind, FL_EFORMAT,
            "is damaged: it has version 2 and flags 0 of its format, expected 3 and 0");
}

TEST(other_flags_are_refused)
{
    set_u32(AT_FLAGS, FL_CONTAINER_RECORDS);
    refused(&sample_kind, FL_EFORMAT,
            "it has version 3 and flags 2 of its format, expected 3 and 0");
    ck_assert_int_eq(read_changed(NULL), FL_OK);
}

/* A later version may have more sections: its limits are no reason to call it damaged. */
TEST(a_later_version_is_named_before_the_limits_of_this_one)
{
    struct fl_container_kind kind = sample_kind;

    kind.max_sections = 2;
    kind.version = 2;
    refused(&kind, FL_EVERSION, "has version 3 of its format, this program supports up to 2");
}

/* A version in a damaged head says nothing. */
TEST(the_checksum_is_checked_before_the_version)
{
    set_u32(AT_VERSION, 4);
    sample_put(&file);
    sample_refused(FL_EFORMAT, "its head has checksum");
}

TEST(more_sections_or_fields_than_the_kind_has_are_refused)
{
    struct fl_container_kind kind = sample_kind;

    kind.max_sections = 3;
    refused(&kind, FL_EFORMAT,
            "its head has 4 sections and 7 bytes of fields, at most 3 and 7 are possible");
    kind.max_sections = 4;
    kind.max_fields = 6;
    refused(&kind, FL_EFORMAT, "4 sections and 7 bytes of fields, at most 4 and 6 are possible");
}

TEST(more_sections_or_fields_than_the_format_has_are_refused)
{
    set_u32(AT_N, FL_CONTAINER_MAX_SECTIONS + 1);
    refused(&sample_kind, FL_EFORMAT,
            "its head has 131073 sections and 7 bytes of fields, at most "
            "131072 and 16777216 are possible");
    refused(NULL, FL_EFORMAT, "its head has 131073 sections");
    set_u32(AT_N, UINT32_MAX);
    refused(NULL, FL_EFORMAT, "its head has 4294967295 sections");
    set_u32(AT_N, N_SECTIONS);
    set_u32(AT_F, FL_CONTAINER_MAX_FIELDS + 1);
    refused(NULL, FL_EFORMAT, "16777217 bytes of fields");
}

TEST(a_head_that_is_longer_than_its_file_is_refused)
{
    set_u32(AT_F, FL_CONTAINER_MAX_FIELDS);
    refused(NULL, FL_EFORMAT, "bytes, its head alone has 16781312");
}

TEST(a_section_without_a_name_is_refused)
{
    static const uint8_t bad[] = {'\0', ' ', 0x7f};
    size_t i;

    for (i = 0; i < sizeof(bad); i++) {
        file.data[AT_SECTIONS + 16] = bad[i];
        refused(&sample_kind, FL_EFORMAT, "is damaged: a section has no name");
    }
}

TEST(sections_that_no_file_can_hold_are_refused)
{
    set_u64(AT_SECTIONS + 8, UINT64_MAX);
    refused(&sample_kind, FL_EFORMAT, "its sections have more bytes than any file");
    set_u64(AT_SECTIONS + 8, UINT64_C(1) << 55);
    set_u64(AT_SECTIONS + 24, UINT64_C(1) << 55);
    refused(&sample_kind, FL_EFORMAT, "its sections have more bytes than any file");
    set_u64(AT_SECTIONS + 24, 0);
    ck_assert_int_eq(read_changed(&sample_kind), FL_OK); /* Its contents are not looked at … */
    sample_refused(FL_EFORMAT, "bytes, its head says");  /* … before they are opened. */
}

TEST(a_byte_behind_the_head_is_named)
{
    file.data[AT_ZEROS] = 1;
    refused(&sample_kind, FL_EFORMAT, "byte 119, behind its head, is not zero");
    file.data[AT_ZEROS] = 0;
    file.data[HEAD_BYTES - 1] = 1;
    refused(&sample_kind, FL_EFORMAT, "byte 4095, behind its head, is not zero");
}

/* --- what a file begins as --- */

TEST(a_file_is_recognised_by_its_first_bytes_only)
{
    struct fl_container_kind kind = sample_kind;
    int fd;

    file.data[AT_VERSION] ^= 0xff; /* Version and checksum are not looked at. */
    file.len = AT_VERSION;
    sample_put(&file);
    fd = open(sample_path, O_RDWR | O_CLOEXEC);
    ck_assert(fl_container_is(fd, &sample_kind));
    ck_assert(fl_container_is(fd, NULL));
    kind.name = "sampla";
    ck_assert(!fl_container_is(fd, &kind));
    ck_assert_int_eq(fl_fs_pwrite(fd, "2", 1, 7), FL_OK);
    ck_assert(!fl_container_is(fd, NULL));
    ck_assert_int_eq(fl_fs_pwrite(fd, "1", 1, 7), FL_OK);
    ck_assert_int_eq(ftruncate(fd, AT_VERSION - 1), 0);
    ck_assert(!fl_container_is(fd, NULL));
    (void)close(fd);
}
