#ifndef FL_SERVER_ADMIN_ADMIN_IMPL_H
#define FL_SERVER_ADMIN_ADMIN_IMPL_H

/* Private to the files of this room. */

#include "server/admin/admin.h"

struct fl_identity_rpc;

/* A method of identity_calls.c, the context that its calls start with. */
struct fl_identity_method {
    struct fl_admin *admin;
    const struct fl_identity_rpc *kind;
};

struct fl_admin {
    struct fl_admin_setup setup;
    struct fl_rpc_method methods[40], client_methods[8];
    struct fl_identity_method identity_methods[16];
    size_t n_unauthenticated; /* requests for certificates submitted to the identity thread */
};

/* Each appends its methods and returns the position after the last one. */
/* admin_service.c */
struct fl_rpc_method *fl_admin_service_methods(struct fl_admin *admin, struct fl_rpc_method *m);
/* identity_calls.c */
struct fl_rpc_method *fl_identity_client_methods(struct fl_admin *admin, struct fl_rpc_method *m);
struct fl_rpc_method *fl_identity_admin_methods(struct fl_admin *admin, struct fl_rpc_method *m);

#endif
