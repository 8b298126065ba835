#ifndef FL_CLIENT_IDENTITY_ENROLLING_H
#define FL_CLIENT_IDENTITY_ENROLLING_H

/*
 * Getting a certificate from the server: the first one by an invitation (joining a federation), the
 * next ones with the one before (renewing). Whoever has the connection calls begin, sends the
 * request, and gives the reply to done; the disk is changed in these two only, as identity.h
 * describes. What is begun and not done, for any reason, is begun again later, in the same way.
 *
 * Threading: none; blocking, small files. Times are seconds since 1970.
 */

#include "client/identity/client_identity.h"
#include "libfl/base/buf.h"
#include "libfl/pki/invitation.h"
#include "libfl/wire/wire_identity.h"

struct fl_enrolling;

/*
 * Join by `invite`. The folder is made when it is missing. A key is made for each invitation; the
 * one that this invitation was used with before is used again, for the server knows it by then.
 * `name` is the one wanted, copied; "": that of the invitation.
 *
 * Takes the lock of the folder until it is freed. FL_EINUSE: another process joins or renews.
 * FL_EPERM: see fl_client_identity_load(). FL_ENOSPC and other errors of the disk: nothing of an
 * identity that is there has changed.
 */
FL_MUST_CHECK int fl_enrolling_join(const char *dir, const struct fl_invite *invite,
                                    const char *name, struct fl_enrolling **ret,
                                    struct fl_err *err);
/* The next certificate of `identity`, which is ours, for a new key. Errors as above. */
FL_MUST_CHECK int fl_enrolling_renew(const char *dir, const struct fl_client_identity *identity,
                                     struct fl_enrolling **ret, struct fl_err *err);

/* The signing request (PKCS #10, DER), as long as it lives. */
const uint8_t *fl_enrolling_request(const struct fl_enrolling *enrolling, size_t *ret_len);

/* What the server answered; borrowed. */
struct fl_enrolling_reply {
    const struct fl_wire_chain *chain, *roots;
    int64_t server_now; /* its clock; 0: it did not say */
};

/*
 * Check the certificates of the reply and put the new identity in place of the old. FL_EPROTO: it
 * is not what was asked for, nothing has changed; FL_EAGAIN: the certificate begins after `now`, of
 * this host's clock, so one of the two clocks is wrong: the text has both, nothing has changed, and
 * once the clocks agree the same is to be tried again. `ret` (may be NULL) says who this client is
 * from now on. Errors of the disk: the old identity or the new one is in place.
 */
FL_MUST_CHECK int fl_enrolling_done(struct fl_enrolling *enrolling,
                                    const struct fl_enrolling_reply *reply, int64_t now,
                                    struct fl_identity *ret, struct fl_err *err);
/* Gives the lock back. NULL is allowed. */
void fl_enrolling_free(struct fl_enrolling *enrolling);

#endif
