/*
 * Writes plain safetensors files, and reads layouts, parameters and metadata of any
 * (safetensors.h). Runs on the caller's thread with blocking I/O. Parsing of headers is in
 * st_parse.c, sealed files are written in st_draft.c, units of foreign files are derived in
 * st_units.c.
 */
#include "libfl/model/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/model/shape.h"
#include "libfl/model/st_parse.h"
#include "libfl/model/st_write.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "float data is written without conversion");

/* Alignment of the data, as in the reference writer. */
#define ALIGNMENT 8
/* Bytes converted at a time when a file is not float32; a multiple of every dtype's size. */
#define CONVERT_BYTES 65536
/* Number of constants of a file that a message names. */
#define CONSTANTS_NAMED 4

/*
 * Append `text` as a JSON string. Only the characters required by JSON are escaped; UTF-8 is
 * copied.
 */
static int add_json_string(struct fl_buf *buf, const char *text)
{
    int rv = fl_buf_add(buf, "\"", 1);

    if (rv != FL_OK) {
        return rv;
    }
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') {
            rv = fl_buf_printf(buf, "\\%c", c);
        } else if (c < 0x20) {
            rv = fl_buf_printf(buf, "\\u%04x", c);
        } else {
            rv = fl_buf_add(buf, text, 1);
        }
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl_buf_add(buf, "\"", 1);
}

static int add_pair(struct fl_buf *buf, const char *key, const char *value)
{
    int rv = add_json_string(buf, key);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_buf_add(buf, ":", 1);
    if (rv != FL_OK) {
        return rv;
    }
    return add_json_string(buf, value);
}

