#ifndef FL_SERVER_ADMIN_ADMIN_IMPL_H
#define FL_SERVER_ADMIN_ADMIN_IMPL_H

/* Private to the files of this room. */

#include "libfl/wire/verbs.h"
#include "server/admin/admin.h"

struct fl_identity_rpc;

/* The context that the calls of a verb start with. */
struct fl_admin_method {
    struct fl_admin *admin;
    enum fl_verb verb;
};

/* That of Join and Renew. */
struct fl_identity_method {
    struct fl_admin *admin;
    const struct fl_identity_rpc *kind;
};

struct fl_admin {
    struct fl_admin_setup setup;
    struct fl_rpc_method methods[FL_VERB_N + 1], client_methods[8];
    struct fl_admin_method verb_methods[FL_VERB_N];
    struct fl_identity_method identity_methods[2];
    size_t n_unauthenticated; /* requests for certificates submitted to the identity thread */
};

/* Append the method of a verb, unless it is that of the verb before: its position, or the next. */
struct fl_rpc_method *fl_admin_add_method(struct fl_admin *admin, enum fl_verb verb,
                                          void (*start)(struct fl_call *call, void *ctx),
                                          struct fl_rpc_method *m);
/* Each appends its methods and returns the position after the last one. */
/* admin_service.c */
struct fl_rpc_method *fl_admin_service_methods(struct fl_admin *admin, struct fl_rpc_method *m);
/* identity_calls.c */
struct fl_rpc_method *fl_identity_client_methods(struct fl_admin *admin, struct fl_rpc_method *m);
struct fl_rpc_method *fl_identity_admin_methods(struct fl_admin *admin, struct fl_rpc_method *m);

#endif
