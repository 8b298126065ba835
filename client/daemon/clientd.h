#ifndef FL_CLIENTD_CLIENT_H
#define FL_CLIENTD_CLIENT_H

/*
 * The client daemon: one loop with the operations of a session (client/shell), and one training
 * thread that trains, encodes updates and accesses the client state on disk. This folder schedules
 * the work of client/work and moves bytes; what a task means is not decided here. Each part has its
 * header and sees only those below it:
 *
 *   clientd.c             creates the parts, starts the session
 *   clientd_session.c     the operations of the session
 *   owner_facts.c         what the owner of the device is told, by HTTP port, --status and systemd
 *   saved_file.c          small files that the training thread writes
 *   status_socket.c       the socket that fl-clientd --status (status_command.c) reads
 *   commands.c            commands of the server, as events of the session
 *   join.c                Welcome: one federation setup in place of another
 *   download.c            receives payloads
 *   training_job.c, evaluation_job.c, summary_upload.c    jobs on the training thread
 *   delivery.c            uploads the layers of a result that the upload mask selects
 *   enrol.c               the first certificate, by an invitation: enrol_command.c for an operator
 *                         (--join), enrol_unattended.c for a credential, invitation_file.c reads it
 *   renewal.c             certificate renewal
 *   credentials.c         the certificate in use, and TLS
 *   connection.c          the channel and the control stream
 *
 * Threading: everything belongs to the loop except what a job passes to the training thread: the
 * worker, and what the job itself owns. The worker is prepared for another setup only while the
 * training thread is idle; each job holds a reference to the setup that it began with.
 */

#include "client/daemon/clientd_conf.h"
#include "libfl/base/log_out.h"

/*
 * Run the daemon; returns the exit code. `path` is the file that `conf` was read from. A reload
 * reads it again and changes `log` and `out`.
 */
int fl_client_run(const struct fl_client_conf *conf, const char *path, struct fl_log *log,
                  struct fl_log_out *out);

#endif
