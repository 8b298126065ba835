/*
 * Writing spool files: the bulk path of the server. A chunk goes from the caller's memory to the
 * page cache with one pwrite(2), the count of received bytes with another; nothing is buffered,
 * nothing synced until the upload is complete. Blocking, on the worker thread that owns the upload.
 * The format is described in spool_head.c, reading is in spool_read.c.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "server/store/spool_impl.h"

/* Read ahead and decoded at a time while a finished upload is validated. */
#define VALIDATE_BUFFER ((size_t)65536)

/* Below this size, reserving blocks costs more than it saves. */
#define SPOOL_RESERVE_MIN ((uint64_t)4 << 20)

struct fl_spool {
    int fd;
    char *path;
    char *folder;
    struct fl__spool_head head;
    bool headed;               /* the head is in the file */
    struct fl_block_sums sums; /* checksums of the received bytes */
    struct fl_norms norms;
};

static bool same_parts(const struct fl__spool_head *a, const struct fl__spool_head *b)
{
    size_t i;

    for (i = 0; a->n_parts == b->n_parts && i < a->n_parts; i++) {
        const struct fl_spool_part *x = &a->parts[i];
        const struct fl_spool_part *y = &b->parts[i];

        if (x->unit != y->unit || x->payload != y->payload || x->codec != y->codec ||
            x->masked != y->masked || x->bytes != y->bytes)
        {
            return false;
        }
    }
    return a->n_parts == b->n_parts;
}

/*
 * Coded bytes from which the upload can resume; UINT64_MAX: none. After a reboot only a finished
 * upload with valid checksums is trusted.
 */
static uint64_t coded_bytes(int fd, const struct fl__spool_head *head)
{
    uint64_t *sums = NULL;
    struct stat st;
    uint64_t there;

    if (fstat(fd, &st) != 0 || st.st_size < 0 || (uint64_t)st.st_size < head->file.start) {
        return UINT64_MAX;
    }
    there = (uint64_t)st.st_size - head->file.start;
    there = there < head->file.received ? there : head->file.received;
    if (head->boot != 0 && head->boot == fl__spool_boot()) {
        return there;
    }
    if (there != head->bytes || fl_container_tail_read(fd, "", &head->file, &sums, NULL) != FL_OK) {
        return UINT64_MAX;
    }
    free(sums);
    return there;
}

/*
 * Checksums of bytes that were received by an earlier Push or an earlier process: computed from the
 * disk. For a finished file they must equal the stored ones.
 */
static int sum_received(struct fl_spool *s, const struct fl_container_head *file, uint64_t there)
{
    uint8_t *piece = malloc(VALIDATE_BUFFER);
    uint64_t *before = NULL;
    uint64_t at;
    size_t n;
    int rv = piece != NULL ? fl_block_sums_reserve(&s->sums, (size_t)there) : FL_ENOMEM;

    if (rv != FL_OK) {
        goto done;
    }
    for (at = 0; at < there; at += n) {
        n = there - at < VALIDATE_BUFFER ? (size_t)(there - at) : VALIDATE_BUFFER;
        rv = fl_fs_pread(s->fd, piece, n, file->start + at);
        if (rv != FL_OK) {
            goto done;
        }
        fl_block_sums_add(&s->sums, piece, n);
    }
    if (there == s->head.bytes &&
        fl_container_tail_read(s->fd, s->path, file, &before, NULL) == FL_OK) {
        fl_block_sums_end(&s->sums);
        rv = s->sums.n == 0 || memcmp(before, s->sums.list, s->sums.n * sizeof(*before)) == 0
                 ? FL_OK
                 : FL_EFORMAT;
    }
done:
    free(piece);
    free(before);
    return rv;
}

/* Record `received` bytes in the file: from here the next Push resumes, also after a crash. */
static int spool_set_received(struct fl_spool *s, uint64_t received, struct fl_err *err)
{
    uint64_t before = s->head.file.received;
    int rv;

    s->head.file.received = received;
    rv = s->headed ? fl_container_count_write(s->fd, &s->head.file)
                   : fl_container_head_write(s->fd, &s->head.file);
    if (rv != FL_OK) {
        s->head.file.received = before;
        return fl_err_set(err, rv, "cannot write '%s': %s", s->path, fl_strerror(rv));
    }
    s->headed = true;
    return FL_OK;
}

