#include "server/auth/admin_access.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/rpc/call.h"

/* The group of administrators when `admin_group` is not set and this group exists. */
#define DEFAULT_GROUP "fl-admin"

/* FL_ENOENT: no such group. Other codes come with a text. */
static int find_group(const char *name, struct fl_admin_group *ret, struct fl_err *err)
{
    size_t size = 1024;
    struct group entry;
    struct group *found = NULL;
    char *buf = NULL;
    int code;

    do { /* The entry includes the list of members and may be long. */
        char *grown = realloc(buf, size *= 2);

        if (grown == NULL) {
            free(buf);
            return FL_ENOMEM;
        }
        buf = grown;
        code = getgrnam_r(name, &entry, buf, size, &found);
    } while (code == ERANGE && size < (16u << 20));
    if (found != NULL) {
        ret->is = true;
        ret->gid = entry.gr_gid;
        (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    }
    free(buf);
    if (found != NULL) {
        return FL_OK;
    }
    /* POSIX allows any of these codes for a name that does not exist. */
    return code == 0 || code == ENOENT || code == ESRCH || code == EBADF || code == EPERM
               ? FL_ENOENT
               : fl_err_set(err, fl_err_from_errno(code), "group '%s': %s", name, strerror(code));
}

static int configured_group(const struct fl_server_conf *conf, const char *const *key,
                            struct fl_admin_group *ret, struct fl_err *err)
{
    int rv;

    if ((*key)[0] == '\0') {
        return FL_OK;
    }
    rv = strlen(*key) < sizeof(ret->name) ? find_group(*key, ret, err) : FL_ENOENT;
    if (rv == FL_ENOENT) {
        return fl_conf_error(fl_conf_field(conf->file, key), err,
                             "there is no group '%s' on this machine: create it (groupadd "
                             "--system), or name another",
                             *key);
    }
    return rv;
}

int fl_admin_access_init(const struct fl_server_conf *conf, struct fl_admin_access *ret,
                         struct fl_err *err)
{
    const struct fl_server_main *m = conf->main;
    int rv;

    *ret = (struct fl_admin_access){.own = geteuid()};
    rv = configured_group(conf, &m->admin_viewers, &ret->viewers, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (m->admin_group[0] != '\0') {
        return configured_group(conf, &m->admin_group, &ret->admins, err);
    }
    rv = find_group(DEFAULT_GROUP, &ret->admins, err);
    return rv == FL_ENOENT ? FL_OK : rv;
}

static bool is_in(const struct fl_identity *who, const struct fl_admin_group *group)
{
    size_t i;

    if (!group->is || who->gid == group->gid) {
        return group->is;
    }
    for (i = 0; i < who->n_groups; i++) {
        if (who->groups[i] == group->gid) {
            return true;
        }
    }
    return false;
}

uint32_t fl_admin_access_who(void *ctx, const struct fl_identity *identity, const char **why)
{
    struct fl_admin_access *access = ctx;

    *why = access->why;
    if (identity == NULL || identity->kind != FL_IDENTITY_LOCAL) {
        (void)snprintf(access->why, sizeof(access->why),
                       "cannot identify the peer: the kernel gave no user id for this connection");
        return 0;
    }
    if (identity->uid == 0 || identity->uid == access->own || is_in(identity, &access->admins)) {
        *why = NULL;
        return FL_WHO_LOCAL;
    }
    if (is_in(identity, &access->viewers)) {
        *why = NULL;
        return FL_WHO_VIEWER;
    }
    (void)snprintf(access->why, sizeof(access->why),
                   "permission denied for user %u: only root, the server's own user (%u)%s%s%s may "
                   "use this socket",
                   identity->uid, (unsigned)access->own,
                   access->admins.is ? " and members of the group '" : "",
                   access->admins.is ? access->admins.name : "", access->admins.is ? "'" : "");
    return 0;
}

int fl_admin_access_socket(const struct fl_admin_access *access, const char *path,
                           struct fl_err *err)
{
    mode_t mode = 0600;

    if (access->admins.is) {
        mode = chown(path, (uid_t)-1, access->admins.gid) == 0 ? 0660 : 0666;
    }
    if (access->viewers.is) { /* The socket file has only one group. */
        mode = 0666;
    }
    if (chmod(path, mode) != 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot set the mode of '%s': %s", path,
                          strerror(errno));
    }
    return FL_OK;
}
