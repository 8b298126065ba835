#ifndef FL_NET_INHERITED_H
#define FL_NET_INHERITED_H

/*
 * Inherited sockets: a service manager listens on them and passes them to this process
 * ($LISTEN_FDS, sd_listen_fds(3)). The service manager keeps them open while this process is not
 * running, so clients that connect meanwhile wait instead of being refused.
 *
 * fl_listen() uses the inherited socket that is bound to the requested address. The descriptors
 * belong to the process and stay open: a second fl_listen() finds them again.
 *
 * Threading: one thread.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the address of an inherited socket that no fl_listen() has used so far, for a message;
 * false: there is none.
 */
bool fl_inherited_unused(char *out, size_t size);

#endif
