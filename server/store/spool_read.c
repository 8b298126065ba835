/*
 * Reading spool files back. Hundreds of readers are open at once while updates are aggregated, so a
 * reader holds no descriptor (it opens the file each time it fills its buffer, which costs some
 * microseconds) and allocates its buffer at the first read; a small upload is read with its header.
 * Blocking; each reader belongs to one thread. Nothing is written here except the quarantine of a
 * file after FL_EIO.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/strategy/codec/codec_masked.h"
#include "server/store/spool_impl.h"

#define BUFFER_MIN     FL_SUM_BLOCK /* one checksummed block */
#define BUFFER_MAX     ((size_t)262144)
#define BUFFER_DEFAULT ((size_t)65536)
/* Reads of this size and more bypass the buffer: the aggregator's blocks are that large. */
#define DIRECT_MIN ((size_t)65536)

/* --- quarantine --- */

int fl__spool_quarantine(const char *path, int code, struct fl_err *err)
{
    char bad[FL__STORE_PATH_MAX];
    char text[FL_ERR_BUF_SIZE];
    int n = snprintf(bad, sizeof(bad), "%s" FL__SPOOL_BAD, path);

    if (n < 0 || (size_t)n >= sizeof(bad) || fl_str_ends_with(path, FL__SPOOL_BAD) ||
        rename(path, bad) != 0)
    {
        return code;
    }
    (void)snprintf(text, sizeof(text), "%s", fl_err_text(err, code));
    return fl_err_set(err, code, "%s; the file is quarantined as '%s'", text, bad);
}

/* --- reading ahead --- */

/* With checksums, `offset` and the end must be block boundaries; the end may be the end of the
 * range. */
static int read_at(struct fl__ahead *a, void *out, size_t len, uint64_t offset)
{
    int fd = a->fd;
    int rv;

    if (fd < 0) {
        fd = open(a->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            a->errnum = errno;
            return fl_err_from_errno(errno);
        }
    }
    rv = fl_fs_pread(fd, out, len, offset);
    if (rv != FL_OK && rv != FL_EFORMAT) {
        a->errnum = errno;
    }
    if (a->fd < 0) {
        (void)close(fd);
    }
    if (rv != FL_OK && rv != FL_EFORMAT) {
        return rv;
    }
    if (rv == FL_EFORMAT ||
        (a->sums != NULL && !fl_block_sums_match(a->sums, offset - a->base, out, len)))
    {
        a->damaged = true;
        return FL_EFORMAT;
    }
    return FL_OK;
}

/* Fill the buffer so that it contains `offset`. */
static int ahead_fill(struct fl__ahead *a, uint64_t offset)
{
    uint64_t from = a->sums != NULL ? offset - (offset - a->base) % FL_SUM_BLOCK : offset;
    uint64_t left = a->end - from;
    size_t len = left < a->cap ? (size_t)left : a->cap;
    int rv;

    if (a->data == NULL) {
        a->data = malloc(a->cap);
        if (a->data == NULL) {
            return FL_ENOMEM;
        }
    }
    a->len = 0;
    rv = read_at(a, a->data, len, from);
    if (rv != FL_OK) {
        return rv;
    }
    a->from = from;
    a->len = len;
    return FL_OK;
}

/* Number of bytes that can bypass the buffer, which saves one copy; 0: use the buffer.
 */
static size_t direct_length(const struct fl__ahead *a, uint64_t offset, size_t len)
{
    if (len < a->cap && len < DIRECT_MIN) {
        return 0;
    }
    if (a->sums == NULL || ((offset - a->base) % FL_SUM_BLOCK == 0 && offset + len == a->end)) {
        return len;
    }
    return (offset - a->base) % FL_SUM_BLOCK == 0 ? len - len % FL_SUM_BLOCK : 0;
}

