#ifndef FL_SERVER_HTTP_SERVER_METRICS_H
#define FL_SERVER_HTTP_SERVER_METRICS_H

/* The metrics of a server: one row each, from which /metrics and docs/http.md follow. */

#include "libfl/http/http.h"
#include "libfl/http/process_figures.h"
#include "server/http/coord_figures.h"
#include "server/network/download_counts.h"

/* Worker threads: io, db, work, identity. */
#define FL_SERVER_THREADS 4

struct fl_server_figures {
    const char *info[3]; /* version, federation, algorithm */
    struct fl_coord_figures coord;
    uint64_t downloads[FL_DOWNLOAD_N], downloads_full[FL_DOWNLOAD_N];
    uint64_t queued[FL_SERVER_THREADS], busy_since_ms[FL_SERVER_THREADS];
    uint64_t waiting_since_ms[FL_SERVER_THREADS];
    uint64_t log_left_out, clients_needed;
    uint64_t certificate_ms[2];
    struct fl_http_counts http;
};

extern const struct fl_metric fl_server_metrics[];

/* Append the text of all metrics of a server. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_server_metrics_add(struct fl_buf *out, enum fl_metrics_format format,
                                        const struct fl_server_figures *figures,
                                        const struct fl_process_figures *process);
/* Append the tables of the reference (Markdown). */
FL_MUST_CHECK int fl_server_metrics_reference(struct fl_buf *out);

#endif
