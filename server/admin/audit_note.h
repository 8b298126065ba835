#ifndef FL_SERVER_ADMIN_AUDIT_NOTE_H
#define FL_SERVER_ADMIN_AUDIT_NOTE_H

/*
 * An audit entry for an action of an operator. With TLS it goes to the identity database (flctl
 * audit) and from there to the log; without TLS there is no identity database and it goes to the
 * log only.
 */

#include "libfl/base/identity.h"
#include "server/auth/auth.h"

/* "uid 1000 (alice)", "admin ops-1, serial 5f0a…", an address. */
#define FL_BY_TEXT 256

struct fl_audit_note {
    const struct fl_identity *who; /* NULL: only `peer` is known; copied */
    const char *peer;
    const char *what, *object, *result;
};

/* The requester's name for the audit. Identity thread only, since it looks up the user name. */
const char *fl_identity_by(const struct fl_identity *who, const char *peer, char out[FL_BY_TEXT]);
/*
 * Network loop: writes the entry, then calls then(arg) on the loop (NULL: nothing). `then` is
 * always called, also when the entry could not be written. `auth`: NULL without TLS.
 */
void fl_audit_note(struct fl_auth *auth, const struct fl_log *log, const struct fl_audit_note *note,
                   fl_loop_cb then, void *arg);

#endif
