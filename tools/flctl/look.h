#ifndef FL_FLCTL_LOOK_H
#define FL_FLCTL_LOOK_H

/*
 * Answers of the server as structs, for commands that need several of them at once: check, watch,
 * rounds --follow. Main thread.
 */

#include "tools/flctl/flctl.h"

/* Everything in it is owned; zero-initialize it. */
struct fl_ctl_look {
    struct fl_wire_status status;
    bool has_status;
    struct fl_wire_round *rounds; /* oldest first */
    size_t n_rounds, rounds_cap;
    struct fl_wire_client *clients;
    size_t n_clients, clients_cap;
};

/*
 * Each adds one answer and returns an exit code, with the reason in `err`. Call them once for a
 * look, and fl_ctl_look_done() after an error too.
 */
int fl_ctl_look_status(struct fl_ctl_args *args, struct fl_ctl_look *look, struct fl_err *err);
int fl_ctl_look_rounds(struct fl_ctl_args *args, uint32_t last, struct fl_ctl_look *look,
                       struct fl_err *err);
int fl_ctl_look_clients(struct fl_ctl_args *args, struct fl_ctl_look *look, struct fl_err *err);
/* Makes it empty again. */
void fl_ctl_look_done(struct fl_ctl_look *look);

#endif
