/* Finds the parts of a folder and reads them with one schema (import.h). */
#include "libfl/import/import.h"

#include <stdio.h>
#include <sys/stat.h>

#include "libfl/base/str.h"
#include "libfl/import/import_impl.h"

static const char *const import_parts[2] = {"train", "test"};

void fl_import_conf_init(struct fl_import_conf *conf)
{
    *conf = (struct fl_import_conf){.window = 80, .stride = 1, .one_hot = true};
}

/* The path of a part of this kind, also packed; false: it does not exist. */
static bool import_find(const char *folder, const char *part, enum fl_import_kind kind,
                        char path[FL__IMPORT_PATH])
{
    static const char *const ends[] = {
        [FL_IMPORT_IMAGES] = "", [FL_IMPORT_TEXT] = ".txt", [FL_IMPORT_TABLE] = ".csv"};
    struct stat st;
    int packed;

    for (packed = 0; packed < (kind == FL_IMPORT_IMAGES ? 1 : 2); packed++) {
        int len = snprintf(path, FL__IMPORT_PATH, "%s/%s%s%s", folder, part, ends[kind],
                           packed != 0 ? ".gz" : "");

        if (len > 0 && len < FL__IMPORT_PATH && stat(path, &st) == 0 &&
            (S_ISDIR(st.st_mode) != 0) == (kind == FL_IMPORT_IMAGES))
        {
            return true;
        }
    }
    return false;
}

bool fl_import_has(const char *folder, enum fl_import_kind *ret)
{
    char path[FL__IMPORT_PATH];
    enum fl_import_kind kind;
    size_t p;

    for (p = 0; p < 2; p++) {
        for (kind = FL_IMPORT_IMAGES; kind <= FL_IMPORT_TABLE; kind++) {
            if (import_find(folder, import_parts[p], kind, path)) {
                *ret = kind;
                return true;
            }
        }
    }
    return false;
}

/* Two kinds of one part: it would be unclear which one was used. */
static int import_check_kinds(const char *folder, enum fl_import_kind kind, struct fl_err *err)
{
    char path[FL__IMPORT_PATH];
    enum fl_import_kind other;
    size_t p;

    for (other = FL_IMPORT_IMAGES; other <= FL_IMPORT_TABLE; other++) {
        for (p = 0; p < 2 && other != kind; p++) {
            if (import_find(folder, import_parts[p], other, path)) {
                return fl_err_set(
                    err, FL_EFORMAT,
                    "folder '%s' contains data of two kinds, %s and %s ('%s'); remove "
                    "one",
                    folder, fl_import_kinds[kind], fl_import_kinds[other], path);
            }
        }
    }
    return FL_OK;
}

static int import_read_file(const char *path, const struct fl_import_conf *conf, bool derive,
                            struct fl_import *out, struct fl_dataset **ret, struct fl_err *err)
{
    struct fl_source src;
    int rv = fl__source_open(&src, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = out->schema.kind == FL_IMPORT_TEXT
             ? fl__next_char_read(&src, conf, derive, &out->schema, ret, err)
             : fl__table_import(&src, conf, derive, &out->schema, &out->skipped, ret, err);
    fl__source_close(&src);
    return rv;
}

static int import_read(const char *path, const struct fl_import_conf *conf, bool derive,
                       struct fl_import *out, struct fl_dataset **ret, struct fl_err *err)
{
    struct fl_dataset *ds = NULL;
    int rv = out->schema.kind == FL_IMPORT_IMAGES
                 ? fl__images_read(path, conf, derive, &out->schema, &ds, err)
                 : import_read_file(path, conf, derive, out, &ds, err);

    if (rv != FL_OK) {
        return rv;
    }
    ds->format = out->schema.kind == FL_IMPORT_TABLE ? "csv" : fl_import_kinds[out->schema.kind];
    ds->source = fl_str_dup(path);
    if (ds->source == NULL) {
        fl_dataset_free(ds);
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot open it", path);
    }
    *ret = ds;
    return FL_OK;
}

/* The train part, which makes the schema unless one is given, then the test part. */
static int import_parts_of(const char *folder, const struct fl_import_conf *conf,
                           struct fl_import *out, struct fl_err *err)
{
    char path[FL__IMPORT_PATH];
    enum fl_import_kind kind = out->schema.kind;
    bool derive = conf->schema == NULL;
    int rv;

    if (import_find(folder, import_parts[0], kind, path)) {
        rv = import_read(path, conf, derive, out, &out->train, err);
        if (rv != FL_OK) {
            return rv;
        }
    } else if (derive) {
        return fl_err_set(err, FL_ENOENT,
                          "folder '%s' contains no train part, of which the schema is made; "
                          "the schema of another folder can be given",
                          folder);
    }
    if (import_find(folder, import_parts[1], kind, path)) {
        rv = import_read(path, conf, false, out, &out->test, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_import_open(const char *folder, const struct fl_import_conf *conf, struct fl_import *ret,
                   struct fl_err *err)
{
    struct fl_import out = {.train = NULL};
    enum fl_import_kind kind = FL_IMPORT_TABLE;
    int rv;

    if (!fl_import_has(folder, &kind)) {
        return fl_err_set(err, FL_ENOENT,
                          "folder '%s' contains no train/CLASS/ with pictures, train.txt or "
                          "train.csv",
                          folder);
    }
    rv = import_check_kinds(folder, kind, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (conf->schema != NULL) {
        if (conf->schema->kind != kind) {
            return fl_err_set(err, FL_ESHAPE, "the schema is for %s, folder '%s' contains %s",
                              fl_import_kinds[conf->schema->kind], folder, fl_import_kinds[kind]);
        }
        if (fl_schema_copy(&out.schema, conf->schema) != FL_OK) {
            return fl_err_set(err, FL_ENOMEM, "out of memory for the schema");
        }
    }
    out.schema.kind = kind;
    out.has_schema = true;
    rv = import_parts_of(folder, conf, &out, err);
    if (rv != FL_OK) {
        fl_import_done(&out);
        return rv;
    }
    *ret = out;
    return FL_OK;
}

void fl_import_done(struct fl_import *import)
{
    fl_dataset_free(import->train);
    fl_dataset_free(import->test);
    fl_schema_done(&import->schema);
    *import = (struct fl_import){.train = NULL};
}
