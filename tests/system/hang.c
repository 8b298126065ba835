/*
 * Preloaded into a daemon: while the file $FL_HANG exists, writes and syncs of files whose path
 * contains the text in it do not return, like those of a disk that has gone away.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int hangs(int fd)
{
    const char *file = getenv("FL_HANG");
    char link[64], path[4096], part[256];
    ssize_t n;
    int text;

    if (file == NULL || (text = open(file, O_RDONLY | O_CLOEXEC)) < 0) {
        return 0;
    }
    n = read(text, part, sizeof(part) - 1);
    (void)close(text);
    part[n > 0 ? n : 0] = '\0';
    part[strcspn(part, "\n")] = '\0';
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    return part[0] != '\0' && strstr(path, part) != NULL;
}

static void wait_for_disk(int fd)
{
    const struct timespec pause = {.tv_nsec = 20000000};

    while (hangs(fd)) {
        (void)nanosleep(&pause, NULL);
    }
}

#define REAL(type, name, ...)                       \
    static type (*real)(__VA_ARGS__);               \
    wait_for_disk(fd);                              \
    if (real == NULL) {                             \
        *(void **)(&real) = dlsym(RTLD_NEXT, name); \
    }

ssize_t write(int fd, const void *data, size_t n)
{
    REAL(ssize_t, "write", int, const void *, size_t)
    return real(fd, data, n);
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
    REAL(ssize_t, "writev", int, const struct iovec *, int)
    return real(fd, v, n);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t)
    return real(fd, data, n, at);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t)
    return real(fd, data, n, at);
}

int fsync(int fd)
{
    REAL(int, "fsync", int)
    return real(fd);
}

int fdatasync(int fd)
{
    REAL(int, "fdatasync", int)
    return real(fd);
}
