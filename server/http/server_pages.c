/*
 * The status pages of a server: asks the coordinator for a copy of what they show, part by part,
 * and renders it (libfl/page). Readers of the same moment wait for the same copy. HTTP thread.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/list.h"
#include "server/http/page_snapshot.h"
#include "server/http/server_http_impl.h"

/* Longest page: a thousand rounds or clients are far below it. */
#define PAGES_BYTES_MAX ((size_t)8 << 20)
/* Clients that the coordinator is asked for at a time. */
#define PAGES_PART 1000

struct fl_server_pages {
    struct fl_page_snapshot shown;  /* asked_ms 0: none yet */
    struct fl_page_snapshot coming; /* being asked for */
    bool asking;
    bool keeps_parts;    /* `coming` has the rounds of `shown`, and gets its participations */
    const char **layers; /* [n_layers] of the model */
    size_t n_layers;
    struct fl_list readers; /* struct pages_reader, that wait for `coming` */
    char policy[FL_PAGE_POLICY];
};

/* A request for a page that waits. */
struct pages_reader {
    struct fl_list link;
    struct fl_http_request *request;
    void (*render)(struct fl_server_http *server, struct fl_http_request *request);
};

struct fl_server_pages *fl_server_pages_new(const struct fl_layout *layout)
{
    struct fl_server_pages *p = calloc(1, sizeof(*p));
    size_t i;

    if (p == NULL) {
        return NULL;
    }
    (void)fl_page_policy(p->policy);
    p->n_layers =
        fl_layout_units(layout) < FL_PART_LAYERS ? fl_layout_units(layout) : FL_PART_LAYERS;
    p->layers = calloc(p->n_layers + 1, sizeof(*p->layers));
    if (p->layers == NULL) {
        free(p);
        return NULL;
    }
    for (i = 0; i < p->n_layers; i++) {
        p->layers[i] = fl_layout_unit(layout, i)->name;
    }
    return p;
}

void fl_server_pages_free(struct fl_server_pages *p)
{
    if (p != NULL) {
        fl_page_snapshot_done(&p->shown);
        fl_page_snapshot_done(&p->coming);
        free((void *)p->layers);
        free(p);
    }
}

/* --- the copy --- */

static void pages_gone(void *ctx)
{
    struct pages_reader *r = ctx;

    fl_list_remove(&r->link);
    free(r);
}

/* All that waited get their page, or the error. */
static void pages_serve(struct fl_server_http *server, int code, const struct fl_err *err)
{
    struct fl_server_pages *p = server->pages;
    struct pages_reader *r;

    p->asking = false;
    while ((r = FL_LIST_FIRST(&p->readers, struct pages_reader, link)) != NULL) {
        struct fl_http_request *request = r->request;
        void (*render)(struct fl_server_http * server, struct fl_http_request * request) =
            r->render;

        pages_gone(r);
        if (code != FL_OK) {
            fl_http_fail_code(request, code, err);
        } else {
            render(server, request);
        }
    }
}

static void pages_answered(struct fl_server_http *server, struct fl_http_request *request,
                           struct fl_admin_request *asked);

/* NULL `ask`: out of memory. */
static void pages_ask(struct fl_server_http *server, struct fl_admin_request *ask)
{
    if (ask == NULL) {
        pages_serve(server, FL_ENOMEM, NULL);
        return;
    }
    fl_server_ask(server, NULL, ask, pages_answered);
}

static void pages_ask_clients(struct fl_server_http *server, const char *after)
{
    struct fl_admin_request *ask = fl_admin_request_new(FL_VERB_CLIENTS);

    if (ask != NULL) {
        ask->page.most = PAGES_PART;
        (void)snprintf(ask->page.after, sizeof(ask->page.after), "%s", after);
    }
    pages_ask(server, ask);
}

static void pages_ask_rounds(struct fl_server_http *server)
{
    struct fl_admin_request *ask = fl_admin_request_new(FL_VERB_ROUNDS);

    if (ask != NULL) {
        ask->page.before = INT64_MAX;
        ask->page.most = FL_PAGE_ROUNDS_MAX;
    }
    pages_ask(server, ask);
}

/* Of the client or of the round; NULL and 0: of all, without clients that only evaluated, which
   would leave no place for many rounds. */
static struct fl_admin_request *pages_parts_request(const char *client, uint64_t round,
                                                    uint64_t before, uint32_t most)
{
    struct fl_admin_request *ask = fl_admin_request_new(FL_VERB_PARTICIPATIONS);

    if (ask != NULL) {
        ask->parts = (struct fl_wire_list_participations){.round = round,
                                                          .before = before,
                                                          .most = most,
                                                          .selected = client == NULL && round == 0};
        (void)snprintf(ask->parts.client, sizeof(ask->parts.client), "%s",
                       client != NULL ? client : "");
    }
    return ask;
}

/* The newest round is the one that is shown: what belongs to it has not changed. */
static bool pages_same_round(const struct fl_page_snapshot *a, const struct fl_page_snapshot *b)
{
    return a->n_rounds > 0 && b->n_rounds > 0 &&
           a->rounds[a->n_rounds - 1].figures.round == b->rounds[b->n_rounds - 1].figures.round &&
           a->rounds[a->n_rounds - 1].figures.ended_ms ==
               b->rounds[b->n_rounds - 1].figures.ended_ms;
}

