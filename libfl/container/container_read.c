/*
 * Reading whole container files: opened, with head, size and seal checked; then section by section
 * into the caller's memory, each block checked. Any thread, blocking; changes nothing.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/container/block_sums.h"
#include "libfl/container/container.h"

int fl_container_open(const char *path, const struct fl_container_kind *kind,
                      struct fl_container *ret, struct fl_err *err)
{
    struct fl_container c = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    struct stat st;
    int rv;

    *ret = (struct fl_container){.fd = -1};
    if (c.fd < 0) {
        rv = fl_err_from_errno(errno);
        return fl_err_set(err, rv, "cannot open '%s': %s", path, strerror(errno));
    }
    rv = fl_container_head_read(c.fd, path, kind, &c.head, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (fstat(c.fd, &st) != 0) {
        int saved = errno;

        rv = fl_err_set(err, fl_err_from_errno(saved), "cannot read '%s': %s", c.path,
                        strerror(saved));
        goto fail;
    }
    if ((uint64_t)st.st_size != fl_container_size(&c.head)) {
        rv = fl_err_set(err, FL_EFORMAT,
                        "'%s' is damaged: it has %llu bytes, its head says %" PRIu64, c.path,
                        (unsigned long long)st.st_size, fl_container_size(&c.head));
        goto fail;
    }
    rv = fl_container_tail_read(c.fd, path, &c.head, &c.sums, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = c;
    return FL_OK;
fail:
    fl_container_close(&c);
    return rv;
}

void fl_container_close(struct fl_container *c)
{
    if (c->path != NULL) {
        (void)close(c->fd);
        free(c->sums);
        fl_container_head_done(&c->head);
    }
    *c = (struct fl_container){.fd = -1};
}

int fl_container_read(const struct fl_container *c, size_t section, void *out, struct fl_err *err)
{
    const struct fl_container_section *s;
    const uint8_t *data = out;
    uint64_t at;
    size_t block;
    int rv;

    FL_REQUIRE(section < c->head.n);
    s = &c->head.sections[section];
    block = s->block;
    rv = fl_fs_pread(c->fd, out, (size_t)s->bytes, s->start);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot read '%s': %s", c->path, fl_strerror(rv));
    }
    for (at = 0; at < s->bytes; at += FL_SUM_BLOCK, block++) {
        uint64_t left = s->bytes - at;
        size_t n = left < FL_SUM_BLOCK ? (size_t)left : FL_SUM_BLOCK;
        uint64_t found = fl_checksum(data + at, n);

        if (found != c->sums[block]) {
            return fl_err_set(
                err, FL_EFORMAT,
                "'%s' is damaged: bytes %" PRIu64 " to %" PRIu64 " (%s) have checksum "
                "%016" PRIx64 ", expected %016" PRIx64,
                c->path, s->start + at, s->start + at + n - 1, s->name, found, c->sums[block]);
        }
    }
    return FL_OK;
}
