#ifndef FL_RESULTS_REPORT_IMPL_H
#define FL_RESULTS_REPORT_IMPL_H

/* Shared by report.c and report_clients.c. */

#include "libfl/page/page.h"
#include "tools/fl_sim/results/report.h"

/* What clients.jsonl of a trial has, as the page takes it. */
struct fl__report_clients {
    struct fl_wire_client *list; /* by name */
    size_t n;
    struct fl_page_part *parts; /* of the last rounds, newest first */
    size_t n_parts;
    char **layers; /* [n_layers] names of the digits of their masks, and NULL */
    size_t n_layers;
    char **texts; /* [2 * n_parts] memory of the parts: masks and metrics; NULL: none */
};

/*
 * Read the file; without one, or when it is too large to be shown, there are no clients. `rounds`:
 * those that were committed.
 */
FL_MUST_CHECK int fl__report_clients_read(const char *path, uint64_t rounds,
                                          const struct fl_report_layers *layers,
                                          struct fl__report_clients *ret, struct fl_err *err);
void fl__report_clients_done(struct fl__report_clients *clients);

#endif
