/*
 * The routes of a server: health, metrics, and the documents about the federation. HTTP thread;
 * what the coordinator knows comes through fl_server_ask().
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/clock.h"
#include "libfl/json/admin_json.h"
#include "libfl/json/json.h"
#include "libfl/page/page.h"
#include "server/http/server_http_impl.h"
#include "server/http/server_metrics.h"

/* Entries of a page. */
#define PAGE_DEFAULT 100
#define PAGE_MAX     1000
/* Longest document: a page of clients with their labels. */
#define DOCUMENT_MAX ((size_t)16 << 20)
#define METRICS_MAX  ((size_t)1 << 20)

static const char document_type[] = "application/json";

/* Takes `value`; NULL: out of memory. */
static void routes_json(struct fl_http_request *request, json_t *value)
{
    struct fl_buf body;
    int rv;

    fl_buf_init(&body, DOCUMENT_MAX);
    rv = fl_json_add_document(&body, value);
    if (rv != FL_OK) {
        fl_buf_done(&body);
        fl_http_fail_code(request, rv, NULL);
        return;
    }
    fl_http_answer(request, document_type, &body, true);
}

static void routes_text(struct fl_http_request *request, const char *text)
{
    struct fl_buf body;

    fl_buf_init(&body, METRICS_MAX);
    if (fl_buf_add(&body, text, strlen(text)) != FL_OK) {
        fl_http_fail_code(request, FL_ENOMEM, NULL);
        return;
    }
    fl_http_answer(request, "text/plain; charset=utf-8", &body, false);
}

/* --- health --- */

static void routes_healthz(void *ctx, struct fl_http_request *request)
{
    (void)ctx;
    routes_text(request, "ok\n");
}

static void routes_ready(struct fl_server_http *server, struct fl_http_request *request,
                         struct fl_admin_request *asked)
{
    const struct fl_coord_figures *f = asked->figures;

    (void)server;
    if (f->own_failure > 0) {
        fl_http_fail(request, 503,
                     "the newest work of the server failed and is retried: see "
                     "flctl why");
    } else if (f->phase[FL_PHASE_DRAINING] > 0) {
        fl_http_fail(request, 503, "the server drains");
    } else {
        routes_text(request, "ready\n");
    }
}

static void routes_readyz(void *ctx, struct fl_http_request *request)
{
    fl_server_ask(ctx, request, fl_server_ask_figures(), routes_ready);
}

/* --- metrics --- */

static void routes_threads(const struct fl_server_http_setup *setup, struct fl_server_figures *f)
{
    struct fl_worker_thread *const threads[FL_SERVER_THREADS] = {setup->io, setup->db, setup->work,
                                                                 fl_auth_worker(setup->auth)};
    uint64_t now = fl_clock_wall_ms();
    size_t i;

    for (i = 0; i < FL_SERVER_THREADS; i++) {
        uint64_t busy_ms = fl_worker_thread_busy_ms(threads[i]);
        uint64_t waiting_ms = fl_worker_thread_waiting_ms(threads[i]);

        f->busy_since_ms[i] = busy_ms > 0 ? now - busy_ms : 0;
        f->waiting_since_ms[i] = waiting_ms > 0 ? now - waiting_ms : 0;
        f->queued[i] = fl_worker_thread_pending(threads[i]);
    }
}

static void routes_downloads(const struct fl_server_http_setup *setup, struct fl_server_figures *f)
{
    size_t i;

    for (i = 0; i < FL_DOWNLOAD_N; i++) {
        f->downloads[i] = atomic_load(&setup->downloads->sent[i]);
        f->downloads_full[i] = atomic_load(&setup->downloads->full[i]);
    }
}

static void routes_metrics_answer(struct fl_server_http *server, struct fl_http_request *request,
                                  struct fl_admin_request *asked)
{
    const struct fl_server_http_setup *setup = &server->setup;
    enum fl_metrics_format format = fl_metrics_format_of(fl_http_header(request, "Accept"));
    struct fl_server_figures f = {
        .info = {PACKAGE_VERSION, setup->conf->main->federation, setup->conf->strategy->algorithm},
        .coord = *asked->figures};
    struct fl_process_figures process;
    struct fl_buf body;
    int rv;

