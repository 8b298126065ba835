#ifndef FL_CLIENTD_RELOAD_H
#define FL_CLIENTD_RELOAD_H

/*
 * SIGHUP (`systemctl reload`): the file is read again, and what a running client can take up is
 * taken up. This is the one place where things reload. A part that has something to take up gets a
 * call in take_up() (reload.c), what it needs into struct fl_client_reload, and its keys into
 * `live`.
 *
 * A file that is wrong, or that a part cannot take up, changes nothing, and the log says what is
 * wrong with it; what needs a restart is named in the log. docs/operating.md#reloading lists both.
 *
 * Threading: the client's loop.
 */

#include "client/daemon/clientd_conf.h"
#include "client/daemon/renewal.h"
#include "libfl/base/log_out.h"

/* What can change while a client runs; everything is the caller's. */
struct fl_client_reload {
    const char *path;                  /* of the file */
    const struct fl_client_conf *conf; /* that it began with */
    struct fl_log *log;
    struct fl_log_out *log_out; /* where its lines go */
    struct fl_renewal *renewal; /* of its certificate */
};

void fl_client_reload(const struct fl_client_reload *reload);

#endif
