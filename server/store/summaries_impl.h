#ifndef FL_STORE_SUMMARIES_IMPL_H
#define FL_STORE_SUMMARIES_IMPL_H

/* Shared by summaries.c, summaries_fixed.c and summaries_read.c. */

#include "libfl/base/buf.h"
#include "server/store/store_files.h"
#include "server/store/store_impl.h"

/*
 *   <client>.summary:  "FLSUMARY\n", length (8), XXH3 of the summary (8), the summary; length and
 * XXH3 both 0: an operator dropped it fixed:           "FLSUMALL", length (8), XXH3 of the
 * checksums (8), XXH3 of its inputs (8), all summaries, XXH3 of each block of 16 KiB of them (8 b)
 */
#define FL__SUMMARY_SUFFIX  ".summary"
#define FL__SUMMARIES_FIXED "fixed"
#define FL__SUMMARY_MAGIC   "FLSUMARY\n"
#define FL__SUMMARIES_MAGIC "FLSUMALL"
#define FL__SUMMARY_HEAD    24
#define FL__SUMMARIES_HEAD  32

/* <dir>/summaries/<name><suffix> */
FL_MUST_CHECK int fl__summaries_path(const char *dir, const char *name, const char *suffix,
                                     char out[FL__STORE_PATH_MAX], struct fl_err *err);
/* The client of a file name ("edge-01.summary": edge-01); false: not the file of a client. */
bool fl__summary_client(const char *file, char out[FL_NAME_MAX]);
/* Does the header mark a dropped summary? */
bool fl__summary_is_dropped(const uint8_t head[FL__SUMMARY_HEAD]);
/* Is `buf` a complete, undamaged client file? */
bool fl__summary_is_whole(const struct fl_buf *buf);
/* Digest of the inputs of `fixed`; FL_ENOENT: no file, or no digest in it. */
FL_MUST_CHECK int fl__summaries_made_of(const char *dir, uint64_t *ret, struct fl_err *err);

#endif
