#ifndef FL_CLIENTD_STATUS_COMMAND_H
#define FL_CLIENTD_STATUS_COMMAND_H

#include "client/conf/client_conf.h"

/* The exit codes of fl-clientd --status. */
enum fl_status_exit { FL_STATUS_WORKS = 0, FL_STATUS_NEEDS_OWNER = 1, FL_STATUS_NOT_RUNNING = 2 };

/*
 * Print the report of the client that runs with this state folder to stdout, as text or as JSON.
 * Returns the exit code; what went wrong is printed to stderr.
 */
int fl_status_command(const struct fl_client_conf *conf, bool json);

#endif