    routes_threads(setup, &f);
    routes_downloads(setup, &f);
    f.clients_needed = (uint64_t)setup->conf->round->min_clients;
    fl_auth_ends(setup->auth, f.certificate_ms);
    f.log_left_out = fl_log_n_left_out(setup->log);
    f.http = fl_http_counts(server->http);
    fl_process_figures_read(&process);
    fl_buf_init(&body, METRICS_MAX);
    rv = fl_server_metrics_add(&body, format, &f, &process);
    if (rv != FL_OK) {
        fl_buf_done(&body);
        fl_http_fail_code(request, rv, NULL);
        return;
    }
    fl_http_answer(request, fl_metrics_types[format], &body, false);
}

static void routes_metrics(void *ctx, struct fl_http_request *request)
{
    fl_server_ask(ctx, request, fl_server_ask_figures(), routes_metrics_answer);
}

/* --- documents --- */

static void routes_status_answer(struct fl_server_http *server, struct fl_http_request *request,
                                 struct fl_admin_request *asked)
{
    struct fl_wire_status s;
    const uint8_t *data = NULL;
    struct fl_err err = {0};
    size_t len = 0;
    int rv;

    (void)server;
    (void)fl_replies_next(&asked->replies, &data, &len);
    rv = fl_wire_status_decode(data, len, &s, &err);
    if (rv != FL_OK) {
        fl_http_fail_code(request, rv, &err);
        return;
    }
    routes_json(request, fl_json_status(&s));
    fl_wire_status_done(&s);
}

static void routes_status(void *ctx, struct fl_http_request *request)
{
    fl_server_ask(ctx, request, fl_admin_request_new(FL_VERB_STATUS), routes_status_answer);
}

/* The entries of the answer as a list; NULL: `*rv` says why. */
static json_t *routes_rounds_list(struct fl_admin_request *asked, int *rv, struct fl_err *err)
{
    json_t *list = json_array();
    struct fl_wire_round r;
    const uint8_t *data;
    size_t len;

    *rv = FL_OK;
    while (*rv == FL_OK && fl_replies_next(&asked->replies, &data, &len)) {
        *rv = fl_wire_round_decode(data, len, &r, err);
        if (*rv == FL_OK) {
            (void)json_array_append_new(list, fl_json_round(&r));
            fl_wire_round_done(&r);
        }
    }
    return list;
}

static json_t *routes_clients_list(struct fl_admin_request *asked, int *rv, struct fl_err *err)
{
    json_t *list = json_array();
    struct fl_wire_client c;
    const uint8_t *data;
    size_t len;

    *rv = FL_OK;
    while (*rv == FL_OK && fl_replies_next(&asked->replies, &data, &len)) {
        *rv = fl_wire_client_decode(data, len, &c, err);
        if (*rv == FL_OK) {
            (void)json_array_append_new(list, fl_json_client(&c));
            fl_wire_client_done(&c);
        }
    }
    return list;
}

/* A page: the list under `key`, and where the next one is. Takes `list`. */
static void routes_page(struct fl_http_request *request, const char *key, json_t *list,
                        const char *next)
{
    json_t *page = json_object();

    (void)json_object_set_new(page, key, list);
    (void)json_object_set_new(page, "next", next != NULL ? json_string(next) : json_null());
    routes_json(request, page);
}

/* The only entry of the answer, or 404. Takes `list`. */
static void routes_one(struct fl_http_request *request, json_t *list, const char *missing)
{
    json_t *one = json_array_get(list, 0);

    if (one == NULL) {
        fl_http_fail(request, 404, "%s", missing);
    } else {
        routes_json(request, json_incref(one));
    }
    json_decref(list);
}

