#ifndef FL_SERVERD_RELOAD_H
#define FL_SERVERD_RELOAD_H

/*
 * SIGHUP (`systemctl reload`): reads the file again and applies the keys that a running server can
 * change. This is the only place where settings are reloaded. A component with reloadable settings
 * gets a call in reload_apply() (serverd_reload.c) and its keys in `live` there.
 *
 * An invalid file, or one that a component rejects, changes nothing, and the log has the error;
 * keys that need a restart are named in the log. docs/operating.md#reloading lists both.
 *
 * Threading: the network loop.
 */

#include "server/daemon/serverd.h"

void fl_server_reload(struct fl_serverd *srv);

#endif
