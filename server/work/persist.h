#ifndef FL_SERVER_WORK_PERSIST_H
#define FL_SERVER_WORK_PERSIST_H

/* The records that the core wants on disk before it goes on. */

#include "server/work/summary_work.h"

/*
 * On the store's thread: what FORGET_CLIENTS or a PERSIST effect names, in one transaction. Before
 * it data summaries are fixed (fl_offering_select()) or removed (fl_offering_forget()), into
 * `offers`; NULL: they are left alone. Errors of the store: nothing of the transaction is there.
 */
FL_MUST_CHECK int fl_persist_run(const struct fl_federation *federation,
                                 const struct fl_effect *effect, struct fl_offered *offers,
                                 struct fl_err *err);

#endif
