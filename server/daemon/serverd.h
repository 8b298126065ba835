#ifndef FL_SERVERD_SERVER_H
#define FL_SERVERD_SERVER_H

/*
 * The assembled daemon.
 *
 *   network loop (main thread)   connections, sessions, transfers: server/network
 *   coordinator thread           fl_coord and its effects: server/runtime
 *   io thread                    spool files, files that clients fetch
 *   db thread                    SQLite and checkpoints
 *   work thread                  aggregation and evaluation
 *   identity thread              certificates, invitations, revocations: server/auth
 *
 * Threads communicate only by posting struct fl_coord_msg (to the coordinator) and struct
 * fl_net_msg (to the network front end).
 */

#include "libfl/base/log_out.h"
#include "server/daemon/serverd_conf.h"

/* Run the daemon until it is stopped; returns the exit code. A reload changes `log` and `out`. */
int fl_server_run(const struct fl_serverd_conf *own, struct fl_log *log, struct fl_log_out *out);

#endif
