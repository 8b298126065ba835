/*
 * Writing container files as a whole: from memory at once, or section by section in pieces. Any
 * thread, blocking. A file is written beside its path and renamed; files that are written in place
 * use heads and checksums alone (container_head.c).
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/checksum.h"
#include "libfl/base/fs.h"
#include "libfl/container/block_sums.h"
#include "libfl/container/container.h"

#define PATH_SIZE 4096
/* Sections of a file that is written at once. */
#define MAX_PARTS 32

static int container_no_memory(const char *path, struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "cannot write '%s': %s", path, fl_strerror(FL_ENOMEM));
}

/* Checksums of all parts and the seal: the end of the file. NULL: no memory. */
static uint64_t *tail_of(const struct fl_container_head *head,
                         const struct fl_container_content *content)
{
    uint64_t *tail = malloc((head->n_blocks + 1) * sizeof(*tail));
    size_t n = 0;
    size_t i;

    if (tail == NULL) {
        return NULL;
    }
    for (i = 0; i < content->n; i++) {
        const uint8_t *at = content->parts[i].data;
        uint64_t left = content->parts[i].bytes;

        while (left > 0) {
            size_t len = left < FL_SUM_BLOCK ? (size_t)left : FL_SUM_BLOCK;

            tail[n++] = fl_checksum(at, len);
            at += len;
            left -= len;
        }
    }
    tail[n] = fl_checksum(tail, n * sizeof(*tail)) ^ head->hash;
    return tail;
}

int fl_container_replace(const char *path, const struct fl_container_kind *kind,
                         const struct fl_container_content *content, bool sync, struct fl_err *err)
{
    struct fl_fs_run runs[MAX_PARTS + 2];
    struct fl_container_head head = {.n = 0};
    uint64_t *tail = NULL;
    uint8_t *raw = NULL;
    size_t i;
    int rv;

    FL_REQUIRE(content->n <= MAX_PARTS);
    rv = fl_container_head_make(kind, content, &head);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot write '%s': %s", path, fl_strerror(rv));
    }
    raw = fl_container_head_pack(&head);
    tail = raw != NULL ? tail_of(&head, content) : NULL;
    if (tail == NULL) {
        rv = container_no_memory(path, err);
        goto done;
    }
    runs[0] = (struct fl_fs_run){raw, (size_t)head.start};
    for (i = 0; i < content->n; i++) {
        runs[1 + i] = (struct fl_fs_run){content->parts[i].data, (size_t)content->parts[i].bytes};
    }
    runs[1 + i] = (struct fl_fs_run){tail, (head.n_blocks + 1) * sizeof(*tail)};
    rv = fl_fs_replace_runs(path, runs, content->n + 2, sync, err);
done:
    free(tail);
    free(raw);
    fl_container_head_done(&head);
    return rv;
}

/* --- in pieces --- */

struct fl_container_writer {
    int fd;
    char path[PATH_SIZE], tmp[PATH_SIZE];
    struct fl_container_head head;
    struct fl_block_sums *sums; /* [head.n] */
};

static void container_writer_free(struct fl_container_writer *w)
{
    size_t i;

    if (w->fd >= 0) {
        (void)close(w->fd);
    }
    for (i = 0; w->sums != NULL && i < w->head.n; i++) {
        fl_block_sums_done(&w->sums[i]);
    }
    free(w->sums);
    fl_container_head_done(&w->head);
    free(w);
}

int fl_container_writer_create(const char *path, const struct fl_container_kind *kind,
                               const struct fl_container_content *content,
                               struct fl_container_writer **ret, struct fl_err *err)
{
    struct fl_container_writer *w = calloc(1, sizeof(*w));
    int n;
    int rv;

    if (w == NULL) {
        return container_no_memory(path, err);
    }
    w->fd = -1;
    (void)snprintf(w->path, sizeof(w->path), "%s", path);
    n = snprintf(w->tmp, sizeof(w->tmp), "%s.tmp", path);
    if (n < 0 || (size_t)n >= sizeof(w->tmp)) {
        rv = fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
        goto fail;
    }
    rv = fl_container_head_make(kind, content, &w->head);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot write '%s': %s", path, fl_strerror(rv));
        goto fail;
    }
    w->sums = calloc(w->head.n + 1, sizeof(*w->sums));
    if (w->sums == NULL) {
        rv = container_no_memory(path, err);
        goto fail;
    }
    w->fd = open(w->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (w->fd < 0) {
        rv = fl_err_from_errno(errno);
        (void)fl_err_set(err, rv, "cannot create '%s': %s", w->tmp, strerror(errno));
        goto fail;
    }
    *ret = w;
    return FL_OK;
fail:
    container_writer_free(w);
    return rv;
}

