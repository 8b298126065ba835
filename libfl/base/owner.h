#ifndef FL_BASE_OWNER_H
#define FL_BASE_OWNER_H

/* Root acting as the user whose folder it is: what root makes or tries says nothing of a service.
 */

#include "libfl/base/err.h"
#include "libfl/base/findings.h"

/*
 * Where this is root and `dir` is another user's, become that user with its groups, for good. A
 * folder that is missing or root's leaves it as it is. FL_EPERM: it cannot be done.
 *
 * `notes` (may be NULL): as whom it goes on, and whether that user may read `file`, the
 * configuration, which was read before.
 */
FL_MUST_CHECK int fl_owner_become(const char *dir, const char *file, struct fl_findings *notes,
                                  struct fl_err *err);
/* The name of a user, or the number where it has none. Returns `out`. */
const char *fl_owner_name(unsigned uid, char out[64]);

#endif
