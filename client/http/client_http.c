/*
 * The routes of a client. HTTP thread, except for question_fill(), which runs on the loop of the
 * client.
 */

#include "client/http/client_http.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/json/json.h"
#include "libfl/page/page.h"

#define CLIENT_TEXT_MAX ((size_t)1 << 20)

struct fl_client_http {
    struct fl_client_http_setup setup;
    struct fl_http *http;
    char policy[FL_PAGE_POLICY];
};

/* What is copied on the loop for a request. */
struct client_copy {
    struct fl_client_shown shown;
    struct fl_owner_facts facts;
};

typedef void (*client_answer_cb)(struct fl_client_http *client, struct fl_http_request *request,
                                 struct client_copy *copy);

/* A request between the HTTP thread and the loop. */
struct client_question {
    struct fl_client_http *client;
    struct fl_http_request *request; /* NULL: it was answered in another way. HTTP thread */
    client_answer_cb answer;
    struct client_copy copy;
};

static void client_question_answered(void *arg)
{
    struct client_question *q = arg;

    if (q->request != NULL) {
        q->copy.shown.info[0] = PACKAGE_VERSION;
        q->copy.shown.info[1] = q->copy.shown.name;
        q->copy.shown.log_left_out = fl_log_n_left_out(q->client->setup.log);
        q->copy.shown.http = fl_http_counts(q->client->http);
        q->answer(q->client, q->request, &q->copy);
    }
    free(q);
}

static void client_question_fill(void *arg)
{
    struct client_question *q = arg;

    q->client->setup.fill(q->client->setup.ctx, &q->copy.shown);
    q->client->setup.describe(q->client->setup.ctx, &q->copy.facts);
    if (!fl_http_post(q->client->http, client_question_answered, q)) {
        free(q); /* The port has stopped; its request is gone. */
    }
}

static void client_question_gone(void *ctx)
{
    struct client_question *q = ctx;

    q->request = NULL;
}

static void client_ask(struct fl_client_http *client, struct fl_http_request *request,
                       client_answer_cb answer)
{
    struct client_question *q = calloc(1, sizeof(*q));

    if (q == NULL) {
        fl_http_fail_code(request, FL_ENOMEM, NULL);
        return;
    }
    *q = (struct client_question){.client = client, .request = request, .answer = answer};
    if (fl_loop_post(client->setup.loop, client_question_fill, q) != FL_OK) {
        free(q);
        fl_http_fail_code(request, FL_ENOMEM, NULL);
        return;
    }
    fl_http_later(request, client_question_gone, q);
}

/* Takes `body`; `rv`: whether it could be made. */
static void client_finish(struct fl_http_request *request, int rv, const char *type,
                          struct fl_buf *body, bool tag)
{
    if (rv != FL_OK) {
        fl_buf_done(body);
        fl_http_fail_code(request, rv, NULL);
        return;
    }
    fl_http_answer(request, type, body, tag);
}

static void client_text(struct fl_http_request *request, const char *text)
{
    struct fl_buf body;

    fl_buf_init(&body, CLIENT_TEXT_MAX);
    client_finish(request, fl_buf_add(&body, text, strlen(text)), "text/plain; charset=utf-8",
                  &body, false);
}

static void client_healthz(void *ctx, struct fl_http_request *request)
{
    (void)ctx;
    client_text(request, "ok\n");
}

static void client_ready(struct fl_client_http *client, struct fl_http_request *request,
                         struct client_copy *copy)
{
    (void)client;
    if (copy->shown.connected > 0) {
        client_text(request, "ready\n");
    } else {
        fl_http_fail(request, 503, "not connected to the server: see the log");
    }
}

static void client_readyz(void *ctx, struct fl_http_request *request)
{
    client_ask(ctx, request, client_ready);
}

static void client_metrics_answer(struct fl_client_http *client, struct fl_http_request *request,
                                  struct client_copy *copy)
{
    enum fl_metrics_format format = fl_metrics_format_of(fl_http_header(request, "Accept"));
    struct fl_process_figures process;
    struct fl_buf body;

    fl_process_figures_read(&process);
    if (fl_fs_space(client->setup.state_dir, &copy->shown.disk) != FL_OK) {
        copy->shown.disk = (struct fl_fs_room){0};
    }
    fl_buf_init(&body, CLIENT_TEXT_MAX);
    client_finish(request, fl_client_metrics_add(&body, format, &copy->shown, &process),
                  fl_metrics_types[format], &body, false);
}

