#ifndef FL_CLIENT_IDENTITY_FOLDER_IMPL_H
#define FL_CLIENT_IDENTITY_FOLDER_IMPL_H

/*
 * The folder of an identity, STATE_DIR/identity, as identity.h describes it: its files, who may use
 * them, and how one identity takes the place of another. Private to client/identity.
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

/* FL_EPERM: it is somebody else's, or others may change what lies in it. FL_ENOENT: none. */
FL_MUST_CHECK int fl__folder_check(const char *dir, struct fl_err *err);
/* Make it when it is missing (0700), check it, and take its lock; FL_EINUSE names who has that. */
FL_MUST_CHECK int fl__folder_take(const char *dir, int *ret_lock, struct fl_err *err);

/*
 * Put in place of what is there: `chain`, which is of the key in next.key, and `roots`. The steps
 * and what a crash between them leaves stand in identity.h.
 */
FL_MUST_CHECK int fl__folder_install(const char *dir, const struct fl_chain *chain,
                                     const struct fl_chain *roots, struct fl_err *err);
/* The last steps of it, when next.key is the one of the certificate that is in place. */
FL_MUST_CHECK int fl__folder_settle(const char *dir, struct fl_err *err);

#endif
