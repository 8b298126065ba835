#include "client/store/own_summary.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/store/whole.h"
#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "libfl/model/layout.h"

#define SUMMARY_PATH    4096
#define SUMMARY_MAGIC   "FLSUMMRY"
#define SUMMARY_VERSION 1

struct head {
    char magic[8];
    uint32_t version, reserved;
    uint64_t group, len;
    uint8_t sha256[FL_DIGEST_SIZE]; /* of the data behind the head */
    uint8_t head[FL_DIGEST_SIZE];   /* of the fields above */
};
_Static_assert(sizeof(struct head) == 96, "no padding");

static int own_summary_path(const char *state_dir, char path[SUMMARY_PATH], struct fl_err *err)
{
    return fl_fs_join(path, SUMMARY_PATH, state_dir, "summary.bin") == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
}

static int summary_damaged(const char *path, struct fl_err *err)
{
    return fl_err_set(err, FL_EFORMAT,
                      "'%s', the data summary that was sent, is damaged: no summary is sent "
                      "without it. Restore it from a backup; remove it only if its samples may be "
                      "summarised again (docs/security.md)",
                      path);
}

static int summary_check_head(const struct head *h, uint64_t size, const char *path,
                              struct fl_err *err)
{
    uint8_t sha[FL_DIGEST_SIZE];
    bool ours = memcmp(h->magic, SUMMARY_MAGIC, sizeof(h->magic)) == 0;

    if (ours && fl_whole_is_newer(h->version, SUMMARY_VERSION)) {
        return fl_whole_newer(path, h->version, SUMMARY_VERSION, err);
    }
    if (!ours || h->version != SUMMARY_VERSION ||
        fl_sha256(h, offsetof(struct head, head), sha) != FL_OK ||
        memcmp(sha, h->head, sizeof(sha)) != 0 || size != sizeof(*h) + h->len)
    {
        return summary_damaged(path, err);
    }
    return FL_OK;
}

/* Opens the file and checks its head. */
static int open_summary(const char *path, int *ret_fd, struct head *ret, struct fl_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st = {.st_size = 0};
    int rv;

    if (fd < 0) {
        rv = fl_err_from_errno(errno);
        return fl_err_set(err, rv, "cannot open '%s': %s", path, strerror(errno));
    }
    rv = fstat(fd, &st) == 0 ? fl_fs_pread(fd, ret, sizeof(*ret), 0) : fl_err_from_errno(errno);
    if (rv == FL_EFORMAT) {
        rv = summary_damaged(path, err);
    } else if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
    } else {
        rv = summary_check_head(ret, (uint64_t)st.st_size, path, err);
    }
    if (rv != FL_OK) {
        (void)close(fd);
        return rv;
    }
    *ret_fd = fd;
    return FL_OK;
}

int fl_summary_group(const char *state_dir, uint64_t *ret, struct fl_err *err)
{
    char path[SUMMARY_PATH];
    struct head head;
    int fd = -1;
    int rv = own_summary_path(state_dir, path, err);

    rv = rv == FL_OK ? open_summary(path, &fd, &head, err) : rv;
    if (rv == FL_OK) {
        (void)close(fd);
        *ret = head.group;
    }
    return rv;
}

static int summary_read_body(int fd, const char *path, const struct head *head, struct fl_buf *out,
                             struct fl_err *err)
{
    uint8_t sha[FL_DIGEST_SIZE];
    size_t len = (size_t)head->len;
    int rv = fl_buf_reserve(out, len);

    rv = rv == FL_OK ? fl_fs_pread(fd, out->data, len, sizeof(*head)) : rv;
    rv = rv == FL_OK ? fl_sha256(out->data, len, sha) : rv;
    if (rv == FL_EFORMAT || (rv == FL_OK && memcmp(sha, head->sha256, sizeof(sha)) != 0)) {
        return summary_damaged(path, err);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
    }
    out->len = len;
    return FL_OK;
}

int fl_summary_load(const char *state_dir, struct fl_buf *out, struct fl_err *err)
{
    char path[SUMMARY_PATH];
    struct head head;
    int fd = -1;
    int rv = own_summary_path(state_dir, path, err);

    rv = rv == FL_OK ? open_summary(path, &fd, &head, err) : rv;
    if (rv == FL_OK) {
        rv = summary_read_body(fd, path, &head, out, err);
        (void)close(fd);
    }
    return rv;
}

int fl_summary_save(const char *state_dir, uint64_t group, const void *data, size_t len,
                    struct fl_err *err)
{
    struct head head = {.version = SUMMARY_VERSION, .group = group, .len = len};
    const struct fl_run runs[] = {{&head, sizeof(head)}, {data, len}};
    char path[SUMMARY_PATH];
    int rv = own_summary_path(state_dir, path, err);

    (void)memcpy(head.magic, SUMMARY_MAGIC, sizeof(head.magic));
    rv = rv == FL_OK ? fl_sha256(data, len, head.sha256) : rv;
    rv = rv == FL_OK ? fl_sha256(&head, offsetof(struct head, head), head.head) : rv;
    return rv == FL_OK ? fl_whole_write(path, runs, 2, /* sync= */ true, err) : rv;
}