/*
 * Start an upload over the old contents of the file, which keeps its blocks and pages. The head is
 * written with the first bytes; but an existing head of this upload is reset at once, as it would
 * count the new bytes as old ones.
 */
static int spool_begin(struct fl_spool *s, bool begun_before, struct fl_err *err)
{
    uint64_t whole = fl_container_size(&s->head.file);
    struct stat st;

    /* Truncate the rest of a longer old upload: it takes disk space, and a backup would copy it. */
    if (fstat(s->fd, &st) != 0 ||
        (st.st_size > (off_t)whole && ftruncate(s->fd, (off_t)whole) != 0)) {
        return fl__store_fail(err, "cannot cut", s->path);
    }
    /* One extent instead of many small ones; a full disk is reported by the write itself. */
    if (s->head.bytes >= SPOOL_RESERVE_MIN) {
        (void)fallocate(s->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)whole);
    }
    return begun_before ? spool_set_received(s, 0, err) : FL_OK;
}

/* Returns `rv`. After a disk error the file is quarantined. */
static int check_disk(const struct fl_spool *s, int rv, struct fl_err *err)
{
    return rv == FL_EIO ? fl__spool_quarantine(s->path, rv, err) : rv;
}

/* Continue after the bytes of `old`, whose head is in the file; FL_EFORMAT: they are not usable. */
static int spool_take_old(struct fl_spool *s, struct fl__spool_head *old)
{
    uint64_t there = same_parts(old, &s->head) ? coded_bytes(s->fd, old) : UINT64_MAX;
    struct fl_container_head own = s->head.file;
    int rv;

    if (there == UINT64_MAX) {
        return FL_EFORMAT;
    }
    rv = sum_received(s, &old->file, there);
    if (rv != FL_OK) {
        fl_block_sums_done(&s->sums);
        return rv;
    }
    s->head.file = old->file;
    old->file = own;
    s->head.boot = old->boot;
    s->head.file.received = there;
    s->headed = true;
    return FL_OK;
}

/* Resume the file when it holds the same upload, else start at 0. */
static int spool_resume(struct fl_spool *s, struct fl_err *err)
{
    struct fl__spool_head old = {0};
    int rv = fl__spool_head_read(s->fd, s->head.upload, &old);
    bool begun_before = rv == FL_OK;

    if (begun_before) {
        rv = spool_take_old(s, &old);
        fl__spool_head_done(&old);
    }
    if (rv == FL_EFORMAT) {
        return spool_begin(s, begun_before, err);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot read '%s': %s", s->path, fl_strerror(rv));
    }
    return FL_OK;
}

/* true: only a backup holds the file, which contains an old upload; the file is left to the backup.
 */
static bool only_copied(const struct fl_spool *s)
{
    struct fl__spool_head head = {0};
    int rv = flock(s->fd, LOCK_SH | LOCK_NB) == 0
                 ? fl__spool_head_read(s->fd, s->head.upload, &head)
                 : FL_EINUSE;

    fl__spool_head_done(&head);
    return rv == FL_EFORMAT;
}

/* One writer at a time: two writers of one upload would both append at the same offset. */
static int lock_file(struct fl_spool *s, struct fl_err *err)
{
    if (flock(s->fd, LOCK_EX | LOCK_NB) == 0) {
        return FL_OK;
    }
    return errno == EWOULDBLOCK
               ? fl_err_set(err, FL_EINUSE, "'%s' is being uploaded already", s->path)
               : fl__store_fail(err, "cannot lock", s->path);
}

