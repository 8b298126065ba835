#ifndef FL_CLIENTD_EVENTS_H
#define FL_CLIENTD_EVENTS_H

/* Messages of this client on the control stream. */

#include "client/daemon/client_data.h"
#include "client/daemon/clientd_conf.h"
#include "client/daemon/connection.h"
#include "client/shell/session_shell.h"
#include "client/store/result.h"
#include "client/work/evaluation.h"

/* `name`: of this client; `hello`: FL_CMSG_HELLO of the session. */
void fl_event_hello(struct fl_connection *connection, const struct fl_client_conf *conf,
                    const char *name, const struct fl_local_data *data,
                    const struct fl_session_message *hello);
void fl_event_heartbeat(struct fl_connection *connection, uint64_t number);
void fl_event_report(struct fl_connection *connection, const struct fl_result *result);
/* `reason` may be NULL. */
void fl_event_failed(struct fl_connection *connection, struct fl_round_key key, const char *reason,
                     bool diverged);
/* All zero: no evaluation was made. */
void fl_event_evaluation(struct fl_connection *connection, uint64_t round,
                         const struct fl_evaluation_result *evaluation);

#endif
