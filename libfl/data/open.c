/*
 * Opens the train or test part of a folder: finds its files, whose names are in the table
 * `formats`, and calls the reader of their format. Also fl_dataset_has() and fl_dataset_stamp().
 * Blocking I/O on the caller's thread.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "libfl/base/rng.h"
#include "libfl/base/str.h"
#include "libfl/data/format.h"
#include "libfl/data/zip.h"

#define PATH_SIZE 4096
/* Limit of CIFAR batch files in a folder; CIFAR-10 has five. */
#define BATCHES_MAX 64

struct place {
    const char *folder;
    bool test;
};

/* Set `out` to `folder`/`name`, or with ".gz" when only that file exists. False: neither exists. */
static bool find_file(const struct place *at, const char *name, char *out)
{
    char packed[PATH_SIZE];

    if (fl_fs_join(out, PATH_SIZE, at->folder, name) != FL_OK) {
        return false;
    }
    if (!fl_fs_exists(out) &&
        (size_t)snprintf(packed, sizeof(packed), "%s.gz", out) < sizeof(packed) &&
        fl_fs_exists(packed))
    {
        (void)memcpy(out, packed, sizeof(packed));
        return true;
    }
    return fl_fs_exists(out);
}

typedef int (*read_pair_cb)(struct fl_source *x, struct fl_source *y, struct fl_dataset **ret,
                            struct fl_err *err);

static int keep_source(struct fl_dataset *ds, const char *format, const char *path)
{
    ds->format = format;
    ds->source = fl_str_dup(path);
    return ds->source != NULL ? FL_OK : FL_ENOMEM;
}

/* Load a pair of files, features and labels. */
static int load_pair(const struct place *at, const char *format, const char *x_name,
                     const char *y_name, read_pair_cb read_pair, struct fl_dataset **ret,
                     struct fl_err *err)
{
    char x_path[PATH_SIZE];
    char y_path[PATH_SIZE];
    bool has_x = find_file(at, x_name, x_path);
    bool has_y = find_file(at, y_name, y_path);
    struct fl_dataset *ds = NULL;
    struct fl_source x;
    struct fl_source y;
    int rv;

