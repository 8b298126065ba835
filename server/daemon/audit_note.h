#ifndef FL_SERVERD_AUDIT_NOTE_H
#define FL_SERVERD_AUDIT_NOTE_H

/*
 * An audit entry for an action of an operator. With TLS it goes to the identity database (flctl
 * audit) and from there to the log; without TLS there is no identity database and it goes to the
 * log only.
 */

#include "server/daemon/serverd.h"

struct fl_audit_note {
    const struct fl_identity *who; /* NULL: only `peer` is known; copied */
    const char *peer;
    const char *what, *object, *result;
};

/*
 * Network loop: writes the entry, then calls then(arg) on the loop (NULL: nothing). `then` is
 * always called, also when the entry could not be written.
 */
void fl_audit_note(struct fl_serverd *srv, const struct fl_audit_note *note, fl_loop_cb then,
                   void *arg);

#endif
