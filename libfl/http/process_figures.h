#ifndef FL_HTTP_PROCESS_FIGURES_H
#define FL_HTTP_PROCESS_FIGURES_H

/* Figures of the own process, as far as the kernel tells them. */

#include "libfl/http/metrics.h"

struct fl_process_figures {
    uint64_t resident_bytes, virtual_bytes, descriptors, descriptors_max, threads;
    uint64_t cpu_us, started_ms;
    uint64_t disk_free_bytes, disk_bytes; /* of the file system of the state folder */
};

extern const struct fl_metric fl_process_metrics[];

/* Reads /proc and the file system of `state_dir`; what cannot be read is 0. Any thread. */
void fl_process_figures_read(const char *state_dir, struct fl_process_figures *ret);

#endif
