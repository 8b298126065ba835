/*
 * A data set in any format (import.h): pictures, texts and tables by the readers of this room,
 * everything else by those of libfl/data. Blocking I/O on the caller's thread; no state.
 */
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/import/import.h"

/*
 * The characters of LEAF's Shakespeare (Caldas et al. 2018, models/utils/language_utils.py), in
 * their order: those of the preset shakespeare_lstm.
 */
#define LEAF_CHARACTERS \
    "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"

const char *fl_import_characters(const char *name)
{
    return name != NULL && strcmp(name, "leaf") == 0 ? LEAF_CHARACTERS : name;
}

/*
 * Is the folder to be read by this room? Pictures and texts have no other format; a table is, when
 * the train part is CSV.
 */
static int any_is_import(const char *folder, bool *ret, struct fl_err *err)
{
    enum fl_import_kind kind = FL_IMPORT_TABLE;
    bool has = fl_import_has(folder, &kind);
    const char *format = "";
    struct fl_err found = {0};
    int rv = fl_dataset_format(folder, "train", &format, &found);

    *ret = false;
    if (!has || rv == FL_ENOENT) {
        *ret = has && kind != FL_IMPORT_TABLE;
        return FL_OK;
    }
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", found.msg);
    }
    if (kind != FL_IMPORT_TABLE) {
        return fl_err_set(err, FL_EFORMAT,
                          "folder '%s' contains data of two kinds, %s and %s; remove one", folder,
                          fl_import_kinds[kind], format);
    }
    *ret = strcmp(format, "CSV") == 0;
    return FL_OK;
}

static int any_import(const char *folder, const struct fl_import_conf *conf,
                      struct fl_import *import, struct fl_err *err)
{
    int rv = fl_import_open(folder, conf, import, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (import->train != NULL) {
        rv = fl_dataset_read_norm(folder, import->train, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return import->test != NULL ? fl_dataset_read_norm(folder, import->test, err) : FL_OK;
}

/* The train part in a format of libfl/data; it may be missing beside a test part. */
static int any_train(const char *folder, struct fl_dataset **ret, struct fl_err *err)
{
    struct fl_err why = {0};
    int rv;

    if (!fl_dataset_has(folder, "train") && fl_dataset_has(folder, "test")) {
        return FL_OK;
    }
    rv = fl_dataset_open(folder, "train", ret, &why);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s%s", fl_err_text(&why, rv),
                          rv == FL_ENOENT && fl_fs_exists(folder)
                              ? "; train/CLASS/ with PNG or JPEG pictures; train.txt[.gz]"
                              : "");
    }
    return FL_OK;
}

int fl_import_any(const char *folder, const struct fl_import_conf *conf, struct fl_import *ret,
                  struct fl_err *err)
{
    struct fl_import any = {.train = NULL};
    bool import = false;
    int rv = any_is_import(folder, &import, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!import && conf->schema != NULL) {
        return fl_err_set(err, FL_EINVAL,
                          "a schema is for pictures, texts and tables, which '%s' does not contain",
                          folder);
    }
    rv = import ? any_import(folder, conf, &any, err) : any_train(folder, &any.train, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (any.test == NULL && fl_dataset_has(folder, "test")) {
        rv = fl_dataset_open(folder, "test", &any.test, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = any;
    return FL_OK;
fail:
    fl_import_done(&any);
    return rv;
}