int fl__ahead_read(struct fl__ahead *a, uint64_t offset, void *out, size_t len)
{
    uint8_t *to = out;

    if (offset > a->end || len > a->end - offset) {
        return FL_EFORMAT;
    }
    while (len > 0) {
        size_t part;
        int rv = FL_OK;

        if (offset < a->from || offset - a->from >= a->len) {
            part = direct_length(a, offset, len);
            rv = part > 0 ? read_at(a, to, part, offset) : ahead_fill(a, offset);
        } else {
            part = 0;
        }
        if (rv != FL_OK) {
            return rv;
        }
        if (part == 0) {
            part = a->len - (size_t)(offset - a->from);
            part = part < len ? part : len;
            (void)memcpy(to, a->data + (offset - a->from), part);
        }
        to += part;
        offset += part;
        len -= part;
    }
    return FL_OK;
}

struct fl__ahead fl__ahead_memory(const void *data, uint64_t len)
{
    return (struct fl__ahead){.fd = -1,
                              .end = len,
                              .lent = true,
                              .data = (uint8_t *)(uintptr_t)data, /* only read */
                              .len = (size_t)len};
}

void fl__ahead_done(struct fl__ahead *a)
{
    if (!a->lent) {
        free(a->data);
    }
    a->data = NULL;
    a->len = 0;
}

static int read_unit(void *ctx, uint64_t offset, void *out, size_t len)
{
    struct fl__spool_unit *unit = ctx;

    if (offset > unit->bytes || len > unit->bytes - offset) {
        return FL_EFORMAT;
    }
    return fl__ahead_read(unit->ahead, unit->start + offset, out, len);
}

static const struct fl_codec_ops *codec_of(const struct fl_spool_part *part)
{
    return part->codec <= INT32_MAX ? fl_codec_by_id((int)part->codec) : NULL;
}

uint64_t fl__spool_max_size(const struct fl_layout *layout, const struct fl_spool_part *part)
{
    const struct fl_codec_ops *ops = codec_of(part);

    if (ops == NULL) {
        return 0;
    }
    return part->masked ? fl_masked_max_size(ops, layout, part->unit)
                        : ops->max_size(layout, part->unit);
}

int fl__spool_unit_open(struct fl__spool_unit *unit, const struct fl_layout *layout,
                        const struct fl_spool_part *part, struct fl_codec_decoder *ret)
{
    const struct fl_codec_ops *ops = codec_of(part);
    struct fl_codec_reader reader = {.read = read_unit, .ctx = unit, .size = unit->bytes};

    if (ops == NULL) {
        return FL_EFORMAT;
    }
    return part->masked ? fl_masked_open(ret, ops, layout, part->unit, &reader)
                        : fl_codec_open(ret, ops, layout, part->unit, &reader);
}

/* --- readers --- */

/* One section of the file, when `there`. */
struct place {
    bool there;
    struct fl_spool_part part;
    struct fl__spool_unit unit;
};

struct fl_spool_reader {
    char *path; /* of an upload in memory: name of the client */
    bool in_memory;
    const struct fl_layout *layout;
    /* One for each payload: the payloads of a unit are read in turn and would evict each other from
     * a shared buffer. */
    struct fl__ahead ahead[FL_SPOOL_MAX_PAYLOADS];
    size_t n_payloads;
    uint64_t *sums;       /* of the coded bytes */
    uint8_t *units;       /* [n_units] */
    struct place *places; /* [n_payloads][n_units] */
};

static struct place *reader_section(const struct fl_spool_reader *r, size_t payload, size_t unit)
{
    return &r->places[payload * fl_layout_units(r->layout) + unit];
}

static int index_parts(struct fl_spool_reader *r, const struct fl__spool_head *head,
                       struct fl_err *err)
{
    size_t n_units = fl_layout_units(r->layout);
    uint64_t start = head->file.start;
    size_t i;

