/* fl-data convert: one data set as arrays, with the schema of its texts. Main thread. */
#include <stdio.h>
#include <stdlib.h>

#include "libfl/import/import.h"
#include "tools/fl_data/fl_data.h"

#define N_CONVERT_ARGS 3

static const char summary[] =
    "Usage: fl-data convert --input DIR --output DIR [OPTION]...\n"
    "\n"
    "Turn a data set into arrays that fl-clientd, fl-serverd and fl-sim read: train-x.npy,\n"
    "train-y.npy (and test-...) in the output folder. The input is any set that 'fl-data inspect'\n"
    "knows, or\n"
    "  images  train/CLASS/NAME.png (.jpg, .jpeg; test/...): all of one size; the class is the\n"
    "          folder; uint8 of shape (n, channels, height, width)\n"
    "  text    train.txt (test.txt; .gz too), UTF-8: the class is the character after a window\n"
    "  table   train.csv (test.csv; .gz too): the first line without any number is a heading\n"
    "\n"
    "Of a table, a column whose first value is a text is a category, or the label by its text.\n"
    "Missing values are empty fields, NA, NaN, null and ?. With --missing mean a number becomes "
    "the\n"
    "mean of the train part; a category has all features 0, or with --encode index the number "
    "after\n"
    "its last value.\n"
    "\n"
    "schema.json in the output says which text became which number. All clients of a federation\n"
    "need the same: convert the data of one, then those of the others with --schema and its file.\n"
    "A text that the schema does not have is an error.\n";

struct conversion {
    const char *input, *output;
    bool force;
    struct input_args reading;
    struct fl_import_conf import;
    struct input in;
};

static int convert_write(const struct conversion *c, const struct output *out, struct fl_err *err)
{
    const struct fl_dataset *any = c->in.train != NULL ? c->in.train : c->in.test;
    json_t *root;
    int rv = fl_npy_part_norm(out->tmp, any, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (c->in.train != NULL) {
        rv = fl_npy_part_write(out->tmp, "train", c->in.train, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (c->in.test != NULL) {
        rv = fl_npy_part_write(out->tmp, "test", c->in.test, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = write_schema(out->tmp, &c->in, err);
    if (rv != FL_OK) {
        return rv;
    }
    root = json_pack("{s:s, s:s, s:s, s:I, s:I}", "made_by", "fl-data " PACKAGE_VERSION, "input",
                     c->input, "input_format", any->format, "train",
                     (json_int_t)(c->in.train != NULL ? c->in.train->n : 0), "test",
                     (json_int_t)(c->in.test != NULL ? c->in.test->n : 0));
    rv = output_manifest(out, root, err);
    json_decref(root);
    return rv;
}

static int convert_run(struct conversion *c, struct fl_err *err)
{
    struct output out;
    int rv = output_begin(&out, c->output, c->input, c->force, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = input_open("convert", c->input, &c->reading, &c->import, &c->in, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = check_interrupted(err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = convert_write(c, &out, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = output_commit(&out, err);
done:
    output_abort(&out);
    return rv;
}

static void convert_report(const struct conversion *c)
{
    const struct fl_dataset *ds = c->in.train != NULL ? c->in.train : c->in.test;

    (void)printf("%s: %zu train and %zu test samples of %zu values", c->output,
                 c->in.train != NULL ? c->in.train->n : 0, c->in.test != NULL ? c->in.test->n : 0,
                 ds->dim);
    if (ds->n_targets > 0) {
        (void)printf(", %zu to be predicted\n", ds->n_targets);
    } else {
        (void)printf(", %zu classes\n", ds->classes);
    }
}

int cmd_convert(int argc, char **argv)
{
    struct conversion c = {.input = NULL};
    struct fl_arg args[N_CONVERT_ARGS + N_INPUT_ARGS] = {
        {.name = "input", .value = "DIR", .help = "the data set", .text = &c.input},
        {.name = "output", .value = "DIR", .help = "the folder to create", .text = &c.output},
        {.name = "force", .help = "replace an output folder that is not empty", .flag = &c.force},
    };
    struct fl_err err = {0};
    int status = EXIT_USAGE;
    int rv;

    input_rows(&c.reading, args + N_CONVERT_ARGS);
    if (!args_parse(argc, argv, summary, args, N_CONVERT_ARGS + N_INPUT_ARGS, NULL, &status)) {
        return status;
    }
    if (c.input == NULL || c.output == NULL) {
        return fl_data_usage_error("convert", "--%s is required",
                                   c.input == NULL ? "input" : "output");
    }
    if (!input_conf("convert", &c.reading, &c.import)) {
        return EXIT_USAGE;
    }
    catch_signals();
    rv = convert_run(&c, &err);
    status = EXIT_FAILURE;
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-data convert: %s\n", fl_err_text(&err, rv));
        goto done;
    }
    convert_report(&c);
    status = EXIT_SUCCESS;
done:
    input_done(&c.in);
    return status;
}
