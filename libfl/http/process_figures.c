/* Reads /proc/self: a few system calls, no disk. */

#include "libfl/http/process_figures.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libfl/base/clock.h"

const struct fl_metric fl_process_metrics[] = {
    {FL_METRIC(struct fl_process_figures, GAUGE, U64, resident_bytes),
     .name = "process_resident_memory_bytes", .help = "Memory of the process in RAM"},
    {FL_METRIC(struct fl_process_figures, GAUGE, U64, virtual_bytes),
     .name = "process_virtual_memory_bytes", .help = "Address space of the process"},
    {FL_METRIC(struct fl_process_figures, GAUGE, U64, descriptors), .name = "process_open_fds",
     .help = "Open file descriptors"},
    {FL_METRIC(struct fl_process_figures, GAUGE, U64, descriptors_max), .name = "process_max_fds",
     .help = "Limit of open file descriptors"},
    {FL_METRIC(struct fl_process_figures, GAUGE, U64, threads), .name = "process_threads",
     .help = "Threads of the process"},
    {FL_METRIC(struct fl_process_figures, COUNTER, US, cpu_us), .name = "process_cpu_seconds",
     .help = "Processor time, user and system"},
    {FL_METRIC(struct fl_process_figures, GAUGE, MS, started_ms),
     .name = "process_start_timestamp_seconds", .help = "When the process was started"},
    FL_METRIC_END};

/* Descriptors that are tried at once. */
#define POLL_DESCRIPTORS 1024

/*
 * The size of /proc/self/fd is their number from Linux 6.2 on. Before, to list it takes 10 ms for
 * 10 000 of them: poll() marks those that are not open, in a tenth of that.
 */
static uint64_t count_descriptors(uint64_t max)
{
    struct pollfd fds[POLL_DESCRIPTORS];
    struct stat st;
    uint64_t from;
    uint64_t n = 0;

    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0) {
        return (uint64_t)st.st_size;
    }
    for (from = 0; from < max; from += POLL_DESCRIPTORS) {
        nfds_t tried = max - from < POLL_DESCRIPTORS ? (nfds_t)(max - from) : POLL_DESCRIPTORS;
        uint64_t found = 0;
        nfds_t i;

        for (i = 0; i < tried; i++) {
            fds[i] = (struct pollfd){.fd = (int)(from + i)};
        }
        if (poll(fds, tried, 0) < 0) {
            return n;
        }
        for (i = 0; i < tried; i++) {
            found += (fds[i].revents & POLLNVAL) == 0;
        }
        if (found == 0) {
            break; /* They are given out from below. */
        }
        n += found;
    }
    return n;
}

/* The fields of /proc/self/stat behind the name, the first is the state. */
enum { STAT_THREADS = 17, STAT_START = 19, STAT_VIRTUAL = 20, STAT_RESIDENT = 21, STAT_N };

static void read_stat(struct fl_process_figures *f)
{
    uint64_t fields[STAT_N] = {0};
    uint64_t now_ms = fl_clock_wall_ms();
    struct timespec up = {0};
    char text[1024];
    FILE *in = fopen("/proc/self/stat", "re");
    long ticks = sysconf(_SC_CLK_TCK);
    size_t n = 0;
    size_t i = 0;
    char *at;

    if (in != NULL) {
        n = fread(text, 1, sizeof(text) - 1, in);
        (void)fclose(in);
    }
    text[n] = '\0';
    at = strrchr(text, ')');
    while (at != NULL && i < STAT_N) {
        at = strchr(at, ' ');
        if (at != NULL) {
            fields[i++] = strtoull(++at, NULL, 10);
        }
    }
    f->threads = fields[STAT_THREADS];
    f->virtual_bytes = fields[STAT_VIRTUAL];
    f->resident_bytes = fields[STAT_RESIDENT] * (uint64_t)sysconf(_SC_PAGESIZE);
    if (ticks > 0 && fields[STAT_START] > 0 && clock_gettime(CLOCK_BOOTTIME, &up) == 0) {
        uint64_t up_ms = 1000 * (uint64_t)up.tv_sec + (uint64_t)up.tv_nsec / 1000000;
        uint64_t start_ms = 1000 * fields[STAT_START] / (uint64_t)ticks;

        f->started_ms = now_ms - (up_ms > start_ms ? up_ms - start_ms : 0);
    }
}

void fl_process_figures_read(struct fl_process_figures *ret)
{
    struct rlimit limit = {0};
    struct rusage usage;

    *ret = (struct fl_process_figures){0};
    read_stat(ret);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        ret->descriptors_max = limit.rlim_cur;
    }
    ret->descriptors = count_descriptors(ret->descriptors_max);
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        ret->cpu_us = 1000000 * (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
}

int fl_process_metrics_add(struct fl_buf *out, enum fl_metrics_format format,
                           const struct fl_metric *rows, const void *figures,
                           const struct fl_process_figures *process)
{
    int rv = fl_metrics_add(out, format, rows, figures);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_metrics_add(out, format, fl_process_metrics, process);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_metrics_end(out, format);
}

int fl_process_metrics_reference(struct fl_buf *out, const struct fl_metric *rows)
{
    int rv = fl_metrics_reference(out, rows);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_metrics_rows(out, fl_process_metrics);
}
