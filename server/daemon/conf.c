#include "server/daemon/conf_impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"
#include "libfl/net/address.h"
#include "libfl/net/conn.h"
#include "libfl/wire/messages.h"

/* input: and layers: of the model section into conf->net. */
static int own_network(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_server_model *m = conf->model;
    size_t i;

    if (m->input.n == 0 || m->input.n > FL_NET_MAX_INPUT_DIMS) {
        return fl_conf_error(fl_conf_field(conf->file, &m->input), err,
                             "expected 1 to %d numbers beside layers, found %zu",
                             FL_NET_MAX_INPUT_DIMS, m->input.n);
    }
    for (i = 0; i < m->input.n; i++) {
        conf->net.input[i] = (size_t)m->input.list[i];
    }
    conf->net.n_input = m->input.n;
    conf->net.layers = m->layers.list;
    conf->net.n_layers = m->layers.n;
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
    const struct fl_server_model *m = conf->model;
    const struct fl_conf_node *node = fl_conf_section(conf->file, m);
    bool preset = m->preset[0] != '\0';
    bool layers = m->layers.n > 0;
    struct fl_net *net = NULL;
    int rv;

    if (preset && layers) {
        return fl_conf_error(node, err, "expected either preset or layers, found both");
    }
    if (!preset && !layers) {
        if (m->file[0] == '\0') {
            return fl_conf_error(node, err, "expected one of preset, layers (with input) or file");
        }
        rv = fl_st_layout(m->file, &conf->layout, err);
        return rv == FL_OK ? FL_OK
                           : fl_conf_error(fl_conf_field(conf->file, &conf->model->file), err, "%s",
                                           fl_err_text(err, rv));
    }
    if (preset) {
        rv = fl_net_preset(m->preset, &conf->net, err);
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

        return rv == FL_ENOMEM ? rv
                               : fl_conf_error(preset ? fl_conf_field(conf->file, &m->preset)
                                                      : fl_conf_field(conf->file, &m->layers),
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
    const struct fl_server_main *m = conf->main;
    size_t i;
    int rv;

    if (!m->insecure) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->main->insecure), err,
                             "this version has no TLS yet: set 'insecure: yes' for plaintext on "
                             "loopback addresses");
    }
    if (m->listen.n == 0) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->main->listen), err,
                             "expected at least one address");
    }
    for (i = 0; i < m->listen.n; i++) {
        const char *address = m->listen.list[i];
        struct fl_address parsed;
        struct fl_err inner = {0};

        rv = fl_address_parse(address, &parsed, &inner);
        if (rv != FL_OK) {
            return fl_conf_error(fl_conf_field(conf->file, &conf->main->listen), err, "%s",
                                 fl_err_text(&inner, rv));
        }
        if (!fl_address_is_loopback(address) && !m->insecure_remote) {
            return fl_conf_error(fl_conf_field(conf->file, &conf->main->listen), err,
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
    const char *state_dir = conf->main->state_dir;
    const char *admin = conf->main->admin_socket;
    bool given = admin[0] != '\0';
    char path[FL_SERVER_PATH_MAX - sizeof("unix:/admin.sock")];
    struct fl_address parsed;
    struct fl_err inner = {0};
    int rv = fl_fs_absolute(state_dir, path, sizeof(path), &inner);

    if (rv != FL_OK) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->main->state_dir), err, "%s",
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
                             fl_conf_field(conf->file, given ? &conf->main->admin_socket
                                                             : &conf->main->state_dir),
                             err, "%s%s", fl_err_text(&inner, rv),
                             given ? "" : ": this is the socket for flctl, admin_socket moves it");
}

/* Uploads at full speed must fit beside everything else, one connection in the whole. */
static int check_memory(struct fl_server_conf *conf, struct fl_err *err)
{
    uint64_t uploads = conf->limits->upload_memory;
    uint64_t peer = conf->limits->peer_memory;

    conf->memory = conf->limits->memory;
    if (conf->memory == 0) {
        conf->memory = 4 * uploads > peer ? 4 * uploads : peer;
    }
    if (conf->memory / 2 < uploads) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->limits->memory), err,
                             "expected at least twice upload_memory (%llu bytes), found %llu",
                             (unsigned long long)uploads, (unsigned long long)conf->memory);
    }
    if (peer > conf->memory) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->limits->peer_memory), err,
                             "expected at most memory (%llu bytes), found %llu",
                             (unsigned long long)conf->memory, (unsigned long long)peer);
    }
    return FL_OK;
}

