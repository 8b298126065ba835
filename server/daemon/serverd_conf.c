/*
 * The daemon's part of the configuration: addresses, paths, TLS, and the memory limits derived from
 * the keys. Runs before any thread starts, and on the network loop for a reload. Keys of the
 * federation are read by server/conf.
 */

#include "server/daemon/serverd_conf.h"

#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/fs.h"
#include "libfl/http/http.h"
#include "libfl/net/address.h"
#include "libfl/net/address_range.h"
#include "libfl/net/conn.h"
#include "libfl/wire/messages.h"

/* `field`: `listen`, `listen_insecure` or `listen_admin`. */
static int check_address(const struct fl_server_conf *conf, const void *field, const char *address,
                         bool plain, struct fl_err *err)
{
    struct fl_address parsed;
    struct fl_err inner = {0};
    int rv = fl_address_parse(address, &parsed, &inner);

    if (rv != FL_OK) {
        return fl_conf_error(fl_conf_field(conf->file, field), err, "%s", fl_err_text(&inner, rv));
    }
    if (plain && !fl_address_is_loopback(address) && !conf->main->insecure_remote) {
        return fl_conf_error(fl_conf_field(conf->file, field), err,
                             "'%s' is not a loopback address; plaintext there requires "
                             "'insecure_remote: yes' as well",
                             address);
    }
    return FL_OK;
}

static int check_addresses(const struct fl_server_conf *conf, struct fl_findings *all,
                           struct fl_err *err)
{
    const struct fl_server_main *m = conf->main;
    const struct {
        const struct fl_opt_texts *addresses;
        bool plain;
    } lists[] = {{&m->listen, m->insecure}, {&m->listen_insecure, true}, {&m->listen_admin, false}};
    size_t i;
    size_t n;
    int rv;

    if (m->listen.n == 0 && m->listen_insecure.n == 0) {
        rv = fl_conf_error(fl_conf_field(conf->file, &m->listen), err,
                           "expected at least one address");
        return fl_findings_keep(all, rv, err);
    }
    for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const struct fl_opt_texts *list = lists[i].addresses;