    if (!has_x || !has_y) {
        return fl_err_set(err, FL_ENOENT, "'%s' exists but '%s' is missing",
                          has_x ? x_path : y_path, has_x ? y_path : x_path);
    }
    rv = fl__source_open(&x, x_path, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__source_open(&y, y_path, err);
    if (rv != FL_OK) {
        fl__source_close(&x);
        return rv;
    }
    rv = read_pair(&x, &y, &ds, err);
    fl__source_close(&y);
    fl__source_close(&x);
    if (rv != FL_OK) {
        return rv;
    }
    if (keep_source(ds, format, y_path) != FL_OK) {
        fl_dataset_free(ds);
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot open it", at->folder);
    }
    *ret = ds;
    return FL_OK;
}

/* MNIST and data sets of the same format; then EMNIST as distributed, one split per folder. */
static const struct {
    const char *begin, *test;
} idx_sets[] = {{"", "t10k"},
                {"emnist-byclass-", "test"},
                {"emnist-bymerge-", "test"},
                {"emnist-balanced-", "test"},
                {"emnist-letters-", "test"},
                {"emnist-digits-", "test"},
                {"emnist-mnist-", "test"}};
#define N_IDX_SETS (sizeof(idx_sets) / sizeof(idx_sets[0]))
#define IDX_NAME   64
static const char *const npy_names[2][2] = {
    {"train-x.npy", "train-y.npy"},
    {"test-x.npy", "test-y.npy"},
};
static const char *const csv_names[2] = {"train.csv", "test.csv"};

static bool has_either(const struct place *at, const char *const names[2])
{
    char path[PATH_SIZE];

    return find_file(at, names[0], path) || find_file(at, names[1], path);
}

/* Find the first existing set from index `set`; N_IDX_SETS: none. */
static size_t idx_find(const struct place *at, size_t set, char names[2][IDX_NAME])
{
    for (; set < N_IDX_SETS; set++) {
        const char *both[2] = {names[0], names[1]};
        const char *begin = idx_sets[set].begin;
        const char *part = at->test ? idx_sets[set].test : "train";

        /* File names of the images and of the labels. */
        (void)snprintf(names[0], IDX_NAME, "%s%s-images-idx3-ubyte", begin, part);
        (void)snprintf(names[1], IDX_NAME, "%s%s-labels-idx1-ubyte", begin, part);
        if (has_either(at, both)) {
            break;
        }
    }
    return set;
}

static bool idx_probe(const struct place *at)
{
    char names[2][IDX_NAME];

    return idx_find(at, 0, names) < N_IDX_SETS;
}

static int idx_load(const struct place *at, struct fl_dataset **ret, struct fl_err *err)
{
    char names[2][IDX_NAME];
    char more[2][IDX_NAME];
    size_t set = idx_find(at, 0, names);

    if (idx_find(at, set + 1, more) < N_IDX_SETS) {
        return fl_err_set(err, FL_EFORMAT,
                          "folder '%s' contains two data sets, '%s' and '%s': move each to its own "
                          "folder",
                          at->folder, names[0], more[0]);
    }
    return load_pair(at, "idx", names[0], names[1], fl__idx_read, ret, err);
}

static bool npy_probe(const struct place *at)
{
    return has_either(at, npy_names[at->test]);
}

static int npy_load(const struct place *at, struct fl_dataset **ret, struct fl_err *err)
{
    const char *const *names = npy_names[at->test];

    return load_pair(at, "npy", names[0], names[1], fl__npy_read, ret, err);
}

/* The archive of a part: train.npz, or data.npz with the arrays of both parts. */
struct npz_names {
    char path[PATH_SIZE];
    const char *x, *y; /* entries */
    bool both;         /* of data.npz, which may lack a part */
};

static bool npz_find(const struct place *at, struct npz_names *ret)
{
    if (fl_fs_join(ret->path, sizeof(ret->path), at->folder, at->test ? "test.npz" : "train.npz") ==
            FL_OK &&
        fl_fs_exists(ret->path))
    {
        ret->x = "x.npy";
        ret->y = "y.npy";
        ret->both = false;
        return true;
    }
    ret->x = at->test ? "x_test.npy" : "x_train.npy";
    ret->y = at->test ? "y_test.npy" : "y_train.npy";
    ret->both = true;
    return fl_fs_join(ret->path, sizeof(ret->path), at->folder, "data.npz") == FL_OK &&
           fl_fs_exists(ret->path);
}

static bool npz_probe(const struct place *at)
{
    struct npz_names names;
    struct fl__zip zip;
    bool has;

    if (!npz_find(at, &names)) {
        return false;
    }
    if (!names.both || fl__zip_open(&zip, names.path, NULL) != FL_OK) {
        return true; /* Loading reports the error. */
    }
    has = fl__zip_has(&zip, names.x) || fl__zip_has(&zip, names.y) || !at->test;
    fl__zip_close(&zip);
    return has;
}

static int npz_load(const struct place *at, struct fl_dataset **ret, struct fl_err *err)
{
    struct npz_names names;
    struct fl_dataset *ds = NULL;
    struct fl__zip zip;
    int rv;

    (void)npz_find(at, &names);
    rv = fl__zip_open(&zip, names.path, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__npz_read(&zip, names.x, names.y, &ds, err);
    fl__zip_close(&zip);
    if (rv != FL_OK) {
        return rv;
    }
    if (keep_source(ds, "npz", names.path) != FL_OK) {
        fl_dataset_free(ds);
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot open it", at->folder);
    }
    *ret = ds;
    return FL_OK;
}

static bool csv_probe(const struct place *at)
{
    char path[PATH_SIZE];

    return find_file(at, csv_names[at->test], path);
}

static int csv_load(const struct place *at, struct fl_dataset **ret, struct fl_err *err)
{
    char path[PATH_SIZE];
    struct fl_dataset *ds = NULL;
    struct fl_source src;
    int rv;

    (void)find_file(at, csv_names[at->test], path);
    rv = fl__source_open(&src, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__csv_read(&src, &ds, err);
    fl__source_close(&src);
    if (rv != FL_OK) {
        return rv;
    }
    if (keep_source(ds, "csv", path) != FL_OK) {
        fl_dataset_free(ds);
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot open it", at->folder);
    }
    *ret = ds;
    return FL_OK;
}

/* The name without ".gz" of a CIFAR batch of this part, into `out`; false for other files. */
static bool batch_name(const char *file, bool test, char out[FL_NAME_MAX])
{
    size_t len = strlen(file);

    if (len > 3 && strcmp(file + len - 3, ".gz") == 0) {
        len -= 3;
    }
    if (len < 4 || len >= FL_NAME_MAX || memcmp(file + len - 4, ".bin", 4) != 0) {
        return false;
    }
    (void)memcpy(out, file, len);
    out[len] = '\0';
    return test ? strcmp(out, "test_batch.bin") == 0 : strncmp(out, "data_batch_", 11) == 0;
}

/* data_batch_2 before data_batch_10. */
static int batch_order(const void *a, const void *b)
{
    size_t la = strlen(a);
    size_t lb = strlen(b);

    return la != lb ? (la < lb ? -1 : 1) : strcmp(a, b);
}

/* List the batch files of the part, sorted, each once whether plain or packed. */
static int list_batches(const struct place *at, char names[BATCHES_MAX][FL_NAME_MAX], size_t *ret_n,
                        struct fl_err *err)
{
    char name[FL_NAME_MAX];
    const struct dirent *entry;
    size_t n = 0;
    size_t i;
    DIR *dir = opendir(at->folder);

    if (dir == NULL) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot open folder '%s': %s", at->folder,
                          strerror(errno));
    }
    while ((entry = readdir(dir)) != NULL) {
        if (!batch_name(entry->d_name, at->test, name)) {
            continue;
        }
        for (i = 0; i < n && strcmp(names[i], name) != 0; i++) {
        }
        if (i < n) {
            continue;
        }
        if (n == BATCHES_MAX) {
            (void)closedir(dir);
            return fl_err_set(err, FL_ELIMIT, "'%s': more than %d files data_batch_*.bin",
                              at->folder, BATCHES_MAX);
        }
        (void)memcpy(names[n++], name, sizeof(name));
    }
    (void)closedir(dir);
    qsort(names, n, sizeof(names[0]), batch_order);
    *ret_n = n;
    return FL_OK;
}

static bool cifar_probe(const struct place *at)
{
    char names[BATCHES_MAX][FL_NAME_MAX];
    size_t n = 0;

    /* Loading reports the error. */
    return list_batches(at, names, &n, NULL) != FL_OK || n > 0;
}

static int cifar_load(const struct place *at, struct fl_dataset **ret, struct fl_err *err)
{
    char names[BATCHES_MAX][FL_NAME_MAX];
    char path[PATH_SIZE] = "";
    struct fl_dataset *ds = NULL;
    struct fl_source src;
    size_t n = 0;
    size_t i;
    int rv = list_batches(at, names, &n, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_dataset_create(FL_DATA_U8, 0, (const size_t[]){3, 32, 32}, 3, &ds, err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < n; i++) {
        (void)find_file(at, names[i], path);
        rv = fl__source_open(&src, path, err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = fl__cifar_append(&src, ds, err);
        fl__source_close(&src);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    if (keep_source(ds, "cifar", n == 1 ? path : at->folder) != FL_OK) {
        rv = fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot open it", at->folder);
        goto fail;
    }
    *ret = ds;
    return FL_OK;
fail:
    fl_dataset_free(ds);
    return rv;
}

static const struct format {
    const char *name;
    const char *files[2]; /* for messages: train, test */
    bool (*probe)(const struct place *at);
    int (*load)(const struct place *at, struct fl_dataset **ret, struct fl_err *err);
} formats[] = {
    {"IDX",
     {"train-images-idx3-ubyte[.gz] and train-labels-idx1-ubyte[.gz] (or emnist-SPLIT-train-...)",
      "t10k-images-idx3-ubyte[.gz] and t10k-labels-idx1-ubyte[.gz] (or emnist-SPLIT-test-...)"},
     idx_probe,
     idx_load},
    {"CIFAR", {"data_batch_*.bin[.gz]", "test_batch.bin[.gz]"}, cifar_probe, cifar_load},
    {"NPY",
     {"train-x.npy[.gz] and train-y.npy[.gz]", "test-x.npy[.gz] and test-y.npy[.gz]"},
     npy_probe,
     npy_load},
    {"NPZ",
     {"train.npz (arrays x and y) or data.npz (x_train, y_train)",
      "test.npz (arrays x and y) or data.npz (x_test, y_test)"},
     npz_probe,
     npz_load},
    {"CSV", {"train.csv[.gz]", "test.csv[.gz]"}, csv_probe, csv_load},
};

#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

static int dataset_check_folder(const char *folder, struct fl_err *err)
{
    DIR *dir;

    if (strlen(folder) >= PATH_SIZE - FL_NAME_MAX) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", folder);
    }
    dir = opendir(folder);
    if (dir == NULL) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot open folder '%s': %s", folder,
                          strerror(errno));
    }
    (void)closedir(dir);
    return FL_OK;
}

/* The files of the part in every format, for a message. */
static void dataset_list_names(const struct place *at, char *out, size_t size)
{
    size_t used = 0;
    size_t i;

    for (i = 0; i < N_FORMATS && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? "; " : "",
                                 formats[i].files[at->test]);
    }
}

