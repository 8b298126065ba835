#include "server/daemon/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"
#include "libfl/net/address.h"
#include "libfl/net/conn.h"
#include "libfl/wire/messages.h"
#include "server/daemon/conf_tables.h"

struct section {
    const char *name;
    const struct fl_opt_spec *specs;
    size_t offset; /* of the struct fl_options * in struct fl_server_conf */
};

#define SECTION(field, specs)                                 \
    {                                                         \
#field, specs, offsetof(struct fl_server_conf, field) \
    }

static const struct section sections[] = {
    SECTION(model, fl_serverd_model_specs),
    SECTION(training, fl_serverd_training_specs),
    SECTION(round, fl_serverd_round_specs),
    SECTION(evaluation, fl_serverd_evaluation_specs),
    SECTION(checkpoints, fl_serverd_checkpoint_specs),
    SECTION(limits, fl_serverd_limit_specs),
};

static const char *const other_keys[] = {"algorithm",  "strategy",    "model",  "training", "round",
                                         "evaluation", "checkpoints", "limits", NULL};

static struct fl_options **section_slot(struct fl_server_conf *conf, const struct section *section)
{
    return (struct fl_options **)(void *)((char *)conf + section->offset);
}

static int load_sections(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_conf_node *root = fl_conf_root(conf->doc);
    size_t i;
    int rv;

    rv = fl_options_create(fl_serverd_main_specs, &conf->main);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_conf_apply(conf->doc, root, "", other_keys, conf->main, err);
    for (i = 0; rv == FL_OK && i < sizeof(sections) / sizeof(sections[0]); i++) {
        struct fl_options **slot = section_slot(conf, &sections[i]);

        rv = fl_options_create(sections[i].specs, slot);
        if (rv == FL_OK) {
            rv = fl_conf_apply(conf->doc, fl_conf_get(root, sections[i].name), sections[i].name,
                               NULL, *slot, err);
        }
    }
    return rv;
}

const struct fl_conf_node *fl_server_conf_node(const struct fl_server_conf *conf,
                                               const char *section, const char *key)
{
    const struct fl_conf_node *root = fl_conf_root(conf->doc);
    const struct fl_conf_node *map = section != NULL ? fl_conf_get(root, section) : root;
    const struct fl_conf_node *node = fl_conf_get(map, key);

    return node != NULL ? node : map != NULL ? map : root;
}

/* input: and layers: of the model section into conf->net. */
static int own_network(struct fl_server_conf *conf, struct fl_err *err)
{
    size_t n_input = fl_options_count(conf->model, "input");
    size_t n = fl_options_count(conf->model, "layers");
    size_t i;

    if (n_input == 0 || n_input > FL_NET_MAX_INPUT_DIMS) {
        return fl_conf_error(fl_server_conf_node(conf, "model", "input"), err,
                             "expected 1 to %d numbers beside layers, found %zu",
                             FL_NET_MAX_INPUT_DIMS, n_input);
    }
    conf->layers = calloc(n, sizeof(*conf->layers));
    if (conf->layers == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < n_input; i++) {
        conf->net.input[i] = (size_t)fl_options_int_item(conf->model, "input", i);
    }
    for (i = 0; i < n; i++) {
        conf->layers[i] = fl_options_item(conf->model, "layers", i);
    }
    conf->net.n_input = n_input;
    conf->net.layers = conf->layers;
    conf->net.n_layers = n;
    return FL_OK;
}

static int copy_layout(const struct fl_layout *from, struct fl_layout **ret, struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    int rv = fl_layout_create(&layout);
    size_t i;

    for (i = 0; rv == FL_OK && i < fl_layout_tensors(from); i++) {
        const struct fl_tensor *t = fl_layout_tensor(from, i);

        rv = fl_layout_add(layout, fl_layout_unit(from, t->unit)->name, t->name, t->dims, t->n_dims,
                           t->buffer, err);
    }
    if (rv == FL_OK) {
        rv = fl_layout_finish(layout, err);
    }
    if (rv != FL_OK) {
        fl_layout_free(layout);
        return rv;
    }
    *ret = layout;
    return FL_OK;
}

