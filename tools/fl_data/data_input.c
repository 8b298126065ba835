/*
 * Reads a data set in any format for the commands of fl-data, and the options that say how. Main
 * thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/import/import.h"
#include "tools/fl_data/fl_data.h"

/*
 * The characters of LEAF's Shakespeare (Caldas et al. 2018, models/utils/language_utils.py), in
 * their order: those of the preset shakespeare_lstm.
 */
#define LEAF_CHARACTERS \
    "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"

void input_rows(struct input_args *args, struct fl_arg rows[N_INPUT_ARGS])
{
    const struct fl_arg all[N_INPUT_ARGS] = {
        {.name = "schema",
         .value = "FILE",
         .help = "schema.json of another folder: the same texts become the same numbers",
         .text = &args->schema},
        {.name = "channels",
         .value = "N",
         .help = "pictures: convert all to 1 (grey) or 3 (colour) channels",
         .text = &args->channels},
        {.name = "window",
         .value = "N",
         .help = "text: characters of a sample (80)",
         .text = &args->window},
        {.name = "stride",
         .value = "N",
         .help = "text: characters from one sample to the next (1)",
         .text = &args->stride},
        {.name = "characters",
         .value = "TEXT",
         .help = "text: the known characters in order; leaf: the 80 of shakespeare_lstm (those of "
                 "the train part)",
         .text = &args->characters},
        {.name = "target",
         .value = "NAMES",
         .help = "table: the column of the label, or of the values (the last one)",
         .text = &args->target},
        {.name = "regression",
         .help = "table: predict the values of the target columns",
         .flag = &args->regression},
        {.name = "category",
         .value = "NAMES",
         .help = "table: columns that are categories, also where they hold numbers",
         .text = &args->category},
        {.name = "drop",
         .value = "NAMES",
         .help = "table: columns to leave out",
         .text = &args->drop},
        {.name = "encode",
         .value = "HOW",
         .help = "table: a category becomes one-hot features or its index (one-hot)",
         .text = &args->encode},
        {.name = "missing",
         .value = "RULE",
         .help = "table: refuse missing values, put the mean, or skip the row (refuse)",
         .text = &args->missing},
    };

    (void)memcpy(rows, all, sizeof(all));
}

/* The index of `text` in `words`, a NULL-terminated list of at most three. */
static bool input_word(const char *command, const char *name, const char *text,
                       const char *const *words, int *ret)
{
    int i;

    if (text == NULL) {
        return true;
    }
    for (i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret = i;
            return true;
        }
    }
    (void)fl_data_usage_error(command, "--%s: expected %s, %s%s%s, found '%s'", name, words[0],
                              words[1], words[2] != NULL ? " or " : "",
                              words[2] != NULL ? words[2] : "", text);
    return false;
}

bool input_conf(const char *command, const struct input_args *args, struct fl_import_conf *ret)
{
    static const char *const encodings[] = {"index", "one-hot", NULL};
    static const char *const channels[] = {"1", "3", NULL};
    uint64_t window;
    uint64_t stride;
    int missing = FL_MISSING_REFUSE;
    int encode = 1;
    int colour = -1;

    fl_import_conf_init(ret);
    window = ret->window;
    stride = ret->stride;
    if (!arg_count(command, "window", args->window, 1, FL_IMPORT_MAX_WINDOW, &window) ||
        !arg_count(command, "stride", args->stride, 1, FL_IMPORT_MAX_TEXT, &stride) ||
        !input_word(command, "missing", args->missing, fl_missing_rules, &missing) ||
        !input_word(command, "encode", args->encode, encodings, &encode) ||
        !input_word(command, "channels", args->channels, channels, &colour))
    {
        return false;
    }
    if (args->schema != NULL &&
        (args->window != NULL || args->characters != NULL || args->target != NULL ||
         args->regression || args->category != NULL || args->drop != NULL || args->encode != NULL ||
         args->missing != NULL))
    {
        (void)fl_data_usage_error(command, "--schema has window, characters, columns and rules; "
                                           "expected no other option for them");
        return false;
    }
    ret->window = (size_t)window;
    ret->stride = (size_t)stride;
    ret->missing = (enum fl_missing)missing;
    ret->one_hot = encode == 1;
    ret->channels = colour < 0 ? 0 : (colour == 0 ? 1 : 3);
    ret->characters = args->characters != NULL && strcmp(args->characters, "leaf") == 0
                          ? LEAF_CHARACTERS
                          : args->characters;
    ret->target = args->target;
    ret->category = args->category;
    ret->drop = args->drop;
    ret->regression = args->regression;
    return true;
}

