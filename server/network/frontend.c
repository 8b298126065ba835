/*
 * The network front end: creates and closes it, binds the addresses, and dispatches the messages of
 * the coordinator (fl_frontend_post()) to sessions, transfers and admin calls. Runs on the network
 * loop, except fl_frontend_post(). The calls themselves are in control_stream.c, fetch.c, push.c
 * and push_status.c, and in rooms above (fl_frontend_serve()).
 */

#include "server/network/frontend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/net/inherited.h"
#include "server/auth/auth.h"
#include "server/network/frontend_impl.h"

static const char *const services[] = {"fl.v1.Federation", "grpc.health.v1.Health",
                                       "grpc.reflection.v1alpha.ServerReflection", NULL};

static void frontend_on_notice(void *ctx, const char *peer, const char *reason, const char *text)
{
    struct fl_frontend *frontend = ctx;

    frontend->n_expelled += strcmp(reason, "expelled") == 0;
    fl_frontend_notice(frontend, peer, reason, text);
}

static void frontend_collect_recycled(void *arg)
{
    struct fl_frontend *frontend = arg;
    struct fl_err err = {0};
    int rv = fl_recycled_collect(frontend->recycled, &err);

    if (rv != FL_OK) {
        fl_log(frontend->setup.log, FL_LOG_WARNING, "server",
               "cannot remove old spool files, ignoring them: %s", fl_err_text(&err, rv));
    }
}

/* No next round will reuse the recycled spool files, or the disk is full. */
static void frontend_drop_recycled(void *arg)
{
    struct fl_frontend *frontend = arg;

    fl_recycled_drop(frontend->recycled);
}

static void frontend_submit_recycled(struct fl_frontend *frontend, fl_loop_cb work)
{
    int rv = fl_frontend_on_disk(frontend, work, NULL, frontend);

    if (rv != FL_OK && rv != FL_ECLOSED) { /* During shutdown: the next start removes them. */
        fl_log(frontend->setup.log, FL_LOG_WARNING, "server",
               "cannot remove recycled spool files: %s", fl_strerror(rv));
    }
}

static void frontend_round_closed(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    size_t i;

    for (i = 0; i < frontend->n_slots; i++) {
        struct fl_frontend_client *slot = &frontend->slots[i];

        fl_push_withdraw(slot, down->round, down->attempt);
        if (slot->personal_model != NULL && slot->personal_model->round == down->round) {
            fl_fetch_drop_personal_model(slot);
        }
    }
    fl_push_round_closed(frontend, down->round, down->attempt);
    frontend_submit_recycled(frontend, frontend_collect_recycled);
}

/* Drops all that is recorded under a client number, and acknowledges that to the coordinator. */
static void frontend_release_client(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_RELEASED);

    if (down->client < frontend->n_slots) {
        struct fl_frontend_client *slot = &frontend->slots[down->client];

        fl_control_stream_release(frontend, down);
        fl_push_release(frontend, down->client);
        fl_fetch_drop_personal_model(slot);
        free(slot->units);
        *slot = (struct fl_frontend_client){.stream = NULL};
    }
    if (up == NULL)
    { /* Without the acknowledgement the number is not reused before the next start. */
        fl_log(frontend->setup.log, FL_LOG_WARNING, "server",
               "out of memory to release a client's number");
        return;
    }
    up->client = down->client;
    fl_frontend_up(frontend, up);
}

static void frontend_finished(struct fl_frontend *frontend)
{
    frontend_submit_recycled(frontend, frontend_drop_recycled);
    if (frontend->setup.conf->main->when_finished == FL_FINISHED_EXIT) {
        fl_control_stream_drain(frontend, FL_EVERYBODY, "all rounds are done", 0);
        fl_loop_stop(frontend->setup.net);
    }
}

static void frontend_command(struct fl_frontend *frontend, struct fl_net_msg *down)
{
    switch (down->command.type) {
    case FL_WIRE_DRAIN:
        fl_control_stream_drain(frontend, down->client, down->command.u.drain.reason,
                                down->command.u.drain.reconnect_after_ms);
        return;
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_REJECTED:
    case FL_WIRE_DISMISSED:
        fl_push_verdict(frontend, down);
        break;
    default:
        break;
    }
    fl_control_stream_down(frontend, down);
}

