#ifndef FL_SIM_LOCAL_SOCKETS_H
#define FL_SIM_LOCAL_SOCKETS_H

/*
 * The folder of a local run's sockets in /tmp: a socket's path has at most 107 characters, and the
 * folder of the results may be longer. It is locked while its run lives, also against a kill.
 * Threading: main thread.
 */

#include "libfl/base/err.h"

#define LOCAL_SOCKETS_SIZE 32

struct local_sockets {
    char path[LOCAL_SOCKETS_SIZE];
    int fd; /* of the folder, locked */
};

/*
 * Creates the folder, and removes those of runs of this user that were killed. An error of the file
 * system. On success the caller calls local_sockets_close().
 */
FL_MUST_CHECK int local_sockets_open(struct local_sockets *ret, struct fl_err *err);
/* Removes it; a warning on stderr when it cannot be. */
void local_sockets_close(struct local_sockets *sockets);

#endif
