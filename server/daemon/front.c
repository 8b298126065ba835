#include "server/daemon/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/net/inherited.h"
#include "server/daemon/descriptors.h"
#include "server/daemon/driver.h"
#include "server/daemon/front_impl.h"
#include "server/daemon/guard.h"

static const char *const services[] = {"fl.v1.Federation", "grpc.health.v1.Health",
                                       "grpc.reflection.v1alpha.ServerReflection", NULL};

struct fl_up *fl_up_new(enum fl_up_type type)
{
    struct fl_up *up = calloc(1, sizeof(*up));

    if (up != NULL) {
        up->type = type;
    }
    return up;
}

void fl_front_up(struct fl_front *front, struct fl_up *up)
{
    if (front->srv->driver == NULL) { /* While all ends, what it still had to say is heard here. */
        fl_up_free(up);
        return;
    }
    fl_driver_post(front->srv->driver, up);
}

int fl_front_on_disk(struct fl_front *front, fl_loop_cb work, fl_loop_cb done, void *arg)
{
    struct fl_serverd *srv = front->srv;

    if (srv->io == NULL) {
        return FL_ECLOSED;
    }
    return fl_lane_submit(srv->io, work, done != NULL ? srv->net : NULL, done, arg);
}

void fl_front_fail(struct fl_call *call, int code, const struct fl_err *err)
{
    fl_call_finish(call, fl_grpc_status_from_err(code), fl_err_text(err, code));
}

const char *fl_front_public(const struct fl_front *front, const char *text, char *out, size_t size)
{
    const char *dir = front->srv->state_dir;
    size_t skip = dir != NULL && dir[0] == '/' && dir[1] != '\0' ? strlen(dir) : 0;
    size_t at = 0;

    while (*text != '\0' && at + 1 < size) {
        if (skip > 0 && strncmp(text, dir, skip) == 0) {
            text += skip + (text[skip] == '/');
        } else {
            out[at++] = *text++;
        }
    }
    out[at] = '\0';
    return out;
}

void fl_front_finish(const struct fl_front *front, struct fl_call *call, enum fl_grpc_status status,
                     const char *message)
{
    char text[FL_ERR_BUF_SIZE];

    fl_call_finish(call, status,
                   message != NULL ? fl_front_public(front, message, text, sizeof(text)) : NULL);
}

void fl_front_fail_request(struct fl_call *call, int code, const struct fl_err *err)
{
    fl_call_finish(call, fl_front_request_status(code), fl_err_text(err, code));
}

enum fl_grpc_status fl_front_request_status(int code)
{
    return code == FL_EPERM ? FL_GRPC_UNAUTHENTICATED : fl_grpc_status_from_err(code);
}

int fl_front_send(struct fl_call *call, const struct fl_buf *message)
{
    struct fl_piece piece = {.data = message->data, .len = message->len};

    return fl_call_send(call, &piece, 1);
}

struct fl_slot_rec *fl_front_slot(struct fl_front *front, uint32_t client)
{
    if (client >= front->n_slots) {
        size_t n = front->n_slots < 64 ? 64 : front->n_slots * 2;
        struct fl_slot_rec *slots;

        while (n <= client) {
            n *= 2;
        }
        slots = realloc(front->slots, n * sizeof(*slots));
        if (slots == NULL) {
            return NULL;
        }
        (void)memset(slots + front->n_slots, 0, (n - front->n_slots) * sizeof(*slots));
        front->slots = slots;
        front->n_slots = n;
    }
    return &front->slots[client];
}

/* A renewed certificate is another one of the same name; without one nobody is told apart. */
static bool is_of(const struct fl_attend *attend, const struct fl_identity *identity)
{
    if (identity == NULL || identity->kind != FL_IDENTITY_CERTIFICATE) {
        return !attend->verified;
    }
    return attend->verified && strcmp(identity->name, attend->name) == 0;
}

