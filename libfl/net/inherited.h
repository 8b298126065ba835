#ifndef FL_NET_INHERITED_H
#define FL_NET_INHERITED_H

/*
 * Sockets that a service manager listens on and hands down ($LISTEN_FDS, sd_listen_fds(3)). It
 * keeps them while this process is not there, so who connects meanwhile waits instead of being
 * refused.
 *
 * fl_listen() uses the one that is bound to the address it is asked for, by itself. The descriptors
 * are the process's own, and stay: listening a second time finds them again.
 *
 * Threading: one thread.
 */

#include <stdbool.h>
#include <stddef.h>

/* The address of one that nobody listened on so far, for a message; false: there is none. */
bool fl_inherited_unused(char *out, size_t size);

#endif