static void routes_rounds_answer(struct fl_server_http *server, struct fl_http_request *request,
                                 struct fl_admin_request *asked)
{
    const struct fl_admin_page *page = &asked->page;
    struct fl_err err = {0};
    char next[128];
    json_t *list;
    uint64_t first;
    size_t n;
    int rv;

    (void)server;
    list = routes_rounds_list(asked, &rv, &err);
    n = json_array_size(list);
    if (rv != FL_OK) {
        json_decref(list);
        fl_http_fail_code(request, rv, &err);
        return;
    }
    first =
        n > 0 ? (uint64_t)json_integer_value(json_object_get(json_array_get(list, n - 1), "round"))
              : 0;
    (void)snprintf(next, sizeof(next), "/api/v1/rounds?before=%llu&limit=%u",
                   (unsigned long long)first, page->most);
    routes_page(request, "rounds", list, n == page->most && first > 1 ? next : NULL);
}

static void routes_round_answer(struct fl_server_http *server, struct fl_http_request *request,
                                struct fl_admin_request *asked)
{
    struct fl_err err = {0};
    char missing[128];
    json_t *list;
    int rv;

    (void)server;
    list = routes_rounds_list(asked, &rv, &err);
    if (json_integer_value(json_object_get(json_array_get(list, 0), "round")) + 1 !=
        (json_int_t)asked->page.before)
    {
        (void)json_array_clear(list); /* An earlier one is not the one that was asked for. */
    }
    (void)snprintf(missing, sizeof(missing), "round %llu was not committed",
                   (unsigned long long)asked->page.before - 1);
    routes_one(request, list, missing);
}

static void routes_rounds(void *ctx, struct fl_http_request *request)
{
    uint64_t before = INT64_MAX;
    uint64_t limit = PAGE_DEFAULT;
    struct fl_admin_request *ask;

    if (!fl_http_query_whole(request, "before", 1, INT64_MAX, &before) ||
        !fl_http_query_whole(request, "limit", 1, PAGE_MAX, &limit))
    {
        return;
    }
    ask = fl_admin_request_new(FL_VERB_ROUNDS);
    if (ask != NULL) {
        ask->page.before = before;
        ask->page.most = (uint32_t)limit;
    }
    fl_server_ask(ctx, request, ask, routes_rounds_answer);
}

static void routes_round(void *ctx, struct fl_http_request *request)
{
    uint64_t round = 0;
    struct fl_admin_request *ask;

    if (fl_str_to_u64(fl_http_rest(request), &round) != FL_OK || round < 1 || round >= INT64_MAX) {
        fl_http_fail(request, 404, "expected the number of a round, from 1, found '%.64s'",
                     fl_http_rest(request));
        return;
    }
    ask = fl_admin_request_new(FL_VERB_ROUNDS);
    if (ask != NULL) {
        ask->page.before = round + 1;
        ask->page.most = 1;
    }
    fl_server_ask(ctx, request, ask, routes_round_answer);
}

static void routes_clients_answer(struct fl_server_http *server, struct fl_http_request *request,
                                  struct fl_admin_request *asked)
{
    const struct fl_admin_page *page = &asked->page;
    char next[256 + FL_NAME_MAX];
    struct fl_err err = {0};
    json_t *list;
    int rv;

    (void)server;
    list = routes_clients_list(asked, &rv, &err);
    if (rv != FL_OK) {
        json_decref(list);
        fl_http_fail_code(request, rv, &err);
        return;
    }
    /* Names need no escape in a URL: letters, digits, '.', '_' and '-'. */
    (void)snprintf(next, sizeof(next), "/api/v1/clients?after=%s&limit=%u%s%s", page->last,
                   page->most, page->state != NULL ? "&state=" : "",
                   page->state != NULL ? page->state : "");
    routes_page(request, "clients", list, page->more ? next : NULL);
}

static void routes_client_answer(struct fl_server_http *server, struct fl_http_request *request,
                                 struct fl_admin_request *asked)
{
    struct fl_err err = {0};
    json_t *list;
    int rv;

