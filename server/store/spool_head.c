/*
 * The head of the spool file, which holds the upload of one client for one (round, attempt).
 * Blocking, any thread.
 *
 * A spool file is a container (libfl/container) that is written in place. Its fields are the id of
 * the upload (fl_hash64() of "NNNNNN-AAA-<client>" of round and attempt), fl_hash64() of the boot
 * id of the machine when the upload started, and the manifest: for each section of the upload unit
 * (4), payload (4), codec (4), 1 when masked (4), coded bytes (8), ascending by unit, then by
 * payload. Its one section are the coded sections, in manifest order, without gaps. The checksums
 * behind it are written when the upload has been validated.
 *
 * A file may be recycled from an earlier upload (recycled_files.h): the old bytes then follow the
 * new header, or stand in its place. The file survives a kill -9 at any instant because the count
 * is written after the bytes that it counts, and the first bytes before the header: a header that
 * is incomplete, does not match its hash or belongs to another upload is treated as missing. The
 * same holds for a count left by another header, which can be alone on the next page, and for
 * checksums with the seal of another header. After a crash of the machine the count may have
 * reached the disk before the bytes. So an unfinished upload is valid only until the next boot; a
 * finished one is verified by its checksums. Not covered: a disk that loses writes while the
 * machine stays up and is mounted again.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/rng.h"
#include "libfl/base/str.h"
#include "server/store/spool_impl.h"

#define MAX_PARTS   (FL_SPOOL_MAX_PAYLOADS * FL_LAYOUT_MAX_UNITS)
#define FLAG_MASKED 1u

struct spool_fields {
    uint64_t upload, boot;
};

/* A row of the manifest, behind the fields. */
struct manifest_row {
    uint32_t unit, payload, codec, flags;
    uint64_t bytes;
};
_Static_assert(sizeof(struct manifest_row) == 24, "no padding");

static const struct fl_container_kind spool_kind = {
    .name = "upload",
    .version = 1,
    .flags = FL_CONTAINER_IN_PLACE,
    .max_sections = 1,
    .max_fields = sizeof(struct spool_fields) + MAX_PARTS * sizeof(struct manifest_row)};

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
        if (i > 0 &&
            (parts[i - 1].unit > parts[i].unit ||
             (parts[i - 1].unit == parts[i].unit && parts[i - 1].payload >= parts[i].payload)))
        {
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
    fl_container_head_done(&head->file);
    *head = (struct fl__spool_head){0};
}

uint64_t fl__spool_boot(void)
{
    static const char source[] = "/proc/sys/kernel/random/boot_id";
    static _Atomic uint64_t known; /* Constant while this process runs. */
    struct fl_buf text;

    if (known == 0 && fl_fs_read(source, 64, &text, NULL) == FL_OK) {
        known = text.len > 0 ? fl_hash64(text.data, text.len) : 0;
        fl_buf_done(&text);
    }
    return known;
}

int fl__spool_head_place(struct fl__spool_head *head)
{
    const struct spool_fields fields = {head->upload, head->boot};
    size_t len = sizeof(fields) + head->n_parts * sizeof(struct manifest_row);
    const struct fl_container_part part = {"coded", NULL, head->bytes};
    uint8_t *raw = malloc(len);
    struct fl_container_content content = {raw, len, &part, 1};
    size_t i;
    int rv;

    if (raw == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(raw, &fields, sizeof(fields));
    for (i = 0; i < head->n_parts; i++) {
        const struct fl_spool_part *p = &head->parts[i];
        const struct manifest_row row = {p->unit, p->payload, p->codec, p->masked ? FLAG_MASKED : 0,
                                         p->bytes};

        (void)memcpy(raw + sizeof(fields) + i * sizeof(row), &row, sizeof(row));
    }
    fl_container_head_done(&head->file);
    rv = fl_container_head_make(&spool_kind, &content, &head->file);
    free(raw);
    return rv;
}

/* Read the manifest of a header whose hash matches; FL_EFORMAT: an invalid one, not written by this
 * server. */
static int parse_manifest(const struct fl_container_head *file, struct fl__spool_head *ret)
{
    size_t len = file->fields_len - sizeof(struct spool_fields);
    size_t n = len / sizeof(struct manifest_row);
    struct fl_spool_part *parts = calloc(n + 1, sizeof(*parts));
    size_t i;
    int rv;

    if (parts == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n; i++) {
        struct manifest_row row;

        (void)memcpy(&row, file->fields + sizeof(struct spool_fields) + i * sizeof(row),
                     sizeof(row));
        parts[i] = (struct fl_spool_part){.unit = row.unit,
                                          .payload = row.payload,
                                          .codec = row.codec,
                                          .masked = row.flags == FLAG_MASKED,
                                          .bytes = row.bytes};
    }
    rv = fl__spool_head_make(parts, n, ret, NULL);
    free(parts);
    return rv == FL_EINVAL ? FL_EFORMAT : rv;
}

/* `file` has been checked as a head of this kind. */
static int parse_spool_head(const struct fl_container_head *file, uint64_t upload,
                            struct fl__spool_head *ret)
{
    struct fl__spool_head head = {0};
    struct spool_fields fields;
    int rv;

    if (file->n != 1 || file->fields_len < sizeof(fields) ||
        (file->fields_len - sizeof(fields)) % sizeof(struct manifest_row) != 0)
    {
        return FL_EFORMAT;
    }
    (void)memcpy(&fields, file->fields, sizeof(fields));
    if (fields.upload != upload) {
        return FL_EFORMAT;
    }
    rv = parse_manifest(file, &head);
    if (rv != FL_OK) {
        return rv;
    }
    if (head.bytes != file->sections[0].bytes) {
        fl__spool_head_done(&head);
        return FL_EFORMAT;
    }
    head.upload = fields.upload;
    head.boot = fields.boot;
    *ret = head;
    return FL_OK;
}

int fl__spool_head_read(int fd, uint64_t upload, struct fl__spool_head *ret)
{
    struct fl_container_head file;
    int rv = fl_container_head_read(fd, "", &spool_kind, &file, NULL);

    if (rv != FL_OK) {
        return rv == FL_EVERSION ? FL_EFORMAT : rv;
    }
    rv = parse_spool_head(&file, upload, ret);
    if (rv != FL_OK) {
        fl_container_head_done(&file);
        return rv;
    }
    ret->file = file;
    return FL_OK;
}

bool fl__spool_whole(const struct fl__spool_head *head, uint64_t size)
{
    /* The file may be longer: it can be recycled from a longer upload. */
    return head->file.received == head->bytes && size >= fl_container_size(&head->file);
}
