/* fl-data split: one data set to one folder per client. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/data/partition.h"
#include "tools/fl_data/fl_data.h"

#define MAX_OPTIONS 32
#define HELP_SIZE   200

struct split {
    const char *input, *output;
    const struct fl_partition_ops *method;
    struct fl_partition_conf conf;
    double test_share;
    bool force;
    struct fl_dataset *train, *test; /* `test` is NULL when the input has none */
    struct fl_partition part;
};

/* The options of all methods as arguments, each name once. */
struct method_args {
    const struct fl_partition_option *options[MAX_OPTIONS];
    const char *texts[MAX_OPTIONS];
    char helps[MAX_OPTIONS][HELP_SIZE];
    size_t n;
};

static const char *const value_names[] = {
    [FL_PARTITION_COUNT] = "N", [FL_PARTITION_REAL] = "X", [FL_PARTITION_CHOICE] = "WHAT"};

static const char summary[] =
    "Usage: fl-data split --input DIR --output DIR --clients N [--method METHOD] [OPTION]...\n"
    "\n"
    "Share the train part of a data set (IDX, CIFAR, NPY, CSV; see 'fl-data inspect') out\n"
    "among N clients. The output has a folder per client, client-000 and so on, with\n"
    "train-x.npy and train-y.npy (and test-x.npy, test-y.npy with --test-share), a folder\n"
    "server with the test part of the input when it has one, and split.json, which says\n"
    "how it was made. Features keep their type (uint8 or float32) and have shape\n"
    "(n, channels, height, width) or (n, features); labels are int32. The same seed gives\n"
    "the same split everywhere. The output appears when it is complete.\n"
    "\n"
    "Methods:\n";

/* "method: what it is (default)", for a choice with what can be chosen. */
static void describe_option(const struct fl_partition_ops *ops,
                            const struct fl_partition_option *option, char out[HELP_SIZE])
{
    size_t used = (size_t)snprintf(out, HELP_SIZE, "%s: %s", ops->name, option->help);
    size_t i;

    FL_REQUIRE(used < HELP_SIZE);
    if (option->type != FL_PARTITION_CHOICE) {
        (void)snprintf(out + used, HELP_SIZE - used, " (%.10g)", option->def);
        return;
    }
    for (i = 0; option->choices[i] != NULL && used < HELP_SIZE; i++) {
        used += (size_t)snprintf(out + used, HELP_SIZE - used, "%s%s", i == 0 ? "; " : " or ",
                                 option->choices[i]);
    }
    if (used < HELP_SIZE) {
        (void)snprintf(out + used, HELP_SIZE - used, " (%s)", option->choices[(size_t)option->def]);
    }
}

static void list_method_args(struct method_args *m)
{
    const struct fl_partition_ops *ops;
    const struct fl_partition_option *option;
    size_t i;

    *m = (struct method_args){.n = 0};
    for (i = 0; (ops = fl_partition_at(i)) != NULL; i++) {
        for (option = ops->options; option->name != NULL; option++) {
            FL_REQUIRE(m->n < MAX_OPTIONS);
            describe_option(ops, option, m->helps[m->n]);
            m->options[m->n++] = option;
        }
    }
}

