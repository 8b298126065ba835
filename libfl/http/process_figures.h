#ifndef FL_HTTP_PROCESS_FIGURES_H
#define FL_HTTP_PROCESS_FIGURES_H

/* Figures of the own process, as far as the kernel tells them. */

#include "libfl/http/metrics.h"

struct fl_process_figures {
    uint64_t resident_bytes, virtual_bytes, descriptors, descriptors_max, threads;
    uint64_t cpu_us, started_ms;
};

extern const struct fl_metric fl_process_metrics[];

/* A whole answer to a scrape: the rows of a daemon with its figures, then those of its process. As
   fl_metrics_add(). */
FL_MUST_CHECK int fl_process_metrics_add(struct fl_buf *out, enum fl_metrics_format format,
                                         const struct fl_metric *rows, const void *figures,
                                         const struct fl_process_figures *process);
/* The table of both for the documents. */
FL_MUST_CHECK int fl_process_metrics_reference(struct fl_buf *out, const struct fl_metric *rows);

/* Reads /proc, and no disk; what cannot be read is 0. Any thread. */
void fl_process_figures_read(struct fl_process_figures *ret);

#endif
