/* fl-data inspect: prints the contents of a folder. Reads and checks all samples. Main thread; it
   writes nothing to the folder. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "libfl/base/log.h"
#include "libfl/data/split.h"
#include "libfl/import/import.h"
#include "tools/fl_data/fl_data.h"

#define BAR 40
/* Maximum number of labels in one row of a split. */
#define ROW_LABELS 10

static const char summary[] =
    "Usage: fl-data inspect [OPTION]... DIR|FILE\n"
    "\n"
    "Print the contents of a folder: format, samples, shape, classes and how many samples each\n"
    "label has. Of a folder made by 'fl-data split', a line per client. Everything is read\n"
    "and checked. Known are\n"
    "  IDX    train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-... (.gz too)\n"
    "         emnist-SPLIT-train-images-idx3-ubyte, ... as EMNIST is distributed\n"
    "  CIFAR  data_batch_*.bin, test_batch.bin (.gz too)\n"
    "  NPY    train-x.npy, train-y.npy, test-x.npy, test-y.npy (.gz too)\n"
    "  NPZ    train.npz, test.npz with the arrays x and y; data.npz with x_train, y_train, ...\n"
    "  CSV    train.csv, test.csv (.gz too), the label in the last column\n"
    "and, for 'fl-data convert' and 'fl-data split'\n"
    "  images train/CLASS/*.png, *.jpg, test/...\n"
    "  text   train.txt, test.txt (.gz too): the next character\n"
    "  tables CSV with texts, missing values or values to be predicted\n"
    "\n"
    "Of a FILE of the server's or the client's state folder, or of fl-sim (uploads, personalized\n"
    "models, data summaries, results, client state, journals, partitions): its kind, version and\n"
    "sections, and whether its checksums are right. Exit status 1 when it is damaged.\n";

static const char *const part_names[2] = {"train", "test"};

/* Describes one folder as JSON, from which both outputs are made. */
static json_t *inspect_part_json(const char *part, const struct fl_dataset *ds)
{
    json_t *described;
    size_t *counts = calloc(ds->classes + 1, sizeof(*counts));
    json_t *labels = json_array();
    size_t i;

    if (counts == NULL) {
        json_decref(labels);
        return NULL;
    }
    fl_dataset_histogram(ds, counts);
    for (i = 0; i < ds->classes; i++) {
        (void)json_array_append_new(labels, json_integer((json_int_t)counts[i]));
    }
    free(counts);
    described = json_pack("{s:s, s:s, s:I, s:o, s:s, s:s, s:I, s:o}", "part", part, "format",
                          ds->format, "samples", (json_int_t)ds->n, "shape", shape_json(ds), "type",
                          fl_dataset_type_name(ds), "standardised_per", norm_name(ds), "classes",
                          (json_int_t)ds->classes, "labels", labels);
    if (described != NULL && ds->n_targets > 0) {
        (void)json_object_set_new(described, "targets", json_integer((json_int_t)ds->n_targets));
    }
    return described;
}

/* The names of the classes: of the texts that were read, or of the schema.json in the folder. */
static json_t *inspect_names(const char *path, const struct input *in, struct fl_err *err)
{
    struct fl_schema schema = {.n_columns = 0};
    const struct fl_words *names = &in->schema.labels;
    json_t *list = NULL;
    char file[PATH_SIZE];
    size_t i;

    if (!in->has_schema && fl_fs_join(file, sizeof(file), path, SCHEMA_FILE) == FL_OK &&
        fl_fs_exists(file))
    {
        if (read_schema(file, &schema, err) != FL_OK) {
            return NULL;
        }
        names = &schema.labels;
    }
    list = json_array();
    for (i = 0; i < names->n; i++) {
        (void)json_array_append_new(list, json_string(names->text[i]));
    }
    fl_schema_done(&schema);
    return list;
}

/* Do the daemons and fl-sim not read this set as it is? */
static bool inspect_needs_convert(const struct input *in)
{
    const struct fl_schema *schema = &in->schema;
    size_t i;

    if (!in->has_schema) {
        return false;
    }
    if (schema->kind != FL_IMPORT_TABLE || schema->labels.n > 0 ||
        schema->missing != FL_MISSING_REFUSE) {
        return true;
    }
    for (i = 0; i < schema->n_columns; i++) {
        if (schema->columns[i].role !=
            (i + 1 < schema->n_columns ? FL_COLUMN_NUMBER : FL_COLUMN_LABEL)) {
            return true;
        }
    }
    return false;
}

