/*
 * The file formats of <state_dir>/keep (client_state.h): the index, the layout and the blocks, each
 * with a SHA-256. Runs on the training thread. It does not decide what is kept. Integers are
 * little-endian as on x86 and ARM.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/store/client_state_impl.h"
#include "client/store/whole.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/model/digest.h"

#define INDEX_MAGIC  "FLKEEPIX"
#define BLOCK_MAGIC  "FLKEEPBL"
#define KEEP_VERSION 1
/* Far above an index of FL_CLIENT_STATE_MAX entries and FL_LAYOUT_MAX_UNITS units. */
#define INDEX_MAX (64u << 10)

struct index_head {
    char magic[8];
    uint32_t version, n;
    uint64_t serial, n_units;
    uint64_t kept_round, pending_round;
    uint32_t kept_attempt, pending_attempt;
    char federation[FL_NAME_MAX];
    uint8_t layout[FL_DIGEST_SIZE], line[FL_DIGEST_SIZE];
    uint8_t sha256[32]; /* over the whole file with zeros in this place */
};

struct block_head {
    char magic[8];
    uint32_t version, attempt;
    uint64_t round, n_floats;
    char name[FL_NAME_MAX];
    uint8_t layout[FL_DIGEST_SIZE];
    uint8_t body[32]; /* SHA-256 of the floats */
    uint8_t head[32]; /* SHA-256 of the fields above */
};

static bool state_text_is_terminated(const char *text)
{
    return memchr(text, '\0', FL_NAME_MAX) != NULL;
}

/* --- the index in memory --- */

int fl__client_state_index_copy(const struct fl__client_state_index *from,
                                struct fl__client_state_index *ret)
{
    uint8_t *granted = NULL;

    if (from->n_units > 0) {
        granted = malloc(from->n_units);
        if (granted == NULL) {
            return FL_ENOMEM;
        }
        (void)memcpy(granted, from->granted, from->n_units);
    }
    *ret = *from;
    ret->granted = granted;
    return FL_OK;
}

void fl__client_state_index_done(struct fl__client_state_index *index)
{
    free(index->granted);
    *index = (struct fl__client_state_index){0};
}

struct fl__client_state_entry *fl__client_state_find(struct fl__client_state_index *index,
                                                     const char *name)
{
    size_t i;

    for (i = 0; i < index->n; i++) {
        if (strcmp(index->entries[i].name, name) == 0) {
            return &index->entries[i];
        }
    }
    return NULL;
}

bool fl__client_state_any_granted(const struct fl__client_state_index *index)
{
    return index->n_units > 0 && memchr(index->granted, 1, index->n_units) != NULL;
}

bool fl__client_state_all_granted(const struct fl__client_state_index *index)
{
    return index->n_units == 0 || memchr(index->granted, 0, index->n_units) == NULL;
}

void fl__client_state_clear_pending(struct fl__client_state_index *index)
{
    size_t i;

    for (i = 0; i < index->n; i++) {
        index->entries[i].pending = 0;
    }
    index->pending = (struct fl_round_key){0};
    if (index->n_units > 0) {
        (void)memset(index->granted, 0, index->n_units);
    }
}

/* --- the index on disk --- */

static int index_path(const char *dir, char path[FL__CLIENT_STATE_PATH], struct fl_err *err)
{
    return fl_fs_join(path, FL__CLIENT_STATE_PATH, dir, "index") == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", dir);
}

