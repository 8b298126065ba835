/*
 * The personalized models of a round, all in one file, so that one rename publishes them all.
 * Writing and reading; blocking, each object belongs to one thread. Removing old files is in
 * personal_models_clean.c.
 *
 *   offset  size   what (integers little-endian)
 *   0       8      "FLMIXED\n"
 *   8       4      version, 1
 *   12      4      n: number of clients
 *   16      8      round
 *   24      8      bytes of one model
 *   32      128 n  names, zero padded, in client order
 *   …       8 n b  for each model the XXH3 of its blocks of 16 KiB, the last one shorter
 *   …       8      XXH3 of everything before
 *   …              zeros up to a multiple of 4096
 *   start          the models, float32 in exported order, one after the other
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "server/store/server_vectors.h"
#include "server/store/store_files_impl.h"
#include "server/store/store_impl.h"

#define MAGIC       "FLMIXED\n"
#define MIX_VERSION 1
#define FIXED_SIZE  32
#define HASH_SIZE   8
#define PAGE        4096
/* Most uploading clients of one round; personalization costs n^2, so real numbers are far lower. */
#define MAX_CLIENTS 100000

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie");

int fl__personal_models_path(const char *dir, uint64_t round, const char *more, char *out,
                             size_t size, struct fl_err *err)
{
    int n = snprintf(out, size, "%s/personal_models/%06" PRIu64 FL__PERSONAL_MODELS_SUFFIX "%s",
                     dir, round, more);

    return n >= 0 && (size_t)n < size ? FL_OK
                                      : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

static size_t sums_size(uint64_t bytes)
{
    return fl__sums_blocks(bytes) * sizeof(uint64_t);
}

static size_t used_size(size_t n, uint64_t bytes)
{
    return FIXED_SIZE + n * (FL_NAME_MAX + sums_size(bytes)) + HASH_SIZE;
}

static size_t head_size(size_t n, uint64_t bytes)
{
    return (used_size(n, bytes) + PAGE - 1) / PAGE * PAGE;
}

/* --- writing --- */

struct fl_personal_models_writer {
    int fd;
    bool scratch; /* not synced */
    char path[FL__STORE_PATH_MAX], tmp[FL__STORE_PATH_MAX];
    uint64_t round;
    size_t n;
    uint64_t bytes;
    char (*names)[FL_NAME_MAX]; /* [n] */
    struct fl__sums *sums;      /* [n], checksums of the written bytes */
};

static int personal_no_memory(struct fl_err *err)
{
    return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
}

/* When all is written: only then its checksums are known. */
static int write_head(const struct fl_personal_models_writer *w)
{
    size_t used = used_size(w->n, w->bytes);
    size_t size = head_size(w->n, w->bytes);
    size_t sums = sums_size(w->bytes);
    uint8_t *raw = calloc(1, size);
    uint32_t version = MIX_VERSION;
    uint32_t n = (uint32_t)w->n;
    uint8_t *at;
    uint64_t hash;
    size_t i;
    int rv;

    if (raw == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(raw, MAGIC, strlen(MAGIC));
    (void)memcpy(raw + 8, &version, sizeof(version));
    (void)memcpy(raw + 12, &n, sizeof(n));
    (void)memcpy(raw + 16, &w->round, sizeof(w->round));
    (void)memcpy(raw + 24, &w->bytes, sizeof(w->bytes));
    at = raw + FIXED_SIZE;
    for (i = 0; i < w->n; i++) {
        (void)memcpy(at + i * FL_NAME_MAX, w->names[i], FL_NAME_MAX);
    }
    at += w->n * FL_NAME_MAX;
    for (i = 0; sums > 0 && i < w->n; i++) {
        (void)memcpy(at + i * sums, w->sums[i].list, sums);
    }
    hash = fl_checksum(raw, used - HASH_SIZE);
    (void)memcpy(raw + used - HASH_SIZE, &hash, sizeof(hash));
    rv = fl_fs_pwrite(w->fd, raw, size, 0);
    free(raw);
    return rv;
}

static int take_names(struct fl_personal_models_writer *w, const char *const *names)
{
    size_t i;
    int rv = FL_OK;

    w->names = calloc(w->n > 0 ? w->n : 1, sizeof(*w->names));
    w->sums = calloc(w->n > 0 ? w->n : 1, sizeof(*w->sums));
    if (w->names == NULL || w->sums == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; rv == FL_OK && i < w->n; i++) {
        rv = fl_str_copy(w->names[i], FL_NAME_MAX, names[i]);
    }
    return rv;
}

int fl_personal_models_create(const char *dir, uint64_t round, const char *const *names, size_t n,
                              uint64_t bytes, struct fl_personal_models_writer **ret,
                              struct fl_err *err)
{
    struct fl_personal_models_writer *w;
    int rv;

    if (n > MAX_CLIENTS) {
        return fl_err_set(err, FL_ELIMIT, "%zu personal models are too many", n);
    }
    w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return personal_no_memory(err);
    }
    w->fd = -1;
    w->round = round;
    w->n = n;
    w->bytes = bytes;
    rv = take_names(w, names) == FL_OK
             ? fl__personal_models_path(dir, round, "", w->path, sizeof(w->path), err)
             : personal_no_memory(err);
    if (rv == FL_OK) {
        rv = fl__personal_models_path(dir, round, ".tmp", w->tmp, sizeof(w->tmp), err);
    }
    if (rv == FL_OK) {
        rv = fl_fs_remove(w->path);
        w->fd = rv == FL_OK ? open(w->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640) : -1;
        rv = rv == FL_OK && w->fd < 0 ? fl_err_from_errno(errno) : rv;
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "cannot write '%s': %s", w->tmp, fl_strerror(rv));
        }
    }
    if (rv != FL_OK) {
        fl_personal_models_abandon(w);
        return rv;
    }
    *ret = w;
    return FL_OK;
}