static void frontend_on_message(void *arg)
{
    struct fl_net_msg *down = arg;
    struct fl_frontend *frontend = down->frontend;

    switch (down->type) {
    case FL_NET_MSG_PAYLOAD:
        fl_fetch_serve(frontend, down);
        break;
    case FL_NET_MSG_ROUND_CLOSED:
        frontend_round_closed(frontend, down);
        break;
    case FL_NET_MSG_COMMAND:
        frontend_command(frontend, down);
        break;
    case FL_NET_MSG_FINISHED:
        frontend_finished(frontend);
        break;
    case FL_NET_MSG_NO_SPACE:
        frontend_submit_recycled(frontend, frontend_drop_recycled);
        break;
    case FL_NET_MSG_STOPPED:
        frontend->setup.ops->stopped(frontend->setup.ctx);
        break;
    case FL_NET_MSG_ADMIN:
        frontend->setup.ops->answered(frontend->setup.ctx, down->request);
        break;
    case FL_NET_MSG_JOINED:
        fl_control_stream_joined(frontend, down);
        break;
    case FL_NET_MSG_REFUSED:
        fl_control_stream_refused(frontend, down);
        break;
    case FL_NET_MSG_BAD_SUMMARY:
        fl_control_stream_bad_summary(frontend, down);
        break;
    case FL_NET_MSG_RELEASE:
        frontend_release_client(frontend, down);
        break;
    case FL_NET_MSG_TAKEN:
        fl_control_stream_taken(frontend, down);
        break;
    }
    fl_net_msg_free(down);
}

void fl_frontend_post(struct fl_frontend *frontend, struct fl_net_msg *down)
{
    down->frontend = frontend;
    if (fl_loop_post(frontend->setup.net, frontend_on_message, down) != FL_OK) {
        fl_serverd_no_memory(frontend->setup.log, "a command");
    }
}

void fl_frontend_review(struct fl_frontend *frontend)
{
    if (frontend->server != NULL && frontend->admin != NULL) {
        fl_control_stream_review_plain(frontend);
        fl_grpc_server_review(frontend->server);
        fl_grpc_server_review(frontend->admin);
    }
}

static uint64_t sweep_interval(const struct fl_frontend *frontend)
{
    uint64_t beat = frontend->setup.conf->main->heartbeat_ms;

    return beat < 2000 ? beat / 2 + 1 : 1000;
}

static void on_sweep(void *arg)
{
    struct fl_frontend *frontend = arg;
    uint64_t now = fl_clock_ms();

    fl_control_stream_sweep(frontend, now);
    fl_frontend_review(frontend);
    if (frontend->setup.auth != NULL) {
        fl_auth_sweep(frontend->setup.auth, now);
    }
    fl_log_left_out(frontend->setup.log, /* all= */ false);
    fl_timer_start(frontend->sweep, sweep_interval(frontend));
}

/* Roles that may take part. */
#define CLIENTS (FL_WHO_PLAIN | FL_WHO_CLIENT)

static void make_methods(struct fl_frontend *frontend, const struct fl_rpc_method *more)
{
    const struct fl_rpc_method *end =
        &frontend->methods[sizeof(frontend->methods) / sizeof(frontend->methods[0]) - 1];
    struct fl_rpc_method *m = frontend->methods;

    *m++ = (struct fl_rpc_method){"/fl.v1.Federation/Attend", CLIENTS, fl_control_stream_start,
                                  frontend};
    *m++ = (struct fl_rpc_method){"/fl.v1.Federation/Fetch", CLIENTS, fl_fetch_start, frontend};
    *m++ = (struct fl_rpc_method){"/fl.v1.Federation/Push", CLIENTS, fl_push_start, frontend};
    *m++ = (struct fl_rpc_method){"/fl.v1.Federation/PushStatus", CLIENTS, fl_push_status_start,
                                  frontend};
    m += fl_grpc_builtin_methods(frontend->builtin, m);
    while (more->path != NULL) {
        FL_REQUIRE(m < end);
        *m++ = *more++;
    }
}

int fl_frontend_create(const struct fl_frontend_setup *setup, struct fl_frontend **ret,
                       struct fl_err *err)
{
    struct fl_frontend *frontend = calloc(1, sizeof(*frontend));
    int rv;

