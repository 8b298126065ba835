#ifndef FL_SERVERD_ADMIN_ACCESS_H
#define FL_SERVERD_ADMIN_ACCESS_H

/*
 * Who may do what at the admin socket (docs/access.md). The kernel says who connected; root, the
 * server's own user and the group `admin_group` may do everything, the group `admin_viewers` may
 * look. Groups are resolved once, at the start: a running server asks no directory service.
 */

#include <sys/types.h>

#include "libfl/base/identity.h"
#include "server/daemon/serverd_conf.h"

struct fl_admin_group {
    bool is; /* there is one */
    gid_t gid;
    char name[64];
};

struct fl_admin_access {
    uid_t own;
    struct fl_admin_group admins, viewers;
    char why[256]; /* of the last one that was turned away */
};

/* FL_ECONF: a group that is configured and not there. */
FL_MUST_CHECK int fl_admin_access_init(const struct fl_serverd_conf *own,
                                       struct fl_admin_access *ret, struct fl_err *err);
/* As `who` of struct fl_grpc_listen; `ctx` is a struct fl_admin_access. */
uint32_t fl_admin_access_who(void *ctx, const struct fl_identity *identity, const char **why);
/*
 * Group and mode of the socket, which only keep others from knocking: who may do what is asked of
 * the kernel for each connection. So where the server may not give it to the group (it is not in
 * it, or its unit forbids that), or a second group may look, everybody may knock.
 */
FL_MUST_CHECK int fl_admin_access_socket(const struct fl_admin_access *access, const char *path,
                                         struct fl_err *err);

#endif