    (void)server;
    list = routes_clients_list(asked, &rv, &err);
    routes_one(request, list, "no such client is known");
}

static const char *const client_states[] = {
    "connected", "disconnected", "idle",  "unavailable", "quarantined", "selected", "reported",
    "planned",   "accepted",     "empty", "rejected",    "lost",        NULL};

static bool routes_name(struct fl_http_request *request, const char *what, const char *name)
{
    if (fl_name_valid(name)) {
        return true;
    }
    fl_http_fail(request, 400,
                 "%s: '%.128s' is no name of a client: expected 1 to %d of A-Z a-z "
                 "0-9 . _ -",
                 what, name, FL_NAME_MAX - 1);
    return false;
}

static void routes_clients(void *ctx, struct fl_http_request *request)
{
    const char *after = fl_http_query(request, "after");
    uint64_t limit = PAGE_DEFAULT;
    size_t state = sizeof(client_states) / sizeof(client_states[0]) - 1; /* any */
    struct fl_admin_request *ask;

    if (!fl_http_query_whole(request, "limit", 1, PAGE_MAX, &limit) ||
        !fl_http_query_word(request, "state", client_states, &state) ||
        (after != NULL && !routes_name(request, "query parameter after", after)))
    {
        return;
    }
    ask = fl_admin_request_new(FL_VERB_CLIENTS);
    if (ask != NULL) {
        ask->page.most = (uint32_t)limit;
        ask->page.state = client_states[state];
        (void)snprintf(ask->page.after, sizeof(ask->page.after), "%s", after != NULL ? after : "");
    }
    fl_server_ask(ctx, request, ask, routes_clients_answer);
}

static void routes_client(void *ctx, struct fl_http_request *request)
{
    const char *name = fl_http_rest(request);
    struct fl_admin_request *ask;

    if (!routes_name(request, "path", name)) {
        return;
    }
    ask = fl_admin_request_new(FL_VERB_CLIENTS);
    if (ask != NULL) {
        (void)snprintf(ask->page.name, sizeof(ask->page.name), "%s", name);
    }
    fl_server_ask(ctx, request, ask, routes_client_answer);
}

/* --- participations --- */

static json_t *routes_layers(const struct fl_layout *layout)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; i < fl_layout_units(layout) && i < FL_PART_LAYERS; i++) {
        (void)json_array_append_new(list, json_string(fl_layout_unit(layout, i)->name));
    }
    return list;
}

/* The entries of the answer, and the id of the last one; *rv: an error. */
static json_t *routes_participations_list(struct fl_admin_request *asked, uint64_t *ret_last,
                                          int *rv, struct fl_err *err)
{
    json_t *list = json_array();
    struct fl_wire_participation p;
    const uint8_t *data;
    size_t len;

    *rv = FL_OK;
    while (*rv == FL_OK && fl_replies_next(&asked->replies, &data, &len)) {
        *rv = fl_wire_participation_decode(data, len, &p, err);
        if (*rv == FL_OK) {
            *ret_last = p.id;
            (void)json_array_append_new(list, fl_json_participation(&p));
            fl_wire_participation_done(&p);
        }
    }
    return list;
}

static void routes_participations_answer(struct fl_server_http *server,
                                         struct fl_http_request *request,
                                         struct fl_admin_request *asked)
{
    const struct fl_wire_list_participations *of = &asked->parts;
    struct fl_err err = {0};
    char next[256 + FL_NAME_MAX];
    char filter[64 + FL_NAME_MAX] = "";
    uint64_t last = 0;
    json_t *page;
    json_t *list;
    int rv;

