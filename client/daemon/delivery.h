#ifndef FL_CLIENTD_DELIVERY_H
#define FL_CLIENTD_DELIVERY_H

/* The granted part of the held result on its way to the server. Threading: the loop. */

#include "client/daemon/connection.h"
#include "client/daemon/jobs.h"
#include "client/store/pending_result.h"
#include "client/work/worker.h"

struct fl_delivery;

struct fl_deliveries {
    const struct fl_jobs *jobs;           /* borrowed, as the next three */
    struct fl_connection *connection;     /* where it goes */
    const struct fl_worker *worker;       /* whose it is */
    const struct fl_pending_result *held; /* what is delivered */
    struct fl_delivery *newest;           /* NULL: none */
    struct fl_round_key malformed;        /* upload that the server could not read; round 0: none */
    unsigned n_malformed;                 /* how often in a row */
};

/* `units` [n_units] that are granted, NULL: all. In place of the one before. */
void fl_deliveries_begin(struct fl_deliveries *deliveries, struct fl_round_key key,
                         const uint8_t *units, size_t n_units);
void fl_deliveries_cancel(struct fl_deliveries *deliveries);

#endif
