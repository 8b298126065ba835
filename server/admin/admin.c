/* Gathers the methods of this room. Network loop. */

#include <stdlib.h>
#include <string.h>

#include "server/admin/admin_impl.h"

struct fl_rpc_method *fl_admin_add_method(struct fl_admin *admin, enum fl_verb verb,
                                          void (*start)(struct fl_call *call, void *ctx),
                                          struct fl_rpc_method *m)
{
    struct fl_admin_method *method = &admin->verb_methods[verb];
    const struct fl_verb_row *row = &fl_verbs[verb];
    uint32_t callers =
        FL_WHO_LOCAL | FL_WHO_ADMIN | (row->access == FL_VERB_LOOKS ? FL_WHO_VIEWER : 0);

    if (verb > 0 && strcmp(row->path, row[-1].path) == 0) {
        return m;
    }
    *method = (struct fl_admin_method){admin, verb};
    *m = (struct fl_rpc_method){row->path, callers, start, method};
    return m + 1;
}

int fl_admin_create(const struct fl_admin_setup *setup, struct fl_admin **ret)
{
    struct fl_admin *admin = calloc(1, sizeof(*admin)); /* So the methods end with a NULL path. */
    struct fl_rpc_method *m;

    if (admin == NULL) {
        return FL_ENOMEM;
    }
    admin->setup = *setup;
    (void)fl_identity_client_methods(admin, admin->client_methods);
    m = fl_admin_service_methods(admin, admin->methods);
    (void)fl_identity_admin_methods(admin, m);
    *ret = admin;
    return FL_OK;
}

void fl_admin_free(struct fl_admin *admin)
{
    free(admin);
}

const struct fl_rpc_method *fl_admin_client_methods(const struct fl_admin *admin)
{
    return admin->client_methods;
}

const struct fl_rpc_method *fl_admin_methods(const struct fl_admin *admin)
{
    return admin->methods;
}
