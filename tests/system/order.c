/* Preloaded: syncs of files and renames, in their order, as lines of the file $FL_ORDER. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void note(const char *what, const char *path)
{
    FILE *f = getenv("FL_ORDER") != NULL ? fopen(getenv("FL_ORDER"), "ae") : NULL;

    if (f != NULL) {
        (void)fprintf(f, "%s %s\n", what, path);
        (void)fclose(f);
    }
}

int fsync(int fd)
{
    static int (*real)(int);
    char link[64], path[4096];
    ssize_t n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    note("sync", path);
    if (real == NULL) {
        *(void **)(&real) = dlsym(RTLD_NEXT, "fsync");
    }
    return real(fd);
}

int rename(const char *from, const char *to)
{
    static int (*real)(const char *, const char *);

    note("rename", from);
    if (real == NULL) {
        *(void **)(&real) = dlsym(RTLD_NEXT, "rename");
    }
    return real(from, to);
}