/* A round must be able to begin with the connections that are allowed. */
static int check_clients(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_server_round *r = conf->round;
    bool start = r->start_clients > conf->limits->clients;
    long long needs = (long long)(start ? r->start_clients : r->min_clients);

    if (needs > conf->limits->clients) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->limits->clients), err,
                             "expected at least round.%s, %lld, found %lld",
                             start ? "start_clients" : "min_clients", needs,
                             (long long)conf->limits->clients);
    }
    return FL_OK;
}

static int check(struct fl_server_conf *conf, struct fl_err *err)
{
    const char *name = conf->main->federation;
    struct fl_err why = {0};
    int rv;

    if (!fl_name_valid(name)) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->main->federation), err,
                             "expected 1 to %d characters of A-Z a-z 0-9 . _ -, found '%s'",
                             FL_NAME_MAX - 1, name);
    }
    if (conf->training->epochs == 0 && conf->training->steps == 0) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->training->epochs), err,
                             "expected epochs or steps above 0");
    }
    if (conf->evaluation->data[0] != '\0' && conf->net.n_layers == 0) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->evaluation->data), err,
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
    rv = fl_strategy_check_training(conf->strategy, conf->training->learning_rate,
                                    conf->training->momentum, &why);
    if (rv != FL_OK) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->training->learning_rate), err, "%s",
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
    uint64_t population = (uint64_t)conf->round->population;
    uint64_t start = (uint64_t)conf->round->start_clients;
    uint64_t share = conf->limits->upload_memory / (population > start ? population : start);
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
    const struct fl_server_limits *l = conf->limits;

    fl_rpc_limits_default(&conf->rpc);
    conf->rpc.streams = (uint32_t)l->streams;
    conf->rpc.header_bytes = (uint32_t)l->header_bytes;
    size_uploads(conf);
    conf->rpc.conn_window = (uint32_t)l->connection_window;
    conf->rpc.memory = l->peer_memory;
    conf->rpc.handshake_ms = (uint32_t)l->handshake_ms;
    conf->rpc.idle_ms = (uint32_t)l->idle_ms;
    conf->rpc.resets = (uint32_t)l->resets;
}

static int load_strategy(struct fl_server_conf *conf, struct fl_err *err)
{
    const struct fl_conf_doc *doc = fl_conf_file_doc(conf->file);
    const struct fl_conf_node *root = fl_conf_root(doc);

    return fl_strategy_load(doc, fl_conf_get(root, "algorithm"), fl_conf_get(root, "strategy"),
                            &conf->strategy, err);
}

int fl_server_conf_load(const char *path, struct fl_server_conf **ret, struct fl_err *err)
{
    static const char *const others[] = {"algorithm", "strategy", NULL};
    struct fl_server_conf *conf = calloc(1, sizeof(*conf));
    int rv;

    if (conf == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_conf_read(path, fl__server_sections, others, conf, &conf->file, err);
    if (rv == FL_OK) {
        rv = load_strategy(conf, err);
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
    if (conf == NULL) {
        return;
    }
    fl_strategy_free(conf->strategy);
    fl_layout_free(conf->layout);
    fl_conf_file_free(conf->file);
    free(conf);
}

void fl_server_conf_coord(const struct fl_server_conf *conf, struct fl_coord_conf *ret)
{
    const struct fl_server_round *r = conf->round;

    *ret = (struct fl_coord_conf){
        .seed = (uint64_t)conf->main->seed,
        .rounds = (uint64_t)conf->main->rounds,
        .population = (uint32_t)r->population,
        .start_clients = (uint32_t)r->start_clients,
        .min_clients = (uint32_t)r->min_clients,
        .min_responders =
            r->min_responders_given ? (uint32_t)r->min_responders : FL_RESPONDERS_HALF,
        .patience = r->patience,
        .patience_least_ms = r->patience_least_ms,
        .over_selection = r->over_selection,
        .train_ms = r->train_deadline_ms,
        .upload_ms = r->upload_deadline_ms,
        .lost_grace_ms = r->lost_grace_ms,
        .evaluate_ms = conf->evaluation->deadline_ms,
        .restart_ms = FL_RESTART_MS,
        .retry_ms = r->retry_ms,
        .evaluate_every = (uint32_t)conf->evaluation->every,
        .evaluate_server = conf->evaluation->data[0] != '\0',
        .evaluate_clients = conf->evaluation->clients,
        .forget_after_ms = r->forget_after_ms,
        .max_clients = (uint32_t)conf->limits->known_clients,
        .learning_rate = conf->training->learning_rate,
        .learning_rate_decay = conf->training->learning_rate_decay,
        .backfill = r->backfill,
        .strategy = conf->strategy,
        .layout = conf->layout,
    };
}
