/* The identity of a unix socket's peer, as the kernel recorded it when the connection was made. */
#include <stdlib.h>
#include <string.h>

#include "libfl/net/net_impl.h"

/* NGROUPS_MAX of Linux. */
#define GROUPS_MAX 65536

/* Reads all groups and keeps the first ones: with a shorter buffer the kernel returns none. */
static void read_groups(int fd, struct fl_identity *identity)
{
    socklen_t len = 0;
    gid_t *groups;
    size_t i;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == 0 || len == 0 ||
        len > GROUPS_MAX * sizeof(*groups))
    {
        return; /* The peer has no groups, or the kernel does not report them. */
    }
    groups = malloc(len);
    if (groups == NULL) {
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0) {
        for (i = 0; i < len / sizeof(*groups) && i < FL_IDENTITY_GROUPS; i++) {
            identity->groups[identity->n_groups++] = groups[i];
        }
    }
    free(groups);
}

struct fl_identity *fl__local_identity(int fd)
{
    struct fl_identity *identity = calloc(1, sizeof(*identity));
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (identity == NULL || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
        len != sizeof(peer))
    {
        free(identity);
        return NULL;
    }
    identity->kind = FL_IDENTITY_LOCAL;
    identity->uid = peer.uid;
    identity->gid = peer.gid;
    identity->pid = (uint32_t)peer.pid;
    read_groups(fd, identity);
    return identity;
}
