/* Processor time from getrusage(2) and /proc (processor_time.h). */
#include "client/daemon/processor_time.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t usage_ms(int who)
{
    struct rusage usage;

    if (getrusage(who, &usage) != 0) {
        return 0;
    }
    return 1000 * (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/*
 * The numbers of /proc/PID/stat behind the name, which may have any characters: the state is the
 * third field, the parent the fourth, utime, stime, cutime, cstime are 14 to 17 (proc(5)).
 */
static uint64_t stat_ticks(const char *text, long parent)
{
    const char *at = strrchr(text, ')');
    uint64_t ticks = 0;
    int field;

    if (at == NULL || at[1] != ' ' || at[2] == '\0') {
        return 0;
    }
    at += 3;
    for (field = 4; field <= 17; field++) {
        char *end;
        long long value = strtoll(at, &end, 10);

        if (end == at || (field == 4 && value != parent)) {
            return 0;
        }
        ticks += field >= 14 && value > 0 ? (uint64_t)value : 0;
        at = end;
    }
    return ticks;
}

static uint64_t child_ticks(const char *pid, long parent)
{
    char path[64];
    char text[1024];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0; /* It has ended, or belongs to another user. */
    }
    n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    return stat_ticks(text, parent);
}

static uint64_t running_ms(void)
{
    long rate = sysconf(_SC_CLK_TCK);
    long self = (long)getpid();
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    uint64_t ticks = 0;

    if (proc == NULL) {
        return 0;
    }
    while ((entry = readdir(proc)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            ticks += child_ticks(entry->d_name, self);
        }
    }
    (void)closedir(proc);
    return rate > 0 ? ticks * 1000 / (uint64_t)rate : 0;
}

uint64_t fl_processor_time_ms(bool children)
{
    return usage_ms(RUSAGE_SELF) + usage_ms(RUSAGE_CHILDREN) + (children ? running_ms() : 0);
}
