/* The files of a backup: copying them with their SHA-256, and reading and writing the list
 * SHA256SUMS. One thread, blocking. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "libfl/base/writer.h"
#include "libfl/model/digest.h"
#include "server/store/backup_impl.h"

#define PIECE ((size_t)256 << 10)
/* 100 000 uploads need a sixth of it. */
#define SUMS_MAX ((size_t)64 << 20)
#define HEX      ((size_t)64)

/* --- the list --- */

int fl__backup_add(struct fl__backup_list *files, const char *name, struct fl__backup_file **ret,
                   struct fl_err *err)
{
    struct fl__backup_file *f;

    if (fl_grow(&files->list, &files->cap, files->n, sizeof(*files->list)) != FL_OK) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    f = &files->list[files->n];
    *f = (struct fl__backup_file){.fd = -1};
    if (fl_str_copy(f->name, sizeof(f->name), name) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "name '%s' is too long", name);
    }
    files->n++;
    *ret = f;
    return FL_OK;
}

void fl__backup_list_done(struct fl__backup_list *files)
{
    size_t i;

    for (i = 0; i < files->n; i++) {
        if (files->list[i].fd >= 0) {
            (void)close(files->list[i].fd);
        }
    }
    free(files->list);
    *files = (struct fl__backup_list){0};
}

/* --- bytes --- */

/* `to` < 0: hash only. */
static int copy_and_hash(int from, int to, uint8_t sha256[32], uint64_t *ret_bytes)
{
    uint8_t *piece = malloc(PIECE);
    struct fl_sha256 *sha = NULL;
    uint64_t at = 0;
    ssize_t n;
    int rv = piece != NULL ? fl_sha256_new(&sha) : FL_ENOMEM;

    if (rv != FL_OK) {
        goto done;
    }
    while ((n = pread(from, piece, PIECE, (off_t)at)) != 0) {
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            rv = fl_err_from_errno(errno);
            goto done;
        }
        rv = fl_sha256_add(sha, piece, (size_t)n);
        if (rv != FL_OK) {
            goto done;
        }
        rv = to >= 0 ? fl_fs_pwrite(to, piece, (size_t)n, at) : FL_OK;
        if (rv != FL_OK) {
            goto done;
        }
        at += (uint64_t)n;
    }
    rv = fl_sha256_end(sha, sha256);
done:
    fl_sha256_free(sha);
    free(piece);
    *ret_bytes = at;
    return rv;
}

int fl__backup_copy(int fd, const char *from, const char *to, mode_t mode, uint8_t sha256[32],
                    uint64_t *ret_bytes, struct fl_err *err)
{
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    int rv;

    if (out < 0) {
        return fl__store_fail(err, "cannot create", to);
    }
    rv = copy_and_hash(fd, out, sha256, ret_bytes);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot copy '%s' to '%s': %s", from, to, fl_strerror(rv));
        goto fail;
    }
    if (fsync(out) != 0) {
        rv = fl__store_fail(err, "cannot sync", to);
        goto fail;
    }
    return close(out) == 0 ? FL_OK : fl__store_fail(err, "cannot close", to);
fail:
    (void)close(out);
    return rv;
}

int fl__backup_sum(const char *path, uint8_t sha256[32], uint64_t *ret_bytes, struct fl_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rv;

    if (fd < 0) {
        return fl__store_fail(err, "cannot open", path);
    }
    rv = copy_and_hash(fd, -1, sha256, ret_bytes);
    (void)close(fd);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
    }
    return FL_OK;
}

/* --- SHA256SUMS --- */

int fl__backup_write_sums(const char *target, const struct fl__backup_list *files,
                          struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char hex[HEX + 1];
    struct fl_buf buf;
    struct fl_writer w = {.out = &buf};
    size_t i;
    int rv = fl__store_join(path, target, FL__BACKUP_SUMS, err);

    if (rv != FL_OK) {
        return rv;
    }
    fl_buf_init(&buf, SUMS_MAX);
    for (i = 0; i < files->n; i++) {
        fl_writer_printf(&w, "%s  %s\n", fl_hex(hex, files->list[i].sha256, 32),
                         files->list[i].name);
    }
    rv = w.code;
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "'%s': %s", path, fl_strerror(rv));
        goto done;
    }
    rv = fl_fs_replace(path, buf.data, buf.len, /* sync= */ true, err);
