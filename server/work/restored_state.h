#ifndef FL_SERVER_WORK_RESTORED_STATE_H
#define FL_SERVER_WORK_RESTORED_STATE_H

/* The first start of a folder that was restored from a backup (fl_store_carry_restored()). */

#include "server/work/server_work.h"

/* Run before anything else of the folder is read. FL_OK also when no restore is noted. */
FL_MUST_CHECK int fl_restored_carry_out(const struct fl_federation *federation, uint64_t wall_ms,
                                        struct fl_err *err);

#endif
