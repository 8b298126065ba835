/* Reading an experiment file: the server's keys are checked with the server's own tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/anchors.h"

struct synthetic {
    int64_t clients, seed;
    double alpha, beta;
};

static const struct fl_opt_spec synthetic_specs[] = {
    {FL_OPT(struct synthetic, INT, clients), .def = "100", .min = 1, .max = 100, .help = "Clients"},
    {FL_OPT(struct synthetic, FLOAT, alpha), .def = "0.5", .min = 0, .max = 10, .help = "Models"},
    {FL_OPT(struct synthetic, FLOAT, beta), .def = "0.5", .min = 0, .max = 10, .help = "Data"},
    {FL_OPT(struct synthetic, INT, seed), .def = "0", .min = 0, .max = 4e9, .help = "Of the data"},
    FL_OPT_END_OF(struct synthetic)};

struct data {
    double test_share;
};

static const struct fl_opt_spec data_specs[] = {
    {FL_OPT(struct data, FLOAT, test_share), .def = "0.25", .min = 0, .max = 0.9,
     .help = "Share of each client's samples that it is tested on"},
    FL_OPT_END_OF(struct data)};

static const struct fl_opt_spec row_specs[] = {
    {FL_OPT(struct anchor_figures, FLOAT, paper), .def = "0", .min = 0, .max = 100,
     .help = "What the paper prints, in percent; 0: nothing"},
    {FL_OPT(struct anchor_figures, STRING, where), .def = "", .help = "Where it prints it"},
    {FL_OPT(struct anchor_figures, FLOAT, ours), .min = 0, .max = 100, .flags = FL_OPT_REQUIRED,
     .help = "What bench/anchors found, in percent"},
    FL_OPT_END_OF(struct anchor_figures)};

/* `map` into new options; `others` are left to the caller. */
static int read_map(const struct anchor_file *file, const struct fl_conf_node *map,
                    const char *where, const struct fl_opt_spec *specs, const char *const *others,
                    struct fl_options **ret, struct fl_err *err)
{
    int rv = fl_options_create(specs, ret);

    return rv == FL_OK ? fl_conf_apply(file->doc, map, where, others, *ret, err) : rv;
}

static int read_data(struct anchor_file *file, const struct fl_conf_node *node, struct fl_err *err)
{
    static const char *const others[] = {"synthetic", NULL};
    struct fl_options *data = NULL;
    struct fl_options *synthetic = NULL;
    int rv = read_map(file, node, "data", data_specs, others, &data, err);

    if (rv == FL_OK) {
        rv = read_map(file, fl_conf_get(node, "synthetic"), "data.synthetic", synthetic_specs, NULL,
                      &synthetic, err);
    }
    if (rv == FL_OK) {
        const struct data *d = fl_options_values(data);
        const struct synthetic *made = fl_options_values(synthetic);

        file->test_share = d->test_share;
        file->data = (struct fl_synthetic_conf){
            .n_clients = (size_t)made->clients,
            .alpha = made->alpha,
            .beta = made->beta,
            .seed = (uint32_t)made->seed,
        };
    }
    fl_options_free(data);
    fl_options_free(synthetic);
    return rv;
}

static int read_row(const struct anchor_file *file, const struct fl_conf_node *base,
                    struct anchor_row *row, struct fl_err *err)
{
    static const char *const others[] = {"server", NULL};
    static const char *const known[] = {"algorithm", "strategy", "training", NULL};
    const struct fl_conf_node *server = fl_conf_get(row->node, "server");
    const struct fl_conf_node *training = fl_conf_get(server, "training");
    int rv = read_map(file, row->node, row->name, row_specs, others, &row->options[0], err);

    if (rv == FL_OK && server == NULL) {
        rv = fl_conf_error(row->node, err, "expected the map 'server' with an algorithm");
    }
    if (rv == FL_OK) {
        rv = fl_conf_only(server, known, err);
    }
    if (rv == FL_OK) {
        rv = read_map(file, base, "server.training", fl_server_training_specs, NULL,
                      &row->options[1], err);
    }
    if (rv == FL_OK && training != NULL) {
        rv = fl_conf_apply(file->doc, training, "training", NULL, row->options[1], err);
    }
    if (rv == FL_OK) {
        row->figures = fl_options_values(row->options[0]);
        row->training = fl_options_values(row->options[1]);
    }
    row->algorithm = fl_conf_get(server, "algorithm");
    row->strategy = fl_conf_get(server, "strategy");
    return rv;
}

