#ifndef FL_CLIENTD_RELOAD_H
#define FL_CLIENTD_RELOAD_H

/*
 * SIGHUP (`systemctl reload`) reads the file again and applies what can change at run time. All
 * reloading happens here. To make a key reloadable, apply it in client_reload_apply()
 * (clientd_reload.c), put what that needs into struct fl_client_reload, and add the key to `live`.
 *
 * A file that is invalid, or that a part rejects, changes nothing, and the log has the reason. The
 * log also names changed keys that need a restart. docs/operating.md#reloading lists both kinds of
 * keys.
 *
 * Threading: the client's loop.
 */

#include "client/daemon/clientd_conf.h"
#include "client/daemon/renewal.h"
#include "libfl/base/log_out.h"

/* What a reload uses; everything is borrowed. */
struct fl_client_reload {
    const char *path;                  /* of the file */
    const struct fl_client_conf *conf; /* in use since the start */
    struct fl_log *log;
    struct fl_log_out *log_out; /* the sink of `log` */
    struct fl_renewal *renewal; /* certificate renewal */
};

void fl_client_reload(const struct fl_client_reload *reload);

#endif
