/* schema.json: a schema (libfl/import/schema.h) as JSON, for people and for other folders. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/import/import.h"
#include "tools/fl_data/fl_data.h"

/* Bytes of a schema.json: 65536 texts of 4096 bytes would be more, and are no names. */
#define SCHEMA_MAX ((size_t)64 << 20)

static json_t *schema_words_json(const struct fl_words *words)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; i < words->n; i++) {
        if (json_array_append_new(list, json_string(words->text[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *schema_columns_json(const struct fl_schema *schema)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; i < schema->n_columns; i++) {
        const struct fl_schema_column *column = &schema->columns[i];
        json_t *one =
            json_pack("{s:s, s:s}", "name", column->name, "role", fl_column_roles[column->role]);

        if (column->role == FL_COLUMN_NUMBER) {
            (void)json_object_set_new(one, "mean", json_real(column->mean));
        } else if (column->role == FL_COLUMN_CATEGORY) {
            (void)json_object_set_new(one, "values", schema_words_json(&column->values));
        }
        if (json_array_append_new(list, one) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *schema_json(const struct fl_schema *schema)
{
    json_t *root =
        json_pack("{s:s, s:s, s:o}", "made_by", "fl-data " PACKAGE_VERSION, "kind",
                  fl_import_kinds[schema->kind], "labels", schema_words_json(&schema->labels));
    int rv = root != NULL ? 0 : -1;

    switch (schema->kind) {
    case FL_IMPORT_IMAGES:
        rv += json_object_set_new(root, "shape",
                                  json_pack("[I, I, I]", (json_int_t)schema->dims[0],
                                            (json_int_t)schema->dims[1],
                                            (json_int_t)schema->dims[2]));
        break;
    case FL_IMPORT_TEXT:
        rv += json_object_set_new(root, "window", json_integer((json_int_t)schema->window));
        break;
    case FL_IMPORT_TABLE:
        rv += json_object_set_new(root, "one_hot", json_boolean(schema->one_hot));
        rv += json_object_set_new(root, "missing", json_string(fl_missing_rules[schema->missing]));
        rv += json_object_set_new(root, "columns", schema_columns_json(schema));
        break;
    }
    if (rv != 0) { /* out of memory, or a text that is not UTF-8 */
        json_decref(root);
        return NULL;
    }
    return root;
}

int write_schema(const char *folder, const struct input *input, struct fl_err *err)
{
    char path[PATH_SIZE];
    json_t *root;
    int rv = FL_OK;

    if (!input->has_schema) {
        return FL_OK;
    }
    if (fl_fs_join(path, sizeof(path), folder, SCHEMA_FILE) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", folder);
    }
    root = schema_json(&input->schema);
    if (root == NULL) {
        return fl_err_set(err, FL_EFORMAT,
                          "cannot write '%s': a name is not UTF-8, or out of memory", path);
    }
    if (json_dump_file(root, path, JSON_INDENT(1) | JSON_PRESERVE_ORDER) != 0) {
        rv = fl_err_set(err, FL_EIO, "cannot write '%s'", path);
    }
    json_decref(root);
    return rv;
}

static int schema_bad(const char *path, const char *where, const char *expected, struct fl_err *err)
{
    return fl_err_set(err, FL_EFORMAT, "'%s': %s: expected %s", path, where, expected);
}

/* A list of different texts into `ret`, in its order. */
static int schema_read_words(const char *path, const char *where, const json_t *list,
                             struct fl_words *ret, struct fl_err *err)
{
    uint32_t number;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > FL_SCHEMA_MAX_WORDS) {
        return schema_bad(path, where, "a list of at most 65536 texts", err);
    }
    for (i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        if (!json_is_string(one) ||
            fl_words_find(ret, json_string_value(one), json_string_length(one), &number))
        {
            return schema_bad(path, where, "a list of different texts", err);
        }
        if (fl_words_add(ret, json_string_value(one), json_string_length(one), &number) != FL_OK) {
            return fl_err_set(err, FL_ENOMEM, "'%s': out of memory", path);
        }
    }
    return FL_OK;
}

/* The index of the text of `value` in `words`; -1: not one of them. */
static int schema_word(const json_t *value, const char *const *words)
{
    const char *text = json_string_value(value);
    int i;

    for (i = 0; text != NULL && words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static int schema_read_column(const char *path, const json_t *from, struct fl_schema_column *column,
                              struct fl_err *err)
{
    const char *name = json_string_value(json_object_get(from, "name"));
    const json_t *mean = json_object_get(from, "mean");
    int role = schema_word(json_object_get(from, "role"), fl_column_roles);

    if (name == NULL || role < 0) {
        return schema_bad(path, "columns",
                          "for each column its name and its role: number, category, label, target "
                          "or dropped",
                          err);
    }
    column->role = (enum fl_column_role)role;
    column->name = fl_str_dup(name);
    if (column->name == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory", path);
    }
    if (column->role == FL_COLUMN_NUMBER) {
        if (!json_is_number(mean)) {
            return schema_bad(path, "columns", "the mean of each number", err);
        }
        column->mean = json_number_value(mean);
    }
    return column->role == FL_COLUMN_CATEGORY
               ? schema_read_words(path, "values", json_object_get(from, "values"), &column->values,
                                   err)
               : FL_OK;
}

static int schema_read_table(const char *path, const json_t *root, struct fl_schema *schema,
                             struct fl_err *err)
{
    const json_t *columns = json_object_get(root, "columns");
    const json_t *one_hot = json_object_get(root, "one_hot");
    int missing = schema_word(json_object_get(root, "missing"), fl_missing_rules);
    size_t labels = 0;
    size_t i;
    int rv;

    if (!json_is_boolean(one_hot) || missing < 0) {
        return schema_bad(path, "one_hot, missing", "true or false, and refuse, mean or skip", err);
    }
    schema->one_hot = json_is_true(one_hot);
    schema->missing = (enum fl_missing)missing;
    if (!json_is_array(columns) || json_array_size(columns) == 0 ||
        json_array_size(columns) > FL_SCHEMA_MAX_DIM)
    {
        return schema_bad(path, "columns", "the list of columns", err);
    }
    schema->columns = calloc(json_array_size(columns), sizeof(*schema->columns));
    if (schema->columns == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory", path);
    }
    for (i = 0; i < json_array_size(columns); i++) {
        schema->n_columns = i + 1;
        rv = schema_read_column(path, json_array_get(columns, i), &schema->columns[i], err);
        if (rv != FL_OK) {
            return rv;
        }
        labels += schema->columns[i].role == FL_COLUMN_LABEL;
    }
    if (labels + fl_schema_targets(schema) == 0 || labels > 1 ||
        (labels == 1 && fl_schema_targets(schema) > 0))
    {
        return schema_bad(path, "columns", "one column with role label, or some with role target",
                          err);
    }
    return FL_OK;
}

static int schema_read_kind(const char *path, const json_t *root, struct fl_schema *schema,
                            struct fl_err *err)
{
    const json_t *shape = json_object_get(root, "shape");
    json_int_t window = json_integer_value(json_object_get(root, "window"));
    size_t i;

    switch (schema->kind) {
    case FL_IMPORT_IMAGES:
        for (i = 0; i < 3; i++) {
            json_int_t size = json_integer_value(json_array_get(shape, i));

            if (size < 1 || size > FL_IMPORT_MAX_SIDE) {
                return schema_bad(path, "shape", "channels, height and width", err);
            }
            schema->dims[i] = (size_t)size;
        }
        return FL_OK;
    case FL_IMPORT_TEXT:
        if (window < 1 || window > FL_IMPORT_MAX_WINDOW) {
            return schema_bad(path, "window", "a number of characters from 1 to 65536", err);
        }
        schema->window = (size_t)window;
        return FL_OK;
    case FL_IMPORT_TABLE:
        return schema_read_table(path, root, schema, err);
    }
    return FL_OK;
}

int read_schema(const char *path, struct fl_schema *ret, struct fl_err *err)
{
    struct fl_schema schema = {.n_columns = 0};
    struct fl_buf file;
    json_error_t at;
    json_t *root;
    int kind;
    int rv = fl_fs_read(path, SCHEMA_MAX, &file, err);

    if (rv != FL_OK) {
        return rv;
    }
    root = json_loadb((const char *)file.data, file.len, JSON_REJECT_DUPLICATES, &at);
    fl_buf_done(&file);
    if (root == NULL) {
        return fl_err_set(err, FL_EFORMAT, "'%s', line %d, column %d: %s", path, at.line, at.column,
                          at.text);
    }
    kind = schema_word(json_object_get(root, "kind"), fl_import_kinds);
    if (kind < 0) {
        rv = schema_bad(path, "kind", "images, text or table", err);
        goto fail;
    }
    schema.kind = (enum fl_import_kind)kind;
    rv = schema_read_words(path, "labels", json_object_get(root, "labels"), &schema.labels, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = schema_read_kind(path, root, &schema, err);
    if (rv != FL_OK) {
        goto fail;
    }
    json_decref(root);
    *ret = schema;
    return FL_OK;
fail:
    json_decref(root);
    fl_schema_done(&schema);
    return rv;
}