int fl_personal_models_write(struct fl_personal_models_writer *w, size_t client, uint64_t offset,
                             const void *data, size_t len, struct fl_err *err)
{
    struct fl__sums *sums;
    int rv;

    FL_REQUIRE(client < w->n);
    sums = &w->sums[client];
    if (offset != sums->bytes || len > w->bytes - offset) {
        return fl_err_set(err, FL_ERANGE,
                          "personalized model %zu goes on at byte %" PRIu64 " of %" PRIu64
                          ", not at %" PRIu64,
                          client, sums->bytes, w->bytes, offset);
    }
    rv = fl__sums_reserve(sums, len);
    if (rv == FL_OK) {
        rv = fl_fs_pwrite(w->fd, data, len, head_size(w->n, w->bytes) + client * w->bytes + offset);
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot write '%s': %s", w->tmp, fl_strerror(rv));
    }
    fl__sums_add(sums, data, len);
    return FL_OK;
}

static void writer_free(struct fl_personal_models_writer *w)
{
    size_t i;

    if (w->fd >= 0) {
        (void)close(w->fd);
    }
    for (i = 0; w->sums != NULL && i < w->n; i++) {
        fl__sums_done(&w->sums[i]);
    }
    free(w->sums);
    free(w->names);
    free(w);
}

void fl_personal_models_scratch(struct fl_personal_models_writer *w)
{
    w->scratch = true;
}