bool fl_dataset_has(const char *folder, const char *part)
{
    struct place at = {.folder = folder, .test = strcmp(part, "test") == 0};
    bool known = at.test || strcmp(part, "train") == 0;
    bool found = false;
    size_t i;

    for (i = 0; i < N_FORMATS && known && dataset_check_folder(folder, NULL) == FL_OK; i++) {
        found = found || formats[i].probe(&at);
    }
    return found;
}

/* Hashes are summed, so that the order of names in the folder does not matter. */
static int add_stamp(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    uint64_t *sum = ctx;
    char path[PATH_SIZE];
    struct stat st;
    uint64_t of[6];
    static const char *const begins[] = {"train",      "test",     "t10k",    "emnist-",
                                         "data_batch", "data.npz", "norm.npy"};
    bool found = false;
    size_t i;

    (void)err;
    /* Files of a part in any format are known by the beginning of their names. */
    for (i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
        found = found || strncmp(name, begins[i], strlen(begins[i])) == 0;
    }
    if (!found || fl_fs_join(path, sizeof(path), folder, name) != FL_OK || stat(path, &st) != 0) {
        return FL_OK;
    }
    of[0] = fl_hash64(name, strlen(name));
    of[1] = (uint64_t)st.st_size;
    of[2] = (uint64_t)st.st_mtim.tv_sec;
    of[3] = (uint64_t)st.st_mtim.tv_nsec;
    of[4] = (uint64_t)st.st_ino;
    of[5] = (uint64_t)st.st_dev;
    *sum += fl_hash64(of, sizeof(of));
    return FL_OK;
}