static void client_metrics(void *ctx, struct fl_http_request *request)
{
    client_ask(ctx, request, client_metrics_answer);
}

static void client_status_answer(struct fl_client_http *client, struct fl_http_request *request,
                                 struct client_copy *copy)
{
    const struct fl_client_shown *shown = &copy->shown;
    json_t *o = json_object();
    struct fl_buf body;
    int i;

    (void)client;
    (void)json_object_set_new(o, "name", json_string(shown->info[1]));
    (void)json_object_set_new(o, "version", json_string(shown->info[0]));
    for (i = 0; i < FL_SESSION_COUNT; i++) {
        if (shown->state[i] > 0) {
            (void)json_object_set_new(o, "state",
                                      json_string(fl_session_state_name((enum fl_session_state)i)));
        }
    }
    (void)json_object_set_new(o, "connected", json_boolean(shown->connected > 0));
    (void)json_object_set_new(o, "round", fl_json_whole(shown->round));
    (void)json_object_set_new(o, "samples", fl_json_whole(shown->samples));
    (void)json_object_set_new(o, "tasks", fl_json_whole(shown->tasks));
    (void)json_object_set_new(o, "accepted", fl_json_whole(shown->verdicts[FL_CLIENT_ACCEPTED]));
    (void)json_object_set_new(o, "rejected", fl_json_whole(shown->verdicts[FL_CLIENT_REJECTED]));
    fl_buf_init(&body, CLIENT_TEXT_MAX);
    client_finish(request, fl_json_add_document(&body, o), "application/json", &body, true);
}

static void client_status(void *ctx, struct fl_http_request *request)
{
    client_ask(ctx, request, client_status_answer);
}

static void client_tasks_answer(struct fl_client_http *client, struct fl_http_request *request,
                                struct client_copy *copy)
{
    struct fl_buf body;

    (void)client;
    fl_buf_init(&body, CLIENT_TEXT_MAX);
    client_finish(request, fl_owner_json(&copy->facts, &body), "application/json", &body, true);
}

static void client_tasks(void *ctx, struct fl_http_request *request)
{
    client_ask(ctx, request, client_tasks_answer);
}

static void client_page_answer(struct fl_client_http *client, struct fl_http_request *request,
                               struct client_copy *copy)
{
    struct fl_buf body;

    fl_buf_init(&body, CLIENT_TEXT_MAX);
    fl_http_policy(request, client->policy);
    client_finish(request, fl_owner_page(&copy->facts, &body), "text/html; charset=utf-8", &body,
                  true);
}

static void client_page(void *ctx, struct fl_http_request *request)
{
    client_ask(ctx, request, client_page_answer);
}

static const struct fl_http_route client_routes[] = {
    {.path = "/", .handle = client_page, .help = "[page for the owner](#the-page-of-a-client)"},
    {.path = "/healthz",
     .handle = client_healthz,
     .open = true,
     .help = "200: the process answers"},
    {.path = "/readyz",
     .handle = client_readyz,
     .open = true,
     .help = "200: the client is connected; else 503 with the reason"},
    {.path = "/metrics", .handle = client_metrics, .help = "[metrics](#metrics)"},
    {.path = "/api/v1/status", .handle = client_status, .help = "[status](#status)"},
    {.path = "/api/v1/tasks", .handle = client_tasks, .help = "[tasks](#tasks)"},
    {.path = NULL}};

int fl_client_http_reference(struct fl_buf *out)
{
    return fl_http_reference(out, client_routes);
}

int fl_client_http_create(const struct fl_client_http_setup *setup, struct fl_client_http **ret,
                          struct fl_err *err)
{
    struct fl_client_http *client;
    struct fl_http_setup http = {
        .conf = setup->conf, .routes = client_routes, .log = setup->log, .component = "client"};
    int rv;

    *ret = NULL;
    if (setup->conf->listen.n == 0) {
        return FL_OK;
    }
    client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return FL_ENOMEM;
    }
    client->setup = *setup;
    (void)fl_page_policy(client->policy);
    http.ctx = client;
    fl_http_limits_default(&http.limits);
    rv = fl_http_create(&http, &client->http, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_http_start(client->http, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = client;
    return FL_OK;
fail:
    fl_client_http_free(client);
    return rv;
}

void fl_client_http_stop(struct fl_client_http *client)
{
    if (client != NULL) {
        fl_http_stop(client->http);
    }
}

void fl_client_http_free(struct fl_client_http *client)
{
    if (client != NULL) {
        fl_http_free(client->http);
        free(client);
    }
}
