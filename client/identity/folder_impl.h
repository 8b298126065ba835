#ifndef FL_CLIENT_IDENTITY_FOLDER_IMPL_H
#define FL_CLIENT_IDENTITY_FOLDER_IMPL_H

/*
 * The folder of an identity, STATE_DIR/identity, as client_identity.h describes it: its files, its
 * access checks, and the atomic replacement of one identity by another. Private to client/identity.
 */

#include <stdbool.h>

#include "libfl/base/err.h"
#include "libfl/pki/cert.h"
#include "libfl/pki/key.h"

#define FL__CERTIFICATE "client.pem"
#define FL__KEY         "client.key"
#define FL__ROOTS       "roots.pem"
#define FL__NEXT_KEY    "next.key"
#define FL__NEXT_ROOTS  "next-roots.pem"
#define FL__INVITATION  "invitation.sha256"

#define FL__PATH_MAX 4096

/* FL_ELIMIT with a text when it does not fit. */
FL_MUST_CHECK int fl__identity_path(char out[FL__PATH_MAX], const char *dir, const char *name,
                                    struct fl_err *err);

/* FL_EPERM: another user owns the folder, or others can write to it. FL_ENOENT: none. */
FL_MUST_CHECK int fl__folder_check(const char *dir, struct fl_err *err);
/*
 * Create the folder when missing (0700), check it, and take its lock; FL_EINUSE names the owner of
 * the lock.
 */
FL_MUST_CHECK int fl__folder_take(const char *dir, int *ret_lock, struct fl_err *err);

/*
 * Replace the identity by `chain`, which belongs to the key in next.key, and `roots`.
 * client_identity.h has the steps and the states that a crash can leave.
 */
FL_MUST_CHECK int fl__folder_install(const char *dir, const struct fl_chain *chain,
                                     const struct fl_chain *roots, struct fl_err *err);
/* Complete the last steps when next.key belongs to the certificate in place. */
FL_MUST_CHECK int fl__folder_settle(const char *dir, struct fl_err *err);

#endif
