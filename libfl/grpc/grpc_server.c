/*
 * The gRPC server: listeners, one session per connection, the limits on connections and memory
 * (which connection is closed for another one), classification of peers, and shutdown. Runs on one
 * loop. Does not authenticate (the `who` callback of the listener does) and knows no method.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/list.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/grpc/link_impl.h"
#include "libfl/net/balancer.h"

/* A connection without calls gets a GOAWAY and this long to answer it. */
#define IDLE_GRACE_MS 1000

/* A rejected peer gets this long to read the reason. */
#define EXPELLED_GRACE_MS 500

struct listener {
    struct listener *next;
    struct fl_grpc_server *server;
    struct fl_listener *net;      /* NULL: closed, but its sessions may still exist */
    struct fl_balancer *balancer; /* NULL: none, or closed */
    struct fl_grpc_listen rule;   /* without its address and balancers */
};

struct session {
    struct fl__link link; /* First: the link's callbacks cast to the session. */
    const struct listener *listener;
    struct fl_list among; /* the server's */
    uint64_t accepted_at;
    uint64_t idle_since; /* UINT64_MAX while it has calls. */
    bool idle_drain;     /* Draining because it was idle. */
    bool expelled;       /* Closing because the peer has lost a right. */
    char peer[64];
    bool leaving;       /* Its descriptor is closed, a newer connection has its place. */
    bool shown_nothing; /* Connected over TLS without a certificate. */
};

/*
 * Life: serving -> closing (no listeners, sessions end) -> `closed` and freed, from a timer so
 * that it never happens inside fl_grpc_server_close().
 */
struct fl_grpc_server {
    struct fl_grpc_server_setup setup;
    struct listener *listeners;
    struct fl_list sessions; /* newest first */
    size_t n_sessions;
    size_t n_leaving;
    size_t n_shown_nothing;
    struct fl_budget budget;
    struct fl_timer *closer; /* Created in advance: closing must not fail. */
    bool closing;
    fl_loop_cb closed;
    void *closed_ctx;
};

static void forget_shown(struct session *session)
{
    session->listener->server->n_shown_nothing -= session->shown_nothing ? 1 : 0;
    session->shown_nothing = false;
}

static void server_notice(const struct fl_grpc_server *server, const char *peer, const char *reason,
                          const char *text)
{
    if (server->setup.notice != NULL) {
        server->setup.notice(server->setup.notice_ctx, peer, reason, text);
    }
}

