#ifndef FL_SERVERD_RELOAD_H
#define FL_SERVERD_RELOAD_H

/*
 * SIGHUP (`systemctl reload`): the file is read again, and what a running server can take up is
 * taken up. This is the one place where things reload. A part that has something to take up gets a
 * call in take_up() (reload.c) and its keys into `live` there.
 *
 * A file that is wrong, or that a part cannot take up, changes nothing, and the log says what is
 * wrong with it; what needs a restart is named in the log. docs/operating.md#reloading lists both.
 *
 * Threading: the network loop.
 */

#include "server/daemon/serverd.h"

void fl_server_reload(struct fl_serverd *srv);

#endif
