/* Reads the mapping `data:` of an experiment: its keys, and which of them can be combined. Pure
   functions on a document; it opens no data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "tools/fl_sim/data/data_impl.h"

/* The union of the options of all methods, and the number of names. */
#define MAX_OTHERS 32
#define NAME_SIZE  48

struct values {
    const char *path, *set, *method, *seed;
    int64_t clients, crop;
    double test_share, noise_share, noise_clients;
    enum fl_split_pool pool;
    enum fl_split_standardise standardise;
    bool path_given, set_given, method_given, clients_given, seed_given, crop_given;
    bool test_share_given, pool_given, standardise_given, noise_share_given, noise_clients_given;
    const char *characters, *target, *category, *drop; /* as in struct fl_import_conf */
    bool characters_given, target_given, category_given, drop_given, regression;
    int64_t channels, window, stride;
    int encode, missing;
};

/* clang-format off */
static const char *const conf_encodings[] = {"index", "one-hot", NULL};

#define ROW(TYPE, field) FL_OPT(struct values, TYPE, field), FL_OPT_GIVEN(struct values, field)

const struct fl_opt_spec fl_sim_data_options[] = {
    {ROW(STRING, path),
     .help = "A folder that fl-data made: one folder for each client, with the client's name"},
    {ROW(STRING, set),
     .help = "A data set to partition: a folder, a name in $FL_DATA_DIR, digits or synthetic"},
    {ROW(STRING, method), .def = "iid",
     .help = "Partition method: a method of fl-data split, whose options are keys beside it"},
    {ROW(INT, clients), .min = 1, .max = (double)FL_PARTITION_MAX_CLIENTS,
     .help = "Number of clients"},
    {ROW(STRING, seed), .def = "0",
     .help = "Seed of the partition: a number, or trial: a partition for each trial's seed"},
    {ROW(FLOAT, test_share), .min = 0, .max = FL_SPLIT_MAX_SHARE,
     .help = "Share of each client's samples for its own test; default: that of the method"},
    {ROW(ENUM, pool), .def = "as-method", .choices = fl_split_pools,
     .help = "Whether the test part of the set is partitioned too"},
    {ROW(ENUM, standardise), .def = "as-input", .choices = fl_split_standards,
     .help = "As --standardise of fl-data split"},
    {ROW(INT, crop), .min = 0, .max = FL_SPLIT_MAX_CROP, .def = "0",
     .help = "Crop every picture to N x N pixels in its middle; 0: no crop"},
    {ROW(FLOAT, noise_share), .min = 0, .max = 1, .def = "0",
     .help = "Share of a noisy client's training labels that are replaced by another class"},
    {ROW(FLOAT, noise_clients), .min = 0, .max = 1, .def = "1",
     .help = "Share of the clients to which noise_share applies"},
    /* As of fl-data, for sets of pictures, texts and tables. */
    {FL_OPT(struct values, INT, channels), .min = 0, .max = 3, .def = "0",
     .help = "Pictures: convert all to 1 (grey) or 3 (colour) channels; 0: as the first has"},
    {FL_OPT(struct values, INT, window), .min = 1, .max = FL_IMPORT_MAX_WINDOW, .def = "80",
     .help = "Text: characters of a sample"},
    {FL_OPT(struct values, INT, stride), .min = 1, .max = (double)FL_IMPORT_MAX_TEXT, .def = "1",
     .help = "Text: characters from one sample to the next"},
    {ROW(STRING, characters),
     .help = "Text: the known characters in order; leaf: the 80 of shakespeare_lstm; default: "
             "those of the train part"},
    {ROW(STRING, target),
     .help = "Table: the column of the label, or of the values, with commas; default: the last"},
    {FL_OPT(struct values, BOOL, regression), .def = "no",
     .help = "Table: predict the values of the target columns"},
    {ROW(STRING, category),
     .help = "Table: columns that are categories, also where they hold numbers, with commas"},
    {ROW(STRING, drop), .help = "Table: columns to leave out, with commas"},
    {FL_OPT(struct values, ENUM, encode), .def = "one-hot", .choices = conf_encodings,
     .help = "Table: a category becomes one-hot features or its index"},
    {FL_OPT(struct values, ENUM, missing), .def = "refuse", .choices = fl_missing_rules,
     .help = "Table: refuse missing values, put the mean, or skip the row"},
    FL_OPT_END_OF(struct values)};
