#ifndef FL_SERVER_IDENTITY_PLAIN_NAMES_H
#define FL_SERVER_IDENTITY_PLAIN_NAMES_H

/*
 * Names that a client without TLS may not use: a name that has a certificate, and a revoked name. A
 * certificate counts from its issue (or, with an operator's own PKI, from its first use here) until
 * its grace has passed, revoked or not. Without this, a peer in plaintext could take over the
 * session of any client with a certificate, or continue under a revoked name.
 */

#include "server/identity/authority.h"

/* The refusal of such a client; its argument is the name. */
#define FL_PLAIN_NAME_REFUSED                                                                \
    "'%s' has a certificate and is refused without TLS: connect to an address with TLS, or " \
    "choose another name; a client whose certificate is lost needs flctl invite on the server"

/* FL_OK; FL_EPERM: `name` is refused in plaintext, the text has the reason and what to do. */
FL_MUST_CHECK int fl_authority_check_plain(struct fl_authority *authority, const char *name,
                                           struct fl_err *err);
/*
 * A client has shown a certificate of an operator's own PKI for `name`, valid until `not_after`
 * (s). On disk when it returns; a known certificate costs only a query. Does nothing where
 * certificates are issued here.
 */
FL_MUST_CHECK int fl_authority_note_shown(struct fl_authority *authority, const char *name,
                                          int64_t not_after, struct fl_err *err);

#endif
