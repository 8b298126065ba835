#ifndef FL_SERVER_HTTP_SERVER_HTTP_H
#define FL_SERVER_HTTP_SERVER_HTTP_H

/*
 * The HTTP port of a server (docs/http.md): its routes, and how they get what the coordinator
 * knows: a request is posted to the coordinator, which answers it on its thread between two steps,
 * and the answer comes back to the HTTP thread. No loop waits for another one.
 *
 * A new route is a row of the table in server_routes.c. What it asks of the coordinator is a
 * request of fl_server_ask(); the answer arrives in a function of its own, which ends with
 * fl_http_answer().
 */

#include "libfl/http/http.h"
#include "libfl/net/loop.h"
#include "server/admin/admin_request.h"
#include "server/auth/auth.h"
#include "server/conf/server_conf.h"
#include "server/http/event_log.h"
#include "server/network/download_counts.h"

struct fl_server_http;

/* Everything is borrowed and outlives the port. */
struct fl_server_http_setup {
    const struct fl_server_conf *conf;
    const char *state_dir;
    const struct fl_log *log;
    struct fl_worker_thread *io, *db, *work;
    struct fl_auth *auth; /* NULL: no address uses TLS */
    struct fl_event_log *events;
    struct fl_download_counts *downloads;
    /* Post to the coordinator, which calls request->done; takes `request`. HTTP thread. */
    void (*ask)(void *ctx, struct fl_admin_request *request);
    void *ctx;
};

/* Bind the addresses of `http.listen`, which has some. As fl_http_create(). Copies `setup`. */
FL_MUST_CHECK int fl_server_http_create(const struct fl_server_http_setup *setup,
                                        struct fl_server_http **ret, struct fl_err *err);
FL_MUST_CHECK int fl_server_http_start(struct fl_server_http *server, struct fl_err *err);
/* Before the coordinator ends: nothing is asked any more. NULL is allowed. */
void fl_server_http_stop(struct fl_server_http *server);
/* After the coordinator's loop has run out. NULL is allowed. */
void fl_server_http_free(struct fl_server_http *server);

/* Append a table of the paths (Markdown). */
FL_MUST_CHECK int fl_server_http_reference(struct fl_buf *out);

#endif