/* The first four bytes of a token are the client's number, the rest is unguessable. */
struct fl_attend *fl_front_session(struct fl_front *front, const struct fl_call *call,
                                   const struct fl_wire_session *token)
{
    struct fl_attend *attend;
    unsigned char differ = 0;
    uint32_t client;
    size_t i;

    (void)memcpy(&client, token->id, sizeof(client));
    if (client >= front->n_slots || front->slots[client].attend == NULL) {
        return NULL;
    }
    attend = front->slots[client].attend;
    for (i = 0; i < sizeof(token->id); i++) {
        differ |= (unsigned char)(token->id[i] ^ attend->token.id[i]);
    }
    return differ == 0 && is_of(attend, fl_call_identity(call)) ? attend : NULL;
}

void fl_front_notice(struct fl_front *front, const char *peer, const char *reason, const char *text)
{
    fl_log_reason(front->srv->log, FL_LOG_WARNING, "net", peer, reason, "%s: %s", peer, text);
}

static void on_notice(void *ctx, const char *peer, const char *reason, const char *text)
{
    struct fl_front *front = ctx;

    front->n_expelled += strcmp(reason, "expelled") == 0;
    fl_front_notice(front, peer, reason, text);
}

static void collect_spares(void *arg)
{
    struct fl_front *front = arg;
    struct fl_err err = {0};
    int rv = fl_spares_collect(front->spares, &err);

    if (rv != FL_OK) {
        fl_log(front->srv->log, FL_LOG_WARNING, "server", "spool files stay behind, ignoring: %s",
               fl_err_text(&err, rv));
    }
}

/* There is no next round that would use them, or no room for them. */
static void drop_spares(void *arg)
{
    struct fl_front *front = arg;

    fl_spares_drop(front->spares);
}

static void ask_spares(struct fl_front *front, fl_loop_cb work)
{
    int rv = fl_front_on_disk(front, work, NULL, front);

    if (rv != FL_OK && rv != FL_ECLOSED) { /* While all ends: the next start removes them. */
        fl_log(front->srv->log, FL_LOG_WARNING, "server", "spool files stay behind: %s",
               fl_strerror(rv));
    }
}

static void round_closed(struct fl_front *front, const struct fl_down *down)
{
    size_t i;

    for (i = 0; i < front->n_slots; i++) {
        struct fl_slot_rec *slot = &front->slots[i];

        fl_push_withdraw(slot, down->round, down->attempt);
        if (slot->mixture != NULL && slot->mixture->round == down->round) {
            fl_fetch_drop_mixture(slot);
        }
    }
    fl_push_round_closed(front, down->round, down->attempt);
    ask_spares(front, collect_spares);
}

/* All that is held under a number goes, and the coordinator hears that it did. */
static void release(struct fl_front *front, const struct fl_down *down)
{
    struct fl_up *up = fl_up_new(FL_UP_RELEASED);

    if (down->client < front->n_slots) {
        struct fl_slot_rec *slot = &front->slots[down->client];

        fl_attend_release(front, down);
        fl_push_release(front, down->client);
        fl_fetch_drop_mixture(slot);
        free(slot->units);
        *slot = (struct fl_slot_rec){.attend = NULL};
    }
    if (up == NULL) { /* The number is not used again before the next start. */
        fl_log(front->srv->log, FL_LOG_WARNING, "server", "out of memory for a client's number");
        return;
    }
    up->client = down->client;
    fl_front_up(front, up);
}

static void finished(struct fl_front *front)
{
    ask_spares(front, drop_spares);
    if (front->srv->conf->main->when_finished == FL_FINISHED_EXIT) {
        fl_attend_drain(front, FL_EVERYBODY, "all rounds are done", 0);
        fl_loop_stop(front->srv->net);
    }
}

