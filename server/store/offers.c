/*
 * What clients told of their data before the first round (FedMix): a file each until that
 * round begins, then one with all of them, which never changes.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/digest.h"
#include "server/store/files_impl.h"
#include "server/store/store_impl.h"
#include "server/store/sums.h"

/*
 *   <client>.offer:  "FLOFFER\n", length (8), XXH3 of what follows (8), what was offered
 *   fixed:           "FLOFFERS", length (8), XXH3 of the checksums (8), all offers, XXH3 of each
 *                    block of 16 KiB of them (8 b)
 *   all:             the offers alone: what an earlier version fixed
 */
#define SUFFIX    ".offer"
#define FIXED     "fixed"
#define ALL       "all"
#define ONE_MAGIC "FLOFFER\n"
#define ALL_MAGIC "FLOFFERS"
#define HEAD_SIZE 24

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie");

static int path_of(const char *dir, const char *name, const char *suffix, char *out, size_t size,
                   struct fl_err *err)
{
    int n = snprintf(out, size, "%s/offers/%s%s", dir, name, suffix);

    return n >= 0 && (size_t)n < size ? FL_OK
                                      : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

static void put_head(uint8_t head[HEAD_SIZE], const char *magic, uint64_t len, uint64_t checksum)
{
    (void)memcpy(head, magic, 8);
    (void)memcpy(head + 8, &len, sizeof(len));
    (void)memcpy(head + 16, &checksum, sizeof(checksum));
}

int fl_offers_put(const char *dir, const char *client, const void *data, size_t len,
                  struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    uint8_t *raw;
    int rv;

    if (!fl_name_valid(client)) {
        return fl_err_set(err, FL_EINVAL, "not a valid client name");
    }
    rv = path_of(dir, client, SUFFIX, path, sizeof(path), err);
    if (rv != FL_OK) {
        return rv;
    }
    raw = malloc(HEAD_SIZE + len);
    if (raw == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    put_head(raw, ONE_MAGIC, len, fl_checksum(data, len));
    if (len > 0) {
        (void)memcpy(raw + HEAD_SIZE, data, len);
    }
    rv = fl_fs_replace(path, raw, HEAD_SIZE + len, /* sync= */ true, err);
    free(raw);
    return rv;
}

/* What `buf` holds of a file, whole and as it was put. */
static bool is_whole(const struct fl_buf *buf)
{
    uint64_t len = 0;
    uint64_t checksum = 0;

    if (buf->len < HEAD_SIZE || memcmp(buf->data, ONE_MAGIC, 8) != 0) {
        return false;
    }
    (void)memcpy(&len, buf->data + 8, sizeof(len));
    (void)memcpy(&checksum, buf->data + 16, sizeof(checksum));
    return len == buf->len - HEAD_SIZE &&
           checksum == fl_checksum(buf->data + HEAD_SIZE, buf->len - HEAD_SIZE);
}

bool fl_offers_has(const char *dir, const char *client)
{
    char path[FL__STORE_PATH_MAX];
    uint8_t magic[8];
    int fd;
    bool there;

    if (path_of(dir, client, SUFFIX, path, sizeof(path), NULL) != FL_OK) {
        return false;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    there = fd >= 0 && fl_fs_pread(fd, magic, sizeof(magic), 0) == FL_OK &&
            memcmp(magic, ONE_MAGIC, sizeof(magic)) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return there;
}

/* --- all of them --- */

struct names {
    char (*list)[FL_NAME_MAX];
    size_t n, cap;
};

/* "edge-01.offer" is of client edge-01. */
static bool client_of(const char *file, char out[FL_NAME_MAX])
{
    size_t len = strlen(file);
    size_t n = len > strlen(SUFFIX) ? len - strlen(SUFFIX) : 0;

    if (n == 0 || n >= FL_NAME_MAX || strcmp(file + n, SUFFIX) != 0) {
        return false;
    }
    (void)memcpy(out, file, n);
    out[n] = '\0';
    return fl_name_valid(out);
}

static bool is_ours(const void *ctx, const char *name)
{
    char client[FL_NAME_MAX];

    (void)ctx;
    return client_of(name, client) || strcmp(name, ALL) == 0 ||
           strncmp(name, FIXED, strlen(FIXED)) == 0; /* or set aside, or not done */
}

int fl_offers_clear(const char *dir, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];

    return fl_fs_join(folder, sizeof(folder), dir, "offers") == FL_OK
               ? fl_fs_remove_each(folder, is_ours, NULL, err)
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

static int add_name(struct names *names, const char *name)
{
    if (names->n == names->cap) {
        size_t cap = names->cap == 0 ? 64 : names->cap * 2;
        void *list = realloc(names->list, cap * sizeof(*names->list));

        if (list == NULL) {
            return FL_ENOMEM;
        }
        names->list = list;
        names->cap = cap;
    }
    return fl_str_copy(names->list[names->n++], FL_NAME_MAX, name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int add_client(void *ctx, const char *folder, const char *file, struct fl_err *err)
{
    char name[FL_NAME_MAX];
    int rv = client_of(file, name) ? add_name(ctx, name) : FL_OK;

    return rv == FL_OK
               ? rv
               : fl_err_set(err, rv, "cannot list folder '%s': %s", folder, fl_strerror(rv));
}

static int list_names(const char *dir, struct names *names, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    int rv;

    if (fl_fs_join(folder, sizeof(folder), dir, "offers") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    rv = fl_fs_each(folder, add_client, names, err);
    if (rv == FL_OK && names->n > 0) {
        qsort(names->list, names->n, sizeof(*names->list), by_name);
    }
    return rv;
}

struct fixing {
    const char *dir;
    size_t max;
    fl_offers_check_cb check;
    void *ctx;
    int fd;
    struct fl__sums sums; /* of what was written */
    size_t bad;
};

static int add_bytes(struct fixing *f, const uint8_t *data, size_t len)
{
    int rv = fl__sums_reserve(&f->sums, len);

    if (rv == FL_OK) {
        rv = fl_fs_pwrite(f->fd, data, len, HEAD_SIZE + f->sums.bytes);
    }
    if (rv == FL_OK) {
        fl__sums_add(&f->sums, data, len);
    }
    return rv;
}

static int append(struct fixing *f, const char *name, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_buf buf = {0};
    int rv = path_of(f->dir, name, SUFFIX, path, sizeof(path), err);

    rv = rv == FL_OK ? fl_fs_read(path, f->max + HEAD_SIZE, &buf, err) : rv;
    if (rv == FL_OK && !is_whole(&buf)) {
        rv = FL_EFORMAT;
    }
    if (rv == FL_OK && buf.len > HEAD_SIZE) {
        rv = f->check(f->ctx, buf.data + HEAD_SIZE, buf.len - HEAD_SIZE, err);
    }
    if (rv == FL_EFORMAT || rv == FL_ELIMIT) {
        f->bad++; /* Damaged, or of an earlier configuration: without it is as if it were late. */
        rv = FL_OK;
    } else if (rv == FL_OK) {
        rv = add_bytes(f, buf.data + HEAD_SIZE, buf.len - HEAD_SIZE);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "the offers in '%s': %s", f->dir, fl_strerror(rv));
        }
    }
    fl_buf_done(&buf);
    return rv;
}

/* Behind the offers their checksums, before them the head. */
static int seal(struct fixing *f)
{
    uint8_t head[HEAD_SIZE];
    size_t len;
    int rv;

    fl__sums_end(&f->sums);
    len = f->sums.n * sizeof(*f->sums.list);
    put_head(head, ALL_MAGIC, f->sums.bytes, fl_checksum(f->sums.list, len));
    rv = fl_fs_pwrite(f->fd, f->sums.list, len, HEAD_SIZE + f->sums.bytes);
    rv = rv == FL_OK ? fl_fs_pwrite(f->fd, head, sizeof(head), 0) : rv;
    return rv == FL_OK && fdatasync(f->fd) != 0 ? fl_err_from_errno(errno) : rv;
}

static int write_all(struct fixing *f, const struct names *names, const char *path,
                     struct fl_err *err)
{
    char tmp[FL__STORE_PATH_MAX];
    size_t i;
    int rv = path_of(f->dir, FIXED, ".tmp", tmp, sizeof(tmp), err);

    if (rv != FL_OK) {
        return rv;
    }
    f->fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (f->fd < 0) {
        rv = fl_err_from_errno(errno);
        return fl_err_set(err, rv, "cannot create '%s': %s", tmp, strerror(errno));
    }
    for (i = 0; rv == FL_OK && i < names->n; i++) {
        rv = append(f, names->list[i], err);
    }
    if (rv == FL_OK) {
        rv = seal(f);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "cannot write '%s': %s", tmp, fl_strerror(rv));
        }
    }
    (void)close(f->fd);
    rv = rv == FL_OK ? fl_fs_publish(tmp, path, /* sync= */ true, err) : rv;
    if (rv != FL_OK) {
        (void)unlink(tmp);
    }
    return rv;
}

int fl_offers_fix(const char *dir, size_t max, fl_offers_check_cb check, void *ctx, size_t *ret_bad,
                  struct fl_err *err)
{
    struct fixing f = {.dir = dir, .max = max, .check = check, .ctx = ctx, .fd = -1};
    struct names names = {0};
    char path[FL__STORE_PATH_MAX];
    char old[FL__STORE_PATH_MAX];
    int rv = path_of(dir, FIXED, "", path, sizeof(path), err);

    *ret_bad = 0;
    rv = rv == FL_OK ? path_of(dir, ALL, "", old, sizeof(old), err) : rv;
    if (rv != FL_OK || fl_fs_exists(path) || fl_fs_exists(old)) {
        return rv;
    }
    rv = list_names(dir, &names, err);
    if (rv == FL_OK) {
        rv = write_all(&f, &names, path, err);
    }
    free(names.list);
    fl__sums_done(&f.sums);
    *ret_bad = f.bad;
    return rv;
}

/* --- reading --- */

/* What is served of the file: the offers, with what they are checked by. */
static int open_part(struct fl_file *whole, struct fl_file **ret)
{
    uint8_t head[HEAD_SIZE];
    uint64_t *sums = NULL;
    uint64_t len = 0;
    uint64_t checksum = 0;
    size_t size;
    int rv = fl_file_read(whole, 0, head, sizeof(head));

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(&len, head + 8, sizeof(len));
    (void)memcpy(&checksum, head + 16, sizeof(checksum));
    if (memcmp(head, ALL_MAGIC, 8) != 0 || len > fl_file_size(whole) ||
        fl_file_size(whole) != HEAD_SIZE + len + fl__sums_blocks(len) * sizeof(*sums))
    {
        return FL_EFORMAT;
    }
    size = fl__sums_blocks(len) * sizeof(*sums);
    sums = malloc(size + 1);
    rv = sums != NULL ? fl_file_read(whole, HEAD_SIZE + len, sums, size) : FL_ENOMEM;
    if (rv == FL_OK && fl_checksum(sums, size) != checksum) {
        rv = FL_EFORMAT;
    }
    if (rv != FL_OK) {
        free(sums);
        return rv;
    }
    *ret = fl__file_part(whole, HEAD_SIZE, len, sums);
    return *ret != NULL ? fl_file_verify(*ret) : FL_ENOMEM;
}

/* The bytes are mapped, not read: they may be many, and are looked at once. */
static int digest_of(const struct fl_file *file, uint8_t digest[FL_DIGEST_SIZE])
{
    size_t skip = (size_t)fl__file_start(file);
    size_t len = skip + (size_t)fl_file_size(file);
    uint8_t *data;
    int rv;

    if (fl_file_size(file) == 0) {
        return fl_sha256("", 0, digest);
    }
    data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fl__file_fd(file), 0);
    if (data == MAP_FAILED) {
        return fl_err_from_errno(errno);
    }
    rv = fl_sha256(data + skip, len - skip, digest);
    (void)munmap(data, len);
    return rv;
}

static int open_fixed(const char *path, struct fl_file **ret, struct fl_err *err)
{
    struct fl_file *whole = NULL;
    struct fl_file *part = NULL;
    int rv = fl_file_open(path, &whole, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = open_part(whole, &part);
    fl_file_unref(whole); /* The part keeps it. */
    if (rv != FL_OK) {
        fl_file_unref(part);
        return fl_err_set(err, rv, "'%s' does not hold what clients offered: %s", path,
                          rv == FL_EFORMAT ? "it is damaged" : fl_strerror(rv));
    }
    *ret = part;
    return FL_OK;
}

int fl_offers_open(const char *dir, struct fl_file **ret, uint8_t digest[FL_DIGEST_SIZE],
                   struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_file *file = NULL;
    int rv = path_of(dir, FIXED, "", path, sizeof(path), err);

    rv = rv == FL_OK ? open_fixed(path, &file, err) : rv;
    if (rv == FL_ENOENT) {
        rv = path_of(dir, ALL, "", path, sizeof(path), err);
        rv = rv == FL_OK ? fl_file_open(path, &file, err) : rv;
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = digest_of(file, digest);
    if (rv != FL_OK) {
        fl_file_unref(file);
        return fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
    }
    *ret = file;
    return FL_OK;
}

int fl_offers_set_aside(const char *dir, struct fl_err *err)
{
    char from[FL__STORE_PATH_MAX];
    char to[FL__STORE_PATH_MAX];
    int rv = path_of(dir, FIXED, "", from, sizeof(from), err);

    rv = rv == FL_OK ? path_of(dir, FIXED, ".bad-1", to, sizeof(to), err) : rv;
    if (rv == FL_OK && rename(from, to) != 0) {
        rv = fl_err_from_errno(errno);
        (void)fl_err_set(err, rv, "cannot rename '%s': %s", from, fl_strerror(rv));
    }
    return rv;
}
