/* fl-data split: partitions one data set into one folder per client. Main thread. The methods are
   in libfl/data; the command line is in split_args.c. */
#include "tools/fl_data/split_cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *split_options_json(const struct split *s)
{
    const struct fl_partition_option *option;
    json_t *options = json_object();
    uint64_t count;
    double value;

    for (option = s->conf.method->options; option->name != NULL; option++) {
        const char *at = (const char *)&s->conf.partition + option->offset;

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

/* The server's folder: the input's test part, or `ret_pool` for the clients' test samples. */
static int split_write_server(const struct split *s, const struct output *out,
                              struct fl_npy_part **ret_pool, struct fl_err *err)
{
    size_t n = s->set.test != NULL ? s->set.test->n : s->n_client_test;
    char folder[PATH_SIZE];
    struct fl_npy_part *part = NULL;
    size_t i;
    int rv;

    if (s->set.test == NULL && (!s->set.pooled || n == 0)) {
        return FL_OK;
    }
    rv = output_folder(out, FL_SPLIT_SERVER, folder, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_npy_part_norm(folder, s->set.train, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = write_schema(folder, &s->in, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_npy_part_create(folder, "test", s->set.train, n, &part, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (s->set.test == NULL) {
        *ret_pool = part;
        return FL_OK;
    }
    for (i = 0; i < n; i++) {
        rv = fl_npy_part_add(part, s->set.test, i, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    return fl_npy_part_finish(part, err);
fail:
    fl_npy_part_abort(part);
    return rv;
}

static int split_write_all(const struct split *s, const struct output *out, struct fl_err *err)
{
    char name[FL_SPLIT_NAME];
    json_t *root;
    json_t *clients = json_array();
    struct fl_npy_part *pool = NULL;
    size_t k;
    size_t n_server;
    int rv = split_write_server(s, out, &pool, err);

    if (rv != FL_OK) {
        goto fail;
    }
    for (k = 0; k < s->part.n_clients; k++) {
        size_t n = fl_partition_count(&s->part, k);
        struct client_job job = {
            .out = out,
            .name = fl_split_name(name, k, s->part.n_clients),
            .ds = s->set.train,
            .items = s->part.items + s->part.start[k],
            .n = n,
            .n_test = fl_dataset_split_count(n, s->conf.test_share),
            .n_noisy = fl_split_noise_count(&s->noise, k),
            .pool = pool,
            .input = &s->in,
        };

        rv = write_client(&job, clients, err);
        if (rv != FL_OK) {
            goto fail;
        }
        show_progress("clients", k + 1, s->conf.partition.n_clients);
        rv = check_interrupted(err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = pool != NULL ? fl_npy_part_finish(pool, err) : FL_OK;
    pool = NULL;
    if (rv != FL_OK) {
        goto fail;
    }
    /* Takes `clients`. */
    n_server = s->set.test != NULL ? s->set.test->n : (s->set.pooled ? s->n_client_test : 0);
    root = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:I, s:f, s:b, s:s, s:I, s:{s:f, s:f, s:I, s:I}, s:{s:s, s:o}, "
        "s:{s:s, s:I}, s:I, s:o, s:{s:I}}",
        "made_by", "fl-data " PACKAGE_VERSION, "input", s->input, "input_format",
        s->set.train->format, "method", s->conf.method->name, "options", split_options_json(s),
        "seed", (json_int_t)s->conf.partition.seed, "test_share", s->conf.test_share, "pooled",
        (int)s->set.pooled, "standardised_per", norm_name(s->set.train), "crop",
        (json_int_t)s->conf.crop, "label_noise", "share", s->conf.noise_share, "of_clients",
        s->conf.noise_clients, "clients", (json_int_t)s->noise.n_clients, "labels",
        (json_int_t)s->noise.n_labels, "features", "type", fl_dataset_type_name(s->set.train),
        "shape", shape_json(s->set.train), "labels", "type", "int32", "classes",
        (json_int_t)s->set.train->classes, "samples_of_input", (json_int_t)s->set.train->n,
        "clients", clients, "server", "test", (json_int_t)n_server);
    rv = output_manifest(out, root, err);
    json_decref(root);
    return rv;
fail:
    fl_npy_part_abort(pool);
    json_decref(clients);
    return rv;
}

/* Checked over the whole data set: a single client may lack most classes. */
static void split_warn_classes(const struct split *s)
{
    const struct fl_dataset *const sets[] = {s->set.train, s->set.test};
    char text[256];
    size_t n = 0;

    if (fl_dataset_missing(sets, 2, 0, text, sizeof(text), &n) == FL_OK && n > 0) {
        (void)fprintf(stderr,
                      "fl-data split: warning: no sample of '%s' has class %s: labels are class "
                      "numbers from 0 on, so %zu of %zu classes are empty; renumber the labels "
                      "if this is not intended\n",
                      s->input, text, n, s->set.train->classes);
    }
}

/* The files have the labels with noise. */
static int split_add_noise(struct split *s, struct fl_err *err)
{
    struct fl_dataset *train = s->set.train;
    int rv = fl_split_noise(train, &s->conf, &s->part, &s->noise, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (s->noise.labels != NULL) {
        (void)memcpy(train->y, s->noise.labels, train->n * sizeof(*train->y));
    }
    return FL_OK;
}

static int split_run(struct split *s, struct fl_err *err)
{
    struct fl_dataset *train;
    struct fl_dataset *test;
    size_t k;
    struct output out;
    int rv = output_begin(&out, s->output, s->input, s->force, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = input_open("split", s->input, &s->reading, &s->import, &s->in, err);
    if (rv != FL_OK) {
        goto done;
    }
    train = s->in.train;
    test = s->in.test;
    s->in.train = s->in.test = NULL;
    if (train == NULL) { /* The message of the error lists the expected files. */
        rv = fl_dataset_open(s->input, "train", &train, err);
        if (rv != FL_OK) {
            fl_dataset_free(test);
            goto done;
        }
    }
    rv = fl_split_prepare(s->input, &s->conf, train, test, &s->set, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_split_share(s->set.train, &s->conf, &s->part, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = split_add_noise(s, err);
    if (rv != FL_OK) {
        goto done;
    }
    for (k = 0; k < s->conf.partition.n_clients; k++) {
        s->n_client_test +=
            fl_dataset_split_count(fl_partition_count(&s->part, k), s->conf.test_share);
    }
    rv = split_write_all(s, &out, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = write_schema(out.tmp, &s->in, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = output_commit(&out, err);
done:
    output_abort(&out);
    return rv;
}

int cmd_split(int argc, char **argv)
{
    struct split s = {.input = NULL};
    struct fl_err err = {0};
    int status = EXIT_USAGE;
    size_t least;
    size_t most;
    size_t k;
    int rv;

    if (!split_parse(&s, argc, argv, &status)) {
        return status;
    }
    catch_signals();
    status = EXIT_FAILURE;
    rv = split_run(&s, &err);
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-data split: %s\n", fl_err_text(&err, rv));
        goto done;
    }
    split_warn_classes(&s);
    least = SIZE_MAX;
    most = 0;
    for (k = 0; k < s.conf.partition.n_clients; k++) {
        size_t n = fl_partition_count(&s.part, k);

        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    (void)printf("%s: %zu clients (%s, seed %" PRIu64 "), %zu of %zu samples, %zu to %zu each",
                 s.output, s.conf.partition.n_clients, s.conf.method->name, s.conf.partition.seed,
                 s.part.start[s.conf.partition.n_clients], s.set.train->n, least, most);
    if (s.n_client_test > 0) {
        (void)printf(", %zu of them for test", s.n_client_test);
    }
    if (s.noise.labels != NULL) {
        (void)printf(", %zu labels of %zu clients replaced", s.noise.n_labels, s.noise.n_clients);
    }
    if (s.set.test != NULL) {
        (void)printf("; server: %zu test samples", s.set.test->n);
    }
    (void)printf("\n");
    status = EXIT_SUCCESS;
done:
    fl_split_noise_done(&s.noise);
    fl_partition_done(&s.part);
    fl_split_set_done(&s.set);
    input_done(&s.in);
    return status;
}
