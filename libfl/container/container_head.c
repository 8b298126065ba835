/*
 * Heads of container files (container.h): making, packing, writing, reading and checking them. Any
 * thread, blocking; opens and closes no file.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/container/block_sums.h"
#include "libfl/container/container.h"

#define MAGIC      "FL-FILE"
#define LAYOUT     '1'
#define MAGIC_SIZE 8
/* Far above the bytes of any file; the sums of lengths cannot overflow. */
#define MAX_BYTES (UINT64_C(1) << 56)

/* The fixed part of a head, as it is in the file. */
struct fixed {
    char magic[MAGIC_SIZE];
    char kind[FL_CONTAINER_NAME];
    uint32_t version, n, flags, fields_len;
};
_Static_assert(sizeof(struct fixed) == 32, "no padding");

struct section_row {
    char name[FL_CONTAINER_NAME];
    uint64_t bytes;
};
_Static_assert(sizeof(struct section_row) == 16, "no padding");

/* Length of what the checksum of the head covers. */
static uint64_t covered_size(uint64_t n, uint64_t fields_len)
{
    return sizeof(struct fixed) + n * sizeof(struct section_row) + fields_len;
}

static uint64_t head_length(uint64_t n, uint64_t fields_len)
{
    return (covered_size(n, fields_len) + 2 * sizeof(uint64_t) + FL_CONTAINER_PAGE - 1) /
           FL_CONTAINER_PAGE * FL_CONTAINER_PAGE;
}

/* Place the sections, whose bytes are set; FL_EFORMAT: too many bytes. */
static int place_sections(struct fl_container_head *head)
{
    size_t i;

    head->start = head_length(head->n, head->fields_len);
    head->end = head->start;
    head->n_blocks = 0;
    for (i = 0; i < head->n; i++) {
        struct fl_container_section *section = &head->sections[i];

        if (section->bytes > MAX_BYTES || head->end > MAX_BYTES - section->bytes) {
            return FL_EFORMAT;
        }
        section->start = head->end;
        section->block = head->n_blocks;
        head->end += section->bytes;
        head->n_blocks += fl_block_sums_count(section->bytes);
    }
    return FL_OK;
}

static int allocate_head(struct fl_container_head *head)
{
    head->sections = calloc(head->n + 1, sizeof(*head->sections));
    head->fields = malloc(head->fields_len + 1);
    return head->sections != NULL && head->fields != NULL ? FL_OK : FL_ENOMEM;
}

int fl_container_head_make(const struct fl_container_kind *kind,
                           const struct fl_container_content *content,
                           struct fl_container_head *ret)
{
    struct fl_container_head head = {.version = kind->version,
                                     .flags = kind->flags,
                                     .fields_len = content->fields_len,
                                     .n = content->n};
    size_t i;
    int rv;

    if (content->n > kind->max_sections || content->fields_len > kind->max_fields) {
        return FL_EINVAL;
    }
    rv = allocate_head(&head);
    if (rv != FL_OK) {
        goto fail;
    }
    if (head.fields_len > 0) {
        (void)memcpy(head.fields, content->fields, head.fields_len);
    }
    rv = fl_str_copy(head.kind, sizeof(head.kind), kind->name);
    FL_REQUIRE(rv == FL_OK);
    for (i = 0; i < head.n; i++) {
        rv = fl_str_copy(head.sections[i].name, sizeof(head.sections[i].name),
                         content->parts[i].name);
        FL_REQUIRE(rv == FL_OK);
        head.sections[i].bytes = content->parts[i].bytes;
    }
    if (place_sections(&head) != FL_OK) {
        rv = FL_EINVAL;
        goto fail;
    }
    *ret = head;
    return FL_OK;
fail:
    fl_container_head_done(&head);
    return rv;
}

void fl_container_head_done(struct fl_container_head *head)
{
    free(head->fields);
    free(head->sections);
    *head = (struct fl_container_head){.n = 0};
}

/* --- writing --- */

uint8_t *fl_container_head_pack(struct fl_container_head *head)
{
    struct fixed fixed = {.magic = MAGIC,
                          .version = head->version,
                          .n = (uint32_t)head->n,
                          .flags = head->flags,
                          .fields_len = (uint32_t)head->fields_len};
    size_t covered = (size_t)covered_size(head->n, head->fields_len);
    uint8_t *raw = calloc(1, (size_t)head->start);
    uint8_t *at = raw;
    uint64_t count;
    size_t i;

    if (raw == NULL) {
        return NULL;
    }
    fixed.magic[MAGIC_SIZE - 1] = LAYOUT;
    (void)memcpy(fixed.kind, head->kind, sizeof(fixed.kind));
    (void)memcpy(at, &fixed, sizeof(fixed));
    at += sizeof(fixed);
    for (i = 0; i < head->n; i++, at += sizeof(struct section_row)) {
        struct section_row row = {.bytes = head->sections[i].bytes};

        (void)memcpy(row.name, head->sections[i].name, sizeof(row.name));
        (void)memcpy(at, &row, sizeof(row));
    }
    (void)memcpy(at, head->fields, head->fields_len);
    head->hash = fl_checksum(raw, covered);
    count = (head->flags & FL_CONTAINER_IN_PLACE) != 0 ? head->received ^ head->hash : 0;
    (void)memcpy(raw + covered, &head->hash, sizeof(head->hash));
    (void)memcpy(raw + covered + sizeof(head->hash), &count, sizeof(count));
    return raw;
}