done:
    fl_buf_done(&buf);
    return rv;
}

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Is the name "BACKUP", or a path below "state/" without hidden or ".." components? */
static bool stays_inside(const char *name)
{
    size_t i;

    if (strcmp(name, FL__BACKUP_INFO) == 0) {
        return true;
    }
    if (strncmp(name, FL__BACKUP_STATE "/", strlen(FL__BACKUP_STATE "/")) != 0) {
        return false;
    }
    for (i = 0; name[i] != '\0'; i++) {
        if (name[i] == '/' && (name[i + 1] == '/' || name[i + 1] == '.' || name[i + 1] == '\0')) {
            return false;
        }
        if (name[i] <= ' ' || name[i] > '~') {
            return false;
        }
    }
    return true;
}

/* "HEX  NAME" */
static int parse_line(const uint8_t *line, size_t len, struct fl__backup_list *files,
                      struct fl_err *err)
{
    struct fl__backup_file *f;
    char name[FL__BACKUP_NAME];
    size_t i;
    int rv;

    if (len < HEX + 3 || len - HEX - 2 >= sizeof(name) || line[HEX] != ' ') {
        return FL_EFORMAT;
    }
    (void)memcpy(name, line + HEX + 2, len - HEX - 2);
    name[len - HEX - 2] = '\0';
    if (strlen(name) != len - HEX - 2 || !stays_inside(name)) {
        return FL_EFORMAT;
    }
    rv = fl__backup_add(files, name, &f, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < 32; i++) {
        int high = hex_digit(line[2 * i]);
        int low = hex_digit(line[2 * i + 1]);

        if (high < 0 || low < 0) {
            return FL_EFORMAT;
        }
        f->sha256[i] = (uint8_t)(high << 4 | low);
    }
    return FL_OK;
}

int fl__backup_read_sums(const char *target, struct fl__backup_list *ret, struct fl_err *err)
{
    struct fl__backup_list files = {0};
    char path[FL__STORE_PATH_MAX];
    struct fl_buf buf;
    size_t from = 0;
    size_t number = 0;
    int rv = fl__store_join(path, target, FL__BACKUP_SUMS, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!fl_fs_exists(path)) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is no whole backup: it has no %s, which is written last", target,
                          FL__BACKUP_SUMS);
    }
    rv = fl_fs_read(path, SUMS_MAX, &buf, err);
    if (rv != FL_OK) {
        return rv;
    }
    while (from < buf.len) {
        const uint8_t *end = memchr(buf.data + from, '\n', buf.len - from);
        size_t len = end != NULL ? (size_t)(end - (buf.data + from)) : 0;

        number++;
        rv = end != NULL ? parse_line(buf.data + from, len, &files, err) : FL_EFORMAT;
        if (rv != FL_OK) {
            goto fail;
        }
        from += len + 1;
    }
    fl_buf_done(&buf);
    *ret = files;
    return FL_OK;
fail:
    if (rv == FL_EFORMAT) {
        (void)fl_err_set(err, rv,
                         "'%s', line %zu: expected a SHA-256, two blanks and a file of "
                         "the backup",
                         path, number);
    }
    fl_buf_done(&buf);
    fl__backup_list_done(&files);
    return rv;
}

/* --- folders --- */

static int is_other(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    const char *but = *(const char *const *)ctx;

    (void)folder;
    (void)err;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
                   (but != NULL && strcmp(name, but) == 0)
               ? FL_OK
               : FL_EEXIST;
}

int fl__backup_check_empty(const char *dir, const char *but, struct fl_err *err)
{
    int rv = fl_fs_each(dir, is_other, &but, err);

    if (rv == FL_EEXIST) {
        return fl_err_set(err, rv,
                          "'%s' is not empty: choose a folder that is not there, or move away what "
                          "is in it",
                          dir);
    }
    return rv;
}
