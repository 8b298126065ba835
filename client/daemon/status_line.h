#ifndef FL_CLIENTD_STATUS_LINE_H
#define FL_CLIENTD_STATUS_LINE_H

/* The status text for `systemctl status`: the client's state and round. Pure. */

#include <stddef.h>

#include "client/core/session.h"

/*
 * `round`: of the newest task; 0: none yet. `reason`: why the client is offline; "": unknown.
 * Returns `out`.
 */
const char *fl_client_status_line(enum fl_session_state state, uint64_t round, const char *server,
                                  const char *reason, char *out, size_t size);

#endif
