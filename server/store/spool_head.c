/*
 * The format of the spool file, which holds the upload of one client for one (round, attempt):
 * reading and writing its header and checksums. Blocking, any thread.
 *
 *   offset  size  what (integers little-endian)
 *   0       8     "FLSPOOL\n"
 *   8       4     version, 1
 *   12      4     n: number of sections, one for each unit and payload
 *   16      8     coded bytes after the header when the upload is complete
 *   24      24 n  manifest: unit (4), payload (4), codec (4), 1 when masked (4), coded bytes (8);
 * ascending by unit, then by payload …       8     fl_hash64() of "NNNNNN-AAA-<client>" of round
 * and attempt: id of the upload …       8     fl_hash64() of the boot id of the machine when the
 * upload started …       8     fl_hash64() of everything before …       8     coded bytes received,
 * XOR that hash …             zeros up to a multiple of 4096, so that the sections are page aligned
 *   start         the coded sections, in manifest order, without gaps
 *   …       8 b   XXH3 of each block of 16 KiB of the sections, the last block shorter
 *   …       8     XXH3 of these checksums, XOR the id of the upload
 *
 * The checksums after the sections are written when the upload has been validated.
 *
 * A file may be recycled from an earlier upload (recycled_files.h): the old bytes then follow the
 * new header, or stand in its place. The file survives a kill -9 at any instant because the count
 * is written after the bytes that it counts, and the first bytes before the header: a header that
 * is incomplete, does not match its hash or belongs to another upload is treated as missing. The
 * same holds for a count left by another header, which can be alone on the next page, and for
 * checksums with the id of another upload. After a crash of the machine the count may have reached
 * the disk before the bytes. So an unfinished upload is valid only until the next boot; a finished
 * one is verified by its checksums. Not covered: a disk that loses writes while the machine stays
 * up and is mounted again.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/rng.h"
#include "libfl/base/str.h"
#include "server/store/spool_impl.h"

#define MAGIC        "FLSPOOL\n"
#define HEAD_VERSION 1
#define FIXED_SIZE   24
#define PART_SIZE    24
#define NAMED_SIZE   16
#define HASH_SIZE    8
#define COUNT_SIZE   8
#define PAGE         4096
#define MAX_PARTS    (FL_SPOOL_MAX_PAYLOADS * FL_LAYOUT_MAX_UNITS)

#define FLAG_MASKED 1u

static void head_put32(uint8_t *p, uint32_t v)
{
    size_t i;

    for (i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}

static void head_put64(uint8_t *p, uint64_t v)
{
    head_put32(p, (uint32_t)v);
    head_put32(p + 4, (uint32_t)(v >> 32));
}

static uint32_t head_get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t head_get64(const uint8_t *p)
{
    return (uint64_t)head_get32(p) | (uint64_t)head_get32(p + 4) << 32;
}

/* Length of the hashed part of the header. */
static size_t hashed_size(size_t n_parts)
{
    return FIXED_SIZE + PART_SIZE * n_parts + NAMED_SIZE;
}

static size_t padded_size(size_t n_parts)
{
    return (hashed_size(n_parts) + HASH_SIZE + COUNT_SIZE + PAGE - 1) / PAGE * PAGE;
}

