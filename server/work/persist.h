#ifndef FL_SERVER_WORK_PERSIST_H
#define FL_SERVER_WORK_PERSIST_H

/* The records that the coordinator needs on disk before it proceeds. */

#include "server/work/summary_work.h"

/*
 * On the store's thread: writes what FORGET_CLIENTS or a PERSIST effect names, in one transaction.
 * Before it data summaries are fixed (fl_collection_select()) or removed (fl_collection_forget()),
 * into `summaries`; NULL: they are left unchanged. On errors of the store nothing of the
 * transaction is on disk.
 */
FL_MUST_CHECK int fl_persist_run(const struct fl_federation *federation,
                                 const struct fl_effect *effect, struct fl_collection *summaries,
                                 struct fl_err *err);

#endif