static void on_down(void *arg)
{
    struct fl_down *down = arg;
    struct fl_front *front = down->front;

    switch (down->type) {
    case FL_DOWN_BUNDLE:
        fl_fetch_serve(front, down);
        break;
    case FL_DOWN_ROUND_CLOSED:
        round_closed(front, down);
        break;
    case FL_DOWN_DRAIN:
        fl_attend_drain(front, down->client, down->text != NULL ? down->text : "the server drains",
                        down->deadline_ms);
        break;
    case FL_DOWN_FINISHED:
        finished(front);
        break;
    case FL_DOWN_NO_SPACE:
        ask_spares(front, drop_spares);
        break;
    case FL_DOWN_STOPPED:
        fl_server_stopped(front->srv);
        break;
    case FL_DOWN_ADMIN:
        fl_admin_answered(down->request);
        break;
    case FL_DOWN_ACCEPTED:
        fl_push_verdict(front, down, FL_OK);
        fl_attend_down(front, down);
        break;
    case FL_DOWN_REJECTED:
        fl_push_verdict(front, down, FL_EINVAL);
        fl_attend_down(front, down);
        break;
    case FL_DOWN_DISMISSED:
        fl_push_verdict(front, down, FL_ESTATE);
        fl_attend_down(front, down);
        break;
    case FL_DOWN_JOINED:
        fl_attend_joined(front, down);
        break;
    case FL_DOWN_REFUSED:
        fl_attend_refused(front, down);
        break;
    case FL_DOWN_BAD_OFFER:
        fl_attend_bad_offer(front, down);
        break;
    case FL_DOWN_RELEASE:
        release(front, down);
        break;
    case FL_DOWN_TAKEN:
        fl_attend_taken(front, down);
        break;
    case FL_DOWN_TASK:
    case FL_DOWN_PLAN:
    case FL_DOWN_EVALUATE:
        fl_attend_down(front, down);
        break;
    }
    fl_down_free(down);
}

void fl_front_post(struct fl_down *down)
{
    if (fl_loop_post(down->front->srv->net, on_down, down) != FL_OK) {
        fl_serverd_no_memory(down->front->srv, "a command");
    }
}

int fl_front_exclude(struct fl_front *front, const char *name, enum fl_denied_keeps keeps)
{
    struct fl_up *up = fl_up_new(FL_UP_EXCLUDE);

    if (up != NULL) {
        up->text = fl_str_dup(name);
        up->keeps = keeps;
    }
    if (up == NULL || up->text == NULL) {
        fl_up_free(up);
        return FL_ENOMEM;
    }
    fl_front_up(front, up);
    return FL_OK;
}

void fl_front_review(struct fl_front *front)
{
    if (front->server != NULL && front->admin != NULL) {
        fl_attend_review_plain(front);
        fl_grpc_server_review(front->server);
        fl_grpc_server_review(front->admin);
    }
}

static uint64_t sweep_interval(const struct fl_front *front)
{
    uint64_t beat = front->srv->conf->main->heartbeat_ms;

    return beat < 2000 ? beat / 2 + 1 : 1000;
}

static void on_sweep(void *arg)
{
    struct fl_front *front = arg;
    uint64_t now = fl_clock_ms();

    fl_attend_sweep(front, now);
    fl_front_review(front);
    if (front->srv->guard != NULL) {
        fl_guard_sweep(front->srv->guard, now);
    }
    fl_log_left_out(front->srv->log, /* all= */ false);
    fl_timer_start(front->sweep, sweep_interval(front));
}

/* Who may take part. */
#define CLIENTS (FL_WHO_PLAIN | FL_WHO_CLIENT)

static void make_methods(struct fl_front *front)
{
    struct fl_rpc_method *m = front->methods;

    *m++ = (struct fl_rpc_method){"/fl.v1.Federation/Attend", CLIENTS, fl_attend_start, front};
    *m++ = (struct fl_rpc_method){"/fl.v1.Federation/Fetch", CLIENTS, fl_fetch_start, front};
    *m++ = (struct fl_rpc_method){"/fl.v1.Federation/Push", CLIENTS, fl_push_start, front};
    *m++ = (struct fl_rpc_method){"/fl.v1.Federation/PushStatus", CLIENTS, fl_push_status_start,
                                  front};
    m += fl_grpc_builtin_methods(front->builtin, m);
    (void)fl_identity_client_methods(front, m);
    m = front->admin_methods + fl_admin_methods(front, front->admin_methods);
    (void)fl_identity_admin_methods(front, m);
}

