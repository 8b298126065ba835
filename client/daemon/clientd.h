#ifndef FL_CLIENTD_CLIENT_H
#define FL_CLIENTD_CLIENT_H

/*
 * The client daemon: one loop that carries out the effects of a session, one lane that trains,
 * codes and touches what is kept. It schedules what client/work does and moves bytes; what a task
 * means is not decided in this room. Each part has its header and sees only those below it:
 *
 *   client.c      puts them together, carries out the session's effects
 *   commands.c    what the server says, as events of the session
 *   join.c        Welcome: another description in place of the one before
 *   download.c    bundles come; training_job.c, evaluation_job.c, summary_upload.c: work on the
 * lane delivery.c    the granted part of a result goes events.c      what this client says enrol.c
 * the first certificate, by an invitation: enrol_command.c when an operator joins this host,
 * enrol_unattended.c when the daemon finds one, invitation.c where it is read renewal.c the next
 * certificates; credentials.c: what is shown, and TLS connection.c  the channel and the control
 * stream; stepper.c: the session on the loop
 *
 * Threading: everything belongs to the loop but what a job hands to the lane: the worker, and what
 * the job itself holds. The worker is prepared for another setup only while the lane is idle; each
 * job holds the setup that it began with.
 */

#include "client/daemon/clientd_conf.h"
#include "libfl/base/log_out.h"

/*
 * Run the daemon; returns the exit code. `path`: the file that `conf` was read from, read again by
 * a reload, which changes `log` and `out`.
 */
int fl_client_run(const struct fl_client_conf *conf, const char *path, struct fl_log *log,
                  struct fl_log_out *out);

#endif
