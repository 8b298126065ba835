#ifndef FL_CLIENT_HTTP_CLIENT_HTTP_H
#define FL_CLIENT_HTTP_CLIENT_HTTP_H

/*
 * The HTTP port of a client (docs/http.md): the page for its owner, health, metrics and its state
 * as JSON, from a copy that the loop of the client makes for each request.
 */

#include "client/http/client_report.h"
#include "client/http/client_shown.h"
#include "libfl/net/loop.h"

struct fl_client_http;

/* Everything is borrowed and outlives the port. */
struct fl_client_http_setup {
    const struct fl_http_conf *conf;
    const char *state_dir;
    const struct fl_log *log;
    struct fl_loop *loop;
    /* Fill in a copy of the figures, and of what its owner sees, on the loop. */
    void (*fill)(void *ctx, struct fl_client_shown *ret);
    void (*describe)(void *ctx, struct fl_owner_facts *ret);
    void *ctx;
};

/*
 * FL_OK with NULL when `conf` has no address. Binds the addresses and starts the thread. As
 * fl_http_create().
 */
FL_MUST_CHECK int fl_client_http_create(const struct fl_client_http_setup *setup,
                                        struct fl_client_http **ret, struct fl_err *err);
/* Before the loop is freed. NULL is allowed. */
void fl_client_http_stop(struct fl_client_http *client);
/* After the loop was freed. NULL is allowed. */
void fl_client_http_free(struct fl_client_http *client);

/* Append a table of the paths (Markdown). */
FL_MUST_CHECK int fl_client_http_reference(struct fl_buf *out);

#endif
