#ifndef FL_CLIENT_WORK_DATA_SUMMARY_H
#define FL_CLIENT_WORK_DATA_SUMMARY_H

/*
 * The data summary that a client sends before it can be selected (Welcome.wants_summary; the means
 * of FedMix), in pieces, from the first byte in each session. It is made once per state folder
 * (client/store/own_summary.h): later sessions, setups and servers get the same bytes, even when
 * the data has changed since.
 */

#include "client/work/worker.h"

struct fl_data_summary {
    struct fl_buf data;
    size_t sent;   /* bytes sent */
    bool sent_all; /* all pieces were sent; an empty summary is one piece, too */
};

/*
 * Initialise `ret` with the summary that was sent before, or with a new one, which is on disk when
 * this returns. Data or a trainer that cannot make one, and fewer samples than the least group,
 * give an empty summary and a log line: the protocol allows clients without one. Errors that can
 * pass: FL_ENOMEM, errors of the disk.
 */
FL_MUST_CHECK int fl_data_summary_make(const struct fl_worker *worker, struct fl_data_summary *ret,
                                       struct fl_err *err);
/* From the first byte again. */
void fl_data_summary_rewind(struct fl_data_summary *summary);
/* The next piece, which points into `summary`; false: all pieces were sent. */
bool fl_data_summary_next(struct fl_data_summary *summary, struct fl_wire_data_summary *ret);
void fl_data_summary_done(struct fl_data_summary *summary);

/*
 * The server forwards a data summary to all other clients, so the operator of this client decides
 * whether it is sent and how many samples each mean has. FL_EPERM: the setup of `worker`, or a
 * server that `wants` a summary, requires one that worker->terms forbid, or another than the one
 * sent before. Errors of fl_summary_group().
 */
FL_MUST_CHECK int fl_data_summary_check(const struct fl_worker *worker, bool wants,
                                        struct fl_err *err);
/* The same check of the terms alone. */
FL_MUST_CHECK int fl_data_summary_allowed(const struct fl_worker_terms *terms,
                                          const struct fl_solver_ops *solver,
                                          const struct fl_options *options, struct fl_err *err);

#endif
