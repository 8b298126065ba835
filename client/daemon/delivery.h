#ifndef FL_CLIENTD_DELIVERY_H
#define FL_CLIENTD_DELIVERY_H

/* Uploads the layers of the pending result that the upload mask selects. Threading: the loop. */

#include "client/daemon/connection.h"
#include "client/daemon/jobs.h"
#include "client/store/pending_result.h"
#include "client/work/worker.h"

struct fl_delivery;

struct fl_deliveries {
    const struct fl_jobs *jobs;              /* borrowed, as are the next three */
    struct fl_connection *connection;        /* the way to the server */
    const struct fl_worker *worker;          /* the worker that made the result */
    const struct fl_pending_result *pending; /* the result to upload */
    struct fl_delivery *newest;              /* NULL: none */
    struct fl_round_key malformed; /* upload that the server could not decode; round 0: none */
    unsigned n_malformed;          /* consecutive failures of `malformed` */
};

/*
 * Start an upload of the pending result, which is that of `key`; cancels the previous one. `units`
 * [n_units]: the upload mask, 1 selects a layer; NULL: all. Errors of code.h and of the connection.
 */
FL_MUST_CHECK int fl_deliveries_begin(struct fl_deliveries *deliveries, struct fl_round_key key,
                                      const uint8_t *units, size_t n_units);
void fl_deliveries_cancel(struct fl_deliveries *deliveries);

#endif
