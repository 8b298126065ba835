/*
 * The HTTP port of a server: what it asks the coordinator, and the end of it. HTTP thread, except
 * for server_done(), which the coordinator calls. Routes are in server_routes.c.
 */

#include "server/http/server_http.h"

#include <stdlib.h>

#include "server/http/server_http_impl.h"

/* A request between the HTTP thread and the coordinator. */
struct question {
    struct fl_server_http *server;
    struct fl_http_request *request; /* NULL: it was answered in another way. HTTP thread */
    bool own;                        /* of the port itself, for no request */
    struct fl_admin_request *ask;
    fl_server_answer_cb answer;
};

static void question_free(struct question *q)
{
    if (q->ask != NULL) {
        free(q->ask->figures);
        fl_admin_request_free(q->ask);
    }
    free(q);
}

/* How many of its kind are open. */
static unsigned *question_count(const struct question *q)
{
    return q->ask->figures != NULL ? &q->server->n_figures : &q->server->n_asked;
}

static void question_answered(void *arg)
{
    struct question *q = arg;

    *question_count(q) -= 1;
    if (q->own) {
        q->answer(q->server, NULL, q->ask);
    } else if (q->request != NULL) {
        if (q->ask->code != FL_OK) {
            fl_http_fail_code(q->request, q->ask->code, &q->ask->err);
        } else {
            q->answer(q->server, q->request, q->ask);
        }
    }
    question_free(q);
}

static void question_dropped(void *ctx)
{
    struct question *q = ctx;

    q->request = NULL;
}

static void server_done(struct fl_admin_request *ask)
{
    struct question *q = ask->done_ctx;

    if (!fl_http_post(q->server->http, question_answered, q)) {
        question_free(q); /* The port has stopped; its request is gone. */
    }
}

struct fl_admin_request *fl_server_ask_figures(void)
{
    struct fl_admin_request *ask = fl_admin_request_new(FL_VERB_STATUS);

    if (ask != NULL) {
        ask->figures = calloc(1, sizeof(*ask->figures));
        if (ask->figures == NULL) {
            fl_admin_request_free(ask);
            return NULL;
        }
    }
    return ask;
}

/* `ask` failed with its code before it was asked. */
static void server_unasked(struct fl_server_http *server, struct fl_http_request *request,
                           struct fl_admin_request *ask, fl_server_answer_cb answer)
{
    if (request == NULL) {
        answer(server, NULL, ask);
    } else {
        fl_http_fail_code(request, ask->code, &ask->err);
    }
    free(ask->figures);
    fl_admin_request_free(ask);
}

void fl_server_ask(struct fl_server_http *server, struct fl_http_request *request,
                   struct fl_admin_request *ask, fl_server_answer_cb answer)
{
    struct question *q = calloc(1, sizeof(*q));

    if (q == NULL) {
        if (ask != NULL) {
            ask->code = FL_ENOMEM;
            server_unasked(server, request, ask, answer);
        } else {
            fl_http_fail_code(request, FL_ENOMEM, NULL);
        }
        return;
    }
    *q = (struct question){
        .server = server, .request = request, .own = request == NULL, .ask = ask, .answer = answer};
    if (ask == NULL) {
        fl_http_fail_code(request, FL_ENOMEM, NULL);
        question_free(q);
        return;
    }
    if (!q->own && *question_count(q) >= FL_SERVER_ASKED_MAX) {
        fl_http_fail(request, 503, "the coordinator has not answered %u requests yet: retry later",
                     *question_count(q));
        question_free(q);
        return;
    }
    ask->done = server_done;
    ask->done_ctx = q;
    *question_count(q) += 1;
    if (!q->own) {
        fl_http_later(request, question_dropped, q);
    }
    server->setup.ask(server->setup.ctx, ask);
}

static void server_event_added(void *ctx)
{
    const struct fl_server_http *server = ctx;

    fl_http_wake(server->http);
}

int fl_server_http_create(const struct fl_server_http_setup *setup, struct fl_server_http **ret,
                          struct fl_err *err)
{
    struct fl_server_http *server = calloc(1, sizeof(*server));
    struct fl_http_setup http = {.conf = setup->conf->http,
                                 .routes = fl_server_routes,
                                 .ctx = server,
                                 .log = setup->log,
                                 .component = "server"};
    int rv;

    if (server == NULL) {
        return FL_ENOMEM;
    }
    server->setup = *setup;
    server->pages = fl_server_pages_new(setup->conf->layout);
    if (server->pages == NULL) {
        free(server);
        return FL_ENOMEM;
    }
    fl_http_limits_default(&http.limits);
    rv = fl_http_create(&http, &server->http, err);
    if (rv != FL_OK) {
        fl_server_pages_free(server->pages);
        free(server);
        return rv;
    }
    fl_event_log_watch(setup->events, server_event_added, server);
    *ret = server;
    return FL_OK;
}

int fl_server_http_start(struct fl_server_http *server, struct fl_err *err)
{
    return fl_http_start(server->http, err);
}

void fl_server_http_stop(struct fl_server_http *server)
{
    if (server != NULL) {
        fl_http_stop(server->http);
    }
}

void fl_server_http_free(struct fl_server_http *server)
{
    if (server != NULL) {
        fl_http_free(server->http);
        fl_server_pages_free(server->pages);
        free(server);
    }
}