/* clang-format on */

/* --- options of methods: keys with '_' where fl-data has '-' --- */

struct others {
    char names[MAX_OTHERS][NAME_SIZE];
    const char *list[MAX_OTHERS + 1];
    size_t n;
};

static void conf_add_excluded(struct others *o, const char *name)
{
    char key[NAME_SIZE];
    size_t i;

    FL_REQUIRE(fl_str_copy(key, sizeof(key), name) == FL_OK);
    for (i = 0; key[i] != '\0'; i++) {
        key[i] = key[i] == '-' ? '_' : key[i];
    }
    for (i = 0; i < o->n; i++) {
        if (strcmp(o->names[i], key) == 0) {
            return;
        }
    }
    FL_REQUIRE(o->n < MAX_OTHERS);
    (void)memcpy(o->names[o->n], key, sizeof(key));
    o->list[o->n] = o->names[o->n];
    o->n++;
}

static bool conf_excludes_key(const struct others *o, const char *key)
{
    size_t i;

    for (i = 0; i < o->n && strcmp(o->names[i], key) != 0; i++) {
    }
    return i < o->n;
}

static const struct fl_partition_option *conf_option(const struct fl_partition_ops *method,
                                                     const char *key)
{
    const struct fl_partition_option *option;
    size_t i;

    for (option = method->options; option->name != NULL; option++) {
        for (i = 0; key[i] != '\0' && (key[i] == '_' ? '-' : key[i]) == option->name[i]; i++) {
        }
        if (key[i] == '\0' && option->name[i] == '\0') {
            return option;
        }
    }
    return NULL;
}

/* --- given keys --- */

struct reading {
    const struct fl_conf_node *map;
    const struct values *v;
    const struct others *others;
    const char *base;
    struct fl_sim_data_conf *conf;
};

/* The node of a key, or the mapping if the key is not given. */
static const struct fl_conf_node *conf_node(const struct reading *r, const char *key)
{
    const struct fl_conf_node *node = fl_conf_get(r->map, key);

    return node != NULL ? node : r->map;
}

static int conf_read_seed(const struct reading *r, uint64_t *ret, struct fl_err *err)
{
    if (strcmp(r->v->seed, "trial") == 0) {
        r->conf->by_trial = true;
        return FL_OK;
    }
    if (fl_str_to_u64(r->v->seed, ret) != FL_OK || *ret > INT64_MAX) {
        return fl_conf_error(conf_node(r, "seed"), err,
                             "expected 'trial' or a whole number of at most %lld, found '%s'",
                             (long long)INT64_MAX, r->v->seed);
    }
    return FL_OK;
}

static int conf_require_clients(const struct reading *r, size_t *ret, struct fl_err *err)
{
    if (!r->v->clients_given) {
        return fl_conf_error(
            r->map, err,
            "the required key 'clients' is missing (among how many clients '%s' is "
            "divided)",
            r->v->set);
    }
    *ret = (size_t)r->v->clients;
    return FL_OK;
}

/* Keys other than those in `keep` (NULL-terminated) cannot be combined with it. */
static int conf_only_keys(const struct reading *r, const char *const *keep, const char *with,
                          struct fl_err *err)
{
    size_t i;
    size_t k;

    for (i = 0; i < fl_conf_size(r->map); i++) {
        for (k = 0; keep[k] != NULL && strcmp(keep[k], fl_conf_key(r->map, i)) != 0; k++) {
        }
        if (keep[k] == NULL) {
            return fl_conf_error(fl_conf_at(r->map, i), err, "cannot be combined with %s", with);
        }
    }
    return FL_OK;
}

