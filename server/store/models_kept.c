/*
 * Bytes that belong to a checkpoint beside its vectors: what a program keeps between rounds
 * (fl_aggregate_ops.program). They are a file of the checkpoint's, so that retention, rollback,
 * backup and quarantine treat them as its vectors: one tensor of float32 that holds the bytes,
 * padded, whose values nothing reads as numbers. The model's file names their checksum. Any
 * thread, blocking.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/base/str.h"
#include "server/store/models_impl.h"

#define NAME  "kept"
#define BYTES "fl.bytes"

static size_t kept_floats(size_t len)
{
    return len / sizeof(float) + (len % sizeof(float) != 0 ? 1 : 0);
}

static int kept_layout(size_t len, struct fl_layout **ret, struct fl_err *err)
{
    const size_t dims[] = {kept_floats(len)};
    struct fl_layout *layout = NULL;
    int rv = fl_layout_create(&layout);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_layout_add(layout, NAME, NAME ".bytes", dims, 1, /* buffer= */ false, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_layout_finish(layout, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = layout;
    return FL_OK;
fail:
    fl_layout_free(layout);
    return rv;
}

int fl__models_save_kept(const struct fl_models_checkpoint *c, bool sync,
                         char ret[FL_CHECKSUM_TEXT], struct fl_err *err)
{
    const struct fl_blob *kept = c->tag->keeps ? c->tag->kept : NULL;
    size_t len = kept != NULL ? fl_blob_len(kept) : 0;
    struct fl_layout *layout = NULL;
    struct fl__models_one one;
    char bytes[24];
    float *values;
    int rv;

    if (len == 0) {
        return fl_str_copy(ret, FL_CHECKSUM_TEXT, FL__MODELS_NO_KEPT);
    }
    values = calloc(kept_floats(len), sizeof(*values));
    if (values == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    (void)memcpy(values, fl_blob_data(kept), len);
    rv = kept_layout(len, &layout, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__models_describe(c, NAME, NULL, NULL, &one, err);
    if (rv != FL_OK) {
        goto done;
    }
    (void)snprintf(bytes, sizeof(bytes), "%zu", len);
    one.meta[one.n++] = (struct fl_st_meta){BYTES, bytes};
    rv = fl_st_save_sealed(one.path, layout, values, one.meta, one.n, sync, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_st_meta(one.path, "fl.checksum", ret, FL_CHECKSUM_TEXT, err);
done:
    fl_layout_free(layout);
    free(values);
    return rv;
}

/* The file, whose checksum, round and database are those of the model's. */
static int kept_read(const struct fl_models_checkpoint *c, const char *path, const char *want,
                     size_t max, struct fl_blob **ret, struct fl_err *err)
{
    char round[24];
    char database[FL_STORE_ID_TEXT];
    char checksum[FL_CHECKSUM_TEXT];
    char bytes[24];
    struct fl_st_field fields[] = {
        {.key = "fl.round", .out = round, .size = sizeof(round)},
        {.key = FL__MODELS_DATABASE_KEY, .out = database, .size = sizeof(database)},
        {.key = "fl.checksum", .out = checksum, .size = sizeof(checksum)},
        {.key = BYTES, .out = bytes, .size = sizeof(bytes)},
    };
    struct fl_layout *layout = NULL;
    struct fl_blob *kept = NULL;
    float *values = NULL;
    bool checked = false;
    uint64_t found = 0;
    uint64_t len = 0;
    int rv = fl_st_layout(path, &layout, err);

    if (rv != FL_OK) {
        return rv == FL_ENOENT ? fl_err_set(err, FL_EFORMAT, "checkpoint '%s' is missing", path)
                               : rv;
    }
    values = calloc(fl_layout_count(layout), sizeof(*values));
    if (values == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
        goto done;
    }
    rv = fl_st_load_fields(path, layout, values, fields, sizeof(fields) / sizeof(fields[0]),
                           &checked, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (!checked || strcmp(checksum, want) != 0 || strcmp(database, c->tag->database) != 0 ||
        fl_str_to_u64(round, &found) != FL_OK || found != c->round ||
        fl_str_to_u64(bytes, &len) != FL_OK || len == 0 ||
        kept_floats((size_t)len) != fl_layout_count(layout))
    {
        rv = fl_err_set(err, FL_EFORMAT,
                        "'%s' does not belong to the model of round %" PRIu64
                        ": its checksum, round or length differs",
                        path, c->round);
        goto done;
    }
    if (len > max) {
        rv = fl_err_set(err, FL_ELIMIT, "'%s' has %" PRIu64 " bytes, expected at most %zu", path,
                        len, max);
        goto done;
    }
    rv = fl_blob_create((size_t)len, &kept);
    if (rv != FL_OK) {
        goto done;
    }
    (void)memcpy(fl_blob_fill(kept), values, (size_t)len);
    *ret = kept;
done:
    free(values);
    fl_layout_free(layout);
    return rv;
}

int fl_models_load_kept(const struct fl_models_checkpoint *c, size_t max, struct fl_blob **ret,
                        struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    char want[FL_CHECKSUM_TEXT] = "";
    int rv;

    *ret = NULL;
    if (fl_models_path(c->dir, c->round, NULL, path, sizeof(path)) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", c->dir);
    }
    rv = fl_st_meta(path, FL__MODELS_KEPT_KEY, want, sizeof(want), err);
    if (rv == FL_ENOENT || (rv == FL_OK && strcmp(want, FL__MODELS_NO_KEPT) == 0)) {
        return FL_OK; /* The checkpoint was made without, or before the first round. */
    }
    if (rv != FL_OK) {
        return rv;
    }
    if (fl_models_path(c->dir, c->round, NAME, path, sizeof(path)) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", c->dir);
    }
    return kept_read(c, path, want, max, ret, err);
}