uint64_t fl_container_writer_at(const struct fl_container_writer *w, size_t section)
{
    FL_REQUIRE(section < w->head.n);
    return w->sums[section].bytes;
}

int fl_container_writer_add(struct fl_container_writer *w, size_t section, const void *data,
                            size_t len, struct fl_err *err)
{
    const struct fl_container_section *to;
    struct fl_block_sums *sums;
    int rv;

    FL_REQUIRE(section < w->head.n);
    to = &w->head.sections[section];
    sums = &w->sums[section];
    if (len > to->bytes - sums->bytes) {
        return fl_err_set(err, FL_ERANGE, "section %zu of '%s' has %" PRIu64 " bytes, not %" PRIu64,
                          section, w->tmp, to->bytes, sums->bytes + len);
    }
    rv = fl_block_sums_reserve(sums, len);
    if (rv != FL_OK) {
        return container_no_memory(w->tmp, err);
    }
    rv = fl_fs_pwrite(w->fd, data, len, to->start + sums->bytes);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot write '%s': %s", w->tmp, fl_strerror(rv));
    }
    fl_block_sums_add(sums, data, len);
    return FL_OK;
}

/* The checksums of all sections, which are complete. */
static int gather_sums(struct fl_container_writer *w, uint64_t **ret, struct fl_err *err)
{
    uint64_t *sums = malloc((w->head.n_blocks + 1) * sizeof(*sums));
    size_t n = 0;
    size_t i;

    if (sums == NULL) {
        return container_no_memory(w->tmp, err);
    }
    for (i = 0; i < w->head.n; i++) {
        struct fl_block_sums *of = &w->sums[i];

        if (of->bytes != w->head.sections[i].bytes) {
            free(sums);
            return fl_err_set(err, FL_ESTATE,
                              "section %zu of '%s' has %" PRIu64 " of %" PRIu64 " bytes", i, w->tmp,
                              of->bytes, w->head.sections[i].bytes);
        }
        fl_block_sums_end(of);
        if (of->n > 0) {
            (void)memcpy(sums + n, of->list, of->n * sizeof(*sums));
        }
        n += of->n;
    }
    *ret = sums;
    return FL_OK;
}

/* The head comes last: with it the file is complete. */
static int write_ends(struct fl_container_writer *w, const uint64_t *sums, const uint8_t *raw)
{
    int rv = fl_container_tail_write(w->fd, &w->head, sums);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_pwrite(w->fd, raw, (size_t)w->head.start, 0);
}

static int complete_file(struct fl_container_writer *w, bool sync, struct fl_err *err)
{
    uint64_t *sums = NULL;
    uint8_t *raw;
    int rv = gather_sums(w, &sums, err);

    if (rv != FL_OK) {
        return rv;
    }
    raw = fl_container_head_pack(&w->head); /* The seal depends on its checksum. */
    if (raw == NULL) {
        rv = container_no_memory(w->tmp, err);
        goto done;
    }
    rv = write_ends(w, sums, raw);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot write '%s': %s", w->tmp, fl_strerror(rv));
        goto done;
    }
    if (sync && fl_fs_fdatasync(w->fd) != 0) {
        rv = fl_err_from_errno(errno);
        (void)fl_err_set(err, rv, "cannot sync '%s': %s", w->tmp, fl_strerror(rv));
    }
done:
    free(sums);
    free(raw);
    return rv;
}

int fl_container_writer_publish(struct fl_container_writer *w, bool sync, struct fl_err *err)
{
    int rv = complete_file(w, sync, err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_fs_publish(w->tmp, w->path, sync, err);
    if (rv != FL_OK) {
        goto fail;
    }
    container_writer_free(w);
    return FL_OK;
fail:
    fl_container_writer_abandon(w);
    return rv;
}

void fl_container_writer_abandon(struct fl_container_writer *w)
{
    if (w != NULL) {
        (void)unlink(w->tmp); /* On an error the owner's next clean-up removes it. */
        container_writer_free(w);
    }
}
