/*
 * The data summaries of clients (FedMix), one file each. The files are kept beside the collection
 * made from them (summaries_fixed.c), so that it can be rebuilt when one is removed. Blocking; the
 * caller serializes changes. Reading the collection is in summaries_read.c.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "server/store/summaries_impl.h"

const struct fl_container_kind fl__summary_kind = {
    .name = "summary", .version = 1, .max_sections = 1};
const struct fl_container_kind fl__summaries_kind = {
    .name = "fixed", .version = 1, .max_sections = 1, .max_fields = sizeof(uint64_t)};

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

/* The file of a client; -1: none. */
static int open_client_file(const char *dir, const char *client, char path[FL__STORE_PATH_MAX])
{
    return fl__summaries_path(dir, client, FL__SUMMARY_SUFFIX, path, NULL) == FL_OK
               ? open(path, O_RDONLY | O_CLOEXEC)
               : -1;
}

bool fl_summaries_has(const char *dir, const char *client)
{
    char path[FL__STORE_PATH_MAX];
    int fd = open_client_file(dir, client, path);
    bool there;

    if (fd < 0) {
        return false;
    }
    there = fl_container_is(fd, &fl__summary_kind);
    (void)close(fd);
    return there;
}

bool fl_summaries_dropped(const char *dir, const char *client)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_container_head head = {.n = 1};
    int fd = open_client_file(dir, client, path);
    bool dropped;

    if (fd < 0) {
        return false;
    }
    dropped =
        fl_container_head_read(fd, path, &fl__summary_kind, &head, NULL) == FL_OK && head.n == 0;
    fl_container_head_done(&head);
    (void)close(fd);
    return dropped;
}

bool fl_summaries_fixed(const char *dir)
{
    char path[FL__STORE_PATH_MAX];

    return fl__summaries_path(dir, FL__SUMMARIES_FIXED, "", path, NULL) == FL_OK &&
           fl_fs_exists(path);
}

/* `part` NULL: the marker of a dropped summary. */
static int write_summary(const char *dir, const char *client, const struct fl_container_part *part,
                         struct fl_err *err)
{
    const struct fl_container_content content = {.parts = part, .n = part != NULL ? 1 : 0};
    char path[FL__STORE_PATH_MAX];
    int rv;

    if (!fl_name_valid(client)) {
        return fl_err_set(err, FL_EINVAL, "not a valid client name");
    }
    rv = fl__summaries_path(dir, client, FL__SUMMARY_SUFFIX, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_container_replace(path, &fl__summary_kind, &content, /* sync= */ true, err);
}

int fl_summaries_put(const char *dir, const char *client, const void *data, size_t len,
                     struct fl_err *err)
{
    const struct fl_container_part part = {"data", data, len};

    if (fl_summaries_fixed(dir)) {
        return fl_err_set(err, FL_EEXIST, "the data summaries are fixed already");
    }
    return write_summary(dir, client, &part, err);
}

int fl_summaries_remove(const char *dir, const char *client, bool stays, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char folder[FL__STORE_PATH_MAX];
    int rv;

    if (!fl_name_valid(client)) {
        return fl_err_set(err, FL_EINVAL, "not a valid client name");
    }
    if (fl__summaries_path(dir, client, FL__SUMMARY_SUFFIX, path, NULL) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "not a valid client name");
    }
    if (!fl_fs_exists(path) || (stays && fl_summaries_dropped(dir, client))) {
        return fl_err_set(err, FL_ENOENT, "there is no data summary of client '%s'", client);
    }
    if (stays) {
        return write_summary(dir, client, NULL, err);
    }
    if (unlink(path) != 0) {
        rv = fl_err_from_errno(errno);
        return fl_err_set(err, rv, "cannot remove '%s': %s", path, strerror(errno));
    }
    rv = fl_fs_join(folder, sizeof(folder), dir, "summaries");
    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_sync_dir(folder, err);
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
