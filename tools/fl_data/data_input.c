/*
 * Reads a data set in any format for the commands of fl-data, and the options that say how. Main
 * thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/import/import.h"
#include "tools/fl_data/fl_data.h"

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
    ret->characters = fl_import_characters(args->characters);
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

int input_open(const char *command, const char *folder, const struct input_args *args,
               const struct fl_import_conf *conf, struct input *ret, struct fl_err *err)
{
    struct fl_import_conf with = *conf;
    struct fl_schema schema = {.n_columns = 0};
    struct fl_import import = {.train = NULL};
    int rv;

    if (args->schema != NULL) {
        rv = read_schema(args->schema, &schema, err);
        if (rv != FL_OK) {
            return rv;
        }
        with.schema = &schema;
    }
    rv = fl_import_any(folder, &with, &import, err);
    fl_schema_done(&schema);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = (struct input){.train = import.train,
                          .test = import.test,
                          .schema = import.schema,
                          .has_schema = import.has_schema};
    if (import.skipped > 0) {
        (void)fprintf(stderr, "fl-data %s: '%s': %zu rows with a missing value are left out\n",
                      command, folder, import.skipped);
    }
    input_warn(command, folder, ret);
    return FL_OK;
}

void input_done(struct input *input)
{
    fl_dataset_free(input->train);
    fl_dataset_free(input->test);
    fl_schema_done(&input->schema);
    *input = (struct input){.train = NULL};
}
