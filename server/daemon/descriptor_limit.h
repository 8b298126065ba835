#ifndef FL_SERVERD_DESCRIPTORS_H
#define FL_SERVERD_DESCRIPTORS_H

/*
 * How many connections the descriptors of the process allow. What serves them all comes first: the
 * database, checkpoints, mixtures, sockets that listen, loops, flctl. Pure; fl_descriptors_raise()
 * says how many there are.
 */

#include <stdint.h>

#include "libfl/base/err.h"

/* Connections of flctl and scripts to the admin socket. */
#define FL_SERVERD_ADMIN_CONNECTIONS 16
/* SQLite's three files and a temporary one, the lock, a checkpoint and a mixture being written and
   one being read, offers; three loops with four each; sockets that listen, and theirs in reserve;
   stdin, stdout, stderr. That is about 30; libraries open files too. */
#define FL_SERVERD_OWN_DESCRIPTORS 48
/* Its socket, and the spool file of its update: being written, or being read with all others. */
#define FL_SERVERD_CLIENT_DESCRIPTORS 2

/*
 * Connections that fit into `descriptors`, at most `wanted`. FL_ELIMIT: fewer than `least`; the
 * text has the numbers and the way out.
 */
FL_MUST_CHECK int fl_serverd_connections(uint64_t descriptors, uint64_t wanted, uint64_t least,
                                         uint64_t *ret, struct fl_err *err);

#endif