static int open_file(struct fl_spool *s, struct fl_recycled *recycled, struct fl_err *err)
{
    int rv;

    s->fd = open(s->path, O_RDWR | O_CLOEXEC);
    if (s->fd < 0 && errno != ENOENT) {
        rv = fl__store_fail(err, "cannot open", s->path);
        return rv == FL_EIO || rv == FL_EPERM ? fl__spool_quarantine(s->path, rv, err) : rv;
    }
    if (s->fd >= 0) {
        if (recycled != NULL) {
            fl__recycled_keep(recycled, s->path);
        }
        rv = lock_file(s, err);
        if (rv != FL_OK && (rv != FL_EINUSE || !only_copied(s))) {
            return rv;
        }
        if (rv != FL_EINUSE) {
            return check_disk(s, spool_resume(s, err), err);
        }
        (void)unlink(s->path);
        (void)close(s->fd);
        s->fd = -1;
    }
    s->fd = recycled != NULL ? fl__recycled_take(recycled, s->path) : -1;
    if (s->fd < 0) {
        s->fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    }
    if (s->fd < 0 && errno == ENOENT) {
        rv = fl_fs_mkdirs(s->folder, err);
        if (rv != FL_OK) {
            return rv;
        }
        s->fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    }
    if (s->fd < 0) {
        return fl__store_fail(err, "cannot create", s->path);
    }
    rv = lock_file(s, err);
    if (rv != FL_OK) {
        return rv;
    }
    return check_disk(s, spool_begin(s, /* begun_before= */ false, err), err);
}

int fl_spool_open(const struct fl_spool_opening *o, struct fl_spool **ret, uint64_t *ret_received,
                  struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_spool *s;
    int rv = fl__spool_path(o->dir, o->client, path, sizeof(path), err);

    if (rv != FL_OK) {
        return rv;
    }
    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    s->fd = -1;
    rv = fl__spool_head_make(o->parts, o->n_parts, &s->head, err);
    if (rv != FL_OK) {
        goto fail;
    }
    s->head.upload = fl__spool_upload(o->round, o->attempt, o->client);
    s->head.boot = fl__spool_boot();
    rv = fl__spool_head_place(&s->head);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "%s", fl_strerror(rv));
        goto fail;
    }
    s->path = fl_str_dup(path);
    *strrchr(path, '/') = '\0';
    s->folder = fl_str_dup(path);
    if (s->path == NULL || s->folder == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
        goto fail;
    }
    rv = open_file(s, o->recycled, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = s;
    *ret_received = s->head.file.received;
    return FL_OK;
fail:
    fl_spool_close(s);
    return rv;
}

int fl_spool_write(struct fl_spool *spool, uint64_t offset, const void *data, size_t len,
                   struct fl_err *err)
{
    int rv;

    if (offset != spool->head.file.received) {
        return fl_err_set(err, FL_ERANGE, "upload continues at offset %" PRIu64 ", not at %" PRIu64,
                          spool->head.file.received, offset);
    }
    if (len > spool->head.bytes - offset) {
        return fl_err_set(err, FL_ELIMIT,
                          "upload has more than the %" PRIu64 " bytes of its manifest",
                          spool->head.bytes);
    }
    rv = fl_block_sums_reserve(&spool->sums, len);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_strerror(rv));
    }
    rv = fl_fs_pwrite(spool->fd, data, len, spool->head.file.start + offset);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot write '%s': %s", spool->path, fl_strerror(rv));
        goto done;
    }
    rv = spool_set_received(spool, offset + len, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl_block_sums_add(&spool->sums, data, len);
done:
    return check_disk(spool, rv, err);
}

/* Decode the whole upload once. */
static int spool_validate_file(struct fl_spool *s, const struct fl_layout *layout,
                               double norm_bound, struct fl_err *err)
{
    struct fl__ahead ahead = {.fd = s->fd,
                              .base = s->head.file.start,
                              .end = s->head.file.start + s->head.bytes,
                              .sums = s->sums.list,
                              .cap = VALIDATE_BUFFER};
    int rv = fl__spool_validate(&s->head, &ahead, layout, norm_bound, &s->norms, err);

    if (ahead.damaged)
    { /* The received bytes were different: a disk error. A new upload may succeed. */
        return fl_err_set(err, FL_EIO, "'%s' does not hold the bytes that were received", s->path);
    }
    if (ahead.errnum != 0) {
        return fl_err_set(err, rv, "cannot read '%s': %s", s->path, strerror(ahead.errnum));
    }
    return rv;
}

/*
 * After a failed write-back the kernel marks the pages clean, so a second sync would succeed
 * falsely: after the first failed sync the file is discarded.
 */