uint64_t fl_dataset_stamp(const char *folder)
{
    uint64_t sum = 0;

    if (fl_fs_each(folder, add_stamp, &sum, NULL) != FL_OK) {
        return 0;
    }
    return sum;
}

/* The one format of the part. */
static int dataset_find_format(const struct place *at, const char *part, const struct format **ret,
                               struct fl_err *err)
{
    const struct format *found = NULL;
    char names[768];
    size_t i;
    int rv;

    if (!at->test && strcmp(part, "train") != 0) {
        return fl_err_set(err, FL_EINVAL, "expected part 'train' or 'test', found '%s'", part);
    }
    rv = dataset_check_folder(at->folder, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < N_FORMATS; i++) {
        if (!formats[i].probe(at)) {
            continue;
        }
        if (found != NULL) {
            return fl_err_set(err, FL_EFORMAT,
                              "folder '%s' contains the %s part in two formats, %s and %s; remove "
                              "one",
                              at->folder, part, found->name, formats[i].name);
        }
        found = &formats[i];
    }
    if (found == NULL) {
        dataset_list_names(at, names, sizeof(names));
        return fl_err_set(err, FL_ENOENT, "folder '%s' contains no %s data; looked for %s",
                          at->folder, part, names);
    }
    *ret = found;
    return FL_OK;
}

int fl_dataset_read_norm(const char *folder, struct fl_dataset *ds, struct fl_err *err)
{
    struct place at = {.folder = folder};
    char path[PATH_SIZE];
    struct fl_source src;
    int rv;

    if (!find_file(&at, "norm.npy", path)) {
        return FL_OK;
    }
    rv = fl__source_open(&src, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__norm_read(&src, ds, err);
    fl__source_close(&src);
    return rv;
}

int fl_dataset_open(const char *folder, const char *part, struct fl_dataset **ret,
                    struct fl_err *err)
{
    struct place at = {.folder = folder, .test = strcmp(part, "test") == 0};
    const struct format *found = NULL;
    struct fl_dataset *ds = NULL;
    int rv = dataset_find_format(&at, part, &found, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = found->load(&at, &ds, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_dataset_read_norm(folder, ds, err);
    if (rv != FL_OK) {
        fl_dataset_free(ds);
        return rv;
    }
    *ret = ds;
    return FL_OK;
}

int fl_dataset_format(const char *folder, const char *part, const char **ret, struct fl_err *err)
{
    struct place at = {.folder = folder, .test = strcmp(part, "test") == 0};
    const struct format *found = NULL;
    int rv = dataset_find_format(&at, part, &found, err);

    if (rv != FL_OK) {
        return rv;
    }
    *ret = found->name;
    return FL_OK;
}