int fl_personal_models_publish(struct fl_personal_models_writer *w, struct fl_err *err)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < w->n; i++) {
        fl__sums_end(&w->sums[i]);
        if (w->sums[i].bytes != w->bytes) {
            rv = fl_err_set(err, FL_ESTATE,
                            "personalized model %zu has %" PRIu64 " of %" PRIu64 " bytes", i,
                            w->sums[i].bytes, w->bytes);
        }
    }
    if (rv == FL_OK) {
        rv = write_head(w);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "cannot write '%s': %s", w->tmp, fl_strerror(rv));
        }
    }
    if (rv == FL_OK && !w->scratch && fl_fs_fdatasync(w->fd) != 0) {
        rv = fl_err_from_errno(errno);
        (void)fl_err_set(err, rv, "cannot sync '%s': %s", w->tmp, fl_strerror(rv));
    }
    if (rv == FL_OK) {
        rv = fl_fs_publish(w->tmp, w->path, /* sync= */ !w->scratch, err);
    }
    if (rv != FL_OK) {
        fl_personal_models_abandon(w);
        return rv;
    }
    writer_free(w);
    return FL_OK;
}

void fl_personal_models_abandon(struct fl_personal_models_writer *w)
{
    if (w == NULL) {
        return;
    }
    if (w->fd >= 0) {
        (void)unlink(w->tmp); /* On an error the next clean-up removes it. */
    }
    writer_free(w);
}

/* --- reading --- */

struct fl_personal_models {
    struct fl_file *file;
    char (*names)[FL_NAME_MAX]; /* [n], owned */
    size_t n;
    uint64_t bytes;
    uint64_t *sums; /* [n][blocks] */
    uint64_t hash;  /* of the head */
};

/* Load the header after its fixed part; FL_EFORMAT: damaged or of another format. */
static int load_personal_head(struct fl_personal_models *m, const uint8_t *fixed)
{
    size_t used = used_size(m->n, m->bytes);
    size_t sums = m->n * sums_size(m->bytes);
    uint8_t *raw = malloc(used);
    uint64_t hash = 0;
    size_t i;
    int rv = raw != NULL ? fl_file_read(m->file, 0, raw, used) : FL_ENOMEM;

    if (rv == FL_OK) {
        (void)memcpy(&hash, raw + used - HASH_SIZE, sizeof(hash));
        rv = hash == fl_checksum(raw, used - HASH_SIZE) && memcmp(raw, fixed, FIXED_SIZE) == 0
                 ? FL_OK
                 : FL_EFORMAT;
    }
    m->names = rv == FL_OK ? calloc(m->n > 0 ? m->n : 1, sizeof(*m->names)) : NULL;
    m->sums = rv == FL_OK && sums > 0 ? malloc(sums) : NULL;
    rv = rv == FL_OK && (m->names == NULL || (sums > 0 && m->sums == NULL)) ? FL_ENOMEM : rv;
    for (i = 0; rv == FL_OK && i < m->n; i++) {
        (void)memcpy(m->names[i], raw + FIXED_SIZE + i * FL_NAME_MAX, FL_NAME_MAX - 1);
        rv = fl_name_valid(m->names[i]) ? FL_OK : FL_EFORMAT;
    }
    m->hash = hash;
    if (rv == FL_OK && sums > 0) {
        (void)memcpy(m->sums, raw + FIXED_SIZE + m->n * FL_NAME_MAX, sums);
    }
    free(raw);
    return rv;
}

static int load_personal_models(struct fl_personal_models *m, uint64_t round)
{
    uint8_t fixed[FIXED_SIZE];
    uint64_t of_round;
    uint32_t version;
    uint32_t n;
    uint64_t bytes;
    int rv = fl_file_read(m->file, 0, fixed, sizeof(fixed));

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(&version, fixed + 8, sizeof(version));
    (void)memcpy(&n, fixed + 12, sizeof(n));
    (void)memcpy(&of_round, fixed + 16, sizeof(of_round));
    (void)memcpy(&bytes, fixed + 24, sizeof(bytes));
    m->n = n;
    if (memcmp(fixed, MAGIC, strlen(MAGIC)) != 0 || version != MIX_VERSION || of_round != round ||
        bytes != m->bytes || n > MAX_CLIENTS ||
        fl_file_size(m->file) != head_size(n, bytes) + n * m->bytes)
    {
        return FL_EFORMAT;
    }
    return load_personal_head(m, fixed);
}

