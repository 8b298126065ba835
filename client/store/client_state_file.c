/*
 * The files of <state_dir>/keep (client_state.h): the index and the blocks, as container files
 * (libfl/container), and the layout. Runs on the training thread. It does not decide what is kept.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/store/client_state_impl.h"
#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/container/container.h"

#define KEEP_VERSION 1

struct index_fields {
    uint64_t serial;
    uint64_t kept_round, kept_attempt, pending_round, pending_attempt;
    char federation[FL_NAME_MAX];
    uint8_t layout[FL_DIGEST_SIZE], generation[FL_DIGEST_SIZE];
};
_Static_assert(sizeof(struct index_fields) == 40 + FL_NAME_MAX + 2 * FL_DIGEST_SIZE, "no padding");

/* Sections: the entries, and the upload mask of the pending round. */
enum { INDEX_ENTRIES, INDEX_GRANTED, INDEX_SECTIONS };

static const struct fl_container_kind index_kind = {.name = "index",
                                                    .version = KEEP_VERSION,
                                                    .max_sections = INDEX_SECTIONS,
                                                    .max_fields = sizeof(struct index_fields)};

struct block_fields {
    uint64_t round, attempt;
    char name[FL_NAME_MAX];
    uint8_t layout[FL_DIGEST_SIZE];
};
_Static_assert(sizeof(struct block_fields) == 16 + FL_NAME_MAX + FL_DIGEST_SIZE, "no padding");

/* Its one section are the floats. */
static const struct fl_container_kind block_kind = {.name = "block",
                                                    .version = KEEP_VERSION,
                                                    .max_sections = 1,
                                                    .max_fields = sizeof(struct block_fields)};

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
    struct index_fields fields = {.serial = index->serial,
                                  .kept_round = index->kept.round,
                                  .kept_attempt = index->kept.attempt,
                                  .pending_round = index->pending.round,
                                  .pending_attempt = index->pending.attempt};
    const struct fl_container_part parts[INDEX_SECTIONS] = {
        [INDEX_ENTRIES] = {"entries", index->entries, index->n * sizeof(*index->entries)},
        [INDEX_GRANTED] = {"granted", index->granted, index->n_units}};
    const struct fl_container_content content = {&fields, sizeof(fields), parts, INDEX_SECTIONS};
    char path[FL__CLIENT_STATE_PATH];
    int rv = index_path(dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(fields.federation, index->federation, sizeof(fields.federation));
    (void)memcpy(fields.layout, index->layout, sizeof(fields.layout));
    (void)memcpy(fields.generation, index->generation, sizeof(fields.generation));
    return fl_container_replace(path, &index_kind, &content, sync, err);
}

static bool check_index(const struct fl_container *file, struct index_fields *fields)
{
    return file->head.n == INDEX_SECTIONS &&
           file->head.sections[INDEX_ENTRIES].bytes % sizeof(struct fl__client_state_entry) == 0 &&
           file->head.sections[INDEX_ENTRIES].bytes <=
               FL_CLIENT_STATE_MAX * sizeof(struct fl__client_state_entry) &&
           file->head.sections[INDEX_GRANTED].bytes <= FL_LAYOUT_MAX_UNITS &&
           fl_container_fields(&file->head, fields, sizeof(*fields)) == FL_OK &&
           state_text_is_terminated(fields->federation);
}

static int index_is_damaged(const struct fl_container *file, struct fl_err *err)
{
    return fl_err_set(err, FL_EFORMAT,
                      "'%s' is damaged: its fields and sections are those of no index of client "
                      "state",
                      file->path);
}

static int unpack_index(const struct fl_container *file, struct fl__client_state_index *ret,
                        struct fl_err *err)
{
    struct fl__client_state_index index = {0};
    struct index_fields fields;
    size_t i;
    int rv;

