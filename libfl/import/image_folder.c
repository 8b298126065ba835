/*
 * Pictures in class folders: FOLDER/CLASS/NAME.png. Classes and files in byte order of their names,
 * so that a folder gives the same set everywhere. Decoding is in picture.c.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "libfl/import/import_impl.h"
#include "libfl/import/picture.h"

/* The set that is being read; `path` is the current file. */
struct image_set {
    const struct fl_import_conf *conf;
    struct fl_schema *schema;
    struct fl_err *err;
    size_t dims[3];
    char first[FL__IMPORT_PATH]; /* the picture whose shape the others must have; "": a schema's */
    uint8_t *x;
    int32_t *y;
    size_t n, cap;
};

static int image_name_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int image_add_name(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    uint32_t number;

    if (name[0] == '.') {
        return FL_OK;
    }
    return fl_words_add(ctx, name, strlen(name), &number) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its names", folder);
}

/* The names in `folder`, sorted, into `ret`. */
static int image_list(const char *folder, struct fl_words *ret, struct fl_err *err)
{
    int rv = fl_fs_each(folder, image_add_name, ret, err);

    if (rv != FL_OK) {
        fl_words_done(ret);
        return rv;
    }
    if (ret->n > 0) {
        /* The order index is not used after this. */
        qsort(ret->text, ret->n, sizeof(*ret->text), image_name_order);
    }
    return FL_OK;
}

static bool image_is_picture(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 ||
                           strcasecmp(dot, ".jpeg") == 0);
}

static int image_check_shape(struct image_set *set, const char *path,
                             const struct fl_decoded *picture)
{
    const size_t dims[3] = {picture->channels, picture->height, picture->width};

    if (set->dims[0] == 0) {
        (void)memcpy(set->dims, dims, sizeof(dims));
        (void)snprintf(set->first, sizeof(set->first), "%s", path);
        return FL_OK;
    }
    if (memcmp(set->dims, dims, sizeof(dims)) == 0) {
        return FL_OK;
    }
    return fl_err_set(
        set->err, FL_ESHAPE,
        "'%s': expected a picture of %zu x %zu pixels and %zu channel%s as %s%s, found %zu x %zu "
        "and %zu%s",
        path, set->dims[1], set->dims[2], set->dims[0], set->dims[0] > 1 ? "s" : "",
        set->first[0] != '\0' ? "that of " : "the schema has", set->first, dims[1], dims[2],
        dims[0],
        dims[1] == set->dims[1] && dims[2] == set->dims[2]
            ? "; the option channels: 1 or 3 converts all pictures"
            : "; all pictures must have one size");
}

static int image_reserve(struct image_set *set)
{
    size_t dim = set->dims[0] * set->dims[1] * set->dims[2];
    size_t cap = set->cap < 64 ? 64 : set->cap + set->cap / 2;
    void *more;

    if (set->n < set->cap) {
        return FL_OK;
    }
    if (cap > FL_DATA_MAX_SAMPLES || cap > FL_DATA_MAX_BYTES / dim) {
        return fl_err_set(set->err, FL_ELIMIT, "'%s': more pictures than a data set may hold",
                          set->first);
    }
    more = realloc(set->x, cap * dim);
    if (more == NULL) {
        return fl_err_set(set->err, FL_ENOMEM, "out of memory after %zu pictures", set->n);
    }
    set->x = more;
    more = realloc(set->y, cap * sizeof(*set->y));
    if (more == NULL) {
        return fl_err_set(set->err, FL_ENOMEM, "out of memory after %zu pictures", set->n);
    }
    set->y = more;
    set->cap = cap;
    return FL_OK;
}

