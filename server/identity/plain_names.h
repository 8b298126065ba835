#ifndef FL_SERVER_IDENTITY_PLAIN_NAMES_H
#define FL_SERVER_IDENTITY_PLAIN_NAMES_H

/*
 * Names that a client without TLS may not use: a name that has a certificate, and a name that is
 * denied. A certificate counts from its issue (or, with an operator's own PKI, from its first use
 * here) until its grace has passed, denied or not. Without this, a peer in plaintext could take
 * over the session of any client with a certificate, or go on under a name that is revoked.
 */

#include "server/identity/authority.h"

/* The refusal that such a client is sent; takes the name. */
#define FL_PLAIN_NAME_REFUSED                                                                \
    "'%s' has a certificate and is refused without TLS: connect to an address with TLS, or " \
    "choose another name; a client whose certificate is lost needs flctl invite on the server"

/* FL_OK; FL_EPERM: `name` is refused in plaintext, the text says why and what to do. */
FL_MUST_CHECK int fl_authority_check_plain(struct fl_authority *authority, const char *name,
                                           struct fl_err *err);
/*
 * A client has shown a certificate of an operator's own PKI for `name`, valid until `not_after`
 * (s). On disk when it returns; a certificate that is known costs a query. Does nothing where
 * certificates are issued here.
 */
FL_MUST_CHECK int fl_authority_note_shown(struct fl_authority *authority, const char *name,
                                          int64_t not_after, struct fl_err *err);

#endif