static void input_warn(const char *command, const char *folder, const struct input *in)
{
    char note[256];

    if (in->train != NULL && fl_dataset_shape_note(in->train, note, sizeof(note))) {
        (void)fprintf(stderr, "fl-data %s: warning: '%s': %s\n", command, folder, note);
    }
}

/*
 * Is the folder to be read by libfl/import? Pictures and texts have no other format; a table is,
 * when the train part is CSV.
 */
static int input_is_import(const char *folder, bool *ret, struct fl_err *err)
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

static int input_import(const char *command, const char *folder, const struct fl_import_conf *conf,
                        struct input *in, struct fl_err *err)
{
    struct fl_import import = {.train = NULL};
    int rv = fl_import_open(folder, conf, &import, err);

    if (rv != FL_OK) {
        return rv;
    }
    in->train = import.train;
    in->test = import.test;
    in->schema = import.schema;
    in->has_schema = true;
    if (import.skipped > 0) {
        (void)fprintf(stderr, "fl-data %s: '%s': %zu rows with a missing value are left out\n",
                      command, folder, import.skipped);
    }
    if (in->train != NULL) {
        rv = fl_dataset_read_norm(folder, in->train, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return in->test != NULL ? fl_dataset_read_norm(folder, in->test, err) : FL_OK;
}

/* A part in a format of libfl/data; none is fine. */
static int input_open_part(const char *folder, const char *part, struct fl_dataset **ret,
                           struct fl_err *err)
{
    return fl_dataset_has(folder, part) ? fl_dataset_open(folder, part, ret, err) : FL_OK;
}

int input_open(const char *command, const char *folder, const struct input_args *args,
               const struct fl_import_conf *conf, struct input *ret, struct fl_err *err)
{
    struct fl_import_conf with = *conf;
    struct fl_schema schema = {.n_columns = 0};
    struct input in = {.train = NULL};
    bool import = false;
    int rv = input_is_import(folder, &import, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (args->schema != NULL) {
        rv = read_schema(args->schema, &schema, err);
        if (rv != FL_OK) {
            return rv;
        }
        with.schema = &schema;
    }
    if (import) {
        rv = input_import(command, folder, &with, &in, err);
        if (rv != FL_OK) {
            goto fail;
        }
    } else if (args->schema != NULL) {
        rv = fl_err_set(err, FL_EINVAL,
                        "--schema is for pictures, texts and tables, which '%s' does not contain",
                        folder);
        goto fail;
    } else if (fl_dataset_has(folder, "train") || !fl_dataset_has(folder, "test")) {
        struct fl_err why = {0};

        rv = fl_dataset_open(folder, "train", &in.train, &why);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "%s%s", fl_err_text(&why, rv),
                             rv == FL_ENOENT && fl_fs_exists(folder)
                                 ? "; train/CLASS/ with PNG or JPEG pictures; train.txt[.gz]"
                                 : "");
            goto fail;
        }
    }
    if (in.test == NULL) {
        rv = input_open_part(folder, "test", &in.test, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    input_warn(command, folder, &in);
    fl_schema_done(&schema);
    *ret = in;
    return FL_OK;
fail:
    fl_schema_done(&schema);
    input_done(&in);
    return rv;
}

void input_done(struct input *input)
{
    fl_dataset_free(input->train);
    fl_dataset_free(input->test);
    fl_schema_done(&input->schema);
    *input = (struct input){.train = NULL};
}
