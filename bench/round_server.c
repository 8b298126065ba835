#include "bench/round_server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/base/str.h"

/* Start the server; the first line it prints is "listening ADDRESS". */
pid_t round_server_start(const char *program, const char *config, char *address, size_t size)
{
    char line[256] = "";
    FILE *out;
    int fds[2];
    pid_t pid;

    if (pipe(fds) != 0 || (pid = fork()) < 0) {
        return -1;
    }
    if (pid == 0) {
        (void)dup2(fds[1], STDOUT_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        (void)execl(program, program, config, (char *)NULL);
        perror(program);
        _exit(127);
    }
    (void)close(fds[1]);
    out = fdopen(fds[0], "r");
    while (out != NULL && fgets(line, sizeof(line), out) != NULL) {
        if (strncmp(line, "listening ", 10) == 0) {
            line[strcspn(line, "\n")] = '\0';
            if (fl_str_copy(address, size, line + 10) == FL_OK) {
                return pid; /* `out` stays open: the server may print more. */
            }
        }
    }
    return -1;
}

double round_server_peak_mb(pid_t pid)
{
    char path[64];
    char line[256];
    long kb = -1;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kb = strtol(line + 6, NULL, 10);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return (double)kb * 1024.0 / 1e6;
}

double round_server_cpu_s(pid_t pid)
{
    char path[64];
    char line[1024] = "";
    char *p;
    unsigned long ticks = 0;
    int field;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    f = fopen(path, "r");
    if (f == NULL) {
        return -1.0;
    }
    if (fgets(line, sizeof(line), f) == NULL) {
        line[0] = '\0';
    }
    (void)fclose(f);
    p = strrchr(line, ')'); /* fields from the third on */
    for (field = 3; p != NULL && field <= 15; field++) {
        p = strchr(p + 1, ' ');
        if (p != NULL && field >= 14) { /* utime, stime */
            ticks += strtoul(p + 1, NULL, 10);
        }
    }
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

void round_server_stop(pid_t pid)
{
    (void)kill(pid, SIGTERM);
    (void)waitpid(pid, NULL, 0);
}