/* {"folder": …, "parts": […]}; without parts if there are none. */
static int inspect_folder_json(const char *name, const char *path, const struct input_args *reading,
                               const struct fl_import_conf *conf, json_t **ret, struct fl_err *err)
{
    struct input in = {.train = NULL};
    enum fl_import_kind kind;
    json_t *parts = json_array();
    json_t *names = NULL;
    size_t i;
    int rv = FL_OK;

    if (fl_import_has(path, &kind) || fl_dataset_has(path, part_names[0]) ||
        fl_dataset_has(path, part_names[1]))
    {
        rv = input_open("inspect", path, reading, conf, &in, err);
        if (rv != FL_OK) {
            goto done;
        }
        names = inspect_names(path, &in, err);
        if (names == NULL) {
            rv = err->code;
            goto done;
        }
    }
    for (i = 0; i < 2; i++) {
        const struct fl_dataset *ds = i == 0 ? in.train : in.test;

        if (ds != NULL && json_array_append_new(parts, inspect_part_json(part_names[i], ds)) != 0) {
            rv = fl_err_set(err, FL_ENOMEM, "out of memory describing '%s'", path);
            goto done;
        }
    }
    *ret = json_pack("{s:s, s:O}", "folder", name, "parts", parts);
    if (*ret == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "out of memory describing '%s'", path);
    } else if (json_array_size(names) > 0) {
        (void)json_object_set(*ret, "names", names);
    }
    (void)json_object_set_new(*ret, "convert", json_boolean(inspect_needs_convert(&in)));
done:
    json_decref(parts);
    json_decref(names);
    input_done(&in);
    return rv;
}

static json_int_t inspect_number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *inspect_text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL ? value : "?";
}

static void inspect_print_bar(json_int_t count, json_int_t most)
{
    json_int_t n = most > 0 ? count * BAR / most : 0;

    for (; n > 0; n--) {
        (void)putchar('#');
    }
}

/* The name of a class, without what a terminal would act on. */
static void inspect_print_name(const char *name)
{
    char quoted[256];

    if (name != NULL) {
        (void)printf("  %s", fl_log_quote(quoted, sizeof(quoted), name, strlen(name)));
    }
}

static void inspect_print_part(const json_t *part, const json_t *names)
{
    json_int_t targets = inspect_number(part, "targets");
    const json_t *labels = json_object_get(part, "labels");
    const json_t *shape = json_object_get(part, "shape");
    json_int_t n = inspect_number(part, "samples");
    json_int_t most = 0;
    size_t empty = 0;
    size_t i;

    (void)printf("%s: %s, %lld samples of ", inspect_text(part, "part"),
                 inspect_text(part, "format"), (long long)n);
    for (i = 0; i < json_array_size(shape); i++) {
        (void)printf("%s%lld", i > 0 ? " x " : "",
                     (long long)json_integer_value(json_array_get(shape, i)));
    }
    if (targets > 0) {
        (void)printf(" (%s), %lld value%s to be predicted\n", inspect_text(part, "type"),
                     (long long)targets, targets > 1 ? "s" : "");
        return;
    }
    (void)printf(" (%s), %lld classes", inspect_text(part, "type"),
                 (long long)inspect_number(part, "classes"));
    for (i = 0; i < json_array_size(labels); i++) {
        empty += json_integer_value(json_array_get(labels, i)) == 0;
    }
    if (empty > 0) {
        (void)printf(", %zu of them without a sample", empty);
    }
    if (strcmp(inspect_text(part, "standardised_per"), "none") != 0) {
        (void)printf(", standardised per %s", inspect_text(part, "standardised_per"));
    }
    (void)putchar('\n');
    for (i = 0; i < json_array_size(labels); i++) {
        json_int_t count = json_integer_value(json_array_get(labels, i));

        most = count > most ? count : most;
    }
    (void)printf("  label  samples  share\n");
    for (i = 0; i < json_array_size(labels); i++) {
        json_int_t count = json_integer_value(json_array_get(labels, i));

        if (count > 0) {
            (void)printf("  %5zu %8lld %5.1f%%  ", i, (long long)count,
                         100.0 * (double)count / (double)n);
            inspect_print_bar(count, most);
            inspect_print_name(json_string_value(json_array_get(names, i)));
            (void)putchar('\n');
        }
    }
}

