/*
 * Creates the parts of the daemon in order, gives each what it names in its setup, and ends them in
 * the opposite order. Main thread.
 */

#include <stdio.h>
#include <string.h>

#include "libfl/base/descriptors.h"
#include "libfl/net/stop_limit.h"
#include "server/daemon/descriptor_limit.h"
#include "server/daemon/serverd_exit.h"
#include "server/daemon/serverd_impl.h"
#include "server/daemon/serverd_preflight.h"

/*
 * Calls get this long to finish, which costs peers that do not read their last messages the most.
 */
#define STOP_GRACE_MS 250

/* Limit the connections to those that the descriptors allow. */
static int limit_connections(struct fl_serverd *srv, struct fl_err *err)
{
    char fewer[FL_ERR_BUF_SIZE] = "";
    int rv = fl_preflight_connections(srv->conf, fl_descriptors_raise(NULL), &srv->max_connections,
                                      fewer, sizeof(fewer), err);

    if (fewer[0] != '\0') {
        fl_log(srv->log, FL_LOG_NOTICE, "server", "%s", fewer);
    }
    return rv;
}

static int serverd_open_threads(struct fl_serverd *srv, struct fl_err *err)
{
    int rv = fl_worker_thread_create("fl-io", &srv->disk.io, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_worker_thread_create("fl-db", &srv->disk.db, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_worker_thread_create("fl-work", &srv->disk.work, err);
}

/* Peers may be revoked or no longer trusted. */
static void serverd_on_auth_changed(void *arg)
{
    struct fl_serverd *srv = arg;

    if (srv->frontend != NULL) {
        fl_frontend_review(srv->frontend);
    }
}

static int serverd_exclude(void *ctx, const char *name, enum fl_revoked_keeps keeps)
{
    const struct fl_serverd *srv = ctx;

    return fl_frontend_exclude(srv->frontend, name, keeps);
}

/* --- operations of the front end and of the admin calls --- */

static void serverd_post(void *ctx, struct fl_coord_msg *up)
{
    struct fl_serverd *srv = ctx;

    if (srv->runtime == NULL)
    { /* During shutdown the remaining messages of the coordinator are handled here. */
        fl_coord_msg_free(up);
        return;
    }
    fl_runtime_post(srv->runtime, up);
}

static void serverd_answered(void *ctx, struct fl_admin_request *request)
{
    (void)ctx;
    fl_admin_answered(request);
}

static bool serverd_stalled(void *ctx, char *text, size_t size)
{
    struct fl_serverd *srv = ctx;
    struct fl_stall stall = fl_stall_find(&srv->disk);

    (void)fl_stall_text(&srv->disk, stall, text, size);
    return stall.for_ms >= FL_STALL_REPORT_MS;
}

static void serverd_send(void *ctx, struct fl_net_msg *down)
{
    const struct fl_serverd *srv = ctx;

    fl_frontend_post(srv->frontend, down);
}

static int open_hooks(struct fl_serverd *srv, struct fl_err *err)
{
    static const char scheme[] = "unix:";
    const char *admin = srv->own->admin;
    bool has_scheme = strncmp(admin, scheme, sizeof(scheme) - 1) == 0;

    return fl_hooks_create(
        &(struct fl_hooks_setup){.conf = srv->conf,
                                 .state_dir = srv->disk.state_dir,
                                 .admin = has_scheme ? admin + sizeof(scheme) - 1 : admin,
                                 .log = srv->log},
        &srv->hooks, err);
}

static void serverd_expiring(void *ctx, uint64_t ends_ms)
{
    const struct fl_serverd *srv = ctx;
    struct fl_hook_event event = {.hook = FL_HOOK_CERTIFICATE_EXPIRING};

    fl_hook_event_add(&event, "FL_ENDS=%llu", (unsigned long long)(ends_ms / 1000));
    fl_hooks_fire(srv->hooks, &event);
}

static void serverd_hook(void *ctx, const struct fl_hook_event *event)
{
    const struct fl_serverd *srv = ctx;

    fl_hooks_fire(srv->hooks, event);
}

/* The state of the federation, and what evaluates its models. */
static int open_runtime(struct fl_serverd *srv, int *ret_exit, struct fl_err *err)
{
    struct fl_runtime_setup setup = {.conf = srv->conf,
                                     .state_dir = srv->disk.state_dir,
                                     .log = srv->log,
                                     .started_ms = srv->started_ms,
                                     .db = srv->disk.db,
                                     .work = srv->disk.work,
                                     .watch = &srv->disk,
                                     .events = srv->events,
                                     .traffic = &srv->traffic,
                                     .hook = serverd_hook,
                                     .send = serverd_send,
                                     .ctx = srv};
    bool no_model = false;
    int rv;

    *ret_exit = FL_EXIT_DATA;
    rv = fl_preflight_root(srv->conf, &setup.root, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (setup.root != NULL) {
        fl_log(
            srv->log, FL_LOG_INFO, "server",
            "robust '%s': trains on %zu samples of '%s' in each round, evaluates on the other %zu",
            srv->conf->strategy->robust->policy.name, fl_root_data(setup.root)->n,
            srv->conf->evaluation->data, fl_root_rest(setup.root)->n);
    }
    rv = fl_preflight_program(srv->conf, srv->log, &setup.program, err);
    if (rv != FL_OK) {
        fl_root_free(setup.root);
        return rv;
    }
    rv = fl_preflight_evaluation(srv->conf, setup.root, srv->log, &setup.evaluator, err);
    if (rv != FL_OK) {
        fl_aggregation_program_free(setup.program);
        fl_root_free(setup.root);
        return rv;
    }
    rv = fl_runtime_create(&setup, &srv->runtime, &no_model, err);
    if (rv != FL_OK) {
        fl_aggregation_program_free(setup.program);
        fl_evaluator_free(setup.evaluator);
        fl_root_free(setup.root);
        *ret_exit = no_model ? FL_EXIT_DATA : FL_EXIT_STATE;
    }
    return rv;
}

/* The front end, and the calls that it serves. */
static int open_frontend(struct fl_serverd *srv, struct fl_err *err)
{
    static const struct fl_frontend_ops frontend_ops = {
        .post = serverd_post, .answered = serverd_answered, .stopped = fl_serverd_stopped};
    static const struct fl_admin_ops admin_ops = {.restart = fl_serverd_restart,
                                                  .stalled = serverd_stalled};
    const struct fl_serverd_conf *own = srv->own;
    const struct fl_frontend_setup setup = {.conf = srv->conf,
                                            .state_dir = srv->disk.state_dir,
                                            .admin = own->admin,
                                            .rpc = own->rpc,
                                            .memory = own->memory,
                                            .chunk_bytes = own->chunk_bytes,
                                            .max_connections = (uint32_t)srv->max_connections,
                                            .admin_connections = FL_SERVERD_ADMIN_CONNECTIONS,
                                            .generation = fl_runtime_generation(srv->runtime),
                                            .log = srv->log,
                                            .net = srv->net,
                                            .io = srv->disk.io,
                                            .auth = srv->disk.auth,
                                            .traffic = &srv->traffic,
                                            .downloads = &srv->downloads,
                                            .ops = &frontend_ops,
                                            .ctx = srv};
    int rv;

    srv->downloads.model_bytes = 4 * (uint64_t)fl_layout_count(srv->conf->layout);
    rv = fl_frontend_create(&setup, &srv->frontend, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_admin_create(&(struct fl_admin_setup){.conf = srv->conf,
                                                  .state_dir = srv->disk.state_dir,
                                                  .log = srv->log,
                                                  .net = srv->net,
                                                  .auth = srv->disk.auth,
                                                  .frontend = srv->frontend,
                                                  .ops = &admin_ops,
                                                  .ctx = srv},
                         &srv->admin);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_frontend_serve(srv->frontend, fl_admin_client_methods(srv->admin),
                             fl_admin_methods(srv->admin), err);
}

static void serverd_ask(void *ctx, struct fl_admin_request *request)
{
    struct fl_serverd *srv = ctx;
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_ADMIN);

    if (up == NULL) {
        request->code = FL_ENOMEM;
        request->done(request);
        return;
    }
    up->request = request;
    fl_runtime_post(srv->runtime, up);
}

static int open_http(struct fl_serverd *srv, struct fl_err *err)
{
    const struct fl_server_http_setup setup = {.conf = srv->conf,
                                               .state_dir = srv->disk.state_dir,
                                               .log = srv->log,
                                               .io = srv->disk.io,
                                               .db = srv->disk.db,
                                               .work = srv->disk.work,
                                               .auth = srv->disk.auth,
                                               .events = srv->events,
                                               .downloads = &srv->downloads,
                                               .ask = serverd_ask,
                                               .ctx = srv};

    return srv->events != NULL ? fl_server_http_create(&setup, &srv->http, err) : FL_OK;
}

static int serverd_start_threads(struct fl_serverd *srv, struct fl_err *err)
{
    int rv = fl_runtime_start(srv->runtime, err);

    if (rv != FL_OK || srv->http == NULL) {
        return rv;
    }
    return fl_server_http_start(srv->http, err);
}

int fl_serverd_open(struct fl_serverd *srv, int *ret_exit, struct fl_err *err)
{
    const struct fl_auth_setup auth = {.conf = srv->conf,
                                       .state_dir = srv->disk.state_dir,
                                       .log = srv->log,
                                       .expiring = serverd_expiring,
                                       .ctx = srv};
    int rv;

    rv = fl_preflight_places(srv->own, NULL, ret_exit, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_preflight_identity(srv->own, ret_exit, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_exit = FL_EXIT_FAILURE;
    rv = limit_connections(srv, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_loop_create(&srv->net, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = serverd_open_threads(srv, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = open_hooks(srv, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = srv->conf->http->listen.n > 0 ? fl_event_log_create(&srv->events) : FL_OK;
    if (rv != FL_OK) {
        return rv;
    }
    rv = open_runtime(srv, ret_exit, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_exit = FL_EXIT_IDENTITY;
    rv = fl_auth_create(&auth, srv->net, serverd_on_auth_changed, srv, &srv->disk.auth, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_exit = FL_EXIT_FAILURE;
    rv = open_frontend(srv, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (srv->disk.auth != NULL) {
        *ret_exit = FL_EXIT_IDENTITY;
        rv = fl_auth_revoked(srv->disk.auth, serverd_exclude, srv, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    *ret_exit = FL_EXIT_LISTEN;
    rv = fl_frontend_listen(srv->frontend, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = open_http(srv, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_exit = FL_EXIT_FAILURE;
    return serverd_start_threads(srv, err);
}

struct stop {
    struct fl_serverd *srv;
    bool done;
};

static void serverd_on_frontend_closed(void *arg)
{
    struct stop *stop = arg;

    stop->done = true;
    fl_loop_stop(stop->srv->net);
}

/*
 * Shutdown order: the HTTP port and the network first, so that nothing new arrives; then the
 * coordinator, so that no effect starts new work; then the worker threads, which finish their jobs;
 * then memory.
 */
void fl_serverd_close(struct fl_serverd *srv)
{
    struct stop stop = {.srv = srv};

    fl_serverd_limit_stop(srv); /* Also runs after a failed start. */
    fl_server_http_stop(srv->http);
    if (srv->frontend != NULL) {
        fl_frontend_close(srv->frontend, STOP_GRACE_MS, serverd_on_frontend_closed, &stop);
        while (!stop.done) {
            fl_loop_run(srv->net);
        }
    }
    if (srv->runtime != NULL) {
        fl_runtime_stop(srv->runtime);
    }
    atomic_store(&srv->stop_waits_for, "thread identity");
    fl_auth_close(srv->disk.auth);
    atomic_store(&srv->stop_waits_for, "hooks");
    fl_hooks_close(srv->hooks);
    srv->hooks = NULL;
    atomic_store(&srv->stop_waits_for, "thread io");
    fl_worker_thread_free(srv->disk.io);
    srv->disk.io = NULL;
    /* Its callbacks and the coordinator may submit further file requests until here. */
    fl_frontend_disk_closed(srv->frontend);
    atomic_store(&srv->stop_waits_for, "thread work");
    fl_worker_thread_free(srv->disk.work);
    atomic_store(&srv->stop_waits_for, "thread db");
    fl_worker_thread_free(srv->disk.db);
    fl_runtime_free(srv->runtime);
    srv->runtime = NULL;
    fl_server_http_free(srv->http);
    fl_event_log_free(srv->events);
    if (srv->net != NULL) {
        fl_loop_free(srv->net);
    }
    fl_frontend_free(srv->frontend);
    fl_admin_free(srv->admin);
    fl_auth_free(srv->disk.auth);
    fl_stop_limit_end(srv->stop_limit);
    srv->stop_limit = NULL;
}