    list = routes_participations_list(asked, &last, &rv, &err);
    if (rv != FL_OK) {
        json_decref(list);
        fl_http_fail_code(request, rv, &err);
        return;
    }
    if (of->client[0] != '\0') {
        (void)snprintf(filter, sizeof(filter), "&client=%s", of->client);
    } else if (of->round != 0) {
        (void)snprintf(filter, sizeof(filter), "&round=%llu", (unsigned long long)of->round);
    }
    (void)snprintf(next, sizeof(next), "/api/v1/participations?before=%llu&limit=%u%s",
                   (unsigned long long)last, of->most, filter);
    page = json_object();
    (void)json_object_set_new(page, "layers", routes_layers(server->setup.conf->layout));
    (void)json_object_set_new(page, "next",
                              json_array_size(list) == of->most ? json_string(next) : json_null());
    (void)json_object_set_new(page, "participations", list);
    routes_json(request, page);
}

static void routes_participations(void *ctx, struct fl_http_request *request)
{
    const char *client = fl_http_query(request, "client");
    struct fl_admin_request *ask;
    uint64_t before = 0;
    uint64_t limit = PAGE_DEFAULT;
    uint64_t round = 0;

    if (!fl_http_query_whole(request, "before", 1, INT64_MAX, &before) ||
        !fl_http_query_whole(request, "limit", 1, PAGE_MAX, &limit) ||
        !fl_http_query_whole(request, "round", 1, INT64_MAX, &round) ||
        (client != NULL && !routes_name(request, "query parameter client", client)))
    {
        return;
    }
    if (client != NULL && round != 0) {
        fl_http_fail(request, 400, "query parameters client and round: expected one of them");
        return;
    }
    ask = fl_admin_request_new(FL_VERB_PARTICIPATIONS);
    if (ask != NULL) {
        ask->parts = (struct fl_wire_list_participations){
            .round = round, .before = before, .most = (uint32_t)limit};
        (void)snprintf(ask->parts.client, sizeof(ask->parts.client), "%s",
                       client != NULL ? client : "");
    }
    fl_server_ask(ctx, request, ask, routes_participations_answer);
}

/* --- events --- */

static json_t *routes_event_json(const struct fl_event_line *e)
{
    json_t *o = json_object();

    (void)json_object_set_new(o, "id", fl_json_whole(e->id));
    (void)json_object_set_new(o, "at_ms", fl_json_whole(e->at_ms));
    (void)json_object_set_new(o, "kind", json_string(fl_event_kinds[e->kind]));
    (void)json_object_set_new(o, "level", json_string(e->warning ? "warning" : "info"));
    (void)json_object_set_new(o, "round", fl_json_whole(e->round));
    (void)json_object_set_new(o, "client",
                              e->client[0] != '\0' ? json_string(e->client) : json_null());
    (void)json_object_set_new(o, "text", json_string(e->text));
    return o;
}

static int routes_read_events(void *ctx, uint64_t *at, struct fl_buf *out, size_t max)
{
    const struct fl_server_http *server = ctx;
    struct fl_event_line e;
    int rv = FL_OK;

    while (rv == FL_OK && out->len < max && fl_event_log_next(server->setup.events, *at, &e)) {
        json_t *o = routes_event_json(&e);
        char *line = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);

        rv = line != NULL ? fl_buf_printf(out, "id: %llu\nevent: %s\ndata: %s\n\n",
                                          (unsigned long long)e.id, fl_event_kinds[e.kind], line)
                          : FL_ENOMEM;
        *at = e.id;
        free(line);
        json_decref(o);
    }
    return rv;
}

static void routes_events_list(struct fl_server_http *server, struct fl_http_request *request,
                               uint64_t after, uint64_t limit, size_t kind)
{
    json_t *list = json_array();
    struct fl_event_line e;
    char next[128];

    while (json_array_size(list) < limit && fl_event_log_next(server->setup.events, after, &e)) {
        after = e.id;
        if (kind == FL_EVENT_KINDS || kind == e.kind) {
            (void)json_array_append_new(list, routes_event_json(&e));
        }
    }
    (void)snprintf(next, sizeof(next), "/api/v1/events?after=%llu&limit=%llu%s%s",
                   (unsigned long long)after, (unsigned long long)limit,
                   kind < FL_EVENT_KINDS ? "&kind=" : "",
                   kind < FL_EVENT_KINDS ? fl_event_kinds[kind] : "");
    routes_page(request, "events", list, next);
}

