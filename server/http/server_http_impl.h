#ifndef FL_SERVER_HTTP_SERVER_HTTP_IMPL_H
#define FL_SERVER_HTTP_SERVER_HTTP_IMPL_H

/* Private to the files of this room. */

#include "server/http/coord_figures.h"
#include "server/http/server_http.h"

/* Requests that the coordinator has not answered yet, of each kind: pages of documents, and the
   figures that scrapes and probes ask for, which pages must not keep out. */
#define FL_SERVER_ASKED_MAX 16

struct fl_server_pages;

struct fl_server_http {
    struct fl_server_http_setup setup;
    struct fl_http *http;
    unsigned n_asked, n_figures;   /* HTTP thread */
    struct fl_server_pages *pages; /* likewise */
};

extern const struct fl_http_route fl_server_routes[];

/*
 * The coordinator has answered: `asked->code`, `asked->replies`, `asked->figures`. Answers
 * `request`; borrows `asked`. HTTP thread.
 */
typedef void (*fl_server_answer_cb)(struct fl_server_http *server, struct fl_http_request *request,
                                    struct fl_admin_request *asked);
/*
 * Post `ask` to the coordinator; takes it, with its `figures`. NULL: out of memory, which is
 * answered. An error of the coordinator is answered here, too. NULL `request`: the port asks for
 * itself, `ask` is not NULL, at most one is open, and `answer` gets errors, too (asked->code).
 */
void fl_server_ask(struct fl_server_http *server, struct fl_http_request *request,
                   struct fl_admin_request *ask, fl_server_answer_cb answer);
/* A request for fl_server_ask() that asks for the figures; NULL: out of memory. */
struct fl_admin_request *fl_server_ask_figures(void);

/* server_pages.c: what the status pages share, and the handlers of their routes. Borrows
   `layout`. NULL: out of memory. */
struct fl_server_pages *fl_server_pages_new(const struct fl_layout *layout);
void fl_server_pages_free(struct fl_server_pages *pages); /* NULL is allowed */
void fl_server_page_overview(void *ctx, struct fl_http_request *request);
void fl_server_page_clients(void *ctx, struct fl_http_request *request);
void fl_server_page_client(void *ctx, struct fl_http_request *request);
void fl_server_page_round(void *ctx, struct fl_http_request *request);

#endif
