/*
 * Parser of safetensors headers: opens a file, checks its header within limits, and lists its
 * tensors (st_parse.h). Runs on the caller's thread with blocking I/O; the data is read in
 * safetensors.c.
 */
#include "libfl/model/st_parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"

/*
 * Limits of a header for FL_LAYOUT_MAX_TENSORS tensors: an object and two lists each; and as
 * many metadata values as names, dimensions and offsets. Twice the tensors, because skipped
 * counters are added.
 */
#define MAX_BRACKETS ((size_t)FL_LAYOUT_MAX_TENSORS * 2 * 3 + 2)
#define MAX_COMMAS   ((size_t)FL_LAYOUT_MAX_TENSORS * 2 * 16)

struct dtype_row {
    const char *name;
    enum fl_st_dtype dtype;
    size_t size;
};

static const struct dtype_row dtypes[] = {
    {"F32", FL_ST_F32, 4},
    {"F16", FL_ST_F16, 2},
    {"BF16", FL_ST_BF16, 2},
    {"F64", FL_ST_F64, 8},
};

size_t fl_st_dtype_size(enum fl_st_dtype dtype)
{
    size_t i;

    for (i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (dtypes[i].dtype == dtype) {
            return dtypes[i].size;
        }
    }
    return 0;
}

/* Types of integer tensors, which a program has beside its weights: counters, positions, masks. */
static bool st_dtype_is_integer(const char *name)
{
    static const char *const names[] = {"BOOL", "U8",  "I8",  "U16", "I16",
                                        "U32",  "I32", "U64", "I64"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Refuse headers that would make the JSON parser allocate far more memory than a model needs. */
static int st_check_json_size(const char *text, size_t len, struct fl_err *err)
{
    size_t brackets = 0;
    size_t commas = 0;
    bool quoted = false;
    size_t i;

    for (i = 0; i < len; i++) {
        if (quoted && text[i] == '\\') {
            i++; /* an escaped character does not end the string */
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (!quoted) {
            brackets += text[i] == '[' || text[i] == '{';
            commas += text[i] == ',';
        }
    }
    if (brackets > MAX_BRACKETS || commas > MAX_COMMAS) {
        return fl_err_set(err, FL_EFORMAT, "the header describes more than %d tensors",
                          FL_LAYOUT_MAX_TENSORS);
    }
    return FL_OK;
}

/* A non-negative JSON integer. */
static bool get_u64(const json_t *value, uint64_t *ret)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

static int parse_shape(const json_t *shape, struct fl_st_entry *e, struct fl_err *err)
{
    size_t i;

    if (!json_is_array(shape) || json_array_size(shape) > FL_LAYOUT_MAX_DIMS) {
        return fl_err_set(err, FL_EFORMAT, "'shape' is not a list of at most %d numbers",
                          FL_LAYOUT_MAX_DIMS);
    }
    e->n_dims = json_array_size(shape);
    e->count = 1;
    for (i = 0; i < e->n_dims; i++) {
        uint64_t dim;

        if (!get_u64(json_array_get(shape, i), &dim) || (dim == 0 && e->dtype != FL_ST_SKIPPED)) {
            return fl_err_set(err, FL_EFORMAT, "'shape' is not a list of integers above 0");
        }
        if (e->count > 0 && dim > FL_LAYOUT_MAX_FLOATS / e->count) {
            return fl_err_set(err, FL_EFORMAT, "'shape' makes more than 2^%d numbers",
                              FL_LAYOUT_MAX_LOG2);
        }
        e->count *= dim;
        e->dims[i] = (size_t)dim;
    }
    return FL_OK;
}

static int parse_dtype(const json_t *value, struct fl_st_entry *e, struct fl_err *err)
{
    const char *name = json_string_value(value);
    size_t i;
    const char *dot;

    if (name == NULL) {
        return fl_err_set(err, FL_EFORMAT, "'dtype' is missing or not a string");
    }
    /* Never averaged: integer constants of the program, and counters of batch-norm of any type. */
    dot = strrchr(e->name, '.');
    e->counter = strcmp(dot != NULL ? dot + 1 : e->name, "num_batches_tracked") == 0;
    if (e->counter || st_dtype_is_integer(name)) {
        e->dtype = FL_ST_SKIPPED;
        return FL_OK;
    }
    for (i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            e->dtype = dtypes[i].dtype;
            return FL_OK;
        }
    }
    return fl_err_set(err, FL_EFORMAT,
                      "'dtype' is '%.16s', expected F32, F16, BF16 or F64 (integers and BOOL are "
                      "skipped)",
                      name);
}

static int parse_offsets(const json_t *value, uint64_t data_len, struct fl_st_entry *e,
                         struct fl_err *err)
{
    uint64_t size;

    if (!json_is_array(value) || json_array_size(value) != 2 ||
        !get_u64(json_array_get(value, 0), &e->begin) ||
        !get_u64(json_array_get(value, 1), &e->end) || e->begin > e->end)
    {
        return fl_err_set(err, FL_EFORMAT, "'data_offsets' is not a pair of rising numbers");
    }
    if (e->end > data_len) {
        return fl_err_set(err, FL_EFORMAT,
                          "'data_offsets' end at %llu, but the file has %llu bytes of data",
                          (unsigned long long)e->end, (unsigned long long)data_len);
    }
    if (e->dtype == FL_ST_SKIPPED) {
        return FL_OK;
    }
    size = e->count * fl_st_dtype_size(e->dtype);
    if (e->end - e->begin != size) {
        return fl_err_set(err, FL_EFORMAT, "'data_offsets' span %llu bytes, the shape needs %llu",
                          (unsigned long long)(e->end - e->begin), (unsigned long long)size);
    }
    return FL_OK;
}

static int parse_entry(const char *name, const json_t *value, uint64_t data_len,
                       struct fl_st_entry *e, struct fl_err *err)
{
    int rv;

    *e = (struct fl_st_entry){.name = name};
    if (!json_is_object(value)) {
        return fl_err_set(err, FL_EFORMAT, "not an object");
    }
    rv = parse_dtype(json_object_get(value, "dtype"), e, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = parse_shape(json_object_get(value, "shape"), e, err);
    if (rv != FL_OK) {
        return rv;
    }
    return parse_offsets(json_object_get(value, "data_offsets"), data_len, e, err);
}

int fl_st_by_begin(const void *a, const void *b)
{
    const struct fl_st_entry *x = a;
    const struct fl_st_entry *y = b;

    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

int fl_st_by_name(const void *a, const void *b)
{
    const struct fl_st_entry *x = a;
    const struct fl_st_entry *y = b;

    return strcmp(x->name, y->name);
}

static int parse_entries(struct fl_st_file *file, uint64_t data_len, struct fl_err *err)
{
    size_t n = json_object_size(file->root);
    const char *name;
    json_t *value;
    uint64_t at = 0;
    size_t i;

    file->entries = calloc(n + 1, sizeof(*file->entries));
    if (file->entries == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    json_object_foreach(file->root, name, value)
    {
        int rv;

        if (strcmp(name, "__metadata__") == 0) {
            if (!json_is_object(value)) {
                return fl_err_set(err, FL_EFORMAT, "'__metadata__' is not an object");
            }
            continue;
        }
        rv = parse_entry(name, value, data_len, &file->entries[file->n_entries], err);
        if (rv != FL_OK) {
            return fl_err_wrap(err, rv, "tensor '%.64s'", name);
        }
        file->n_entries++;
    }
    qsort(file->entries, file->n_entries, sizeof(*file->entries), fl_st_by_begin);
    /* Check that the sorted entries cover the data completely, without overlap. */
    for (i = 0; i < file->n_entries; i++) {
        const struct fl_st_entry *e = &file->entries[i];

        if (e->begin != at) {
            return fl_err_set(err, FL_EFORMAT,
                              "tensor '%.64s' begins at byte %llu of the data, expected %llu (%s)",
                              e->name, (unsigned long long)e->begin, (unsigned long long)at,
                              e->begin < at ? "tensors overlap" : "there is a gap");
        }
        at = e->end;
    }
    if (at != data_len) {
        return fl_err_set(err, FL_EFORMAT, "%llu bytes follow the last tensor",
                          (unsigned long long)(data_len - at));
    }
    return FL_OK;
}

/* Reads length and text of the header; `*ret_text` is owned by the caller. */
static int st_read_header(int fd, uint64_t file_len, uint8_t prefix[8], char **ret_text,
                          size_t *ret_len, struct fl_err *err)
{
    const size_t prefix_len = 8;
    uint64_t len = 0;
    char *text;
    size_t i;
    int rv;

    if (file_len < prefix_len) {
        return fl_err_set(err, FL_EFORMAT, "%llu bytes are too few for a safetensors file",
                          (unsigned long long)file_len);
    }
    rv = fl_fs_pread(fd, prefix, prefix_len, 0);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "cannot read: %s", fl_strerror(rv));
    }
    for (i = prefix_len; i > 0; i--) {
        len = len << 8 | prefix[i - 1];
    }
    if (len > FL_ST_MAX_HEADER || len > file_len - prefix_len || len < 2) {
        return fl_err_set(err, FL_EFORMAT,
                          "the header claims %llu bytes; the file has %llu and at most %zu are "
                          "allowed",
                          (unsigned long long)len, (unsigned long long)file_len, FL_ST_MAX_HEADER);
    }
    text = malloc((size_t)len);
    if (text == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    rv = fl_fs_pread(fd, text, (size_t)len, prefix_len);
    if (rv != FL_OK) {
        free(text);
        return fl_err_set(err, rv, "cannot read the header: %s", fl_strerror(rv));
    }
    *ret_text = text;
    *ret_len = (size_t)len;
    return FL_OK;
}

/*
 * Take the checksum from the header, if it has one, and start its computation with the header's
 * bytes.
 */
static int take_checksum(struct fl_st_file *file, const uint8_t prefix[8], const char *text,
                         size_t len, struct fl_err *err)
{
    const size_t head = strlen(FL_ST_CHECKSUM_HEAD);
    const size_t digits = FL_CHECKSUM_TEXT - 1;

    if (len < head + digits + 1 || memcmp(text, FL_ST_CHECKSUM_HEAD, head) != 0 ||
        text[head + digits] != '"')
    {
        return FL_OK;
    }
    if (fl_summer_new(&file->summer) != FL_OK) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    (void)memcpy(file->checksum, text + head, digits);
    fl_summer_add(file->summer, prefix, 8);
    fl_summer_add(file->summer, text, head);
    fl_summer_add(file->summer, FL_ST_CHECKSUM_NONE, digits);
    fl_summer_add(file->summer, text + head + digits, len - head - digits);
    return FL_OK;
}

static int parse_file(struct fl_st_file *file, uint64_t file_len, struct fl_err *err)
{
    uint8_t prefix[8] = {0};
    char *text = NULL;
    size_t len = 0;
    int rv = st_read_header(file->fd, file_len, prefix, &text, &len, err);
    json_error_t jerr;

    if (rv != FL_OK) {
        return rv;
    }
    rv = st_check_json_size(text, len, err);
    if (rv != FL_OK) {
        goto done;
    }
    file->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &jerr);
    if (file->root == NULL && json_error_code(&jerr) == json_error_out_of_memory) {
        rv = fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
        goto done;
    }
    if (file->root == NULL) {
        rv = fl_err_set(err, FL_EFORMAT, "the header is not JSON: %.100s (byte %d)", jerr.text,
                        jerr.position);
        goto done;
    }
    if (!json_is_object(file->root)) {
        rv = fl_err_set(err, FL_EFORMAT, "the header is not a JSON object");
        goto done;
    }
    rv = take_checksum(file, prefix, text, len, err);
    if (rv != FL_OK) {
        goto done;
    }
    file->data_offset = sizeof(uint64_t) + len;
    rv = parse_entries(file, file_len - file->data_offset, err);
done:
    free(text);
    return rv;
}

int fl_st_open(const char *path, struct fl_st_file *ret, struct fl_err *err)
{
    struct fl_st_file file = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
    struct stat st;
    int rv;

    if (file.fd < 0 || fstat(file.fd, &st) != 0) {
        int saved = errno;

        fl_st_close(&file);
        return fl_err_set(err, fl_err_from_errno(saved), "cannot open '%s': %s", path,
                          strerror(saved));
    }
    if (!S_ISREG(st.st_mode)) {
        rv = fl_err_set(err, FL_EFORMAT, "not a regular file");
    } else {
        rv = parse_file(&file, (uint64_t)st.st_size, err);
    }
    if (rv != FL_OK) {
        fl_st_close(&file);
        return fl_err_wrap(err, rv, "safetensors file '%s'", path);
    }
    *ret = file;
    return FL_OK;
}

void fl_st_close(struct fl_st_file *file)
{
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    if (file->root != NULL) {
        json_decref(file->root);
    }
    free(file->entries);
    fl_summer_free(file->summer);
    *file = (struct fl_st_file){.fd = -1};
}

const char *fl_st_meta_of(const struct fl_st_file *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->root, "__metadata__"), key));
}