static void routes_events(void *ctx, struct fl_http_request *request)
{
    struct fl_server_http *server = ctx;
    const char *accept = fl_http_header(request, "Accept");
    const char *last = fl_http_header(request, "Last-Event-ID");
    bool stream = accept != NULL && strstr(accept, "text/event-stream") != NULL;
    uint64_t after = stream ? fl_event_log_newest(server->setup.events) : 0;
    uint64_t limit = PAGE_DEFAULT;
    uint64_t id = 0;
    size_t kind = FL_EVENT_KINDS;

    if (!fl_http_query_whole(request, "after", 0, INT64_MAX, &after) ||
        !fl_http_query_whole(request, "limit", 1, PAGE_MAX, &limit) ||
        !fl_http_query_word(request, "kind", fl_event_kinds, &kind))
    {
        return;
    }
    if (!stream) {
        routes_events_list(server, request, after, limit, kind);
        return;
    }
    if (kind < FL_EVENT_KINDS) {
        fl_http_fail(request, 400,
                     "query parameter kind: an event stream has all events, filter by "
                     "the name of the event");
        return;
    }
    if (last != NULL && fl_str_to_u64(last, &id) == FL_OK) {
        after = id; /* A reader that reconnects. */
    }
    fl_http_stream(request, after, routes_read_events, server);
}

static const char *const rounds_query[] = {"before", "limit", NULL};
static const char *const clients_query[] = {"after", "limit", "state", NULL};
static const char *const participations_query[] = {"client", "round", "before", "limit", NULL};
static const char *const detail_query[] = {"before", NULL};
static const char *const events_query[] = {"after", "limit", "kind", NULL};

const struct fl_http_route fl_server_routes[] = {
    {.path = "/", .handle = fl_server_page_overview, .help = "[status page](#status-pages)"},
    {.path = "/clients",
     .handle = fl_server_page_clients,
     .query = fl_page_query_keys,
     .help = "page of all clients, sorted and filtered"},
    {.path = "/clients/",
     .rest = "NAME",
     .handle = fl_server_page_client,
     .query = detail_query,
     .help = "page of a client"},
    {.path = "/rounds/",
     .rest = "N",
     .handle = fl_server_page_round,
     .query = detail_query,
     .help = "page of one of the last 200 rounds"},
    {.path = "/healthz",
     .handle = routes_healthz,
     .open = true,
     .help = "200: the process answers"},
    {.path = "/readyz",
     .handle = routes_readyz,
     .open = true,
     .help = "200: the coordinator answers and its newest work did not fail; else 503 with the "
             "reason"},
    {.path = "/metrics", .handle = routes_metrics, .help = "[metrics](#metrics)"},
    {.path = "/api/v1/status", .handle = routes_status, .help = "[status](#status)"},
    {.path = "/api/v1/rounds",
     .handle = routes_rounds,
     .query = rounds_query,
     .help = "[rounds](#rounds), the newest first"},
    {.path = "/api/v1/rounds/",
     .rest = "N",
     .handle = routes_round,
     .help = "one [round](#rounds)"},
    {.path = "/api/v1/clients",
     .handle = routes_clients,
     .query = clients_query,
     .help = "[clients](#clients) by name"},
    {.path = "/api/v1/clients/",
     .rest = "NAME",
     .handle = routes_client,
     .help = "one [client](#clients)"},
    {.path = "/api/v1/participations",
     .handle = routes_participations,
     .query = participations_query,
     .help = "[participations](#participations), the newest first"},
    {.path = "/api/v1/events",
     .handle = routes_events,
     .query = events_query,
     .help = "[events](#events), also as a stream"},
    {.path = NULL}};

int fl_server_http_reference(struct fl_buf *out)
{
    return fl_http_reference(out, fl_server_routes);
}