static void pages_complete(struct fl_server_http *server)
{
    struct fl_server_pages *p = server->pages;
    int rv = fl_page_snapshot_events(&p->coming, server->setup.events);

    if (rv != FL_OK) {
        pages_serve(server, rv, NULL);
        return;
    }
    if (p->keeps_parts) {
        p->coming.parts = p->shown.parts;
        p->shown.parts = (struct fl_page_parts){.n = 0};
    }
    fl_page_snapshot_done(&p->shown);
    p->shown = p->coming;
    p->coming = (struct fl_page_snapshot){.asked_ms = 0};
    pages_serve(server, FL_OK, NULL);
}

/* One part is there: the next one is asked for, in the order status, why, rounds,
   participations, clients. */
static void pages_answered(struct fl_server_http *server, struct fl_http_request *request,
                           struct fl_admin_request *asked)
{
    struct fl_server_pages *p = server->pages;
    struct fl_err err = {0};
    int rv;

    (void)request;
    if (asked->code != FL_OK) {
        pages_serve(server, asked->code, &asked->err);
        return;
    }
    rv = fl_page_snapshot_take(&p->coming, asked, &err);
    if (rv != FL_OK) {
        pages_serve(server, rv, &err);
        return;
    }
    switch (asked->verb) {
    case FL_VERB_STATUS:
        pages_ask(server, fl_admin_request_new(FL_VERB_WHY));
        break;
    case FL_VERB_WHY:
        pages_ask_rounds(server);
        break;
    case FL_VERB_ROUNDS:
        p->keeps_parts = pages_same_round(&p->shown, &p->coming);
        if (p->keeps_parts) {
            pages_ask_clients(server, "");
        } else {
            pages_ask(server, pages_parts_request(NULL, 0, 0, FL_PAGE_PARTS_NEWEST));
        }
        break;
    case FL_VERB_PARTICIPATIONS:
        pages_ask_clients(server, "");
        break;
    default:
        if (asked->page.more && p->coming.n_clients < FL_PAGE_CLIENTS_MAX) {
            pages_ask_clients(server, asked->page.last);
        } else {
            pages_complete(server);
        }
    }
}

/* Calls `render` when a copy is there that is new enough. */
static void pages_show(struct fl_server_http *server, struct fl_http_request *request,
                       void (*render)(struct fl_server_http *server,
                                      struct fl_http_request *request))
{
    struct fl_server_pages *p = server->pages;
    uint64_t now = fl_clock_ms();
    struct pages_reader *r;

    if (p->shown.asked_ms > 0 && now - p->shown.asked_ms < FL_PAGE_AGE_MS) {
        render(server, request);
        return;
    }
    r = calloc(1, sizeof(*r));
    if (r == NULL) {
        fl_http_fail_code(request, FL_ENOMEM, NULL);
        return;
    }
    *r = (struct pages_reader){.request = request, .render = render};
    fl_list_append(&p->readers, &r->link);
    fl_http_later(request, pages_gone, r);
    if (!p->asking) {
        p->asking = true;
        fl_page_snapshot_done(&p->coming);
        p->coming.asked_ms = now;
        pages_ask(server, fl_admin_request_new(FL_VERB_STATUS));
    }
}

/* --- the pages --- */

static struct fl_page_overview pages_overview(const struct fl_server_http *server)
{
    const struct fl_page_snapshot *s = &server->pages->shown;

    return (struct fl_page_overview){.status = &s->status,
                                     .why = &s->why,
                                     .rounds = s->rounds,
                                     .n_rounds = s->n_rounds,
                                     .clients = s->clients,
                                     .n_clients = s->n_clients,
                                     .events = s->events,
                                     .n_events = s->n_events,
                                     .parts = s->parts.parts,
                                     .n_parts = s->parts.n,
                                     .layers = server->pages->layers,
                                     .n_layers = server->pages->n_layers,
                                     .now_ms = fl_clock_wall_ms()};
}

/* Takes `body`. */
static void pages_answer(struct fl_server_http *server, struct fl_http_request *request, int rv,
                         struct fl_buf *body)
{
    if (rv != FL_OK) {
        fl_buf_done(body);
        fl_http_fail_code(request, rv, NULL);
        return;
    }
    fl_http_policy(request, server->pages->policy);
    fl_http_answer(request, "text/html; charset=utf-8", body, true);
}

static void pages_render_overview(struct fl_server_http *server, struct fl_http_request *request)
{
    const struct fl_page_overview overview = pages_overview(server);
    struct fl_buf body;

    fl_buf_init(&body, PAGES_BYTES_MAX);
    pages_answer(server, request, fl_page_write_overview(&overview, &body), &body);
}

