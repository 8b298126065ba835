/* fl-data split: one data set to one folder per client. */
#include "tools/fl_data/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int load(struct split *s, struct fl_err *err)
{
    size_t classes;
    int rv = fl_dataset_open(s->input, "train", &s->train, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!fl_dataset_has(s->input, "test")) {
        return s->pool == POOL_YES
                   ? fl_err_set(err, FL_ENOENT, "--pool yes: '%s' holds no test part", s->input)
                   : FL_OK;
    }
    rv = fl_dataset_open(s->input, "test", &s->test, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!fl_dataset_alike(s->test, s->train)) {
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

/* What the test part goes through too. */
static int on_both(struct split *s, int (*change)(struct fl_dataset *, struct fl_err *),
                   struct fl_err *err)
{
    int rv = change(s->train, err);

    return rv == FL_OK && s->test != NULL ? change(s->test, err) : rv;
}

static int drop_norm(struct fl_dataset *ds, struct fl_err *err)
{
    const struct fl_dataset plain = {.n_norm = 0};

    return fl_dataset_copy_norm(ds, &plain, err);
}

static int standardise(struct split *s, struct fl_err *err)
{
    int rv;

    switch (s->standardise) {
    case STANDARDISE_AS_INPUT:
        break;
    case STANDARDISE_NONE:
        return on_both(s, drop_norm, err);
    case STANDARDISE_CIFAR:
        return on_both(s, fl_dataset_norm_cifar, err);
    case STANDARDISE_PIXEL: /* The test part by the numbers of what is shared out. */
        rv = fl_dataset_norm_pixels(s->train, err);
        return rv == FL_OK && s->test != NULL ? fl_dataset_copy_norm(s->test, s->train, err) : rv;
    }
    return FL_OK;
}

/* Crop, pool, standardise: from the input to what is shared out. */
static int transform(struct split *s, struct fl_err *err)
{
    bool pool = s->pool == POOL_YES || (s->pool == POOL_AS_METHOD && s->method->pools);
    int rv = FL_OK;

    if (s->crop > 0) {
        rv = fl_dataset_crop(s->train, (size_t)s->crop, err);
        if (rv == FL_OK && s->test != NULL) {
            rv = fl_dataset_crop(s->test, (size_t)s->crop, err);
        }
    }
    if (rv == FL_OK && pool && s->test != NULL) {
        rv = fl_dataset_append(s->train, s->test, err);
        fl_dataset_free(s->test);
        s->test = NULL;
        s->pooled = true;
    }
    return rv == FL_OK ? standardise(s, err) : rv;
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

/* The server's folder: the input's test part, or `ret_pool` for what the clients write. */
static int write_server(const struct split *s, const struct output *out, struct part **ret_pool,
                        struct fl_err *err)
{
    size_t n = s->test != NULL ? s->test->n : s->n_client_test;
    char folder[PATH_SIZE];
    struct part *part = NULL;
    size_t i;
    int rv;

    if (s->test == NULL && (!s->pooled || n == 0)) {
        return FL_OK;
    }
    rv = output_folder(out, "server", folder, err);
    if (rv == FL_OK) {
        rv = write_norm(folder, s->train, err);
    }
    if (rv == FL_OK) {
        rv = part_open(folder, "test", s->train, n, &part, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    if (s->test == NULL) {
        *ret_pool = part;
        return FL_OK;
    }
    for (i = 0; i < n && rv == FL_OK; i++) {
        rv = part_add(part, s->test, i, err);
    }
    if (rv != FL_OK) {
        part_abort(part);
        return rv;
    }
    return part_close(part, err);
}

static int write_clients(const struct split *s, const struct output *out, struct part *pool,
                         json_t *clients, struct fl_err *err)
{
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
            .pool = pool,
        };

        client_name(name, sizeof(name), k, s->conf.n_clients);
        rv = write_client(&job, clients, err);
        if (rv == FL_OK) {
            show_progress("clients", k + 1, s->conf.n_clients);
            rv = check_interrupted(err);
        }
    }
    return rv;
}

/* Takes `clients`. */
static int write_manifest(const struct split *s, const struct output *out, json_t *clients,
                          struct fl_err *err)
{
    size_t n_server = s->test != NULL ? s->test->n : (s->pooled ? s->n_client_test : 0);
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:I, s:f, s:b, s:s, s:I, s:{s:s, s:o}, s:{s:s, s:I}, s:I, s:o, "
        "s:{s:I}}",
        "made_by", "fl-data " PACKAGE_VERSION, "input", s->input, "input_format", s->train->format,
        "method", s->method->name, "options", options_json(s), "seed", (json_int_t)s->conf.seed,
        "test_share", s->test_share, "pooled", (int)s->pooled, "standardised_per",
        norm_name(s->train), "crop", (json_int_t)s->crop, "features", "type", type_name(s->train),
        "shape", shape_json(s->train), "labels", "type", "int32", "classes",
        (json_int_t)s->train->classes, "samples_of_input", (json_int_t)s->train->n, "clients",
        clients, "server", "test", (json_int_t)n_server);
    int rv = output_manifest(out, root, err);

    json_decref(root);
    return rv;
}

static int write_all(const struct split *s, const struct output *out, struct fl_err *err)
{
    json_t *clients = json_array();
    struct part *pool = NULL;
    int rv = write_server(s, out, &pool, err);

    if (rv == FL_OK) {
        rv = write_clients(s, out, pool, clients, err);
    }
    if (rv == FL_OK && pool != NULL) {
        rv = part_close(pool, err);
        pool = NULL;
    }
    if (rv != FL_OK) {
        part_abort(pool);
        json_decref(clients);
        return rv;
    }
    return write_manifest(s, out, clients, err);
}

static void count_client_test(struct split *s)
{
    size_t k;

    for (k = 0; k < s->conf.n_clients; k++) {
        s->n_client_test += fl_dataset_split_count(fl_partition_count(&s->part, k), s->test_share);
    }
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
    if (s->n_client_test > 0) {
        (void)printf(", %zu of them for test", s->n_client_test);
    }
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
        rv = transform(s, err);
    }
    if (rv == FL_OK) {
        rv = fl_partition_make(s->method, &s->conf, s->train->y, s->train->n, s->train->classes,
                               &s->part, err);
    }
    if (rv == FL_OK) {
        count_client_test(s);
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

    if (!split_parse(&s, argc, argv, &status)) {
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