        for (n = 0; n < list->n; n++) {
            rv = check_address(conf, list, list->list[n], lists[i].plain, err);
            rv = fl_findings_keep(all, rv, err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

static int check_balancers(const struct fl_server_conf *conf, struct fl_findings *all,
                           struct fl_err *err)
{
    const struct fl_opt_texts *from = &conf->main->proxy_protocol_from;
    const struct fl_conf_node *node = fl_conf_field(conf->file, from);
    struct fl_address_range range;
    struct fl_err inner = {0};
    size_t i;
    int rv;

    if (from->n > FL_SERVER_BALANCERS) {
        rv = fl_conf_error(node, err, "expected at most %d addresses, found %zu",
                           FL_SERVER_BALANCERS, from->n);
        return fl_findings_keep(all, rv, err);
    }
    for (i = 0; i < from->n; i++) {
        rv = fl_address_range_parse(from->list[i], &range, &inner);
        if (rv != FL_OK) {
            rv = fl_conf_error(node, err, "%s", inner.msg);
        }
        rv = fl_findings_keep(all, rv, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

/* They become part of certificates and invitations, where an invalid host is noticed late. */
static int check_hosts(const struct fl_server_conf *conf, struct fl_findings *all,
                       struct fl_err *err)
{
    const struct fl_opt_texts *hosts = &conf->identity->hosts;
    int rv;
    size_t i;

    for (i = 0; i < hosts->n; i++) {
        struct fl_address parsed;
        struct fl_err inner = {0};

        if (fl_address_parse_host(hosts->list[i], &parsed, &inner) != FL_OK) {
            rv = fl_conf_error(fl_conf_field(conf->file, hosts), err, "%s", inner.msg);
            rv = fl_findings_keep(all, rv, err);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

/* An own PKI needs all of its keys or none. */
static int check_tls(const struct fl_serverd_conf *own, struct fl_err *err)
{
    const struct fl_server_conf *conf = own->conf;
    const struct fl_server_tls *t = conf->tls;
    bool pki = t->certificate[0] != '\0';
    const void *field = pki ? (const void *)&t->key : (const void *)&t->certificate;

    if (pki != (t->key[0] != '\0')) {
        return fl_conf_error(fl_conf_field(conf->file, field), err,
                             "expected certificate and key, found only %s",
                             pki ? "certificate" : "key");
    }
    if (pki != (t->ca.n > 0)) {
        return fl_conf_error(fl_conf_field(conf->file, &t->ca), err,
                             pki ? "expected the roots that issue the clients' certificates"
                                 : "without certificate and key only the federation's own "
                                   "authority is trusted, and no other root");
    }
    if (pki && !fl_server_conf_has_tls(conf)) {
        return fl_conf_error(fl_conf_field(conf->file, &t->certificate), err,
                             "no address uses TLS: remove `insecure`, or this key");
    }
    return FL_OK;
}

/*
 * Make paths absolute: the daemon and flctl may have other working folders. The address of the
 * admin socket must not depend on how its path is written.
 */
static int resolve_paths(struct fl_serverd_conf *own, struct fl_err *err)
{
    const struct fl_server_conf *conf = own->conf;
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
    (void)snprintf(own->state_dir, sizeof(own->state_dir), "%s", path);
    rv = given ? fl_fs_absolute(admin, path, sizeof(path), &inner) : FL_OK;
    (void)snprintf(own->admin, sizeof(own->admin), "unix:%s%s", path, given ? "" : "/admin.sock");
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_address_parse(own->admin, &parsed, &inner);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    return fl_conf_error(
        fl_conf_field(conf->file, given ? &conf->main->admin_socket : &conf->main->state_dir), err,
        "%s%s", fl_err_text(&inner, rv),
        given ? "" : ": this is the socket for flctl, set admin_socket to move it");
}

/* Uploads at full speed must fit beside everything else, one connection into the total. */
static int check_memory(struct fl_serverd_conf *own, struct fl_err *err)
{
    const struct fl_server_conf *conf = own->conf;
    uint64_t uploads = conf->limits->upload_memory;
    uint64_t peer = conf->limits->peer_memory;

    own->memory = conf->limits->memory;
    if (own->memory == 0) {
        own->memory = 4 * uploads > peer ? 4 * uploads : peer;
    }
    if (own->memory / 2 < uploads) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->limits->memory), err,
                             "expected at least twice upload_memory (%llu bytes), found %llu",
                             (unsigned long long)uploads, (unsigned long long)own->memory);
    }
    if (peer > own->memory) {
        return fl_conf_error(fl_conf_field(conf->file, &conf->limits->peer_memory), err,
                             "expected at most memory (%llu bytes), found %llu",
                             (unsigned long long)own->memory, (unsigned long long)peer);
    }
    return FL_OK;
}

/* Smaller chunks cost more in frames and headers than they carry. */
#define CHUNK_MIN (32u << 10)
/* Fields beside the data of a chunk, rounded up. */
#define CHUNK_HEAD (4u << 10)
/*
 * Two chunks leave twice this much of a window unused: the sender begins a third one before they
 * are written.
 */
_Static_assert(2 * CHUNK_HEAD <= FL_CALL_BEGUN, "the third chunk of each upload takes memory");
/* A larger window does not speed up an upload on any known link. */
#define WINDOW_MAX (6u << 20)
/* Bytes of one section in the header of a Push, and of one label of a Hello. */
#define PART_BYTES 64

/*
 * The memory of one upload: its share of limits.upload_memory, at least three messages: two in the
 * window, so that a sender is not stopped in the middle of one while the previous one is being
 * written, and the memory of the next one. Our clients use little of the third (FL_CALL_BEGUN); a
 * sender of shorter messages may use all of it.
 */
static void size_uploads(struct fl_serverd_conf *own)
{
    const struct fl_server_conf *conf = own->conf;
    uint64_t population = (uint64_t)conf->round->population;
    uint64_t start = (uint64_t)conf->round->start_clients;
    uint64_t share = conf->limits->upload_memory / (population > start ? population : start);
    const struct fl_strategy *s = conf->strategy;
    uint64_t payloads =
        1 + fl_solver_names(fl_solver_sends(s->solver, s->options[FL_COMPONENT_SOLVER]));
    uint64_t least = fl_layout_units(conf->layout) * payloads * PART_BYTES + CHUNK_HEAD;
    uint64_t chunk;

    share = share > WINDOW_MAX ? WINDOW_MAX : share;
    chunk = share / 3 > CHUNK_MIN + CHUNK_HEAD ? share / 3 - CHUNK_HEAD : CHUNK_MIN;
    chunk = (chunk > FL_WIRE_CHUNK ? FL_WIRE_CHUNK : chunk) / 4096 * 4096;
    own->chunk_bytes = (uint32_t)chunk;
    if (s->solver->summary != NULL && least < FL_WIRE_SUMMARY_PIECE + CHUNK_HEAD) {
        least = FL_WIRE_SUMMARY_PIECE + CHUNK_HEAD;
    }
    own->rpc.message_bytes = (size_t)(chunk + CHUNK_HEAD > least ? chunk + CHUNK_HEAD : least);
    own->rpc.stream_window = 2 * (uint32_t)own->rpc.message_bytes;
}

static int check_http(const struct fl_server_conf *conf, struct fl_err *err)
{
    const void *field = NULL;
    int rv = fl_http_conf_check(conf->http, &field, err);

    if (rv != FL_OK) {
        return fl_conf_blame(conf->file, field, rv, err);
    }
    return FL_OK;
}

static int serverd_conf_check(struct fl_serverd_conf *own, struct fl_findings *all,
                              struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    struct fl_err ignored;
    int rv = fl_findings_keep(all, check_memory(own, err), err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = check_addresses(own->conf, all, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_balancers(own->conf, all, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_hosts(own->conf, all, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_findings_keep(all, check_tls(own, err), err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_findings_keep(all, check_http(own->conf, err), err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_findings_keep(all, resolve_paths(own, err), err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_findings_first(all, err);
    if (rv != FL_OK) {
        return rv;
    }
    /* Without `model.units` the units of the state folder stay in use. Read errors are reported, or
     * recovered from, when the folder is opened. */
    if (fl_models_layout(own->state_dir, &layout, &ignored) != FL_OK) {
        return FL_OK;
    }
    rv = fl_server_conf_go_on(own->conf, layout, &own->state_units, err);
    fl_layout_free(layout);
    return rv;
}

int fl_serverd_conf_load(const char *path, struct fl_findings *all, struct fl_serverd_conf **ret,
                         struct fl_err *err)
{
    struct fl_serverd_conf *own = calloc(1, sizeof(*own));
    const struct fl_server_limits *l;
    int rv = own != NULL ? fl_server_conf_load(path, all, &own->conf, err) : FL_ENOMEM;

    if (rv != FL_OK) {
        goto fail;
    }
    rv = serverd_conf_check(own, all, err);
    if (rv != FL_OK) {
        goto fail;
    }
    l = own->conf->limits;
    fl_rpc_limits_default(&own->rpc);
    own->rpc.streams = (uint32_t)l->streams;
    own->rpc.header_bytes = (uint32_t)l->header_bytes;
    size_uploads(own);
    own->rpc.conn_window = (uint32_t)l->connection_window;
    own->rpc.memory = fl_addressable(l->peer_memory);
    own->rpc.handshake_ms = (uint32_t)l->handshake_ms;
    own->rpc.idle_ms = (uint32_t)l->idle_ms;
    own->path = path;
    *ret = own;
    return FL_OK;
fail:
    fl_serverd_conf_free(own);
    return rv;
}

void fl_serverd_conf_free(struct fl_serverd_conf *own)
{
    if (own == NULL) {
        return;
    }
    fl_server_conf_free(own->conf);
    free(own);
}
