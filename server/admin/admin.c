/* Gathers the methods of this room. Network loop. */

#include <stdlib.h>

#include "server/admin/admin_impl.h"

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
