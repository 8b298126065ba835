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

/* More than this are not looked at. */
#define INHERITED_MAX 64

/* Of the i-th: somebody listened on it. What the process was given is the process's. */
static bool taken[INHERITED_MAX];

union name {
    struct sockaddr_storage any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

static int count(void)
{
    int n = sd_listen_fds(/* unset_environment= */ 0);

    return n < INHERITED_MAX ? n : INHERITED_MAX;
}

/* Is the i-th a stream socket that listens? Then where. */
static bool name_of(int i, union name *ret)
{
    int fd = SD_LISTEN_FDS_START + i;
    socklen_t len = sizeof(*ret);

    (void)memset(ret, 0, sizeof(*ret));
    return sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) > 0 &&
           getsockname(fd, (struct sockaddr *)ret, &len) == 0;
}

static bool same(const union name *a, const union name *b)
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
    union name wanted = {.any = {0}};
    union name name;
    int n = count();
    int i;

    FL_REQUIRE(len <= sizeof(wanted));
    (void)memcpy(&wanted, address, len);
    for (i = 0; i < n; i++) {
        if (name_of(i, &name) && same(&name, &wanted)) {
            taken[i] = true;
            return fcntl(SD_LISTEN_FDS_START + i, F_DUPFD_CLOEXEC, 0);
        }
    }
    return -1;
}

static void describe(const union name *name, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (name->any.ss_family == AF_INET) {
        (void)inet_ntop(AF_INET, &name->in.sin_addr, host, sizeof(host));
        (void)snprintf(out, size, "%s:%u", host, ntohs(name->in.sin_port));
    } else if (name->any.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&name->in6.sin6_addr)) {
        (void)snprintf(out, size, "*:%u", ntohs(name->in6.sin6_port));
    } else if (name->any.ss_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &name->in6.sin6_addr, host, sizeof(host));
        (void)snprintf(out, size, "[%s]:%u", host, ntohs(name->in6.sin6_port));
    } else {
        (void)snprintf(out, size, "unix:%.*s", (int)sizeof(name->un.sun_path), name->un.sun_path);
    }
}

bool fl_inherited_unused(char *out, size_t size)
{
    union name name;
    int n = count();
    int i;

    for (i = 0; i < n; i++) {
        if (!taken[i] && name_of(i, &name)) {
            describe(&name, out, size);
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
