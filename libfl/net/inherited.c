#include "libfl/net/inherited.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "libfl/net/net_impl.h"

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>

/* Further inherited sockets are ignored. */
#define INHERITED_MAX 64

/*
 * Set for each inherited socket that fl_listen() has used. Global, because the sockets belong to
 * the process.
 */
static bool taken[INHERITED_MAX];

union socket_name {
    struct sockaddr_storage any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

static int inherited_count(void)
{
    int n = sd_listen_fds(/* unset_environment= */ 0);

    return n < INHERITED_MAX ? n : INHERITED_MAX;
}

/* Reads the address of the i-th socket; false when it is not a listening stream socket. */
static bool inherited_name(int i, union socket_name *ret)
{
    int fd = SD_LISTEN_FDS_START + i;
    socklen_t len = sizeof(*ret);

    (void)memset(ret, 0, sizeof(*ret));
    return sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) > 0 &&
           getsockname(fd, (struct sockaddr *)ret, &len) == 0;
}

static bool same_socket_name(const union socket_name *a, const union socket_name *b)
{
    if (a->any.ss_family != b->any.ss_family) {
        return false;
    }
    switch (a->any.ss_family) {
    case AF_INET:
        return a->in.sin_port == b->in.sin_port && a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
    case AF_INET6:
        return a->in6.sin6_port == b->in6.sin6_port &&
               memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr)) == 0;
    case AF_UNIX:
        return strncmp(a->un.sun_path, b->un.sun_path, sizeof(a->un.sun_path)) == 0;
    default:
        return false;
    }
}

int fl__inherited_take(const struct sockaddr *address, size_t len)
{
    union socket_name wanted = {.any = {0}};
    union socket_name name;
    int n = inherited_count();
    int i;

    FL_REQUIRE(len <= sizeof(wanted));
    (void)memcpy(&wanted, address, len);
    for (i = 0; i < n; i++) {
        if (inherited_name(i, &name) && same_socket_name(&name, &wanted)) {
            taken[i] = true;
            return fcntl(SD_LISTEN_FDS_START + i, F_DUPFD_CLOEXEC, 0);
        }
    }
    return -1;
}

bool fl_inherited_unused(char *out, size_t size)
{
    union socket_name name;
    int n = inherited_count();
    int i;

    for (i = 0; i < n; i++) {
        if (!taken[i] && inherited_name(i, &name)) {
            char host[INET6_ADDRSTRLEN] = "?";

            if (name.any.ss_family == AF_INET) {
                (void)inet_ntop(AF_INET, &name.in.sin_addr, host, sizeof(host));
                (void)snprintf(out, size, "%s:%u", host, ntohs(name.in.sin_port));
            } else if (name.any.ss_family == AF_INET6 &&
                       IN6_IS_ADDR_UNSPECIFIED(&name.in6.sin6_addr)) {
                (void)snprintf(out, size, "*:%u", ntohs(name.in6.sin6_port));
            } else if (name.any.ss_family == AF_INET6) {
                (void)inet_ntop(AF_INET6, &name.in6.sin6_addr, host, sizeof(host));
                (void)snprintf(out, size, "[%s]:%u", host, ntohs(name.in6.sin6_port));
            } else {
                (void)snprintf(out, size, "unix:%.*s", (int)sizeof(name.un.sun_path),
                               name.un.sun_path);
            }
            return true;
        }
    }
    return false;
}
#else
int fl__inherited_take(const struct sockaddr *address, size_t len)
{
    (void)address;
    (void)len;
    return -1;
}

bool fl_inherited_unused(char *out, size_t size)
{
    (void)out;
    (void)size;
    return false;
}
#endif