    for (i = 0; i < head->n_parts; i++) {
        size_t n = (size_t)head->parts[i].payload + 1;

        r->n_payloads = n > r->n_payloads ? n : r->n_payloads;
    }
    r->places = calloc(r->n_payloads * n_units, sizeof(*r->places));
    if (r->places == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    for (i = 0; i < head->n_parts; i++) {
        const struct fl_spool_part *part = &head->parts[i];
        struct place *place;

        if (part->unit >= n_units) {
            return fl_err_set(err, FL_ESHAPE, "'%s' holds unit %" PRIu32 " of a model of %zu units",
                              r->path, part->unit, n_units);
        }
        r->units[part->unit] |= part->payload == 0;
        place = reader_section(r, part->payload, part->unit);
        place->there = true;
        place->part = *part;
        place->unit = (struct fl__spool_unit){
            .ahead = &r->ahead[part->payload], .start = start, .bytes = part->bytes};
        start += part->bytes;
    }
    return FL_OK;
}

/* Read the head, and check that the file has the length that it states. */
static int reader_check_file(const struct fl_spool_reader *r, int fd, uint64_t upload,
                             struct fl__spool_head *ret, struct fl_err *err)
{
    struct stat st = {0};
    int rv = fl__spool_head_read(fd, upload, ret);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "'%s' has no complete header of this upload: %s", r->path,
                          fl_strerror(rv));
    }
    if (fstat(fd, &st) != 0) {
        return fl__store_fail(err, "cannot read", r->path);
    }
    if (fl__spool_whole(ret, (uint64_t)st.st_size)) {
        return FL_OK;
    }
    if (ret->file.received != ret->bytes) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' has %" PRIu64 " coded bytes, its header says %" PRIu64, r->path,
                          ret->file.received, ret->bytes);
    }
    return fl_err_set(err, FL_EFORMAT, "'%s' has %" PRIu64 " bytes, its header says %" PRIu64,
                      r->path, (uint64_t)st.st_size, fl_container_size(&ret->file));
}

/* Read a small upload while its file is open. Errors are ignored here; the later read reports them.
 */
static void take_all(struct fl__ahead *a, int fd)
{
    struct fl__ahead whole = *a;

    whole.fd = fd;
    whole.cap = BUFFER_MIN;
    if (a->end > a->base && ahead_fill(&whole, a->base) == FL_OK) {
        whole.fd = a->fd;
        *a = whole;
    } else {
        fl__ahead_done(&whole);
    }
}

static int reader_load_head(struct fl_spool_reader *r, uint64_t upload, struct fl_err *err)
{
    int fd = open(r->path, O_RDONLY | O_CLOEXEC);
    struct fl__spool_head head = {0};
    size_t b;
    int rv;

    if (fd < 0) {
        return fl__store_fail(err, "cannot open", r->path);
    }
    rv = reader_check_file(r, fd, upload, &head, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_container_tail_read(fd, r->path, &head.file, &r->sums, NULL);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "the checksums of '%s' are missing or damaged: %s", r->path,
                         fl_strerror(rv));
        goto done;
    }
    for (b = 0; b < FL_SPOOL_MAX_PAYLOADS; b++) {
        r->ahead[b] = (struct fl__ahead){.path = r->path,
                                         .fd = -1,
                                         .cap = BUFFER_DEFAULT,
                                         .base = head.file.start,
                                         .sums = r->sums,
                                         .end = head.file.start + head.bytes};
    }
    rv = index_parts(r, &head, err);
    if (rv != FL_OK) {
        goto done;
    }
    for (b = 0; head.bytes <= BUFFER_MIN && b < r->n_payloads; b++) {
        take_all(&r->ahead[b], fd);
    }
done:
    (void)close(fd);
    fl__spool_head_done(&head);
    return rv;
}

static int make_reader(const char *path, const struct fl_layout *layout,
                       struct fl_spool_reader **ret, struct fl_err *err)
{
    struct fl_spool_reader *r = calloc(1, sizeof(*r));