/* The text of the stream's end without the peer's name at its beginning. */
static const char *without_peer(const char *text, const char *peer)
{
    size_t n = strlen(peer);

    return strncmp(text, peer, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

static void session_on_gone(struct fl__link *link, int code, const char *text)
{
    struct session *session = (struct session *)link;
    struct fl_grpc_server *server;

    /*
     * Other errors come from the network: the calls that were open report them. An evicted
     * connection was logged at the eviction.
     */
    if (code == FL_EPROTO || (code == FL_ETIMEOUT && link->why != NULL) ||
        (code == FL_ELIMIT && link->why == NULL))
    {
        server_notice(session->listener->server, session->peer, "broken",
                      link->why != NULL ? link->why : without_peer(text, session->peer));
    }
    server = session->listener->server;
    fl_list_remove(&session->among);
    server->n_sessions--;
    server->n_leaving -= session->leaving ? 1 : 0;
    forget_shown(session);
    free(session);
    if (server->closing && server->n_sessions == 0) {
        fl_timer_start(server->closer, 0);
    }
}

static void on_call_notice(void *ctx, const struct fl_call *call, const char *reason,
                           const char *text)
{
    const struct session *session = ctx;
    const struct fl_party *party = fl_h2_account(session->link.h2)->party;
    char line[512];

    /* Many clients may share an address: a known one is named. */
    (void)snprintf(line, sizeof(line), "%.200s%s%s%s: %s", fl_call_path(call),
                   party != NULL ? " of '" : "", party != NULL ? party->name : "",
                   party != NULL ? "'" : "", text);
    server_notice(session->listener->server, fl_call_peer(call), reason, line);
}

/* The account whose connection must be closed; it is part of the session of its link. */
static void on_evict(void *ctx, struct fl_account *account, enum fl_evict why)
{
    const struct fl_grpc_server *server = ctx;
    struct fl__link *link = account->owner;
    char line[256];

    if (why == FL_EVICT_PLACES) {
        (void)snprintf(
            line, sizeof(line),
            "connection closed: '%s' has more than %u connections, and this is the oldest",
            account->party->name, server->budget.party_accounts);
        server_notice(server, fl_stream_peer(link->stream), "too many connections", line);
        fl__link_abort(link, FL_ELIMIT, "a newer connection of the same client replaces this one");
        return;
    }
    (void)snprintf(line, sizeof(line),
                   "connection closed: it holds %zu unfinished or unread bytes, of %zu allowed for "
                   "all connections",
                   account->used, server->budget.limit);
    server_notice(server, fl_stream_peer(link->stream), "evicted", line);
    fl__link_abort(link, FL_ELIMIT, "evicted: the memory is needed for other connections");
}

static uint32_t who_is(const struct session *session, const struct fl_identity *identity,
                       const char **why)
{
    const struct fl_grpc_listen *rule = &session->listener->rule;

    *why = NULL;
    return rule->who != NULL ? rule->who(rule->who_ctx, identity, why) : FL_WHO_PLAIN;
}

/* Compares without the port, which differs between connections. */
static bool same_address(const char *peer, const char *other)
{
    const char *port = strrchr(peer, ':');
    size_t n = port != NULL ? (size_t)(port - peer) + 1 : strlen(peer) + 1;

    return strncmp(peer, other, n) == 0;
}

/*
 * True when `session` is a better candidate for closing than `found`, which is older; neither has
 * an authenticated client.
 */
static bool goes_before(const struct session *session, const struct session *found,
                        const char *peer)
{
    bool same = same_address(peer, session->peer);
    bool party = fl_h2_account(session->link.h2)->party != NULL;
    bool found_party;

    if (found == NULL) {
        return true;
    }
    if (same != same_address(peer, found->peer)) {
        return same;
    }
    found_party = fl_h2_account(found->link.h2)->party != NULL;
    if (party != found_party) {
        return found_party;
    }
    return fl_h2_calls(session->link.h2) == 0 && fl_h2_calls(found->link.h2) > 0;
}

/*
 * The connection that a new one of `peer` replaces, among those without an authenticated client:
 * one from the same address, else one without a client's certificate, else one without any call,
 * else the oldest; `shown_nothing`: only those that connected over TLS without a certificate. So
 * many connections from one address replace each other and no other connection.
 */
static struct session *find_replaceable(const struct fl_grpc_server *server, const char *peer,
                                        bool shown_nothing)
{
    struct session *found = NULL;
    struct session *session;

    for (session = FL_LIST_LAST(&server->sessions, struct session, among); session != NULL;
         session = FL_LIST_PREV(&server->sessions, session, struct session, among))
    {
        if (session->leaving || session->link.mute ||
            fl_h2_account(session->link.h2)->vouched > 0 ||
            (shown_nothing && !session->shown_nothing))
        {
            continue;
        }
        found = goes_before(session, found, peer) ? session : found;
    }
    return found;
}

static bool server_make_room(struct fl_grpc_server *server, const char *peer, bool shown_nothing)
{
    struct session *session = find_replaceable(server, peer, shown_nothing);

    if (session == NULL) {
        return false;
    }
    server_notice(server, fl_stream_peer(session->link.stream), "replaced",
                  "connection closed: another connection needs its place");
    session->leaving = true;
    server->n_leaving++;
    forget_shown(session);
    fl__link_abort(&session->link, FL_ELIMIT, "replaced by another connection");
    return true;
}

static void on_arrived(struct fl__link *link)
{
    struct session *session = (struct session *)link;
    const struct fl_identity *identity = fl_stream_identity(link->stream);
    struct fl_grpc_server *server = session->listener->server;
    const char *why;
    uint32_t who = who_is(session, identity, &why);

    if (fl_h2_identify(link->h2, who, why, identity) != FL_OK) {
        fl__link_abort(link, FL_ENOMEM, "out of memory for the peer's identity");
        return;
    }
    if (session->listener->rule.filter != NULL && (who & (FL_WHO_UNAUTHENTICATED)) != 0) {
        session->shown_nothing = true;
        server->n_shown_nothing++;
        /* The other places are for clients with a certificate, which then replace no connection. */
        if (server->n_shown_nothing >
            (server->setup.max_connections - server->setup.max_connections / FL_GRPC_RESERVE))
        {
            (void)server_make_room(server, session->peer, /* shown_nothing= */ true);
        }
    }
    if (identity != NULL && (who & (FL_WHO_CLIENT | FL_WHO_LAPSED)) != 0) {
        fl_account_join(fl_h2_account(link->h2), identity->name);
    }
}

static void session_review(struct session *session)
{
    struct fl_h2 *h2 = session->link.h2;
    const char *why;
    uint32_t before;
    uint32_t who;

    if (h2 == NULL || !session->link.arrived || session->link.mute || session->expelled) {
        return;
    }
    who = who_is(session, fl_h2_identity(h2), &why);
    before = fl_h2_who(h2);
    if (who == before) {
        return;
    }
    /*
     * Requests that arrive before the connection has closed are checked against the new
     * classification.
     */
    if (fl_h2_identify(h2, who, why, fl_h2_identity(h2)) != FL_OK) {
        fl__link_abort(&session->link, FL_ENOMEM, "out of memory for the peer's identity");
    } else if ((before & ~who) != 0) {
        server_notice(session->listener->server, session->peer, "expelled", why);
        session->expelled = true;
        fl_h2_expel(session->link.h2, why);
        fl__link_drain(&session->link, EXPELLED_GRACE_MS);
    }
}

static uint64_t session_check(struct fl__link *link, uint64_t now_ms)
{
    struct session *session = (struct session *)link;
    const struct fl_rpc_limits *limits = &session->listener->server->setup.limits;
    uint64_t at;

    if (!link->ready) {
        at = session->accepted_at + limits->handshake_ms;
        if (now_ms >= at) {
            fl__link_close(link, FL_ETIMEOUT, "timed out: no HTTP/2 handshake");
        }
        return at;
    }
    if (fl_h2_calls(link->h2) > 0) {
        session->idle_since = UINT64_MAX;
        if (session->idle_drain) {
            /* A call crossed our GOAWAY: the connection is not idle any more. */
            session->idle_drain = false;
            link->grace_at = UINT64_MAX;
        }
        return fl__link_keepalive(link, now_ms);
    }
    if (link->grace_at != UINT64_MAX) {
        return UINT64_MAX; /* Draining already. */
    }
    if (session->idle_since == UINT64_MAX) {
        session->idle_since = now_ms;
    }
    at = session->idle_since + limits->idle_ms;
    if (now_ms < at) {
        return at;
    }
    session->idle_drain = true;
    fl__link_drain(link, IDLE_GRACE_MS);
    return UINT64_MAX;
}

static const struct fl__link_ops ops = {
    .arrived = on_arrived, .check = session_check, .gone = session_on_gone};

static int start_session(const struct listener *listener, struct fl_stream *stream)
{
    struct fl_grpc_server *server = listener->server;
    struct fl_h2_setup setup = {.limits = server->setup.limits,
                                .methods = server->setup.methods,
                                .budget = &server->budget,
                                .notice = on_call_notice};
    struct session *session = calloc(1, sizeof(*session));
    int rv;

    if (session == NULL) {
        return FL_ENOMEM;
    }
    rv = fl__link_init(&session->link, server->setup.loop, &ops);
    if (rv != FL_OK) {
        free(session);
        return rv;
    }
    rv = fl__link_start(&session->link, fl_stream_peer(stream), &setup, true);
    if (rv != FL_OK) {
        fl__link_done(&session->link);
        free(session);
        return rv;
    }
    session->link.keepalive.after_ms = server->setup.ping_after_ms;
    session->link.keepalive.limit_ms = server->setup.ping_limit_ms;
    session->listener = listener;
    (void)snprintf(session->peer, sizeof(session->peer), "%s", fl_stream_peer(stream));
    session->accepted_at = fl_loop_now(server->setup.loop);
    session->idle_since = UINT64_MAX;
    fl_list_prepend(&server->sessions, &session->among);
    server->n_sessions++;
    fl_stream_charge(stream, fl_h2_account(session->link.h2));
    fl__link_attach(&session->link, stream);
    return FL_OK;
}

static void on_accept(void *ctx, struct fl_stream *stream)
{
    const struct listener *listener = ctx;
    struct fl_grpc_server *server = listener->server;

    if (server->n_sessions - server->n_leaving >= server->setup.max_connections &&
        !server_make_room(server, fl_stream_peer(stream), /* shown_nothing= */ false))
    {
        server_notice(server, fl_stream_peer(stream), "connection rejected",
                      "connection rejected: the limit of connections is reached");
        fl_stream_close(stream);
        return;
    }
    if (fl_stream_wrap(listener->rule.filter, &stream) != FL_OK ||
        start_session(listener, stream) != FL_OK)
    {
        server_notice(server, fl_stream_peer(stream), "out of memory",
                      "connection rejected: out of memory");
        fl_stream_close(stream);
    }
}

static void listener_on_accept(void *ctx, struct fl_stream *stream)
{
    struct listener *listener = ctx;

    if (listener->balancer != NULL) {
        fl_balancer_accept(listener->balancer, stream);
    } else {
        on_accept(listener, stream);
    }
}

static void on_balancer_notice(void *ctx, const char *peer, const char *reason, const char *text)
{
    const struct listener *listener = ctx;

    server_notice(listener->server, peer, reason, text);
}

static void on_closer(void *arg)
{
    struct fl_grpc_server *server = arg;
    struct listener *listener;
    fl_loop_cb closed = server->closed;
    void *ctx = server->closed_ctx;

    fl_timer_close(server->closer);
    while ((listener = server->listeners) != NULL) {
        server->listeners = listener->next;
        free(listener);
    }
    free(server);
    if (closed != NULL) {
        closed(ctx);
    }
}

int fl_grpc_server_create(const struct fl_grpc_server_setup *setup, struct fl_grpc_server **ret,
                          struct fl_err *err)
{
    struct fl_grpc_server *server = calloc(1, sizeof(*server));

    FL_REQUIRE(setup->methods != NULL);
    if (server == NULL) {
        return fl_err_set(err, FL_ENOMEM, "gRPC server: out of memory");
    }
    server->setup = *setup;
    fl_budget_init(&server->budget, setup->memory > 0 ? setup->memory : SIZE_MAX,
                   2 * setup->limits.message_bytes, on_evict, server);
    server->budget.reserve = setup->memory / FL_GRPC_RESERVE;
    server->budget.party_accounts = setup->peer_connections;
    server->budget.party_calls = setup->peer_connections > 0 ? setup->limits.streams : 0;
    if (fl_timer_create(setup->loop, on_closer, server, &server->closer) != FL_OK) {
        free(server);
        return fl_err_set(err, FL_ENOMEM, "gRPC server: out of memory");
    }
    *ret = server;
    return FL_OK;
}

int fl_grpc_server_listen(struct fl_grpc_server *server, const struct fl_grpc_listen *listen,
                          unsigned *ret_port, struct fl_err *err)
{
    struct listener *listener;
    int rv;

    FL_REQUIRE(!server->closing);
    listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        return fl_err_set(err, FL_ENOMEM, "listening: out of memory");
    }
    listener->server = server;
    listener->rule = *listen;
    listener->rule.address = NULL;
    listener->rule.balancers = NULL;
    if (listen->n_balancers > 0) {
        rv = fl_balancer_create(
            &(struct fl_balancer_setup){.loop = server->setup.loop,
                                        .from = listen->balancers,
                                        .n_from = listen->n_balancers,
                                        .timeout_ms = server->setup.limits.handshake_ms,
                                        .on_accept = on_accept,
                                        .notice = on_balancer_notice,
                                        .ctx = listener},
            &listener->balancer);
        if (rv != FL_OK) {
            rv = fl_err_set(err, rv, "listening: out of memory");
            goto fail;
        }
    }
    rv = fl_listen(server->setup.loop, listen->address, listener_on_accept, listener,
                   &listener->net, err);
    if (rv != FL_OK) {
        goto fail;
    }
    fl_listener_count(listener->net, listen->traffic);
    listener->next = server->listeners;
    server->listeners = listener;
    if (ret_port != NULL) {
        *ret_port = fl_listener_port(listener->net);
    }
    return FL_OK;
fail:
    fl_balancer_free(listener->balancer);
    free(listener);
    return rv;
}

size_t fl_grpc_server_connections(const struct fl_grpc_server *server)
{
    return server->n_sessions;
}

void fl_grpc_server_review(struct fl_grpc_server *server)
{
    struct session *session;

    /* Nothing is freed here: sessions end in callbacks. */
    FL_LIST_FOREACH (session, &server->sessions, struct session, among) {
        session_review(session);
    }
}

const struct fl_budget *fl_grpc_server_budget(const struct fl_grpc_server *server)
{
    return &server->budget;
}

void fl_grpc_server_close(struct fl_grpc_server *server, uint32_t grace_ms, fl_loop_cb closed,
                          void *ctx)
{
    struct listener *listener;
    struct session *session;

    FL_REQUIRE(!server->closing);
    server->closing = true;
    server->closed = closed;
    server->closed_ctx = ctx;
    for (listener = server->listeners; listener != NULL; listener = listener->next) {
        fl_listener_close(listener->net);
        listener->net = NULL;
        fl_balancer_free(listener->balancer);
        listener->balancer = NULL;
    }
    /* Nothing is freed here: sessions end in callbacks. */
    FL_LIST_FOREACH (session, &server->sessions, struct session, among) {
        session->idle_drain = false;
        if (session->link.ready) {
            fl__link_drain(&session->link, grace_ms);
        } else {
            fl__link_close(&session->link, FL_OK, NULL);
        }
    }
    if (server->n_sessions == 0) {
        fl_timer_start(server->closer, 0);
    }
}