int fl_personal_models_open(const char *dir, uint64_t round, uint64_t bytes,
                            struct fl_personal_models **ret, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    struct fl_personal_models *m;
    int rv = fl__personal_models_path(dir, round, "", path, sizeof(path), err);

    if (rv != FL_OK) {
        return rv;
    }
    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return personal_no_memory(err);
    }
    m->bytes = bytes;
    rv = fl_file_open(path, &m->file, err);
    if (rv == FL_OK) {
        rv = load_personal_models(m, round);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv,
                             "'%s' does not hold the personalized models of round %" PRIu64 ": %s",
                             path, round, fl_strerror(rv));
        }
    }
    if (rv != FL_OK) {
        fl_personal_models_close(m);
        return rv;
    }
    *ret = m;
    return FL_OK;
}

size_t fl_personal_models_count(const struct fl_personal_models *m)
{
    return m->n;
}

const char *fl_personal_models_name(const struct fl_personal_models *m, size_t i)
{
    FL_REQUIRE(i < m->n);
    return m->names[i];
}

struct fl_file *fl_personal_models_file(const struct fl_personal_models *m, size_t i)
{
    size_t size = sums_size(m->bytes);
    uint64_t *sums = NULL;

    FL_REQUIRE(i < m->n);
    if (size > 0) {
        sums = malloc(size);
        if (sums == NULL) {
            return NULL;
        }
        (void)memcpy(sums, m->sums + i * (size / sizeof(*sums)), size);
    }
    return fl__file_part(m->file, head_size(m->n, m->bytes) + i * m->bytes, m->bytes, sums);
}

int fl_personal_models_verify(const struct fl_personal_models *m, struct fl_err *err)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < m->n; i++) {
        struct fl_file *file = fl_personal_models_file(m, i);

        rv = file != NULL ? fl_file_verify(file) : FL_ENOMEM;
        fl_file_unref(file);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "the personalized model of '%s' cannot be used: %s",
                             m->names[i], rv == FL_EFORMAT ? "it is damaged" : fl_strerror(rv));
        }
    }
    return rv;
}

/* The header holds the names and the checksums of all models, so its hash covers the whole file. */
void fl_personal_models_seal(const struct fl_personal_models *m, char out[FL_PERSONAL_MODELS_SEAL])
{
    (void)snprintf(out, FL_PERSONAL_MODELS_SEAL, "%zu %016" PRIx64, m->n, m->hash);
}

int fl_personal_models_open_sealed(const char *dir, uint64_t round, uint64_t bytes,
                                   const char *seal, struct fl_personal_models **ret,
                                   struct fl_err *err)
{
    char found[FL_PERSONAL_MODELS_SEAL] = "";
    char path[FL__STORE_PATH_MAX];
    struct fl_personal_models *m = NULL;
    int rv = fl__personal_models_path(dir, round, "", path, sizeof(path), err);

    rv = rv == FL_OK ? fl_personal_models_open(dir, round, bytes, &m, err) : rv;
    if (rv == FL_OK) {
        fl_personal_models_seal(m, found);
        rv = strcmp(found, seal) == 0
                 ? fl_personal_models_verify(m, err)
                 : fl_err_set(err, FL_EFORMAT,
                              "the personalized models of round %" PRIu64 " do not belong to "
                              "its model",
                              round);
        rv = rv == FL_OK ? rv : fl_err_wrap(err, rv, "'%s'", path);
    }
    if (rv != FL_OK) {
        fl_personal_models_close(m);
        return rv;
    }
    *ret = m;
    return FL_OK;
}

size_t fl_personal_models_find(const struct fl_personal_models *m, const char *name)
{
    size_t low = 0;
    size_t high = m->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (strcmp(m->names[mid], name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < m->n && strcmp(m->names[low], name) == 0 ? low : m->n;
}

void fl_personal_models_close(struct fl_personal_models *m)
{
    if (m == NULL) {
        return;
    }
    fl_file_unref(m->file);
    free(m->sums);
    free(m->names);
    free(m);
}
