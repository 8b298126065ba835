#ifndef FL_BASE_OWNER_H
#define FL_BASE_OWNER_H

/* Dropping root to the owner of a folder: files that root creates or can read tell nothing about a
 * service that runs as another user.
 */

#include "libfl/base/err.h"
#include "libfl/base/findings.h"

/*
 * When running as root and `dir` belongs to another user, switch to that user and its groups
 * permanently. Does nothing when the folder is missing or belongs to root. FL_EPERM: the switch
 * failed.
 *
 * `notes` (may be NULL): gets the name of the new user, and whether that user may read `file`, the
 * configuration, which was read before.
 */
FL_MUST_CHECK int fl_owner_become(const char *dir, const char *file, struct fl_findings *notes,
                                  struct fl_err *err);
/* The name of a user, or its number when it has none. Returns `out`. */
const char *fl_owner_name(unsigned uid, char out[64]);

#endif