    if (frontend == NULL) {
        return FL_ENOMEM;
    }
    *ret = frontend;
    frontend->setup = *setup;
    frontend->n_units = fl_layout_units(setup->conf->layout);
    rv = fl_recycled_create(setup->state_dir, &frontend->recycled, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_grpc_builtin_create(services, &frontend->builtin);
}

int fl_frontend_serve(struct fl_frontend *frontend, const struct fl_rpc_method *client_methods,
                      const struct fl_rpc_method *admin_methods, struct fl_err *err)
{
    const struct fl_frontend_setup *from = &frontend->setup;
    struct fl_grpc_server_setup setup = {
        .loop = from->net,
        .limits = from->rpc,
        .max_connections = from->max_connections,
        .peer_connections = (uint32_t)from->conf->limits->client_connections,
        .memory = fl_addressable(from->memory),
        .ping_after_ms = (uint32_t)from->conf->limits->ping_after_ms,
        .ping_limit_ms = (uint32_t)from->conf->limits->ping_limit_ms,
        .notice = frontend_on_notice,
        .notice_ctx = frontend,
        .methods = frontend->methods,
    };
    int rv;

    make_methods(frontend, client_methods);
    rv = fl_grpc_server_create(&setup, &frontend->server, err);
    if (rv != FL_OK) {
        return rv;
    }
    frontend->n_open_servers++;
    setup.methods = admin_methods;
    setup.max_connections = from->admin_connections;
    setup.peer_connections = 0;
    setup.memory = 0;
    rv = fl_grpc_server_create(&setup, &frontend->admin, err);
    if (rv != FL_OK) {
        return rv;
    }
    frontend->n_open_servers++;
    return fl_timer_create(from->net, on_sweep, frontend, &frontend->sweep);
}

/* Prints the address to standard output as well: port 0 is resolved only here. */
static void frontend_announce(const struct fl_frontend *frontend, const char *kind,
                              const char *address, unsigned port)
{
    const char *colon = strrchr(address, ':');

    if (fl_log_is_journal(STDOUT_FILENO)) {
        /* The log line below contains it too. */
    } else if (port != 0 && colon != NULL) {
        (void)printf("%s %.*s:%u\n", kind, (int)(colon - address), address, port);
    } else {
        (void)printf("%s %s\n", kind, address);
    }
    (void)fflush(stdout);
    fl_log(frontend->setup.log, FL_LOG_NOTICE, "server", "%s on '%s' port=%u", kind, address, port);
}

static int listen_one(struct fl_frontend *frontend, struct fl_grpc_server *server, const char *kind,
                      const struct fl_grpc_listen *listen, struct fl_err *err)
{
    unsigned port = 0;
    int rv = fl_grpc_server_listen(server, listen, &port, err);

    if (rv != FL_OK) {
        return rv;
    }
    frontend_announce(frontend, kind, listen->address, port);
    if (server == frontend->server && listen->filter != NULL && frontend->port == 0) {
        frontend->port = (uint16_t)port;
    }
    return FL_OK;
}

static int listen_admin(struct fl_frontend *frontend, struct fl_err *err)
{
    struct fl_admin_access *access = &frontend->access;
    const char *address = frontend->setup.admin;
    int rv = fl_admin_access_init(frontend->setup.conf, access, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_grpc_server_listen(
        frontend->admin,
        &(struct fl_grpc_listen){.address = address, .who = fl_admin_access_who, .who_ctx = access},
        NULL, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_admin_access_socket(access, address + strlen("unix:"), err);
    if (rv != FL_OK) {
        return rv;
    }
    frontend_announce(frontend, "admin", address, 0);
    return FL_OK;
}

/*
 * A socket unit with an address that is not configured would accept connections that are never
 * served.
 */
static int check_inherited(const struct fl_frontend *frontend, struct fl_err *err)
{
    const struct fl_server_conf *conf = frontend->setup.conf;
    char address[256];

    if (!fl_inherited_unused(address, sizeof(address))) {
        return FL_OK;
    }
    return fl_conf_error(fl_conf_field(conf->file, &conf->main->listen), err,
                         "systemd listens on '%s' for this server, but that address is not "
                         "configured: add it here, or change ListenStream= of the socket unit",
                         address);
}

/* serverd_conf.c checked them. */
static int balancers_of(const struct fl_server_conf *conf, struct fl_address_range *out,
                        struct fl_grpc_listen *listen, struct fl_err *err)
{
    const struct fl_opt_texts *from = &conf->main->proxy_protocol_from;
    size_t i;
    int rv;

    for (i = 0; i < from->n && i < FL_SERVER_BALANCERS; i++) {
        rv = fl_address_range_parse(from->list[i], &out[i], err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    listen->balancers = out;
    listen->n_balancers = i;
    return FL_OK;
}

/* Bind all addresses of a list, with TLS or in plaintext. */
static int listen_list(struct fl_frontend *frontend, struct fl_grpc_server *server,
                       const char *kind, const struct fl_opt_texts *list, bool plain,
                       struct fl_err *err)
{
    struct fl_auth *auth = frontend->setup.auth;
    struct fl_grpc_listen listen = {.address = NULL};
    struct fl_address_range balancers[FL_SERVER_BALANCERS];
    size_t i;
    int rv = balancers_of(frontend->setup.conf, balancers, &listen, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!plain && list->n > 0) {
        FL_REQUIRE(auth != NULL);
        listen.filter = fl_auth_filter(auth);
        listen.who = fl_auth_who;
        listen.who_ctx = auth;
    }
    for (i = 0; i < list->n; i++) {
        listen.address = list->list[i];
        listen.traffic = server == frontend->server ? frontend->setup.traffic : NULL;
        rv = listen_one(frontend, server, kind, &listen, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

int fl_frontend_listen(struct fl_frontend *frontend, struct fl_err *err)
{
    const struct fl_server_main *m = frontend->setup.conf->main;
    int rv = listen_list(frontend, frontend->server, "listening", &m->listen, m->insecure, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = listen_list(frontend, frontend->server, "listening", &m->listen_insecure, true, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = listen_list(frontend, frontend->admin, "admin", &m->listen_admin, false, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = listen_admin(frontend, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = check_inherited(frontend, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl_grpc_builtin_serving(frontend->builtin, true);
    fl_timer_start(frontend->sweep, sweep_interval(frontend));
    return FL_OK;
}

static void one_closed(void *arg)
{
    struct fl_frontend *frontend = arg;

    if (--frontend->n_open_servers == 0) {
        frontend->closed(frontend->closed_ctx);
    }
}

void fl_frontend_close(struct fl_frontend *frontend, uint32_t grace_ms, fl_loop_cb closed,
                       void *ctx)
{
    if (frontend->server != NULL) {
        const struct fl_budget *budget = fl_grpc_server_budget(frontend->server);

        fl_log(frontend->setup.log, FL_LOG_INFO, "net",
               "buffered for clients at most bytes=%zu limit=%zu", budget->peak, budget->limit);
        fl_log(frontend->setup.log, FL_LOG_INFO, "net",
               "queued for the coordinator at most events=%zu", frontend->most_events);
    }
    frontend->closing = true;
    frontend->closed = closed;
    frontend->closed_ctx = ctx;
    if (frontend->builtin != NULL) {
        fl_grpc_builtin_serving(frontend->builtin, false);
    }
    fl_timer_close(frontend->sweep);
    frontend->sweep = NULL;
    if (frontend->admin != NULL) {
        fl_grpc_server_close(frontend->admin, grace_ms, one_closed, frontend);
        frontend->admin = NULL;
    }
    if (frontend->server != NULL) {
        fl_grpc_server_close(frontend->server, grace_ms, one_closed, frontend);
        frontend->server = NULL;
    }
    if (frontend->n_open_servers == 0) {
        closed(ctx);
    }
}

void fl_frontend_free(struct fl_frontend *frontend)
{
    size_t i;

    if (frontend == NULL) {
        return;
    }
    for (i = 0; i < FL_FRONTEND_MAX_PAYLOADS; i++) {
        fl_bytes_done(&frontend->payloads[i].bytes);
        fl_differences_unref(frontend->payloads[i].differences);
    }
    for (i = 0; i < frontend->n_slots; i++) {
        free(frontend->slots[i].units);
        fl_fetch_drop_personal_model(&frontend->slots[i]);
    }
    free(frontend->slots);
    if (frontend->recycled != NULL) {
        fl_recycled_drop(frontend->recycled);
    }
    fl_recycled_free(frontend->recycled);
    fl_grpc_builtin_free(frontend->builtin);
    free(frontend);
}
