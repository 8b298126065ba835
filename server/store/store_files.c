/* Files that the server sends: opened once, read at any offset, closed with the last reference. Any
 * thread. Reads are checked against checksums where the file has them; nothing is written. */

#include "server/store/store_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/container/block_sums.h"
#include "server/store/store_files_impl.h"

#define VERIFY_PIECE ((size_t)16 * FL_SUM_BLOCK)

struct fl_file {
    atomic_uint refs;
    int fd;                /* -1: uses the descriptor of `whole` */
    struct fl_file *whole; /* reference; NULL when this is the whole file */
    uint64_t start;
    uint64_t size;
    uint64_t *sums; /* owned; checksums of the bytes from `start`; NULL: none */
};

int fl_file_open(const char *path, struct fl_file **ret, struct fl_err *err)
{
    struct fl_file *f = calloc(1, sizeof(*f));
    struct stat st;

    if (f == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    atomic_init(&f->refs, 1);
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0 || fstat(f->fd, &st) != 0) {
        int saved = errno;

        fl_file_unref(f);
        return fl_err_set(err, fl_err_from_errno(saved), "cannot open '%s': %s", path,
                          strerror(saved));
    }
    f->size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
    *ret = f;
    return FL_OK;
}

struct fl_file *fl__file_part(struct fl_file *file, uint64_t start, uint64_t size, uint64_t *sums)
{
    struct fl_file *f = calloc(1, sizeof(*f));

    FL_REQUIRE(file->whole == NULL && start <= file->size && size <= file->size - start);
    if (f == NULL) {
        free(sums);
        return NULL;
    }
    f->sums = sums;
    atomic_init(&f->refs, 1);
    f->fd = -1;
    f->whole = fl_file_ref(file);
    f->start = start;
    f->size = size;
    return f;
}

struct fl_file *fl_file_ref(struct fl_file *file)
{
    (void)atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
    return file;
}

void fl_file_unref(struct fl_file *file)
{
    if (file == NULL || atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    fl_file_unref(file->whole);
    free(file->sums);
    free(file);
}

uint64_t fl_file_size(const struct fl_file *file)
{
    return file->size;
}

uint64_t fl__file_start(const struct fl_file *file)
{
    return file->start;
}

int fl__file_fd(const struct fl_file *file)
{
    return file->whole != NULL ? file->whole->fd : file->fd;
}

/* Whole blocks are read into the caller's memory; a partly requested block is read completely, to
 * check it. */
static int read_block(const struct fl_file *file, uint64_t offset, uint8_t *out, size_t len,
                      size_t *ret_len)
{
    uint8_t block[FL_SUM_BLOCK];
    size_t skip = (size_t)(offset % FL_SUM_BLOCK);
    uint64_t left = file->size - (offset - skip);
    size_t n = left < FL_SUM_BLOCK ? (size_t)left : FL_SUM_BLOCK;
    uint8_t *to = block;
    int rv;

    if (skip == 0 && len >= n) {
        n = len >= left ? (size_t)left : len - len % FL_SUM_BLOCK;
        to = out;
    }
    rv = fl_fs_pread(fl__file_fd(file), to, n, file->start + offset - skip);
    if (rv != FL_OK) {
        return rv;
    }
    if (!fl_block_sums_match(file->sums, offset - skip, to, n)) {
        return FL_EFORMAT;
    }
    *ret_len = n - skip < len ? n - skip : len;
    if (to == block) {
        (void)memcpy(out, block + skip, *ret_len);
    }
    return FL_OK;
}

int fl_file_read(const struct fl_file *file, uint64_t offset, void *out, size_t len)
{
    uint8_t *to = out;

    if (offset > file->size || len > file->size - offset) {
        return FL_EFORMAT;
    }
    if (file->sums == NULL) {
        return fl_fs_pread(fl__file_fd(file), out, len, file->start + offset);
    }
    while (len > 0) {
        size_t n = 0;
        int rv = read_block(file, offset, to, len, &n);

        if (rv != FL_OK) {
            return rv;
        }
        to += n;
        offset += n;
        len -= n;
    }
    return FL_OK;
}

int fl_file_verify(const struct fl_file *file)
{
    uint8_t *piece = malloc(VERIFY_PIECE);
    uint64_t at;
    int rv = FL_OK;

    if (piece == NULL) {
        return FL_ENOMEM;
    }
    for (at = 0; at < file->size; at += VERIFY_PIECE) {
        uint64_t left = file->size - at;

        rv = fl_file_read(file, at, piece, left < VERIFY_PIECE ? (size_t)left : VERIFY_PIECE);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    free(piece);
    return rv;
}
