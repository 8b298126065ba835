/*
 * fl-data synthetic: writes the federation Synthetic(alpha, beta), one folder per client. Main
 * thread. Generates no samples itself: libfl/data/synthetic.c does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/data/split.h"
#include "libfl/data/synthetic.h"
#include "tools/fl_data/fl_data.h"

struct job {
    const char *output;
    struct fl_synthetic_conf conf;
    double test_share;
    bool force;
};

static const char summary[] =
    "Usage: fl-data synthetic --output DIR [OPTION]...\n"
    "\n"
    "Make the federation Synthetic(alpha, beta): 60 features, 10 classes, a linear model of\n"
    "its own for every client. Bit for bit what numpy's legacy generator gives for the seed;\n"
    "the defaults are the published set (100 clients, 205795 samples). The output is laid\n"
    "out as by 'fl-data split'; the folder server holds the test samples of all clients.\n";

static bool synthetic_parse(struct job *j, int argc, char **argv, int *ret_status)
{
    const char *clients = NULL;
    const char *alpha = NULL;
    const char *beta = NULL;
    const char *seed = NULL;
    const char *share = NULL;
    uint64_t n_clients = 100;
    const struct fl_arg args[] = {
        {.name = "output", .value = "DIR", .help = "the folder to create", .text = &j->output},
        {.name = "clients", .value = "N", .help = "number of clients (100)", .text = &clients},
        {.name = "alpha",
         .value = "X",
         .help = "how much the clients' models differ (0.5)",
         .text = &alpha},
        {.name = "beta",
         .value = "X",
         .help = "how much the clients' features differ (0.5)",
         .text = &beta},
        {.name = "seed", .value = "N", .help = "below 2^32 (0)", .text = &seed},
        {.name = "test-share",
         .value = "P",
         .help = "share of each client's samples kept for test (0.25)",
         .text = &share},
        {.name = "force", .help = "replace an output folder that is not empty", .flag = &j->force},
    };

    if (!args_parse(argc, argv, summary, args, sizeof(args) / sizeof(args[0]), NULL, ret_status)) {
        return false;
    }
    *ret_status = EXIT_USAGE;
    if (j->output == NULL) {
        (void)fl_data_usage_error("synthetic", "--output is required");
        return false;
    }
    fl_synthetic_conf_init(&j->conf);
    j->test_share = FL_SYNTHETIC_TEST_SHARE;
    if (!arg_count("synthetic", "clients", clients, 1, 10000, &n_clients) ||
        !arg_real("synthetic", "alpha", alpha, 0.0, 1e6, &j->conf.alpha) ||
        !arg_real("synthetic", "beta", beta, 0.0, 1e6, &j->conf.beta) ||
        !arg_count("synthetic", "seed", seed, 0, UINT32_MAX, &j->conf.seed) ||
        !arg_real("synthetic", "test-share", share, 0.0, FL_SPLIT_MAX_SHARE, &j->test_share))
    {
        return false;
    }
    j->conf.n_clients = (size_t)n_clients;
    return true;
}

/* Generates the k-th client and writes its folder. */
static int synthetic_write_next(const struct job *j, struct fl_synthetic *gen, size_t k,
                                struct client_job *client, json_t *clients, struct fl_err *err)
{
    struct fl_dataset *ds = NULL;
    uint32_t *items;
    size_t i;
    int rv = fl_synthetic_next(gen, &ds, err);

    if (rv != FL_OK) {
        return rv;
    }
    items = malloc(ds->n * sizeof(*items));
    if (items == NULL) {
        fl_dataset_free(ds);
        return fl_err_set(err, FL_ENOMEM, "no memory for %zu samples", ds->n);
    }
    for (i = 0; i < ds->n; i++) {
        items[i] = (uint32_t)i;
    }
    client->ds = ds;
    client->items = items;
    client->n = ds->n;
    client->n_test = fl_dataset_split_count(ds->n, j->test_share);
    rv = fl_split_own_test(j->conf.seed, k, j->test_share, items, ds->n, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = write_client(client, clients, err);
done:
    free(items);
    fl_dataset_free(ds);
    return rv;
}

static int synthetic_write_all(const struct job *j, struct fl_synthetic *gen,
                               const struct output *out, size_t n_test, struct fl_err *err)
{
    const struct fl_dataset like = {
        .type = FL_DATA_F32, .dims = {FL_SYNTHETIC_FEATURES, 1, 1}, .n_dims = 1};
    char folder[PATH_SIZE];
    char name[FL_SPLIT_NAME];
    json_t *clients = json_array();
    struct fl_npy_part *pool = NULL;
    json_t *root;
    size_t k;
    int rv = FL_OK;

    if (n_test > 0) { /* The server's test part: writing the clients' folders adds the samples. */
        rv = output_folder(out, FL_SPLIT_SERVER, folder, err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = fl_npy_part_create(folder, "test", &like, n_test, &pool, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    for (k = 0; k < j->conf.n_clients; k++) {
        struct client_job client = {
            .out = out, .name = fl_split_name(name, k, j->conf.n_clients), .pool = pool};

        rv = synthetic_write_next(j, gen, k, &client, clients, err);
        if (rv != FL_OK) {
            goto fail;
        }
        show_progress("clients", k + 1, j->conf.n_clients);
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
    root =
        json_pack("{s:s, s:s, s:{s:f, s:f}, s:I, s:f, s:{s:s, s:[i]}, s:{s:s, s:i}, s:o, "
                  "s:{s:I}}",
                  "made_by", "fl-data " PACKAGE_VERSION, "method", "synthetic", "options", "alpha",
                  j->conf.alpha, "beta", j->conf.beta, "seed", (json_int_t)j->conf.seed,
                  "test_share", j->test_share, "features", "type", "float32", "shape",
                  FL_SYNTHETIC_FEATURES, "labels", "type", "int32", "classes", FL_SYNTHETIC_CLASSES,
                  "clients", clients, "server", "test", (json_int_t)n_test);
    rv = output_manifest(out, root, err);
    json_decref(root);
    return rv;
fail:
    fl_npy_part_abort(pool);
    json_decref(clients);
    return rv;
}

static int synthetic_run(const struct job *j, struct fl_err *err)
{
    struct fl_synthetic *gen = NULL;
    struct output out = {.exists = false};
    size_t total = 0;
    size_t n_test = 0;
    size_t k;
    int rv = fl_synthetic_create(&j->conf, &gen, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (k = 0; k < j->conf.n_clients; k++) {
        total += fl_synthetic_size(gen, k);
        n_test += fl_dataset_split_count(fl_synthetic_size(gen, k), j->test_share);
    }
    rv = output_begin(&out, j->output, NULL, j->force, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = synthetic_write_all(j, gen, &out, n_test, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = output_commit(&out, err);
    if (rv != FL_OK) {
        goto done;
    }
    (void)printf("%s: %zu clients (synthetic, seed %" PRIu64 "), %zu samples, %zu of them for "
                 "test\n",
                 j->output, j->conf.n_clients, j->conf.seed, total, n_test);
done:
    output_abort(&out);
    fl_synthetic_free(gen);
    return rv;
}

int cmd_synthetic(int argc, char **argv)
{
    struct job j = {.output = NULL};
    struct fl_err err = {0};
    int status = EXIT_USAGE;
    int rv;

    if (!synthetic_parse(&j, argc, argv, &status)) {
        return status;
    }
    catch_signals();
    rv = synthetic_run(&j, &err);
    if (rv != FL_OK) {
        (void)fprintf(stderr, "fl-data synthetic: %s\n", fl_err_text(&err, rv));
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
