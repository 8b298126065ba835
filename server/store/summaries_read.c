/* Reading the collection of all data summaries, and quarantining a damaged one. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/model/digest.h"
#include "server/store/server_vectors.h"
#include "server/store/store_files_impl.h"
#include "server/store/summaries_impl.h"

/* Open the section of the file that is sent: the summaries, with their checksums. */
static int open_part(struct fl_file *whole, struct fl_file **ret)
{
    uint8_t head[FL__SUMMARIES_HEAD];
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
    if (memcmp(head, FL__SUMMARIES_MAGIC, 8) != 0 || len > fl_file_size(whole) ||
        fl_file_size(whole) != FL__SUMMARIES_HEAD + len + fl__sums_blocks(len) * sizeof(*sums))
    {
        return FL_EFORMAT;
    }
    size = fl__sums_blocks(len) * sizeof(*sums);
    sums = malloc(size + 1);
    rv = sums != NULL ? fl_file_read(whole, FL__SUMMARIES_HEAD + len, sums, size) : FL_ENOMEM;
    if (rv == FL_OK && fl_checksum(sums, size) != checksum) {
        rv = FL_EFORMAT;
    }
    if (rv != FL_OK) {
        free(sums);
        return rv;
    }
    *ret = fl__file_part(whole, FL__SUMMARIES_HEAD, len, sums);
    return *ret != NULL ? fl_file_verify(*ret) : FL_ENOMEM;
}

int fl__summaries_made_of(const char *dir, uint64_t *ret, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    uint8_t head[FL__SUMMARIES_HEAD];
    int fd;
    int rv = fl__summaries_path(dir, FL__SUMMARIES_FIXED, "", path, err);

    if (rv != FL_OK) {
        return rv;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return FL_ENOENT;
    }
    rv =
        fl_fs_pread(fd, head, sizeof(head), 0) == FL_OK && memcmp(head, FL__SUMMARIES_MAGIC, 8) == 0
            ? FL_OK
            : FL_ENOENT;
    (void)close(fd);
    (void)memcpy(ret, head + 24, sizeof(*ret));
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
    struct fl_file *whole = NULL;
    struct fl_file *part = NULL;
    int rv = fl_file_open(path, &whole, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = open_part(whole, &part);
    fl_file_unref(whole); /* The section holds a reference. */
    if (rv != FL_OK) {
        fl_file_unref(part);
        return fl_err_set(err, rv, "'%s' does not hold data summaries: %s", path,
                          rv == FL_EFORMAT ? "it is damaged" : fl_strerror(rv));
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

    rv = rv == FL_OK ? open_fixed(path, &file, err) : rv;
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

    rv = rv == FL_OK ? fl__summaries_path(dir, FL__SUMMARIES_FIXED, ".bad-1", to, err) : rv;
    return rv == FL_OK ? fl_fs_publish(from, to, /* sync= */ true, err) : rv;
}
