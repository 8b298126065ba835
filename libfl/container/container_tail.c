/*
 * The checksums and the seal behind the sections of a container file, and the checksum of a record.
 * Any thread, blocking; opens and closes no file.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/container/container.h"

uint64_t fl_container_size(const struct fl_container_head *head)
{
    return (head->flags & FL_CONTAINER_RECORDS) != 0
               ? head->end
               : head->end + (head->n_blocks + 1) * sizeof(uint64_t);
}

int fl_container_tail_write(int fd, const struct fl_container_head *head, const uint64_t *sums)
{
    size_t len = head->n_blocks * sizeof(*sums);
    uint64_t *tail = malloc(len + sizeof(*tail));
    int rv;

    if (tail == NULL) {
        return FL_ENOMEM;
    }
    if (len > 0) {
        (void)memcpy(tail, sums, len);
    }
    tail[head->n_blocks] = fl_checksum(tail, len) ^ head->hash;
    rv = fl_fs_pwrite(fd, tail, len + sizeof(*tail), head->end);
    free(tail);
    return rv;
}

int fl_container_tail_read(int fd, const char *path, const struct fl_container_head *head,
                           uint64_t **ret, struct fl_err *err)
{
    size_t len = head->n_blocks * sizeof(uint64_t);
    size_t size = len + sizeof(uint64_t);
    struct stat st;
    uint64_t *sums;
    int rv;

    if (fstat(fd, &st) != 0) {
        rv = fl_err_from_errno(errno);
        return fl_err_set(err, rv, "cannot read '%s': %s", path, strerror(errno));
    }
    if ((uint64_t)st.st_size < head->end + size) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s' is damaged: it has %llu bytes, its head says %" PRIu64, path,
                          (unsigned long long)st.st_size, head->end + size);
    }
    sums = malloc(size);
    if (sums == NULL) {
        return fl_err_set(err, FL_ENOMEM, "cannot read '%s': %s", path, fl_strerror(FL_ENOMEM));
    }
    rv = fl_fs_pread(fd, sums, size, head->end);
    if (rv != FL_OK) {
        free(sums);
        return fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
    }
    if ((fl_checksum(sums, len) ^ head->hash) != sums[head->n_blocks]) {
        rv = fl_err_set(err, FL_EFORMAT,
                        "'%s' is damaged: its checksums have the seal %016" PRIx64
                        ", expected %016" PRIx64,
                        path, fl_checksum(sums, len) ^ head->hash, sums[head->n_blocks]);
        free(sums);
        return rv;
    }
    *ret = sums;
    return FL_OK;
}

int fl_container_seal_read(int fd, const struct fl_container_head *head, uint64_t *ret)
{
    return fl_fs_pread(fd, ret, sizeof(*ret), head->end + head->n_blocks * sizeof(*ret));
}

uint64_t fl_container_record_sum(uint32_t kind, const void *data, size_t len)
{
    return fl_checksum(data, len) ^ ((uint64_t)kind << 32);
}
