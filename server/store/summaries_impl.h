#ifndef FL_STORE_OFFERS_IMPL_H
#define FL_STORE_OFFERS_IMPL_H

/* What the files about data summaries (offers*.c) share. */

#include "libfl/base/buf.h"
#include "server/store/store_files.h"
#include "server/store/store_impl.h"

/*
 *   <client>.offer:  "FLOFFER\n", length (8), XXH3 of what follows (8), the summary; a length and
 *                    an XXH3 of 0: an operator dropped it
 *   fixed:           "FLOFFERS", length (8), XXH3 of the checksums (8), XXH3 of what it was made of
 *                    (8), all summaries, XXH3 of each block of 16 KiB of them (8 b)
 */
#define FL__OFFER_SUFFIX ".offer"
#define FL__OFFERS_FIXED "fixed"
#define FL__OFFER_MAGIC  "FLOFFER\n"
#define FL__OFFERS_MAGIC "FLOFFERS"
#define FL__OFFER_HEAD   24
#define FL__OFFERS_HEAD  32

/* <dir>/offers/<name><suffix> */
FL_MUST_CHECK int fl__offers_path(const char *dir, const char *name, const char *suffix,
                                  char out[FL__STORE_PATH_MAX], struct fl_err *err);
/* "edge-01.offer" is of client edge-01; false: no file of a client. */
bool fl__offer_client(const char *file, char out[FL_NAME_MAX]);
/* Is the head that of a summary that was dropped? */
bool fl__offer_is_dropped(const uint8_t head[FL__OFFER_HEAD]);
/* What `buf` holds of a client's file: whole, and as it was put. */
bool fl__offer_is_whole(const struct fl_buf *buf);
/* What says from which files `fixed` was made; FL_ENOENT: it is not there, or says nothing. */
FL_MUST_CHECK int fl__offers_made_of(const char *dir, uint64_t *ret, struct fl_err *err);

#endif