int fl_front_create(struct fl_serverd *srv, struct fl_front **ret, struct fl_err *err)
{
    struct fl_front *front = calloc(1, sizeof(*front));
    struct fl_grpc_server_setup setup = {
        .loop = srv->net,
        .limits = srv->own->rpc,
        .max_connections = (uint32_t)srv->max_connections,
        .peer_connections = (uint32_t)srv->conf->limits->client_connections,
        .memory = fl_addressable(srv->own->memory),
        .notice = on_notice,
        .notice_ctx = front,
    };
    int rv;

    if (front == NULL) {
        return FL_ENOMEM;
    }
    front->srv = srv;
    front->n_units = fl_layout_units(srv->conf->layout);
    rv = fl_spares_create(srv->state_dir, &front->spares, err);
    if (rv == FL_OK) {
        rv = fl_grpc_builtin_create(services, &front->builtin);
    }
    if (rv == FL_OK) {
        make_methods(front);
        setup.methods = front->methods;
        rv = fl_grpc_server_create(&setup, &front->server, err);
    }
    if (rv == FL_OK) {
        front->n_open_servers++;
        setup.methods = front->admin_methods;
        setup.max_connections = FL_SERVERD_ADMIN_CONNECTIONS;
        setup.peer_connections = 0;
        setup.memory = 0;
        rv = fl_grpc_server_create(&setup, &front->admin, err);
    }
    if (rv == FL_OK) {
        front->n_open_servers++;
        rv = fl_timer_create(srv->net, on_sweep, front, &front->sweep);
    }
    *ret = front; /* Half-built too: close and free take it. */
    return rv;
}

/* Where it listens goes to standard output too: port 0 is known only here. */
static void announce(const struct fl_front *front, const char *kind, const char *address,
                     unsigned port)
{
    const char *colon = strrchr(address, ':');

    if (fl_log_is_journal(STDOUT_FILENO)) {
        /* The line below stands there too. */
    } else if (port != 0 && colon != NULL) {
        (void)printf("%s %.*s:%u\n", kind, (int)(colon - address), address, port);
    } else {
        (void)printf("%s %s\n", kind, address);
    }
    (void)fflush(stdout);
    fl_log(front->srv->log, FL_LOG_NOTICE, "server", "%s on '%s' port=%u", kind, address, port);
}

static int listen_one(struct fl_front *front, struct fl_grpc_server *server, const char *kind,
                      const struct fl_grpc_listen *listen, struct fl_err *err)
{
    unsigned port = 0;
    int rv = fl_grpc_server_listen(server, listen, &port, err);

    if (rv == FL_OK) {
        announce(front, kind, listen->address, port);
        if (server == front->server && listen->filter != NULL && front->port == 0) {
            front->port = (uint16_t)port;
        }
    }
    return rv;
}

static int listen_admin(struct fl_front *front, struct fl_err *err)
{
    struct fl_admin_access *access = &front->access;
    const char *address = front->srv->own->admin;
    int rv = fl_admin_access_init(front->srv->own, access, err);

    if (rv == FL_OK) {
        rv = fl_grpc_server_listen(front->admin,
                                   &(struct fl_grpc_listen){.address = address,
                                                            .who = fl_admin_access_who,
                                                            .who_ctx = access},
                                   NULL, err);
    }
    if (rv == FL_OK) {
        rv = fl_admin_access_socket(access, address + strlen("unix:"), err);
    }
    if (rv == FL_OK) {
        announce(front, "admin", address, 0);
    }
    return rv;
}