static int sync_file(const struct fl_spool *s, struct fl_err *err)
{
    int rv = fdatasync(s->fd) == 0 ? fl_fs_sync_dir(s->folder, err)
                                   : fl__store_fail(err, "cannot sync", s->path);

    if (rv != FL_OK && rv != FL_EIO) { /* check_disk() handles FL_EIO. */
        (void)unlink(s->path);
    }
    return rv;
}

int fl_spool_finish(struct fl_spool *spool, const struct fl_layout *layout, double norm_bound,
                    enum fl_durability durability, struct fl_err *err)
{
    int rv;

    if (spool->head.file.received != spool->head.bytes) {
        return fl_err_set(err, FL_ESTATE,
                          "upload is not complete: %" PRIu64 " of %" PRIu64 " bytes",
                          spool->head.file.received, spool->head.bytes);
    }
    fl_block_sums_end(&spool->sums);
    rv = spool_validate_file(spool, layout, norm_bound, err);
    if (fl_spool_is_bad(rv)) {
        (void)unlink(spool->path); /* The upload stays bad. If unlink fails, the next clean-up
                                      removes the file. */
        return rv;
    }
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_container_tail_write(spool->fd, &spool->head.file, spool->sums.list);
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot write '%s': %s", spool->path, fl_strerror(rv));
        goto done;
    }
    rv = durability == FL_DURABLE_POWER ? sync_file(spool, err) : FL_OK;
done:
    return check_disk(spool, rv, err);
}

struct fl_norms fl_spool_take_norms(struct fl_spool *spool)
{
    struct fl_norms norms = spool->norms;

    spool->norms = (struct fl_norms){.unit = NULL};
    return norms;
}

uint64_t fl_spool_received(const struct fl_spool *spool)
{
    return spool->head.file.received;
}

void fl_spool_close(struct fl_spool *spool)
{
    if (spool == NULL) {
        return;
    }
    if (spool->fd >= 0) {
        (void)close(spool->fd); /* Write and sync have reported every error. */
    }
    fl__spool_head_done(&spool->head);
    fl_block_sums_done(&spool->sums);
    fl__norms_done(&spool->norms);
    free(spool->path);
    free(spool->folder);
    free(spool);
}

uint64_t fl_spool_peek(const char *dir, uint64_t round, uint32_t attempt, const char *client)
{
    char path[FL__STORE_PATH_MAX];
    struct fl__spool_head head = {0};
    uint64_t there = UINT64_MAX;
    int fd;

    if (fl__spool_path(dir, client, path, sizeof(path), NULL) != FL_OK) {
        return 0;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    if (fl__spool_head_read(fd, fl__spool_upload(round, attempt, client), &head) == FL_OK) {
        there = coded_bytes(fd, &head);
        fl__spool_head_done(&head);
    }
    (void)close(fd);
    return there != UINT64_MAX ? there : 0;
}

struct cleaning {
    const char *folder;
    uint64_t round; /* 0: remove all */
    uint32_t attempt;
};

static bool is_old_upload(const void *ctx, const char *name)
{
    const struct cleaning *c = ctx;
    struct fl__spool_head head = {0};
    char client[FL_NAME_MAX];
    char path[FL__STORE_PATH_MAX];
    size_t n;
    int rv;
    int fd;

    if (!fl_str_ends_with(name, FL__SPOOL_SUFFIX)) {
        return false;
    }
    n = strlen(name) - strlen(FL__SPOOL_SUFFIX);
    if (c->round == 0 || n >= sizeof(client) ||
        fl_fs_join(path, sizeof(path), c->folder, name) != FL_OK)
    {
        return true;
    }
    (void)memcpy(client, name, n);
    client[n] = '\0';
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false; /* Unreadable files are kept; opening them reports the error. */
    }
    rv = fl__spool_head_read(fd, fl__spool_upload(c->round, c->attempt, client), &head);
    fl__spool_head_done(&head);
    (void)close(fd);
    return rv == FL_EFORMAT;
}

int fl_spool_clean(const char *dir, uint64_t round, uint32_t attempt, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    const struct cleaning cleaning = {folder, round, attempt};

    if (fl_fs_join(folder, sizeof(folder), dir, "spool") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    return fl_fs_remove_each(folder, is_old_upload, &cleaning, err);
}