static void pages_render_clients(struct fl_server_http *server, struct fl_http_request *request)
{
    const struct fl_page_overview overview = pages_overview(server);
    struct fl_page_query query = {.page = 0};
    struct fl_buf body;
    size_t i;

    for (i = 0; fl_page_query_keys[i] != NULL; i++) {
        const char *value = fl_http_query(request, fl_page_query_keys[i]);

        if (value != NULL) {
            fl_page_query_set(&query, fl_page_query_keys[i], value);
        }
    }
    fl_buf_init(&body, PAGES_BYTES_MAX);
    pages_answer(server, request, fl_page_clients(&overview, &query, &body), &body);
}

static int pages_by_name(const void *name, const void *client)
{
    return strcmp(name, ((const struct fl_wire_client *)client)->name);
}

/* --- a client, a round: their participations are asked for when the copy is there --- */

static const struct fl_wire_client *pages_find_client(const struct fl_server_http *server,
                                                      const char *name)
{
    const struct fl_page_snapshot *s = &server->pages->shown;

    return s->n_clients > 0
               ? bsearch(name, s->clients, s->n_clients, sizeof(*s->clients), pages_by_name)
               : NULL;
}

/* Index of the round; n_rounds: it is not in the copy. */
static size_t pages_find_round(const struct fl_server_http *server, uint64_t round)
{
    const struct fl_page_snapshot *s = &server->pages->shown;
    size_t i = 0;

    while (i < s->n_rounds && s->rounds[i].figures.round != round) {
        i++;
    }
    return i;
}

static void pages_detail_answer(struct fl_server_http *server, struct fl_http_request *request,
                                struct fl_admin_request *asked)
{
    const struct fl_server_pages *p = server->pages;
    const struct fl_page_snapshot *s = &p->shown;
    const struct fl_wire_list_participations *of = &asked->parts;
    struct fl_page_detail detail = {.status = &s->status,
                                    .layers = p->layers,
                                    .n_layers = p->n_layers,
                                    .now_ms = fl_clock_wall_ms()};
    size_t i = pages_find_round(server, of->round);
    struct fl_page_parts parts = {.n = 0};
    struct fl_err err = {0};
    struct fl_buf body;
    int rv;

    detail.client = of->client[0] != '\0' ? pages_find_client(server, of->client) : NULL;
    detail.round = i < s->n_rounds ? &s->rounds[i] : NULL;
    detail.next = i + 1 < s->n_rounds ? &s->rounds[i + 1] : NULL;
    if (detail.client == NULL && detail.round == NULL) {
        fl_http_fail(request, 404, "what was asked for has just been removed");
        return;
    }
    rv = fl_page_parts_take(&parts, asked, &err);
    if (rv != FL_OK) {
        fl_page_parts_done(&parts);
        fl_http_fail_code(request, rv, &err);
        return;
    }
    /* One more was asked for than is shown. */
    detail.parts = parts.parts;
    detail.n_parts = parts.n < FL_PAGE_PARTS ? parts.n : FL_PAGE_PARTS;
    detail.older = parts.n > FL_PAGE_PARTS ? parts.list[FL_PAGE_PARTS - 1].id : 0;
    fl_buf_init(&body, PAGES_BYTES_MAX);
    rv = detail.client != NULL ? fl_page_client(&detail, &body) : fl_page_round(&detail, &body);
    pages_answer(server, request, rv, &body);
    fl_page_parts_done(&parts);
}

static void pages_ask_detail(struct fl_server_http *server, struct fl_http_request *request,
                             const char *client, uint64_t round)
{
    uint64_t before = 0;

    if (fl_http_query_whole(request, "before", 1, INT64_MAX, &before)) {
        fl_server_ask(server, request,
                      pages_parts_request(client, round, before, FL_PAGE_PARTS + 1),
                      pages_detail_answer);
    }
}

static void pages_render_client(struct fl_server_http *server, struct fl_http_request *request)
{
    const struct fl_wire_client *client = pages_find_client(server, fl_http_rest(request));

    if (client == NULL) {
        fl_http_fail(request, 404, "no client '%.128s' is known: /clients lists them",
                     fl_http_rest(request));
        return;
    }
    pages_ask_detail(server, request, client->name, 0);
}

static void pages_render_round(struct fl_server_http *server, struct fl_http_request *request)
{
    uint64_t round = 0;

    if (fl_str_to_u64(fl_http_rest(request), &round) != FL_OK ||
        pages_find_round(server, round) == server->pages->shown.n_rounds)
    {
        fl_http_fail(request, 404,
                     "round '%.32s' is none of the last %d committed rounds: "
                     "/api/v1/rounds/N has all of them",
                     fl_http_rest(request), FL_PAGE_ROUNDS_MAX);
        return;
    }
    pages_ask_detail(server, request, NULL, round);
}

void fl_server_page_overview(void *ctx, struct fl_http_request *request)
{
    pages_show(ctx, request, pages_render_overview);
}

void fl_server_page_clients(void *ctx, struct fl_http_request *request)
{
    pages_show(ctx, request, pages_render_clients);
}

void fl_server_page_client(void *ctx, struct fl_http_request *request)
{
    pages_show(ctx, request, pages_render_client);
}

void fl_server_page_round(void *ctx, struct fl_http_request *request)
{
    pages_show(ctx, request, pages_render_round);
}