/* A socket unit of another address would take connections that nobody answers. */
static int check_inherited(const struct fl_front *front, struct fl_err *err)
{
    const struct fl_server_conf *conf = front->srv->conf;
    char address[256];

    if (!fl_inherited_unused(address, sizeof(address))) {
        return FL_OK;
    }
    return fl_conf_error(fl_conf_field(conf->file, &conf->main->listen), err,
                         "systemd listens on '%s' for this server, which is not among these "
                         "addresses: add it here, or change ListenStream= of the socket unit",
                         address);
}

/* All of a list, over TLS or in plaintext. */
static int listen_list(struct fl_front *front, struct fl_grpc_server *server, const char *kind,
                       const struct fl_opt_texts *list, bool plain, struct fl_err *err)
{
    struct fl_guard *guard = front->srv->guard;
    struct fl_grpc_listen listen = {.address = NULL};
    size_t i;
    int rv = FL_OK;

    if (!plain && list->n > 0) {
        FL_REQUIRE(guard != NULL);
        listen.filter = fl_guard_filter(guard);
        listen.who = fl_guard_who;
        listen.who_ctx = guard;
    }
    for (i = 0; rv == FL_OK && i < list->n; i++) {
        listen.address = list->list[i];
        rv = listen_one(front, server, kind, &listen, err);
    }
    return rv;
}

int fl_front_listen(struct fl_front *front, struct fl_err *err)
{
    const struct fl_server_main *m = front->srv->conf->main;
    int rv = listen_list(front, front->server, "listening", &m->listen, m->insecure, err);

    if (rv == FL_OK) {
        rv = listen_list(front, front->server, "listening", &m->listen_insecure, true, err);
    }
    if (rv == FL_OK) {
        rv = listen_list(front, front->admin, "admin", &m->listen_admin, false, err);
    }
    if (rv == FL_OK) {
        rv = listen_admin(front, err);
    }
    rv = rv == FL_OK ? check_inherited(front, err) : rv;
    if (rv == FL_OK) {
        fl_grpc_builtin_serving(front->builtin, true);
        fl_timer_start(front->sweep, sweep_interval(front));
    }
    return rv;
}

static void one_closed(void *arg)
{
    struct fl_front *front = arg;

    if (--front->n_open_servers == 0) {
        front->closed(front->closed_ctx);
    }
}

void fl_front_close(struct fl_front *front, uint32_t grace_ms, fl_loop_cb closed, void *ctx)
{
    if (front->server != NULL) {
        const struct fl_budget *held = fl_grpc_server_budget(front->server);

        fl_log(front->srv->log, FL_LOG_INFO, "net", "held for clients at most bytes=%zu limit=%zu",
               held->peak, held->limit);
        fl_log(front->srv->log, FL_LOG_INFO, "net", "waited for the coordinator at most events=%zu",
               front->most_events);
    }
    front->closing = true;
    front->closed = closed;
    front->closed_ctx = ctx;
    if (front->builtin != NULL) {
        fl_grpc_builtin_serving(front->builtin, false);
    }
    fl_timer_close(front->sweep);
    front->sweep = NULL;
    if (front->admin != NULL) {
        fl_grpc_server_close(front->admin, grace_ms, one_closed, front);
        front->admin = NULL;
    }
    if (front->server != NULL) {
        fl_grpc_server_close(front->server, grace_ms, one_closed, front);
        front->server = NULL;
    }
    if (front->n_open_servers == 0) {
        closed(ctx);
    }
}

void fl_front_free(struct fl_front *front)
{
    size_t i;

    if (front == NULL) {
        return;
    }
    for (i = 0; i < FL_FRONT_MAX_BUNDLES; i++) {
        fl_bytes_done(&front->bundles[i].bytes);
    }
    for (i = 0; i < front->n_slots; i++) {
        free(front->slots[i].units);
        fl_fetch_drop_mixture(&front->slots[i]);
    }
    free(front->slots);
    if (front->spares != NULL) {
        fl_spares_drop(front->spares);
    }
    fl_spares_free(front->spares);
    fl_grpc_builtin_free(front->builtin);
    free(front);
}