int fl__client_state_index_write(const char *dir, const struct fl__client_state_index *index,
                                 bool sync, struct fl_err *err)
{
    struct index_head head = {.version = KEEP_VERSION,
                              .n = (uint32_t)index->n,
                              .serial = index->serial,
                              .n_units = index->n_units,
                              .kept_round = index->kept.round,
                              .pending_round = index->pending.round,
                              .kept_attempt = index->kept.attempt,
                              .pending_attempt = index->pending.attempt};
    char path[FL__CLIENT_STATE_PATH];
    struct fl_buf buf;
    int rv = index_path(dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(head.magic, INDEX_MAGIC, sizeof(head.magic));
    (void)memcpy(head.federation, index->federation, sizeof(head.federation));
    (void)memcpy(head.layout, index->layout, sizeof(head.layout));
    (void)memcpy(head.line, index->line, sizeof(head.line));
    fl_buf_init(&buf, INDEX_MAX);
    if ((rv = fl_buf_add(&buf, &head, sizeof(head))) == FL_OK &&
        (rv = fl_buf_add(&buf, index->entries, index->n * sizeof(*index->entries))) == FL_OK)
    {
        rv = index->n_units > 0 ? fl_buf_add(&buf, index->granted, index->n_units) : FL_OK;
    }
    if (rv == FL_OK) {
        rv = fl_sha256(buf.data, buf.len, head.sha256);
    }
    if (rv == FL_OK) {
        (void)memcpy(buf.data, &head, sizeof(head));
        rv = fl_fs_replace(path, buf.data, buf.len, sync, err);
    }
    fl_buf_done(&buf);
    return rv;
}

static bool check_index(struct fl_buf *file, struct index_head *head)
{
    static const uint8_t zeros[32];
    uint8_t sha[32];

    if (file->len < sizeof(*head)) {
        return false;
    }
    (void)memcpy(head, file->data, sizeof(*head));
    (void)memcpy(file->data + offsetof(struct index_head, sha256), zeros, sizeof(zeros));
    return memcmp(head->magic, INDEX_MAGIC, sizeof(head->magic)) == 0 &&
           head->version == KEEP_VERSION && head->n <= FL_CLIENT_STATE_MAX &&
           head->n_units <= FL_LAYOUT_MAX_UNITS &&
           file->len ==
               sizeof(*head) + head->n * sizeof(struct fl__client_state_entry) + head->n_units &&
           state_text_is_terminated(head->federation) &&
           fl_sha256(file->data, file->len, sha) == FL_OK &&
           memcmp(sha, head->sha256, sizeof(sha)) == 0;
}

static int unpack_index(struct fl_buf *file, struct fl__client_state_index *ret)
{
    struct index_head head;
    struct fl__client_state_index index = {0};
    const uint8_t *body;
    size_t i;

    if (!check_index(file, &head)) {
        return FL_EFORMAT;
    }
    body = file->data + sizeof(head);
    index.kept = (struct fl_round_key){head.kept_round, head.kept_attempt};
    index.pending = (struct fl_round_key){head.pending_round, head.pending_attempt};
    index.serial = head.serial;
    index.n = head.n;
    index.n_units = (size_t)head.n_units;
    (void)memcpy(index.federation, head.federation, sizeof(index.federation));
    (void)memcpy(index.layout, head.layout, sizeof(index.layout));
    (void)memcpy(index.line, head.line, sizeof(index.line));
    (void)memcpy(index.entries, body, index.n * sizeof(*index.entries));
    for (i = 0; i < index.n; i++) {
        if (!state_text_is_terminated(index.entries[i].name) ||
            !fl_name_valid(index.entries[i].name)) {
            return FL_EFORMAT;
        }
    }
    if (index.n_units > 0) {
        index.granted = malloc(index.n_units);
        if (index.granted == NULL) {
            return FL_ENOMEM;
        }
        (void)memcpy(index.granted, body + index.n * sizeof(*index.entries), index.n_units);
    }
    *ret = index;
    return FL_OK;
}

/* An index of a later version is an error, not a damaged file. */
static bool is_newer(const struct fl_buf *file, struct index_head *head)
{
    if (file->len < offsetof(struct index_head, n)) {
        return false;
    }
    (void)memcpy(head, file->data, offsetof(struct index_head, n));
    return memcmp(head->magic, INDEX_MAGIC, sizeof(head->magic)) == 0 &&
           fl_whole_is_newer(head->version, KEEP_VERSION);
}

int fl__client_state_index_read(const char *dir, struct fl__client_state_index *ret,
                                struct fl_err *err)
{
    char path[FL__CLIENT_STATE_PATH];
    struct index_head head;
    struct fl_buf file;
    int rv = index_path(dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_read(path, INDEX_MAX, &file, err);
    if (rv == FL_ELIMIT) {
        return fl_err_set(err, FL_EFORMAT, "'%s' is a damaged index of client state", path);
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = is_newer(&file, &head) ? fl_whole_newer(path, head.version, KEEP_VERSION, err)
                                : unpack_index(&file, ret);
    fl_buf_done(&file);
    return rv == FL_EFORMAT ? fl_err_set(err, rv, "'%s' is a damaged index of client state", path)
                            : rv;
}

/* --- the layout --- */

/* Far above the text of FL_LAYOUT_MAX_TENSORS tensors. */
#define LAYOUT_MAX (8u << 20)

static int layout_path(const char *dir, char path[FL__CLIENT_STATE_PATH], struct fl_err *err)
{
    return fl_fs_join(path, FL__CLIENT_STATE_PATH, dir, "layout") == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", dir);
}

int fl__client_state_layout_read(const char *dir, const uint8_t digest[FL_DIGEST_SIZE],
                                 struct fl_layout **ret, struct fl_err *err)
{
    char path[FL__CLIENT_STATE_PATH];
    struct fl_layout *layout = NULL;
    struct fl_buf file;
    int rv = layout_path(dir, path, err);

    rv = rv == FL_OK ? fl_fs_read(path, LAYOUT_MAX, &file, err) : rv;
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_layout_from_text((const char *)file.data, file.len, &layout, NULL);
    fl_buf_done(&file);
    if (rv == FL_ENOMEM) {
        return rv;
    }
    if (rv != FL_OK || memcmp(fl_layout_digest(layout), digest, FL_DIGEST_SIZE) != 0) {
        fl_layout_free(layout);
        return fl_err_set(err, FL_EFORMAT, "'%s' is not the layout of the client state beside it",
                          path);
    }
    *ret = layout;
    return FL_OK;
}

int fl__client_state_layout_write(const char *dir, const struct fl_layout *layout, bool sync,
                                  struct fl_err *err)
{
    char path[FL__CLIENT_STATE_PATH];
    struct fl_layout *there = NULL;
    struct fl_buf text;
    int rv = fl__client_state_layout_read(dir, fl_layout_digest(layout), &there, NULL);

    fl_layout_free(there);
    if (rv == FL_OK) {
        return rv;
    }
    rv = layout_path(dir, path, err);
    rv = rv == FL_OK ? fl_layout_text(layout, &text) : rv;
    if (rv == FL_OK) {
        rv = fl_fs_replace(path, text.data, text.len, sync, err);
        fl_buf_done(&text);
    }
    return rv;
}

/* --- blocks --- */

static int block_name(const char *name, uint64_t serial, char *out, size_t size)
{
    int n = snprintf(out, size, "%s.%" PRIu64 ".keep", name, serial);

    return n >= 0 && (size_t)n < size ? FL_OK : FL_ELIMIT;
}

static int block_path(const char *dir, const char *name, uint64_t serial,
                      char path[FL__CLIENT_STATE_PATH], struct fl_err *err)
{
    char file[FL_NAME_MAX + 32];

    return block_name(name, serial, file, sizeof(file)) == FL_OK &&
                   fl_fs_join(path, FL__CLIENT_STATE_PATH, dir, file) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", dir);
}

int fl__client_state_block_write(const char *dir, const struct fl__client_state_block *block,
                                 uint64_t serial, const float *data, bool sync, struct fl_err *err)
{
    struct block_head head = {.version = KEEP_VERSION,
                              .attempt = block->key.attempt,
                              .round = block->key.round,
                              .n_floats = block->n_floats};
    size_t body = block->n_floats * sizeof(*data);
    char path[FL__CLIENT_STATE_PATH];
    int rv = block_path(dir, block->name, serial, path, err);

    if (rv != FL_OK || (rv = fl_str_copy(head.name, sizeof(head.name), block->name)) != FL_OK) {
        return rv;
    }
    (void)memcpy(head.magic, BLOCK_MAGIC, sizeof(head.magic));
    (void)memcpy(head.layout, block->layout, sizeof(head.layout));
    if ((rv = fl_sha256(data, body, head.body)) == FL_OK &&
        (rv = fl_sha256(&head, offsetof(struct block_head, head), head.head)) == FL_OK)
    {
        struct fl_run runs[] = {{&head, sizeof(head)}, {data, body}};

        rv = fl_whole_write(path, runs, 2, sync, err);
    }
    return rv;
}

static bool state_block_check_head(const struct block_head *head,
                                   const struct fl__client_state_block *block)
{
    uint8_t sha[32];

    return memcmp(head->magic, BLOCK_MAGIC, sizeof(head->magic)) == 0 &&
           head->version == KEEP_VERSION &&
           fl_sha256(head, offsetof(struct block_head, head), sha) == FL_OK &&
           memcmp(sha, head->head, sizeof(sha)) == 0 && state_text_is_terminated(head->name) &&
           strcmp(head->name, block->name) == 0 && head->n_floats == block->n_floats &&
           memcmp(head->layout, block->layout, sizeof(head->layout)) == 0;
}

static int state_block_read_fd(int fd, const struct fl__client_state_block *block, float **ret)
{
    size_t body = block->n_floats * sizeof(float);
    struct block_head head;
    uint8_t sha[32];
    float *data;
    int rv = fl_fs_pread(fd, &head, sizeof(head), 0);

    if (rv != FL_OK || !state_block_check_head(&head, block)) {
        return rv != FL_OK ? rv : FL_EFORMAT;
    }
    data = malloc(body + 1);
    if (data == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_fs_pread(fd, data, body, sizeof(head));
    if (rv == FL_OK) {
        rv = fl_sha256(data, body, sha);
    }
    if (rv == FL_OK && memcmp(sha, head.body, sizeof(sha)) != 0) {
        rv = FL_EFORMAT;
    }
    if (rv != FL_OK) {
        free(data);
        return rv;
    }
    *ret = data;
    return FL_OK;
}

int fl__client_state_block_read(const char *dir, const struct fl__client_state_block *block,
                                uint64_t serial, float **ret, struct fl_err *err)
{
    char path[FL__CLIENT_STATE_PATH];
    int fd;
    int rv = block_path(dir, block->name, serial, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int saved = errno;

        return fl_err_set(err, fl_err_from_errno(saved), "cannot open '%s': %s", path,
                          strerror(saved));
    }
    rv = state_block_read_fd(fd, block, ret);
    (void)close(fd);
    if (rv == FL_EFORMAT) {
        return fl_err_set(err, rv, "'%s' is damaged, or of another model", path);
    }
    return rv == FL_OK ? rv : fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
}

/* --- removing unused files --- */

static bool index_names_file(const struct fl__client_state_index *index, const char *file)
{
    char name[FL_NAME_MAX + 32];
    size_t i;

    for (i = 0; i < index->n; i++) {
        const struct fl__client_state_entry *e = &index->entries[i];

        if ((e->kept != 0 && block_name(e->name, e->kept, name, sizeof(name)) == FL_OK &&
             strcmp(name, file) == 0) ||
            (e->pending != 0 && block_name(e->name, e->pending, name, sizeof(name)) == FL_OK &&
             strcmp(name, file) == 0))
        {
            return true;
        }
    }
    return false;
}

static bool is_left(const void *index, const char *file)
{
    return fl_str_ends_with(file, ".tmp") ||
           (fl_str_ends_with(file, ".keep") && !index_names_file(index, file));
}

void fl__client_state_sweep(const char *dir, const struct fl__client_state_index *index)
{
    int rv = fl_fs_remove_each(dir, is_left, index, NULL);

    (void)rv; /* A file that remains does no harm, and the next sweep retries. */
}
