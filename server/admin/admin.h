#ifndef FL_SERVER_ADMIN_ADMIN_H
#define FL_SERVER_ADMIN_ADMIN_H

/*
 * Calls of operators (fl.v1.Admin), and calls about certificates (fl.v1.Identity). Those that need
 * the state of the federation are answered by the coordinator (admin_request.h), those about
 * certificates and the audit on the identity thread (identity_calls.h).
 *
 * Threading: the network loop.
 */

#include "server/network/frontend.h"

struct fl_admin;

/* What these calls ask of the daemon. */
struct fl_admin_ops {
    /* The open state is replaced at the next start: stop, and start again. */
    void (*restart)(void *ctx, const char *why);
    /* True, and a text, while the disk has not answered for so long that operators are warned. */
    bool (*stalled)(void *ctx, char *text, size_t size);
};

/* Everything is borrowed. */
struct fl_admin_setup {
    const struct fl_server_conf *conf;
    const char *state_dir;
    const struct fl_log *log;
    struct fl_loop *net;
    struct fl_auth *auth; /* NULL: no address uses TLS */
    struct fl_frontend *frontend;
    const struct fl_admin_ops *ops;
    void *ctx;
};

/* Copies `setup`. FL_ENOMEM. */
FL_MUST_CHECK int fl_admin_create(const struct fl_admin_setup *setup, struct fl_admin **ret);
/* After the loop has run out; NULL is allowed. */
void fl_admin_free(struct fl_admin *admin);
/* The methods of clients, and those of the admin addresses; each ends with a NULL path. */
const struct fl_rpc_method *fl_admin_client_methods(const struct fl_admin *admin);
const struct fl_rpc_method *fl_admin_methods(const struct fl_admin *admin);
/* The coordinator has completed the answer. */
void fl_admin_answered(struct fl_admin_request *request);

#endif
