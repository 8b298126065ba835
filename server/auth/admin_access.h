#ifndef FL_SERVER_AUTH_ADMIN_ACCESS_H
#define FL_SERVER_AUTH_ADMIN_ACCESS_H

/*
 * Authorization at the admin socket (docs/security.md). The kernel reports the user of each
 * connection: root, the server's own user and the group `admin_group` may do everything, the group
 * `admin_viewers` may read. Groups are resolved once, at the start: a running server makes no
 * directory lookups.
 */

#include <sys/types.h>

#include "libfl/base/identity.h"
#include "server/conf/server_conf.h"

struct fl_admin_group {
    bool is; /* false: no such group */
    gid_t gid;
    char name[64];
};

struct fl_admin_access {
    uid_t own;
    struct fl_admin_group admins, viewers;
    char why[256]; /* why the last peer was refused */
};

/* FL_ECONF: a configured group does not exist. */
FL_MUST_CHECK int fl_admin_access_init(const struct fl_server_conf *conf,
                                       struct fl_admin_access *ret, struct fl_err *err);
/* As `who` of struct fl_grpc_listen; `ctx` is a struct fl_admin_access. */
uint32_t fl_admin_access_who(void *ctx, const struct fl_identity *identity, const char **why);
/*
 * Set the group and mode of the socket. They only restrict who can connect; permissions are checked
 * per connection with the peer's credentials. So the socket is open to everyone (0666) where the
 * server may not change its group (the server is not a member, or its unit forbids chown), and
 * where a second group has read access.
 */
FL_MUST_CHECK int fl_admin_access_socket(const struct fl_admin_access *access, const char *path,
                                         struct fl_err *err);

#endif