static int conf_read_folder(const struct reading *r, struct fl_err *err)
{
    static const char *const keep[] = {"path", NULL};
    char manifest[FL__DATA_PATH];
    struct fl_err inner = {0};
    int rv = conf_only_keys(r, keep, "'path': that folder has its own partition", err);

    if (rv != FL_OK) {
        return rv;
    }
    r->conf->kind = FL__DATA_FOLDER;
    if (fl__data_resolve(r->base, r->v->path, r->conf->path, &inner) != FL_OK ||
        fl_fs_join(manifest, sizeof(manifest), r->conf->path, FL_SPLIT_MANIFEST) != FL_OK)
    {
        return fl_conf_error(conf_node(r, "path"), err, "%s", fl_err_text(&inner, FL_ELIMIT));
    }
    if (!fl_fs_exists(r->conf->path)) {
        return fl_conf_error(conf_node(r, "path"), err, "'%s' does not exist", r->conf->path);
    }
    if (!fl_fs_exists(manifest)) {
        return fl_conf_error(conf_node(r, "path"), err,
                             "'%s' was not made by fl-data: it holds no %s; a data set is named by "
                             "'set'",
                             r->conf->path, FL_SPLIT_MANIFEST);
    }
    return FL_OK;
}

/* The text of a scalar below the mapping, for messages. */
static int conf_text_of(const struct fl_conf_node *node, const char **ret, struct fl_err *err)
{
    *ret = fl_conf_text(node);
    return *ret != NULL ? FL_OK : fl_conf_error(node, err, "expected one value, found several");
}

static int conf_read_spread(const struct reading *r, const char *key, double *ret,
                            struct fl_err *err)
{
    const struct fl_conf_node *node = fl_conf_get(r->map, key);
    const char *text = NULL;
    double value = 0.0;
    int rv;