int fl_container_head_write(int fd, struct fl_container_head *head)
{
    uint8_t *raw = fl_container_head_pack(head);
    int rv;

    if (raw == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_fs_pwrite(fd, raw, (size_t)head->start, 0);
    free(raw);
    return rv;
}

int fl_container_count_write(int fd, const struct fl_container_head *head)
{
    uint64_t count = head->received ^ head->hash;

    return fl_fs_pwrite(fd, &count, sizeof(count),
                        covered_size(head->n, head->fields_len) + sizeof(head->hash));
}

/* --- reading --- */

static int head_is_damaged(const char *path, const char *why, struct fl_err *err)
{
    return fl_err_set(err, FL_EFORMAT, "'%s' is damaged: %s", path, why);
}

static bool is_text(const char name[FL_CONTAINER_NAME])
{
    size_t i;

    for (i = 0; i < FL_CONTAINER_NAME && name[i] != '\0'; i++) {
        if (name[i] <= ' ' || name[i] > '~') {
            return false;
        }
    }
    return i > 0;
}

/* Is this a head of this format, and of this kind? Its checksum is not known to be right yet. */
static int check_fixed(const struct fixed *fixed, const char *path,
                       const struct fl_container_kind *kind, struct fl_err *err)
{
    char expected[FL_CONTAINER_NAME] = "";

    if (memcmp(fixed->magic, MAGIC, MAGIC_SIZE - 1) != 0) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is damaged: it begins with other bytes than \"" MAGIC "\"", path);
    }
    if (fixed->magic[MAGIC_SIZE - 1] > LAYOUT && fixed->magic[MAGIC_SIZE - 1] <= '9') {
        return fl_err_set(err, FL_EVERSION,
                          "'%s' has version %c of its format, this program supports up to %c: use "
                          "the newer program, or another state folder",
                          path, fixed->magic[MAGIC_SIZE - 1], LAYOUT);
    }
    if (fixed->magic[MAGIC_SIZE - 1] != LAYOUT || !is_text(fixed->kind)) {
        return head_is_damaged(path, "its first bytes are those of no head", err);
    }
    if (kind == NULL) {
        return FL_OK;
    }
    (void)memcpy(expected, kind->name, strlen(kind->name));
    if (memcmp(fixed->kind, expected, sizeof(expected)) != 0) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is damaged: expected a file of kind %s, found %.8s", path,
                          kind->name, fixed->kind);
    }
    return FL_OK;
}

static int check_limits(const struct fixed *fixed, const char *path,
                        const struct fl_container_kind *kind, struct fl_err *err)
{
    uint32_t sections = kind != NULL ? kind->max_sections : FL_CONTAINER_MAX_SECTIONS;
    uint32_t fields = kind != NULL ? kind->max_fields : FL_CONTAINER_MAX_FIELDS;

    if (fixed->n > sections || fixed->fields_len > fields) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is damaged: its head has %" PRIu32 " sections and %" PRIu32
                          " bytes of fields, at most %" PRIu32 " and %" PRIu32 " are possible",
                          path, fixed->n, fixed->fields_len, sections, fields);
    }
    return FL_OK;
}

/* Read the complete head, whose first page is `first`; the file must be as long before memory is
 * allocated. */
static int read_all(int fd, const char *path, const struct fixed *fixed, const uint8_t *first,
                    uint8_t **ret, struct fl_err *err)
{
    uint64_t size = head_length(fixed->n, fixed->fields_len);
    struct stat st = {.st_size = 0};
    uint8_t *raw;
    int rv = FL_OK;

    if (size > FL_CONTAINER_PAGE && (fstat(fd, &st) != 0 || (uint64_t)st.st_size < size)) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is damaged: it has %llu bytes, its head alone has %" PRIu64, path,
                          (unsigned long long)st.st_size, size);
    }
    raw = malloc((size_t)size);
    if (raw == NULL) {
        return fl_err_set(err, FL_ENOMEM, "cannot read '%s': %s", path, fl_strerror(FL_ENOMEM));
    }
    (void)memcpy(raw, first, FL_CONTAINER_PAGE);
    if (size > FL_CONTAINER_PAGE) {
        rv = fl_fs_pread(fd, raw + FL_CONTAINER_PAGE, (size_t)size - FL_CONTAINER_PAGE,
                         FL_CONTAINER_PAGE);
    }
    if (rv != FL_OK) {
        free(raw);
        return fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
    }
    *ret = raw;
    return FL_OK;
}

