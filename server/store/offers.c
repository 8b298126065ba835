/*
 * What clients told of their data before the first round (FedMix): a file each until that
 * round begins, then one with all of them, which never changes.
 */

#include <dirent.h>
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
#include "server/store/files_p.h"
#include "server/store/store_p.h"

#define SUFFIX ".offer"
#define ALL    "all"

static int path_of(const char *dir, const char *name, const char *suffix, char *out, size_t size,
                   struct fl_err *err)
{
    int n = snprintf(out, size, "%s/offers/%s%s", dir, name, suffix);

    return n >= 0 && (size_t)n < size ? FL_OK
                                      : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

int fl_offers_put(const char *dir, const char *client, const void *data, size_t len,
                  struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    int rv;

    if (!fl_name_valid(client)) {
        return fl_err_set(err, FL_EINVAL, "not a valid client name");
    }
    rv = path_of(dir, client, SUFFIX, path, sizeof(path), err);
    return rv == FL_OK ? fl_fs_replace(path, data, len, /* sync= */ true, err) : rv;
}

bool fl_offers_has(const char *dir, const char *client)
{
    char path[FL__STORE_PATH_MAX];

    return path_of(dir, client, SUFFIX, path, sizeof(path), NULL) == FL_OK && fl_fs_exists(path);
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

int fl_offers_clear(const char *dir, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    char path[FL__STORE_PATH_MAX];
    struct dirent *entry;
    DIR *d;
    int rv = FL_OK;

    if (fl_fs_join(folder, sizeof(folder), dir, "offers") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    d = opendir(folder);
    if (d == NULL) {
        rv = fl_err_from_errno(errno);
        return rv == FL_ENOENT
                   ? FL_OK
                   : fl_err_set(err, rv, "cannot open folder '%s': %s", folder, strerror(errno));
    }
    while (rv == FL_OK && (entry = readdir(d)) != NULL) {
        char name[FL_NAME_MAX];

        if (!client_of(entry->d_name, name) && strcmp(entry->d_name, ALL) != 0) {
            continue;
        }
        rv = fl_fs_join(path, sizeof(path), folder, entry->d_name);
        rv = rv == FL_OK ? fl_fs_remove(path) : rv;
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "cannot remove '%s' in '%s': %s", entry->d_name, folder,
                             fl_strerror(rv));
        }
    }
    (void)closedir(d);
    return rv;
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

static int list_names(const char *dir, struct names *names, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    char name[FL_NAME_MAX];
    struct dirent *entry;
    DIR *d;
    int rv = FL_OK;

    if (fl_fs_join(folder, sizeof(folder), dir, "offers") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    d = opendir(folder);
    if (d == NULL) {
        rv = fl_err_from_errno(errno);
        return fl_err_set(err, rv, "cannot open folder '%s': %s", folder, strerror(errno));
    }
    while (rv == FL_OK && (entry = readdir(d)) != NULL) {
        if (client_of(entry->d_name, name)) {
            rv = add_name(names, name);
        }
    }
    (void)closedir(d);
    if (rv == FL_OK && names->n > 0) {
        qsort(names->list, names->n, sizeof(*names->list), by_name);
    }
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "%s", fl_strerror(rv));
}

struct fixing {
    const char *dir;
    size_t max;
    fl_offers_check_cb check;
    void *ctx;
    int fd;
    uint64_t at;
    size_t bad;
};

static int append(struct fixing *f, const char *name, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_buf buf = {0};
    int rv = path_of(f->dir, name, SUFFIX, path, sizeof(path), err);

    rv = rv == FL_OK ? fl_fs_read(path, f->max, &buf, err) : rv;
    if (rv == FL_OK && buf.len > 0) {
        rv = f->check(f->ctx, buf.data, buf.len, err);
    }
    if (rv == FL_EFORMAT || rv == FL_ELIMIT) {
        f->bad++; /* Of an earlier configuration: without it is as if it were late. */
        rv = FL_OK;
    } else if (rv == FL_OK) {
        rv = fl_fs_pwrite(f->fd, buf.data, buf.len, f->at);
        f->at += buf.len;
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "cannot write the offers in '%s': %s", f->dir,
                             fl_strerror(rv));
        }
    }
    fl_buf_done(&buf);
    return rv;
}

static int write_all(struct fixing *f, const struct names *names, const char *path,
                     struct fl_err *err)
{
    char tmp[FL__STORE_PATH_MAX];
    size_t i;
    int rv = path_of(f->dir, ALL, ".tmp", tmp, sizeof(tmp), err);

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
    if (rv == FL_OK && fdatasync(f->fd) != 0) {
        rv = fl_err_from_errno(errno);
        (void)fl_err_set(err, rv, "cannot sync '%s': %s", tmp, strerror(errno));
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
    int rv = path_of(dir, ALL, "", path, sizeof(path), err);

    *ret_bad = 0;
    if (rv != FL_OK || fl_fs_exists(path)) {
        return rv;
    }
    rv = list_names(dir, &names, err);
    if (rv == FL_OK) {
        rv = write_all(&f, &names, path, err);
    }
    free(names.list);
    *ret_bad = f.bad;
    return rv;
}

/* The bytes are mapped, not read: they may be many, and are looked at once. */
static int digest_of(const struct fl_file *file, uint8_t digest[FL_DIGEST_SIZE])
{
    size_t len = (size_t)fl_file_size(file);
    void *data;
    int rv;

    if (len == 0) {
        return fl_sha256("", 0, digest);
    }
    data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fl__file_fd(file), 0);
    if (data == MAP_FAILED) {
        return fl_err_from_errno(errno);
    }
    rv = fl_sha256(data, len, digest);
    (void)munmap(data, len);
    return rv;
}

int fl_offers_open(const char *dir, struct fl_file **ret, uint8_t digest[FL_DIGEST_SIZE],
                   struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_file *file = NULL;
    int rv = path_of(dir, ALL, "", path, sizeof(path), err);

    rv = rv == FL_OK ? fl_file_open(path, &file, err) : rv;
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