    if (!check_index(file, &fields)) {
        return index_is_damaged(file, err);
    }
    index.kept = (struct fl_round_key){fields.kept_round, (uint32_t)fields.kept_attempt};
    index.pending = (struct fl_round_key){fields.pending_round, (uint32_t)fields.pending_attempt};
    index.serial = fields.serial;
    index.n = (size_t)file->head.sections[INDEX_ENTRIES].bytes / sizeof(*index.entries);
    index.n_units = (size_t)file->head.sections[INDEX_GRANTED].bytes;
    (void)memcpy(index.federation, fields.federation, sizeof(index.federation));
    (void)memcpy(index.layout, fields.layout, sizeof(index.layout));
    (void)memcpy(index.generation, fields.generation, sizeof(index.generation));
    index.granted = malloc(index.n_units + 1);
    if (index.granted == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_container_read(file, INDEX_ENTRIES, index.entries, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_container_read(file, INDEX_GRANTED, index.granted, err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < index.n; i++) {
        if (!state_text_is_terminated(index.entries[i].name) ||
            !fl_name_valid(index.entries[i].name)) {
            rv = index_is_damaged(file, err);
            goto fail;
        }
    }
    *ret = index;
    return FL_OK;
fail:
    fl__client_state_index_done(&index);
    return rv;
}

int fl__client_state_index_read(const char *dir, struct fl__client_state_index *ret,
                                struct fl_err *err)
{
    char path[FL__CLIENT_STATE_PATH];
    struct fl_container file;
    int rv = index_path(dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_container_open(path, &index_kind, &file, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = unpack_index(&file, ret, err);
    fl_container_close(&file);
    return rv;
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

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_read(path, LAYOUT_MAX, &file, err);
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
    int rv;

    if (fl__client_state_layout_read(dir, fl_layout_digest(layout), &there, NULL) == FL_OK) {
        fl_layout_free(there);
        return FL_OK;
    }
    rv = layout_path(dir, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_layout_text(layout, &text);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_replace(path, text.data, text.len, sync, err);
    fl_buf_done(&text);
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
    struct block_fields fields = {.round = block->key.round, .attempt = block->key.attempt};
    const struct fl_container_part part = {"floats", data, block->n_floats * sizeof(*data)};
    const struct fl_container_content content = {&fields, sizeof(fields), &part, 1};
    char path[FL__CLIENT_STATE_PATH];
    int rv = block_path(dir, block->name, serial, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_str_copy(fields.name, sizeof(fields.name), block->name);
    if (rv != FL_OK) {
        return rv;
    }
    (void)memcpy(fields.layout, block->layout, sizeof(fields.layout));
    return fl_container_replace(path, &block_kind, &content, sync, err);
}

static bool block_is_of(const struct fl_container *file, const struct fl__client_state_block *block)
{
    struct block_fields fields;

    return file->head.n == 1 && file->head.sections[0].bytes == block->n_floats * sizeof(float) &&
           fl_container_fields(&file->head, &fields, sizeof(fields)) == FL_OK &&
           state_text_is_terminated(fields.name) && strcmp(fields.name, block->name) == 0 &&
           memcmp(fields.layout, block->layout, sizeof(fields.layout)) == 0;
}

static int state_block_read_floats(const struct fl_container *file,
                                   const struct fl__client_state_block *block, float **ret,
                                   struct fl_err *err)
{
    float *data;
    int rv;

    if (!block_is_of(file, block)) {
        return fl_err_set(err, FL_EFORMAT, "'%s' is of another model", file->path);
    }
    data = malloc(block->n_floats * sizeof(*data) + 1);
    if (data == NULL) {
        return fl_err_set(err, FL_ENOMEM, "cannot read '%s': %s", file->path,
                          fl_strerror(FL_ENOMEM));
    }
    rv = fl_container_read(file, 0, data, err);
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
    struct fl_container file;
    int rv = block_path(dir, block->name, serial, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_container_open(path, &block_kind, &file, err);
    if (rv == FL_EVERSION) {
        return FL_EFORMAT; /* The index is of this version: the file is none of its blocks. */
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = state_block_read_floats(&file, block, ret, err);
    fl_container_close(&file);
    return rv;
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