/* The checksum, the count and the zeros behind it. */
static int check_hash(const uint8_t *raw, const char *path, struct fl_container_head *head,
                      struct fl_err *err)
{
    size_t at = (size_t)covered_size(head->n, head->fields_len);
    uint64_t found = fl_checksum(raw, at);
    uint64_t count;

    (void)memcpy(&head->hash, raw + at, sizeof(head->hash));
    if (head->hash != found) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is damaged: its head has checksum %016" PRIx64
                          ", expected %016" PRIx64,
                          path, found, head->hash);
    }
    (void)memcpy(&count, raw + at + sizeof(head->hash), sizeof(count));
    head->received = (head->flags & FL_CONTAINER_IN_PLACE) != 0 ? count ^ head->hash : count;
    for (at += sizeof(head->hash) + sizeof(count); at < head_length(head->n, head->fields_len);
         at++) {
        if (raw[at] != 0) {
            return fl_err_set(err, FL_EFORMAT,
                              "'%s' is damaged: byte %zu, behind its head, is not zero", path, at);
        }
    }
    return FL_OK;
}

static int take_sections(const uint8_t *raw, const char *path, struct fl_container_head *head,
                         struct fl_err *err)
{
    const uint8_t *at = raw + sizeof(struct fixed);
    size_t i;

    for (i = 0; i < head->n; i++, at += sizeof(struct section_row)) {
        struct section_row row;

        (void)memcpy(&row, at, sizeof(row));
        if (!is_text(row.name)) {
            return head_is_damaged(path, "a section has no name", err);
        }
        (void)memcpy(head->sections[i].name, row.name, sizeof(row.name));
        head->sections[i].bytes = row.bytes;
    }
    (void)memcpy(head->fields, at, head->fields_len);
    if (place_sections(head) != FL_OK) {
        return head_is_damaged(path, "its sections have more bytes than any file", err);
    }
    if (head->received > ((head->flags & FL_CONTAINER_IN_PLACE) != 0 ? head->end - head->start : 0))
    {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is damaged: its head counts %" PRIu64
                          " bytes received, of %" PRIu64,
                          path, head->received, head->end - head->start);
    }
    return FL_OK;
}

static int parse_head(const struct fixed *fixed, const uint8_t *raw, const char *path,
                      struct fl_container_head *ret, struct fl_err *err)
{
    struct fl_container_head head = {.version = fixed->version,
                                     .flags = fixed->flags,
                                     .fields_len = fixed->fields_len,
                                     .n = fixed->n};
    int rv = check_hash(raw, path, &head, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(head.kind, fixed->kind, sizeof(fixed->kind));
    rv = allocate_head(&head);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
        goto fail;
    }
    rv = take_sections(raw, path, &head, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = head;
    return FL_OK;
fail:
    fl_container_head_done(&head);
    return rv;
}

int fl_container_head_read(int fd, const char *path, const struct fl_container_kind *kind,
                           struct fl_container_head *ret, struct fl_err *err)
{
    uint8_t first[FL_CONTAINER_PAGE]; /* the whole head of most files */
    struct fixed fixed;
    uint8_t *raw = NULL;
    int rv = fl_fs_pread(fd, first, sizeof(first), 0);

    if (rv == FL_EFORMAT) {
        return head_is_damaged(path, "it is shorter than a head", err);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
    }
    (void)memcpy(&fixed, first, sizeof(fixed));
    rv = check_fixed(&fixed, path, kind, err);
    if (rv != FL_OK) {
        return rv;
    }
    /* A later version may have more sections than this one: its limits are checked last. */
    rv = check_limits(&fixed, path, NULL, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = read_all(fd, path, &fixed, first, &raw, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = parse_head(&fixed, raw, path, ret, err);
    free(raw);
    if (rv != FL_OK) {
        return rv;
    }
    if (kind != NULL) {
        if (fixed.version > kind->version) {
            rv = fl_err_set(err, FL_EVERSION,
                            "'%s' has version %" PRIu32
                            " of its format, this program supports up to %" PRIu32
                            ": use the newer program, or another state folder",
                            path, fixed.version, kind->version);
            goto fail;
        }
        if (fixed.version != kind->version || fixed.flags != kind->flags) {
            rv = fl_err_set(err, FL_EFORMAT,
                            "'%s' is damaged: it has version %" PRIu32 " and flags %" PRIu32
                            " of its format, expected %" PRIu32 " and %" PRIu32,
                            path, fixed.version, fixed.flags, kind->version, kind->flags);
            goto fail;
        }
    }
    rv = check_limits(&fixed, path, kind, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    fl_container_head_done(ret);
    return rv;
}

bool fl_container_is(int fd, const struct fl_container_kind *kind)
{
    struct fixed fixed = {.n = 0};

    return fl_fs_pread(fd, &fixed, offsetof(struct fixed, version), 0) == FL_OK &&
           check_fixed(&fixed, "", kind, NULL) == FL_OK;
}

int fl_container_fields(const struct fl_container_head *head, void *out, size_t size)
{
    if (head->fields_len != size) {
        return FL_EFORMAT;
    }
    (void)memcpy(out, head->fields, size);
    return FL_OK;
}
