#ifndef FL_STORE_SUMMARIES_IMPL_H
#define FL_STORE_SUMMARIES_IMPL_H

/* Shared by summaries.c, summaries_fixed.c and summaries_read.c. */

#include "libfl/base/buf.h"
#include "libfl/container/container.h"
#include "server/store/store_files.h"
#include "server/store/store_impl.h"

/*
 * Container files (libfl/container).
 *   <client>.summary: one section, the summary; no section: an operator dropped it
 *   fixed: a field, the digest of its inputs (8); one section, all summaries
 */
#define FL__SUMMARY_SUFFIX  ".summary"
#define FL__SUMMARIES_FIXED "fixed"

extern const struct fl_container_kind fl__summary_kind, fl__summaries_kind;

/* <dir>/summaries/<name><suffix> */
FL_MUST_CHECK int fl__summaries_path(const char *dir, const char *name, const char *suffix,
                                     char out[FL__STORE_PATH_MAX], struct fl_err *err);
/* The client of a file name ("edge-01.summary": edge-01); false: not the file of a client. */
bool fl__summary_client(const char *file, char out[FL_NAME_MAX]);
/* Digest of the inputs of `fixed`; FL_ENOENT: no file, or no digest in it. */
FL_MUST_CHECK int fl__summaries_made_of(const char *dir, uint64_t *ret, struct fl_err *err);

#endif
