#ifndef FL_CLIENTD_COMMANDS_H
#define FL_CLIENTD_COMMANDS_H

/*
 * Commands of the server on the control stream, as events of the session. Whatever fails, on_down
 * is the one place where the session learns of it. Threading: the loop.
 */

#include "client/daemon/central.h"
#include "client/daemon/connection.h"
#include "client/daemon/join.h"
#include "client/daemon/renewal.h"

struct fl_commands {
    const struct fl_log *log;            /* borrowed, as all pointers */
    struct fl_session_shell *shell;      /* receives the events */
    struct fl_connection *connection;    /* the source of the commands */
    struct fl_wanted *wanted;            /* the newest task and evaluation */
    struct fl_join_job *joining;         /* handles a Welcome */
    struct fl_central_settings *central; /* receives central settings, and then */
    struct fl_timer *central_timer;      /* this starts */
    struct fl_renewal *renewal;          /* decides whether a new channel is for renewal only */
    char refusal[256]; /* the refusal that was logged since the last Welcome, cut; "": none */
};

/* The context is a struct fl_commands. */
extern const struct fl_connection_cbs fl_commands_cbs;

/* take() of the shell (fl_session_ops): `command` is what `event` was made of. */
bool fl_commands_take(struct fl_commands *commands, struct fl_session_event *event,
                      struct fl_wire_command *command);

#endif
