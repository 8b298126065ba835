/*
 * Writer of sealed files (with a checksum). The length of the header is known before its
 * content, so parameters are written after its place while they are computed, and header and
 * checksum last. Runs on the caller's thread, the database thread of the coordinator; the format
 * is in safetensors.c.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/st_parse.h"
#include "libfl/model/st_write.h"

/* Bytes after which write-back of the file is started, while the rest is still being computed. */
#define BEGIN_SYNC_BYTES ((uint64_t)8 << 20)
/* Smaller files are not preallocated: that takes longer than writing them. */
#define RESERVE_MIN ((uint64_t)4 << 20)

struct fl_st_draft {
    char *path, *tmp;
    int fd; /* -1: sealed */
    bool sync;
    const struct fl_layout *layout;
    uint64_t data;  /* offset of the parameters: length of the header */
    uint64_t next;  /* offset of the next parameter */
    uint64_t begun; /* write-back was started up to here */
};

static int st_draft_fail(struct fl_err *err, const char *what, const char *path, int rv)
{
    return fl_err_set(err, rv, "cannot %s '%s': %s", what, path, fl_strerror(rv));
}

int fl_st_draft_begin(const char *path, const struct fl_layout *layout,
                      const struct fl_st_meta *meta, size_t n_meta, bool sync,
                      struct fl_st_draft **ret, struct fl_err *err)
{
    struct fl_st_draft *d = calloc(1, sizeof(*d));
    struct fl_buf header;
    uint64_t bytes = (uint64_t)fl_layout_count(layout) * sizeof(float);
    size_t size;
    int rv;

    if (d == NULL) {
        return st_draft_fail(err, "write", path, FL_ENOMEM);
    }
    d->fd = -1;
    d->sync = sync;
    d->layout = layout;
    size = strlen(path) + sizeof(".tmp");
    d->path = fl_str_dup(path);
    d->tmp = malloc(size);
    if (d->path == NULL || d->tmp == NULL) {
        rv = FL_ENOMEM;
        goto fail;
    }
    (void)snprintf(d->tmp, size, "%s.tmp", path);
    rv = fl__st_header_make(layout, meta, n_meta, /* checksum= */ true, &header);
    if (rv != FL_OK) {
        goto fail;
    }
    d->data = header.len;
    d->next = header.len;
    d->begun = 0;
    fl_buf_done(&header);
    d->fd = open(d->tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (d->fd < 0) {
        rv = st_draft_fail(err, "create", d->tmp, fl_err_from_errno(errno));
        fl_st_draft_free(d);
        return rv;
    }
    if (bytes >= RESERVE_MIN) { /* An error is reported by the writes. */
        (void)fallocate(d->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)(d->data + bytes));
    }
    *ret = d;
    return FL_OK;
fail:
    fl_st_draft_free(d);
    return st_draft_fail(err, "build the header of", path, rv);
}

int fl_st_draft_write(struct fl_st_draft *draft, const float *values, size_t n, struct fl_err *err)
{
    uint64_t end = draft->data + (uint64_t)fl_layout_count(draft->layout) * sizeof(float);
    uint64_t len = (uint64_t)n * sizeof(float);
    int rv;

    FL_REQUIRE(draft->fd >= 0 && len <= end - draft->next);
    rv = fl_fs_pwrite(draft->fd, values, (size_t)len, draft->next);
    if (rv != FL_OK) {
        return st_draft_fail(err, "write", draft->tmp, rv);
    }
    draft->next += len;
    if (draft->sync && draft->next - draft->begun >= BEGIN_SYNC_BYTES) {
        /* Only makes fsync() faster; fsync() reports errors. */
        (void)sync_file_range(draft->fd, (off_t)draft->begun, (off_t)(draft->next - draft->begun),
                              SYNC_FILE_RANGE_WRITE);
        draft->begun = draft->next;
    }
    return FL_OK;
}

static int st_draft_write_header(struct fl_st_draft *d, const float *params,
                                 const struct fl_st_meta *meta, size_t n_meta, struct fl_err *err)
{
    size_t count = fl_layout_count(d->layout);
    struct fl_buf header;
    int rv = fl__st_header_make(d->layout, meta, n_meta, /* checksum= */ true, &header);
    char text[FL_CHECKSUM_TEXT];
    struct fl_summer *summer = NULL;

    if (rv != FL_OK) {
        return st_draft_fail(err, "build the header of", d->path, rv);
    }
    if (header.len != d->data || d->next != d->data + (uint64_t)count * sizeof(float)) {
        fl_buf_done(&header);
        return fl_err_set(err, FL_ESTATE,
                          "'%s': parameters are missing, or the metadata has "
                          "another length than at the start",
                          d->tmp);
    }
    /* Compute the checksum and store it in its place in the header. */
    rv = fl_summer_new(&summer);
    if (rv != FL_OK) {
        goto done;
    }
    fl_summer_add(summer, header.data, header.len);
    fl_summer_add(summer, params, count * sizeof(*params));
    (void)memcpy(header.data + sizeof(uint64_t) + strlen(FL_ST_CHECKSUM_HEAD),
                 fl_checksum_text(fl_summer_value(summer), text), FL_CHECKSUM_TEXT - 1);
    fl_summer_free(summer);
    rv = fl_fs_pwrite(d->fd, header.data, header.len, 0);
    if (rv != FL_OK) {
        goto done;
    }
    if (d->sync && fsync(d->fd) != 0) {
        rv = fl_err_from_errno(errno);
    }
done:
    fl_buf_done(&header);
    if (rv != FL_OK) {
        return st_draft_fail(err, "write", d->tmp, rv);
    }
    return FL_OK;
}

int fl_st_draft_seal(struct fl_st_draft *draft, const float *params, const struct fl_st_meta *meta,
                     size_t n_meta, struct fl_err *err)
{
    int rv;

    if (draft->fd < 0) {
        return fl_err_set(err, FL_ESTATE, "'%s' is sealed already", draft->path);
    }
    rv = st_draft_write_header(draft, params, meta, n_meta, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (close(draft->fd) != 0) {
        rv = st_draft_fail(err, "write", draft->tmp, fl_err_from_errno(errno));
    }
    draft->fd = -1;
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_fs_publish(draft->tmp, draft->path, draft->sync, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    (void)unlink(draft->tmp); /* The first error is the one that counts. */
    return rv;
}

void fl_st_draft_free(struct fl_st_draft *draft)
{
    if (draft == NULL) {
        return;
    }
    if (draft->fd >= 0) {
        (void)close(draft->fd);
        (void)unlink(draft->tmp);
    }
    free(draft->path);
    free(draft->tmp);
    free(draft);
}

int fl_st_save_sealed(const char *path, const struct fl_layout *layout, const float *params,
                      const struct fl_st_meta *meta, size_t n_meta, bool sync, struct fl_err *err)
{
    struct fl_st_draft *draft = NULL;
    int rv = fl_st_draft_begin(path, layout, meta, n_meta, sync, &draft, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_st_draft_write(draft, params, fl_layout_count(layout), err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_st_draft_seal(draft, params, meta, n_meta, err);
done:
    fl_st_draft_free(draft);
    return rv;
}