static int image_add_file(struct image_set *set, const char *path, int32_t label)
{
    struct fl_buf file;
    struct fl_decoded picture = {.pixels = NULL};
    size_t dim;
    int rv = fl_fs_read(path, FL_IMPORT_MAX_PICTURE, &file, set->err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_picture_decode(path, file.data, file.len, set->conf->channels, &picture, set->err);
    fl_buf_done(&file);
    if (rv != FL_OK) {
        return rv;
    }
    rv = image_check_shape(set, path, &picture);
    if (rv != FL_OK) {
        goto done;
    }
    rv = image_reserve(set);
    if (rv != FL_OK) {
        goto done;
    }
    dim = set->dims[0] * set->dims[1] * set->dims[2];
    (void)memcpy(set->x + set->n * dim, picture.pixels, dim);
    set->y[set->n++] = label;
done:
    free(picture.pixels);
    return rv;
}

/* All pictures of one class. */
static int image_add_class(struct image_set *set, const char *folder, int32_t label)
{
    struct fl_words files = {.n = 0};
    char path[FL__IMPORT_PATH];
    size_t i;
    int rv = image_list(folder, &files, set->err);

    if (rv != FL_OK) {
        return rv;
    }
    if (files.n == 0) {
        rv = fl_err_set(set->err, FL_EFORMAT,
                        "'%s': expected PNG or JPEG pictures of a class, found none", folder);
    }
    for (i = 0; i < files.n; i++) {
        if (fl_fs_join(path, sizeof(path), folder, files.text[i]) != FL_OK) {
            rv = fl_err_set(set->err, FL_ELIMIT, "path '%s' is too long", folder);
            break;
        }
        if (!image_is_picture(files.text[i])) {
            rv = fl_err_set(set->err, FL_EFORMAT,
                            "'%s': expected the name of a picture, ending with .png, .jpg or .jpeg",
                            path);
            break;
        }
        rv = image_add_file(set, path, label);
        if (rv != FL_OK) {
            break;
        }
    }
    fl_words_done(&files);
    return rv;
}

/* Reads the class folders `classes` of `folder`. */
static int image_add_classes(struct image_set *set, const char *folder,
                             const struct fl_words *classes)
{
    char path[FL__IMPORT_PATH];
    struct stat st;
    uint32_t label = 0;
    size_t i;
    int rv;

    for (i = 0; i < classes->n; i++) {
        const char *name = classes->text[i];

        if (fl_fs_join(path, sizeof(path), folder, name) != FL_OK) {
            return fl_err_set(set->err, FL_ELIMIT, "path '%s' is too long", folder);
        }
        if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
            return fl_err_set(set->err, FL_EFORMAT,
                              "'%s': expected a folder for each class with its pictures, found a "
                              "file",
                              path);
        }
        if (!fl_words_find(&set->schema->labels, name, strlen(name), &label)) {
            return fl_err_set(set->err, FL_ERANGE,
                              "'%s': class '%s' is not one of the %zu classes of the train part or "
                              "schema",
                              path, name, set->schema->labels.n);
        }
        rv = image_add_class(set, path, (int32_t)label);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* The classes of a new schema are the folders of the train part. */
static int image_derive(const char *folder, const struct fl_words *classes,
                        struct fl_schema *schema, struct fl_err *err)
{
    if (classes->n < 2) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': expected a folder for each of at least two classes, found %zu%s%s",
                          folder, classes->n, classes->n == 1 ? ": " : "",
                          classes->n == 1 ? classes->text[0] : "");
    }
    if (classes->n > FL_SCHEMA_MAX_WORDS) {
        return fl_err_set(err, FL_ELIMIT, "'%s': expected at most %d classes, found %zu", folder,
                          FL_SCHEMA_MAX_WORDS, classes->n);
    }
    return fl_words_copy(&schema->labels, classes) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its classes", folder);
}

int fl__images_read(const char *folder, const struct fl_import_conf *conf, bool derive,
                    struct fl_schema *schema, struct fl_dataset **ret, struct fl_err *err)
{
    struct image_set set = {.conf = conf, .schema = schema, .err = err};
    struct fl_words classes = {.n = 0};
    int rv = image_list(folder, &classes, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (derive) {
        rv = image_derive(folder, &classes, schema, err);
        if (rv != FL_OK) {
            goto done;
        }
    } else {
        (void)memcpy(set.dims, schema->dims, sizeof(set.dims));
    }
    rv = image_add_classes(&set, folder, &classes);
    if (rv != FL_OK) {
        goto done;
    }
    if (set.n == 0) {
        rv = fl_err_set(err, FL_EFORMAT, "'%s': holds no picture", folder);
        goto done;
    }
    (void)memcpy(schema->dims, set.dims, sizeof(set.dims));
    rv = fl__dataset_adopt(
        &(struct fl__arrays){
            .type = FL_DATA_U8, .n = set.n, .dims = set.dims, .n_dims = 3, .x = set.x, .y = set.y},
        ret, err);
    if (rv != FL_OK) {
        goto done;
    }
    set.x = NULL;
    set.y = NULL;
    (*ret)->classes = schema->labels.n;
done:
    free(set.x);
    free(set.y);
    fl_words_done(&classes);
    return rv;
}