    if (r != NULL) {
        r->layout = layout;
        r->path = fl_str_dup(path);
        r->units = calloc(fl_layout_units(layout), sizeof(*r->units));
    }
    if (r == NULL || r->path == NULL || r->units == NULL) {
        fl_spool_reader_close(r);
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    *ret = r;
    return FL_OK;
}

int fl_spool_reader_open(const char *dir, uint64_t round, uint32_t attempt, const char *client,
                         const struct fl_layout *layout, struct fl_spool_reader **ret,
                         struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_spool_reader *r = NULL;
    int rv = fl__spool_find(dir, client, path, sizeof(path), err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = make_reader(path, layout, &r, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = reader_load_head(r, fl__spool_upload(round, attempt, client), err);
    if (rv != FL_OK) {
        fl_spool_reader_close(r);
        return rv == FL_EIO ? fl__spool_quarantine(path, rv, err) : rv;
    }
    *ret = r;
    return FL_OK;
}

int fl__spool_reader_memory(const char *client, const struct fl__spool_head *head, const void *data,
                            const struct fl_layout *layout, struct fl_spool_reader **ret,
                            struct fl_err *err)
{
    struct fl_spool_reader *r = NULL;
    size_t b;
    int rv = make_reader(client, layout, &r, err);

    if (rv != FL_OK) {
        return rv;
    }
    r->in_memory = true;
    for (b = 0; b < FL_SPOOL_MAX_PAYLOADS; b++) {
        r->ahead[b] = fl__ahead_memory(data, head->bytes);
    }
    rv = index_parts(r, head, err);
    if (rv != FL_OK) {
        fl_spool_reader_close(r);
        return rv;
    }
    *ret = r;
    return FL_OK;
}

void fl_spool_reader_share(struct fl_spool_reader *reader, size_t n_readers)
{
    size_t n = (n_readers > 0 ? n_readers : 1) * reader->n_payloads;
    size_t cap = FL_SPOOL_READ_AHEAD / n / BUFFER_MIN * BUFFER_MIN;
    size_t b;

    cap = cap < BUFFER_MIN ? BUFFER_MIN : cap > BUFFER_MAX ? BUFFER_MAX : cap;
    for (b = 0; !reader->in_memory && b < FL_SPOOL_MAX_PAYLOADS; b++) {
        if (reader->ahead[b].cap != BUFFER_MIN) { /* Already the smallest size. */
            fl__ahead_done(&reader->ahead[b]);
            reader->ahead[b].cap = cap;
        }
    }
}

const uint8_t *fl_spool_reader_units(const struct fl_spool_reader *reader)
{
    return reader->units;
}

void fl_spool_reader_explain(const struct fl_spool_reader *reader, int code, struct fl_err *err)
{
    size_t b;

    for (b = 0; b < FL_SPOOL_MAX_PAYLOADS; b++) {
        if (reader->ahead[b].errnum != 0) {
            (void)fl_err_set(err, code, "cannot read '%s': %s", reader->path,
                             strerror(reader->ahead[b].errnum));
            if (code == FL_EIO) {
                (void)fl__spool_quarantine(reader->path, code, err);
            }
            return;
        }
    }
}

int fl_spool_reader_unit(struct fl_spool_reader *reader, size_t payload, size_t unit,
                         struct fl_codec_decoder *ret)
{
    struct place *place;

    FL_REQUIRE(unit < fl_layout_units(reader->layout));
    place = payload < reader->n_payloads ? reader_section(reader, payload, unit) : NULL;
    if (place == NULL || !place->there) {
        return FL_ENOENT;
    }
    return fl__spool_unit_open(&place->unit, reader->layout, &place->part, ret);
}

bool fl_spool_reader_floats(struct fl_spool_reader *reader, size_t unit, float *out)
{
    struct fl_codec_decoder d;

    if (reader->units[unit] == 0 || fl_spool_reader_unit(reader, 0, unit, &d) != FL_OK) {
        return false;
    }
    /* Only a decoder that was read to its end is closed. */
    return !fl_masked_decoder(&d) &&
           d.ops->read(&d, out, fl_layout_unit(reader->layout, unit)->count) == FL_OK &&
           d.ops->close(&d) == FL_OK;
}

void fl_spool_reader_close(struct fl_spool_reader *reader)
{
    size_t b;

    if (reader == NULL) {
        return;
    }
    for (b = 0; b < FL_SPOOL_MAX_PAYLOADS; b++) {
        fl__ahead_done(&reader->ahead[b]);
    }
    free(reader->path);
    free(reader->sums);
    free(reader->units);
    free(reader->places);
    free(reader);
}