static int read_rows(struct anchor_file *file, const struct fl_conf_node *node,
                     const struct fl_conf_node *training, struct fl_err *err)
{
    size_t i;
    int rv = FL_OK;

    file->rows = calloc(fl_conf_size(node) + 1, sizeof(*file->rows));
    if (file->rows == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    for (i = 0; rv == FL_OK && i < fl_conf_size(node); i++) {
        struct anchor_row *row = &file->rows[file->n_rows++];

        row->name = fl_conf_key(node, i);
        row->node = fl_conf_at(node, i);
        rv = read_row(file, training, row, err);
    }
    return rv;
}

static int read_root(struct anchor_file *file, struct fl_err *err)
{
    static const char *const known[] = {"title", "data", "server", "rows", NULL};
    static const char *const of_server[] = {"model", "training", "rounds", NULL};
    const struct fl_conf_node *root = fl_conf_root(file->doc);
    const struct fl_conf_node *server = fl_conf_get(root, "server");
    const struct fl_conf_node *preset = fl_conf_get(fl_conf_get(server, "model"), "preset");
    const struct fl_conf_node *rounds = fl_conf_get(server, "rounds");
    const struct fl_conf_node *title = fl_conf_get(root, "title");
    int rv = fl_conf_only(root, known, err);

    if (rv == FL_OK && (server == NULL || preset == NULL || rounds == NULL || title == NULL ||
                        fl_conf_get(root, "rows") == NULL))
    {
        rv = fl_conf_error(root, err, "expected title, server with model.preset and rounds, rows");
    }
    rv = rv == FL_OK ? fl_conf_only(server, of_server, err) : rv;
    if (rv == FL_OK && fl_str_to_u64(fl_conf_text(rounds), &file->rounds) != FL_OK) {
        rv = fl_conf_error(rounds, err, "expected a whole number");
    }
    rv = rv == FL_OK ? read_data(file, fl_conf_get(root, "data"), err) : rv;
    if (rv == FL_OK) {
        file->title = fl_conf_text(title);
        file->preset = fl_conf_text(preset);
        rv = read_rows(file, fl_conf_get(root, "rows"), fl_conf_get(server, "training"), err);
    }
    return rv;
}

int anchor_file_load(const char *path, struct anchor_file *ret, struct fl_err *err)
{
    struct anchor_file file = {0};
    int rv = fl_conf_load(path, &file.doc, err);

    rv = rv == FL_OK ? read_root(&file, err) : rv;
    if (rv != FL_OK) {
        anchor_file_done(&file);
        return rv;
    }
    *ret = file;
    return FL_OK;
}

void anchor_file_done(struct anchor_file *file)
{
    size_t i;

    for (i = 0; i < file->n_rows; i++) {
        fl_options_free(file->rows[i].options[0]);
        fl_options_free(file->rows[i].options[1]);
    }
    free(file->rows);
    if (file->doc != NULL) {
        fl_conf_free(file->doc);
    }
    *file = (struct anchor_file){0};
}

/* Leaves below `node`, with their keys below `skip` characters of the path. */
static void add_leaves(const struct fl_conf_node *node, size_t skip, char *out, size_t size)
{
    size_t used = strlen(out);
    size_t i;

    if (fl_conf_kind(node) != FL_CONF_MAP) {
        (void)snprintf(out + used, size - used, "%s%s: %s", used > 0 ? ", " : "",
                       fl_conf_path(node) + skip, fl_conf_text(node));
        return;
    }
    for (i = 0; i < fl_conf_size(node); i++) {
        add_leaves(fl_conf_at(node, i), skip, out, size);
    }
}

void anchor_settings(const struct anchor_row *row, char *out, size_t size)
{
    const struct fl_conf_node *server = fl_conf_get(row->node, "server");

    out[0] = '\0';
    add_leaves(server, strlen(fl_conf_path(server)) + 1, out, size);
}
