/* What /proc says of the memory of a process group. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/program/program_impl.h"

/* The beginning of /proc/PID/NAME. False: the process is gone, or another's. */
static bool read_of(const char *pid, const char *name, char *out, size_t size)
{
    char path[64];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    n = read(fd, out, size - 1);
    (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* proc(5), stat: "PID (NAME) STATE PARENT GROUP …", and a name may hold anything. */
static bool in_group(const char *pid, pid_t group)
{
    char text[512];
    const char *at;
    long parent;
    char *end;

    if (!read_of(pid, "stat", text, sizeof(text)) || (at = strrchr(text, ')')) == NULL ||
        strlen(at) < 4)
    {
        return false;
    }
    parent = strtol(at + 4, &end, 10);
    return parent >= 0 && strtol(end, NULL, 10) == (long)group;
}

/* proc(5), statm: "SIZE RESIDENT …" in pages. */
static uint64_t resident_of(const char *pid)
{
    char text[128];
    char *at;

    if (!read_of(pid, "statm", text, sizeof(text))) {
        return 0;
    }
    (void)strtoull(text, &at, 10);
    return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t fl__program_resident(pid_t group)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    uint64_t bytes = 0;

    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && in_group(entry->d_name, group)) {
            bytes += resident_of(entry->d_name);
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return bytes;
}
