#ifndef FL_SERVERD_AUDIT_NOTE_H
#define FL_SERVERD_AUDIT_NOTE_H

/*
 * A line of the audit for what an operator did. With TLS it is in the database of identities (flctl
 * audit) and in the log, from there; without, where nobody has a certificate, in the log alone.
 */

#include "server/daemon/serverd.h"

struct fl_audit_note {
    const struct fl_identity *who; /* NULL: only `peer` is known; copied */
    const char *peer;
    const char *what, *object, *result;
};

/* Network loop: write it down, then then(arg) on the loop; NULL: nothing. Always comes. */
void fl_audit_note(struct fl_serverd *srv, const struct fl_audit_note *note, fl_loop_cb then,
                   void *arg);

#endif
