#ifndef FL_CLIENT_IDENTITY_ENROLLING_H
#define FL_CLIENT_IDENTITY_ENROLLING_H

/*
 * Getting a certificate from the server: the first one with an invitation (joining a federation),
 * the next ones with the current certificate (renewal). The owner of the connection calls
 * fl_enrolling_join() or fl_enrolling_renew(), sends the request, and passes the reply to
 * fl_enrolling_done(); only these change the disk, as client_identity.h describes. What is begun
 * and not completed, for any reason, is begun again later, in the same way.
 *
 * Threading: none; blocking, small files. Times are seconds since 1970.
 */

#include "client/identity/client_identity.h"
#include "libfl/base/buf.h"
#include "libfl/pki/invitation.h"
#include "libfl/wire/wire_identity.h"

struct fl_enrolling;

/*
 * Join with `invite`. The folder is created when missing. Each invitation gets its own key; a
 * repeated join with the same invitation reuses it, because the server knows it by then. `name` is
 * the requested name, copied; "": that of the invitation.
 *
 * Holds the lock of the folder until it is freed. FL_EINUSE: another process joins or renews.
 * FL_EPERM: see fl_client_identity_load(). FL_ENOSPC and other errors of the disk: an existing
 * identity is unchanged.
 */
FL_MUST_CHECK int fl_enrolling_join(const char *dir, const struct fl_invite *invite,
                                    const char *name, struct fl_enrolling **ret,
                                    struct fl_err *err);
/* Renew the certificate of `identity`, which has `ours` set, with a new key. Errors as above. */
FL_MUST_CHECK int fl_enrolling_renew(const char *dir, const struct fl_client_identity *identity,
                                     struct fl_enrolling **ret, struct fl_err *err);

/* The signing request (PKCS #10, DER); valid until fl_enrolling_free(). */
const uint8_t *fl_enrolling_request(const struct fl_enrolling *enrolling, size_t *ret_len);

/* The server's reply; borrowed. */
struct fl_enrolling_reply {
    const struct fl_wire_chain *chain, *roots;
    int64_t server_now; /* the server's clock; 0: not sent */
};

/*
 * Check the certificates of the reply and install the new identity. FL_EPROTO: the reply does not
 * match the request, nothing has changed; FL_EAGAIN: the certificate becomes valid after `now`,
 * this host's clock, so one of the two clocks is wrong: the text has both, nothing has changed;
 * retry once the clocks agree. `ret` (may be NULL) is the new identity. Errors of the disk: the old
 * identity or the new one is in place.
 */
FL_MUST_CHECK int fl_enrolling_done(struct fl_enrolling *enrolling,
                                    const struct fl_enrolling_reply *reply, int64_t now,
                                    struct fl_identity *ret, struct fl_err *err);
/* Releases the lock. NULL is allowed. */
void fl_enrolling_free(struct fl_enrolling *enrolling);

#endif
