/* Reading the collection of all data summaries, and quarantining a damaged one. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "server/store/store_files_impl.h"
#include "server/store/summaries_impl.h"

/* Open the section of the file that is sent: the summaries, with their checksums. */
static int open_part(struct fl_file *whole, const char *path, struct fl_file **ret,
                     struct fl_err *err)
{
    struct fl_container_head head = {.n = 0};
    uint64_t *sums = NULL;
    int rv = fl_container_head_read(fl__file_fd(whole), path, &fl__summaries_kind, &head, err);

    if (rv != FL_OK) {
        return rv == FL_EVERSION ? FL_EFORMAT : rv;
    }
    if (head.n != 1 || fl_file_size(whole) != fl_container_size(&head)) {
        rv = fl_err_set(err, FL_EFORMAT, "it is damaged");
        goto done;
    }
    rv = fl_container_tail_read(fl__file_fd(whole), path, &head, &sums, err);
    if (rv != FL_OK) {
        goto done;
    }
    *ret = fl__file_part(whole, head.sections[0].start, head.sections[0].bytes, sums);
    rv = *ret != NULL ? fl_file_verify(*ret) : FL_ENOMEM;
done:
    fl_container_head_done(&head);
    return rv;
}

int fl__summaries_made_of(const char *dir, uint64_t *ret, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_container_head head = {.n = 0};
    int fd;
    int rv = fl__summaries_path(dir, FL__SUMMARIES_FIXED, "", path, err);

    if (rv != FL_OK) {
        return rv;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return FL_ENOENT;
    }
    rv = fl_container_head_read(fd, path, &fl__summaries_kind, &head, NULL) == FL_OK &&
                 fl_container_fields(&head, ret, sizeof(*ret)) == FL_OK
             ? FL_OK
             : FL_ENOENT;
    fl_container_head_done(&head);
    (void)close(fd);
    return rv;
}

/* The bytes are mapped, not read: there may be many, and each is used once. */
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
    struct fl_err why = {0};
    struct fl_file *whole = NULL;
    struct fl_file *part = NULL;
    int rv = fl_file_open(path, &whole, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = open_part(whole, path, &part, &why);
    fl_file_unref(whole); /* The section holds a reference. */
    if (rv != FL_OK) {
        fl_file_unref(part);
        return fl_err_set(err, rv, "'%s' does not hold data summaries: %s", path,
                          why.msg[0] != '\0' ? why.msg
                          : rv == FL_EFORMAT ? "it is damaged"
                                             : fl_strerror(rv));
    }
    *ret = part;
    return FL_OK;
}

int fl_summaries_open(const char *dir, struct fl_file **ret, uint8_t digest[FL_DIGEST_SIZE],
                      struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_file *file = NULL;
    int rv = fl__summaries_path(dir, FL__SUMMARIES_FIXED, "", path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = open_fixed(path, &file, err);
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

int fl_summaries_quarantine(const char *dir, struct fl_err *err)
{
    char from[FL__STORE_PATH_MAX];
    char to[FL__STORE_PATH_MAX];
    int rv = fl__summaries_path(dir, FL__SUMMARIES_FIXED, "", from, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__summaries_path(dir, FL__SUMMARIES_FIXED, ".bad-1", to, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_publish(from, to, /* sync= */ true, err);
}
