/*
 * fl-data inspect FILE: prints one of the project's own binary files (libfl/container): kind,
 * version, sections with their sizes, and whether the checksums are right. Main thread; reads every
 * byte, changes nothing. It does not know what the fields and sections of a kind mean.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/container/block_sums.h"
#include "libfl/container/container.h"
#include "tools/fl_data/fl_data.h"

/* Largest record of any kind of file with records. */
#define RECORD_MAX (UINT32_C(64) << 20)

struct inspection {
    const char *path;
    int fd;
    uint64_t size; /* of the file */
    struct fl_container_head head;
    uint64_t *sums; /* NULL: missing or damaged */
    json_t *root;
    json_t *wrong; /* array of texts: what is damaged */
};

FL_PRINTF(2, 3) static void file_is_wrong(struct inspection *f, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)json_array_append_new(f->wrong, json_string(text));
}

/* --- sections --- */

/* The number of blocks of a section that are wrong; FL_OK, or an error of the disk. */
static int check_section(struct inspection *f, const struct fl_container_section *s, size_t *ret,
                         struct fl_err *err)
{
    uint8_t block[FL_SUM_BLOCK];
    uint64_t at;
    size_t i = s->block;

    *ret = 0;
    for (at = 0; at < s->bytes; at += sizeof(block), i++) {
        size_t n = s->bytes - at < sizeof(block) ? (size_t)(s->bytes - at) : sizeof(block);
        int rv = fl_fs_pread(f->fd, block, n, s->start + at);

        if (rv != FL_OK) {
            return fl_err_set(err, rv, "cannot read '%s': %s", f->path, fl_strerror(rv));
        }
        if (fl_checksum(block, n) != f->sums[i]) {
            (*ret)++;
            file_is_wrong(f,
                          "bytes %" PRIu64 " to %" PRIu64 " (%s) have checksum %016" PRIx64
                          ", expected %016" PRIx64,
                          s->start + at, s->start + at + n - 1, s->name, fl_checksum(block, n),
                          f->sums[i]);
        }
    }
    return FL_OK;
}

/* The checksums behind the sections, or why there are none. */
static void inspect_tail(struct inspection *f)
{
    uint64_t total = f->head.end - f->head.start;
    struct fl_err err = {0};
    int rv;

    if ((f->head.flags & FL_CONTAINER_IN_PLACE) != 0) {
        (void)json_object_set_new(f->root, "received", json_integer((json_int_t)f->head.received));
        if (f->head.received < total) {
            return; /* Not finished: its checksums come with the last byte. */
        }
    } else if (f->size != fl_container_size(&f->head)) {
        file_is_wrong(f, "the file has %" PRIu64 " bytes, its head says %" PRIu64, f->size,
                      fl_container_size(&f->head));
    }
    rv = fl_container_tail_read(f->fd, f->path, &f->head, &f->sums, &err);
    if (rv != FL_OK) {
        file_is_wrong(f, "the checksums at byte %" PRIu64 " cannot be used: %s", f->head.end,
                      fl_err_text(&err, rv));
    }
}

/* --- records --- */

/* FL_ENOENT: no further record that is complete. */
static int read_record(const struct inspection *f, uint64_t at, uint8_t *data,
                       struct fl_container_record *ret)
{
    if (f->size - at < sizeof(*ret) || fl_fs_pread(f->fd, ret, sizeof(*ret), at) != FL_OK ||
        ret->len > RECORD_MAX || ret->len > f->size - at - sizeof(*ret))
    {
        return FL_ENOENT;
    }
    return fl_fs_pread(f->fd, data, ret->len, at + sizeof(*ret));
}

static int inspect_records(struct inspection *f, struct fl_err *err)
{
    uint64_t most = f->size < RECORD_MAX ? f->size : RECORD_MAX;
    uint8_t *data = malloc((size_t)most + 1);
    struct fl_container_record record;
    uint64_t at = f->head.end;
    json_int_t n = 0;
    int rv;

    if (data == NULL) {
        return fl_err_set(err, FL_ENOMEM, "cannot read '%s': %s", f->path, fl_strerror(FL_ENOMEM));
    }
    while ((rv = read_record(f, at, data, &record)) == FL_OK) {
        uint64_t found = fl_container_record_sum(record.kind, data, record.len);

        if (found != record.sum) {
            file_is_wrong(f,
                          "the record of kind %" PRIu32 " at byte %" PRIu64
                          " has checksum %016" PRIx64 ", expected %016" PRIx64,
                          record.kind, at, found, record.sum);
            break;
        }
        at += sizeof(record) + record.len;
        n++;
    }
    if (at < f->size && rv == FL_ENOENT) { /* Being written, or its writer was killed. */
        (void)json_object_set_new(f->root, "incomplete", json_integer((json_int_t)at));
    }
    free(data);
    (void)json_object_set_new(f->root, "records", json_integer(n));
    return rv == FL_OK || rv == FL_ENOENT
               ? FL_OK
               : fl_err_set(err, rv, "cannot read '%s': %s", f->path, fl_strerror(rv));
}

/* --- the whole file --- */

