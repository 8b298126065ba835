#include "bench/raw.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/peers.h"
#include "libfl/base/clock.h"

#define WRITE_BYTES ((size_t)256 * 1024)

FL_NORETURN static void drain(int listen_fd)
{
    static char buf[WRITE_BYTES];
    int fd = accept(listen_fd, NULL, NULL);
    ssize_t n;

    if (fd < 0) {
        die("accept");
    }
    while ((n = read(fd, buf, sizeof(buf))) > 0) {
    }
    /* Tells the writer that all has arrived. */
    (void)shutdown(fd, SHUT_WR);
    _exit(n == 0 ? 0 : 1);
}

static void write_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n <= 0) {
            die("write");
        }
        data += n;
        len -= (size_t)n;
    }
}

static void write_bytes(int fd, const uint8_t *data, size_t len, uint64_t bytes)
{
    size_t at = 0;

    while (bytes > 0) {
        size_t n = len - at < WRITE_BYTES ? len - at : WRITE_BYTES;

        n = bytes < n ? (size_t)bytes : n;
        write_all(fd, data + at, n);
        at = (at + n) % len;
        bytes -= n;
    }
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* Of this process and its children that ended. */
static double cpu_seconds(void)
{
    struct rusage own;
    struct rusage children;

    (void)getrusage(RUSAGE_SELF, &own);
    (void)getrusage(RUSAGE_CHILDREN, &children);
    return seconds(&own.ru_utime) + seconds(&own.ru_stime) + seconds(&children.ru_utime) +
           seconds(&children.ru_stime);
}

struct raw_cost raw_tcp(const uint8_t *data, size_t len, uint64_t bytes)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t addr_len = sizeof(addr);
    int listen_fd = socket(AF_INET, SOCK_STREAM, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct raw_cost cost;
    uint64_t begin_ns;
    char byte;
    pid_t pid;

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listen_fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 || listen(listen_fd, 1) != 0 ||
        getsockname(listen_fd, (struct sockaddr *)&addr, &addr_len) != 0)
    {
        die("raw socket");
    }
    pid = fork();
    if (pid == 0) {
        (void)close(fd);
        drain(listen_fd);
    }
    if (pid < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
        die("raw connection");
    }
    cost.cpu_s = cpu_seconds();
    begin_ns = fl_clock_ns();
    write_bytes(fd, data, len, bytes);
    (void)shutdown(fd, SHUT_WR);
    while (read(fd, &byte, 1) > 0) {
    }
    cost.seconds = (double)(fl_clock_ns() - begin_ns) / 1e9;
    (void)close(fd);
    (void)close(listen_fd);
    (void)waitpid(pid, NULL, 0);
    cost.cpu_s = cpu_seconds() - cost.cpu_s;
    return cost;
}
