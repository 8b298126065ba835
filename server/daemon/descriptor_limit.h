#ifndef FL_SERVERD_DESCRIPTORS_H
#define FL_SERVERD_DESCRIPTORS_H

/*
 * The number of connections that the file descriptors of the process allow, after those that the
 * server itself needs: database, checkpoints, personalized models, listening sockets, loops, flctl.
 * Pure; fl_descriptors_raise() returns how many descriptors there are.
 */

#include <stdint.h>

#include "libfl/base/err.h"

/* Connections of flctl and scripts to the admin socket. */
#define FL_SERVERD_ADMIN_CONNECTIONS 16
/*
 * SQLite's three files and a temporary one, the lock, a checkpoint and a personalized model being
 * written and one being read, data summaries; three loops with four each; listening sockets, and
 * spare descriptors for them; stdin, stdout, stderr. That is about 30; libraries open files too.
 */
#define FL_SERVERD_OWN_DESCRIPTORS 48
/* The socket of a client, and the spool file of its update while it is written or read. */
#define FL_SERVERD_CLIENT_DESCRIPTORS 2

/*
 * Connections that fit into `descriptors`, at most `wanted`. FL_ELIMIT: fewer than `least`; the
 * text has the numbers and what to change.
 */
FL_MUST_CHECK int fl_serverd_connections(uint64_t descriptors, uint64_t wanted, uint64_t least,
                                         uint64_t *ret, struct fl_err *err);

#endif