static int load_model(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_conf_node *node = fl_server_conf_node(conf, "model", "");
    bool preset = fl_options_is_set(conf->model, "preset");
    bool layers = fl_options_is_set(conf->model, "layers");
    struct fl_net *net = NULL;
    int rv;

    if (preset && layers) {
        return fl_conf_error(node, err, "expected either preset or layers, found both");
    }
    if (!preset && !layers) {
        if (!fl_options_is_set(conf->model, "file")) {
            return fl_conf_error(node, err, "expected one of preset, layers (with input) or file");
        }
        rv = fl_st_layout(fl_options_str(conf->model, "file"), &conf->layout, err);
        return rv == FL_OK ? FL_OK
                           : fl_conf_error(fl_server_conf_node(conf, "model", "file"), err, "%s",
                                           fl_err_text(err, rv));
    }
    if (preset) {
        rv = fl_net_preset(fl_options_str(conf->model, "preset"), &conf->net, err);
    } else {
        rv = own_network(conf, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (rv == FL_OK) {
        rv = fl_net_create(&conf->net, 1, &net, err);
    }
    if (rv != FL_OK) {
        struct fl_err inner = *err;

        return rv == FL_ENOMEM
                   ? rv
                   : fl_conf_error(fl_server_conf_node(conf, "model", preset ? "preset" : "layers"),
                                   err, "%s", fl_err_text(&inner, rv));
    }
    conf->inputs = fl_net_inputs(net);
    conf->classes = fl_net_classes(net);
    rv = copy_layout(fl_net_layout(net), &conf->layout, err);
    fl_net_free(net);
    return rv;
}

static int check_addresses(struct fl_server_conf *conf, struct fl_err *err)
{
    size_t n = fl_options_count(conf->main, "listen");
    size_t i;
    int rv;

    if (!fl_options_bool(conf->main, "insecure")) {
        return fl_conf_error(fl_server_conf_node(conf, NULL, "insecure"), err,
                             "this version has no TLS yet: set 'insecure: yes' for plaintext on "
                             "loopback addresses");
    }
    if (n == 0) {
        return fl_conf_error(fl_server_conf_node(conf, NULL, "listen"), err,
                             "expected at least one address");
    }
    for (i = 0; i < n; i++) {
        const char *address = fl_options_item(conf->main, "listen", i);
        struct fl_address parsed;
        struct fl_err inner = {0};

        rv = fl_address_parse(address, &parsed, &inner);
        if (rv != FL_OK) {
            return fl_conf_error(fl_server_conf_node(conf, NULL, "listen"), err, "%s",
                                 fl_err_text(&inner, rv));
        }
        if (!fl_address_is_loopback(address) && !fl_options_bool(conf->main, "insecure_remote")) {
            return fl_conf_error(fl_server_conf_node(conf, NULL, "listen"), err,
                                 "'%s' is not a loopback address; plaintext there needs "
                                 "'insecure_remote: yes' too",
                                 address);
        }
    }
    return FL_OK;
}

/*
 * Paths from the root on: the daemon and those who call it may stand in other folders. The admin
 * socket's address has to be one whoever wrote its path.
 */
static int resolve_paths(struct fl_server_conf *conf, struct fl_err *err)
{
    const char *state_dir = fl_options_str(conf->main, "state_dir");
    const char *admin = fl_options_str(conf->main, "admin_socket");
    bool given = admin[0] != '\0';
    char path[FL_SERVER_PATH_MAX - sizeof("unix:/admin.sock")];
    struct fl_address parsed;
    struct fl_err inner = {0};
    int rv = fl_fs_absolute(state_dir, path, sizeof(path), &inner);

    if (rv != FL_OK) {
        return fl_conf_error(fl_server_conf_node(conf, NULL, "state_dir"), err, "%s",
                             fl_err_text(&inner, rv));
    }
    (void)snprintf(conf->state_dir, sizeof(conf->state_dir), "%s", path);
    rv = given ? fl_fs_absolute(admin, path, sizeof(path), &inner) : FL_OK;
    (void)snprintf(conf->admin, sizeof(conf->admin), "unix:%s%s", path, given ? "" : "/admin.sock");
    if (rv == FL_OK) {
        rv = fl_address_parse(conf->admin, &parsed, &inner);
    }
    return rv == FL_OK ? FL_OK
                       : fl_conf_error(
                             fl_server_conf_node(conf, NULL, given ? "admin_socket" : "state_dir"),
                             err, "%s%s", fl_err_text(&inner, rv),
                             given ? "" : ": this is the socket for flctl, admin_socket moves it");
}

/* Uploads at full speed must fit beside everything else, one connection in the whole. */
static int check_memory(struct fl_server_conf *conf, struct fl_err *err)
{
    uint64_t uploads = fl_options_bytes(conf->limits, "upload_memory");
    uint64_t peer = fl_options_bytes(conf->limits, "peer_memory");

    conf->memory = fl_options_bytes(conf->limits, "memory");
    if (conf->memory == 0) {
        conf->memory = 4 * uploads > peer ? 4 * uploads : peer;
    }
    if (conf->memory / 2 < uploads) {
        return fl_conf_error(fl_server_conf_node(conf, "limits", "memory"), err,
                             "expected at least twice upload_memory (%llu bytes), found %llu",
                             (unsigned long long)uploads, (unsigned long long)conf->memory);
    }
    if (peer > conf->memory) {
        return fl_conf_error(fl_server_conf_node(conf, "limits", "peer_memory"), err,
                             "expected at most memory (%llu bytes), found %llu",
                             (unsigned long long)conf->memory, (unsigned long long)peer);
    }
    return FL_OK;
}

/* A round must be able to begin with the connections that are allowed. */
static int check_clients(struct fl_server_conf *conf, struct fl_err *err)
{
    static const char *const keys[] = {"start_clients", "min_clients"};
    long long clients = (long long)fl_options_int(conf->limits, "clients");
    size_t i;

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        long long needs = (long long)fl_options_int(conf->round, keys[i]);

        if (needs > clients) {
            return fl_conf_error(fl_server_conf_node(conf, "limits", "clients"), err,
                                 "expected at least round.%s, %lld, found %lld", keys[i], needs,
                                 clients);
        }
    }
    return FL_OK;
}

static int check(struct fl_server_conf *conf, struct fl_err *err)
{
    const char *name = fl_options_str(conf->main, "federation");
    struct fl_err why = {0};
    int rv;

    if (!fl_name_valid(name)) {
        return fl_conf_error(fl_server_conf_node(conf, NULL, "federation"), err,
                             "expected 1 to %d characters of A-Z a-z 0-9 . _ -, found '%s'",
                             FL_NAME_MAX - 1, name);
    }
    if (fl_options_int(conf->training, "epochs") == 0 &&
        fl_options_int(conf->training, "steps") == 0) {
        return fl_conf_error(fl_server_conf_node(conf, "training", "epochs"), err,
                             "expected epochs or steps above 0");
    }
    if (fl_options_is_set(conf->evaluation, "data") && conf->net.n_layers == 0) {
        return fl_conf_error(fl_server_conf_node(conf, "evaluation", "data"), err,
                             "the server can evaluate only networks given as preset or layers, "
                             "not a model from a file");
    }
    rv = check_clients(conf, err);
    if (rv == FL_OK) {
        rv = check_memory(conf, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_strategy_check_training(conf->strategy,
                                    fl_options_float(conf->training, "learning_rate"),
                                    fl_options_float(conf->training, "momentum"), &why);
    if (rv != FL_OK) {
        return fl_conf_error(fl_server_conf_node(conf, "training", "learning_rate"), err, "%s",
                             why.msg);
    }
    rv = check_addresses(conf, err);
    return rv == FL_OK ? resolve_paths(conf, err) : rv;
}

/* A chunk so small that its frame and its message cost more than its bytes is none. */
#define CHUNK_MIN (32u << 10)
/* Fields around the data of a chunk, rounded up. */
#define CHUNK_HEAD (4u << 10)
/* More in flight than this does not make one upload faster on any link we know. */
#define WINDOW_MAX (6u << 20)
/* Bytes of one part in the header of a Push, and of one label of a Hello. */
#define PART_BYTES 64

/*
 * What one upload may have in memory: its share of limits.upload_memory, at least three
 * messages: two in the window, so that a sender is not stopped in the middle of one while
 * the last one is being written, and the memory of the next one, taken as a whole.
 */
static void size_uploads(struct fl_server_conf *conf)
{
    uint64_t population = (uint64_t)fl_options_int(conf->round, "population");
    uint64_t start = (uint64_t)fl_options_int(conf->round, "start_clients");
    uint64_t share =
        fl_options_bytes(conf->limits, "upload_memory") / (population > start ? population : start);
    const struct fl_strategy *s = conf->strategy;
    uint64_t bundles = 1 + fl_solver_names(fl_solver_sends(s->solver, s->options[FL_SLOT_SOLVER]));
    uint64_t least = fl_layout_units(conf->layout) * bundles * PART_BYTES + CHUNK_HEAD;
    uint64_t chunk;

    share = share > WINDOW_MAX ? WINDOW_MAX : share;
    chunk = share / 3 > CHUNK_MIN + CHUNK_HEAD ? share / 3 - CHUNK_HEAD : CHUNK_MIN;
    chunk = (chunk > FL_WIRE_CHUNK ? FL_WIRE_CHUNK : chunk) / 4096 * 4096;
    conf->chunk_bytes = (uint32_t)chunk;
    if (s->solver->offer != NULL && least < FL_WIRE_OFFER_PIECE + CHUNK_HEAD) {
        least = FL_WIRE_OFFER_PIECE + CHUNK_HEAD;
    }
    conf->rpc.message_bytes = chunk + CHUNK_HEAD > least ? chunk + CHUNK_HEAD : least;
    conf->rpc.stream_window = 2 * (uint32_t)conf->rpc.message_bytes;
}

static void fill_limits(struct fl_server_conf *conf)
{
    const struct fl_options *o = conf->limits;

    fl_rpc_limits_default(&conf->rpc);
    conf->rpc.streams = (uint32_t)fl_options_int(o, "streams");
    conf->rpc.header_bytes = (uint32_t)fl_options_bytes(o, "header_bytes");
    size_uploads(conf);
    conf->rpc.conn_window = (uint32_t)fl_options_bytes(o, "connection_window");
    conf->rpc.memory = fl_options_bytes(o, "peer_memory");
    conf->rpc.handshake_ms = (uint32_t)fl_options_ms(o, "handshake");
    conf->rpc.idle_ms = (uint32_t)fl_options_ms(o, "idle");
    conf->rpc.resets = (uint32_t)fl_options_int(o, "resets");
    conf->durability = strcmp(fl_options_str(conf->main, "durability"), "power") == 0
                           ? FL_DURABLE_POWER
                           : FL_DURABLE_PROCESS;
}

int fl_server_conf_load(const char *path, struct fl_server_conf **ret, struct fl_err *err)
{
    struct fl_server_conf *conf = calloc(1, sizeof(*conf));
    int rv;

    if (conf == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_conf_load(path, &conf->doc, err);
    if (rv == FL_OK) {
        rv = load_sections(conf, err);
    }
    if (rv == FL_OK) {
        const struct fl_conf_node *root = fl_conf_root(conf->doc);

        rv = fl_strategy_load(conf->doc, fl_conf_get(root, "algorithm"),
                              fl_conf_get(root, "strategy"), &conf->strategy, err);
    }
    if (rv == FL_OK) {
        rv = load_model(conf, err);
    }
    if (rv == FL_OK) {
        rv = check(conf, err);
    }
    if (rv != FL_OK) {
        fl_server_conf_free(conf);
        return rv;
    }
    fill_limits(conf);
    *ret = conf;
    return FL_OK;
}

void fl_server_conf_free(struct fl_server_conf *conf)
{
    size_t i;

    if (conf == NULL) {
        return;
    }
    for (i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        fl_options_free(*section_slot(conf, &sections[i]));
    }
    fl_options_free(conf->main);
    fl_strategy_free(conf->strategy);
    fl_layout_free(conf->layout);
    free(conf->layers);
    fl_conf_free(conf->doc);
    free(conf);
}

void fl_server_conf_coord(const struct fl_server_conf *conf, struct fl_coord_conf *ret)
{
    const struct fl_options *r = conf->round;

    *ret = (struct fl_coord_conf){
        .seed = (uint64_t)fl_options_int(conf->main, "seed"),
        .rounds = (uint64_t)fl_options_int(conf->main, "rounds"),
        .population = (uint32_t)fl_options_int(r, "population"),
        .start_clients = (uint32_t)fl_options_int(r, "start_clients"),
        .min_clients = (uint32_t)fl_options_int(r, "min_clients"),
        .min_responders = fl_options_is_set(r, "min_responders")
                              ? (uint32_t)fl_options_int(r, "min_responders")
                              : FL_RESPONDERS_HALF,
        .patience = fl_options_float(r, "patience"),
        .patience_least_ms = fl_options_ms(r, "patience_least"),
        .over_selection = fl_options_float(r, "over_selection"),
        .train_ms = fl_options_ms(r, "train_deadline"),
        .upload_ms = fl_options_ms(r, "upload_deadline"),
        .lost_grace_ms = fl_options_ms(r, "lost_grace"),
        .evaluate_ms = fl_options_ms(conf->evaluation, "deadline"),
        .retry_ms = fl_options_ms(r, "retry"),
        .evaluate_every = (uint32_t)fl_options_int(conf->evaluation, "every"),
        .evaluate_server = fl_options_is_set(conf->evaluation, "data"),
        .evaluate_clients = fl_options_bool(conf->evaluation, "clients"),
        .forget_after_ms = fl_options_ms(r, "forget_after"),
        .max_clients = (uint32_t)fl_options_int(conf->limits, "known_clients"),
        .learning_rate = fl_options_float(conf->training, "learning_rate"),
        .learning_rate_decay = fl_options_float(conf->training, "learning_rate_decay"),
        .backfill = fl_options_bool(r, "backfill"),
        .strategy = conf->strategy,
        .layout = conf->layout,
    };
}