static int inspect_all(struct inspection *f, struct fl_err *err)
{
    json_t *list;
    size_t i;
    int rv = fl_container_head_read(f->fd, f->path, NULL, &f->head, err);

    if (rv != FL_OK) {
        return rv;
    }
    f->root = json_pack("{s:s, s:s, s:I, s:I, s:I}", "file", f->path, "kind", f->head.kind,
                        "version", (json_int_t)f->head.version, "bytes", (json_int_t)f->size,
                        "fields", (json_int_t)f->head.fields_len);
    f->wrong = json_array();
    if (f->root == NULL || f->wrong == NULL) {
        json_decref(f->wrong);
        return fl_err_set(err, FL_ENOMEM, "out of memory describing '%s'", f->path);
    }
    (void)json_object_set_new(f->root, "damage", f->wrong);
    if ((f->head.flags & FL_CONTAINER_RECORDS) != 0) {
        return inspect_records(f, err);
    }
    inspect_tail(f);
    list = json_array();
    (void)json_object_set_new(f->root, "sections", list);
    for (i = 0; i < f->head.n; i++) {
        const struct fl_container_section *s = &f->head.sections[i];
        size_t wrong = 0;

        rv = f->sums != NULL ? check_section(f, s, &wrong, err) : FL_OK;
        if (rv != FL_OK) {
            return rv;
        }
        (void)json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:I, s:o}", "name", s->name, "offset",
                            (json_int_t)s->start, "bytes", (json_int_t)s->bytes, "blocks",
                            (json_int_t)fl_block_sums_count(s->bytes), "wrong",
                            f->sums != NULL ? json_integer((json_int_t)wrong) : json_null()));
    }
    return FL_OK;
}

static void print_sections(const json_t *list)
{
    size_t i;

    (void)printf("%-8s %12s %12s %8s  checksums\n", "section", "offset", "bytes", "blocks");
    for (i = 0; i < json_array_size(list); i++) {
        const json_t *s = json_array_get(list, i);
        const json_t *wrong = json_object_get(s, "wrong");

        (void)printf("%-8s %12lld %12lld %8lld  ", json_string_value(json_object_get(s, "name")),
                     (long long)json_integer_value(json_object_get(s, "offset")),
                     (long long)json_integer_value(json_object_get(s, "bytes")),
                     (long long)json_integer_value(json_object_get(s, "blocks")));
        if (json_is_null(wrong)) {
            (void)puts("not there");
        } else if (json_integer_value(wrong) == 0) {
            (void)puts("right");
        } else {
            (void)printf("%lld wrong\n", (long long)json_integer_value(wrong));
        }
    }
}

static void print_file(const struct inspection *f)
{
    const json_t *received = json_object_get(f->root, "received");
    const json_t *records = json_object_get(f->root, "records");
    const json_t *incomplete = json_object_get(f->root, "incomplete");
    size_t i;

    (void)printf("%s: kind %s, version %" PRIu32 ", %" PRIu64 " bytes, %zu bytes of fields\n",
                 f->path, f->head.kind, f->head.version, f->size, f->head.fields_len);
    if (received != NULL) {
        (void)printf("received %lld of %" PRIu64 " bytes%s\n",
                     (long long)json_integer_value(received), f->head.end - f->head.start,
                     f->head.received < f->head.end - f->head.start
                         ? ", the checksums follow with the last byte"
                         : "");
    }
    if (incomplete != NULL) {
        (void)printf("the record at byte %lld is incomplete\n",
                     (long long)json_integer_value(incomplete));
    }
    if (records != NULL) {
        (void)printf("%lld records with right checksums\n", (long long)json_integer_value(records));
    } else {
        print_sections(json_object_get(f->root, "sections"));
    }
    for (i = 0; i < json_array_size(f->wrong); i++) {
        (void)printf("damaged: %s\n", json_string_value(json_array_get(f->wrong, i)));
    }
}

int inspect_file(const char *path, bool as_json)
{
    struct inspection f = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    struct fl_err err = {0};
    struct stat st;
    int rv;

    if (f.fd < 0 || fstat(f.fd, &st) != 0) {
        (void)fprintf(stderr, "fl-data inspect: cannot open '%s': %s\n", path, strerror(errno));
        rv = FL_EIO;
        goto done;
    }
    f.size = (uint64_t)st.st_size;
    rv = inspect_all(&f, &err);
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-data inspect: %s\n", fl_err_text(&err, rv));
        if (rv == FL_EFORMAT) {
            (void)fputs("fl-data inspect: it prints the binary files of state folders; models, the "
                        "database and data sets have formats of their own\n",
                        stderr);
        }
        goto done;
    }
    if (as_json) {
        (void)json_dumpf(f.root, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        (void)putchar('\n');
    } else {
        print_file(&f);
    }
    rv = json_array_size(f.wrong) > 0 ? FL_EFORMAT : FL_OK;
done:
    json_decref(f.root);
    free(f.sums);
    fl_container_head_done(&f.head);
    if (f.fd >= 0) {
        (void)close(f.fd);
    }
    return rv == FL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