    if (node == NULL) {
        return FL_OK;
    }
    rv = conf_text_of(node, &text, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (fl_str_to_double(text, &value) != FL_OK || !(value >= 0.0 && value <= 1e6)) {
        return fl_conf_error(node, err, "expected a number from 0 to 1e6, found '%s'", text);
    }
    *ret = value;
    return FL_OK;
}

static int conf_read_synthetic(const struct reading *r, struct fl_err *err)
{
    static const char *const keep[] = {"set",  "clients",    "alpha", "beta",
                                       "seed", "test_share", NULL};
    struct fl_synthetic_conf *s = &r->conf->synthetic;
    int rv = conf_only_keys(r, keep, "'set: synthetic', which generates the clients", err);

    if (rv != FL_OK) {
        return rv;
    }
    r->conf->kind = FL__DATA_SYNTHETIC;
    fl_synthetic_conf_init(s);
    r->conf->split.test_share = r->v->test_share_given ? r->v->test_share : FL_SYNTHETIC_TEST_SHARE;
    rv = conf_read_seed(r, &s->seed, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = conf_read_spread(r, "alpha", &s->alpha, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = conf_read_spread(r, "beta", &s->beta, err);
    if (rv != FL_OK) {
        return rv;
    }
    return conf_require_clients(r, &s->n_clients, err);
}

static int conf_read_method(const struct reading *r, struct fl_err *err)
{
    const struct fl_partition_ops *method = fl_partition_find(r->v->method);
    const char *names[MAX_OTHERS];
    char known[256] = "";
    const char *near;
    size_t used = 0;
    size_t n;

    if (method != NULL) {
        fl_split_conf_method(&r->conf->split, method);
        return FL_OK;
    }
    for (n = 0; fl_partition_at(n) != NULL; n++) {
        FL_REQUIRE(n < MAX_OTHERS && used < sizeof(known));
        names[n] = fl_partition_at(n)->name;
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", n > 0 ? ", " : "",
                                 names[n]);
    }
    near = fl_str_nearest(r->v->method, names, n);
    return fl_conf_error(conf_node(r, "method"), err, "unknown method '%s'%s%s%s; known: %s",
                         r->v->method, near != NULL ? ", did you mean '" : "",
                         near != NULL ? near : "", near != NULL ? "'?" : "", known);
}

/* How pictures, texts and tables are read. */
static int conf_read_import(const struct reading *r, struct fl_err *err)
{
    const struct values *v = r->v;
    const char *const texts[FL__DATA_TEXTS] = {
        v->characters_given ? fl_import_characters(v->characters) : NULL,
        v->target_given ? v->target : NULL, v->category_given ? v->category : NULL,
        v->drop_given ? v->drop : NULL};
    struct fl_import_conf *import = &r->conf->import;
    size_t i;

    if (v->channels == 2) {
        return fl_conf_error(conf_node(r, "channels"), err,
                             "expected 1 (grey), 3 (colour) or 0 (as the first picture has), "
                             "found '2'");
    }
    for (i = 0; i < FL__DATA_TEXTS; i++) {
        r->conf->texts[i] = texts[i] != NULL ? fl_str_dup(texts[i]) : NULL;
        if (texts[i] != NULL && r->conf->texts[i] == NULL) {
            return fl_err_set(err, FL_ENOMEM, "out of memory reading 'data'");
        }
    }
    fl_import_conf_init(import);
    import->channels = (size_t)v->channels;
    import->window = (size_t)v->window;
    import->stride = (size_t)v->stride;
    import->characters = r->conf->texts[0];
    import->target = r->conf->texts[1];
    import->category = r->conf->texts[2];
    import->drop = r->conf->texts[3];
    import->regression = v->regression;
    import->one_hot = v->encode == 1;
    import->missing = (enum fl_missing)v->missing;
    return FL_OK;
}

static int conf_read_set(const struct reading *r, struct fl_err *err)
{
    struct fl_split_conf *split = &r->conf->split;
    struct fl_err inner = {0};
    size_t i;
    int rv = conf_read_method(r, err);

    if (rv != FL_OK) {
        return rv;
    }
    r->conf->kind = FL__DATA_SET;
    for (i = 0; i < fl_conf_size(r->map); i++) {
        const struct fl_conf_node *node = fl_conf_at(r->map, i);
        const char *key = fl_conf_key(r->map, i);
        const struct fl_partition_option *option;
        const char *text = NULL;
        size_t skip;

        if (!conf_excludes_key(r->others, key)) {
            continue;
        }
        option = conf_option(split->method, key);
        if (option == NULL) {
            return fl_conf_error(node, err, "does not apply to method '%s'", split->method->name);
        }
        rv = conf_text_of(node, &text, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (fl_partition_option_set(option, &split->partition, text, &inner) != FL_OK) {
            /* The message begins with the name of the option, which the node's message has
               already. */
            skip = strlen(option->name) + 2;
            return fl_conf_error(node, err, "%s", inner.msg + skip);
        }
    }
    rv = conf_read_import(r, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = conf_read_seed(r, &split->partition.seed, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = conf_require_clients(r, &split->partition.n_clients, err);
    if (rv != FL_OK) {
        return rv;
    }
    split->test_share = r->v->test_share_given ? r->v->test_share : split->test_share;
    split->pool = r->v->pool;
    split->standardise = r->v->standardise;
    split->crop = (uint64_t)r->v->crop;
    split->noise_share = r->v->noise_share;
    split->noise_clients = r->v->noise_clients;
    if (r->v->noise_clients_given && !r->v->noise_share_given) {
        return fl_conf_error(conf_node(r, "noise_clients"), err,
                             "needs noise_share, the share of their labels that is replaced");
    }
    rv = fl__data_find(r->base, r->v->set, r->conf->path, &inner);
    if (rv != FL_OK) {
        return fl_conf_error(conf_node(r, "set"), err, "%s", fl_err_text(&inner, rv));
    }
    return FL_OK;
}

static int conf_read_program(const struct reading *r, struct fl_err *err)
{
    static const char *const keep[] = {"clients", NULL};
    int rv = conf_only_keys(r, keep, "'clients' alone, where a program has the data", err);

    if (rv != FL_OK) {
        return rv;
    }
    r->conf->kind = FL__DATA_PROGRAM;
    r->conf->n_clients = (size_t)r->v->clients;
    return FL_OK;
}

int fl_sim_data_conf_read(const struct fl_conf_doc *doc, const struct fl_conf_node *map,
                          const char *base, struct fl_sim_data_conf **ret, struct fl_err *err)
{
    const struct fl_partition_option *option;
    struct fl_sim_data_conf *conf = NULL;
    struct fl_options *options = NULL;
    struct reading r = {.map = map, .base = base};
    struct others others;
    const struct values *v;
    size_t i;
    int rv;

    if (map == NULL) {
        return fl_conf_error(fl_conf_root(doc), err,
                             "the required section 'data' is missing: the clients' data");
    }
    conf = calloc(1, sizeof(*conf));
    r.conf = conf;
    rv = conf != NULL ? fl_options_create(fl_sim_data_options, &options) : FL_ENOMEM;
    if (rv != FL_OK) {
        free(conf);
        return fl_err_set(err, rv, "out of memory reading 'data'");
    }
    others = (struct others){.n = 0};
    for (i = 0; fl_partition_at(i) != NULL; i++) {
        for (option = fl_partition_at(i)->options; option->name != NULL; option++) {
            conf_add_excluded(&others, option->name);
        }
    }
    conf_add_excluded(&others, "alpha"); /* Options of synthetic. */
    conf_add_excluded(&others, "beta");
    r.others = &others;
    conf->map = map;
    fl_split_conf_init(&conf->split);
    rv = fl_conf_apply(doc, map, "data", others.list, options, err);
    if (rv != FL_OK) {
        goto done;
    }
    r.v = fl_options_values(options);
    v = r.v;
    if (!v->path_given && !v->set_given && v->clients_given) {
        rv = conf_read_program(&r, err);
        goto done;
    }
    if (v->path_given == v->set_given) {
        rv = fl_conf_error(r.map, err,
                           "expected either 'path', a folder that fl-data made, or 'set', a data "
                           "set to partition, found %s ('clients' alone: the data of a program, "
                           "with client.trainer: command)",
                           v->set_given ? "both" : "neither");
        goto done;
    }
    if (v->path_given) {
        rv = conf_read_folder(&r, err);
        goto done;
    }
    rv = strcmp(v->set, "synthetic") == 0 ? conf_read_synthetic(&r, err) : conf_read_set(&r, err);
done:
    fl_options_free(options);
    if (rv != FL_OK) {
        fl_sim_data_conf_free(conf);
        return rv;
    }
    *ret = conf;
    return FL_OK;
}

void fl_sim_data_conf_free(struct fl_sim_data_conf *conf)
{
    size_t i;

    for (i = 0; conf != NULL && i < FL__DATA_TEXTS; i++) {
        free(conf->texts[i]);
    }
    free(conf);
}

bool fl_sim_data_conf_of_program(const struct fl_sim_data_conf *conf)
{
    return conf->kind == FL__DATA_PROGRAM;
}

void fl_sim_data_conf_ask(struct fl_sim_data_conf *conf, fl_sim_data_count_cb *count, void *ctx)
{
    conf->count = count;
    conf->ctx = ctx;
}

int fl_sim_data_conf_folder(const struct fl_sim_data_conf *conf, const char *name, char *out,
                            size_t size, bool *ret_whole, struct fl_err *err)
{
    int rv = FL_OK;

    *ret_whole = conf->kind != FL__DATA_SET;
    switch (conf->kind) {
    case FL__DATA_FOLDER:
        rv = fl_fs_join(out, size, conf->path, name != NULL ? name : FL_SPLIT_SERVER);
        break;
    case FL__DATA_SET:
        if (conf->split.noise_share > 0.0) {
            return fl_conf_error(fl_conf_get(conf->map, "noise_share"), err,
                                 "a program reads the labels of the set, which have no noise: "
                                 "write the data with 'fl-data split --noise-share', and set "
                                 "'path'");
        }
        rv = fl_str_copy(out, size, conf->path);
        break;
    case FL__DATA_PROGRAM:
        out[0] = '\0';
        break;
    case FL__DATA_SYNTHETIC:
        return fl_conf_error(conf->map, err,
                             "'set: synthetic' is generated and in no file that a program could "
                             "read: write it with 'fl-data synthetic', and set 'path'");
    }
    return rv == FL_OK ? FL_OK : fl_err_set(err, rv, "path '%s' is too long", conf->path);
}

bool fl_sim_data_conf_by_trial(const struct fl_sim_data_conf *conf)
{
    return conf->by_trial;
}
