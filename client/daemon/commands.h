#ifndef FL_CLIENTD_COMMANDS_H
#define FL_CLIENTD_COMMANDS_H

/*
 * What the server says on the control stream, as events of the session. Whatever breaks, on_down is
 * the one place where the session learns of it. Threading: the loop.
 */

#include "client/daemon/connection.h"
#include "client/daemon/join.h"
#include "client/daemon/renewal.h"

struct fl_commands {
    const struct fl_log *log;         /* borrowed, as all */
    struct fl_stepper *stepper;       /* who hears of them */
    struct fl_connection *connection; /* where they come from */
    struct fl_wanted *wanted;         /* what they ask for */
    struct fl_join_job *joining;      /* who takes a Welcome */
    struct fl_renewal *renewal;       /* what a new channel may be for first */
};

/* The context is a struct fl_commands. */
extern const struct fl_connection_cbs fl_commands_cbs;

#endif
