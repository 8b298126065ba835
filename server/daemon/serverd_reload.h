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

#include "server/auth/auth.h"
#include "server/daemon/serverd_conf.h"

struct fl_log_out;

/* What a reload reads and changes; everything is borrowed. */
struct fl_reload {
    const struct fl_serverd_conf *own; /* the configuration of the start */
    struct fl_log *log;                /* NULL: nothing is logged */
    struct fl_log_out *log_out;        /* destination of `log`; NULL: not ours */
    struct fl_auth *auth;              /* NULL: no address uses TLS */
};

void fl_server_reload(const struct fl_reload *of);

#endif
