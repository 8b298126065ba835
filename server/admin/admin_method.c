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