/* Whether the option belongs to the method; options of one name are one argument. */
static bool applies(const struct fl_partition_ops *ops, const char *name)
{
    const struct fl_partition_option *option;

    for (option = ops->options; option->name != NULL; option++) {
        if (strcmp(option->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool set_method_args(struct split *s, const struct method_args *m)
{
    struct fl_err err = {0};
    size_t i;

    for (i = 0; i < m->n; i++) {
        if (m->texts[i] == NULL) {
            continue;
        }
        if (!applies(s->method, m->options[i]->name)) {
            (void)usage_error("split", "--%s does not apply to method '%s'", m->options[i]->name,
                              s->method->name);
            return false;
        }
        if (fl_partition_option_set(m->options[i], &s->conf, m->texts[i], &err) != FL_OK) {
            (void)usage_error("split", "--%s", err.msg);
            return false;
        }
    }
    return true;
}

static bool find_method(struct split *s, const char *name)
{
    char known[256] = "";
    size_t used = 0;
    size_t i;

    s->method = fl_partition_find(name != NULL ? name : "iid");
    if (s->method != NULL) {
        return true;
    }
    for (i = 0; fl_partition_at(i) != NULL && used < sizeof(known); i++) {
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i > 0 ? ", " : "",
                                 fl_partition_at(i)->name);
    }
    (void)usage_error("split", "unknown method '%s'; known: %s", name, known);
    return false;
}

static bool parse(struct split *s, int argc, char **argv, int *ret_status)
{
    const char *clients = NULL;
    const char *method = NULL;
    const char *seed = NULL;
    const char *share = NULL;
    struct method_args m;
    char text[sizeof(summary) + 1024];
    size_t used;
    uint64_t n_clients = 0;
    struct arg args[7 + MAX_OPTIONS] = {
        {"input", "DIR", "the data set", &s->input, NULL},
        {"output", "DIR", "the folder to make", &s->output, NULL},
        {"clients", "N", "how many clients", &clients, NULL},
        {"method", "METHOD", "how to share out (iid)", &method, NULL},
        {"seed", "N", "of every random choice (0)", &seed, NULL},
        {"test-share", "P", "share of each client's samples kept for its own test (0)", &share,
         NULL},
        {"force", NULL, "replace an output folder that is not empty", NULL, &s->force},
    };
    size_t i;

    used = (size_t)snprintf(text, sizeof(text), "%s", summary);
    for (i = 0; fl_partition_at(i) != NULL && used < sizeof(text); i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "  %-12s %s\n",
                                 fl_partition_at(i)->name, fl_partition_at(i)->help);
    }
    list_method_args(&m);
    for (i = 0; i < m.n; i++) {
        args[7 + i] = (struct arg){m.options[i]->name, value_names[m.options[i]->type], m.helps[i],
                                   &m.texts[i], NULL};
    }
    if (!args_parse(argc, argv, text, args, 7 + m.n, NULL, 0, ret_status)) {
        return false;
    }
    *ret_status = EXIT_USAGE;
    if (s->input == NULL || s->output == NULL || clients == NULL) {
        (void)usage_error("split", "--%s is required",
                          s->input == NULL ? "input" : (s->output == NULL ? "output" : "clients"));
        return false;
    }
    fl_partition_conf_init(&s->conf);
    if (!find_method(s, method) || !set_method_args(s, &m) ||
        !arg_count("split", "clients", clients, 1, FL_PARTITION_MAX_CLIENTS, &n_clients) ||
        !arg_count("split", "seed", seed, 0, INT64_MAX, &s->conf.seed) ||
        !arg_real("split", "test-share", share, 0.0, 0.99, &s->test_share))
    {
        return false;
    }
    s->conf.n_clients = (size_t)n_clients;
    return true;
}

static int load(struct split *s, struct fl_err *err)
{
    size_t classes;
    int rv = fl_dataset_open(s->input, "train", &s->train, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!fl_dataset_has(s->input, "test")) {
        return FL_OK;
    }
    rv = fl_dataset_open(s->input, "test", &s->test, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (s->test->type != s->train->type || s->test->n_dims != s->train->n_dims ||
        memcmp(s->test->dims, s->train->dims, sizeof(s->test->dims)) != 0)
    {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': train samples are %s of %zu x %zu x %zu, test samples %s of "
                          "%zu x %zu x %zu",
                          s->input, type_name(s->train), s->train->dims[0], s->train->dims[1],
                          s->train->dims[2], type_name(s->test), s->test->dims[0], s->test->dims[1],
                          s->test->dims[2]);
    }
    classes = s->test->classes > s->train->classes ? s->test->classes : s->train->classes;
    s->test->classes = classes;
    s->train->classes = classes;
    return FL_OK;
}

static json_t *options_json(const struct split *s)
{
    const struct fl_partition_option *option;
    json_t *options = json_object();
    uint64_t count;
    double value;

    for (option = s->method->options; option->name != NULL; option++) {
        const char *at = (const char *)&s->conf + option->offset;

        if (option->type == FL_PARTITION_REAL) {
            (void)memcpy(&value, at, sizeof(value));
            (void)json_object_set_new(options, option->name, json_real(value));
        } else {
            (void)memcpy(&count, at, sizeof(count));
            (void)json_object_set_new(options, option->name,
                                      option->type == FL_PARTITION_CHOICE
                                          ? json_string(option->choices[count])
                                          : json_integer((json_int_t)count));
        }
    }
    return options;
}

static int write_server(const struct split *s, const struct output *out, struct fl_err *err)
{
    char folder[PATH_SIZE];
    struct part *part = NULL;
    size_t i;
    int rv = output_folder(out, "server", folder, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = part_open(folder, "test", s->test, s->test->n, &part, err);
    for (i = 0; i < s->test->n && rv == FL_OK; i++) {
        rv = part_add(part, s->test, i, err);
    }
    if (rv != FL_OK) {
        part_abort(part);
        return rv;
    }
    return part_close(part, err);
}

static int write_all(const struct split *s, const struct output *out, struct fl_err *err)
{
    json_t *clients = json_array();
    json_t *root;
    char name[64];
    size_t k;
    int rv = FL_OK;

    for (k = 0; k < s->conf.n_clients && rv == FL_OK; k++) {
        struct client_job job = {
            .out = out,
            .name = name,
            .ds = s->train,
            .items = s->part.items + s->part.start[k],
            .n = fl_partition_count(&s->part, k),
            .client = k,
            .seed = s->conf.seed,
            .test_share = s->test_share,
        };

        client_name(name, sizeof(name), k, s->conf.n_clients);
        rv = write_client(&job, clients, err);
        if (rv == FL_OK) {
            show_progress("clients", k + 1, s->conf.n_clients);
            rv = check_interrupted(err);
        }
    }
    if (rv == FL_OK && s->test != NULL) {
        rv = write_server(s, out, err);
    }
    if (rv != FL_OK) {
        json_decref(clients);
        return rv;
    }
    root = json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:f, s:{s:s, s:o}, s:{s:s, s:I}, s:I, s:o, "
                     "s:{s:I}}",
                     "made_by", "fl-data " PACKAGE_VERSION, "input", s->input, "input_format",
                     s->train->format, "method", s->method->name, "options", options_json(s),
                     "seed", (json_int_t)s->conf.seed, "test_share", s->test_share, "features",
                     "type", type_name(s->train), "shape", shape_json(s->train), "labels", "type",
                     "int32", "classes", (json_int_t)s->train->classes, "samples_of_input",
                     (json_int_t)s->train->n, "clients", clients, "server", "test",
                     (json_int_t)(s->test != NULL ? s->test->n : 0));
    rv = output_manifest(out, root, err);
    json_decref(root);
    return rv;
}

static void report(const struct split *s)
{
    size_t least = SIZE_MAX;
    size_t most = 0;
    size_t k;

    for (k = 0; k < s->conf.n_clients; k++) {
        size_t n = fl_partition_count(&s->part, k);

        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    (void)printf("%s: %zu clients (%s, seed %" PRIu64 "), %zu of %zu samples, %zu to %zu each",
                 s->output, s->conf.n_clients, s->method->name, s->conf.seed,
                 s->part.start[s->conf.n_clients], s->train->n, least, most);
    if (s->test != NULL) {
        (void)printf("; server: %zu test samples", s->test->n);
    }
    (void)printf("\n");
}

static int run(struct split *s, struct fl_err *err)
{
    struct output out;
    int rv = output_begin(&out, s->output, s->input, s->force, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = load(s, err);
    if (rv == FL_OK) {
        rv = fl_partition_make(s->method, &s->conf, s->train->y, s->train->n, s->train->classes,
                               &s->part, err);
    }
    if (rv == FL_OK) {
        rv = write_all(s, &out, err);
    }
    if (rv == FL_OK) {
        rv = output_commit(&out, err);
    }
    output_abort(&out);
    return rv;
}

int cmd_split(int argc, char **argv)
{
    struct split s = {.input = NULL};
    struct fl_err err = {0};
    int status = EXIT_USAGE;
    int rv;

    if (!parse(&s, argc, argv, &status)) {
        return status;
    }
    catch_signals();
    rv = run(&s, &err);
    if (rv == FL_OK) {
        report(&s);
    } else {
        (void)fprintf(stderr, "fl-data split: %s\n", fl_err_text(&err, rv));
    }
    fl_partition_done(&s.part);
    fl_dataset_free(s.train);
    fl_dataset_free(s.test);
    return rv == FL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
