/* The resident memory of a process group, from /proc. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/program/program_impl.h"

/* Reads the beginning of /proc/PID/NAME. False: the process has exited, or belongs to another
   user. */
static bool memory_read_proc(const char *pid, const char *name, char *out, size_t size)
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

/* proc(5), stat: "PID (NAME) STATE PARENT GROUP …"; a name may contain any characters. */
static bool memory_in_group(const char *pid, pid_t group)
{
    char text[512];
    const char *at;
    long parent;
    char *end;

    if (!memory_read_proc(pid, "stat", text, sizeof(text)) || (at = strrchr(text, ')')) == NULL ||
        strlen(at) < 4)
    {
        return false;
    }
    parent = strtol(at + 4, &end, 10);
    return parent >= 0 && strtol(end, NULL, 10) == (long)group;
}

/* proc(5), statm: "SIZE RESIDENT …" in pages. */
static uint64_t memory_resident(const char *pid)
{
    char text[128];
    char *at;

    if (!memory_read_proc(pid, "statm", text, sizeof(text))) {
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
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            memory_in_group(entry->d_name, group)) {
            bytes += memory_resident(entry->d_name);
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return bytes;
}