int fl__spool_path(const char *dir, const char *client, char *out, size_t size, struct fl_err *err)
{
    int n;

    if (!fl_name_valid(client)) {
        return fl_err_set(err, FL_EINVAL, "not a valid client name");
    }
    n = snprintf(out, size, "%s/spool/%s" FL__SPOOL_SUFFIX, dir, client);
    return n >= 0 && (size_t)n < size ? FL_OK
                                      : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

uint64_t fl__spool_upload(uint64_t round, uint32_t attempt, const char *client)
{
    char text[64 + FL_NAME_MAX];
    int n = snprintf(text, sizeof(text), "%06" PRIu64 "-%03" PRIu32 "-%s", round, attempt, client);

    return n > 0 && (size_t)n < sizeof(text) ? fl_hash64(text, (size_t)n) : 0;
}

int fl__spool_find(const char *dir, const char *client, char *out, size_t size, struct fl_err *err)
{
    char other[FL__STORE_PATH_MAX];
    int n;
    int rv = fl__spool_path(dir, client, out, size, err);

    if (rv != FL_OK || fl_fs_exists(out)) {
        return rv;
    }
    n = snprintf(other, sizeof(other), "%s" FL__SPOOL_BAD, out);
    return n >= 0 && (size_t)n < sizeof(other) && fl_fs_exists(other)
               ? fl_str_copy(out, size, other)
               : FL_OK;
}

static bool section_precedes(const struct fl_spool_part *a, const struct fl_spool_part *b)
{
    return a->unit < b->unit || (a->unit == b->unit && a->payload < b->payload);
}

int fl__spool_head_make(const struct fl_spool_part *parts, size_t n, struct fl__spool_head *ret,
                        struct fl_err *err)
{
    /* A coded unit is never much longer than its floats; the limit prevents integer overflow of the
     * sum. */
    const uint64_t most = 8 * FL_LAYOUT_MAX_FLOATS;
    struct fl__spool_head head = {.n_parts = n};
    size_t i;

    if (n == 0 || n > MAX_PARTS) {
        return fl_err_set(err, FL_EINVAL, "an upload holds 1 to %d sections, not %zu", MAX_PARTS,
                          n);
    }
    for (i = 0; i < n; i++) {
        if (i > 0 && !section_precedes(&parts[i - 1], &parts[i])) {
            return fl_err_set(err, FL_EINVAL,
                              "the units of an upload must rise: %" PRIu32 " follows %" PRIu32,
                              parts[i].unit, parts[i - 1].unit);
        }
        if (parts[i].payload >= FL_SPOOL_MAX_PAYLOADS) {
            return fl_err_set(err, FL_EINVAL, "an upload holds up to %d payloads, not %" PRIu32,
                              FL_SPOOL_MAX_PAYLOADS, parts[i].payload);
        }
        if (parts[i].bytes > most - head.bytes) {
            return fl_err_set(err, FL_EINVAL, "unit %" PRIu32 " of %" PRIu64 " bytes is too large",
                              parts[i].unit, parts[i].bytes);
        }
        head.bytes += parts[i].bytes;
    }
    head.start = padded_size(n);
    head.parts = calloc(n, sizeof(*head.parts));
    if (head.parts == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    (void)memcpy(head.parts, parts, n * sizeof(*parts));
    *ret = head;
    return FL_OK;
}

void fl__spool_head_done(struct fl__spool_head *head)
{
    free(head->parts);
    *head = (struct fl__spool_head){0};
}

static uint64_t read_boot(void)
{
    static const char source[] = "/proc/sys/kernel/random/boot_id";
    struct fl_buf text;
    uint64_t boot;

    if (fl_fs_read(source, 64, &text, NULL) != FL_OK) {
        return 0;
    }
    boot = text.len > 0 ? fl_hash64(text.data, text.len) : 0;
    fl_buf_done(&text);
    return boot;
}

uint64_t fl__spool_boot(void)
{
    static _Atomic uint64_t known; /* Constant while this process runs. */

    if (known == 0) {
        known = read_boot();
    }
    return known;
}

int fl__spool_head_write(int fd, struct fl__spool_head *head)
{
    size_t hashed = hashed_size(head->n_parts);
    uint8_t *raw = calloc(1, (size_t)head->start);
    size_t i;
    int rv;

    if (raw == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(raw, MAGIC, strlen(MAGIC));
    head_put32(raw + 8, HEAD_VERSION);
    head_put32(raw + 12, (uint32_t)head->n_parts);
    head_put64(raw + 16, head->bytes);
    for (i = 0; i < head->n_parts; i++) {
        uint8_t *p = raw + FIXED_SIZE + PART_SIZE * i;

        head_put32(p, head->parts[i].unit);
        head_put32(p + 4, head->parts[i].payload);
        head_put32(p + 8, head->parts[i].codec);
        head_put32(p + 12, head->parts[i].masked ? FLAG_MASKED : 0);
        head_put64(p + 16, head->parts[i].bytes);
    }
    head_put64(raw + hashed - NAMED_SIZE, head->upload);
    head_put64(raw + hashed - NAMED_SIZE + 8, head->boot);
    head->hash = fl_hash64(raw, hashed);
    head_put64(raw + hashed, head->hash);
    head_put64(raw + hashed + HASH_SIZE, head->received ^ head->hash);
    rv = fl_fs_pwrite(fd, raw, (size_t)head->start, 0);
    free(raw);
    return rv;
}

int fl__spool_count_write(int fd, const struct fl__spool_head *head)
{
    uint8_t raw[COUNT_SIZE];

    head_put64(raw, head->received ^ head->hash);
    return fl_fs_pwrite(fd, raw, sizeof(raw), hashed_size(head->n_parts) + HASH_SIZE);
}

/* Read the manifest of a header whose hash matches; FL_EFORMAT: an invalid one, not written by this
 * server. */
static int parse_manifest(const uint8_t *raw, size_t n, struct fl__spool_head *ret)
{
    struct fl_spool_part *parts = calloc(n, sizeof(*parts));
    size_t i;
    int rv;

    if (parts == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        const uint8_t *p = raw + FIXED_SIZE + PART_SIZE * i;

        parts[i] = (struct fl_spool_part){.unit = head_get32(p),
                                          .payload = head_get32(p + 4),
                                          .codec = head_get32(p + 8),
                                          .masked = head_get32(p + 12) == FLAG_MASKED,
                                          .bytes = head_get64(p + 16)};
    }
    rv = fl__spool_head_make(parts, n, ret, NULL);
    free(parts);
    if (rv == FL_OK && ret->bytes != head_get64(raw + 16)) {
        fl__spool_head_done(ret);
        rv = FL_EFORMAT;
    }
    return rv == FL_EINVAL ? FL_EFORMAT : rv;
}

/* Read the fields other than the manifest, of a header whose hash matches. */
static int take_named(const uint8_t *raw, uint64_t upload, struct fl__spool_head *head)
{
    size_t hashed = hashed_size(head->n_parts);

    head->upload = head_get64(raw + hashed - NAMED_SIZE);
    head->boot = head_get64(raw + hashed - NAMED_SIZE + 8);
    head->hash = head_get64(raw + hashed);
    head->received = head_get64(raw + hashed + HASH_SIZE) ^ head->hash;
    return head->upload == upload && head->received <= head->bytes ? FL_OK : FL_EFORMAT;
}

int fl__spool_head_read(int fd, uint64_t upload, struct fl__spool_head *ret)
{
    struct fl__spool_head head = {0};
    uint8_t first[PAGE]; /* the whole header for models of a few units */
    uint8_t *raw;
    size_t hashed;
    size_t size;
    size_t n;
    int rv = fl_fs_pread(fd, first, sizeof(first), 0);

    if (rv != FL_OK) {
        return rv;
    }
    n = head_get32(first + 12);
    if (memcmp(first, MAGIC, strlen(MAGIC)) != 0 || head_get32(first + 8) != HEAD_VERSION ||
        n == 0 || n > MAX_PARTS)
    {
        return FL_EFORMAT;
    }
    hashed = hashed_size(n);
    size = padded_size(n);
    raw = malloc(size);
    if (raw == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(raw, first, sizeof(first));
    rv = size > PAGE ? fl_fs_pread(fd, raw + PAGE, size - PAGE, PAGE) : FL_OK;
    if (rv == FL_OK && head_get64(raw + hashed) != fl_hash64(raw, hashed)) {
        rv = FL_EFORMAT;
    }
    rv = rv == FL_OK ? parse_manifest(raw, n, &head) : rv;
    rv = rv == FL_OK ? take_named(raw, upload, &head) : rv;
    free(raw);
    if (rv != FL_OK) {
        fl__spool_head_done(&head);
        return rv;
    }
    *ret = head;
    return FL_OK;
}

uint64_t fl__spool_tail_size(const struct fl__spool_head *head)
{
    return (fl__sums_blocks(head->bytes) + 1) * sizeof(uint64_t);
}

bool fl__spool_whole(const struct fl__spool_head *head, uint64_t size)
{
    /* The file may be longer: it can be recycled from a longer upload. */
    return head->received == head->bytes &&
           size >= head->start + head->bytes + fl__spool_tail_size(head);
}

int fl__spool_tail_write(int fd, const struct fl__spool_head *head, const struct fl__sums *sums)
{
    size_t len = (size_t)fl__spool_tail_size(head);
    uint8_t *raw = malloc(len);
    size_t i;
    int rv;

    if (raw == NULL) {
        return FL_ENOMEM;
    }
    FL_REQUIRE(sums->bytes == head->bytes);
    for (i = 0; i < sums->n; i++) {
        head_put64(raw + 8 * i, sums->list[i]);
    }
    head_put64(raw + len - 8, fl_checksum(raw, len - 8) ^ head->upload);
    rv = fl_fs_pwrite(fd, raw, len, head->start + head->bytes);
    free(raw);
    return rv;
}

int fl__spool_tail_read(int fd, const struct fl__spool_head *head, uint64_t **ret)
{
    size_t len = (size_t)fl__spool_tail_size(head);
    uint8_t *raw = malloc(len);
    uint64_t *list = malloc(len);
    size_t i;
    int rv = raw != NULL && list != NULL ? fl_fs_pread(fd, raw, len, head->start + head->bytes)
                                         : FL_ENOMEM;

    if (rv == FL_OK && head_get64(raw + len - 8) != (fl_checksum(raw, len - 8) ^ head->upload)) {
        rv = FL_EFORMAT;
    }
    for (i = 0; rv == FL_OK && i < len / 8; i++) {
        list[i] = head_get64(raw + 8 * i);
    }
    free(raw);
    if (rv != FL_OK) {
        free(list);
        return rv;
    }
    *ret = list;
    return FL_OK;
}
