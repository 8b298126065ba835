/*
 * The data summaries of clients (FedMix), one file each. The files are kept beside the collection
 * made from them (summaries_fixed.c), so that it can be rebuilt when one is removed. Blocking; the
 * caller serializes changes. Reading the collection is in summaries_read.c.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "server/store/summaries_impl.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie");

int fl__summaries_path(const char *dir, const char *name, const char *suffix,
                       char out[FL__STORE_PATH_MAX], struct fl_err *err)
{
    int n = snprintf(out, FL__STORE_PATH_MAX, "%s/summaries/%s%s", dir, name, suffix);

    return n >= 0 && n < FL__STORE_PATH_MAX
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

bool fl__summary_client(const char *file, char out[FL_NAME_MAX])
{
    size_t len = strlen(file);
    size_t n = len > strlen(FL__SUMMARY_SUFFIX) ? len - strlen(FL__SUMMARY_SUFFIX) : 0;

    if (n == 0 || n >= FL_NAME_MAX || strcmp(file + n, FL__SUMMARY_SUFFIX) != 0) {
        return false;
    }
    (void)memcpy(out, file, n);
    out[n] = '\0';
    return fl_name_valid(out);
}

bool fl__summary_is_dropped(const uint8_t head[FL__SUMMARY_HEAD])
{
    static const uint8_t nothing[16]; /* Differs from the XXH3 of the empty string. */

    return memcmp(head, FL__SUMMARY_MAGIC, 8) == 0 && memcmp(head + 8, nothing, 16) == 0;
}

bool fl__summary_is_whole(const struct fl_buf *buf)
{
    uint64_t len = 0;
    uint64_t checksum = 0;

    if (buf->len < FL__SUMMARY_HEAD || memcmp(buf->data, FL__SUMMARY_MAGIC, 8) != 0) {
        return false;
    }
    (void)memcpy(&len, buf->data + 8, sizeof(len));
    (void)memcpy(&checksum, buf->data + 16, sizeof(checksum));
    return len == buf->len - FL__SUMMARY_HEAD &&
           checksum == fl_checksum(buf->data + FL__SUMMARY_HEAD, buf->len - FL__SUMMARY_HEAD);
}

/* false: the client has no file with the right magic. */
static bool read_head(const char *dir, const char *client, uint8_t head[FL__SUMMARY_HEAD])
{
    char path[FL__STORE_PATH_MAX];
    int fd;
    bool there;

    if (fl__summaries_path(dir, client, FL__SUMMARY_SUFFIX, path, NULL) != FL_OK) {
        return false;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)memset(head, 0xff, FL__SUMMARY_HEAD);
    there = fd >= 0 &&
            (fl_fs_pread(fd, head, FL__SUMMARY_HEAD, 0) == FL_OK ||
             fl_fs_pread(fd, head, 8, 0) == FL_OK) &&
            memcmp(head, FL__SUMMARY_MAGIC, 8) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return there;
}

bool fl_summaries_has(const char *dir, const char *client)
{
    uint8_t head[FL__SUMMARY_HEAD];

    return read_head(dir, client, head);
}

bool fl_summaries_dropped(const char *dir, const char *client)
{
    uint8_t head[FL__SUMMARY_HEAD];

    return read_head(dir, client, head) && fl__summary_is_dropped(head);
}

bool fl_summaries_fixed(const char *dir)
{
    char path[FL__STORE_PATH_MAX];

    return fl__summaries_path(dir, FL__SUMMARIES_FIXED, "", path, NULL) == FL_OK &&
           fl_fs_exists(path);
}

static int write_summary(const char *dir, const char *client, const void *data, size_t len,
                         uint64_t checksum, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    uint64_t length = len;
    uint8_t *raw;
    int rv;

    if (!fl_name_valid(client)) {
        return fl_err_set(err, FL_EINVAL, "not a valid client name");
    }
    rv = fl__summaries_path(dir, client, FL__SUMMARY_SUFFIX, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    raw = malloc(FL__SUMMARY_HEAD + len);
    if (raw == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    (void)memcpy(raw, FL__SUMMARY_MAGIC, 8);
    (void)memcpy(raw + 8, &length, sizeof(length));
    (void)memcpy(raw + 16, &checksum, sizeof(checksum));
    if (len > 0) {
        (void)memcpy(raw + FL__SUMMARY_HEAD, data, len);
    }
    rv = fl_fs_replace(path, raw, FL__SUMMARY_HEAD + len, /* sync= */ true, err);
    free(raw);
    return rv;
}

int fl_summaries_put(const char *dir, const char *client, const void *data, size_t len,
                     struct fl_err *err)
{
    if (fl_summaries_fixed(dir)) {
        return fl_err_set(err, FL_EEXIST, "the data summaries are fixed already");
    }
    return write_summary(dir, client, data, len, fl_checksum(data, len), err);
}

static int remove_summary(const char *dir, const char *path, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    int rv;

    if (unlink(path) != 0) {
        rv = fl_err_from_errno(errno);
        return fl_err_set(err, rv, "cannot remove '%s': %s", path, strerror(errno));
    }
    rv = fl_fs_join(folder, sizeof(folder), dir, "summaries");
    return rv == FL_OK ? fl_fs_sync_dir(folder, err) : rv;
}

int fl_summaries_remove(const char *dir, const char *client, bool stays, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    int rv = fl_name_valid(client) ? FL_OK : FL_EINVAL;

    rv = rv == FL_OK ? fl__summaries_path(dir, client, FL__SUMMARY_SUFFIX, path, err) : rv;
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "not a valid client name");
    }
    if (!fl_fs_exists(path) || (stays && fl_summaries_dropped(dir, client))) {
        return fl_err_set(err, FL_ENOENT, "there is no data summary of client '%s'", client);
    }
    return stays ? write_summary(dir, client, NULL, 0, 0, err) : remove_summary(dir, path, err);
}

/* The marker of a dropped summary stays: the operator's decision is about the client, whatever
   summary it would send for other settings. */
static bool is_summary_file(const void *ctx, const char *name)
{
    const char *dir = ctx;
    char client[FL_NAME_MAX];

    return fl__summary_client(name, client)
               ? !fl_summaries_dropped(dir, client) /* or its quarantined or temporary file */
               : strncmp(name, FL__SUMMARIES_FIXED, strlen(FL__SUMMARIES_FIXED)) == 0;
}

int fl_summaries_clear(const char *dir, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];

    return fl_fs_join(folder, sizeof(folder), dir, "summaries") == FL_OK
               ? fl_fs_remove_each(folder, is_summary_file, dir, err)
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}