static int add_metadata(struct fl_buf *buf, const struct fl_layout *layout,
                        const struct fl_st_meta *meta, size_t n_meta, bool checksum)
{
    struct fl_buf text;
    size_t i;
    int rv = fl_layout_text(layout, &text);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_buf_add(&text, "", 1);
    if (rv != FL_OK) {
        goto done;
    }
    rv = checksum ? fl_buf_printf(buf, "%s%s\",", FL_ST_CHECKSUM_HEAD, FL_ST_CHECKSUM_NONE)
                  : fl_buf_printf(buf, "{\"__metadata__\":{");
    if (rv != FL_OK) {
        goto done;
    }
    rv = add_pair(buf, FL_ST_LAYOUT_KEY, (const char *)text.data);
    if (rv != FL_OK) {
        goto done;
    }
    for (i = 0; i < n_meta; i++) {
        rv = fl_buf_add(buf, ",", 1);
        if (rv != FL_OK) {
            goto done;
        }
        rv = add_pair(buf, meta[i].key, meta[i].value);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = fl_buf_add(buf, "}", 1);
done:
    fl_buf_done(&text);
    return rv;
}

/* Names need no escapes: a layout allows only [A-Za-z0-9._-]. */
static int st_add_tensor(struct fl_buf *buf, const struct fl_tensor *t)
{
    size_t i;
    int rv = fl_buf_printf(buf, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[", t->name);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < t->n_dims; i++) {
        rv = fl_buf_printf(buf, i == 0 ? "%zu" : ",%zu", t->dims[i]);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return fl_buf_printf(buf, "],\"data_offsets\":[%zu,%zu]}", t->offset * sizeof(float),
                         (t->offset + t->count) * sizeof(float));
}

int fl__st_header_make(const struct fl_layout *layout, const struct fl_st_meta *meta, size_t n_meta,
                       bool checksum, struct fl_buf *ret)
{
    uint8_t prefix[8] = {0};
    struct fl_buf buf;
    size_t i;
    int rv;

    fl_buf_init(&buf, sizeof(prefix) + FL_ST_MAX_HEADER);
    rv = fl_buf_add(&buf, prefix, sizeof(prefix));
    if (rv != FL_OK) {
        goto fail;
    }
    rv = add_metadata(&buf, layout, meta, n_meta, checksum);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < fl_layout_tensors(layout); i++) {
        rv = st_add_tensor(&buf, fl_layout_tensor(layout, i));
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl_buf_add(&buf, "}", 1);
    if (rv != FL_OK) {
        goto fail;
    }
    while (buf.len % ALIGNMENT != 0) {
        rv = fl_buf_add(&buf, " ", 1);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    for (i = 0; i < sizeof(prefix); i++) {
        buf.data[i] = (uint8_t)((uint64_t)(buf.len - sizeof(prefix)) >> (8 * i));
    }
    *ret = buf;
    return FL_OK;
fail:
    fl_buf_done(&buf);
    return rv;
}

int fl_st_header(const struct fl_layout *layout, const struct fl_st_meta *meta, size_t n_meta,
                 struct fl_buf *ret)
{
    return fl__st_header_make(layout, meta, n_meta, /* checksum= */ false, ret);
}

int fl_st_save(const char *path, const struct fl_layout *layout, const float *params,
               const struct fl_st_meta *meta, size_t n_meta, bool sync, struct fl_err *err)
{
    struct fl_fs_run runs[2];
    struct fl_buf header;
    int rv = fl_st_header(layout, meta, n_meta, &header);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot build the header of '%s': %s", path, fl_strerror(rv));
    }
    runs[0] = (struct fl_fs_run){header.data, header.len};
    runs[1] = (struct fl_fs_run){params, fl_layout_count(layout) * sizeof(*params)};
    rv = fl_fs_replace_runs(path, runs, 2, sync, err);
    fl_buf_done(&header);
    return rv;
}

/* Find the entry of `name`; the entries must be sorted by name. */
static const struct fl_st_entry *find_entry(const struct fl_st_file *file, const char *name)
{
    const struct fl_st_entry key = {.name = name};

    return bsearch(&key, file->entries, file->n_entries, sizeof(*file->entries), fl_st_by_name);
}

static int check_entry(const struct fl_st_file *file, const struct fl_tensor *t, struct fl_err *err)
{
    char have[FL__SHAPE_TEXT_MAX];
    char want[FL__SHAPE_TEXT_MAX];
    const struct fl_st_entry *e = find_entry(file, t->name);

    if (e == NULL || e->dtype == FL_ST_SKIPPED) {
        return fl_err_set(err, FL_ESHAPE, "tensor '%s' %s", t->name,
                          e == NULL ? "is missing" : "contains integers, expected floats");
    }
    if (e->n_dims != t->n_dims || memcmp(e->dims, t->dims, t->n_dims * sizeof(t->dims[0])) != 0) {
        return fl_err_set(err, FL_ESHAPE, "tensor '%s' is %s, expected %s", t->name,
                          fl__shape_text(have, sizeof(have), e->dims, e->n_dims),
                          fl__shape_text(want, sizeof(want), t->dims, t->n_dims));
    }
    return FL_OK;
}

/* Check that the file contains exactly the tensors of `layout`. Sorts the entries by name. */
static int check_entries(struct fl_st_file *file, const struct fl_layout *layout,
                         struct fl_err *err)
{
    size_t n = 0;
    size_t i;
    int rv;

    qsort(file->entries, file->n_entries, sizeof(*file->entries), fl_st_by_name);
    for (i = 0; i < fl_layout_tensors(layout); i++) {
        rv = check_entry(file, fl_layout_tensor(layout, i), err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    for (i = 0; i < file->n_entries; i++) {
        n += file->entries[i].dtype != FL_ST_SKIPPED;
    }
    for (i = 0; n != fl_layout_tensors(layout) && i < file->n_entries; i++) {
        const struct fl_st_entry *e = &file->entries[i];

        if (e->dtype != FL_ST_SKIPPED && fl_layout_find(layout, e->name) == NULL) {
            return fl_err_set(err, FL_ESHAPE, "tensor '%.64s' is not part of the model", e->name);
        }
    }
    return FL_OK;
}

/* The layout that the metadata describes, after a comparison with the tensors of the file. */
static int st_layout_of_text(struct fl_st_file *file, const char *text, struct fl_layout **ret,
                             struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    int rv = fl_layout_from_text(text, strlen(text), &layout, err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = check_entries(file, layout, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = layout;
    return FL_OK;
fail:
    fl_layout_free(layout);
    return fl_err_wrap(err, rv, "metadata '%s'", FL_ST_LAYOUT_KEY);
}

int fl_st_layout(const char *path, struct fl_layout **ret, struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    struct fl_st_file file;
    const char *text;
    int rv = fl_st_open(path, &file, err);

    if (rv != FL_OK) {
        return rv;
    }
    text = fl_st_meta_of(&file, FL_ST_LAYOUT_KEY);
    if (text == NULL) {
        rv = fl_st_layout_by_names(&file, &layout, err);
    } else {
        rv = st_layout_of_text(&file, text, &layout, err);
    }
    fl_st_close(&file);
    if (rv != FL_OK) {
        /* Any error in the file's description is a format error of the file. */
        rv = rv == FL_ENOMEM ? rv : FL_EFORMAT;
        return fl_err_wrap(err, rv, "safetensors file '%s'", path);
    }
    *ret = layout;
    return FL_OK;
}

int fl_st_constants(const char *path, char *out, size_t size, size_t *ret, struct fl_err *err)
{
    struct fl_st_file file;
    size_t used = 0;
    size_t n = 0;
    size_t i;
    int rv = fl_st_open(path, &file, err);

    if (rv != FL_OK) {
        return rv;
    }
    out[0] = '\0';
    for (i = 0; i < file.n_entries; i++) {
        if (file.entries[i].dtype != FL_ST_SKIPPED || file.entries[i].counter) {
            continue;
        }
        if (n < CONSTANTS_NAMED && used < size) {
            used += (size_t)snprintf(out + used, size - used, "%s'%.64s'", n > 0 ? ", " : "",
                                     file.entries[i].name);
        }
        n++;
    }
    if (n > CONSTANTS_NAMED && used < size) {
        (void)snprintf(out + used, size - used, " and %zu more", n - CONSTANTS_NAMED);
    }
    fl_st_close(&file);
    *ret = n;
    return FL_OK;
}

/* Read bytes of the file and add them to its checksum, if it has one. */
static int read_raw(const struct fl_st_file *file, void *out, size_t len, uint64_t at)
{
    int rv = fl_fs_pread(file->fd, out, len, at);

    if (rv != FL_OK) {
        return rv;
    }
    if (file->summer != NULL) {
        fl_summer_add(file->summer, out, len);
    }
    return FL_OK;
}

/* `out` NULL: the entry is only added to the checksum. */
static int read_entry(const struct fl_st_file *file, const struct fl_st_entry *e, float *out)
{
    uint8_t raw[CONVERT_BYTES];
    size_t size = fl_st_dtype_size(e->dtype);
    uint64_t at = file->data_offset + e->begin;
    uint64_t left = e->end - e->begin;

    if (e->dtype == FL_ST_F32 && out != NULL) {
        return read_raw(file, out, (size_t)left, at);
    }
    while (left > 0) {
        size_t n = left < sizeof(raw) ? (size_t)left : sizeof(raw);
        int rv = read_raw(file, raw, n, at);

        if (rv != FL_OK) {
            return rv;
        }
        if (out != NULL) {
            fl_st_convert(e->dtype, out, raw, n / size);
            out += n / size;
        }
        at += n;
        left -= n;
    }
    return FL_OK;
}

static int check_sum(const struct fl_st_file *file, struct fl_err *err)
{
    char text[FL_CHECKSUM_TEXT];

    if (file->summer == NULL ||
        strcmp(fl_checksum_text(fl_summer_value(file->summer), text), file->checksum) == 0)
    {
        return FL_OK;
    }
    return fl_err_set(err, FL_EFORMAT, "damaged: checksum mismatch (stored %s, computed %s)",
                      file->checksum, text);
}

/*
 * When the tensors do not fit the layout, verify the checksum first: a damaged header can
 * describe another model, and then the damage is reported.
 */
static int st_check_damage(struct fl_st_file *file, int rv, struct fl_err *err)
{
    size_t i;

    if (rv != FL_ESHAPE || file->summer == NULL) {
        return rv;
    }
    qsort(file->entries, file->n_entries, sizeof(*file->entries), fl_st_by_begin);
    for (i = 0; i < file->n_entries; i++) {
        int code = read_entry(file, &file->entries[i], NULL);

        if (code != FL_OK) {
            return fl_err_set(err, code, "cannot read tensor '%.64s': %s", file->entries[i].name,
                              fl_strerror(code));
        }
    }
    if (check_sum(file, err) != FL_OK) {
        return FL_EFORMAT;
    }
    return rv;
}

int fl_st_load_fields(const char *path, const struct fl_layout *layout, float *params,
                      struct fl_st_field *fields, size_t n_fields, bool *ret_checked,
                      struct fl_err *err)
{
    struct fl_st_file file;
    int rv = fl_st_open(path, &file, err);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    rv = st_check_damage(&file, check_entries(&file, layout, err), err);
    if (rv != FL_OK) {
        goto done;
    }
    /* Read in file order, so that the checksum is computed in the same pass. */
    qsort(file.entries, file.n_entries, sizeof(*file.entries), fl_st_by_begin);
    for (i = 0; i < file.n_entries; i++) {
        const struct fl_st_entry *e = &file.entries[i];
        const struct fl_tensor *t = fl_layout_find(layout, e->name);

        if (e->dtype == FL_ST_SKIPPED && file.summer == NULL) {
            continue;
        }
        rv = read_entry(&file, e, t != NULL ? params + t->offset : NULL);
        if (rv != FL_OK) {
            rv = fl_err_set(err, rv, "cannot read tensor '%.64s': %s", e->name, fl_strerror(rv));
            goto done;
        }
    }
    rv = check_sum(&file, err);
    if (rv != FL_OK) {
        goto done;
    }
    for (i = 0; i < n_fields; i++) {
        const char *value = fl_st_meta_of(&file, fields[i].key);

        fields[i].found = value != NULL;
        fields[i].out[0] = '\0';
        if (value != NULL && fl_str_copy(fields[i].out, fields[i].size, value) != FL_OK) {
            rv = fl_err_set(err, FL_EFORMAT, "metadata '%s' is longer than %zu bytes",
                            fields[i].key, fields[i].size);
            goto done;
        }
    }
    *ret_checked = file.summer != NULL;
done:
    fl_st_close(&file);
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "safetensors file '%s'", path);
    }
    return FL_OK;
}

int fl_st_load(const char *path, const struct fl_layout *layout, float *params, struct fl_err *err)
{
    bool checked;

    return fl_st_load_fields(path, layout, params, NULL, 0, &checked, err);
}

int fl_st_meta(const char *path, const char *key, char *out, size_t size, struct fl_err *err)
{
    struct fl_st_file file;
    const char *value;
    int rv = fl_st_open(path, &file, err);

    if (rv != FL_OK) {
        return rv;
    }
    value = fl_st_meta_of(&file, key);
    if (value == NULL) {
        rv = fl_err_set(err, FL_ENOENT, "safetensors file '%s' has no metadata '%s'", path, key);
    } else if (fl_str_copy(out, size, value) != FL_OK) {
        rv = fl_err_set(err, FL_ELIMIT,
                        "safetensors file '%s': metadata '%s' is longer than %zu bytes", path, key,
                        size);
    }
    fl_st_close(&file);
    return rv;
}