/* One row: name, train, test, and the labels of both together. */
static void inspect_print_row(const json_t *folder)
{
    const json_t *parts = json_object_get(folder, "parts");
    json_int_t samples[2] = {0, 0};
    size_t top = 0;
    size_t shown = 0;
    size_t classes = 0;
    size_t i;
    size_t p;
    char line[512] = "";
    size_t used = 0;

    for (p = 0; p < json_array_size(parts); p++) {
        const json_t *part = json_array_get(parts, p);
        size_t n = json_array_size(json_object_get(part, "labels"));

        samples[strcmp(inspect_text(part, "part"), "test") == 0 ? 1 : 0] =
            inspect_number(part, "samples");
        top = n > top ? n : top;
    }
    for (i = 0; i < top; i++) {
        json_int_t count = 0;

        for (p = 0; p < json_array_size(parts); p++) {
            count += json_integer_value(
                json_array_get(json_object_get(json_array_get(parts, p), "labels"), i));
        }
        if (count > 0 && ++classes > 0 && shown < ROW_LABELS) {
            used += (size_t)snprintf(line + used, sizeof(line) - used, " %zu:%lld", i,
                                     (long long)count);
            shown++;
        }
    }
    (void)printf("%-14s %8lld %8lld %7zu  %s%s\n", inspect_text(folder, "folder"),
                 (long long)samples[0], (long long)samples[1], classes, line,
                 classes > shown ? " ..." : "");
}

static int inspect_is_folder(const struct dirent *entry)
{
    return strncmp(entry->d_name, "client-", 7) == 0 || strcmp(entry->d_name, FL_SPLIT_SERVER) == 0;
}

/* Describes the folders client-… and server below `path`, sorted, into root["folders"]. */
static int inspect_add_folders(const char *path, json_t *root, struct fl_err *err)
{
    json_t *folders = json_array();
    struct fl_dataset *none = NULL;
    char sub[PATH_SIZE];
    const struct input_args plain = {.regression = false};
    struct fl_import_conf conf;
    json_t *one = NULL;
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, inspect_is_folder, alphasort);
    int i;
    int rv = FL_OK;

    if (n < 0) {
        rv = fl_err_set(err, fl_err_from_errno(errno), "cannot open folder '%s': %s", path,
                        strerror(errno));
        goto done;
    }
    if (n == 0) {
        /* The message of the error lists the expected files. */
        rv = fl_dataset_open(path, "train", &none, err);
        fl_dataset_free(none);
        if (rv != FL_OK) {
            goto done;
        }
    }
    for (i = 0; i < n; i++) {
        if (fl_fs_join(sub, sizeof(sub), path, entries[i]->d_name) != FL_OK) {
            rv = fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
            goto done;
        }
        fl_import_conf_init(&conf);
        rv = inspect_folder_json(entries[i]->d_name, sub, &plain, &conf, &one, err);
        if (rv != FL_OK) {
            goto done;
        }
        (void)json_array_append_new(folders, one);
    }
    rv = json_object_set(root, "folders", folders) == 0 ? FL_OK : FL_ENOMEM;
done:
    for (i = 0; i < n; i++) {
        free(entries[i]);
    }
    free(entries);
    json_decref(folders);
    return rv;
}

int cmd_inspect(int argc, char **argv)
{
    const json_t *parts;
    const json_t *folders;
    const char *path = NULL;
    bool as_json = false;
    struct input_args reading = {.regression = false};
    struct fl_import_conf conf;
    struct fl_arg args[1 + N_INPUT_ARGS] = {
        {.name = "json", .help = "print JSON", .flag = &as_json}};
    struct fl_err err = {0};
    json_t *root = NULL;
    int status = EXIT_USAGE;
    struct stat st;
    size_t i;
    int rv;

    input_rows(&reading, args + 1);
    if (!args_parse(argc, argv, summary, args, 1 + N_INPUT_ARGS, &path, &status)) {
        return status;
    }
    if (path == NULL) {
        return fl_data_usage_error("inspect", "expected a folder or a file");
    }
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        return inspect_file(path, as_json);
    }
    if (!input_conf("inspect", &reading, &conf)) {
        return EXIT_USAGE;
    }
    rv = inspect_folder_json(path, path, &reading, &conf, &root, &err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (json_array_size(json_object_get(root, "parts")) == 0) {
        rv = inspect_add_folders(path, root, &err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    if (as_json) {
        (void)json_dumpf(root, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        (void)putchar('\n');
    } else {
        parts = json_object_get(root, "parts");
        folders = json_object_get(root, "folders");
        (void)printf("%s\n", inspect_text(root, "folder"));
        for (i = 0; i < json_array_size(parts); i++) {
            inspect_print_part(json_array_get(parts, i), json_object_get(root, "names"));
        }
        if (json_is_true(json_object_get(root, "convert"))) {
            (void)puts("fl-clientd, fl-serverd and fl-sim read this set after 'fl-data convert'");
        }
        if (folders != NULL) {
            (void)printf("%-14s %8s %8s %7s   label:samples\n", "folder", "train", "test",
                         "classes");
            for (i = 0; i < json_array_size(folders); i++) {
                inspect_print_row(json_array_get(folders, i));
            }
        }
    }
    json_decref(root);
    return EXIT_SUCCESS;
fail:
    (void)fprintf(stderr, "fl-data inspect: %s\n", fl_err_text(&err, rv));
    json_decref(root);
    return EXIT_FAILURE;
}
